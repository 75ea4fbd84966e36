"""Many cases in one test: all that fail are told at once, each in a line."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from robokit.errors import one_line, shown


def offenders(check: Callable[..., None], *cases: Iterable[Any]) -> list[str]:
    """The cases that do not pass.

    Args:
        check: a test of one case, which raises.
        cases: of each argument of the check; every combination is tried.
    """
    found = []
    for case in _product([list(each) for each in cases]):
        try:
            check(*case)
        except (Exception, pytest.fail.Exception) as error:
            found.append(
                f"{', '.join(map(shown, case))}: {one_line(f'{type(error).__name__}: {error}', 300)}"
            )
    return found


def _product(cases: list[list[Any]]) -> Iterable[tuple[Any, ...]]:
    if not cases:
        return [()]
    assert cases[0], "no cases"
    return ((first, *rest) for first in cases[0] for rest in _product(cases[1:]))
