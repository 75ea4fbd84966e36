"""What each step of a run was given and left, the events in it, and the run in a few lines of text."""

from __future__ import annotations

import bisect
import math
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import pairwise
from typing import Any

import numpy as np

from robokit.algorithms.energy import rotor_energy
from robokit.contact.measures import MONITORS, SUBJECTS, Answer, Event, RunEvents
from robokit.dataclass_tools import cached_attribute, frozen, short_repr
from robokit.errors import counted
from robokit.sim.integrators import Held, StepTaken, held_forces
from robokit.sim.joint_forces import assumed_damping, pressing
from robokit.sim.motion import Carried, facts_and_spins, state_poses
from robokit.sim.step_kernel import Program, subjects_of
from robokit.sim.steppers import Stepper, in_blocks, scene_of, stepper
from robokit.spatial.scalars import maximum
from robokit.stages import stage

# ==== what each step was given and left ===========================================================
# What each step of a run was given and left: of these notes events, sensors, contacts and curves are made.
#
# Steps note themselves as they are taken (contact/monitor.py). Of runs that are too long for that the steps
# are taken once more, when somebody asks.


@frozen
class Contacts:
    """The K contact points over time.

    Attributes:
        points: (T, K, 3) in the world [m]; of a sphere, the point under its centre.
        forces: (T, K, 3) forces on these links, world axes [N]: the impulse of the step before each state,
            divided by the step; 0 at the start.
        links: K link names.
        against: what each link touches: K names of links, "" for the ground. Empty if all touch the ground.
        normals: (T, K, 3) unit normals pointing out of the touched surface, world axes; 0 without contact.
            None if unknown, as in files of earlier versions.
        moments: (T, K, 3) moments on these links beside those of the forces, world axes [N m]: of turning
            friction, and of points that land within the step and move on until then. None if unknown.
    """

    points: np.ndarray
    forces: np.ndarray
    links: tuple[str, ...]
    against: tuple[str, ...] = ()
    normals: np.ndarray | None = None
    moments: np.ndarray | None = None

    __repr__ = short_repr

    def at(self, records: Any) -> Contacts:
        """The contacts at one record, (K, 3) each, or at several, (..., K, 3)."""
        names = ("points", "forces", "normals", "moments")
        known = {name: x for name in names if (x := getattr(self, name)) is not None}
        return replace(self, **{name: x[records] for name, x in known.items()})

    @property
    def of_ground(self) -> np.ndarray:
        """Which of the points touch the ground, (K,)."""
        return np.array([not name for name in self.against or [""] * len(self.links)], bool)


@frozen
class StepForces:
    """Force of the ground on the robot in each of S steps."""

    t: np.ndarray  # (S,) ends of the steps [s]
    links: tuple[str, ...]  # names of the L links that can touch the ground
    force: np.ndarray  # (S, L, 3) the impulse of each step over the step, world axes [N]

    __repr__ = short_repr

    @property
    def total(self) -> np.ndarray:
        """(S, 3) the sum over the links [N]."""
        return self.force.sum(axis=1)

    @staticmethod
    def of(force: np.ndarray, links: Iterable[str], start: float, dt: float) -> StepForces:
        """The forces of steps of dt from the start time [s], given by numbers (S, L, 3)."""
        steps = np.arange(1, len(force) + 1)
        return StepForces(start + dt * steps, tuple(links), force)


# ---- notes -------------------------------------------------------------------------------------------------

MOST_BYTES = 128_000_000  # up to which steps are noted as they are taken: 19 s of a humanoid


@dataclass
class StepInputs:
    """What the steps of a run were given, one entry of each list for every change."""

    # number of the step from which an entry holds, ascending from 0
    start: list[int] = field(default_factory=list)
    tau: list[np.ndarray] = field(default_factory=list)  # joint forces, (nv,) each
    given: list[Sequence[np.ndarray]] = field(default_factory=list)  # inputs from actuators and pushes
    # how targets of the driven joints become their inputs (:attr:`DrivenJoints.linear`), (n,) each of
    # feedforward, gain, limit and rest; None where that changes in the run, or nothing is driven
    law: tuple[np.ndarray, ...] | None = None
    # what the first step was handed besides q and v, where the run goes on from a state of another one
    memory: np.ndarray | None = None

    @staticmethod
    def of_row(tables: Sequence[np.ndarray], row: int) -> StepInputs:
        """The inputs of a row of a rollout; ``tables`` has (steps or 1, rows or 1, n) each, tau first."""
        tau, *given = (x[:, row if x.shape[1] > 1 else 0].astype(float) for x in tables)
        found = StepInputs()
        for k in range(max(len(x) for x in (tau, *given))):
            found.add(k, tau[min(k, len(tau) - 1)], [x[min(k, len(x) - 1)] for x in given])
        return found

    def add(self, step: int, tau: np.ndarray, given: Sequence[np.ndarray]) -> None:
        """From this step on."""
        if self.start and self.start[-1] == step:
            del self.start[-1], self.tau[-1], self.given[-1]
        self.start.append(step)
        self.tau.append(tau)
        self.given.append(given)

    def cut(self, step: int) -> None:
        """Discard the inputs of this step and later ones; earlier inputs stay."""
        k = max(1, bisect.bisect_left(self.start, step))
        del self.start[k:], self.tau[k:], self.given[k:]

    def copy(self) -> StepInputs:
        """The same, to which nothing is added."""
        return replace(self, start=self.start.copy(), tau=self.tau.copy(), given=self.given.copy())

    def at(self, step: int) -> tuple[np.ndarray, Sequence[np.ndarray], float]:
        """The inputs of a step, and the step at which they change."""
        k = bisect.bisect_right(self.start, step)
        return self.tau[k - 1], self.given[k - 1], self.start[k] if k < len(self.start) else np.inf

    def rows(self, steps: Any) -> tuple[np.ndarray, list[np.ndarray]]:
        """The inputs of some steps, (S, ...) each."""
        k = np.searchsorted(self.start, steps, side="right") - 1
        given = [np.array(x, float)[k] for x in zip(*self.given, strict=True)]
        return np.array(self.tau, float)[k], given


@frozen
class Notes:
    """Notes of S steps of a run, or of S parts of steps that are divided to an accuracy."""

    program: Program  # that took them
    dt: float  # time step [s]
    inputs: StepInputs  # of the run
    begin: np.ndarray  # when each begins, (S,) [steps]
    share: np.ndarray  # of a step that each is, (S,)
    # what is noted, (S, ...) each: "q", "v" before it; of passive motion "carried", what it was handed
    # besides; of steps with contact the forces (NOTES in contact/monitor.py)
    arrays: dict[str, np.ndarray]

    @staticmethod
    def taken(steps: Stepper, inputs: StepInputs, first: int = 0) -> Notes:
        """What a stepper has noted since it was last asked, of steps from this number on."""
        found = steps.notes()
        share = found.pop("share", np.ones(len(found["q"])))
        ends = np.concatenate([[0.0], np.cumsum(share)])  # exact: shares are powers of two
        return Notes(steps.program, steps.dt, inputs, first + ends[:-1], share, found)

    def __len__(self) -> int:
        return len(self.share)

    @cached_attribute
    def facts(self) -> np.ndarray:
        """The facts_and_spins of the states before them, (S, 10)."""
        return facts_and_spins(self.program.robot, self.arrays["q"], self.arrays["v"])

    @property
    def steps(self) -> int:
        """Number of the step after the last one."""
        return round(float(self.begin[-1] + self.share[-1])) if len(self) else 0

    @property
    def step(self) -> np.ndarray:
        """Number of the step of each, (S,)."""
        return np.floor(self.begin).astype(int)

    @property
    def kicks(self) -> tuple[np.ndarray, np.ndarray]:
        """Configurations at which forces acted, (S, nq), and when [s]; of free motion those before it."""
        at = "kick" if "kick" in self.arrays else "q"
        return self.arrays[at], self.dt * (self.begin + 0.5 * self.share * (at == "kick"))

    @property
    def gaps(self) -> np.ndarray:
        """What lies between each and the next one, (S - 1,) [steps]."""
        return np.diff(self.begin) - self.share[:-1]

    def first(self, steps: Any) -> Any:
        """The index of these steps' first notes."""
        return np.searchsorted(self.step, steps, side="left")

    def last(self, steps: Any) -> Any:
        """Where their last parts are."""
        return np.searchsorted(self.step, steps, side="right") - 1

    def contacts(self, row: int) -> np.ndarray:
        """The contacts that pressed, (K, 14): see NOTES in contact/monitor.py."""
        ends = self.arrays["end"]
        return self.arrays["contact"][ends[row - 1] if row else 0 : ends[row]]

    def of(self, rows: np.ndarray) -> Notes:
        """Some of them."""
        found = {name: x[rows] for name, x in self.arrays.items() if name not in ("end", "contact")}
        if "end" in self.arrays:
            counts = np.diff(self.arrays["end"], prepend=0)[rows]
            found["end"] = np.cumsum(counts)
            at = np.repeat(self.arrays["end"][rows] - found["end"], counts) + np.arange(counts.sum())
            found["contact"] = self.arrays["contact"][at]
        return replace(self, begin=self.begin[rows], share=self.share[rows], arrays=found)

    def parts(self, steps: np.ndarray) -> tuple[Notes, np.ndarray]:
        """The notes of some steps, and where each step begins among them, (T,)."""
        first, end = self.first(steps), self.last(steps) + 1
        count = end - first
        begin = np.cumsum(count) - count
        return self.of(np.repeat(first - begin, count) + np.arange(count.sum())), begin

    def before(self, step: int, first: int = 0) -> Notes:
        """The notes of the steps first..step."""
        return self.of(np.arange(*np.searchsorted(self.begin, [first, step])))

    @staticmethod
    def joined(parts: Sequence[Notes]) -> Notes:
        """Several as one."""
        arrays = {name: np.concatenate([part.arrays[name] for part in parts]) for name in parts[0].arrays}
        if "end" in arrays:
            counts = [np.diff(part.arrays["end"], prepend=0) for part in parts]
            arrays["end"] = np.cumsum(np.concatenate(counts))
        begin, share = (
            np.concatenate([getattr(part, name) for part in parts]) for name in ("begin", "share")
        )
        return replace(parts[0], begin=begin, share=share, arrays=arrays)

    def with_end(self, q: np.ndarray, v: np.ndarray, steps: Any) -> list[np.ndarray]:
        """The states, q and v, at the beginnings of steps; (q, v) is that at the end of all."""
        rows = self.first(steps)
        return [np.concatenate([self.arrays[name], end[None]])[rows] for name, end in (("q", q), ("v", v))]


# ---- runs that are too long ------------------------------------------------------------------------------


def load(noted: Mapping[str, np.ndarray]) -> np.ndarray:
    """Size of the force of the ground on the whole robot, (S,) [N]."""
    return np.asarray(np.linalg.norm(noted["link"][:, -1, :3], axis=1))


@np.errstate(all="ignore")
def retaken(
    program: Program,
    dt: float,
    start: tuple[np.ndarray, np.ndarray],
    marks: Sequence[int],
    inputs: StepInputs,
    around: bool = False,
    record: Callable[..., Any] | None = None,
    most: float = math.inf,
) -> Notes | None:
    """The steps of a run taken once more, of dt [s] each, from ``start`` (q and v) with their inputs.

    ``marks`` counts the steps until each record; ``around``: those around the records alone are kept.
    ``record``, if there is one, is given each record, see :meth:`Records.add`. None where the notes would be
    more than ``most`` bytes.
    """

    def reached(steps: int) -> None:
        if record is not None:
            record(steps, own.q.astype(float), own.v.astype(float), own.entries(), before)

    own, parts = stepper(program, dt, owner=reached), []  # until this function is over
    own.begin(*start, inputs.memory)
    own.noting, before = True, own.impulse()
    with stage("computing the steps again"):
        reached(marks[0])
        for first, last in pairwise(marks):
            at = first
            while at < last:
                tau, given, change = inputs.at(at)
                own.give(tau, given)
                if at == last - 1:
                    before = own.impulse()
                # The step that leads to a record is taken alone: it has its force.
                at += own.take(int(min(max(last - 1, at + 1), change)) - at) or last
            reached(last)
            if around:
                block = Notes.taken(own, inputs, first)
                # The first step and the last one, the two from the run's start, and the hardest: the one with
                # the largest force of the ground.
                step = block.step
                kept = (step == step[0]) | (step == step[-1]) | (step < marks[0] + 2)
                if "link" in block.arrays:
                    kept[load(block.arrays).argmax()] = True
                parts.append(block.of(np.flatnonzero(kept)))
            elif own.noted_bytes > most:
                own.noting = False
                own.forget_notes()
    if not own.noting:
        return None
    return Notes.joined(parts) if parts else Notes.taken(own, inputs, marks[0])


# ---- passive motion ---------------------------------------------------------------------------------------


def of_held_forces(
    notes: Notes, wanted: Callable[..., Sequence[Any]], width: int, *states: np.ndarray
) -> np.ndarray:
    """``wanted(problem, q, v, tau, held)`` of steps of a run in passive motion: (S, width) numbers.

    ``states`` are q, v, joint forces, what was handed on, and inputs of the steps, (S, ...) each.
    """
    program, dt = notes.program, notes.dt
    robot, parameters = program.robot, program.parameters(dt).tolist()

    def text(qs: Any, vs: Any, taus: Any, kept: Any, *inputs: Any) -> Sequence[Any]:
        rows = robot.split_q(qs), robot.split_v(vs), robot.split_tau(taus)
        p = program.problem(parameters, inputs)
        return wanted(p, *rows, held_forces(StepTaken(p, *rows, dt, Carried(program.layout, kept))))

    return in_blocks(text, width, *states)


def acted(notes: Notes) -> dict[str, np.ndarray]:
    """What acted in steps: "joint", "stop", "limited", "link" of NOTES (contact/monitor.py), (S, ...) each.

    Steps of "contact" have noted it. In passive motion nothing touches, and joints have the forces that the
    steps held.
    """
    program = notes.program
    if program.contact:
        return notes.arrays
    robot, joints, (tau, given) = program.robot, subjects_of(program).joints, notes.inputs.rows(notes.step)
    stops = program.joints.stop

    def text(_: Any, q: Any, _v: Any, _tau: Any, held: Held) -> Sequence[Any]:
        each = [x for rows in (held.given, held.rub, held.stops) for x in robot.join_v(rows)]
        pressed = [pressing(stops[i], q[i][0], held.stops[i][0]) for _, i in joints]  # type: ignore[arg-type]
        return [*each, *pressed, *held.limited]

    n, D = 3 * robot.nv, len(program.given.drives)
    states = *(notes.arrays[name] for name in ("q", "v")), tau, notes.arrays["carried"], *given
    columns = of_held_forces(notes, text, n + len(joints) + D, *states)
    forces, stop, limited = np.split(columns, [n, n + len(joints)], axis=1)
    joint = forces.reshape(len(notes), 3, robot.nv).swapaxes(1, 2)
    return {"joint": joint, "stop": stop, "limited": limited, "link": np.zeros((len(notes), 1, 7))}


# ---- contacts --------------------------------------------------------------------------------------------


def mean_of_parts(x: np.ndarray, begin: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Means over steps of a quantity of their parts, (R, ...); ``begin``, ``share``: see Notes.parts."""
    if len(begin) == len(x):
        return x
    return np.asarray(np.add.reduceat(x * share.reshape(-1, *[1] * (x.ndim - 1)), begin))


def contacts_of(notes: Notes, marks: Sequence[int], q: np.ndarray, moving: bool = False) -> Contacts:
    """Contact points and forces, with fixed shapes or between moving links, in the steps that led to records.

    A link has as many points as it ever has at once on the ground, and on each other link. One that does not
    touch is at the link's origin. For a step that is divided, forces are means over its parts, and positions
    and normals are means weighted by the normal forces, so that the moment of parallel forces is kept.
    ``marks`` counts the steps until each record, q has the configurations of the records, (T, nq);
    ``moving``: contacts between moving links only.
    """
    program, names = notes.program, scene_of(notes.program).links
    taken, begin = notes.parts(np.array(marks[1:], int) - 1)
    record = np.searchsorted(begin, np.arange(len(taken)), side="right")  # that each part of a step led to
    moves = np.array([bool(name) and program.robot.link(name).body > 0 for name in names])
    row, found = _pressing(taken, moves == moving)
    place = {link.name: k for k, link in enumerate(program.robot.links)}
    named = ["", *place]
    against_and_on = np.array([place.get(name, -1) + 1 for name in names], int)[found[:, :2].astype(int)]
    numbers = against_and_on @ [1, len(named)]
    pairs = np.array(sorted(set(numbers.tolist())), int)
    pair = np.searchsorted(pairs, numbers)
    nth, most = nth_of_its_kind(row * len(pairs) + pair), np.zeros(len(pairs), int)
    np.maximum.at(most, pair, nth + 1)
    column = (np.cumsum(most) - most)[pair] + nth
    sides = np.divmod(np.repeat(pairs, most), len(named))
    links, against = (tuple(named[k] for k in side.tolist()) for side in sides)
    forces, (R, p) = np.zeros((len(q), len(links), 3)), state_poses(program.robot, q)
    points = np.zeros_like(forces)
    for k, (body, frame) in enumerate(map(program.robot.frame, links)):
        points[:, k] = p[:, body] + R[:, body] @ frame.position
    normals, moments, pressed = np.zeros_like(forces), np.zeros_like(forces), np.zeros(forces.shape[:2])
    for part in range(int(np.bincount(record).max(initial=0))):  # of each step: one after the other
        now = row - begin[record[row] - 1] == part
        at, share = (record[row[now]], column[now]), taken.share[row[now], None]
        point, force, moment, normal = np.split(found[now, 2:], 4, axis=1)
        press = (force * share * normal).sum(axis=1)
        pressed[at] += press
        first = pressed[at] == 0.0
        of_all = np.where(first, 1.0, press / np.where(first, 1.0, pressed[at]))[:, None]
        points[at] = (1.0 - of_all) * points[at] + of_all * point
        normals[at] = (1.0 - of_all) * normals[at] + of_all * normal
        forces[at] += force * share
        moments[at] += moment * share
    if len(taken) > len(begin):
        normals /= np.maximum(np.linalg.norm(normals, axis=-1, keepdims=True), np.finfo(float).tiny)
    return Contacts(points, forces, links, against, normals, moments)


def _pressing(notes: Notes, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Contacts with the shapes that are wanted: shapes, place [m], force [N], moment [N m], normal, (K, 14).

    Before them the notes that they are of, (K,). Turning friction is noted behind its contact.
    """
    contacts = notes.arrays["contact"]
    row = np.repeat(np.arange(len(notes)), np.diff(notes.arrays["end"], prepend=0))
    presses = contacts[:, 5:8].any(axis=1) | contacts[:, 11:14].any(axis=1)
    moments, of = np.zeros((presses.sum(), 3)), np.cumsum(presses) - 1
    own = of >= 0
    own[own] = row[own] == row[presses][of[own]]  # not ahead of all that press in a note
    np.add.at(moments, of[own], contacts[own, 8:11] + contacts[own, 11:14])
    found = np.hstack([contacts[presses, :8], moments, contacts[presses, 14:]])
    kept = wanted[found[:, 0].astype(int)]
    return row[presses][kept], found[kept]


def nth_of_its_kind(kinds: np.ndarray) -> np.ndarray:
    """How many of the same whole number come before each, (K,)."""
    order = np.argsort(kinds, kind="stable")
    first = np.flatnonzero(np.diff(kinds[order], prepend=-1))
    found = np.empty(len(kinds), int)
    found[order] = np.arange(len(kinds)) - np.repeat(first, np.diff(np.append(first, len(kinds))))
    return found


# ==== step facts ==================================================================================
# What happens in single steps: contacts by link, stops by joint, actuators at their limits.


@dataclass
class StepFacts:
    """Facts of S steps, of S parts of steps that are divided to an accuracy, or of S that stand for more."""

    force: np.ndarray  # of the ground on each link that can touch it, world axes, (S, L, 3) [N]
    normal: np.ndarray  # the part along the ground's normal, (S, L) [N]
    sliding: np.ndarray  # the part of it on points that slide, (S, L) [N]
    speed: np.ndarray  # at which these slide at the end of the step, (S, L) [m/s]
    # largest speed before the step at which a point that is then pressed approaches, (S, L) [m/s]
    closing: np.ndarray
    stop: np.ndarray  # force of the stop of each joint with limits, (S, J) [N m | N]
    rate: np.ndarray  # the joint's velocity before the step, (S, J) [rad/s | m/s]
    # how far the joint is above its upper limit, negative below its lower one, (S, J) [rad | m]
    past: np.ndarray
    drive: np.ndarray  # force of each actuator that has a limit, (S, D) [N m | N]
    limited: np.ndarray  # 1.0 where it is at that limit, (S, D)
    met: np.ndarray  # impulse of other bodies on each body that can meet one, (S, M) [N s]
    moving: np.ndarray  # speed of the robot, the root of twice its kinetic energy over its mass, (S,) [m/s]
    # kinetic and potential energy [J] and centroidal momentum [N m s; N s] before it, (S, 8), see state_facts
    sums: np.ndarray
    v: np.ndarray  # velocities before the step, (S, nv) [rad/s | m/s]
    q: np.ndarray  # configurations before the step, (S, nq)
    tau: np.ndarray  # joint forces of the controller in the step, (S, nv) [N m | N]
    # how long each is, (S,) [steps]: shares of one, or more where it stands for several; None for whole steps
    lengths: np.ndarray | None = None
    first: int = field(default=0, kw_only=True)  # number of the first step
    dt: float = field(default=0.0, kw_only=True)  # time step [s]
    slides: frozenset[str] = field(default=frozenset(), kw_only=True)  # joints that slide; others turn

    __repr__ = short_repr

    def __len__(self) -> int:
        return len(self.q)

    @cached_attribute
    def edges(self) -> np.ndarray:
        """Where the steps or parts begin, and the last one ends, (S + 1,) [steps]."""
        if self.lengths is None:
            return self.first + np.arange(len(self.q) + 1.0)
        return self.first + np.concatenate(
            [[0.0], np.cumsum(self.lengths)]
        )  # exact: shares are powers of two

    @property
    def force_of_steps(self) -> np.ndarray:
        """The mean force on each link in whole steps, (steps, L, 3) [N]."""
        if self.lengths is None:
            return self.force
        first = np.flatnonzero(self.edges[:-1] % 1.0 == 0.0)
        return np.add.reduceat(self.force * self.lengths[:, None, None], first)

    @property
    def load(self) -> np.ndarray:
        """Size of the force of the ground on the whole robot, (S,) [N]."""
        return np.asarray(np.linalg.norm(self.force.sum(axis=1), axis=-1))

    def of(self, steps: np.ndarray) -> StepFacts:
        """The facts of some steps, by their numbers."""
        own = (getattr(self, f.name) for f in fields(self) if not f.kw_only)
        columns: list[Any] = [None if x is None else x[steps] for x in own]
        return StepFacts(*columns, first=self.first, dt=self.dt, slides=self.slides)

    # ---- for events (contact/measures.py) --------------------------------------------------------------

    def count(self, seconds: float) -> float:
        """How many steps a time is, at least one where they are not divided."""
        return seconds / self.dt if self.lengths is not None else max(1, round(seconds / self.dt))

    def middle(self, step: int) -> float:
        """The middle of a step [s]."""
        ends = self.edges[step], self.edges[min(step + 1, len(self))]
        return 0.5 * float(ends[0] + ends[1]) * self.dt

    def long(self, first: int, end: int) -> float:
        """Length of some steps, in units of dt."""
        return float(self.edges[end] - self.edges[first])

    def step_after(self, first: int, long: float) -> int:
        """The step that begins so long after another one, or a little later."""
        return int(np.searchsorted(self.edges, self.edges[first] + long))

    def integral(self, values: np.ndarray, first: int, end: int) -> float:
        """Over some steps."""
        return self.dt * float((values[first:end] * np.diff(self.edges[first : end + 1])).sum())

    def spans(self, on: np.ndarray, gap: float = 0, least: float = 0) -> list[tuple[int, int]]:
        """(first, last + 1) of the steps in which ``on``, (S,), holds.

        Interruptions of up to ``gap`` steps do not count, nor do spans shorter than ``least``.
        """
        joined: list[list[int]] = []
        changes = np.flatnonzero(np.diff(np.concatenate(([0], on.astype(np.int8), [0]))))
        for first, end in changes.reshape(-1, 2).tolist():
            if joined and self.long(joined[-1][1], first) <= gap:
                joined[-1][1] = end
            else:
                joined.append([first, end])
        return [(first, end) for first, end in joined if self.long(first, end) >= least]

    def units(self, joint: str) -> tuple[str, str, str]:
        """Of a joint's velocity, force and position."""
        return ("m/s", "N", "m") if joint in self.slides else ("rad/s", "N m", "rad")


def step_facts(notes: Notes) -> StepFacts:
    """The facts of the steps that were noted.

    For steps between them that were not, the one beside them with the smaller force of the ground stands:
    the impulse of an impact is that of its own step.
    """
    program, (q, v) = notes.program, (notes.arrays[name] for name in "qv")
    robot, subjects, x = program.robot, subjects_of(program), acted(notes)
    tau = notes.inputs.rows(notes.step)[0]
    rows, speeds = robot.split_q(list(q.T)), robot.split_v(list(v.T))
    rate, past = np.zeros_like(x["stop"]), np.zeros_like(x["stop"])
    for k, (_, i) in enumerate(subjects.joints):
        stop, at = program.joints.stop[i], rows[i][0]
        assert stop is not None
        rate[:, k], past[:, k] = speeds[i][0], maximum(at - stop.upper, 0.0) - maximum(stop.lower - at, 0.0)
    dofs = {joint.body: joint.v_slice.start for joint in robot.joints}
    met = np.zeros((len(notes), 0, 3))
    if subjects.meeting:
        met = _met(notes)[:, [i for _, i in subjects.meeting]]
    sums = notes.facts[:, :8]
    energy = sums[:, 0] - rotor_energy(robot.tree, speeds)  # of the links
    links, slides = x["link"][:, :-1], (joint for joint in robot.body_joints if joint.kind == "prismatic")
    lengths = None  # how long each stands: the one beside a gap with the smaller force stands for it, too
    if program.accuracy is not None or notes.gaps.any():
        lengths, gaps, force = notes.share.copy(), notes.gaps, load(x)
        later = force[:-1] > force[1:]
        lengths[:-1] += gaps * ~later
        lengths[1:] += gaps * later
    columns: list[Any] = [
        links[..., :3],
        *(links[..., k] for k in range(3, 7)),
        x["stop"],
        rate,
        past,
        x["joint"][:, [dofs[i] for _, i, _ in subjects.driven], 0],
        x["limited"][:, [place for *_, place in subjects.driven]],
        np.linalg.norm(met, axis=-1),
        np.sqrt(np.maximum(2.0 * energy, 0.0) / max(robot.total_mass, 1e-300)),
        sums,
        v,
        q,
        tau,
        lengths,
    ]
    first = int(notes.step[0]) if len(notes) else 0
    return StepFacts(*columns, first=first, dt=notes.dt, slides=frozenset(joint.name for joint in slides))


def _met(notes: Notes) -> np.ndarray:
    """Impulse of other links on each body in each note, (S, N + 1, 3) [N s]."""
    robot, names = notes.program.robot, scene_of(notes.program).links
    found = np.zeros((len(notes), robot.nbodies + 1, 3))
    rows = np.repeat(np.arange(len(notes)), np.diff(notes.arrays["end"], prepend=0))
    pairs, force = notes.arrays["contact"][:, :2].astype(int), notes.arrays["contact"][:, 5:8]
    of_links = np.array([bool(name) for name in names])[pairs[:, 0]] if len(pairs) else np.zeros(0, bool)
    bodies = np.array([robot.link(name).body if name else 0 for name in names], dtype=int)
    impulse = force * (notes.dt * notes.share[rows])[:, None]
    for side, sign in ((0, -1.0), (1, 1.0)):
        np.add.at(found, (rows[of_links], bodies[pairs[of_links, side]]), sign * impulse[of_links])
    return found


# ==== events, and the run in a few lines ==========================================================
# Each kind of event, and what it answers, is in contact/measures.py.

__all__ = ["Answer", "Event", "answers", "events_of", "from_rows", "report"]


def events_of(program: Program, facts: StepFacts, summary: Mapping[str, Any]) -> list[Event]:
    """The events of a run in the order of time, from the facts of every step and the run's summary."""
    robot = program.robot.name
    names = subjects_of(program).names(robot)
    found = [
        event
        for about in SUBJECTS
        for k, name in enumerate(names[about])
        for monitor in MONITORS
        if monitor.subject == about
        for event in monitor.events(facts, k, name)
    ]
    found.sort(key=lambda event: event.time)
    if "stopped" in summary:
        stop = summary["stopped"]
        found.append(Event(stop["time"], "failure", robot, 0.0, "", stop["reason"].rstrip(".")))
    return found


def from_rows(rows: Any) -> list[Event]:
    """The events of a file; TypeError or ValueError where they are none."""
    found = []
    for time, kind, subject, size, unit, text in rows:
        words = [str(x) for x in (kind, subject, unit, text)]
        found.append(Event(float(time), words[0], words[1], float(size), words[2], words[3]))
    return found


def answers(events: Sequence[Event], end: float, ground: bool = True) -> list[Answer]:
    """The questions that everyone has after a run, answered from its events, for the report and the page.

    A peak is that of a step, however few were recorded. The events are in the order of time, ``end`` is the
    run's [s], and ``ground`` says whether there was something to fall on.
    """
    run = RunEvents(events, end, ground)
    return [answer for monitor in MONITORS for answer in monitor.answers(run)]


WIDTH = 80  # columns of a report's lines
LABEL = 13  # columns of the first word of a line

CORRECTED = {
    "energy_corrected": "J",
    "momentum_corrected_linear": "N s",
    "momentum_corrected_angular": "N m s",
}
"""Figures of the summary that say what the steps missed and was corrected, with their units."""


def report(trajectory: Any) -> list[str]:
    """The lines; the answers are among them once ``events`` are computed."""
    s = trajectory.summary
    name = trajectory.robot.name if trajectory.robot is not None else s.get("robot", "?")
    first = f"{name}: {trajectory.t[-1]:g} s in {s.get('steps', 0):,} steps of {1e3 * s.get('dt', 0.0):g} ms"
    if s.get("interrupted"):
        first += " (interrupted)"
    elif "stopped" in s:
        first += " (stopped)"
    lines = [first]
    for label, text in _entries(trajectory):
        line, indent = f"  {label:<{LABEL}} {text}", (LABEL + 3) * " "
        lines += textwrap.wrap(line, WIDTH, subsequent_indent=indent, break_on_hyphens=False)
    return lines


def _entries(trajectory: Any) -> Iterator[tuple[str, str]]:
    """(label, text) of each line but the first."""
    s, e = trajectory.summary, trajectory.energy
    if s.get("dt_chosen"):
        yield "time step", f"{1e3 * s['dt']:g} ms, chosen for the robot"
    if "accuracy" in s:
        parts = f"{s['parts_taken']:,} of {1e3 * s['shortest_part']:.3g} to {1e3 * s['longest_part']:.3g} ms"
        missed = f"; {s['parts_not_met']} shortest ones missed it" if s["parts_not_met"] else ""
        yield "parts", f"{parts} to an accuracy of {s['accuracy']:g}{missed}"
    if s.get("steps_per_second"):
        yield "speed", f"{s['steps_per_second']:,.0f} steps/s ({s.get('integrator', '?')})"
    ends = f"{e.mechanical[0]:.4g} J at the start, {e.mechanical[-1]:.4g} J at the end"
    yield "energy", f"{ends}, {e.dissipated[-1]:.4g} J dissipated"
    momentum = ""
    if "momentum_balance_linear" in s:
        linear, angular = (s[f"momentum_balance_{k}"] for k in ("linear", "angular"))
        momentum = f", momentum {linear:.2e} N s and {angular:.2e} N m s"
    yield "balance", f"energy {s.get('energy_balance', math.nan):.2e} J{momentum}"
    corrected = ", ".join(f"{s[k]:.2e} {unit}" for k, unit in CORRECTED.items() if k in s)
    if corrected:
        yield "corrected", f"{corrected}, summed over the steps"
    if "loop_gap" in s:
        yield "loops", f"closed to {s['loop_gap']:.2g} m"
    if trajectory.springs:
        most = max(trajectory.springs, key=lambda each: float(np.abs(each.force).max(initial=0.0)))
        unit = "N m" if most.points is None else "N"
        held = "" if e.springs is None else f"; {e.springs[-1]:.4g} J stored at the end"
        largest = f"{np.abs(most.force).max():.4g} {unit} in {most.name!r}"
        yield "springs", f"{len(trajectory.springs)}, at most {largest}{held}"
    yield from _contact(trajectory)
    known = trajectory.__dict__.get("events", trajectory.__dict__.get("sampled_events"))
    if known is not None:
        for answer in answers(known, float(trajectory.t[-1]), trajectory.ground is not None):
            yield answer.label, str(answer)
        if "events" not in trajectory.__dict__:
            yield "events", f"from the recorded states, {trajectory.sampling()}, and peaks"
    if s.get("saturated"):
        shares = [f"{name} {100 * share:.3g} %" for name, share in list(s["saturated"].items())[:2]]
        more = f" and {len(s['saturated']) - 2} more" if len(s["saturated"]) > 2 else ""
        yield "saturated", f"{', '.join(shares)}{more} of the time"
    if s.get("estimate"):
        yield "estimate", s["estimate"]["words"]
    if s.get("default_damping"):
        joints = f"{counted(s.get('default_damping_joints', 0), 'joint')} without any"
        yield "damping", f"{assumed_damping(s['default_damping'])} assumed in {joints}"


def _contact(trajectory: Any) -> Iterator[tuple[str, str]]:
    s, robot = trajectory.summary, trajectory.robot
    if trajectory.ground is not None:
        fz, deepest = trajectory.contact_force[-1, 2], 1e3 * s.get("deepest_penetration", math.nan)
        yield "contact", f"{fz:.4g} N upward at the end, deepest penetration {deepest:.2g} mm"
        if s.get("shape_error"):
            yield "shapes", f"meshes touch within {1e3 * s['shape_error']:.2g} mm of their hulls"
    if s.get("self_collision_pairs"):
        pairs = s["self_collision_pairs"]
        yield "bodies", f"{pairs} pair{'s' if pairs > 1 else ''} that can collide"
    elif trajectory.ground is not None and robot is not None and robot.nbodies > 1:
        yield "bodies", "of the robot pass through each other (self-collision is off)"
