"""What the manual lists is read from the files themselves: the book's index, and the chapters of the API.

Nothing here needs Sphinx, so that the tests read the same lists.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ALGORITHMS = ROOT / "robokit" / "algorithms"
DYNAMICS = ROOT / "robokit" / "dynamics"
BOOK = ROOT / "docs" / "algorithms.rst"
SENTENCE = re.compile(r"\.\s+(?=[A-Z`\"])")
EQUATION = re.compile(r" \((?:[^()=]|\([^()]*\))*=(?:[^()]|\([^()]*\))*\)")


@dataclass(frozen=True)
class Entry:
    """An algorithm's row in the index of the book.

    Attributes:
        name: of its file.
        title: the first sentence of the file.
        source: what it says after "Source:": its first sentence, without equations in brackets.
        cost: what it says after "Cost:", up to the first comma.
        text: its whole docstring.
    """

    name: str
    title: str
    source: str
    cost: str
    text: str


def index() -> list[Entry]:
    """Every algorithm: in the order of the sections written by hand, then those that have none."""
    shown = sections()
    names = [path.stem for path in sorted(ALGORITHMS.glob("*.py")) if path.stem != "__init__"]
    return [entry(name) for name in [*shown, *(name for name in names if name not in shown)]]


def sections() -> list[str]:
    """The algorithms that have a section of their own in docs/algorithms.rst."""
    text = BOOK.read_text(encoding="utf-8")
    return re.findall(r"^\.\. literalinclude:: \.\./robokit/algorithms/(\w+)\.py$", text, re.M)


def entry(name: str) -> Entry:
    """What an algorithm's file says about itself.

    Raises:
        ValueError: it names no source or no cost.
    """
    text = ast.get_docstring(ast.parse((ALGORITHMS / f"{name}.py").read_text(encoding="utf-8"))) or ""
    said = {}
    for word in ("Source", "Cost"):
        found = re.search(rf"^{word}: (.*?)(?=\n\n|\n[A-Z]\w+: |\Z)", text, re.M | re.S)
        if found is None:
            raise ValueError(f"robokit/algorithms/{name}.py: its docstring has no line '{word}: ...'")
        said[word] = first_sentence(found[1])
    title, source = first_sentence(text.split("\n\n")[0]), EQUATION.sub("", said["Source"])
    return Entry(name, title, source, said["Cost"].partition(",")[0], text)


def first_sentence(text: str) -> str:
    """Up to the first full stop before a capital, without the stop."""
    return SENTENCE.split(" ".join(text.split()))[0].rstrip(".")


def chapters() -> list[str]:
    """The modules of robokit.dynamics that declare public names."""
    found = (path for path in sorted(DYNAMICS.glob("*.py")) if path.stem != "__init__")
    return [path.stem for path in found if public(path.stem)]


def public(chapter: str) -> list[tuple[str, str]]:
    """The names of a chapter's ``__all__`` as ("function" or "class", name), in the order of the file."""
    body = ast.parse((DYNAMICS / f"{chapter}.py").read_text(encoding="utf-8")).body
    names: set[str] = set()
    for node in body:
        if isinstance(node, ast.Assign) and [ast.unparse(t) for t in node.targets] == ["__all__"]:
            names = set(ast.literal_eval(node.value))
    kinds = {ast.FunctionDef: "function", ast.ClassDef: "class"}
    found = [(kinds[type(n)], n.name) for n in body if getattr(n, "name", "") in names]  # type: ignore[attr-defined,index]
    return list(dict.fromkeys(found))  # one that is overloaded stands there several times
