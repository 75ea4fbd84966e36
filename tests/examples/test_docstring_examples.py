"""Every function of the reference has an example, and every example says what robokit answers."""

from __future__ import annotations

import doctest
import importlib
import importlib.util
import inspect
import pkgutil
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import robokit as rk

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "docs" / "_ext"))

import from_source  # noqa: E402  (the folder above must be on the path first)

OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
ELSEWHERE = ("casadi", "jax", "mujoco", "pinocchio", "pydrake", "torch", "xacro", "yourdfpy")
"""Packages that users install for one function; their examples run where the package is."""

SLOW = re.compile(r"rk\.(simulate|rollout|sweep|excitation)\(|draw_sparsity\(|sparsity_figure\(")
BROWSER = re.compile(r"write_(film|picture)\(")


def documented() -> dict[str, Any]:
    """What the reference documents, by its name there."""
    text = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "docs" / "api").glob("*.rst"))
    names = re.findall(r"^\.\. auto(?:function|class):: ([\w.]+)$", text, re.M)
    names += [f"robokit.{n}" for chapter in from_source.chapters() for _, n in from_source.public(chapter)]
    for module in re.findall(r"^\.\. automodule:: ([\w.]+)$", text, re.M):
        names += [f"{module}.{name}" for name in getattr(importlib.import_module(module), "__all__", ())]
    return {name: pkgutil.resolve_name(name) for name in sorted(set(names))}


def examples() -> dict[str, str]:
    """Docstrings with an example, by name: of functions, classes, and their methods."""
    found = {}
    for name, thing in documented().items():
        texts = {name: thing.__doc__}
        if inspect.isclass(thing):
            for each in thing.__mro__:
                if each.__module__.startswith("robokit"):
                    texts |= {
                        f"{name}.{method}": value.__doc__
                        for method, value in vars(each).items()
                        if inspect.isfunction(value) and f"{name}.{method}" not in texts
                    }
        found |= {key: inspect.cleandoc(text) for key, text in texts.items() if text and ">>> " in text}
    return {name: text for text, name in {text: name for name, text in found.items()}.items()}


def imported(text: str) -> list[str]:
    """Packages of others that an example or the function in it needs."""
    words = set(re.findall(r"\b\w+\b", "\n".join(re.findall(r"^ *(?:>>>|\.\.\.) (.*)", text, re.M))))
    words |= {word.removeprefix("to_").removeprefix("expand_") for word in words}
    return [name for name in ELSEWHERE if name in words]


def case(name: str, text: str) -> Any:
    """A parameter of the test, marked by what it takes to run it."""
    marks = []
    if imported(text):
        marks = [pytest.mark.parity]
    elif BROWSER.search(text):
        marks = [pytest.mark.browser]
    elif SLOW.search(text):
        marks = [pytest.mark.slow]
    return pytest.param(name, text, marks=marks, id=name.removeprefix("robokit."))


def test_every_function_of_the_reference_has_an_example():
    functions = {name for name, thing in documented().items() if inspect.isfunction(thing)}
    assert len(functions) > 80
    assert not functions - examples().keys()


@pytest.mark.parametrize(("name", "text"), [case(*each) for each in examples().items()])
def test_an_example_says_what_is_answered(name, text, tmp_path, monkeypatch):
    missing = [package for package in imported(text) if importlib.util.find_spec(package) is None]
    if missing:
        pytest.skip(f"needs {missing[0]}")
    monkeypatch.chdir(tmp_path)
    if not SLOW.search(text):
        monkeypatch.setenv("ROBOKIT_ENGINE", "python")  # the same numbers, and nothing to compile
    parsed = doctest.DocTestParser().get_doctest(text, {"np": np, "rk": rk}, name, name, 0)
    assert parsed.examples[-1].want, "it ends with an answer"
    said: list[str] = []
    doctest.DocTestRunner(optionflags=OPTIONS).run(parsed, out=said.append)
    assert not said, "".join(said)
