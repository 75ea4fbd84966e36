"""Pictures and films that the pages' own code makes: `.. made:: path/first_fall.mp4`, and `.. gallery::`.

They are kept in docs/_static/made. Where the code has changed since, the build makes them again into its
output, if there is a browser; it says so and shows the kept ones where there is none (docs/made_pictures.py).
"""

from __future__ import annotations

import ast
import html
import sys
from typing import Any, ClassVar

from docutils import nodes
from generated import ROOT, Generated, as_rest, code_block
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

sys.path.append(str(ROOT / "docs"))

import made_pictures

logger = logging.getLogger(__name__)


class Made(SphinxDirective):
    """A picture or a film that is made."""

    required_arguments = 1
    option_spec: ClassVar[dict[str, Any]] = {"alt": str}

    def run(self) -> list[nodes.Node]:
        """Called by docutils."""
        (name,) = self.arguments
        if name not in made_pictures.RECIPES:
            raise self.error(f"docs/made_pictures.py has no recipe for {name!r}")
        up = "../" * self.env.docname.count("/")
        source = f"{up}_static/made/{name}"
        alt = html.escape(self.options.get("alt", ""))
        if name.endswith(".mp4"):
            text = (
                f'<video class="made" src="{source}" aria-label="{alt}" width="480" height="320" '
                'autoplay loop muted playsinline controls preload="metadata"></video>'
            )
        else:
            text = f'<img class="made" src="{source}" alt="{alt}" loading="lazy">'
        return [nodes.raw("", f"<p>{text}</p>\n", format="html")]


class Gallery(Generated):
    """Every example: what it is, what it makes, and the lines that make it."""

    def rest(self) -> list[str]:
        """A section for each."""
        lines = []
        for path in sorted((ROOT / "examples").glob("*.py")):
            source = self.reads(path).read_text(encoding="utf-8")
            doc = ast.get_docstring(ast.parse(source)) or ""
            title, about, *_ = doc.split("\n\n")
            (name,) = (n for n in made_pictures.RECIPES if n.startswith(f"gallery/{path.stem}."))
            lines += [f".. rubric:: {title.rstrip('.')}", "", as_rest(about.rstrip(":") + end(about)), ""]
            lines += [f".. made:: {name}", f"   :alt: {title}", ""]
            lines += [".. raw:: html", "", "   <details><summary>The lines that make it</summary>", ""]
            lines += code_block("python", body(source))
            lines += [".. raw:: html", "", "   </details>", ""]
            lines += [f":ref:`The whole example <{path.stem}>`", ""]
        return lines


def end(about: str) -> str:
    """A full stop after what had led to a listing."""
    return "." if about.endswith(":") else ""


def body(source: str) -> str:
    """The lines of an example between its options and its check."""
    after = source.partition("arguments = parser.parse_args()\n")[2].strip().split("\n")
    kept, skipping = [], False
    for line in after:
        if line.startswith("if not arguments.headless"):
            skipping = True
            continue
        skipping = skipping and line.startswith("    ")
        if not skipping and not line.startswith("assert "):
            kept.append(line)
    return "\n".join(kept).replace("\n\n\n", "\n\n")


def make_stale(app: Sphinx, error: Exception | None) -> None:
    """Make again what is of older code, into the output."""
    if error is not None or app.builder.format != "html":
        return
    from robokit import MissingDependency

    for name in made_pictures.stale():
        try:
            made_pictures.make(name, app.outdir / "_static" / "made")
        except MissingDependency as missing:
            logger.info("kept pictures are shown, though older than their code: %s", missing)
            return


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.add_directive("made", Made)
    app.add_directive("gallery", Gallery)
    app.connect("build-finished", make_stale)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
