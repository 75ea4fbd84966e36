"""What a child of :mod:`robokit.formats.other_programs` does: it calls functions that use other programs."""

from __future__ import annotations

import importlib
from typing import Any


def answer(question: tuple[str, str, tuple[Any, ...]]) -> tuple[str, Any]:
    """Call a function, (module, name, arguments): ("done", its result), or class and text of an error."""
    from robokit.errors import MissingDependency, RobokitError

    module, function, arguments = question
    try:
        return "done", getattr(importlib.import_module(module), function)(*arguments)
    except MissingDependency as error:
        return "MissingDependency", str(error)
    except RobokitError as error:
        return "RobokitError", str(error)
