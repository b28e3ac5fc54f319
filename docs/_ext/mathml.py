"""Formulas as MathML, made from LaTeX when the site is built: reading it needs no network and no script."""

from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util import logging

logger = logging.getLogger(__name__)


def convert(node: nodes.Element, block: bool) -> str:
    """MathML of a formula; one that cannot be converted is a warning, and so an error of the build."""
    try:
        return tex2mathml(node.astext(), as_block=block)
    except MathError as error:
        logger.warning("formula %r: %s", node.astext(), error, location=node)
        return f"<code>{node.astext()}</code>"


def inline(self: Any, node: nodes.math) -> None:
    """Formula in a sentence."""
    self.body.append(convert(node, block=False))
    raise nodes.SkipNode


def block(self: Any, node: nodes.math_block) -> None:
    """Formula on lines of its own."""
    self.body.append(f'<div class="math">{convert(node, block=True)}</div>\n')
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, bool]:
    """Sphinx calls this."""
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True}
