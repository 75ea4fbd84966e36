"""Curves of a page: arrays as base64 text, fewer points with every peak kept, and the caller's own."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from robokit.arguments import check_call, real_array
from robokit.dataclass_tools import short_repr
from robokit.errors import ShapeError, WrongType, shown
from robokit.sim.trajectory import Trajectory
from robokit.viewer.payload_keys import CurveData, SeriesData

# ==== arrays as base64 text =======================================================================
# Arrays as base64 text, as the page's JavaScript unpacks them (``floats`` and ``bits`` in util.js,
# ``inflated`` and ``wholeNumbers`` in walk/program.js).


def base64_text(array: np.ndarray) -> str:
    """The bytes of an array in row order."""
    return base64.b64encode(np.ascontiguousarray(array).tobytes()).decode("ascii")


def packed(values: ArrayLike) -> str:
    """Numbers as little-endian float32; what is too large for that becomes infinite."""
    with np.errstate(over="ignore"):
        return base64_text(np.asarray(values).astype("<f4"))


def packed_bits(pattern: np.ndarray) -> str:
    """A boolean matrix, eight entries a byte, the first in the highest bit."""
    return base64_text(np.packbits(pattern.reshape(-1)))


def deflated(values: ArrayLike, dtype: str) -> str:
    """Numbers as deflated text, for tables that the page unpacks only when they are asked for.

    Args:
        values: the numbers.
        dtype: "<f8" or "u1".
    """
    with np.errstate(over="ignore"):
        array = np.asarray(values).astype(dtype)
    return base64.b64encode(zlib.compress(array.tobytes(), 9)).decode("ascii")


def deflated_whole(values: ArrayLike) -> str:
    """Whole numbers as deflated text, the shortest where most are near 0 or repeat.

    Args:
        values: n, between -2^31 and 2^31; stored as 2 n, or -2 n - 1 below 0, all lowest bytes first, then
            all second ones and so on.
    """
    n = np.asarray(values, dtype=np.int64).reshape(-1)
    codes = np.where(n < 0, -2 * n - 1, 2 * n).astype("<u4")
    return deflated(codes.view("u1").reshape(-1, 4).T, "u1")


# ==== fewer points, every peak kept ===============================================================
# Curves for a screen: fewer points, and every peak kept.
#
# A curve is cut into buckets of equal length, and each keeps its smallest and its largest sample. However
# long the run, its largest value is shown as it was.

BUCKETS = 500
"""Buckets of a curve: about as many as its plot has columns."""

NEGLIGIBLE = 0.01
"""Share of a line's range below which what happens between two frames is left out."""

MOST_PEAKS = 200
"""Peaks between frames that one line keeps, the largest ones; its extremes are always among them."""


def kept(
    columns: Sequence[np.ndarray], always: Sequence[int] | np.ndarray = (), buckets: int = BUCKETS
) -> np.ndarray:
    """Indices of the samples that a plot of several lines keeps.

    Args:
        columns: the lines, (T,) each; what is not finite counts as no peak.
        always: indices that are kept besides; the first and the last are.
        buckets: as many as the plot is to have.

    Returns:
        Increasing indices, at most 2 * buckets for each line and those of ``always``.
    """
    T, most = len(columns[0]), 2 * buckets
    if most >= T:
        return np.arange(T)
    width = -(-T // buckets)
    rows = -(-T // width)
    starts = width * np.arange(rows)
    found = [np.array([0, T - 1]), np.asarray(always, dtype=int)]
    for column in columns:
        for worst, pick in ((np.inf, np.argmin), (-np.inf, np.argmax)):
            filled = np.full(rows * width, worst)
            filled[:T] = np.where(np.isfinite(column), column, worst)
            found.append(np.minimum(starts + pick(filled.reshape(rows, width), axis=1), T - 1))
    return np.unique(np.concatenate(found))


def without_repeats(t: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A line without the samples that equal both their neighbours: (t, y)."""
    inner = (y[1:-1] == y[:-2]) & (y[1:-1] == y[2:])
    keep = np.concatenate([[True], ~inner, [True]])[: len(y)]
    return t[keep], y[keep]


def peaks_between(t: np.ndarray, y: np.ndarray, frames: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """What lines that are drawn from frames would miss: samples outside the range of the frames beside them.

    Args:
        t: times of the samples, increasing, (S,) [s].
        y: the lines, (S, m).
        frames: times of the frames, increasing, (T,) [s].

    Returns:
        (times, values) of the peaks of each line, in the order of time.
    """
    sound = np.isfinite(y)
    starts = np.unique(np.clip(np.searchsorted(t, frames - 1e-9), 0, max(len(t) - 1, 0)))
    if len(starts) < 2 or np.all(np.diff(starts) < 2):
        return [(t[:0], t[:0]) for _ in range(y.shape[1])]
    found = []
    ends = np.append(starts[1:], len(t) - 1)
    for column, good in zip(y.T, sound.T, strict=True):
        times, values = [], []
        for worst, reduce, sign in ((np.inf, np.minimum, -1.0), (-np.inf, np.maximum, 1.0)):
            filled = np.where(good, column, worst)
            most = reduce.reduceat(filled, starts)
            beside = reduce(filled[starts], filled[ends])
            with np.errstate(invalid="ignore"):
                excess = sign * (most - beside)
            span = np.ptp(column[good]) if good.any() else 0.0
            rows = np.flatnonzero(excess > NEGLIGIBLE * span)
            rows = rows[np.argsort(-excess[rows], kind="stable")[:MOST_PEAKS]]
            extreme = int(np.argmax(sign * most))
            if excess[extreme] > 0.0 and extreme not in rows:
                rows = np.append(rows, extreme)
            for row in rows:
                part = filled[starts[row] : ends[row] + 1]
                at = starts[row] + int(np.argmax(sign * part))
                times.append(t[at])
                values.append(column[at])
        order = np.argsort(times, kind="stable")
        found.append((np.array(times)[order], np.array(values)[order]))
    return found


# ==== Curves of the caller's own beside those of the page =========================================

KEY = "own "
"""Begins the keys of these plots: no key of the page's own plots does."""

Values = np.ndarray | Sequence[Any] | Callable[[float, np.ndarray, np.ndarray], Any]


@dataclass(frozen=True)
class Curve:
    """Your own curve in the page of a motion: ``trajectory.to_html(path, curves={"zmp": Curve(...)})``.

    Attributes:
        values: (T,) or (T, k) numbers at the T times, or a function (t, q, v) -> number or (k,), which is
            evaluated at every recorded state. A masked array (``numpy.ma.masked_invalid``) leaves gaps.
        unit: unit of all values, such as "m". labels: labels of the k components; by default x, y, z for
        three, x, y for two, 1, 2, ... for more.
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
