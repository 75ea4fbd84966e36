"""Directives that read robokit's files, so that a new algorithm or module needs no edit of the manual.

`.. house:: engine` draws the floors of a folder, or without a name those of the package; `.. chapter::
constrained` documents the public names of a module of robokit.dynamics, or those of them that follow it;
`.. algorithm-index::` lists the files of robokit/algorithms; `.. causes::` lists the referee's causes,
and `.. other-algorithms::` has a section for those algorithms that have none written by hand.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable

import from_source
import house_picture
from docutils import nodes
from docutils.statemachine import StringList
from generated import ROOT, Generated, table
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective
from sphinx.util.nodes import nested_parse_with_titles


class House(SphinxDirective):
    """The floors of robokit or of a folder of it, as a picture."""

    optional_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Called by docutils."""
        for path in [ROOT / "tests" / "house.py", *(ROOT / "robokit").rglob("*.py")]:
            self.env.note_dependency(str(path))
        folder = self.arguments[0] if self.arguments else ""
        return [nodes.raw("", house_picture.draw(folder), format="html")]


class Chapter(Generated):
    """The public names of a chapter of the dynamics, or those of them that are named after it."""

    required_arguments = 1
    optional_arguments = 1
    final_argument_whitespace = True

    def rest(self) -> Iterable[str]:
        """A directive of autodoc for each."""
        chapter, *rest = self.arguments
        self.reads(from_source.DYNAMICS / f"{chapter}.py")
        kinds = {name: kind for kind, name in from_source.public(chapter)}
        for name in " ".join(rest).split() or kinds:
            yield from (f".. auto{kinds[name]}:: robokit.{name}", "")


class AlgorithmIndex(Generated):
    """A row an algorithm, from the first lines of its file."""

    def rest(self) -> list[str]:
        """The table."""
        rows = []
        for entry in from_source.index():
            self.reads(from_source.ALGORITHMS / f"{entry.name}.py")
            cells = (escaped(text) for text in (entry.title, entry.source, entry.cost))
            rows.append([f":ref:`{entry.name} <{entry.name}>`", *cells])
        return table(("file", "what it computes", "source", "cost"), rows, "19 41 22 18")


class OtherAlgorithms(SphinxDirective):
    """A section for each algorithm that has none written by hand: what its file says, and the file."""

    def run(self) -> list[nodes.Node]:
        """Called by docutils."""
        lines: list[str] = []
        for entry in from_source.index():
            if entry.name in from_source.sections():
                continue
            title = entry.title.partition(":")[0]
            lines += [f".. _{entry.name}:", "", title, "-" * len(title), ""]
            lines += [f".. literalinclude:: ../robokit/algorithms/{entry.name}.py", ""]
        node = nodes.section()
        node.document = self.state.document
        nested_parse_with_titles(self.state, StringList(lines, source=self.name), node, self.content_offset)
        return node.children


class Causes(Generated):
    """The referee's list of causes: code, meaning, what to do, and where it was reported."""

    def rest(self) -> Iterable[str]:
        """A row for each."""
        sys.path[:0] = [str(ROOT)]
        from robokit.parity import CAUSES

        self.reads(ROOT / "robokit" / "parity" / "verdict.py")
        rows = []
        for cause in CAUSES.values():
            where = []
            for thread in cause.evidence:
                place, _, n = thread.partition("#")
                where.append(f"`{thread} <https://github.com/{place}/issues/{n}>`__")
            meaning = escaped(cause.meaning) + (f". Reported: {', '.join(where)}" if where else "")
            rows.append((f"``{cause.code}``", meaning, escaped(cause.fix)))
        yield from table(("cause", "what B has", "what to do"), rows)


def escaped(text: str) -> str:
    """Text without reST's special characters; exponents as in print."""
    text = text.replace("^T", "ᵀ").replace("^2", "²")
    return re.sub(r"([*_|\\])", r"\\\1", text)


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.add_directive("house", House)
    app.add_directive("causes", Causes)
    app.add_directive("chapter", Chapter)
    app.add_directive("algorithm-index", AlgorithmIndex)
    app.add_directive("other-algorithms", OtherAlgorithms)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
