"""What each step of a run was given and left: of these notes events, sensors, contacts and curves are made.

Steps note themselves as they are taken (contact/monitor.py). Of runs that are too long for that the steps are
taken once more, when somebody asks.
"""

from __future__ import annotations

import bisect
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np

from robokit.contact.monitor import NOTED_CONTACT
from robokit.dataclass_tools import short_repr
from robokit.sim.contact_state import scene_of
from robokit.sim.integrators import held_forces
from robokit.sim.motion import Carried, state_poses
from robokit.sim.step_kernel import Program
from robokit.sim.steppers import Stepper, in_blocks, stepper


@dataclass(frozen=True)
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
    """

    points: np.ndarray
    forces: np.ndarray
    links: tuple[str, ...]
    against: tuple[str, ...] = ()
    normals: np.ndarray | None = None

    __repr__ = short_repr

    def at(self, records: Any) -> Contacts:
        """The contacts at one record, (K, 3) each, or at several, (..., K, 3)."""
        normals = None if self.normals is None else self.normals[records]
        return replace(self, points=self.points[records], forces=self.forces[records], normals=normals)

    @property
    def of_ground(self) -> np.ndarray:
        """Which of the points touch the ground, (K,)."""
        return np.array([not name for name in self.against or [""] * len(self.links)], bool)


@dataclass(frozen=True)
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
    def of(force: np.ndarray, links: Iterable[str], dt: float) -> StepForces:
        """Those of steps of dt [s] from the start, given by (S, L, 3) numbers."""
        steps = np.arange(1, len(force) + 1)
        return StepForces(dt * steps, tuple(links), force)


# ---- notes -------------------------------------------------------------------------------------------------

MOST_BYTES = 128_000_000
"""Memory up to which steps are noted as they are taken: those of a humanoid for half a minute."""


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

    def add(self, step: int, tau: np.ndarray, given: Sequence[np.ndarray]) -> None:
        """From this step on."""
        if self.start and self.start[-1] == step:
            del self.start[-1], self.tau[-1], self.given[-1]
        self.start.append(step)
        self.tau.append(tau)
        self.given.append(given)

    def cut(self, step: int) -> None:
        """Forget those of this step and later ones; what holds before the first stays."""
        k = max(1, bisect.bisect_left(self.start, step))
        del self.start[k:], self.tau[k:], self.given[k:]

    def copy(self) -> StepInputs:
        """The same, to which nothing is added."""
        return StepInputs(self.start.copy(), self.tau.copy(), self.given.copy(), self.law)

    def at(self, step: int) -> tuple[np.ndarray, Sequence[np.ndarray], float]:
        """Those of a step, and the step from which there are others."""
        k = bisect.bisect_right(self.start, step)
        return self.tau[k - 1], self.given[k - 1], self.start[k] if k < len(self.start) else np.inf

    def rows(self, steps: Any) -> tuple[np.ndarray, list[np.ndarray]]:
        """Those of some steps, (S, ...) each."""
        k = np.searchsorted(self.start, steps, side="right") - 1
        given = [np.array(x, float)[k] for x in zip(*self.given, strict=True)]
        return np.array(self.tau, float)[k], given


@dataclass(frozen=True)
class Notes:
    """Notes of S steps, or of S parts of steps that are divided to an accuracy."""

    begin: np.ndarray  # when each begins, (S,) [steps]
    share: np.ndarray  # of a step that each is, (S,)
    # what is noted, (S, ...) each: "q", "v" before it; of passive motion "carried", what it was handed
    # besides; of steps with contact the forces (NOTES in contact/monitor.py)
    arrays: dict[str, np.ndarray]

    @staticmethod
    def taken(steps: Stepper, first: int = 0) -> Notes:
        """What a stepper has noted since it was last asked, of steps from this number on."""
        found = steps.notes()
        share = found.pop("share", np.ones(len(found["q"])))
        ends = np.concatenate([[0.0], np.cumsum(share)])  # exact: shares are powers of two
        return Notes(first + ends[:-1], share, found)

    def __len__(self) -> int:
        return len(self.share)

    @property
    def steps(self) -> int:
        """Number of the step after the last one."""
        return round(float(self.begin[-1] + self.share[-1])) if len(self) else 0

    @property
    def step(self) -> np.ndarray:
        """Number of the step of each, (S,)."""
        return np.floor(self.begin).astype(int)

    def first(self, steps: Any) -> Any:
        """Where these steps begin among the notes."""
        return np.searchsorted(self.step, steps, side="left")

    def last(self, steps: Any) -> Any:
        """Where their last parts are."""
        return np.searchsorted(self.step, steps, side="right") - 1

    def contacts(self, row: int) -> np.ndarray:
        """The contacts that pressed, (K, NOTED_CONTACT): see NOTES in contact/monitor.py."""
        ends = self.arrays["end"]
        return self.arrays["contact"][ends[row - 1] if row else 0 : ends[row]]

    def of(self, rows: np.ndarray) -> Notes:
        """Some of them."""
        found = {name: x[rows] for name, x in self.arrays.items() if name not in ("end", "contact")}
        if "end" in self.arrays:
            parts = [self.contacts(row) for row in rows.tolist()]
            found["end"] = np.cumsum([len(part) for part in parts], dtype=int)
            found["contact"] = np.concatenate([*parts, np.zeros((0, NOTED_CONTACT))])
        return Notes(self.begin[rows], self.share[rows], found)

    def before(self, step: int, first: int = 0) -> Notes:
        """Those of the steps first..step."""
        a, b = np.searchsorted(self.begin, [first, step])
        found = {name: x[a:b] for name, x in self.arrays.items() if name not in ("end", "contact")}
        if "end" in self.arrays:
            ends = self.arrays["end"]
            edge = int(ends[a - 1]) if a else 0
            found["end"] = ends[a:b] - edge
            found["contact"] = self.arrays["contact"][edge : int(ends[b - 1]) if b > a else edge]
        return Notes(self.begin[a:b], self.share[a:b], found)

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
        return Notes(begin, share, arrays)

    def with_end(self, q: np.ndarray, v: np.ndarray, steps: Any) -> list[np.ndarray]:
        """The states, q and v, at the beginnings of steps; (q, v) is that at the end of all."""
        rows = self.first(steps)
        return [np.concatenate([self.arrays[name], end[None]])[rows] for name, end in (("q", q), ("v", v))]


# ---- runs that are too long ------------------------------------------------------------------------------

Choose = Callable[[Notes], np.ndarray]
"""Which rows of notes are kept."""


def everything(notes: Notes) -> np.ndarray:
    """All rows."""
    return np.arange(len(notes))


def hardest(notes: Notes) -> np.ndarray:
    """The first row, and that with the largest force of the ground."""
    if "link" not in notes.arrays:
        return everything(notes)
    return np.unique([0, int(np.linalg.norm(notes.arrays["link"][:, -1, :3], axis=1).argmax())])


def stands_for(notes: Notes, marks: Sequence[int]) -> list[int]:
    """For how many steps each of the hardest rows stands: of those between the records, for itself."""
    begin, firsts, found, at = [*notes.step.tolist(), marks[-1]], set(marks), [], marks[0]
    for step, after in pairwise(begin):
        end = after if step in firsts else step + 1
        found.append(end - at)
        at = end
    found[-1] += marks[-1] - at
    return found


def around_records(notes: Notes) -> np.ndarray:
    """The rows of the last step, and of the first two of a run."""
    step = notes.step
    return np.flatnonzero((step == step[-1]) | (step < 2))


def retaken(
    program: Program,
    dt: float,
    start: tuple[np.ndarray, np.ndarray],
    marks: Sequence[int],
    inputs: StepInputs,
    choose: Choose = everything,
) -> Notes:
    """The steps of a run taken once more.

    Args:
        dt: time step [s].
        start: q and v.
        marks: steps taken until each record.
        inputs: of the steps.
        choose: which rows are kept of those from each record to the next.
    """
    own, parts = stepper(program, dt), []
    own.begin(*start)
    own.noting = True
    for first, last in pairwise(marks):
        at = first
        while at < last:
            tau, given, change = inputs.at(at)
            own.give(tau, given)
            at += own.take(int(min(last, change)) - at) or last
        block = Notes.taken(own, first)
        parts.append(block if choose is everything else block.of(choose(block)))
    return Notes.joined(parts) if parts else Notes.taken(own)


# ---- passive motion ---------------------------------------------------------------------------------------


def of_held_forces(
    program: Program, dt: float, wanted: Callable[..., Sequence[Any]], width: int, *states: np.ndarray
) -> np.ndarray:
    """``wanted(problem, q, v, tau, held)`` of steps of passive motion: (S, width) numbers.

    ``states`` are q, v, joint forces, what was handed on, and inputs of the steps, (S, ...) each.
    """
    robot, parameters = program.robot, program.parameters(dt).tolist()

    def text(qs: Any, vs: Any, taus: Any, kept: Any, *inputs: Any) -> Sequence[Any]:
        rows = robot.split_q(qs), robot.split_v(vs), robot.split_tau(taus)
        p = program.problem(parameters, inputs)
        return wanted(p, *rows, held_forces(p, *rows, dt, Carried(program.layout, kept)))

    return in_blocks(text, width, *states)


# ---- contacts --------------------------------------------------------------------------------------------


def contacts_of(
    program: Program, notes: Notes, marks: Sequence[int], q: np.ndarray, moving: bool = False
) -> Contacts:
    """Places and forces of contacts with what stands still, or what moves, in the steps that led to records.

    A link has as many points as it ever has at once on the ground, and on each other link. One that does not
    touch is at the link's origin.

    Args:
        notes: of these steps at least.
        marks: steps taken until each record.
        q: configurations of the records, (T, nq).
        moving: those between links that move, and no others.
    """
    names = scene_of(program).links
    rows = notes.last(np.array(marks[1:], int) - 1)
    moves = np.array([bool(name) and program.robot.link(name).body > 0 for name in names])
    found = [np.zeros((0, 11)), *(_pressing(notes.contacts(row), moves == moving) for row in rows.tolist())]
    pairs = [[(names[int(b)], names[int(a)]) for a, b in touching[:, :2].tolist()] for touching in found]
    most: Counter[tuple[str, str]] = Counter()
    for each in pairs:
        most |= Counter(each)
    place = {link.name: k for k, link in enumerate(program.robot.links)}
    order = sorted(most, key=lambda pair: (place[pair[0]], place.get(pair[1], -1)))
    columns = [pair for pair in order for _ in range(most[pair])]
    links, against = (tuple(pair[k] for pair in columns) for k in range(2))
    points, forces = _origins(program, links, q), np.zeros((len(q), len(columns), 3))
    normals = np.zeros_like(forces)
    for t, touching in enumerate(found):
        free = {pair: columns.index(pair) for pair in most}
        for pair, numbers in zip(pairs[t], touching[:, 2:].tolist(), strict=True):
            k = free[pair]
            points[t, k], forces[t, k], normals[t, k] = numbers[:3], numbers[3:6], numbers[6:]
            free[pair] += 1
    return Contacts(points, forces, links, against, normals)


def _pressing(contacts: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Those that press against the shapes that are wanted: shapes, place [m], force [N], normal, (K, 11)."""
    presses = contacts[:, 5:8].any(axis=1)
    found = contacts[presses & wanted[contacts[:, 0].astype(int)]]
    return np.hstack([found[:, :8], found[:, 11:]])


def _origins(program: Program, links: Sequence[str], q: np.ndarray) -> np.ndarray:
    """Origins of links in the world, (T, K, 3) [m]."""
    R, p = state_poses(program.robot, q)
    origins = np.zeros((len(q), len(links), 3))
    for k, (body, place) in enumerate(map(program.robot.frame, links)):
        origins[:, k] = p[:, body] + R[:, body] @ place.position
    return origins
