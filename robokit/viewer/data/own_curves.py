"""Curves of the caller's own beside those of the page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from robokit.arguments import check_call, real_array
from robokit.dataclass_tools import short_repr
from robokit.errors import ShapeError, WrongType, shown
from robokit.sim.trajectory import Trajectory
from robokit.viewer.data.packing import packed
from robokit.viewer.data.thin_curves import kept
from robokit.viewer.payload_keys import CurveData, SeriesData

KEY = "own "
"""Begins the keys of these plots: no key of the page's own plots does."""

Values = np.ndarray | Sequence[Any] | Callable[[float, np.ndarray, np.ndarray], Any]


@dataclass(frozen=True)
class Curve:
    """Your own curve in the page of a motion: ``trajectory.to_html(path, curves={"zmp": Curve(...)})``.

    Attributes:
        values: (T,) or (T, k) numbers at the T times, or a function (t, q, v) -> number or (k,), which is
            evaluated at every recorded state. A masked array (``numpy.ma.masked_invalid``) leaves gaps.
        unit: of all values, such as "m".
        labels: of the k components; by default x, y, z for three, x, y for two, 1, 2, ... for more.
        t: increasing times of the values [s], on the clock of ``trajectory.t``; None for the recorded times.
            Values before or after the run are not shown.

    Example:
        >>> from robokit.viewer import Curve
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> run = rk.simulate(robot, [1.0, 0.0], duration=0.05)
        >>> tip = Curve(lambda t, q, v: rk.forward_kinematics(robot, q)["lower"].position, "m")
        >>> curves = {"tip": tip, "speed of the hinge": abs(run.v[:, 0])}
        >>> run.to_html("swing.html", curves=curves, walk=False).name
        'swing.html'
    """

    values: Values
    unit: str = ""
    labels: Sequence[str] = ()
    t: np.ndarray | Sequence[float] | None = None

    __repr__ = short_repr


def own_curves(trajectory: Trajectory, curves: Mapping[str, Curve | Values] | None) -> list[CurveData]:
    """The plots of a page's own curves.

    Args:
        curves: by name: a Curve, or its values.

    Raises:
        WrongType, ShapeError: what is no curve; says which one it is.
    """
    if curves is None:
        return []
    if not isinstance(curves, Mapping):
        raise WrongType("curves", curves, 'a mapping from names to arrays, such as {"zmp": zmp}')
    return [
        _plot(trajectory, name, one if isinstance(one, Curve) else Curve(one)) for name, one in curves.items()
    ]


def _plot(trajectory: Trajectory, name: str, curve: Curve) -> CurveData:
    if not isinstance(name, str) or not name.strip():
        raise WrongType("curves", name, "names that are texts")
    what = f"curves[{shown(name)}]"
    if not isinstance(curve.unit, str):
        raise WrongType(f"{what}: unit", curve.unit, 'a text, such as "m"')
    t = _times(what, trajectory, curve.t)
    y, gaps = _values(what, trajectory, curve, t)
    known = np.where(gaps, np.nan, y)
    edges = np.flatnonzero(np.any(gaps[1:] != gaps[:-1], axis=1))
    keep = kept(list(known.T), np.concatenate([edges, edges + 1]))
    series = [
        SeriesData(label, packed(column[keep]))
        for label, column in zip(_labels(what, name, curve, y.shape[1]), known.T, strict=True)
    ]
    return CurveData(KEY + name, name, curve.unit, packed(t[keep] - trajectory.t[0]), series)


def _times(what: str, trajectory: Trajectory, given: Any) -> np.ndarray:
    """Times of a curve, (T,) [s].

    Raises:
        ShapeError: they do not increase, or all lie outside of the run.
    """
    if given is None:
        return np.asarray(trajectory.t, float)
    t = real_array(f"{what}: t", given, "(T,)")
    if t.ndim != 1 or not len(t) or not np.all(np.isfinite(t)) or np.any(np.diff(t) <= 0.0):
        raise ShapeError(f"{what}: t: expected finite times that increase, (T,), got {_described(t)}")
    first, last = trajectory.t[0], trajectory.t[-1]
    if t[0] > last or t[-1] < first:
        raise ShapeError(
            f"{what}: t: the times {t[0]:g} to {t[-1]:g} s lie outside of the run, {first:g} to {last:g} s"
        )
    return t


def _values(what: str, trajectory: Trajectory, curve: Curve, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of a curve, (T, k), and where it has none, (T, k).

    Raises:
        ShapeError: they do not fit the times, or are not finite where nothing is masked.
    """
    T = len(t)
    given: Any = curve.values
    if callable(given):
        if curve.t is not None:
            raise ShapeError(
                f"{what}: t: a function is asked at the recorded states; it takes no times of its own"
            )
        check_call(what, given, ("t", "q", "v"), "a number or (k,)")
        given = _asked(what, trajectory, given)
    known = np.ma.getdata(given) if np.ma.isMaskedArray(given) else given
    y = real_array(f"{what}: values", known, "(T,) or (T, k)")
    if y.ndim not in (1, 2) or len(y) != T or y.size == 0:
        whose = "states were recorded" if curve.t is None else "times were given"
        remedy = ""
        if y.ndim == 2 and y.shape[1] == T:
            remedy = "; transpose it"
        elif y.ndim in (1, 2) and len(y) != T and curve.t is None:
            remedy = "; give times of its own as Curve(values, t=...)"
        raise ShapeError(f"{what}: expected shape ({T},) or ({T}, k), as {T} {whose}, got {y.shape}{remedy}")
    gaps = np.broadcast_to(np.ma.getmaskarray(given), y.shape).reshape(T, -1)
    y = y.reshape(T, -1)
    wrong = ~np.isfinite(y) & ~gaps
    if wrong.any():
        k, column = np.argwhere(wrong)[0]
        raise ShapeError(
            f"{what}: {wrong.sum()} of {y.size} values are not finite, the first is {y[k, column]} at "
            f"t = {t[k]:g} s; numpy.ma.masked_invalid(values) leaves gaps there"
        )
    return y, gaps


def _asked(what: str, trajectory: Trajectory, function: Callable[..., Any]) -> Any:
    """The values of a function at every recorded state."""
    rows = []
    for t, q, v in zip(trajectory.t, trajectory.q, trajectory.v, strict=True):
        try:
            row = function(float(t), q.copy(), v.copy())
        except Exception as error:
            error.add_note(f"{what}: raised by the function at t = {t:g} s")
            raise
        if not np.ma.isMaskedArray(row):
            row = real_array(f"{what}: the function's value at t = {t:g} s", row, "() or (k,)")
        if row.ndim > 1:
            raise ShapeError(f"{what}: expected a number or shape (k,) from the function, got {row.shape}")
        rows.append(row)
    if len({np.shape(row) for row in rows}) > 1:
        k = next(k for k, row in enumerate(rows) if np.shape(row) != np.shape(rows[0]))
        raise ShapeError(
            f"{what}: the function gave shape {np.shape(rows[0])} at first and {np.shape(rows[k])} "
            f"at t = {trajectory.t[k]:g} s"
        )
    return np.ma.stack(rows) if any(np.ma.isMaskedArray(row) for row in rows) else np.array(rows)


def _labels(what: str, name: str, curve: Curve, count: int) -> list[str]:
    """Names of a curve's lines.

    Raises:
        WrongType, ShapeError: not one text for each, or one twice.
    """
    given = curve.labels
    if not isinstance(given, list | tuple) or not all(isinstance(label, str) for label in given):
        raise WrongType(f"{what}: labels", given, 'a sequence of texts, such as ("x", "y")')
    if given and (len(given) != count or len(set(given)) != count):
        raise ShapeError(f"{what}: labels: expected {count} different texts, got {list(given)!r}")
    if given:
        return list(given)
    if count == 1:
        return [name]
    return list("xyz"[:count]) if count <= 3 else [str(k + 1) for k in range(count)]


def _described(t: np.ndarray) -> str:
    if t.ndim != 1 or not len(t):
        return f"shape {t.shape}"
    if not np.all(np.isfinite(t)):
        return f"{t[~np.isfinite(t)][0]}"
    k = int(np.flatnonzero(np.diff(t) <= 0.0)[0])
    return f"{t[k + 1]:g} after {t[k]:g}"
