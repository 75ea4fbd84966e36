"""Formulas as MathML, which browsers draw themselves: no script, no fonts, no network.

docutils translates the LaTeX; this file hands it to Sphinx as a renderer named "mathml".
"""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx

MATHML = "http://www.w3.org/1998/Math/MathML"
ACCENTS = ("˙", "¨", "^", "ˆ", "¯", "‾")


def mathml(tex: str, block: bool) -> str:
    """A formula as MathML."""
    ElementTree.register_namespace("", MATHML)
    formula = ElementTree.fromstring(tex2mathml(tex, as_block=block))
    for node in formula.iter(f"{{{MATHML}}}munderover"):
        # docutils puts the index of an accented letter under it, as it would for a sum.
        base, index, accent = node
        if accent.text in ACCENTS:
            accented = ElementTree.Element(f"{{{MATHML}}}mover")
            accented.extend((base, accent))
            node.tag = f"{{{MATHML}}}msub"
            node[:] = [accented, index]
    for node in formula.iter(f"{{{MATHML}}}mover"):
        # Set as accents, dots touch the letter in some browsers.
        node.set("accent", "false")
    return ElementTree.tostring(formula, encoding="unicode")


def visit_math(translator: Any, node: nodes.math) -> None:
    """An inline formula."""
    translator.body.append(mathml(node.astext(), block=False))
    raise nodes.SkipNode


def visit_displaymath(translator: Any, node: nodes.math_block) -> None:
    """Formulas on lines of their own, separated by blank lines."""
    lines = [mathml(part.strip(), block=True) for part in node.astext().split("\n\n")]
    translator.body.append(f'<div class="math">{"".join(lines)}</div>\n')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_displaymath, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
