"""One test of many small cases: it runs all of them, and lists every one that fails and why."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterable
from typing import Any

import pytest


def for_each(names: str, values: Iterable[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """In place of ``pytest.mark.parametrize``, for cases that take no time.

    Several of them above one test run all combinations. Fixtures are made once, for all of them; one whose
    changes would go on into the next case is refused. Marks are kept.

    Args:
        names: of the test's arguments, separated by commas.
        values: what they are in each case; tuples where there are several names.
    """
    own = [name.strip() for name in names.split(",")]

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        check, inner = getattr(test, "cases", (test, []))
        axes = [(own, [value if len(own) > 1 else (value,) for value in values]), *inner]

        def run(**fixtures: Any) -> None:
            total, wrong = 0, []
            for row in itertools.product(*(found for _, found in axes)):
                case: dict[str, Any] = {}
                for (keys, _), found in zip(axes, row, strict=True):
                    case |= zip(keys, found, strict=True)
                total += 1
                try:
                    check(**fixtures, **case)
                except (Exception, pytest.fail.Exception) as problem:
                    wrong.append(f"{_shown(case)}: {type(problem).__name__}: {problem}")
            assert total, "there are no cases"
            assert not wrong, f"{len(wrong)} of {total} cases fail\n" + "\n".join(wrong)

        run.__name__, run.__doc__, run.__module__ = check.__name__, check.__doc__, check.__module__
        known = {name for keys, _ in axes for name in keys}
        parameters = inspect.signature(check).parameters
        if "monkeypatch" in parameters:
            raise TypeError(f"{check.__name__}: take pytest.MonkeyPatch.context(), which each case undoes")
        others = [inspect.Parameter(x, inspect.Parameter.KEYWORD_ONLY) for x in parameters if x not in known]
        run.__signature__ = inspect.Signature(others)  # type: ignore[attr-defined]
        run.pytestmark = list(getattr(test, "pytestmark", ()))  # type: ignore[attr-defined]
        run.cases = check, axes  # type: ignore[attr-defined]
        return run

    return decorate


def _shown(case: dict[str, Any]) -> str:
    return ", ".join(f"{name}={repr(value)[:80]}" for name, value in case.items())
