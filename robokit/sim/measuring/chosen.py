"""The measures of a rollout: what its steps must keep, and its columns in the end."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from robokit.dynamics.function_objects import Function
from robokit.errors import ShapeError, UnknownName, WrongType
from robokit.sim.measuring.measure_table import measures as known
from robokit.sim.measuring.own_measure import Measure, OwnTracker, values_at_start
from robokit.sim.measuring.readings import Columns, Readings
from robokit.sim.step.measured import MeasuredLayout, Tracker
from robokit.sim.step.step_kernel import Program
from robokit.sim.step.trackers import Deepest, FastestBody, Limits, LinkForces, Motion, PastLimits, PeakLoad


def wanted_measures(given: Any) -> tuple[str | Measure, ...]:
    """What was asked for, checked.

    Args:
        given: True for all that robokit knows, a name or a :class:`Measure`, several of them; None or False
            for none.

    Raises:
        UnknownName: no measure of that name.
        WrongType: neither a name nor a Measure.
        ShapeError: two of the same name.
    """
    if given is None or given is False:
        return ()
    if given is True:
        return tuple(known)
    several = [given] if isinstance(given, str | Measure | Function) else given
    if isinstance(several, Mapping) or not hasattr(several, "__iter__"):
        raise WrongType("measures", given, "True, or names and rk.Measure(...)", "print(rk.measures)")
    found: list[str | Measure] = []
    for each in several:
        if isinstance(each, Function):
            raise WrongType(
                "measures", each, "names and rk.Measure(...)", "say how to reduce it over the steps"
            )
        if not isinstance(each, str | Measure):
            raise WrongType("measures", each, "names and rk.Measure(...)", "print(rk.measures)")
        if isinstance(each, str):
            if each == "all":
                found += [name for name in known if name not in found]
                continue
            if each not in known:
                raise UnknownName("measure", each, [*known, "all"], "(print(rk.measures) lists them)")
        if each not in found:
            found.append(each)
    names = [each.name for each in found if isinstance(each, Measure)]
    twice = [name for name in names if names.count(name) > 1 or name in known]
    if twice:
        raise ShapeError(f"measures: several are named {twice[0]!r}; give rk.Measure(..., name=...)")
    return tuple(found)


@dataclass(frozen=True)
class Failures:
    """Rows of a rollout that are no motion of the robot.

    Attributes:
        reason: why, (B,); None of a sound row.
        time: from when on [s], (B,); NaN of a sound row.
    """

    reason: np.ndarray
    time: np.ndarray


class ChosenMeasures:
    """The measures of a rollout.

    Attributes:
        wanted: names of robokit's, and those of the user's own.
        program: the step, with what it must keep.
    """

    def __init__(self, wanted: Sequence[str | Measure], program: Program) -> None:
        """Find out what the steps must keep.

        Args:
            wanted: from :func:`wanted_measures`.
            program: the step.

        Raises:
            ShapeError, UnknownName: a measure of the user's own does not fit the robot.
        """
        self.wanted, self._bare = tuple(wanted), program
        names = {each for each in wanted if isinstance(each, str)}
        peaks = bool({"peak_force", "peak_force_by_link"} & names)
        touches = bool({"first_contact", "first_contact_by_link"} & names)
        trackers = list[Tracker]()
        self._links = program.touching_links
        self._forces = LinkForces(len(self._links), peaks, touches)
        stops = tuple(i for i, stop in enumerate(program.joints.stop) if stop is not None)
        joints = {joint.body: joint.name for joint in program.robot.body_joints}
        self._joints = tuple(joints[i] for i in stops)
        self._limits, self._past = Limits(stops), PastLimits(stops)
        masses = program.robot.inertial_parameters[..., 1:, 0].reshape(-1, program.robot.nbodies)
        self._fastest = FastestBody(tuple((np.flatnonzero(masses.any(axis=0)) + 1).tolist()))
        if peaks or touches:
            trackers.append(self._forces)
        needs: list[tuple[Tracker, set[str]]] = [
            (PeakLoad(), {"peak_load"}),
            (Deepest(), {"penetration"}),
            (self._limits, {"limits", "limits_by_joint"}),
            (self._past, {"limits"}),
            (Motion(), {"rest"} if masses.any() else set()),
            (self._fastest, {"speed"}),
        ]
        trackers += [tracker for tracker, by in needs if by & names]
        self.own = [(each, OwnTracker.of(each, program)) for each in wanted if isinstance(each, Measure)]
        trackers += [tracker for _, tracker in self.own]
        self.program = copy(program)
        self.program.measured = MeasuredLayout(tuple(trackers))

    def first(self, q: np.ndarray, v: np.ndarray, tau: np.ndarray, dt: float) -> np.ndarray:
        """What is kept before the first step, (B, size).

        Args:
            q, v: the starts, (B, ...).
            tau: joint forces of the first step, (B or 1, nv).
            dt: time step [s].
        """
        layout = self.program.measured
        numbers = np.tile(np.array(layout.start), (len(q), 1))
        for _, tracker in self.own:
            part = layout.part(tracker)
            numbers[:, part] = tracker.first(values_at_start(self.program, tracker, q, v, tau, dt))
        return numbers

    def columns(self, readings: Readings, failures: Failures) -> Columns:
        """All columns, in the order in which they were asked for."""
        found: Columns = {}
        for each in self.wanted:
            if isinstance(each, Measure):
                continue
            found |= self._column(each, readings, failures)
        layout, sums = self.program.measured, self.program.sums
        for measure, tracker in self.own:
            part = layout.part(tracker)
            numbers = readings.entries[:, sums + part.start : sums + part.stop].T
            found |= tracker.columns(measure.name, numbers, readings.dt)
        return found

    def _column(self, name: str, readings: Readings, failures: Failures) -> Columns:
        of, links = readings.of, self._links
        made: dict[str, Callable[[], Columns]] = {
            "peak_force": lambda: readings.peak_forces(self._forces, links, False),
            "peak_force_by_link": lambda: readings.peak_forces(self._forces, links, True),
            "peak_load": lambda: readings.largest("peak_load", of(PeakLoad())),
            "first_contact": lambda: readings.first_contacts(self._forces, links, False),
            "first_contact_by_link": lambda: readings.first_contacts(self._forces, links, True),
            "penetration": lambda: readings.largest("deepest_penetration", of(Deepest()), square=False),
            "overlap": lambda: {"deepest_overlap": readings.entry("overlap")},
            "limits": lambda: readings.limits(self._limits, self._past, self._joints),
            "limits_by_joint": lambda: readings.limits_by_joint(self._limits, self._joints),
            "speed": lambda: readings.speed(self._fastest),
            "rest": lambda: readings.rest(Motion()),
            "height": readings.heights,
            "energy": readings.energy,
            "momentum": readings.momentum,
            "failure": lambda: {"failure": failures.reason, "failure_time": failures.time},
        }
        return made[name]()
