"""The table of largest errors that a parity run ends with."""

from __future__ import annotations

import pytest

ERROR = "error"  # name of a test's property that is an error


@pytest.fixture
def record_error(record_property):
    """Keep the error of (peer, robot, base, quantity) with the test's report, for it may run elsewhere."""

    def record(peer: str, robot: str, base: str, quantity: str, value: float) -> None:
        record_property(ERROR, [peer, robot, base, quantity, float(value)])

    return record


def largest_errors(terminalreporter) -> dict[tuple[str, str, str, str], float]:
    """(peer, robot, base, quantity) -> largest error that tests have recorded."""
    errors: dict[tuple[str, str, str, str], float] = {}
    for reports in terminalreporter.stats.values():
        for name, value in (pair for report in reports for pair in getattr(report, "user_properties", ())):
            if name == ERROR:
                *key, error = value
                errors[tuple(key)] = max(errors.get(tuple(key), 0.0), error)
    return errors


def pytest_terminal_summary(terminalreporter) -> None:
    errors = largest_errors(terminalreporter)
    if not errors:
        return
    write = terminalreporter.write_line
    terminalreporter.section("largest relative errors")
    for peer in sorted({key[0] for key in errors}):
        mine = {key[1:]: value for key, value in errors.items() if key[0] == peer}
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
