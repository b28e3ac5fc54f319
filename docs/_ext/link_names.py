"""Public names in code font on the pages of the site become links to their documentation.

The pages stay plain Markdown, which can also be read without the site.
"""

import importlib
import re
from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref

PARTS = ("solvers", "datasets", "plotting", "calibration", "experiments", "boosting")
MODULES = ("skspo", *(f"skspo.{name}" for name in PARTS))
CALL = re.compile(r"^([A-Za-z_][\w.]*)(\(.*\))?$")


def public_names() -> dict[str, str]:
    """Full name by short and by full name; the first module wins."""
    names: dict[str, str] = {"skspo.torch.SPOPlusLoss": "skspo.torch.SPOPlusLoss"}
    for module in MODULES:
        for name in importlib.import_module(module).__all__:
            names.setdefault(name, f"{module}.{name}")
            names[f"{module}.{name}"] = f"{module}.{name}"
    return names


def link(app: Any, doctree: nodes.document) -> None:
    """Wrap literals that are a public name, or a call of one."""
    docname = app.env.docname
    if not str(app.env.doc2path(docname)).endswith(".md"):
        return
    names = public_names()
    for literal in list(doctree.findall(nodes.literal)):
        match = CALL.match(literal.astext())
        if not match or isinstance(literal.parent, (nodes.reference, nodes.title, pending_xref)):
            continue
        target = names.get(match[1]) or names.get(match[1].rpartition(".")[0])  # methods: to their class
        if target is None:
            continue
        xref = pending_xref(
            "", refdomain="py", reftype="obj", reftarget=target, refdoc=docname, refexplicit=True, refwarn=True
        )
        literal.replace_self(xref)
        xref += literal


def setup(app: Any) -> dict[str, bool]:
    """Sphinx calls this."""
    app.connect("doctree-read", link)
    return {"parallel_read_safe": True}
