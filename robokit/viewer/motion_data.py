"""A trajectory as a page shows it: frames for the eye, curves for the plots, figures of the run."""

from __future__ import annotations

import base64
import math
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from robokit.arguments import check_call, real_array
from robokit.conventions import WORLD
from robokit.dataclass_tools import frozen, short_repr
from robokit.dynamics import center_of_mass
from robokit.errors import ShapeError, WrongType, shown
from robokit.model.robot import Robot
from robokit.sim.force_elements import SpringRecord
from robokit.sim.motion import state_facts
from robokit.sim.trajectory import Trajectory
from robokit.viewer.payload_keys import (
    AttachmentData,
    CurveData,
    FigureData,
    FramesData,
    LinkForceData,
    PeaksData,
    SeriesData,
    StoppedData,
    TieData,
)
from robokit.viewer.scene import increasing

# Curves of a page: arrays as base64 text, fewer points with every peak kept, and the caller's own.


# ==== arrays as base64 text =======================================================================
# Arrays as base64 text, as the page's JavaScript unpacks them (``floats`` and ``bits`` in util.js,
# ``inflated`` and ``wholeNumbers`` in walk/program.js).


def base64_text(array: np.ndarray) -> str:
    """The bytes of an array in row order."""
    return base64.b64encode(np.ascontiguousarray(array).tobytes()).decode("ascii")


def packed(values: ArrayLike) -> str:
    """Numbers as little-endian float32; numbers beyond its range become infinite."""
    with np.errstate(over="ignore"):
        return base64_text(np.asarray(values).astype("<f4"))


def packed_bits(pattern: np.ndarray) -> str:
    """A boolean matrix, eight entries a byte, the first in the highest bit."""
    return base64_text(np.packbits(pattern.reshape(-1)))


def deflated(values: ArrayLike, dtype: str) -> str:
    """Numbers of a dtype, "<f8" or "u1", as deflated text, which the page unpacks when it is asked for."""
    with np.errstate(over="ignore"):
        array = np.asarray(values).astype(dtype)
    return base64.b64encode(zlib.compress(array.tobytes(), 9)).decode("ascii")


def deflated_whole(values: ArrayLike) -> str:
    """Whole numbers n within 32 bits as deflated text, the shortest where most are near 0 or repeat.

    They are stored as 2 n, or -2 n - 1 below 0, all lowest bytes first, then all second ones and so on.
    """
    n = np.asarray(values, dtype=np.int64).reshape(-1)
    codes = np.where(n < 0, -2 * n - 1, 2 * n).astype("<u4")
    return deflated(codes.view("u1").reshape(-1, 4).T, "u1")


# ==== curves for a screen: fewer points, and every peak kept ======================================
# A curve is cut into buckets of equal length, and each keeps its smallest and its largest sample. However
# long the run, its largest value is shown as it was.

BUCKETS = 500  # buckets of a curve: about as many as its plot has columns
NEGLIGIBLE = 0.01  # share of a line's range below which what happens between two frames is left out
MOST_PEAKS = 200  # between frames that a line keeps, the largest; its extremes are always among them


def kept(
    columns: Sequence[np.ndarray], always: Sequence[int] | np.ndarray = (), buckets: int = BUCKETS
) -> np.ndarray:
    """Indices of the samples that a plot of several lines keeps.

    ``columns``: the lines, (T,) each; what is not finite counts as no peak; ``always``: indices that are kept
    besides; the first and the last are; ``buckets``: as many as the plot is to have. Returns increasing
    indices, at most 2 * buckets for each line and those of ``always``.
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
    return increasing(np.concatenate(found))


def without_repeats(t: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A line without the samples that equal both their neighbours: (t, y)."""
    inner = (y[1:-1] == y[:-2]) & (y[1:-1] == y[2:])
    keep = np.concatenate([[True], ~inner, [True]])[: len(y)]
    return t[keep], y[keep]


def peaks_between(t: np.ndarray, y: np.ndarray, frames: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """What lines that are drawn from frames would miss: samples outside the range of the frames beside them.

    ``t``: times of the samples, increasing, (S,) [s]; ``y``: the lines, (S, m); ``frames``: times of the
    frames, increasing, (T,) [s]. Returns (times, values) of the peaks of each line, in the order of time.
    """
    sound = np.isfinite(y)
    starts = increasing(np.clip(np.searchsorted(t, frames - 1e-9), 0, max(len(t) - 1, 0)))
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

KEY = "own "  # begins the keys of these plots: no key of the page's own plots does

Values = np.ndarray | Sequence[Any] | Callable[[float, np.ndarray, np.ndarray], Any]


@frozen
class Curve:
    """Your own curve in the page of a motion: ``trajectory.to_html(path, curves={"zmp": Curve(...)})``.

    Attributes:
        values: (T,) or (T, k) numbers at the T times, or a function (t, q, v) -> number or (k,), which is
            evaluated at every recorded state. A masked array (``numpy.ma.masked_invalid``) leaves gaps.
        unit: unit of all values, such as "m".
        labels: labels of the k components; by default x, y, z for three, x, y for two, 1, 2, ... for more.
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
    """The plots of a page's own curves, each a Curve or its values; WrongType or ShapeError names it."""
    if curves is None:
        return []
    if not isinstance(curves, Mapping):
        raise WrongType("curves", curves, 'a mapping from names to arrays, such as {"zmp": zmp}')
    return [
        _plot(trajectory, name, one if isinstance(one, Curve) else Curve(one)) for name, one in curves.items()
    ]


def _plot(trajectory: Trajectory, name: str, curve: Curve) -> CurveData:
    if not isinstance(name, str) or not name.strip():
        raise WrongType("curves", name, "names that are strings")
    what = f"curves[{shown(name)}]"
    if not isinstance(curve.unit, str):
        raise WrongType(f"{what}: unit", curve.unit, 'a string, such as "m"')
    t = _times(what, trajectory, curve.t)
    y, gaps = _values(what, trajectory, curve, t)
    known = np.where(gaps, np.nan, y)
    edges = np.flatnonzero(np.any(gaps[1:] != gaps[:-1], axis=1))
    keep = kept(list(known.T), np.concatenate([edges, edges + 1]))
    lines = dict(zip(_labels(what, name, curve, y.shape[1]), known[keep].T, strict=True))
    return curve_data(KEY + name, name, curve.unit, t[keep] - trajectory.t[0], lines)


def _times(what: str, trajectory: Trajectory, given: Any) -> np.ndarray:
    """Times of a curve, (T,) [s]; ShapeError where they do not increase, or all lie outside of the run."""
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

    Raises ShapeError where they do not fit the times, or are not finite where nothing is masked.
    """
    T = len(t)
    given: Any = curve.values
    if callable(given):
        if curve.t is not None:
            raise ShapeError(
                f"{what}: t: a function is evaluated at the recorded states; it takes no times of its own"
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
    """Names of a curve's lines; WrongType or ShapeError unless there is one text for each, and none twice."""
    given = curve.labels
    if not isinstance(given, list | tuple) or not all(isinstance(label, str) for label in given):
        raise WrongType(f"{what}: labels", given, 'a sequence of strings, such as ("x", "y")')
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


# ==== contact forces over time, of the whole robot and by link, with the peaks that single steps had ====

MOST_WORK = 4_000_000  # bodies times steps up to which a page looks at every step: some ten seconds


class ForceHistory:
    """Force of the ground on each link: the impulse of single steps over the step.

    Attributes:
        t: (S,) ends of the steps, since the start [s].
        links: L names.
        force: on each link, world axes, (S, L, 3) [N].
        total: on the robot, (S, 3) [N].
        frames: which of the times are those of the page's frames.
        hold: duration of a step, through which each force holds until its time [s].
        left_out: whether there are steps that are not known, between the records.
    """

    def __init__(self, trajectory: Trajectory, chosen: np.ndarray) -> None:
        """The forces of every step, as far as they are known; the chosen records become frames."""
        t = trajectory.t - trajectory.t[0]
        steps = trajectory.step_forces if every_step(trajectory) else None
        self.hold = float(trajectory.summary.get("dt", 0.0))
        self.left_out = steps is None and trajectory.summary.get("steps", 0) >= len(t)
        if steps is not None:
            self.links = steps.links
            self.t = np.append(0.0, steps.t - trajectory.t[0])
            self.force = np.concatenate([np.zeros((1, len(self.links), 3)), steps.force])
            self.total = self.force.sum(axis=1)
            self.frames = np.clip(np.searchsorted(self.t, t[chosen] - 1e-9), 0, len(self.t) - 1)
            return
        each = trajectory.contact_forces
        self.links, self.t, self.frames = tuple(each), t, chosen
        self.force = np.stack(list(each.values()), axis=1) if each else np.zeros((len(t), 0, 3))
        self.total = trajectory.contact_force


def every_step(trajectory: Trajectory) -> bool:
    """Whether a page looks at every step of the run: not at those of very long ones."""
    robot, steps = trajectory.robot, trajectory.summary.get("steps", 0)
    return robot is not None and steps * robot.nbodies <= MOST_WORK


def curve_data(
    key: str, title: str, unit: str, t: np.ndarray, lines: Mapping[str, np.ndarray], hold: float = 0.0
) -> CurveData:
    """A plot of some lines over time."""
    series = [SeriesData(name, packed(y)) for name, y in lines.items()]
    return CurveData(key, title, unit, packed(t), series, hold)


def link_forces(forces: ForceHistory) -> list[LinkForceData]:
    """The size of the force on each link that ever touches the ground, the largest first."""
    sizes = np.linalg.norm(forces.force, axis=2)
    found = []
    for k in np.argsort(-sizes.max(axis=0, initial=0.0), kind="stable"):
        if not np.any(sizes[:, k]):
            break
        keep = kept([sizes[:, k]])
        t, y = without_repeats(forces.t[keep], sizes[keep, k])
        found.append(LinkForceData(forces.links[k], packed(t), packed(y), forces.hold))
    return found


# ==== The states of every step of a run: what curves show between its records =====================


@frozen
class StepStates:
    """States before each of S steps, and the last one."""

    t: np.ndarray  # times since the start, (S + 1,) [s]
    # q, v: the states, (S + 1, ...)
    q: np.ndarray
    v: np.ndarray
    # kinetic and potential energy [J], centroidal momentum [angular; linear] in world axes [N m s; N s],
    # (S + 1, 8)
    sums: np.ndarray
    tau: np.ndarray | None  # the controller's joint forces, (S + 1, nv) [N m | N]; None without a controller
    records: np.ndarray  # which of them are the records of the run

    def shown(self, lines: Sequence[np.ndarray]) -> np.ndarray:
        """Indices that a plot of lines, (S + 1,) each, keeps: records, and the peaks between them."""
        keep = self.records[kept([y[self.records] for y in lines])]
        peaks = peaks_between(self.t, np.stack(lines, axis=1), self.t[keep])
        return increasing(np.concatenate([keep, *(np.searchsorted(self.t, times) for times, _ in peaks)]))


def step_states(trajectory: Trajectory) -> StepStates | None:
    """The states of a run of which a page looks at every step; None of others."""
    facts = trajectory.step_facts if every_step(trajectory) else None
    if facts is None or trajectory.robot is None or not len(facts.v):
        return None
    t = trajectory.t - trajectory.t[0]
    times = np.append(trajectory.summary["dt"] * facts.edges[:-1], t[-1])
    tau = None if trajectory.tau is None else np.concatenate([facts.tau, trajectory.tau[-1:]])
    return StepStates(
        times,
        np.concatenate([facts.q, trajectory.q[-1:]]),
        np.concatenate([facts.v, trajectory.v[-1:]]),
        np.concatenate([facts.sums, state_facts(trajectory.robot, trajectory.q[-1:], trajectory.v[-1:])]),
        tau,
        increasing(np.clip(np.searchsorted(times, t - 1e-9), 0, len(facts.v))),
    )


# ---- frames of the hardest contacts --------------------------------------------------------------

MOST = {"first contact": 10, "peak load": 1, "peak force": 12, "impact": 12}
"""Events of each kind that get a frame: the largest ones."""


def with_key_frames(trajectory: Trajectory, chosen: np.ndarray) -> tuple[Trajectory, np.ndarray]:
    """The trajectory with the states after its hardest steps among the records, and which become frames.

    ``chosen`` are those of the records that do, (T,); the new records are added. Energies and what needs them
    stay those of the records as they were: only what frames show is there. Joint forces at a new record are
    those of the record after it.
    """
    steps = key_steps(trajectory)
    if not steps:
        return trajectory, chosen
    facts, forces = trajectory.step_facts, trajectory.step_forces
    assert trajectory.robot is not None and facts is not None and forces is not None
    after, marks = np.array(steps) + 1, np.array(trajectory.marks)
    rows = np.searchsorted(facts.edges, after)
    q, v = (np.concatenate(x)[rows] for x in ((facts.q, trajectory.q[-1:]), (facts.v, trajectory.v[-1:])))
    places = np.searchsorted(marks, after)

    def among(old: np.ndarray, new: np.ndarray) -> np.ndarray:
        return np.insert(old, places, new, axis=0)

    def next_record(old: np.ndarray | None) -> np.ndarray | None:
        return None if old is None else among(old, old[places])

    found = replace(
        trajectory,
        t=among(trajectory.t, trajectory.summary["dt"] * after),
        q=among(trajectory.q, q),
        v=among(trajectory.v, v),
        momentum=among(trajectory.momentum, state_facts(trajectory.robot, q, v)[:, 2:]),
        contact_force=among(trajectory.contact_force, forces.total[np.array(steps) - marks[0]]),
        marks=among(marks, after).tolist(),
        tau=next_record(trajectory.tau),
        actuator_force=next_record(trajectory.actuator_force),
    )
    known = ("step_facts", "step_forces", "events")
    found.__dict__.update({name: vars(trajectory)[name] for name in known if name in vars(trajectory)})
    new = places + np.arange(len(places))
    moved = chosen + np.searchsorted(places, chosen, side="right")
    return found, increasing(np.concatenate([moved, new]))


def key_steps(trajectory: Trajectory) -> list[int]:
    """Numbers of the hardest steps between the records, ascending."""
    if trajectory.program is None or trajectory.program.ground is None or not every_step(trajectory):
        return []
    if trajectory.inputs is None:
        return []
    dt, marks, found = trajectory.summary["dt"], set(trajectory.marks), set()
    for kind, most in MOST.items():
        events = sorted((e for e in trajectory.events if e.kind == kind), key=lambda event: -event.size)
        # An event's time is the middle of its step, or of a part of it.
        found |= {math.floor(event.time / dt) for event in events[:most]}
    last = trajectory.marks[-1]
    return sorted(step for step in found if 0 <= step < last and step + 1 not in marks)


# ==== frames, curves and figures of a run =========================================================

LOSSES = {
    "contact": "ground",
    "friction": "joints",
    "stops": "limits",
    "collision": "collisions",
    "springs": "springs",
}
"""What dissipates energy: the name in the energy accounting -> the name on the page."""


def still_frame(robot: Robot, q: np.ndarray, poses: np.ndarray) -> FramesData:
    """The single frame of a pose: its configuration (1, nq), and its bodies' poses (1, nbodies + 1, 7)."""
    return FramesData(1, 1, packed(np.zeros(1)), packed(poses[:, 1:]), packed(q), packed(_com(robot, q)))


def motion_frames(
    trajectory: Trajectory,
    robot: Robot,
    chosen: np.ndarray,
    poses: np.ndarray,
    sane: int,
    states: StepStates | None = None,
) -> FramesData:
    """The frames of a motion: those of its samples that are chosen, (T,), with poses (T, nbodies + 1, 7).

    ``sane`` frames at the start can be trusted; ``states`` are those of every step, if they are known.
    """

    def frames(values: np.ndarray | None) -> str | None:
        return None if values is None else packed(values[chosen])

    count, points, normals = touching(trajectory, chosen)
    met_count, met = meeting(trajectory, chosen)
    return FramesData(
        count=len(chosen),
        sane=sane,
        t=packed(trajectory.t[chosen] - trajectory.t[0]),
        poses=packed(poses[:, 1:]),
        q=packed(trajectory.q[chosen]),
        com=packed(_com(robot, trajectory.q[chosen])),
        v=frames(trajectory.v),
        tau=frames(joint_forces(trajectory)),
        momentum=frames(trajectory.momentum),
        force=frames(trajectory.contact_force) if np.any(trajectory.contact_force) else None,
        contact_count=count,
        contacts=points,
        contact_normals=normals,
        met_count=met_count,
        met=met,
        peaks=peaks(trajectory, chosen, states),
    )


def ties(robot: Robot, springs: Sequence[SpringRecord] = ()) -> list[TieData]:
    """Springs between points, then rods that close loops."""
    found = [TieData(True, [_tied(robot, *end) for end in each.ends]) for each in springs if each.ends]
    for joint in robot.loop_joints:
        if joint.kind == "distance":
            ends = (
                (joint.predecessor, joint.predecessor_placement),
                (joint.successor, joint.successor_placement),
            )
            found.append(TieData(False, [_tied(robot, link, at.position) for link, at in ends]))
    return found


def _tied(robot: Robot, link: str, at: Sequence[float] | np.ndarray) -> AttachmentData:
    """A point of a link as a point of its body."""
    if link == WORLD and link not in robot.link_index:
        return AttachmentData(0, np.asarray(at, float).tolist())
    body, placement = robot.frame(link)
    return AttachmentData(body, (placement.rotation @ np.asarray(at, float) + placement.position).tolist())


def touching(trajectory: Trajectory, chosen: np.ndarray) -> tuple[str | None, str | None, str | None]:
    """How many contact points touch at each frame, their positions and forces, and their normals.

    Most points of most frames touch nothing: they are left out. Without a ground all three are None; the
    normals are where all are that of the ground's plane.
    """
    contacts = trajectory.contacts
    if contacts is None:
        return None, None, None
    points, forces = contacts.points[chosen], contacts.forces[chosen]
    touch = np.any(forces != 0.0, axis=-1)
    normals = None
    if contacts.normals is not None and trajectory.ground is not None:
        own = contacts.normals[chosen][touch]
        level = trajectory.ground.plane and np.allclose(own, trajectory.ground.up, rtol=0.0, atol=1e-6)
        normals = None if level else packed(own)
    return packed(touch.sum(axis=1)), packed(np.concatenate([points[touch], forces[touch]], axis=1)), normals


def meeting(trajectory: Trajectory, chosen: np.ndarray) -> tuple[str | None, str | None]:
    """How many contacts between bodies there are at each frame, and their places, forces and normals."""
    contacts = trajectory.body_contacts
    if contacts is None or contacts.normals is None or not contacts.links:
        return None, None
    rows = np.concatenate([contacts.points, contacts.forces, contacts.normals], axis=2)[chosen]
    touch = np.any(rows[..., 3:6] != 0.0, axis=-1)
    return packed(touch.sum(axis=1)), packed(rows[touch])


def joint_forces(trajectory: Trajectory) -> np.ndarray | None:
    """The controller's forces and those of actuators, which hold them where they are, (T, nv); or None."""
    tau, driven = trajectory.tau, trajectory.actuator_force
    if driven is None:
        return tau
    return np.where(np.any(driven, axis=0), driven, 0.0 if tau is None else tau)


def peaks(trajectory: Trajectory, chosen: np.ndarray, states: StepStates | None) -> list[PeaksData]:
    """What coordinates, velocities and joint forces do between frames: at every step, if known.

    Forces of actuators are means between records.
    """
    t = trajectory.t - trajectory.t[0]
    lines = {"q": trajectory.q, "v": trajectory.v, "tau": joint_forces(trajectory)}
    known = {}
    if states is not None:
        known = {"q": states.q, "v": states.v}
        if trajectory.actuator_force is None and states.tau is not None:
            known["tau"] = states.tau
    found = []
    for line, recorded in lines.items():
        if recorded is None:
            continue
        times, values = (states.t, known[line]) if states is not None and line in known else (t, recorded)
        for index, (at, y) in enumerate(peaks_between(times, values, t[chosen])):
            if len(at):
                found.append(PeaksData(line, index, packed(at), packed(y)))
    return found


def curves(trajectory: Trajectory, forces: ForceHistory, states: StepStates | None = None) -> list[CurveData]:
    """The plots, thinned to a screen's width so that every peak stays; of every step where it is known."""
    t = trajectory.t - trajectory.t[0]

    def plot(
        key: str, title: str, unit: str, lines: dict[str, np.ndarray], every: StepStates | None = None
    ) -> CurveData:
        keep = (kept if every is None else every.shown)(list(lines.values()))
        times = (t if every is None else every.t)[keep]
        return curve_data(key, title, unit, times, {name: y[keep] for name, y in lines.items()})

    h = trajectory.momentum if states is None else states.sums[:, 2:]
    plots = [plot("energy", "Energy", "J", energy_lines(trajectory, states), states)]
    if np.any(forces.total):
        x, y, z = forces.total.T
        lines = {"size": np.linalg.norm(forces.total, axis=1), "x": x, "y": y, "z": z}
        keep = kept(list(lines.values()), forces.frames)
        title = "Contact force"
        if forces.left_out:
            title += ", only of the steps that were recorded"
        shown = {name: y[keep] for name, y in lines.items()}
        plots.append(curve_data("force", title, "N", forces.t[keep], shown, forces.hold))
    for key, title, unit, first in (
        ("linear", "Linear momentum", "N s", 3),
        ("angular", "Angular momentum about the CoM", "N m s", 0),
    ):
        plots.append(plot(key, title, unit, dict(zip("xyz", h[:, first : first + 3].T, strict=True)), states))
    springs = trajectory.springs
    if springs:
        at_joints = {each.points is None for each in springs}
        unit = "N" if at_joints == {False} else "N m | N"
        plots.append(plot("springs", "Tension of springs", unit, {each.name: each.force for each in springs}))
        unit = "m" if at_joints == {False} else "rad | m"
        plots.append(plot("lengths", "Length of springs", unit, {each.name: each.length for each in springs}))
    rates = powers(trajectory)
    if rates:
        plots.append(plot("power", "Power, mean since the sample before", "W", rates))
    drift = {"drift": trajectory.energy.total - trajectory.energy.total[0]}
    plots.append(plot("drift", "Energy balance: total minus its initial value", "J", drift))
    return plots


def energy_lines(trajectory: Trajectory, states: StepStates | None) -> dict[str, np.ndarray]:
    """Energies at every step, or at the records where the steps are not known [J].

    Between records work and total are on straight lines, and what is dissipated closes the balance.
    """
    energy, t = trajectory.energy, trajectory.t - trajectory.t[0]
    kinetic, potential, dissipated = energy.kinetic, energy.potential, energy.dissipated
    work, total, stored = energy.work, energy.total, energy.springs
    if states is not None:
        with np.errstate(all="ignore"):
            kinetic, potential = states.sums[:, :2].T
            work, total = np.interp(states.t, t, work), np.interp(states.t, t, total)
            if stored is not None:
                stored = np.interp(states.t, t, stored)
            dissipated = total + work - kinetic - potential - (0.0 if stored is None else stored)
    parts = {"kinetic": kinetic, "potential": potential, "dissipated": dissipated}
    if stored is not None:
        parts["springs"] = stored
    if np.any(energy.work):
        parts["work"] = work
    return parts | {"total": total}


def powers(trajectory: Trajectory) -> dict[str, np.ndarray]:
    """Power of each source that is not always zero, positive if it gives energy to the robot, (T,) each [W].

    Mean since the record before; 0 at the start.
    """
    energy = trajectory.energy
    sums = {"work": energy.work}
    for cause, lost in (trajectory.losses or {"dissipated": energy.dissipated}).items():
        sums[LOSSES.get(cause, cause)] = -lost
    found = {}
    for name, y in sums.items():
        with np.errstate(all="ignore"):
            rate = np.diff(y, prepend=y[:1]) / np.diff(trajectory.t, prepend=trajectory.t[0] - 1.0)
        if np.any(rate):
            found[name] = rate
    return found


def summary(trajectory: Trajectory) -> list[FigureData]:
    """Numbers and texts of the run's summary; the energy balance where the summary has none."""
    total = trajectory.energy.total
    given = {"energy_balance": float(np.abs(total - total[0]).max())} | trajectory.summary
    kept = []
    for key, value in given.items():
        if isinstance(value, str):
            kept.append(FigureData(key, value))
        elif isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
            kept.append(FigureData(key, float(value)))
    return kept


def stopped(trajectory: Trajectory) -> StoppedData | None:
    """When and why a run ended before its time, from ``summary["stopped"]``; None where it did not."""
    found = trajectory.summary.get("stopped")
    if not isinstance(found, Mapping):
        return None
    time = found.get("time")
    if not isinstance(time, (int, float)) or not math.isfinite(time):
        time = trajectory.t[-1]
    return StoppedData(float(time), str(found.get("reason", "")), str(found.get("remedy", "")))


def _com(robot: Robot, q: np.ndarray) -> np.ndarray:
    """Centre of mass at each configuration, (T, 3) [m]; NaN for a robot without mass."""
    if not robot.total_mass > 0:
        return np.full((len(q), 3), np.nan)
    return np.asarray(center_of_mass(robot, q)).reshape(len(q), 3)
