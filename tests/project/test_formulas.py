"""Formulas are set as mathematics: no formula in code font, and none in plain text of docstrings."""

import ast
import importlib
import inspect
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [*sorted((DOCS / "guide").glob("*.md")), *(DOCS / f"{name}.md" for name in ("theory", "errata", "scaling"))]
FENCE = re.compile(r"^( *)(```+|:::+)([^\n`]*)\n(.*?)^\1\2 *$", re.MULTILINE | re.DOTALL)
MODULES = ("skspo", *(f"skspo.{name}" for name in ("calibration", "datasets", "solvers", "plotting", "boosting")))
#: what stands for mathematics in plain text: norms, powers, inequalities, roots, sums, w*(c)
ASCII = re.compile(r"\|[^|\s][^|\n]*\||[<>]=|\w\^|\bsqrt\(|\bw\*\(|\b(sum|max|min)_\w|\bE\[|\^T\b|\bc_hat\b")


def is_formula(text):
    """Whether something in code font is mathematics: no Python, no command, or arithmetic of one-letter names."""
    if re.search(r"\^|\|\w+\||(^| )(sum|max|min) (over|[a-z] )", text):
        return True
    try:
        tree = ast.parse(text.strip())
    except SyntaxError:
        # Two names side by side are a product, unless they are words of a command or a list of arguments.
        parts = re.split(r"\s+[-+=<>*/]+\s+", text.strip())
        return '"' not in text and len(parts) > 1 and any(re.search(r"\b[\w']+ [\w']+\b", part) for part in parts)
    arithmetic = [node for node in ast.walk(tree) if isinstance(node, (ast.BinOp, ast.Compare))]
    names = [node.id for node in ast.walk(tree) if isinstance(node, ast.Name)]
    return bool(arithmetic) and bool(names) and all(len(name) == 1 for name in names)


def test_formulas_are_recognized():
    for text in ("2 c_hat - c", "u = M z", "V = 2 C_hat - C", "d * p", "|x|", "r^2", "sum w log w <= threshold"):
        assert is_formula(text), text
    for text in ("alpha > 0", "fit(X, C)", "pip install skspo[torch]", "--only whole --tol 1e-3", "C[:, 0]", "-inf"):
        assert not is_formula(text), text
    for text in ("modelSense = EPO.MAXIMIZE", 'region_params={"b_ub": ...}', "lb <= A @ w <= ub", "shared=True, tol=1"):
        assert not is_formula(text), text


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_no_formula_in_code_font_on_pages(path):
    text = path.read_text()
    found = [code for code in re.findall(r"`([^`\n]+)`", FENCE.sub("", text)) if is_formula(code)]
    for match in FENCE.finditer(text):
        if match[3].strip() in ("", "text"):
            found += [line for line in match[4].splitlines() if ASCII.search(line)]
    assert found == []


def public_docstrings():
    """Docstrings that the site shows, by name; those of regions as the extension of the site selects them."""
    sys.path.insert(0, str(DOCS / "_ext"))
    try:
        from region_pages import SHOWN
    finally:
        sys.path.pop(0)
    found = {}
    for module in map(importlib.import_module, MODULES):
        for name in module.__all__:
            value = getattr(module, name)
            if not (inspect.isclass(value) or inspect.isfunction(value)):
                continue
            found[f"{module.__name__}.{name}"] = value.__doc__
            for key, member in inspect.getmembers_static(value) if inspect.isclass(value) else ():
                function = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
                home = str(getattr(function, "__module__", ""))
                if key.startswith("_") or not home.startswith("skspo"):
                    continue
                if home.startswith("skspo.regions") and issubclass(value, module.__dict__.get("Region", ())):
                    if key not in SHOWN:
                        continue
                found[f"{module.__name__}.{name}.{key}"] = function.__doc__
    return {name: inspect.cleandoc(text) for name, text in found.items() if text}


DOCSTRINGS = public_docstrings()


def prose(text):
    """A docstring without its examples, mathematics and literals, and the literals."""
    lines, skip = [], None
    for line in text.splitlines():
        depth = len(line) - len(line.lstrip())
        if skip is not None and line.strip() and depth <= skip:
            skip = None
        if line.lstrip().startswith((".. math::", ".. [")):
            skip = depth
        if re.match(r"Examples$|References$", line):
            break
        if skip is None and not re.match(r"^\s*\*{0,2}\w+(, \*{0,2}\w+)*( : .*)?$", line):
            lines.append(line)
    plain = re.sub(r":[\w:]+:`[^`]*`", "", "\n".join(lines))
    return re.sub(r"``.*?``", "", plain), re.findall(r"``(.*?)``", plain)


def test_no_formula_in_plain_text_of_docstrings():
    assert len(DOCSTRINGS) > 300
    found = []
    for name, text in DOCSTRINGS.items():
        plain, literals = prose(text)
        found += [f"{name}: {match[0]}" for match in ASCII.finditer(plain)]
        found += [f"{name}: {code}" for code in literals if is_formula(code)]
    assert found == []


def test_latex_of_docstrings_can_be_converted():
    """Every formula becomes MathML, as when the site is built."""
    converter = pytest.importorskip("docutils.utils.math.latex2mathml")
    formulas = 0
    for name, text in DOCSTRINGS.items():
        blocks = re.findall(r"\.\. math:: ((?:.+\n?)+)", text)
        for formula in [*re.findall(r":math:`([^`]*)`", text), *blocks]:
            formulas += 1
            assert "<math" in converter.tex2mathml(" ".join(formula.split())), name
    assert formulas > 100
