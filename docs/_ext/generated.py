"""Directives whose text comes from the code itself, so that it cannot fall behind.

`.. diagnostics:: error` has the importer's codes of one severity; `.. joint-table::` the joint
table; `.. example:: 02_inverse_dynamics` an example's text, then its code; `.. command:: info arm` runs
`robokit info arm` and shows what it says; `.. cost-table::` counts the operations of the algorithms on
robokit's own robots; `.. checked-examples::` counts the findings in public robots; `.. picture:: fall.png` an
image of _static if it is there; `.. changelog::` CHANGELOG.md.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import re
import shlex
import sys
import tempfile
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar
from unittest import mock

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

logger = logging.getLogger(__name__)
ROOT = Path(__file__).resolve().parents[2]
PLACE = re.compile(re.escape(str(ROOT)) + "/?")


class Generated(SphinxDirective):
    """A directive whose content is reST that :meth:`rest` writes."""

    has_content = False
    final_argument_whitespace = True

    def rest(self) -> Iterable[str]:
        """The lines."""
        raise NotImplementedError

    def run(self) -> list[nodes.Node]:
        """Called by docutils."""
        lines = [line for text in self.rest() for line in text.split("\n")]
        node = nodes.Element()
        node.document = self.state.document
        self.state.nested_parse(StringList(lines, source=self.name), self.content_offset, node)
        return node.children

    def reads(self, path: Path) -> Path:
        """Note that the page depends on a file."""
        self.env.note_dependency(str(path))
        return path


def code_block(language: str, text: str) -> list[str]:
    """A literal block."""
    return [f".. code-block:: {language}", "", *("   " + line for line in text.rstrip().split("\n")), ""]


def table(head: Iterable[str], rows: Iterable[Iterable[str]], widths: str = "auto") -> list[str]:
    """A list-table."""
    lines = [".. list-table::", "   :header-rows: 1", f"   :widths: {widths}", ""]
    for row in [head, *rows]:
        for k, cell in enumerate(row):
            lines.append(f"   {'*' if k == 0 else ' '} - {cell}")
    return [*lines, ""]


class Diagnostics(Generated):
    """The importer's codes of one severity: for each its meaning, an example and the fix."""

    required_arguments = 1

    def rest(self) -> list[str]:
        """One entry a code; the examples are the tests' and are judged here and now."""
        from robokit.urdf.findings import CODES

        self.reads(ROOT / "robokit" / "urdf" / "findings.py")
        self.reads(CASES / "urdf_cases.py")
        lines = []
        for code, row in CODES.items():
            if row.severity != self.arguments[0]:
                continue
            lines += [f".. _diagnostic-{code}:", "", f".. rubric:: ``{code}``", ""]
            lines += [f"{sentence(plain(row.meaning))}", "", *example(code)]
            if row.fix:
                lines += [f"*Fix:* {plain(row.fix)}", ""]
        return lines


class CheckedExamples(Generated):
    """What is found in the files of example-robot-data, from the table that the tests compare."""

    def rest(self) -> list[str]:
        """A sentence and the table."""
        from robokit.urdf.findings import CODES

        path = self.reads(ROOT / "tests" / "parity" / "check_examples.json")
        frozen = json.loads(path.read_text(encoding="utf-8"))
        files = frozen["files"].values()
        rows = []
        for code, row in CODES.items():
            counts = [found[code] for found in files if code in found]
            if counts:
                rows.append([row.severity, f"``{code}``", str(sum(counts)), str(len(counts))])
        errors = {code for code, row in CODES.items() if row.severity == "error"}
        refused = sum(bool(errors & found.keys()) for found in files)
        clean = sum(not found for found in files)
        said = f"{len(files)} files of {frozen['of']}; {clean} have no finding, {refused} cannot be loaded."
        return [said, "", *table(("severity", "code", "findings", "files"), rows)]


CASES = ROOT / "tests" / "urdf"


def example(code: str) -> list[str]:
    """The lines of a file that get a code, what is said about them, and the lines that do not get it."""
    from robokit.urdf import check_urdf

    if str(CASES) not in sys.path:
        sys.path.append(str(CASES))
    import urdf_cases

    good, line = "", 0
    options: dict[str, Any] = {"plausible": True}
    if code in urdf_cases.CASES:
        bad, good, line, _ = urdf_cases.CASES[code]
    elif code in urdf_cases.MORE:
        bad, options = urdf_cases.MORE[code]
    elif code in urdf_cases.ON_DISK:
        words, make = urdf_cases.ON_DISK[code]
        with tempfile.TemporaryDirectory() as folder:
            findings = check_urdf(make(Path(folder)), plausible=True, meshes=True)[1]
        (found,) = (d for d in findings if d.code == code)
        return [f"*Example:* {plain(words)}.", "", f"*Message:* ``{found.element}: {found.message}``", ""]
    else:
        return [f"*Example:* {plain(urdf_cases.IN_WORDS[code])}.", ""]
    (found,) = (d for d in check_urdf(bad, **options)[1] if d.code == code)
    said = [f"*Message:* ``{found.element}: {found.message}``", ""]
    if isinstance(bad, bytes):
        return [f"*Example:* a file that begins with the bytes ``{str(bad[:20])[1:]}``.", "", *said]
    before, after = bad.split("\n"), good.split("\n")
    odd = [text for k, text in enumerate(before, 1) if text not in after or k == (line or found.line)]
    right = [text for text in after if text not in before]
    lines = ["*Example:*", "", *code_block("xml", laid_out(odd)), *said]
    if good and right:
        lines += ["*Corrected:*", "", *code_block("xml", laid_out(right))]
    return lines


def sentence(text: str) -> str:
    """A capital letter in front and a full stop behind."""
    return f"{text[:1].upper()}{text[1:]}."


def laid_out(lines: Iterable[str]) -> str:
    """One element a line, indented by how deep it lies."""
    out, depth = [], 0
    for line in lines:
        for part in line.replace("><", ">\n<").split("\n"):
            closes = part.startswith("</")
            depth = max(0, depth - closes)
            out.append("  " * depth + part)
            opens = re.match(r"<[\w:]+(\s[^<]*)?(?<!/)>", part)
            depth += bool(opens) and "</" not in part
    return "\n".join(out)


CODE = re.compile(
    r"(?:<[a-z_]+[^<>]*>)+(?:\w+</[a-z_]+>)?|(?:\w+:)?\w+=(?:\"[^\"]*\"|'[^']*'|\.\.\.|\[[^]]*\])"
    r"|xacro in\.xacro > \S+|\w+\.\w+_\w+|--[a-z-]+(?: close| apply)?|NAME:=VALUE"
)


def plain(text: str) -> str:
    """Text without reST's special characters; tags, options and names as code."""
    return CODE.sub(lambda found: f"``{found[0]}``", text)


class SweepParameters(Generated):
    """The parameters of a sweep."""

    def rest(self) -> list[str]:
        """A table."""
        from robokit.sweeps import sweep_parameters

        self.reads(ROOT / "robokit" / "sweeps" / "parameters.py")
        rows = []
        for name, row in sweep_parameters.items():
            of = f":{row.of.upper()}" if row.needs else f"[:{row.of.upper()}]" if row.of else ""
            rows.append([f"``{name}{of}``", row.unit.replace("|", "or") or "1", row.about])
        return table(("name", "unit", "what it is"), rows, "28 14 58")


class JointTable(Generated):
    """The joint table, from the table itself."""

    def rest(self) -> list[str]:
        """Kind, nq, nv and the columns of S for the z axis."""
        from robokit.model.joints import JOINT_TABLE
        from robokit.spatial import Vector3

        self.reads(ROOT / "robokit" / "model" / "joints.py")
        rows = []
        for kind in JOINT_TABLE.values():
            columns = kind.columns(Vector3(0.0, 0.0, 1.0), 0.5)
            shown = " ".join("[" + " ".join(f"{x:g}" for x in column) + "]" for column in columns)
            if kind.nv == 6:
                shown = "the 6 x 6 identity"
            neutral = " ".join(f"{x:g}" for x in kind.neutral) or "–"
            rows.append((f"``{kind.name}``", str(kind.nq), str(kind.nv), neutral, shown or "–"))
        return table(("kind", "nq", "nv", "neutral q", "columns of S, axis z (pitch 0.5)"), rows)


class Example(Generated):
    """An example: its docstring as a page of the manual, then its code."""

    required_arguments = 1

    def rest(self) -> list[str]:
        """The text."""
        path = self.reads(ROOT / "examples" / f"{self.arguments[0]}.py")
        source = path.read_text(encoding="utf-8")
        doc = ast.get_docstring(ast.parse(source)) or ""
        code = source.split('"""', 2)[2].strip()
        lines = []
        for paragraph in doc.split("\n\n")[1:]:
            if paragraph.startswith("    "):
                lines += code_block("python", "\n".join(line[4:] for line in paragraph.split("\n")))
            else:
                lines += [as_rest(paragraph), ""]
        return [*lines, f"``examples/{path.name}``:", "", *code_block("python", code)]


def as_rest(paragraph: str) -> str:
    """A docstring's paragraph: calls and attributes of robokit as code, characters escaped."""
    paragraph = re.sub(r"`([^`]+)`", r"``\1``", paragraph)
    marked = re.sub(r"(?<![`\w])((?:rk|robot)\.\w+(?:\([^()]*\)|\(\"\w+\"\)\.\w+)?)", r"``\1``", paragraph)
    return re.sub(r"\|", r"\\|", marked)


class Command(Generated):
    """What a robokit command says, from running it in an empty folder."""

    required_arguments = 1
    option_spec: ClassVar[dict[str, Any]] = {}

    def rest(self) -> list[str]:
        """The command line and its output, folders of this machine left out."""
        words = shlex.split(self.arguments[0])
        said = run(words)
        return code_block("console", f"$ robokit {self.arguments[0]}\n{said}")


def run(words: list[str]) -> str:
    """Output of `robokit words...`, in this process; its examples stand in the folder it runs in."""
    from robokit.cli import main

    said = io.StringIO()
    with contextlib.ExitStack() as there:
        folder = Path(there.enter_context(tempfile.TemporaryDirectory()))
        for path in (ROOT / "docs" / "_ext").glob("*/*.urdf"):
            (folder / path.name).write_bytes(path.read_bytes())
        there.enter_context(contextlib.chdir(folder))
        there.enter_context(mock.patch.dict(os.environ, COLUMNS="88", NO_COLOR="1"))
        there.enter_context(warnings.catch_warnings())  # the command shows them in its own way
        there.enter_context(contextlib.redirect_stdout(said))
        there.enter_context(contextlib.redirect_stderr(said))
        try:
            status = main(words)
        except SystemExit as ended:  # after --help
            status = ended.code
    output = said.getvalue()
    if status not in (0, 1) or "internal error" in output:
        logger.warning("robokit %s ended with %s:\n%s", shlex.join(words), status, output)
    return PLACE.sub("", output)


class CostTable(Generated):
    """Operations of the algorithms on robokit's own robots."""

    ROBOTS = (
        ("double_pendulum", "fixed"),
        ("arm", "fixed"),
        ("quadruped", "floating"),
        ("humanoid", "floating"),
    )

    def rest(self) -> list[str]:
        """Two tables: flops by algorithm and robot; the factorisation beside its formulas."""
        import robokit as rk

        for path in (ROOT / "robokit").rglob("*.py"):
            self.reads(path)
        costs = [
            rk.load_urdf(self.reads(ROOT / "robots" / f"{r}.urdf"), base=b).cost() for r, b in self.ROBOTS
        ]
        head = [f"{cost.robot.replace('_', ' ')}, {cost.base}" for cost in costs]
        rows = [
            (f"``{name}``", costs[0][name].growth, *(counted(cost[name]) for cost in costs))
            for name in costs[0]
        ]
        sizes = [
            ("bodies; n; d", "", *(f"{cost.nbodies}; {cost.n}; {cost.depth}" for cost in costs)),
            ("ltdl by formula, mul + add + div", "", *(formula(cost["ltdl"]) for cost in costs)),
            ("ltdl_solve by formula", "", *(formula(cost["ltdl_solve"]) for cost in costs)),
            ("ltdl as counted", "", *(shares(cost["ltdl"]) for cost in costs)),
            ("ltdl_solve as counted", "", *(shares(cost["ltdl_solve"]) for cost in costs)),
            ("a dense factorisation, multiply-adds", "", *(f"{cost.dense[0]:,}" for cost in costs)),
        ]
        return [
            *table(("flops of", "growth", *head), rows),
            *table(("", *head), [(row[0], *row[2:]) for row in sizes]),
        ]


def counted(row: Any) -> str:
    """Flops, and pairs of sine and cosine; a dash where the robot has no such answer."""
    if row.flops is None:
        return "–"
    return f"{row.flops:,}" + (f" + {row.sincos} sc" if row.sincos else "")


def formula(row: Any) -> str:
    """Multiplications, additions and divisions that the formulas give."""
    return " + ".join(f"{row.formula[name]:,}" for name in ("mul", "add", "div"))


def shares(row: Any) -> str:
    """The same as counted."""
    return f"{row.mul:,} + {row.add:,} + {row.div:,}"


class Picture(Generated):
    """An image in _static, left out while it is not there."""

    required_arguments = 1
    option_spec: ClassVar[dict[str, Any]] = {"alt": str}

    def rest(self) -> list[str]:
        """An image directive, or nothing."""
        if not (ROOT / "docs" / "_static" / self.arguments[0]).exists():
            return []
        return [f".. image:: /_static/{self.arguments[0]}", f"   :alt: {self.options.get('alt', '')}", ""]


class Changelog(Generated):
    """CHANGELOG.md, whose Markdown is headings, lists, links and code only."""

    def rest(self) -> Iterable[str]:
        """The text as reST."""
        for line in self.reads(ROOT / "CHANGELOG.md").read_text(encoding="utf-8").split("\n"):
            if line.startswith("# "):
                continue
            heading = re.match(r"#+ (.*)", line)
            if heading:
                yield from ("", f".. rubric:: {heading[1].replace('[', '').replace(']', '')}", "")
            else:
                line = re.sub(r"`([^`]+)`", r"``\1``", line)
                yield re.sub(r"(?<!`)\[([^\]]+)\]\((http[^)]+)\)", r"`\1 <\2>`__", line)


def before_napoleon(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Prepare a docstring for napoleon.

    Indented paragraphs of a module are tables and drawings: keep them as they are. Attributes that share a
    line get one each. The text of a property or attribute is text, not "type: description".
    """
    if what == "module":
        text = re.sub(r"\n\n(?= {4,}\S)", "\n\n.. code-block:: text\n\n", "\n".join(lines))
        lines[:] = text.split("\n")
    elif what == "class" and "Attributes:" in lines:
        start = lines.index("Attributes:") + 1
        lines[start:] = [one for line in lines[start:] for one in separate(line)]
    elif what in ("property", "attribute"):
        PROPERTIES[name] = list(lines)


def after_napoleon(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Give a property its text back."""
    if name in PROPERTIES:
        lines[:] = PROPERTIES.pop(name)


PROPERTIES: dict[str, list[str]] = {}


def separate(line: str) -> list[str]:
    """`a, b: text` and `a: text; b: text` as lines of their own."""
    several = re.fullmatch(r"( +)(\w+(?:, \w+)+): (.*)", line)
    if several:
        return [f"{several[1]}{one}: {several[3]}" for one in several[2].split(", ")]
    parts = re.fullmatch(r"( +)(\w+: [^;]+)((?:; \w+: [^;]+)+)", line)
    if parts:
        return [f"{parts[1]}{one}" for one in (parts[2] + parts[3]).split("; ")]
    return [line]


def breakable_names(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Long names of tests may break after an underscore."""
    context["body"] = re.sub(
        r'(?<=<span class="pre">)test_\w+',
        lambda name: name[0].replace("_", "_<wbr>"),
        context.get("body", ""),
    )


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("html-page-context", breakable_names)
    app.connect("autodoc-process-docstring", before_napoleon, priority=400)
    app.connect("autodoc-process-docstring", after_napoleon, priority=600)
    app.add_directive("diagnostics", Diagnostics)
    app.add_directive("joint-table", JointTable)
    app.add_directive("sweep-parameters", SweepParameters)
    app.add_directive("example", Example)
    app.add_directive("command", Command)
    app.add_directive("checked-examples", CheckedExamples)
    app.add_directive("cost-table", CostTable)
    app.add_directive("picture", Picture)
    app.add_directive("changelog", Changelog)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
