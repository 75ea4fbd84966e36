"""Formulas as MathML, which browsers draw themselves: no script, no fonts, no network.

docutils translates the LaTeX; this file only hands it to Sphinx as a renderer named "mathml".
"""

from __future__ import annotations

from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx


def visit_math(translator: Any, node: nodes.math) -> None:
    """An inline formula."""
    translator.body.append(tex2mathml(node.astext(), as_block=False))
    raise nodes.SkipNode


def visit_displaymath(translator: Any, node: nodes.math_block) -> None:
    """A formula on lines of its own, one after each blank line."""
    translator.body.append('<div class="math">')
    for part in node.astext().split("\n\n"):
        translator.body.append(tex2mathml(part.strip(), as_block=True))
    translator.body.append("</div>\n")
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_displaymath, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
