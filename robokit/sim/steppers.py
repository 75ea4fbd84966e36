"""One state through time: the steps of contact/step.py, or those of passive motion, as loops take them.

Both kinds have a state, are given inputs, and take steps in place. Of what they note of each step events,
sensors and contacts of a run are made: no step is taken twice. :class:`ContactState` has one state of a robot
and its ground in the arrays of contact/step.py.
"""

from __future__ import annotations

import ctypes
import itertools
import math
import pickle
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import Any

import numpy as np

from robokit.algorithms.energy import kinetic_energy, potential_energy
from robokit.algorithms.kinematics import forward_kinematics
from robokit.arguments import is_finite
from robokit.collision.fields import FIELD
from robokit.collision.scene import ERROR, Scene, scene, touches_as_its_inertia
from robokit.collision.shapes import count_of_pairs
from robokit.contact import accounts
from robokit.contact.accounts import FIXED, FREE, NOTHING
from robokit.contact.materials import (
    LEAST,
    Surface,
    body_numbers,
    contact_numbers,
    joint_numbers,
    loop_numbers,
    mobilities,
    motor_numbers,
    sizes,
)
from robokit.contact.measures import KEPT
from robokit.contact.monitor import NOTES
from robokit.contact.robot_data import robot_data, sizes_of_matrices
from robokit.contact.step import ADDED, ARRAYS, step_kernel
from robokit.contact.step_control import controlled_kernel
from robokit.conventions import GRAVITY
from robokit.dataclass_tools import Recent, Spare
from robokit.engine.batch_calls import RolloutRunner
from robokit.engine.loops.environment import NoMachineCode
from robokit.engine.loops.fields import sizes_told
from robokit.engine.maker import engine
from robokit.engine.memory import address
from robokit.model.robot import Robot, quaternion_offsets
from robokit.sim import motion
from robokit.sim.ground import Ground, plane_of, weight, world_of
from robokit.sim.integrators import kept_energy
from robokit.sim.motion import (
    effective_inertias,
    facts_and_spins,
    may_keep_energy,
    momentum_at_base,
)
from robokit.sim.step_kernel import Kept, Program

# ==== The numbers of a program as the step of contact/step.py takes them ==========================


def size_of(robot: Robot) -> float:
    """Longest edge of a box around the joints and centres of mass in the neutral configuration [m].

    At least twice the largest radius of gyration of a body.
    """
    tree = robot.tree
    X0 = forward_kinematics(tree, robot.split_q(robot.neutral().tolist()))
    places, gyration = [], 0.0
    for i in tree.outward():
        m, h = tree.I[i].m, tree.I[i].h
        places.append(list(X0[i].r))
        if m > 0.0:
            c = h * (1.0 / m)
            places.append(list(X0[i].point(c)))
            xx, yy, zz, *_ = tree.I[i].Ibar
            spread = 0.5 * (xx + yy + zz) / m - c.dot(c)
            gyration = max(gyration, float(spread) ** 0.5 if spread > 0.0 else 0.0)
    return max(float(np.ptp(np.array(places, float), axis=0).max()) if places else 0.0, 2.0 * gyration)


def contact_scale(robot: Robot, ground: Ground | None) -> float:
    """Lengths of a robot's contacts over those of robots of 40 cm and more on the default ground."""
    one = robot if robot.samples is None else robot.sample(0)
    size: float = robot.derived.get("radius", lambda: 0.5 * size_of(one) or math.inf)
    return (ground or Ground()).scale(size)


# ---- arrays of the step -----------------------------------------------------------------------------------

Arrays = dict[str, np.ndarray]


def step_numbers(program: Program, dt: float) -> Arrays:
    """All arrays of steps of dt [s] that do not change in a run."""
    robot, scene = program.robot, scene_of(program)
    found = {**robot_data(robot), **_bodies(program, 0), **_loops(robot, 0)}
    one = robot if robot.samples is None else robot.sample(0)
    found |= program.springs.numbers(robot, size_of(one) or 1.0)
    found |= prescribed_numbers(robot, program.given.motions)
    found |= _measured(program, scene, found)
    felt = {name: k for k, name in enumerate(robot.link_names)} if program.felt else {}
    number = [felt.get(name, -1) if felt else 0 for name in scene.links]  # nobody reads which are not felt
    found |= {"net_force": np.zeros((len(felt), 3)), "felt_of_shape": np.array(number, np.int32)}
    if program.accuracy is not None:
        found |= {"accuracy": np.array([program.accuracy]), "part": np.zeros(3, np.int32)}
        found["coordinate_weight"] = coordinate_weights(robot)
    _, places = program.given.split(program.given_numbers)
    points = [[0.0] * 3 if at is None else [float(np.ravel(z)[0]) for z in at] for _, at in places]
    found |= {
        "push_body": np.array([body for body, _ in places], np.int32),
        "push_point": np.reshape(np.array(points, float), (len(places), 3)),
        "push_in_world": np.array([at is None for _, at in places], np.int32),
        "push_wrench": np.zeros((len(places), 6)),
    }
    return found | _motors(program, dt, 0) | scene.arrays | _contacts(program, scene, 0)


def prescribed_numbers(robot: Robot, bodies: Sequence[int]) -> Arrays:
    """Joints whose motion is prescribed."""
    dofs = [robot.tree.v_slice[body].start for body in bodies]
    return {"motion_dof": np.array(dofs, np.int32), "motion_values": np.zeros((len(dofs), 3))}


def coordinate_weights(robot: Robot) -> np.ndarray:
    """What makes a small change of each entry of q an angle [rad], or a share of the robot's size, (nq,)."""
    lengths = {"prismatic": (0,), "cylindrical": (1,), "planar": (1, 2), "floating": (4, 5, 6)}
    weights = np.ones(robot.nq)
    one = robot if robot.samples is None else robot.sample(0)
    for joint in robot.joints:
        first, kind = joint.q_slice.start, robot.tree.joint[joint.body].kind
        for k in lengths.get(kind.name, ()):
            weights[first + k] = 1.0 / (size_of(one) or 1.0)
    for k in quaternion_offsets(robot):
        weights[k : k + 4] = 2.0
    return weights


def _bodies(program: Program, row: int) -> Arrays:
    """Numbers of bodies and joints that inertias decide."""
    robot, joints = program.robot, program.joints
    found = body_numbers(robot) | {"inertia": robot_data(robot)["inertia"]}
    if robot.samples is not None:
        found |= {name: found[name][row] for name in ("inertia", "body_mobility", "dof_mobility")}
    gains = [gain[row] if np.ndim(gain) else gain for gain in joints.gains]
    return found | joint_numbers(robot, joints.with_gains(gains))


def _loops(robot: Robot, row: int | np.ndarray) -> Arrays:
    """Numbers of loop joints; of samples the mobilities of a row, or of some."""
    found = loop_numbers(robot)
    if robot.samples is not None and len(found["loop_turns"]) > 0:
        found["loop_mobility"] = found["loop_mobility"][row]
    return found


def differ(program: Program) -> bool:
    """Whether rows of a batch differ in their inertias, in the ground, or in the numbers of motors."""
    drives, _ = program.given.split(program.given_numbers)
    several = any(np.ndim(x) > 0 for each in drives for x in each.values())
    several = several or program.robot.samples is not None
    return several or (program.ground is not None and program.ground.rows is not None)


def row_numbers(program: Program, dt: float, scene: Scene, rows: np.ndarray) -> Arrays:
    """The arrays in which rows of these numbers (n,) differ, (n, ...) each; ``scene``: of the first."""
    robot, ground, found = program.robot, program.ground, dict[str, np.ndarray]()
    samples = robot.samples is not None
    if samples and touches_as_its_inertia(robot):
        common = step_numbers(program, dt)
        each = [step_numbers(program.sample(row), dt) for row in rows.tolist()]
        found = {name: np.array([x[name] for x in each], order="C") for name in common}
        return {name: x for name, x in found.items() if (x != common[name]).any()}
    if program.given.drives:
        moved = _motors(program, dt, rows)
        found |= {name: moved[name] for name in ("motor_gains", "motor_limits", "motor_inertia")}
    if samples or (ground is not None and ground.rows is not None):
        found |= _contacts(program, scene, rows)
    if samples:
        bodies = [_bodies(program, row) for row in rows.tolist()]
        found |= {name: np.array([x[name] for x in bodies]) for name in bodies[0]}
        loops = _loops(robot, rows)
        found |= {"loop_mobility": loops["loop_mobility"]} if len(loops["loop_turns"]) > 0 else {}
    if ground is not None and ground.plane and np.ndim(ground.normal) == 2:
        places = np.repeat(scene.arrays["shape_placement"][None], len(rows), axis=0)
        for place, row in zip(places, rows.tolist(), strict=True):
            plane, _ = plane_of(ground.row(row))
            place[0] = np.concatenate([plane.rotation.ravel(), plane.position])
        found["shape_placement"] = places
    return {name: np.array(x, order="C") for name, x in found.items()}


def _contacts(program: Program, scene: Scene, row: int | np.ndarray) -> Arrays:
    """Numbers of contacts, of a row, or of some: (n, ...) each."""
    robot, found = program.robot, scene
    law = program.ground or Ground()
    shapes = found.arrays
    k, d = (_at(x, row) for x in _gains(program, found, law))
    links = {link.body: link.name for link in reversed(robot.links)}
    names = [links.get(b, "") for b in range(robot.nbodies + 1)]
    own = np.full(len(found.solid), math.nan)
    for shape in np.flatnonzero(found.solid >= 0).tolist():
        mu = law.shapes[found.solid[shape]].friction
        own[shape] = math.nan if mu is None else mu
    if law.terrain is not None and law.terrain.friction is not None:
        own[shapes["shape_kind"] == FIELD] = law.terrain.friction
    surface = Surface(
        np.array([not name for name in found.links]),
        np.stack([_at(law.coefficient(name), row) for name in names], axis=-1),
        np.stack([_at(law.bounce(name), row) for name in names], axis=-1),
        own,
        law.torsional,
        law.rolling,
    )
    between = (program.between.friction, program.between.restitution)
    gains = k, d, _at(weight(robot), row)
    return contact_numbers(shapes["shape_body"], gains, surface, between)


def _gains(program: Program, scene: Scene, law: Ground) -> tuple[Any, Any]:
    """Stiffness [N/m] and damping [N s/m] of a contact, one per row where they differ."""
    robot, error = program.robot, _error(program)
    size, steady = robot.derived.get(("sizes that touch", error), lambda: sizes(robot, scene.arrays))
    return law.gains(robot, size, steady)


def ground_stiffness(program: Program, row: int) -> float:
    """Stiffness of a contact with the ground [N/m]."""
    law = (program.ground or Ground()).row(row)
    return float(_at(_gains(program, scene_of(program), law)[0], row))


def _at(x: Any, row: int | np.ndarray) -> np.ndarray:
    """A number, or that of a row, or those of some."""
    each = np.ravel(x)
    return np.asarray(each[np.minimum(row, len(each) - 1)], float)


def scene_of(program: Program) -> Scene:
    """The shapes that can touch in a program, cached with it; for a robot on a plane, cached
    with the robot.
    """
    known: Scene | None = vars(program).get("scene")
    if known is not None:
        return known
    robot, ground, error, bodies = program.robot, program.ground, _error(program), program.between.runs

    def make() -> Scene:
        return scene(robot, None if ground is None else world_of(ground), bodies, error)

    if ground is None or ground.only_plane:
        plane = (ground.row(0).up, ground.height, *ground.velocity, ground.spin) if ground else ()
        kept: Recent[Scene] = robot.derived.get("scenes of steps", lambda: Recent(4))
        found = kept.get((error, bodies.tobytes(), *plane), make)
    else:
        found = make()
    vars(program)["scene"] = found
    return found


def _error(program: Program) -> float:
    """How far meshes may reach out of their hulls [m]."""
    return ERROR if program.ground is None else program.ground.shape_error


def _measured(program: Program, scene: Scene, numbers: Arrays) -> Arrays:
    """What the monitor keeps (contact/monitor.py); ``numbers``: of the robot and its joints."""
    layout = program.measured
    at, numbers_of = np.full(len(KEPT), -1, np.int32), [each.name for each in KEPT]
    links = {name: k for k, name in enumerate(program.touching_links)}
    stops = [i for i, stop in enumerate(program.joints.stop) if stop is not None]
    for tracker in layout.trackers:
        if isinstance(tracker, Kept) and tracker.start:
            at[numbers_of.index(tracker.name)] = layout.part(tracker).start
    return {
        "measured_at": at,
        "link_of_shape": np.array([links.get(name, -1) for name in scene.links], np.int32),
        "joint_of_stop": np.array(
            [stops.index(int(b)) for b in numbers["dof_body"][numbers["stop_dof"]]], np.int32
        ),
        "measured": np.zeros(layout.size),
        "link_force": np.zeros((len(links) + 1, 4)),
        "stop_force": np.zeros(len(stops)),
    }


def _motors(program: Program, dt: float, row: int | np.ndarray) -> Arrays:
    """Driven joints: gains again from the numbers that today's law is made of; of a row, or of some."""
    robot, drives = program.robot, program.given.drives
    numbers_of_drives, _ = program.given.split(program.given_numbers)
    own = [{name: _at(x, row) for name, x in each.items()} for each in numbers_of_drives]
    bodies = [drive.body for drive in drives]
    dofs = [robot.tree.v_slice[i].start for i in bodies]
    dof = mobilities(robot).dof if robot.samples is None else mobilities(robot).dof[row]
    lead, n = np.shape(row), len(drives)
    inertia = np.array(np.broadcast_to(1.0 / np.maximum(dof[..., dofs], LEAST), (*lead, n)))
    gains, limits = np.zeros((*lead, n, 2)), np.full((*lead, n, 2), math.inf)
    for k, (drive, given) in enumerate(zip(drives, own, strict=True)):
        inertia[..., k] = given.get("mass", inertia[..., k])
        limits[..., k, 0], limits[..., k, 1] = given.get("effort", math.inf), given.get("speed", math.inf)
        if drive.servo:
            R = given["kp"] * dt * dt / inertia[..., k]
            extra = given["kp"] * dt * (2.0 * R / (1.0 + 2.0 * R))
            gains[..., k, 0], gains[..., k, 1] = given["kp"], given["b"] + given["lag"] - extra
    numbers = {"motor_gains": gains, "motor_limits": limits, "motor_inertia": inertia}
    return motor_numbers(robot, bodies, inertia=np.zeros(n)) | numbers


# ==== one state through the step ==================================================================

TOLERANCE = 1e-6  # of a step's residual beyond rounding, over its impulses, before the polish squares it

AT_START = {"n_contacts": 16, "n_near": 32, "n_constraints": 16, "n_rows": 0}
"""Places to begin with. A step that needs more is taken again with more."""

CANDIDATES = 16  # likewise, of pairs of each shape with later ones: more than balls in a heap have

NOTED_AT_START = {"n_noted": 64, "n_noted_contacts": 512}  # the same of what is noted
KEPT_BYTES = 1 << 24  # room for notes, or to work in, that is kept for the next steps; new room takes 2 ms

MEMORY = {
    "near_pair": "n_near",
    "near_direction": "n_near",
    "near_corners": "n_near",
    "bristle_pair": "n_contacts",
    "bristle_feature": "n_contacts",
    "bristle": "n_contacts",
    "bristle_normal": "n_contacts",
}
"""Lists that a step hands to the next one, and the size of each; they end with the pair -1."""

NOTHING_MEASURED = {
    "measured": np.zeros(0),
    "link_force": np.zeros((1, 4)),
    "stop_force": np.zeros(0),
    "net_force": np.zeros((0, 3)),
    "step_share": np.array([1.0, 0.0]),
}
"""Of the monitor."""

ENDS = tuple(name for name in MEMORY if name.endswith("_pair"))  # those of them that end so

KEPT_ARRAYS = ("kept", "change", "loop_force", "dry_force", "motion_force", "net_force", "part")
"""What else it hands on, if there is such an array."""

LAYOUT = KEPT_ARRAYS, tuple((a.name, a.shape) for a in ARRAYS if a.role == "inout"), accounts.ENTRIES
"""What a saved state is made of; that of a batch has all that steps read and write."""


def keeps(robot: Robot) -> int:
    """What the end of a step corrects."""
    given = robot_data(robot)
    if any(free for _, free in given["wholes"]):
        return FREE
    return FIXED if may_keep_energy(robot.tree) else NOTHING


class ContactState:
    """A state and its steps.

    Attributes:
        dtype: of its real numbers.
        arrays: all that callers of the step give, by name; the state among them.
        sizes: of the arrays.
        refused: why there is no machine code, or None.
        plain: whether there is to be none.
    """

    def __init__(self, robot: Robot, dt: float, numbers: Mapping[str, np.ndarray], **options: Any) -> None:
        """At rest in the neutral configuration, with steps of dt [s].

        ``numbers`` has the arrays ROBOT, SHAPES, PAIRS and FORCES by name, and what of STEP is given; with
        "accuracy" those of CONTROL, and steps are divided to it (contact/step_control.py). Options are
        ``tolerance``, ``dtype``, ``reproducible``, ``engine``, "python" for no machine code, and ``springs``,
        tensions that are functions.
        """
        self.dtype: str = options.get("dtype", "float64")
        kernel = controlled_kernel if "accuracy" in numbers else step_kernel
        self.kernel = kernel(bool(options.get("reproducible", False)), options.get("springs", ()))
        given = {"dt": np.array([dt]), "tolerance": np.array([options.get("tolerance", TOLERANCE)])}
        given |= {"keeps": np.array([keeps(robot)], np.int32), "orders": np.array([1], np.int32)}
        given |= {**NOTHING_MEASURED, **numbers}
        self.sizes = {"nq": robot.nq, "nv": robot.nv, "n_ledger": len(accounts.ENTRIES), **AT_START}
        self.sizes |= NOTED_AT_START
        self.sizes = sizes_told((*ARRAYS, *self.kernel.arrays), given) | self.sizes
        # loops.py and force_elements.py ask for these every time.
        self.sizes["n_constraints"] += 2 * self.sizes["n_loops"] + self.sizes["n_springs"]
        n = self.sizes
        n |= sizes_of_matrices(given)
        n["n_candidates"] = min(CANDIDATES * n["n_shapes"], count_of_pairs(given))
        n["n_rows"] = 2 * n["n_dofs"] + n["n_stops"] + n["n_motors"] + n["n_motions"]  # all that can be
        self.arrays: Arrays = {a.name: a.zeros(n, self.dtype) for a in self.kernel.taken}
        for name in given.keys() & self.arrays.keys():
            if np.any(given[name]):  # memory to which nothing is written takes none
                self.arrays[name][...] = given[name]
        self.work: Arrays = {}
        self.refused: str | None = None
        self.plain = "python" in (engine(), options.get("engine"))
        self._call: Any = None
        self._version = 0  # of the kernel's code
        self.arrays["q"][:] = robot.neutral()
        self._zero = (*handed_on(self.arrays), "needed", "noted")
        self.forget()

    def forget(self) -> None:
        """Nothing was before."""
        for name in ENDS:
            self.arrays[name].fill(-1)
        for name in self._zero:
            self.arrays[name].fill(0)

    # ---- steps -------------------------------------------------------------------------------------------

    def take(self, steps: int) -> int:
        """So many steps: how many left a state that is finite. Places are added where they are needed.

        None at all compile the step.
        """
        done = 0
        self.ready()
        while done < steps:
            before = float(steps_taken(self.arrays))
            self.ready()(steps - done)
            taken = float(steps_taken(self.arrays)) - before
            if not math.isfinite(taken):
                return done
            done += int(taken)
            if (needed := self.arrays["needed"])[0]:  # of notes four times what there was
                larger = enlarged(self.sizes, needed)
                self.make_room({n: 4 * size if n in NOTED_AT_START else size for n, size in larger.items()})
                needed[:] = 0
            elif not self.finite:
                return done - 1
        return done

    @property
    def finite(self) -> bool:
        """Whether the state is."""
        return is_finite(self.arrays["q"]) and is_finite(self.arrays["v"])

    def notes(self) -> Arrays:
        """The notes of each step since the last call (contact/monitor.py), by name, as float64."""
        counts = dict(zip(NOTED_AT_START, self.arrays["noted"].tolist(), strict=True))
        found = {a.name: self.arrays[a.name][: counts[str(a.shape[0])]] for a in NOTES[1:]}
        self.arrays["noted"][:] = 0
        if self.dtype != "float64":
            found = {name: x.astype(float) if x.dtype.kind == "f" else x for name, x in found.items()}
        if sum(self.arrays[a.name].nbytes for a in NOTES) < KEPT_BYTES:
            return copied(found)
        self.sizes |= NOTED_AT_START
        self.arrays |= {a.name: a.zeros(self.sizes, self.dtype) for a in NOTES[1:]}
        self._call = None
        return found

    def make_room(self, sizes: dict[str, int]) -> None:
        """Enlarge arrays to new ``sizes``, by names of ``ADDED``, and keep their contents."""
        larger = self.sizes | sizes
        grow = [a for a in self.kernel.taken if self.arrays[a.name].shape != a.at(larger)]
        noted = {a.name: (a.at(larger), self.arrays[a.name].dtype) for a in grow if a in NOTES}
        made = together(noted, np.zeros)
        for a in grow:
            old = self.arrays[a.name]
            if a.name in made:
                made[a.name][: len(old)] = old
            else:
                made[a.name] = begins_with(old, a.at(larger), a.name)
        self._call = None  # the rest in one go: Ctrl-C may come at any time
        self.sizes |= sizes
        self.arrays |= made

    def ready(self) -> Any:
        """A function that takes steps, as long as no array is replaced by a larger one."""
        if self._call is not None and self._version == self.kernel.version:
            return self._call
        self._version = self.kernel.version
        try:
            if self.plain:
                raise NoMachineCode("")
            self._call = self._compiled()
        except NoMachineCode:
            self.refused = self.kernel.refused
            work = [a for a in self.kernel.arrays if a.role == "work"]
            self.work = {a.name: a.zeros(self.sizes, self.dtype) for a in work}
            taken = [self.arrays[a.name] for a in self.kernel.taken]

            def plain(steps: int) -> None:
                for _ in range(steps):
                    self.kernel.on_memory(*(self.sizes[n] for n in self.kernel.sizes), *taken, work=self.work)
                    if not self.finite:
                        return

            self._call = plain
        return self._call

    def _compiled(self) -> Any:
        environment = self.kernel.environment(self.sizes, self.dtype)
        held = zip(self.kernel.arrays, environment.memory, strict=True)
        self.work = {
            a.name: x.reshape(-1)[: math.prod(a.at(self.sizes))].reshape(a.at(self.sizes))
            for a, x in held
            if x is not None
        }
        driver = self.kernel.driver("single", self.dtype)
        function = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 2, ctypes.c_int64)(driver)
        pointers = np.array([address(self.arrays[a.name]) for a in self.kernel.taken], np.uint64)
        given = address(pointers), address(environment)

        def run(steps: int, _alive: Any = (pointers, environment)) -> None:
            function(*given, steps)
            self.kernel.looked_at(environment)

        return self.kernel.counted(run, self.dtype)

    # ---- memory ------------------------------------------------------------------------------------------

    def packed(self) -> np.ndarray:
        """What the next step is handed besides q and v, in one row."""
        return packed(self.arrays)

    def unpack(self, row: np.ndarray) -> None:
        """Restore the result of :meth:`packed`; if that is too short, the state begins without history."""
        self.forget()
        kept = handed_on(self.arrays)
        if len(row) < 2 + sum(self.arrays[name].size for name in kept):
            return
        counts = {"n_near": int(row[0]), "n_contacts": int(row[1])}
        if any(self.sizes[name] < n for name, n in counts.items()):
            self.make_room({name: max(n, self.sizes[name]) for name, n in counts.items()})
        at = 2
        for name in (*kept, *MEMORY):
            to = self.arrays[name]
            part = to[: counts[MEMORY[name]]] if name in MEMORY else to
            part[...] = row[at : at + part.size].reshape(part.shape)
            at += part.size


STEPS = accounts.AT["steps"]


def packed(x: Mapping[str, np.ndarray]) -> np.ndarray:
    """What the next step is handed besides q and v, of the arrays of one state."""
    counts = [_count(x["near_pair"]), _count(x["bristle_pair"])]
    lists = [x[name][: counts[size == "n_contacts"]] for name, size in MEMORY.items()]
    return np.concatenate([counts, *(each.ravel() for each in (*(x[n] for n in handed_on(x)), *lists))])


def handed_on(x: Mapping[str, np.ndarray]) -> list[str]:
    """Names of the arrays besides lists, q and v that a step passes on to the next, among those of a
    simulation.
    """
    return [name for name in KEPT_ARRAYS if name in x]


def steps_taken(x: Mapping[str, np.ndarray]) -> Any:
    """How many steps states have taken, (...), a view; NaN may be among them."""
    return x["part"][..., 2] if "control" in x else x["ledger"][..., STEPS]


def enlarged(sizes: Mapping[str, int], needed: Sequence[int] | np.ndarray) -> dict[str, int]:
    """Sizes of half as much again as a step ``needed``, an array of its name, where they were too small."""
    needs = zip(ADDED, (int(n) for n in needed[1:]), strict=True)
    return {name: need + need // 2 for name, need in needs if need > sizes[name]}


def blank(name: str) -> int:
    """What an array of the step holds before the first one: lists of pairs end with -1."""
    return -1 if name.endswith("_pair") else 0


def begins_with(old: np.ndarray, shape: tuple[int, ...], name: str) -> np.ndarray:
    """An array of that name and shape that begins with another one; the rest is blank."""
    new = np.zeros(shape, old.dtype)  # pages that nothing is written to take no time
    if blank(name):
        new.fill(blank(name))
    new[tuple(map(slice, old.shape))] = old
    return new


def together(wanted: Mapping[str, tuple[tuple[int, ...], np.dtype]], make: Any = np.empty) -> Arrays:
    """Arrays of these shapes and types in one piece of memory, which the system gives in larger pages.

    ``make``: np.zeros where they are to be zeros. Notes of 2 s of a humanoid, 13 MB, are copied so in 0.4 ms,
    and each on its own in 4.6 ms (AMD EPYC, Linux).
    """
    room = make(sum(math.prod(shape) * dtype.itemsize for shape, dtype in wanted.values()), np.uint8)
    end, found = 0, {}
    for name in sorted(wanted, key=lambda each: -wanted[each][1].itemsize):  # so that all are aligned
        shape, dtype = wanted[name]
        begin, end = end, end + math.prod(shape) * dtype.itemsize
        found[name] = room[begin:end].view(dtype).reshape(shape)
    return found


def copied(arrays: Arrays) -> Arrays:
    """Copies of arrays, together."""
    found = together({name: (x.shape, x.dtype) for name, x in arrays.items()})
    for name, x in arrays.items():
        found[name][...] = x
    return found


def _count(pairs: np.ndarray) -> int:
    """Entries of a list before the first -1."""
    ends = pairs < 0
    first = int(ends.argmax()) if len(pairs) else 0
    return first if len(pairs) and ends[first] else len(pairs)


# ==== default step ================================================================================
# The time step that a simulation takes where none is given: 1 ms, halved until nothing turns far in it.
#
# In a fall the velocities jump where links meet the ground and their limits. In a deep tree of light links
# such a jump turns links by a large angle within a step, and the velocity products that a step misses there
# make or take energy. Free motion is of second order or better and asks for no shorter step, nor do damping
# and friction, which are implicit.
#
#     w = v / l,     v^2 = 2 g h,     1 / l^2 = sum_i m_i / l_i^2  /  sum_i m_i,     w dt <= SPIN
#
# v is the speed of a fall from the height h, the reach of the robot; l_i is how far from joint i a push on
# link i must act to turn it without a force on the joint (its centre of percussion), I_i / (m_i c_i). Where
# links ask for a shorter step, I_i is at least a tenth of 1 / (H^-1)_ii, what the joint turns with all others
# free: a cross link in a hip or a wrist is small, but does not turn without the leg or the hand that it
# carries.
#
# Measured on falls of chains of 5 to 100 links (w from 31 to 281 rad/s), four seeds each, 2 s, at 1/2 to 4
# ms: the energy that is taken, over that which moved, is 0.6 % at most up to w dt = 0.1, 4 % up to 0.2, 9 %
# up to 0.6 but for one fall of 11 %; from 0.8 on runs break down. Robots have 5 to 50 rad/s: 1 ms, and 4 ms
# as well.
#
# A start whose bodies spin faster than that asks for itself: the step is halved until none turns by more than
# SPIN in it.

LONGEST = 1e-3  # default time step [s] of a robot that needs no shorter one
SHORTEST = LONGEST / 2**10  # least default time step [s]
CARRIED = 0.1  # least inertia of a link about its joint over that which the joint turns; 0.6 in hinges

SPIN = 0.3
"""A body that turns by more in a step is worth a warning [rad]. The sine of the half is off its series' first
term by 0.4 %, which the axes of a step, those of its middle, leave out; at 1 rad it is 4 %."""


def halved(dt: float, rate: float) -> float:
    """The step [s], halved until a body that rotates at a rate [rad/s] turns by at most SPIN in it."""
    return dt / 2 ** max(0, math.ceil(math.log2(rate * dt / SPIN) - 1e-9))


def fastest_spin(
    robot: Robot,
    q: np.ndarray,
    v: np.ndarray,
    least: float,
    most: float = math.inf,
    known: Callable[[], np.ndarray] | None = None,
) -> tuple[float, int, int]:
    """The largest angular velocity of a body [rad/s], its row and the body; (least, 0, 0) if none is larger.

    The states are (nq,) and (nv,), or rows of them; a single row goes with many. Rows that are not finite,
    or are faster than ``most`` [rad/s], are skipped. ``known`` gives the facts_and_spins of all rows.
    """
    q, v = np.atleast_2d(q), np.atleast_2d(v)
    rows = max(len(q), len(v))
    with np.errstate(all="ignore"):  # no body turns faster than all joints together
        fast = np.flatnonzero(np.broadcast_to(np.abs(v).sum(axis=1) > least, rows))
    if not len(fast):
        return least, 0, 0
    if known is None:
        robot = robot if robot.samples is None else robot.sample(0)
        facts = facts_and_spins(robot, *(np.broadcast_to(a, (rows, a.shape[1]))[fast] for a in (q, v)))
    else:
        facts = known()[fast]
    speed = np.where(np.isfinite(facts).all(axis=1) & (facts[:, 8] <= most), facts[:, 8], 0.0)
    k = int(speed.argmax())
    return (float(speed[k]), int(fast[k]), int(facts[k, 9])) if speed[k] > least else (least, 0, 0)


def default_step(robot: Robot, falls: bool) -> float:
    """Time step for a robot [s]: 1 ms, halved as often as its links ask if the method is that of falls."""
    rate = robot.derived.get("turning rate", lambda: turning_rate(robot)) if falls else 0.0
    return max(halved(LONGEST, rate), SHORTEST) if SPIN / LONGEST < rate < math.inf else LONGEST


def turning_rate(robot: Robot) -> float:
    """The rate w at which a fall turns the links [rad/s]; of samples, the largest."""
    alone = _turning_rate(robot, {})
    if not SPIN / LONGEST < alone < math.inf:
        return alone
    dofs = [
        (i, k)
        for i in robot.tree.outward()
        if robot.tree.parent[i] or robot.base != "floating"
        for k in range(robot.tree.joint[i].kind.nv)  # type: ignore[union-attr]
    ]
    carried = effective_inertias(robot, dofs)
    return _turning_rate(robot, {at: CARRIED * x for at, x in zip(dofs, carried, strict=True)})


def _turning_rate(robot: Robot, least: dict[tuple[int, int], Any]) -> float:
    """The rate, with a least inertia [kg m^2] for (joint, dof of the joint)."""
    tree = robot.tree
    X = tree.transforms(robot.split_q(robot.neutral().tolist()))
    reach: list[float] = [0.0] * (tree.n + 1)
    mass: Any = 0.0
    bent: Any = 0.0
    height: Any = 0.0
    for i in tree.outward():
        I, p = tree.I[i], tree.parent[i]
        reach[i] = reach[p] + math.hypot(*X[i].r) if p else 0.0  # type: ignore[union-attr]
        some = np.where(np.asarray(I.m) > 0.0, I.m, 1.0)
        moment = np.sqrt(sum(np.square(x) for x in I.h))
        height = np.maximum(height, reach[i] + moment / some)
        mass = mass + I.m
        S = tree.joint[i].S  # type: ignore[union-attr]
        if p == 0 and robot.base == "floating":
            continue
        sharpest: Any = 0.0
        for k, (axis, momentum) in enumerate(zip(S.columns, S.of(I), strict=True)):
            if not any(axis.ang):
                continue
            inertia = np.maximum(axis.dot(momentum), least.get((i, k), 0.0))
            push = np.sqrt(sum(np.square(x) for x in momentum.lin))
            sharpest = np.maximum(
                sharpest, np.where(inertia > 0.0, push / np.where(inertia > 0.0, inertia, 1.0), 0.0)
            )
        bent = bent + I.m * sharpest**2
    g = math.hypot(*tree.gravity) or math.hypot(*GRAVITY)
    with np.errstate(all="ignore"):
        rate = np.sqrt(2.0 * g * height * bent / np.where(np.asarray(mass) > 0.0, mass, 1.0))
    return float(np.max(rate))


# ==== energies ====================================================================================
# Energies and momenta of states, and what the first step of a run is handed of them.
#
# The texts of the algorithms run here with NumPy arrays in place of scalars, many states at once. Nothing is
# compiled, because these figures are needed only once for each recorded state.

BLOCK = 2048  # states at a time: arrays of this length stay in the cache


def in_blocks(
    text: Callable[..., Sequence[Any]], width: int, *arrays: np.ndarray, block: int = BLOCK
) -> np.ndarray:
    """text(columns of each array, ...) -> width scalars, for all rows: (T, width)."""
    T = len(arrays[0])
    out = np.zeros((T, width))
    for start in range(0, T, block):
        part = slice(start, min(start + block, T))
        for k, x in enumerate(text(*(list(a[part].T) for a in arrays))):
            out[part, k] = x
    return out


def energies(robot: Robot, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Kinetic and potential energy [J], (T,) each."""
    tree = robot.tree

    def text(qs: Any, vs: Any) -> Sequence[Any]:
        rows = robot.split_q(qs)
        return [kinetic_energy(tree, rows, robot.split_v(vs)), potential_energy(tree, rows)]

    # Masses of one's own: a row for each.
    both = in_blocks(text, 2, q, v, block=BLOCK if robot.samples is None else len(q))
    return both[:, 0], both[:, 1]


def first_carried(program: Program, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """What the first step is handed besides q and v, for rows of states (B, ...): (B, C)."""
    robot, layout = program.robot, program.layout
    out = np.zeros((len(q), layout.size))
    if program.contact:  # the step itself looks at what it is to keep
        return out[:, :1]
    if not (layout.momentum or layout.energy):
        return out
    if program.reproducible:
        kept = start_momentum(replace(program, dtype="float64"), q, v)
    else:

        def text(qs: Any, vs: Any) -> Sequence[Any]:
            return kept_of(program, robot.tree, robot.split_q(qs), robot.split_v(vs))

        # Masses of one's own: a row for each.
        kept = in_blocks(text, 7, q, v, block=BLOCK if robot.samples is None else len(q))
    if layout.momentum:
        out[:, :6] = kept[:, :6]
    if layout.energy:
        out[:, -1] = kept[:, 6]
    return out


def kernel_inputs(
    program: Program,
    q: np.ndarray,
    v: np.ndarray,
    dt: float,
    tau: np.ndarray | None = None,
    given: Sequence[np.ndarray] = (),
) -> list[np.ndarray]:
    """What rows of a run begin with: inputs of the step's kernel, (steps or 1, rows or 1, n) each.

    The starts q and v are (rows, ...), dt is the time step [s], joint forces tau are (steps or 1, rows or 1,
    nv) [N m | N] or None, ``given`` inputs from actuators and pushes. Returns q, v, tau, ledger, carried
    numbers and parameters, in the program's dtype but for the ledger of steps with contacts, then ``given``.
    """
    real = program.dtype
    with np.errstate(over="ignore"):  # such rows fail
        starts = [np.array(x, real, order="C") for x in (q, v)]
    with np.errstate(all="ignore"):  # of the states as rounded: those that are recorded repeat to the bit
        carried = first_carried(program, *(x.astype(np.float64) for x in starts)).astype(real)
    ledger = np.zeros((1, len(q), program.entries), np.float64 if program.contact else real)
    tau = np.zeros((1, 1, program.robot.nv), real) if tau is None else tau
    parameters = np.ascontiguousarray(np.atleast_2d(program.parameters(dt)), real)
    return [starts[0][None], starts[1][None], tau, ledger, carried[None], parameters[None], *given]


def not_finite(*arrays: np.ndarray) -> np.ndarray:
    """Which rows hold NaN or infinity."""
    with np.errstate(all="ignore"):
        if np.isfinite(sum(x.sum() for x in arrays)):  # almost always, and quicker
            return np.zeros(len(arrays[0]), bool)
        suspect = ~np.isfinite(sum(x.sum(axis=1) for x in arrays))
    if suspect.any():  # large numbers may have a sum that is not finite
        suspect[suspect] = [not all(np.isfinite(x[k]).all() for x in arrays) for k in np.flatnonzero(suspect)]
    return suspect


IN_STEPS = {"outside": "outside_impulse", "control": "control"}  # names of parts of the ledger in steps

SUMMED = ("ledger", "outside_impulse", "motor_sums")  # arrays of the step that are sums over all steps

LARGEST = {"ledger": [accounts.AT[name] for name in ("depth", "residual", "overlap", "most")]}
"""Entries of these that are no sums."""


def add_up(total: np.ndarray, since: np.ndarray, largest: Sequence[int] = ()) -> None:
    """Add sums in single precision, which would lose digits over thousands of steps, to those in double.

    Those ``since`` the last call, (..., n), begin anew; ``total`` changes in place; entries ``largest`` are
    no sums.
    """
    places = list(largest)
    top = np.maximum(total[..., places], since[..., places])
    with np.errstate(all="ignore"):
        total += since
    total[..., places] = top
    since[...] = 0.0


def kept_of(program: Program, tree: Any, rows: Any, speeds: Any) -> list[Any]:
    """Momentum (6) [N m s; N s] and energy [J] that a step keeps; 0 where it does not."""
    layout = program.layout
    kept = list(momentum_at_base(tree, rows, speeds)) if layout.momentum else [0.0] * 6
    return [*kept, kept_energy(tree, rows, speeds) if layout.energy else 0.0]


def start_momentum(program: Program, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Conserved quantities of states, (B, nq) and (B, nv), one for each of the program's rows: (B, 7).

    By the engine's graph: the bits are those of a page (page_step.py), whose kernels take the same text.
    """
    robot, real = program.robot, "float64"

    def text(program: Program) -> Any:
        def kept(q: Any, v: Any, tau: Any, carried: Any, parameters: Any, *more: Any) -> list[list[Any]]:
            tree = program.problem(parameters, more).tree
            return [kept_of(program, tree, robot.split_q(q), robot.split_v(v))]

        return kept

    kernel = program.built("start", text, [], [("kept", (7,))])
    parameters = np.atleast_2d(program.parameters(1.0))
    rest = [np.zeros((1, size)) for _, size in program.given.inputs]
    out = np.zeros((len(q), 7))
    for first in range(0, len(q), BLOCK):
        part = slice(first, first + BLOCK)
        own = parameters[part] if len(parameters) > 1 else parameters
        rows = [q[part], v[part], np.zeros((1, robot.nv)), np.zeros((1, program.layout.size)), own, *rest]
        given = [np.asarray(x, real) for x in rows]
        out[part] = kernel.unchecked(given, len(q[part]))[0]
    return out


# ==== how steps are taken =========================================================================


def tally(program: Program, entries: np.ndarray) -> dict[str, Any]:
    """Figures for a run's summary, of the ledgers at its end (..., size); NaN in those that failed."""
    if not program.contact:
        return {}
    own, parts = entries.reshape(-1, entries.shape[-1])[:, : program.sums], program.parts
    last = own[np.isfinite(own).all(axis=1)]
    steps, iterations, most, missed, _ = last[:, parts["own"]].T
    found: dict[str, Any] = {}
    if program.accuracy is not None:
        rejected, shortest, longest, not_met = last[:, parts["control"]].T
        found = {
            "accuracy": program.accuracy,
            "parts_taken": int(steps.sum()),
            "parts_rejected": int(rejected.sum()),
            "shortest_part": float(shortest[shortest > 0.0].min(initial=np.inf)),
            "longest_part": float(longest.max(initial=0.0)),
            "parts_not_met": int(not_met.sum()),
        }
        if not found["parts_taken"]:
            found["shortest_part"] = 0.0
    return found | {
        "contact_iterations_mean": float(iterations.sum() / max(1.0, steps.sum())),
        "contact_iterations_most": int(most.max(initial=0.0)),
        "residual_largest": float(last[:, motion.AT["residual"]].max(initial=0.0)),
        "steps_not_settled": int(missed.sum()),
        "deepest_overlap": float(last[:, motion.AT["overlap"]].max(initial=0.0)),
    }


def step_inputs(
    program: Program, x: Mapping[str, np.ndarray], tau: np.ndarray, given: Iterable[np.ndarray]
) -> Arrays:
    """Arrays of a step by name, from joint forces tau and inputs from actuators, pushes and motions.

    All have the same leading axes: tau is (..., nv) [N m | N], the inputs are (..., size) as in
    ``program.given.inputs``. Joint forces of driven joints go through the motors.
    """
    found = {"joint_forces": tau}
    for (name, _), values in zip(program.given.inputs, given, strict=True):
        if name == "drives":
            rows = x["dof_row"][x["motor_dof"]]
            u = values + tau[..., rows]
            found["joint_forces"] = np.array(tau)
            found["joint_forces"][..., rows] = 0.0
            found["motor_command"] = command = np.empty((*u.shape, 2))
            command[..., 0], command[..., 1] = u, x["motor_command"][:, 1]
        elif name == "pushes":
            found["push_wrench"] = values.reshape(*values.shape[:-1], -1, 6)
        else:
            found["motion_values"] = values.reshape(*values.shape[:-1], -1, 3)
    return found


def entries_of(program: Program, x: dict[str, np.ndarray]) -> np.ndarray:
    """The ledger of a program from the accounts of its steps, (..., size)."""
    return np.concatenate([part for _, part in _accounts(program, x)], axis=-1)


def _accounts(program: Program, x: Mapping[str, np.ndarray]) -> Iterator[tuple[slice, np.ndarray]]:
    """The parts of a program's ledger that there are, and views of the accounts of its steps in which they
    are kept, (..., size).
    """
    sums, motors = x["ledger"], x["motor_sums"]
    kept = {"sums": sums[..., : motion.SIZE], "own": sums[..., motion.SIZE :], "measured": x["measured"]}
    kept["drives"] = motors.reshape(*sums.shape[:-1], -1)
    for name, part in program.parts.items():
        if part.stop > part.start:
            yield part, kept[name] if name in kept else x[IN_STEPS[name]]


class ContactStepper(ContactState):
    """Steps of one state of a program by the kernel of contact/step.py."""

    def __init__(self, program: Program, dt: float) -> None:
        """At rest, in steps of dt [s]."""
        self.program, self.dt = program, dt
        options: dict[str, Any] = {"reproducible": program.reproducible, "dtype": program.dtype}
        options["springs"] = program.springs.functions
        super().__init__(program.robot, dt, step_numbers(program, dt), **options)

    @property
    def q(self) -> np.ndarray:
        """The configuration, in place."""
        return self.arrays["q"]

    @property
    def v(self) -> np.ndarray:
        """The velocity, in place."""
        return self.arrays["v"]

    @property
    def noting(self) -> bool:
        """Whether each step is noted."""
        return bool(self.arrays["watched"][0] == 2)

    @noting.setter
    def noting(self, on: bool) -> None:
        self.arrays["watched"][0] = 2 if on else 0

    def begin(
        self,
        q: np.ndarray,
        v: np.ndarray,
        memory: np.ndarray | None = None,
        entries: np.ndarray | None = None,
    ) -> None:
        """Start from a state; in the middle of a run, with the results of memory() and entries() there."""
        x = self.arrays
        x["q"][:], x["v"][:] = q, v
        if memory is None:
            self.forget()
        else:
            self.unpack(memory)
        for part, own in _accounts(self.program, self.arrays):
            own[:] = 0.0 if entries is None else entries[part]

    def give(self, tau: np.ndarray, given: Sequence[np.ndarray]) -> None:
        """Joint forces of the steps to come, and inputs from actuators and pushes."""
        x = self.arrays
        for name, numbers in step_inputs(self.program, x, tau, given).items():
            x[name][...] = numbers

    @property
    def taken(self) -> int | None:
        """Steps that the state has taken, by its own accounts; None where they are no longer finite."""
        taken = float(steps_taken(self.arrays))
        return int(taken) if math.isfinite(taken) else None

    def entries(self) -> np.ndarray:
        """The ledger of the program."""
        return entries_of(self.program, self.arrays).astype(float, copy=False)

    def impulse(self) -> np.ndarray:
        """Impulse of the ground so far, (6,) as in the ledger."""
        return self.arrays["ledger"][motion.IMPULSE].astype(float)

    def memory(self) -> np.ndarray:
        """What the next step is handed besides q and v."""
        return self.packed()

    def notes(self) -> dict[str, np.ndarray]:
        """What was noted since the last call, by name (contact/monitor.py)."""
        return {name.removeprefix("noted_"): x for name, x in super().notes().items()}

    def last(self) -> dict[str, np.ndarray] | None:
        """The notes of the last step alone, which stay; None where it was not noted."""
        x = self.arrays
        end = int(x["noted"][0])
        if not end:
            return None
        first, share = end - 1, float(x["noted_share"][end - 1])
        while share < 1.0 and first:  # a step in parts
            first -= 1
            share += float(x["noted_share"][first])
        before = int(x["noted_end"][first - 1]) if first else 0
        found = {
            n.removeprefix("noted_"): a[first:end].copy() for n, a in x.items() if n.startswith("noted_")
        }
        found["end"] -= before
        found["contact"] = x["noted_contact"][before : x["noted_end"][end - 1]].copy()
        return found

    def forget_notes(self) -> None:
        """None are there any more."""
        self.arrays["noted"][:] = 0

    def room_for(self, steps: int, most: int) -> None:
        """Reserve memory for notes of so many steps, up to a limit; unused pages take no physical memory."""
        size = sum(self.arrays[a.name].strides[0] for a in NOTES[1:] if a.shape[0] == "n_noted")
        self.make_room({"n_noted": max(self.sizes["n_noted"], min(steps, most // size))})

    def rest(self) -> None:
        """Release the stepper: another one of the same program may reuse it, except for large memory."""
        self.noting = False
        self.notes()  # and large room for them
        if sum(x.nbytes for x in self.work.values()) > KEPT_BYTES:
            self.work, self._call = {}, None

    @property
    def noted_bytes(self) -> int:
        """Memory of the notes [bytes]; unused pages count as none."""
        x = self.arrays
        counts = dict(zip(NOTED_AT_START, x["noted"].tolist(), strict=True))
        return sum(x[a.name].strides[0] * counts[str(a.shape[0])] for a in NOTES[1:])


class PassiveStepper:
    """Steps of one state by the kernel of passive motion: a rollout of one row.

    ``q``, ``v``: the state, in place; ``noting``: whether each step is noted; ``taken``: steps since it was
    made.
    """

    def __init__(self, program: Program, dt: float) -> None:
        """See :class:`ContactStepper`."""
        self.program, self.dt, self.kernel, robot = program, dt, program.kernel(), program.robot
        self.noting, self.taken = False, 0
        given = [np.zeros((1, 1, size), program.dtype) for _, size in program.given.inputs]
        start = robot.neutral()[None], np.zeros((1, robot.nv))
        self._arrays = kernel_inputs(program, *start, dt, np.zeros((1, 1, robot.nv), program.dtype), given)
        own = (0, 1, 4, 3)  # of the arrays, what steps change, in one row: what is noted is in front
        ends = np.cumsum([0, *(self._arrays[k].size for k in own)])
        self._state = np.concatenate([self._arrays[k].ravel() for k in own])
        self._parts = [slice(a, b) for a, b in itertools.pairwise(ends.tolist())]
        for k, part in zip(own, self._parts, strict=True):
            self._arrays[k] = self._state[None, None, part]
        self.q, self.v, self._carried, self._ledger = (self._state[part] for part in self._parts)
        self._unmeasured = self._state[: len(self._state) - program.measured.size]
        self._sums = np.zeros(program.entries)
        self._noted: list[np.ndarray] = []
        self._runner: RolloutRunner | None = None

    @property
    def refused(self) -> str | None:
        """Why there is no machine code, or None."""
        return self.kernel.refused

    def begin(
        self,
        q: np.ndarray,
        v: np.ndarray,
        memory: np.ndarray | None = None,
        entries: np.ndarray | None = None,
    ) -> None:
        """See :class:`ContactStepper`."""
        self.q[:], self.v[:], self._sums[:] = q, v, 0.0
        start = self.q[None].astype(float), self.v[None].astype(float)
        self._carried[:] = first_carried(self.program, *start)[0] if memory is None else memory
        self._ledger[:] = 0.0 if entries is None else entries

    def give(self, tau: np.ndarray, given: Sequence[np.ndarray]) -> None:
        """See :class:`ContactStepper`."""
        for x, now in zip((self._arrays[2], *self._arrays[6:]), (tau, *given), strict=True):
            x[0, 0] = now

    def take(self, steps: int) -> int:
        """See :class:`ContactStepper`."""
        runner = self._runner or self._use(self.kernel.rollout_runner(baseline=True))
        done, started = 0, time.perf_counter()
        most = 1 if self.noting else self._most
        state = self._state
        while done < steps:
            few, before = min(most, steps - done), state.copy()
            try:
                self._run(few)
            except BaseException:  # Ctrl-C, before the steps or after them
                state[:] = before
                raise
            good = is_finite(self._unmeasured)  # what is measured may be NaN
            if few > 1 and not good:  # to find the last good one
                state[:], most = before, 1
                continue
            self.taken += few
            if self.noting:
                self._noted.append(before)
            if not good:
                return done
            done += few
        if self._ledger.dtype != self._sums.dtype:
            add_up(self._sums, self._ledger)
        if self._baseline and steps:
            self._use(self.kernel.newer(runner, time.perf_counter() - started))
        return done

    def _use(self, runner: RolloutRunner) -> RolloutRunner:
        if runner is not self._runner:
            self._runner, self._run = runner, runner.of_one_row(self._arrays)
            self._most, self._baseline = runner.most, runner.baseline
        return runner

    def entries(self) -> np.ndarray:
        """The ledger of the program."""
        return self._sums + self._ledger

    def impulse(self) -> np.ndarray:
        """That of the ground: none, (6,)."""
        return self.entries()[motion.IMPULSE]

    def memory(self) -> np.ndarray:
        """See :class:`ContactStepper`."""
        return self._carried

    def notes(self) -> dict[str, np.ndarray]:
        """What steps set out from since the last call: q, v, carried."""
        noted, self._noted = self._noted, []
        rows = np.array(noted, float).reshape(len(noted), len(self._state))
        return {n: rows[:, part] for n, part in zip(("q", "v", "carried"), self._parts, strict=False)}

    def last(self) -> dict[str, np.ndarray] | None:
        """See :class:`ContactStepper`."""
        rows = [x[None].astype(float) for x in self._noted[-1:]]
        found = zip(("q", "v", "carried"), self._parts, strict=False)
        return {name: rows[0][:, part] for name, part in found} if rows else None

    def forget_notes(self) -> None:
        """See :class:`ContactStepper`."""
        self._noted = []

    def room_for(self, steps: int, most: int) -> None:
        """Do nothing: notes take the memory that they need."""

    @property
    def noted_bytes(self) -> int:
        """Memory of the notes [bytes]."""
        return len(self._noted) * self._state.nbytes


Stepper = ContactStepper | PassiveStepper


def stepper(program: Program, dt: float, owner: Any = None) -> Stepper:
    """What takes the steps of a program, of dt [s]; see :func:`contact_stepper`."""
    return contact_stepper(program, dt, owner) if program.contact else PassiveStepper(program, dt)


def contact_stepper(program: Program, dt: float, owner: Any = None) -> ContactStepper:
    """Steps with contact, of which nothing is noted; of ``owner`` see :func:`left_over`."""
    return left_over(ContactStepper, program, dt, owner)


def left_over(make: Callable[[Program, float], Any], program: Program, dt: float, owner: Any) -> Any:
    """A stepper with contact for steps of dt [s]: one that a former owner released, or a new one.

    ``make``: its class, whose ``rest`` is called when it is released; ``owner``: an object at whose end it is
    released; None if it belongs to the caller for good.
    """
    if owner is None or program.springs.functions:  # of the user: another one may have the same name
        return make(program, dt)
    about = program.ground, program.between, program.given, program.given_numbers, program.dtype
    kept = program.measured, program.felt, program.accuracy, program.reproducible
    more = *kept, engine(), dt, program.springs
    try:
        key = make, program.joints, sha256(pickle.dumps((*about, *more))).digest()
    except (pickle.PicklingError, AttributeError, TypeError):  # measures that are functions of the user
        return make(program, dt)
    spare: Spare[Any] = program.robot.derived.get("spare steps with contact", lambda: Spare(4))
    found = spare.take(key, lambda: make(program, dt))
    found.program = program

    def leave() -> None:
        found.rest()
        spare.give(key, found)

    weakref.finalize(owner, leave)
    return found
