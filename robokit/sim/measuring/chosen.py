"""The measures of a rollout: what its steps must keep, and its columns in the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any

import numpy as np

from robokit.contact.measures import Columns, Subjects
from robokit.contact.measures import measures as known
from robokit.dynamics.function_objects import Function
from robokit.errors import ShapeError, UnknownName, WrongType
from robokit.sim.measuring.own_measure import Measure, OwnTracker, values_at_start
from robokit.sim.measuring.readings import Readings
from robokit.sim.step.measured import Kept, MeasuredLayout, Tracker
from robokit.sim.step.step_kernel import Program


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


class ChosenMeasures:
    """The measures of a rollout.

    Attributes:
        wanted: names of robokit's, and those of the user's own.
        subjects: whom robokit's are about.
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
        self.wanted, self.subjects = tuple(wanted), subjects_of(program)
        names = dict.fromkeys(known[each].reads for each in wanted if isinstance(each, str))
        self._kept = {name: Kept(name, self.subjects) for name in names}
        self.own = [(each, OwnTracker.of(each, program)) for each in wanted if isinstance(each, Measure)]
        trackers: list[Tracker] = [kept for kept in self._kept.values() if kept.start]
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

    def columns(self, readings: Readings) -> Columns:
        """All columns, in the order in which they were asked for."""
        found: Columns = {}
        for each in self.wanted:
            if isinstance(each, str):
                found |= known[each].read(readings.of(self._kept[known[each].reads]), readings)
        for measure, tracker in self.own:
            found |= tracker.columns(measure.name, readings.of(tracker), readings.dt)
        return found


def subjects_of(program: Program) -> Subjects:
    """Whom the measures of a program are about."""
    joints = {joint.body: joint.name for joint in program.robot.body_joints}
    stops = [i for i, stop in enumerate(program.joints.stop) if stop is not None]
    masses = program.robot.inertial_parameters[..., 1:, 0].reshape(-1, program.robot.nbodies)
    heavy = (np.flatnonzero(masses.any(axis=0)) + 1).tolist()
    return Subjects(program.touching_links, tuple((joints[i], i) for i in stops), tuple(heavy))
