"""Steps of one state of a robot and its ground, in the arrays of the step (contact/step.py)."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from robokit.algorithms.kinematics import forward_kinematics
from robokit.collision.fields import FIELD
from robokit.collision.scene import ERROR, Scene, scene, touches_as_its_inertia
from robokit.contact import accounts
from robokit.contact.accounts import FIXED, FLOATS, NOTHING, TOGETHER
from robokit.contact.materials import (
    LEAST,
    Surface,
    body_numbers,
    joint_numbers,
    loop_numbers,
    mobilities,
    motor_numbers,
    pair_numbers,
    sizes,
)
from robokit.contact.measures import KEPT
from robokit.contact.monitor import NOTES
from robokit.contact.robot_data import robot_data
from robokit.contact.step import ADDED, ARRAYS, step_kernel
from robokit.contact.step_control import controlled_kernel
from robokit.dataclass_tools import Recent
from robokit.engine.loops.environment import NoMachineCode
from robokit.engine.maker import engine
from robokit.engine.memory import address
from robokit.engine.signature import ArrayOf
from robokit.model.robot import Robot
from robokit.model.tree import Tree
from robokit.sim.ground import Ground, plane_of, weight, world_of
from robokit.sim.motion import floats, hangs_on_nothing, may_keep_energy
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


# ---- arrays of the step -----------------------------------------------------------------------------------

Arrays = dict[str, np.ndarray]


def step_numbers(program: Program, dt: float) -> Arrays:
    """All arrays of a step that do not change in a run.

    Args:
        dt: time step [s].
    """
    robot, scene = program.robot, scene_of(program)
    found = {**robot_data(robot), **_bodies(program, 0), **loop_numbers(robot)}
    one = robot if robot.samples is None else robot.sample(0)
    found |= program.springs.numbers(robot, size_of(one) or 1.0)
    found |= prescribed_numbers(robot, program.given.motions)
    found |= _measured(program, scene, found)
    found |= _control(program)
    return found | _motors(program, dt, 0) | _pushes(program) | scene.arrays | _pairs(program, scene, 0)


def prescribed_numbers(robot: Robot, bodies: Sequence[int]) -> Arrays:
    """Joints whose motion is prescribed."""
    dofs = [robot.tree.v_slice[body].start for body in bodies]
    return {"motion_dof": np.array(dofs, np.int32), "motion_values": np.zeros((len(dofs), 3))}


def _control(program: Program) -> Arrays:
    """What a step that is divided takes besides."""
    if program.accuracy is None:
        return {}
    return {
        "accuracy": np.array([program.accuracy]),
        "coordinate_weight": coordinate_weights(program.robot),
        "part": np.zeros(3, np.int32),
    }


def coordinate_weights(robot: Robot) -> np.ndarray:
    """What makes a small change of each entry of q an angle [rad], or a share of the robot's size, (nq,)."""
    lengths = {"prismatic": (0,), "cylindrical": (1,), "planar": (1, 2), "floating": (4, 5, 6)}
    weights = np.ones(robot.nq)
    one = robot if robot.samples is None else robot.sample(0)
    for joint in robot.joints:
        first, kind = joint.q_slice.start, robot.tree.joint[joint.body].kind
        if kind.quaternion is not None:
            weights[first + kind.quaternion : first + kind.quaternion + 4] = 2.0
        for k in lengths.get(kind.name, ()):
            weights[first + k] = 1.0 / (size_of(one) or 1.0)
    return weights


def _bodies(program: Program, row: int) -> Arrays:
    """Numbers of bodies and joints that inertias decide."""
    robot, joints = program.robot, program.joints
    found = body_numbers(robot) | {"inertia": robot_data(robot)["inertia"]}
    if robot.samples is not None:
        found |= {name: found[name][row] for name in ("inertia", "body_mobility", "dof_mobility")}
    gains = [gain[row] if np.ndim(gain) else gain for gain in joints.gains]
    return found | joint_numbers(robot, joints.with_gains(gains))


def differ(program: Program) -> bool:
    """Whether rows of a batch differ in their inertias, in the ground, or in the numbers of motors."""
    drives = sum(len(drive.parameters) for drive in program.given.drives)
    several = any(np.ndim(x) > 0 for x in list(program.given_numbers)[:drives])
    several = several or program.robot.samples is not None
    return several or (program.ground is not None and program.ground.rows is not None)


def row_numbers(program: Program, dt: float, scene: Scene, rows: np.ndarray) -> Arrays:
    """The arrays in which rows of a batch differ, (n, ...) each.

    Args:
        dt: time step [s].
        scene: of the first row.
        rows: numbers of some rows, (n,).
    """
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
        found |= _pairs(program, scene, rows)
    if samples:
        bodies = [_bodies(program, row) for row in rows.tolist()]
        found |= {name: np.array([x[name] for x in bodies]) for name in bodies[0]}
    if ground is not None and ground.plane and np.ndim(ground.normal) == 2:
        places = np.repeat(scene.arrays["shape_placement"][None], len(rows), axis=0)
        for place, row in zip(places, rows.tolist(), strict=True):
            plane, _ = plane_of(ground.row(row))
            place[0] = np.concatenate([plane.rotation.ravel(), plane.position])
        found["shape_placement"] = places
    return {name: np.array(x, order="C") for name, x in found.items()}


def _pairs(program: Program, scene: Scene, row: int | np.ndarray) -> Arrays:
    """Numbers of the pairs of shapes, of a row, or of some: (n, ...) each."""
    robot, found = program.robot, scene
    law = program.ground or Ground()
    shapes, pairs = found.arrays, found.arrays["pair_shapes"]
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
    return pair_numbers(shapes, pairs, (k, d, _at(weight(robot), row)), surface, between)


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
    """What can touch in a program, kept with it; those of a robot on a plane are kept with the robot."""
    found = vars(program).get("scene")
    if found is None:
        found = vars(program)["scene"] = _scene(program)
    return found


def _scene(program: Program) -> Scene:
    ground, error, bodies = program.ground, _error(program), tuple(program.touching_bodies)
    world = None if ground is None else world_of(ground)
    if ground is not None and not ground.only_plane:
        return scene(program.robot, world, bodies, error)
    about: tuple[Any, ...] = (error, bodies)
    if world is not None and world.plane is not None:
        about += (*world.plane.rotation.ravel().tolist(), *world.plane.position.tolist(), *world.velocity)
    kept: Recent[Scene] = program.robot.derived.get("scenes of steps", lambda: Recent(4))
    return kept.get(about, lambda: scene(program.robot, world, bodies, error))


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
    rest = iter(program.given_numbers)
    own = [{name: _at(next(rest), row) for name in drive.parameters} for drive in drives]
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


def _pushes(program: Program) -> Arrays:
    """Places of the pushes."""
    places, rest = program.given.places, iter(program.given_numbers)
    skipped = sum(len(drive.parameters) for drive in program.given.drives)
    numbers: list[Any] = list(rest)[skipped:]
    points = np.zeros((len(places), 3))
    for k, (_, world) in enumerate(places):
        if not world:
            points[k], numbers = [float(np.ravel(z)[0]) for z in numbers[:3]], numbers[3:]
    return {
        "push_body": np.array([body for body, _ in places], np.int32),
        "push_point": points,
        "push_in_world": np.array([world for _, world in places], np.int32),
        "push_wrench": np.zeros((len(places), 6)),
    }


# ==== one state through the step ==================================================================

TOLERANCE = 1e-6
"""Of a step's residual beyond rounding, over the impulses of the step, before the polish that squares it."""

AT_START = {"n_contacts": 16, "n_near": 32, "n_constraints": 16, "n_rows": 0}
"""Places to begin with. A step that needs more is taken again with more."""

NOTED_AT_START = {"n_noted": 64, "n_noted_contacts": 512}
"""The same of what is noted."""

KEPT_BYTES = 1 << 24
"""Room for notes that is kept for those of the next steps; new room takes 2 ms."""

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
    "step_share": np.array([1.0, 0.0]),
}
"""Of the monitor."""

ENDS = tuple(name for name in MEMORY if name.endswith("_pair"))
"""Those of them that end so."""

KEPT_ARRAYS = ("kept", "change", "loop_force", "dry_force", "motion_force", "part")
"""What else it hands on, if there is such an array."""

LAYOUT = KEPT_ARRAYS, tuple((a.name, a.shape) for a in ARRAYS if a.role == "inout"), accounts.ENTRIES
"""What a saved state is made of; that of a batch has all that steps read and write."""


def keeps(tree: Tree) -> int:
    """What the end of a step corrects."""
    if hangs_on_nothing(tree):
        return FLOATS if floats(tree) and may_keep_energy(tree) else TOGETHER
    return FIXED if may_keep_energy(tree) else NOTHING


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
        """At rest in the neutral configuration.

        Args:
            dt: time step [s].
            numbers: the arrays ROBOT, SHAPES, PAIRS and FORCES by name, and what of STEP is given; with
                "accuracy" those of CONTROL, and steps are divided to it (contact/step_control.py).
            options: ``tolerance``; ``dtype``; ``reproducible``; ``engine``, "python" for no machine code;
                ``springs``, tensions that are functions.
        """
        self.dtype: str = options.get("dtype", "float64")
        kernel = controlled_kernel if "accuracy" in numbers else step_kernel
        self.kernel = kernel(bool(options.get("reproducible", False)), options.get("springs", ()))
        given = {"dt": np.array([dt]), "tolerance": np.array([options.get("tolerance", TOLERANCE)])}
        given |= {"keeps": np.array([keeps(robot.tree)], np.int32), "orders": np.array([1], np.int32)}
        given |= {**NOTHING_MEASURED, **numbers}
        self.sizes = {"nq": robot.nq, "nv": robot.nv, "n_ledger": len(accounts.ENTRIES), **AT_START}
        self.sizes |= NOTED_AT_START
        self.sizes |= _sizes((*ARRAYS, *self.kernel.arrays), given, self.sizes)
        # loops.py and force_elements.py ask for these every time.
        self.sizes["n_constraints"] += 2 * self.sizes["n_loops"] + self.sizes["n_springs"]
        n = self.sizes
        n["n_rows"] = 2 * n["n_dofs"] + n["n_stops"] + n["n_motors"] + n["n_motions"]  # all that can be
        self.arrays: Arrays = {a.name: self._made(a, given) for a in self.kernel.taken}
        self.work: Arrays = {}
        self.refused: str | None = None
        self.plain = "python" in (engine(), options.get("engine"))
        self._call: Any = None
        self._version = 0  # of the kernel's code
        self.arrays["q"][:] = robot.neutral()
        lists = [name for name in MEMORY if name not in ENDS]
        self._zero = (*lists, *handed_on(self.arrays), "needed", "noted")
        self.forget()

    def _made(self, a: ArrayOf, given: Mapping[str, np.ndarray]) -> np.ndarray:
        x = a.zeros(self.sizes, self.dtype)
        if a.name in given:
            x[...] = given[a.name]
        return x

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
            before = steps_taken(self.arrays)
            self.ready()(steps - done)
            taken = steps_taken(self.arrays) - before
            if not math.isfinite(taken):
                return done
            done += int(taken)
            if self.arrays["needed"][0]:
                self._enlarge()
            elif not self.finite:
                return done - 1
        return done

    @property
    def finite(self) -> bool:
        """Whether the state is."""
        q, v = self.arrays["q"], self.arrays["v"]
        if math.isfinite(q.sum() + v.sum()):  # almost always, and quicker
            return True
        return bool(np.isfinite(q).all() and np.isfinite(v).all())

    def _enlarge(self) -> None:
        """Half as much again as was needed, where it was too little; of notes four times what there was."""
        needed = self.arrays["needed"]
        sizes = enlarged(self.sizes, needed)
        self.make_room({name: 4 * n if name in NOTED_AT_START else n for name, n in sizes.items()})
        needed[:] = 0

    def notes(self) -> Arrays:
        """What was noted of each step since the last call (contact/monitor.py), by name, as float64."""
        counts = dict(zip(NOTED_AT_START, self.arrays["noted"].tolist(), strict=True))
        found = {a.name: self.arrays[a.name][: counts[str(a.shape[0])]] for a in NOTES[1:]}
        self.arrays["noted"][:] = 0
        if self.dtype != "float64":
            found = {name: x.astype(float) if x.dtype.kind == "f" else x for name, x in found.items()}
        if sum(self.arrays[a.name].nbytes for a in NOTES) < KEPT_BYTES:
            return {name: x.copy() for name, x in found.items()}
        self.sizes |= NOTED_AT_START
        self.arrays |= {a.name: a.zeros(self.sizes, self.dtype) for a in NOTES[1:]}
        self._call = None
        return found

    def make_room(self, sizes: dict[str, int]) -> None:
        """Larger arrays, with what is in them.

        Args:
            sizes: new ones by name, of those in ``ADDED``.
        """
        larger, made = self.sizes | sizes, {}
        for a in self.kernel.taken:
            old = self.arrays[a.name]
            if old.shape != a.at(larger):
                new = made[a.name] = a.zeros(larger, self.dtype)
                if a.name.endswith("_pair"):
                    new[...] = -1
                new[: len(old)] = old
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
        """Go on from what :meth:`packed` gave; from nothing, if that is shorter than it can be."""
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
    """Arrays besides lists, q and v that a step hands on, of those of a simulation."""
    return [name for name in KEPT_ARRAYS if name in x]


def steps_taken(x: Mapping[str, np.ndarray]) -> Any:
    """How many steps an array of states has taken, or one state; NaN may be among them."""
    return np.array(x["part"][..., 2] if "control" in x else x["ledger"][..., STEPS])


def enlarged(sizes: Mapping[str, int], needed: Sequence[int] | np.ndarray) -> dict[str, int]:
    """Half as much again as was needed, where it was too little.

    Args:
        sizes: as they are.
        needed: what a step says, an array of its name.
    """
    needs = zip(ADDED, (int(n) for n in needed[1:]), strict=True)
    return {name: need + need // 2 for name, need in needs if need > sizes[name]}


def _count(pairs: np.ndarray) -> int:
    """Entries of a list before the first -1."""
    ends = pairs < 0
    first = int(ends.argmax()) if len(pairs) else 0
    return first if len(pairs) and ends[first] else len(pairs)


def _sizes(
    arrays: Sequence[ArrayOf], given: Mapping[str, np.ndarray], known: Mapping[str, int]
) -> dict[str, int]:
    """Sizes that given arrays tell."""
    found: dict[str, int] = {}
    for a in arrays:
        if a.name in given:
            for n, size in zip(a.shape, np.shape(given[a.name]), strict=True):
                if isinstance(n, str) and n not in known:
                    found[n] = size
    return found
