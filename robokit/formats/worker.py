"""What a child of :mod:`robokit.formats.other_programs` does: it calls functions that use other programs."""

from __future__ import annotations

import importlib
from typing import Any


def answer(question: tuple[str, str, tuple[Any, ...]]) -> tuple[str, Any]:
    """Call a function.

    Args:
        question: module, name of the function, its arguments.

    Returns:
        ("done", what it returns), or the name of the class and the message of robokit's error.
    """
    from robokit.errors import MissingDependency, RobokitError

    module, function, arguments = question
    try:
        return "done", getattr(importlib.import_module(module), function)(*arguments)
    except MissingDependency as error:
        return "MissingDependency", str(error)
    except RobokitError as error:
        return "RobokitError", str(error)
