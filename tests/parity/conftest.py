"""The table of largest errors that a parity run ends with."""

from __future__ import annotations

import pytest

ERRORS: dict[tuple[str, str, str, str], float] = {}


@pytest.fixture
def record_error():
    """Keep the largest error of (peer, robot, base, quantity)."""

    def record(peer: str, robot: str, base: str, quantity: str, value: float) -> None:
        key = (peer, robot, base, quantity)
        ERRORS[key] = max(ERRORS.get(key, 0.0), value)

    return record


def pytest_terminal_summary(terminalreporter) -> None:
    if not ERRORS:
        return
    write = terminalreporter.write_line
    terminalreporter.section("largest relative errors")
    for peer in sorted({key[0] for key in ERRORS}):
        mine = {key[1:]: value for key, value in ERRORS.items() if key[0] == peer}
        rows = sorted({key[:2] for key in mine})
        columns = list(dict.fromkeys(key[2] for key in mine))
        write(f"{peer:<28}" + "".join(f"{c:>11}" for c in columns))
        for row in rows:
            cells = (mine.get((*row, c)) for c in columns)
            write(
                f"{row[0] + ' ' + row[1]:<28}"
                + "".join(f"{'-' if x is None else f'{x:.1e}':>11}" for x in cells)
            )
        worst = [max(x for key, x in mine.items() if key[2] == c) for c in columns]
        write(f"{'all':<28}" + "".join(f"{x:>11.1e}" for x in worst))
        write("")
