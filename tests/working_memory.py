"""What the working memory of machine code holds before it is used. It comes with anything in it."""

from __future__ import annotations

from typing import Any

import pytest

from robokit.engine.loops.environment import Environment


def fill(monkeypatch: pytest.MonkeyPatch, real: float, whole: int) -> None:
    """Working memory that is made from now on holds these numbers, by kind."""
    own = Environment.__init__

    def filled(self: Environment, *given: Any, **more: Any) -> None:
        own(self, *given, **more)
        for x in self.memory:
            if x is not None:
                x[:] = real if x.dtype.kind == "f" else whole

    monkeypatch.setattr(Environment, "__init__", filled)
