"""What a lower floor offers and a higher one does: filled in by ``robokit/__init__.py``.

``trajectory.to_html(path)`` is asked of the simulator and done by the viewer, which stands above it;
``robot.cost()`` is asked of the model and done by the dynamics. The lower module calls the hook by its name
and imports nothing from above.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_HOOKS: dict[str, Callable[..., Any]] = {}


def provide(name: str, function: Callable[..., Any]) -> None:
    """Register the function under the name."""
    _HOOKS[name] = function


def call(name: str, *arguments: Any, **options: Any) -> Any:
    """Call the function that is registered under the name; LookupError where nothing above provides it."""
    return _HOOKS[name](*arguments, **options)
