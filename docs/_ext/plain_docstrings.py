"""Docstrings are plain text with a few roles; this escapes them for reStructuredText.

Outside of literals, roles, directives and doctests, ``|`` is not a substitution, and ``coef_`` is an attribute and not
a link.  Two more repairs of what autodoc finds are at the end.
"""

import inspect
import re
from typing import Any

PROTECTED = re.compile(r"(``.*?``|:[\w:]+:`[^`]*`|`[^`]*`_?)")
NAMES = re.compile(r"^\s*\*{0,2}\w+(, \*{0,2}\w+)*( : |$)")  # what numpydoc reads as names of parameters


def plain(lines: list[str]) -> list[str]:
    """Lines of a docstring with all characters escaped that are not markup."""
    result: list[str] = []
    blank, skip, doctest = True, None, False
    for line in lines:
        if not line.strip():
            blank = True
            result.append(line)
            continue
        depth = len(line) - len(line.lstrip())
        if skip is not None and (blank if doctest else depth <= skip):
            skip = None
        if skip is None:
            if line.lstrip().startswith(">>>"):
                skip, doctest = depth, True  # until the next blank line
            elif line.lstrip().startswith(".. "):
                skip, doctest = depth, False  # a directive, with the lines that are indented further
        result.append(escaped(line) if skip is None else line)
        blank = False
    return result


def escaped(line: str) -> str:
    """One line."""
    names = NAMES.match(line)
    start = names.end() if names else 0
    parts = PROTECTED.split(line[start:])
    for k in range(0, len(parts), 2):
        parts[k] = re.sub(r"(?<=\w)_(?!\w)", r"\\_", parts[k].replace("|", r"\|"))
    return line[:start] + "".join(parts)


def process(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Before numpydoc."""
    lines[:] = plain(lines)


def skip(app: Any, what: str, name: str, obj: Any, skipped: bool, options: Any) -> bool | None:
    """Omit fields of named tuples without their own documentation: the class describes them."""
    return True if (getattr(obj, "__doc__", None) or "").startswith("Alias for field number") else None


def signature(app: Any, what: str, name: str, obj: Any, options: Any, text: str | None, result: str | None) -> Any:
    """Classes whose base is not installed (PyTorch) still have their own constructor."""
    if what == "class" and text == "(*args, **kwargs)" and "__init__" in vars(obj):
        own = inspect.signature(obj.__init__)
        plain_ones = [p.replace(annotation=p.empty) for p in list(own.parameters.values())[1:]]
        return str(inspect.Signature(plain_ones)), result
    return None


def setup(app: Any) -> dict[str, bool]:
    """Sphinx calls this."""
    app.connect("autodoc-process-docstring", process, priority=100)
    app.connect("autodoc-skip-member", skip)
    app.connect("autodoc-process-signature", signature)
    return {"parallel_read_safe": True}
