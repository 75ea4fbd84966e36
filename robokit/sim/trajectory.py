"""Trajectory: recorded states of a simulation, with its energies, momenta and contact forces."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from robokit import hooks
from robokit.arguments import one_of, path_argument
from robokit.dataclass_tools import cached_attribute, equal, frozen
from robokit.dynamics import center_of_mass, forward_kinematics, link_acceleration, link_velocity
from robokit.dynamics.choices import ORIGIN
from robokit.dynamics.constrained import FRAMES, JointReactions
from robokit.errors import (
    MissingDependency,
    ModelError,
    RobokitError,
    ShapeError,
    UnknownName,
    warn,
    warnings_into,
)
from robokit.files import output_path, read_arrays, replacing
from robokit.model.geometry import Mesh, Shape
from robokit.model.robot import Robot, check_robot, with_shapes
from robokit.serialize import INVALID_CONTENT
from robokit.sim.events import (
    Answer,
    Contacts,
    Event,
    Notes,
    StepFacts,
    StepForces,
    StepInputs,
    answers,
    contacts_of,
    events_of,
    from_rows,
    mean_of_parts,
    report,
    retaken,
    step_facts,
)
from robokit.sim.force_elements import SpringRecord
from robokit.sim.ground import HEIGHTS, Ground, record_ground, restored_ground
from robokit.sim.sensors import Sensors, StepMotion, instants, kicks, step_motion
from robokit.sim.step_kernel import Program
from robokit.stages import stage
from robokit.urdf import dump, loads_urdf

# ==== the robot in the file of a trajectory =======================================================
# The robot of a saved trajectory: what is stored of it, and the same robot again.
#
# Stored are the robot as URDF text, where a URDF can say it; its base, gravity and treatment of mimic joints;
# and as numbers its inertial parameters and the places and axes of its joints. The robot is made of the text
# alone. No other file is read, and meshes are looked for only in folders that the caller names. The numbers
# then show whether it is the robot that moved.


TOLERANCE = 1e-9  # share by which numbers may differ: angles of a URDF are rotations but for rounding

Folders = Sequence[str | os.PathLike[str]]


def record(robot: Robot) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """What is stored of a robot: words for JSON, and arrays of numbers."""
    text: str | None = None
    with suppress(ModelError), warnings_into([]):  # what a URDF cannot say the numbers hold, or nothing does
        text = dump(robot, own_types=True)
    about = {
        "name": robot.name,
        "base": robot.base,
        "gravity": list(robot.tree.gravity),
        "mimic": _mimic(robot),
        "joint_names": list(robot.joint_names),
        "joint_kinds": [joint.kind for joint in robot.joints],
        "parameters_are_an_input": robot.parameters is not None,
        "fingerprint": robot.fingerprint.hex(),
        "source": str(robot.source),
        "urdf": text,
    }
    return about, {"robot_parameters": robot.inertial_parameters, "robot_joints": joint_numbers(robot)}


def joint_numbers(robot: Robot) -> np.ndarray:
    """Place, axis and pitch of each body's joint, (N, 16): rotation by rows, position, axis, pitch."""
    tree = robot.tree
    rows = [
        [*(x for row in X.E.rows for x in row), *X.r, *joint.axis, joint.pitch]
        for joint, X in zip(tree.joint[1:], tree.XT[1:], strict=True)
    ]
    return np.array(rows, dtype=float).reshape(len(rows), 16)


def _mimic(robot: Robot) -> str | None:
    return "couple" if robot.coupling is not None else None


def restored(
    given: Mapping[str, Any], numbers: Mapping[str, np.ndarray], package_dirs: Folders
) -> Robot | None:
    """The robot of a record, made of its text; None where there is no text that makes this robot.

    Warns of what differs where the text does not make the robot that was stored.
    """
    text = given.get("urdf")
    if not isinstance(text, str):
        return None
    try:
        robot = loads_urdf(text, base=given["base"], package_dirs=package_dirs, mimic=given.get("mimic"))
        robot = fitted(_with_files_in(robot, package_dirs), given, numbers, exactly=True)
    except (RobokitError, LookupError, TypeError, ValueError) as error:
        reason = " ".join(str(error).split())[:300]
        warn(
            f"the text in the file does not make the robot of this trajectory ({reason}): .robot is None; "
            "give it with Trajectory.load(path, robot=...)",
            UserWarning,
        )
        return None
    return robot


def fitted(
    robot: Robot, given: Mapping[str, Any], numbers: Mapping[str, np.ndarray], exactly: bool = False
) -> Robot:
    """A robot under the gravity of the record (``given`` and ``numbers``), if it is the recorded one.

    ``exactly``: give it the recorded inertial parameters where its own are not these to the bit. Raises
    ShapeError, which says what differs, for another robot.
    """
    differs = _difference(robot, given, numbers, inertias=not exactly)
    if differs:
        raise ShapeError(
            f"robot {robot.name!r} does not fit this trajectory of {given.get('name')!r}: {differs}"
        )
    if "gravity" in given:
        robot = robot.with_gravity(given["gravity"])
    stored = numbers.get("robot_parameters")
    if exactly and stored is not None:
        same = np.allclose(robot.inertial_parameters, stored, rtol=TOLERANCE, atol=1e-15)
        if given.get("parameters_are_an_input") or not same:
            robot = robot.with_inertias(stored)
    return robot


def _difference(
    robot: Robot, given: Mapping[str, Any], numbers: Mapping[str, np.ndarray], inertias: bool
) -> str:
    """What makes a robot another than the recorded one, in words; "" for nothing. Old files record less."""
    words: tuple[tuple[str, Any], ...] = (
        ("base", robot.base),
        ("mimic", _mimic(robot)),
        ("sizes", [robot.nq, robot.nv]),
        ("joint_names", list(robot.joint_names)),
        ("joint_kinds", [joint.kind for joint in robot.joints]),
    )
    for what, mine in words:
        if what in given and given[what] != mine:
            return _words(what.replace("_", " "), mine, given[what])
    joints = numbers.get("robot_joints")
    if joints is not None:
        own = joint_numbers(robot)
        if own.shape != joints.shape:
            return f"it has {len(own)} moving bodies, the trajectory's has {len(joints)}"
        k = _first_apart(own, joints)
        if k is not None:
            return f"joint {robot.body_joints[k].name!r} is at another place or has another axis"
    stored = numbers.get("robot_parameters")
    if stored is not None:
        own = robot.inertial_parameters
        if own.shape != stored.shape:
            return f"its inertial parameters have shape {own.shape}, the trajectory's {stored.shape}"
        k = _first_apart(own, stored) if inertias else None
        if k is not None:
            mass, was = float(robot.total_mass), float(stored[1:, 0].sum())
            return (
                f"link {robot.body_name(k)!r} has another mass or inertia (in all {mass:.6g} kg, the "
                f"trajectory's {was:.6g} kg)"
            )
    return ""


def _words(what: str, own: Any, given: Any) -> str:
    if what == "sizes":
        return f"it has nq {own[0]} and nv {own[1]}, the trajectory {given[0]} and {given[1]}"
    if isinstance(own, list) and isinstance(given, list):
        if len(own) != len(given):
            return f"it has {len(own)} {what}, the trajectory's has {len(given)}"
        own, given = next((a, b) for a, b in zip(own, given, strict=True) if a != b)
    return f"its {what} is {own!r}, the trajectory's {given!r}"


def _first_apart(a: np.ndarray, b: np.ndarray) -> int | None:
    """The first row of two arrays (n, k) that differs by more than rounding."""
    scale = np.abs(b).max(axis=1, keepdims=True, initial=0.0)
    apart = ~(np.abs(a - b) <= TOLERANCE * scale).all(axis=1)
    return int(apart.argmax()) if apart.any() else None


def _with_files_in(robot: Robot, folders: Folders) -> Robot:
    """The robot with the meshes and pictures that are in these folders, and no others."""
    roots = [Path(folder).expanduser().resolve() for folder in folders]

    def inside(path: str | Path | None) -> bool:
        if path is None:
            return False
        place = Path(path).resolve()
        return any(place.is_relative_to(root) for root in roots)

    def kept(shape: Shape) -> Shape:
        geometry = shape.geometry
        if isinstance(geometry, Mesh) and not inside(geometry.path):
            geometry = replace(geometry, path=None)
        return replace(shape, geometry=geometry, texture=shape.texture if inside(shape.texture) else None)

    return with_shapes(robot, kept)


# ==== states, energies and contacts of a run, and their file ======================================


FORMAT = 2

SAVED_STEPS = 5_000  # steps of a run up to which its events are saved even if nobody has asked for them

POSES = 4096  # records whose links' poses are in memory at once


@frozen
class Energy:
    """Energies over time, (T,) each [J].

    Attributes:
        kinetic: 1/2 v^T H v.
        potential: potential energy of gravity; zero with the centre of mass at the world origin's height.
        dissipated: energy dissipated so far by contacts, joint damping, joint friction and joint limits,
            including energy that contact springs store for a moment.
        work: work so far of the controller, actuators, prescribed motions and pushes.
        springs: energy stored in springs between points and at joints (``rk.Spring``), 0 at their rest
            lengths.
    """

    kinetic: np.ndarray
    potential: np.ndarray
    dissipated: np.ndarray
    work: np.ndarray
    springs: np.ndarray | None = None

    def __repr__(self) -> str:
        known = {f.name: x for f in fields(self) if (x := getattr(self, f.name)) is not None}
        parts = (f"{n} " + (f"{x[0]:.4g} to {x[-1]:.4g}" if len(x) else "none") for n, x in known.items())
        return f"<Energy of {len(self.kinetic)} states [J]: {', '.join(parts)}>"

    @property
    def mechanical(self) -> np.ndarray:
        """Kinetic + potential + spring energy."""
        found = self.kinetic + self.potential
        return found if self.springs is None else found + self.springs

    @property
    def total(self) -> np.ndarray:
        """Mechanical + dissipated - work: constant except for the error of the time integration."""
        return self.mechanical + self.dissipated - self.work


class ForcesByLink(dict[str, np.ndarray]):
    """Forces by the name of the link."""

    def __missing__(self, name: str) -> np.ndarray:
        raise UnknownName("link", name, self, "(links that can touch the ground)")


@dataclass
class Trajectory:
    """Recorded states of a simulation, with its energies and impulses.

    Attributes:
        t: (T,) [s].
        q: (T, nq) configurations [rad | m | unit quaternion wxyz].
        v: (T, nv) velocities [rad/s | m/s].
        energy: kinetic, potential, dissipated, work, mechanical, total, (T,) each [J].
        momentum: (T, 6) centroidal momentum [angular about the centre of mass; linear], world axes
            [N m s; N s].
        contact_force: (T, 3) force of the ground on the robot, world axes [N]: the impulse of the step before
            each state, divided by the step; 0 at the start.
        robot: the robot; None if a loaded file does not contain one that can be rebuilt.
        tau: (T, nv) controller's forces [N m | N] in the step after each state; for the last state, in the
            step before it. None without a controller.
        ground: the ground, or None.
        actuator_force: (T, nv) forces of the actuators [N m | N], including ``tau`` of the same joints: the
            mean over the time since the previous record; 0 at the start. None without actuators.
        contact_impulse: (T, 3) impulse of the ground on the robot since the start, world axes [N s].
        summary: numbers about the run: steps, steps_per_second, energy_balance, deepest_penetration, ...
        losses: energy dissipated so far, (T,) each [J]: by "contact", "friction" (with joint damping),
            "stops" (joint limits) and "collision"; their sum is ``energy.dissipated``.
    """

    t: np.ndarray
    q: np.ndarray
    v: np.ndarray
    energy: Energy
    momentum: np.ndarray
    contact_force: np.ndarray
    robot: Robot | None
    tau: np.ndarray | None = None
    ground: Ground | None = None
    summary: dict[str, Any] = field(default_factory=dict, compare=False)  # has times of computing
    program: Program | None = field(default=None, repr=False, compare=False)
    actuator_force: np.ndarray | None = None
    contact_impulse: np.ndarray | None = None
    marks: Sequence[int] = field(default=(), repr=False, compare=False)
    inputs: StepInputs | None = field(default=None, repr=False, compare=False)
    notes: Notes | None = field(default=None, repr=False, compare=False)
    losses: dict[str, np.ndarray] = field(default_factory=dict, repr=False)

    __eq__ = equal

    def __repr__(self) -> str:
        name = self.robot.name if self.robot is not None else self.summary.get("robot", "?")
        return f"<Trajectory of {name!r}: {len(self.t)} states, {self.t[0]:g} to {self.t[-1]:g} s>"

    if not TYPE_CHECKING:  # for mypy, what is not defined here does not exist

        def __getattr__(self, name: str) -> Any:
            from robokit.unknown_names import OF_A_RUN, no_attribute

            raise no_attribute(self, name, OF_A_RUN)

    def _repr_html_(self) -> str:
        """A still of the motion and a button that opens its page, as a notebook cell."""
        return str(hooks.call("notebook_html", self))

    def __len__(self) -> int:
        return len(self.t)

    @cached_attribute
    def contacts(self) -> Contacts | None:
        """Positions and forces of contacts with the ground and with links that are fixed to the world.

        Computed at the first use; None without a ground.
        """
        return self._contacts[0]

    @cached_attribute
    def body_contacts(self) -> Contacts | None:
        """Positions and forces of contacts between links that move; the forces are those on ``links``.

        ``against`` is the other link of each. Computed at the first use; None where nothing can touch.
        """
        return self._contacts[1]

    @cached_attribute
    def _contacts(self) -> tuple[Contacts | None, Contacts | None]:
        """Contacts with what stands still, and between links that move: the steps are taken once for both."""
        program = self.program
        if program is None or not (program.contact or program.ground is not None):
            return None, None
        known = self._around_records, self.marks, self.q
        still = None if program.ground is None else contacts_of(*known)
        return still, contacts_of(*known, moving=True) if program.contact else None

    def _noted(self, around: bool = False) -> Notes:
        """Notes of all steps, or at least of those ``around`` the records, see :func:`retaken`.

        Those of every step are kept: the events, the contacts and the page of a run take its steps once more
        together.
        """
        if self.notes is not None and len(self.notes):
            return self.notes
        assert self.program is not None and self.inputs is not None
        marks = self.marks
        if len(marks) == 1:  # of a run without a step, what the first would be
            marks = [marks[0], marks[0] + 1]
        run = self.program, self.summary["dt"], (self.q[0], self.v[0]), marks, self.inputs
        found = retaken(*run, around)
        assert found is not None
        if not around:
            self.notes = found
        return found

    @cached_attribute
    def _around_records(self) -> Notes:
        """Notes of the steps around the records, for contacts, sensors and accelerations together."""
        return self._noted(around=True)

    @cached_attribute
    def contact_forces(self) -> dict[str, np.ndarray]:
        """Force of the ground on each link that can touch it, by its name, (T, 3) in world axes [N].

        The sum of ``contacts.forces`` over the link's points on the ground; the sum over all links is
        ``contact_force``. Of a file without ``step_forces`` only the links that did touch it are known.

        Raises:
            UnknownName: from the result, for a link that cannot touch the ground.
        """
        contacts = self.contacts
        if contacts is None:
            return ForcesByLink()
        links = np.where(contacts.of_ground, contacts.links, "")
        names = links[contacts.of_ground].tolist()
        if self.program is not None:
            names = self.program.touching_links
        elif self.step_forces is not None:
            names = self.step_forces.links
        return ForcesByLink({name: contacts.forces[:, links == name].sum(axis=1) for name in names})

    @cached_attribute
    def step_facts(self) -> StepFacts | None:
        """What happened in every step; None of a trajectory that was loaded."""
        if self.program is None or self.inputs is None:
            return None
        return self._facts(self._noted())

    def _facts(self, notes: Notes) -> StepFacts:
        """Those of notes; of a run without a step, none."""
        return step_facts(notes if len(self.marks) > 1 else notes.of(np.arange(0)))

    @cached_attribute
    def events(self) -> list[Event]:
        """Contacts, impacts, sliding, limits, saturation, rest and failure, in the order of time.

        Every step counts, whatever was recorded. See :class:`robokit.sim.events.Event`.

        Raises:
            RobokitError: the trajectory was loaded from a file that has no events.
        """
        facts = self.step_facts
        if facts is None:
            raise RobokitError("events: the file of this trajectory has none; use .events before .save")
        assert self.program is not None
        with stage("finding events"):
            return events_of(self.program, facts, self.summary)

    @cached_attribute
    def sampled_events(self) -> list[Event]:
        """The events from the recorded states and, between each two, the step with the largest force.

        For runs so long that facts of every step do not fit into memory (9 kB a step of a humanoid): times
        and sizes are rough where states were recorded seldom. The largest force on all links is exact.

        Raises:
            RobokitError: the trajectory was loaded from a file.
        """
        if self.program is None or self.inputs is None:
            raise RobokitError("sampled_events: not available from a file; use .events before .save")
        if "events" in vars(self) or self.notes is not None or not self.program.contact:
            return self.events
        return events_of(self.program, self._facts(self._around_records), self.summary)

    @cached_attribute
    def step_forces(self) -> StepForces | None:
        """Force of the ground on each link in every step, whatever was recorded; None without a ground.

        A file has it if it has events, else it is None.
        """
        if self.program is None or self.program.ground is None:
            return None
        facts = self.step_facts
        if facts is None:
            return None
        links, dt = self.program.touching_links, self.summary["dt"]
        return StepForces.of(facts.force_of_steps, links, self.t[0], dt)

    @property
    def answers(self) -> list[Answer]:
        """First contact, largest force, joint limits, slips, rest and so on, derived from the ``events``.

        Raises:
            RobokitError: the trajectory was loaded from a file that has no events.
        """
        return answers(self.events, float(self.t[-1]), self.ground is not None)

    @property
    def sensors(self) -> Sensors:
        """Simulated sensors: ``imu(link)``, ``contact_wrench(link)``, ``joint_force(joint)``.

        Raises:
            RobokitError: the trajectory was loaded from a file.
        """
        if self.program is None or self.inputs is None:
            raise RobokitError("sensors: not available from a file; use them before .save")
        notes, ends = self._around_records, [self.q.copy(), self.v.copy()]
        for x, after in zip(ends, notes.with_end(self.q[-1], self.v[-1], [self.marks[0] + 1]), strict=True):
            x[0] = after[0]
        steps = np.maximum(np.array(self.marks) - 1, self.marks[0])
        return Sensors(notes, steps, ends, lambda: self.contacts, start=True)

    @cached_attribute
    def springs(self) -> tuple[SpringRecord, ...]:
        """Length, rate, force and energy of each spring in the recorded states, in the order given.

        Of a trajectory that was loaded they are those that were saved.
        """
        if self.program is None:
            return ()
        return self.program.springs.records(self.program.robot, self.q, self.v)

    @cached_attribute
    def prescribed_force(self) -> dict[str, np.ndarray]:
        """The force [N m | N] that prescribed joints took in the step that led to each state, (T,) by name.

        What an actuator or the controller gives the same joint is part of it; springs, damping and friction
        are not. That of the start is the one of the first step.
        """
        if self.program is None or not self.program.given.motions:
            return {}
        names = {joint.body: joint.name for joint in self.program.robot.joints}
        return {
            names[body]: self.sensors.joint_force(names[body]).actuator[:, 0]
            for body in self.program.given.motions
        }

    @cached_attribute
    def loop_forces(self) -> dict[str, np.ndarray]:
        """The wrench [N m; N] of each loop joint on its successor link in the step after each state, (T, 6).

        By the joint's name, in axes of the joint's frame on its predecessor and about that frame's origin;
        that of the last state is the one of the step before it. Where loops are redundant it is the least
        that does what they do.
        """
        if self.program is None or self.inputs is None or self.program.loops is None:
            return {}
        notes, marks = self._noted(), self.marks
        if self.program.contact:
            steps = np.minimum(marks, max(marks[-1] - 1, marks[0]))
            taken, begin = notes.parts(steps)
            found = kicks(taken)[1]
            return {name: mean_of_parts(x, begin, taken.share) for name, x in found.items()}
        return instants(notes, marks, None).loops

    @cached_attribute
    def _motion(self) -> StepMotion | None:
        """Accelerations and forces at the records; None of a trajectory that was loaded."""
        if self.program is None or self.inputs is None:
            return None
        return step_motion(self._around_records, self.marks, (self.q[-1], self.v[-1]))

    @cached_attribute
    def a(self) -> np.ndarray:
        """Accelerations of the joints, (T, nv) [rad/s^2 | m/s^2], as :func:`robokit.aba` gives them.

        In passive motion those at each record, with the forces that the next step begins with. With contact
        the mean over the step that led to each record, half a step before it, and at the start that of the
        first step: the change of velocity by its forces over dt, so that an impact is its impulse over dt.

        Raises:
            RobokitError: the trajectory was loaded from a file that has none: it has them where they were
                asked for before :meth:`save`.

        Example:
            >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
            >>> run = rk.simulate(robot, [0.5, 0.2], duration=0.05)
            >>> run.a[0].round(3)
            array([-7.203,  1.344])
        """
        motion = self._known_motion("a")
        return motion.mean(motion.a)

    def _known_motion(self, what: str) -> StepMotion:
        if self._motion is None:
            raise RobokitError(f"{what}: not available from this file; use it before .save")
        return self._motion

    def joint_reactions(self, frame: str = "link") -> JointReactions:
        """The wrench of each joint's parent on its child at the joint's origin, at each record.

        It is :func:`robokit.joint_reactions` of the simulated motion, with the forces of contacts, also
        between links, of pushes, motors, friction, joint limits and loops. Times are those of :attr:`a`: with
        the integrator "contact" the values are means over the step that led to a record, for which the
        Newton-Euler equations of every link hold to rounding, impacts included.

        Args:
            frame: axes of both vectors: "link", the child link's; "world"; "joint", those of the joint's
                frame on its parent, which do not turn with the joint.

        Returns:
            ``reactions[joint]`` = [n; f] [N m; N], (T, 6); all of them as .wrenches (T, n, 6), .moment and
            .force.

        Raises:
            UnknownName: no such frame.
            RobokitError: the trajectory was loaded from a file.

        Example:
            >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
            >>> run = rk.simulate(robot, [0.0, 0.0], duration=0.05)
            >>> round(float(run.joint_reactions("world")["upper_joint"][-1, 5]), 3)  # it carries the weight
            21.582
        """
        one_of("frame", frame, FRAMES)
        return self._known_motion("joint_reactions").reactions(self._own_robot("joint_reactions"), frame)

    def link_velocity(self, link: str, axes: str = "world", at: Any = ORIGIN) -> np.ndarray:
        """[omega; velocity of a point] of a link at each record, (T, 6) [rad/s; m/s].

        Args:
            link: its name.
            axes: "world", or "body" for the link's own.
            at: the point in the link's frame (3,) [m], or a :class:`robokit.Placement`.

        Raises:
            UnknownName: no such link or axes.
        """
        return link_velocity(self._own_robot("link_velocity"), self.q, self.v, link, axes, at)

    def link_acceleration(
        self, link: str, axes: str = "world", at: Any = ORIGIN, classical: bool = True
    ) -> np.ndarray:
        """[alpha; acceleration of a point] of a link, (T, 6) [rad/s^2; m/s^2], at the times of :attr:`a`.

        Gravity is not included: an accelerometer measures this minus gravity.

        Args:
            link, axes, at: as in :meth:`link_velocity`.
            classical: True for the acceleration of the point, False for the spatial acceleration
                (:func:`robokit.link_acceleration`).

        Raises:
            UnknownName: no such link or axes.
            RobokitError: the trajectory was loaded from a file.

        Example:
            >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
            >>> run = rk.simulate(robot, [0, 0], [2.0, 0], duration=0.05)
            >>> round(float(run.link_acceleration("lower")[0, 5]), 3)  # upwards, omega^2 r
            2.0
        """
        motion = self._known_motion("link_acceleration")
        robot = self._own_robot("link_acceleration")
        return motion.mean(link_acceleration(robot, motion.q, motion.v, motion.a, link, axes, at, classical))

    @cached_attribute
    def center_of_mass(self) -> np.ndarray:
        """Centre of mass of the moving bodies in the world at each record, (T, 3) [m].

        Raises:
            RobokitError: the trajectory has no robot.
        """
        return center_of_mass(self._own_robot("center_of_mass"), self.q)

    def link_poses(self, link: str) -> np.ndarray:
        """Pose of a link in the world at each record.

        Those of all links at once are ``rk.forward_kinematics(run.robot, run.q)``.

        Args:
            link: its name.

        Returns:
            (T, 4, 4) homogeneous matrices [[R, p], [0, 1]], x_world = R x_link + p [m].

        Raises:
            UnknownName: no such link; says the nearest names.
            RobokitError: the trajectory has no robot.

        Example:
            >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
            >>> run = rk.simulate(robot, [1.0, 0.0], duration=0.05)
            >>> run.link_poses("lower")[-1, :3, 3].round(3)
            array([-0.415,  0.   , -0.279])
        """
        robot = self._own_robot("link_poses")
        robot.link(link)
        made = np.zeros((len(self.t), 4, 4))
        made[:, 3, 3] = 1.0
        for first in range(0, len(made), POSES):  # all links of a long run would be gigabytes
            R, p = forward_kinematics(robot, self.q[first : first + POSES])[link]
            made[first : first + POSES, :3, :3], made[first : first + POSES, :3, 3] = R, p
        return made

    def _own_robot(self, what: str) -> Robot:
        if self.robot is None:
            raise RobokitError(f"{what}: needs the robot: Trajectory.load(path, robot=...)")
        return self.robot

    def report(self) -> list[str]:
        """A report of the run, some lines of text; it has the ``answers`` once ``events`` were computed."""
        return report(self)

    def sampling(self) -> str:
        """The recording interval, in words."""
        return f"every {1e3 * float(np.diff(self.t).max(initial=0.0)):.3g} ms"

    # ---- files ---------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the motion to one .npz file, with the robot as URDF text and its parameters as numbers.

        What is computed from the steps again when it is asked for (``sensors``, ``joint_reactions``) is not
        in the file.

        Args:
            path: path of the file; ".npz" is appended if it is missing.

        Returns:
            the path of the file.

        Raises:
            WriteError: the file cannot be written.

        Example:
            >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
            >>> path = rk.simulate(robot, [1.0, 0.0], duration=0.05).save("swing.npz")
            >>> rk.Trajectory.load(path).robot.name
            'double_pendulum'
        """
        path = path_argument("path", path)
        if path.name and path.suffix != ".npz":
            path = path.with_name(path.name + ".npz")
        output_path("path", path)
        about: dict[str, Any] = {"format": FORMAT, "summary": self.summary, "ground": None, "robot": None}
        arrays = {name: getattr(self, name) for name in ("t", "q", "v", "momentum", "contact_force")}
        energies = {f"energy_{f.name}": getattr(self.energy, f.name) for f in fields(Energy)}
        arrays |= {name: x for name, x in energies.items() if x is not None}
        if self.ground is not None:
            about["ground"], heights = record_ground(self.ground)
            arrays |= heights
        for name in ("tau", "actuator_force", "contact_impulse"):
            if getattr(self, name) is not None:
                arrays[name] = getattr(self, name)
        if "a" in self.__dict__:
            arrays["a"] = self.a
        for of in CONTACTS:
            contacts = getattr(self, f"{of}contacts")
            if contacts is not None:
                about[f"{of}contact_links"] = list(contacts.links)
                about[f"{of}contacts_against"] = list(contacts.against)
                given = {f"{of}contact_{part}": getattr(contacts, part) for part in PARTS_OF_CONTACTS}
                arrays |= {name: x for name, x in given.items() if x is not None}
        about["spring_ends"] = [each.ends for each in self.springs]
        by_name = {name: [*getattr(self, name).items()] for name in BY_NAME if name != "springs"}
        by_name["springs"] = [(each.name, each.numbers) for each in self.springs]
        for name, each in by_name.items():
            if each:
                about[BY_NAME[name][0]] = [of for of, _ in each]
                arrays[name] = np.stack([numbers for _, numbers in each], axis=1)
        if "events" in self.__dict__ or (self.inputs and self.marks[-1] <= SAVED_STEPS):
            about["events"] = [astuple(event) for event in self.events]
            if self.step_forces is not None:
                about["step_links"] = list(self.step_forces.links)
                arrays["step_forces"] = self.step_forces.force
        if self.robot is not None:
            about["robot"], numbers = record(self.robot)
            arrays |= numbers

        def plain(value: Any) -> Any:
            return value.tolist() if isinstance(value, np.ndarray | np.generic) else float(value)

        everything: dict[str, Any] = {"about": np.array(json.dumps(about, default=plain)), **arrays}
        with replacing(path) as beside, beside.open("wb") as file:
            np.savez_compressed(file, **everything)
        return path

    def to_dataframe(self) -> Any:
        """The motion as a ``pandas.DataFrame``, one row per record.

        Columns: ``time`` [s]; ``q/JOINT`` and ``v/JOINT``; ``tau/JOINT`` and ``actuator_force/JOINT`` if
        there are any; ``energy/kinetic``, ``energy/potential``, ``energy/dissipated``, ``energy/work`` [J];
        with springs ``energy/springs``, ``spring/NAME/length`` and ``/force``; ``prescribed_force/JOINT``;
        ``momentum/kx`` to ``momentum/lz``; on a ground ``contact_force/x`` to ``/z`` [N]. Joints of several
        coordinates have one column each: ``q/floating_base/qw``, ..., ``q/floating_base/pz`` and
        ``v/floating_base/wx``, ..., ``v/floating_base/vz``.

        Raises:
            MissingDependency: pandas is not installed.
            RobokitError: the trajectory has no robot.

        Example:
            >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
            >>> table = rk.simulate(robot, [1.0, 0.0], duration=0.05).to_dataframe()
            >>> list(table.columns[:5])
            ['time', 'q/upper_joint', 'q/lower_joint', 'v/upper_joint', 'v/lower_joint']
        """
        robot = self._own_robot("to_dataframe")
        try:
            import pandas
        except ImportError as error:
            raise MissingDependency("to_dataframe needs pandas: pip install pandas") from error
        return pandas.DataFrame(dict(table_columns(self, robot)))

    def to_csv(self, path: str | os.PathLike[str]) -> Path:
        """Write the motion as comma-separated values: a header, and a row for each record.

        Args:
            path: path of the file; ".csv" is appended if it has no suffix. Numbers are written with all their
                digits.

        Returns:
            the path of the file. Its columns are those of :meth:`to_dataframe`.

        Raises:
            WriteError: the file cannot be written.
            RobokitError: the trajectory has no robot.

        Example:
            >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
            >>> rk.simulate(robot, [1.0, 0.0], duration=0.05).to_csv("swing").name
            'swing.csv'
        """
        path = output_path("path", path, ".csv")
        names, arrays = zip(*table_columns(self, self._own_robot("to_csv")), strict=True)
        quoted = ('"' + n.replace('"', '""') + '"' if any(c in n for c in ',"\r\n') else n for n in names)
        with replacing(path) as beside, beside.open("w", encoding="utf-8", newline="") as file:
            file.write(",".join(quoted) + "\n")
            for first in range(0, len(self.t), ROWS):
                rows = np.column_stack([x[first : first + ROWS] for x in arrays]).tolist()
                file.writelines(",".join(map(repr, row)) + "\n" for row in rows)
        return path

    @staticmethod
    def load(
        path: str | os.PathLike[str],
        robot: Robot | None = None,
        package_dirs: Sequence[str | os.PathLike[str]] = (),
    ) -> Trajectory:
        """Read what :meth:`save` wrote.

        The robot is made from the text in the file; no other file is read. It has the inertial parameters,
        the base, the gravity and the coupled joints that it had when it moved.

        Args:
            path: the file.
            robot: the robot that moved, instead of the one in the file. It must be the same; gravity is taken
                from the file.
            package_dirs: folders that are searched for meshes and textures; by default none, and a page shows
                the robot without them.

        Returns:
            the trajectory. Its ``.robot`` is None if URDF cannot describe the robot (one with helical or
            spherical joints, for example) and none is given.

        Raises:
            ShapeError: the file is not a trajectory, unpacks to far more than its size, or does not fit the
                given robot; the message says what differs.
            WrongType: robot is not a Robot.

        Warns:
            UserWarning: the text does not reproduce the stored robot; ``.robot`` is None.
        """
        if robot is not None:
            check_robot(robot)
        path = path_argument("path", path)
        try:
            arrays = read_arrays(path)  # sizes are checked before anything is unpacked
            about = json.loads(str(arrays.pop("about")))
            if not isinstance(about, dict):
                raise ValueError("its text is not a record")
            for name, array in arrays.items():
                if array.dtype != np.float64:
                    raise ValueError(f"{name} holds {array.dtype}, no float64")
            numbers = {name: arrays.pop(name) for name in list(arrays) if name.startswith("robot_")}
            given = about["robot"] or {}
            found = _checked(about, arrays)
        except INVALID_CONTENT as error:
            raise ShapeError(f"{os.fspath(path)}: not a trajectory saved by robokit ({error})") from error
        given = {**given, "sizes": [found.q.shape[1], found.v.shape[1]]}
        if robot is not None:
            found.robot = fitted(robot, given, numbers)
        else:
            found.robot = restored(given, numbers, package_dirs)
        return found

    def to_html(self, path: str | os.PathLike[str], **options: Any) -> Path:
        """Write the page that plays the motion: one file, no network.

        Args:
            path: path of the file.
            options: further arguments of :func:`robokit.viewer.write_page`: your own ``curves=``, the link to
                ``follow=``, ``live=True`` for a live simulation in the page, ``walk=False`` for a smaller
                page, ...

        Example:
            >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
            >>> rk.simulate(robot, [1.0, 0.0], duration=0.05).to_html("swing.html", walk=False).name
            'swing.html'
        """
        if self.robot is None:
            raise RobokitError("the page needs the robot: Trajectory.load(path, robot=...)")
        return hooks.call("write_page", self, path_argument("path", path), **options)


CONTACTS = "", "body_"  # beginnings of names of contacts: with what stands still, and between links that move

PARTS_OF_CONTACTS = "points", "forces", "normals", "moments"

BY_NAME = {
    "loop_forces": ("loop_joints", (6,)),
    "springs": ("springs", (10,)),
    "prescribed_force": ("prescribed", ()),
    "losses": ("losses", ()),
}
"""Arrays (T, n, ...) of n that have names: what the file calls these, and the numbers of each."""

NAMES_OF_CONTACTS = "contact_links", "contacts_against"


def _checked(about: dict[str, Any], arrays: dict[str, np.ndarray]) -> Trajectory:
    """The trajectory of a file's contents, without its robot.

    Raises LookupError, TypeError, ValueError, AttributeError or OverflowError where they make none.
    """
    by_name = {name: tuple(map(str, about.get(known, ()))) for name, (known, _) in BY_NAME.items()}
    names = {of: [tuple(map(str, about.get(of + n, ()))) for n in NAMES_OF_CONTACTS] for of in CONTACTS}
    touched = tuple(map(str, about.get("step_links", dict.fromkeys(names[""][0]))))
    T, nq, nv = len(arrays["t"]), arrays["q"].shape[1], arrays["v"].shape[1]
    none = {name: (T, 0, *size) for name, (_, size) in BY_NAME.items()}
    none["step_forces"] = (0, len(touched), 3)
    x = {name: np.zeros(shape) for name, shape in none.items()} | arrays
    energies = [f"energy_{f.name}" for f in fields(Energy)]
    optional: dict[str, tuple[int, ...]] = {"tau": (T, nv), "actuator_force": (T, nv), "a": (T, nv)}
    optional |= {"contact_impulse": (T, 3), "energy_springs": (T,)}
    for of, (links, _) in names.items():
        optional |= {f"{of}contact_{part}": (T, len(links), 3) for part in PARTS_OF_CONTACTS}
    shapes = {"t": (T,), "q": (T, nq), "v": (T, nv), "momentum": (T, 6), "contact_force": (T, 3)}
    shapes |= dict.fromkeys(energies, (T,)) | optional
    shapes |= {name: (T, len(by_name[name]), *size) for name, (_, size) in BY_NAME.items()}
    shapes |= {HEIGHTS: np.shape(x.get(HEIGHTS, ())), "step_forces": (len(x["step_forces"]), len(touched), 3)}
    touching: dict[str, list[Any]] = {
        of: [x.get(f"{of}contact_{part}") for part in PARTS_OF_CONTACTS] for of in CONTACTS
    }
    whole = True  # contacts have points and forces, or nothing, and a name for each that is touched, or none
    for of, (links, against) in names.items():
        points, forces, *others = (x is not None for x in touching[of])
        whole &= points == forces >= max(others) and len(against) in (0, len(links))
    if not T or not whole or not shapes.keys() - {*optional, HEIGHTS} <= x.keys() <= shapes.keys():
        raise ValueError("its arrays are not those of a trajectory")
    if any(array.shape != shapes[name] for name, array in x.items()):
        raise ValueError("its arrays do not fit together")
    given, summary = about["robot"] or {}, about["summary"]
    summary.setdefault("robot", str(given.get("name", "?")))
    ground = restored_ground(about["ground"], x.get(HEIGHTS)) if about["ground"] else None
    energy: Any = [x.get(name) for name in energies]
    columns = {name: {of: x[name][:, k] for k, of in enumerate(each)} for name, each in by_name.items()}
    found = Trajectory(
        x["t"], x["q"], x["v"], Energy(*energy), x["momentum"], x["contact_force"], None,
        x.get("tau"), ground, summary, actuator_force=x.get("actuator_force"),
        contact_impulse=x.get("contact_impulse"), losses=columns["losses"],
    )  # fmt: skip
    known = found.__dict__
    if "a" in x:
        known["a"] = x["a"]
    if "events" in about:
        known["events"] = from_rows(about["events"])
    known |= {name: columns[name] for name in ("loop_forces", "prescribed_force")}
    each_spring = zip(
        by_name["springs"], x["springs"].swapaxes(0, 1), about.get("spring_ends", ()), strict=True
    )
    known["springs"] = tuple(SpringRecord.of(*each) for each in each_spring)
    for of, (links, against) in names.items():
        points, forces, *more = touching[of]
        if points is not None:
            known[f"{of}contacts"] = Contacts(points, forces, links, against, *more)
    if len(x["step_forces"]):
        known["step_forces"] = StepForces.of(x["step_forces"], touched, x["t"][0], summary["dt"])
    found.report()  # raises for figures that are no numbers
    return found


# ---- the motion as a table --------------------------------------------------------------------------------

QUATERNION, ANGULAR = ("qw", "qx", "qy", "qz"), ("wx", "wy", "wz")

PARTS = {
    "spherical": (QUATERNION, ANGULAR),
    "floating": ((*QUATERNION, "px", "py", "pz"), (*ANGULAR, "vx", "vy", "vz")),
    "cylindrical": (("angle", "shift"), ("angle", "shift")),
    "planar": (("angle", "x", "y"), ("angle", "x", "y")),
}
"""Names of the entries of q and of v, for kinds of joints with several."""

MOMENTUM = ("kx", "ky", "kz", "lx", "ly", "lz")

ROWS = 4096  # rows that are text at once


def table_columns(run: Any, robot: Robot) -> Iterator[tuple[str, np.ndarray]]:
    """Name and numbers (T,) of each column: see :meth:`Trajectory.to_dataframe`."""
    yield "time", run.t
    by_joint = {"q": run.q, "v": run.v, "tau": run.tau, "actuator_force": run.actuator_force}
    for name, array in by_joint.items():
        if array is None:
            continue
        for joint in robot.joints:
            place = joint.q_slice if name == "q" else joint.v_slice
            parts = PARTS.get(joint.kind, (("",), ("",)))[0 if name == "q" else 1]
            for k, part in zip(range(place.start, place.stop), parts, strict=True):
                yield f"{name}/{joint.name}" + (f"/{part}" if part else ""), array[:, k]
    for each in fields(run.energy):
        if getattr(run.energy, each.name) is not None:
            yield f"energy/{each.name}", getattr(run.energy, each.name)
    for spring in run.springs:
        yield f"spring/{spring.name}/length", spring.length
        yield f"spring/{spring.name}/force", spring.force
    for name, force in run.prescribed_force.items():
        yield f"prescribed_force/{name}", force
    for k, part in enumerate(MOMENTUM):
        yield f"momentum/{part}", run.momentum[:, k]
    if run.ground is not None:
        for k, part in enumerate("xyz"):
            yield f"contact_force/{part}", run.contact_force[:, k]
