"""Robots compared with what every installed engine makes of their files, and tables of the errors.

compare           one robot
compare_files     many robots, one after the other
table             one robot as lines of text
files_table       many robots as lines of text
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import textwrap
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from robokit.dataclass_tools import frozen
from robokit.dynamics import (
    aba,
    bias_forces,
    center_of_mass,
    centroidal_momentum_matrix,
    crba,
    forward_kinematics,
    rnea,
)
from robokit.dynamics.singular import singular_joint
from robokit.errors import MissingDependency, RobokitError, UrdfError, counted, warnings_into
from robokit.formats import other_programs
from robokit.formats.drake import quiet_drake
from robokit.formats.load import format_of, load
from robokit.formats.other_programs import count_and_names, installed_version, one_line, peer_faults
from robokit.formats.urdf import robot_text
from robokit.interop import DrakeAdapter, MujocoAdapter, PinocchioAdapter
from robokit.mjcf import to_mjcf
from robokit.model.builder import ModelBuilder
from robokit.model.edit import armature_by_dof
from robokit.model.parts import Joint, Link, free_name
from robokit.model.robot import Robot, is_base
from robokit.parity.inertials import steiner
from robokit.stages import stage
from robokit.urdf import dump
from robokit.urdf.xacro import is_xacro

# ==== what Pinocchio, MuJoCo and Drake answer for a URDF and a state ==============================
# The opener of an engine is called with the XML, the robot as robokit read it, and a list, to which it adds
# what it had to change for the engine. It returns a function that answers for a state, in robokit's order. It
# raises whatever the engine raises over the file.

Answers = dict[str, np.ndarray]


@frozen
class State:
    """q (nq,), v, a and tau (nv,), as robokit has them; tau is None if no accelerations are asked for."""

    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    tau: np.ndarray | None


Answering = Callable[[State], Answers]
Opener = Callable[[bytes, Robot, list[str]], Answering]


def root_link(robot: Robot) -> str:
    """Name of the root link: the one that is no joint's child."""
    joints = (*robot.body_joints, *robot.fixed_joints)
    carried = {joint.child_link for joint in joints if not is_base(robot, joint)}
    return next(name for name in robot.link_names if name not in carried)


def names_there(robot: Robot) -> dict[str, str]:
    """Name of a link -> its name for MuJoCo and Drake, where "world" is the fixed frame."""
    names = {name: name for name in robot.link_names}
    if THEIR_WORLD in names:
        names[THEIR_WORLD] = free_name(THEIR_WORLD + "_link", set(names))
    return names


# ---- The XML that the other engines are given: the file without what H, C and poses do not depend on

OMITTED_ELEMENTS = ("visual", "collision", "limit", "dynamics", "mimic", "safety_controller", "calibration")

THEIR_WORLD = "world"  # name of the fixed frame of MuJoCo and of Drake


def _parsed(text: bytes, **options: Any) -> Any:
    """The outermost element; nothing else is opened."""
    from lxml import etree

    return etree.fromstring(text, etree.XMLParser(resolve_entities=False, no_network=True, **options))


def without_other_links(text: bytes, links: Collection[str]) -> bytes:
    """A URDF without the links that a robot does not have, and the joints that hang on them.

    A root and a floating joint that are the floating base themselves are not in robokit's robot.
    """
    from lxml import etree

    root = _parsed(text)
    left_out = {link.get("name") for link in root.iterfind("link")} - set(links)
    if not left_out:
        return text
    for element in list(root):
        parent = element.find("parent") if element.tag == "joint" else None
        if (element.tag == "link" and element.get("name") in left_out) or (
            parent is not None and parent.get("link") in left_out
        ):
            root.remove(element)
    return bytes(etree.tostring(root))


def plain_text(text: bytes, world: str = THEIR_WORLD) -> str:
    """A URDF without shapes, limits, friction, mimic joints and extensions; a link "world" gets a new name.

    MuJoCo cannot load a file without reading its meshes, and refuses revolute joints without limits.
    """
    from lxml import etree

    root = _parsed(text, remove_comments=True)
    for element in list(root.iter(*OMITTED_ELEMENTS)):
        element.getparent().remove(element)
    for element in list(root):
        if element.tag not in ("link", "joint"):
            root.remove(element)
    for joint in root.iter("joint"):
        if joint.get("type") == "revolute":
            joint.set("type", "continuous")
    for element, name in [(e, key) for e in root.iter("link", "parent", "child") for key in ("name", "link")]:
        if element.get(name) == THEIR_WORLD:
            element.set(name, world)
    options = {"fusestatic": "false", "discardvisual": "true", "balanceinertia": "false", "strippath": "true"}
    etree.SubElement(etree.SubElement(root, "mujoco"), "compiler", options)
    return str(etree.tostring(root, encoding="unicode"))


# ---- Pinocchio's answers for a URDF --------------------------------------------------------------


def open_pinocchio(text: bytes, robot: Robot, changes: list[str]) -> Answering:
    """Load a URDF into Pinocchio; mimic joints are coordinates of their own."""
    import pinocchio as pin
    from lxml import etree

    root = (pin.JointModelFreeFlyer(),) if robot.base == "floating" else ()
    # As a string without a declaration of another encoding.
    model = pin.buildModelFromXML(etree.tostring(_parsed(text), encoding="unicode"), *root)
    to = PinocchioAdapter(robot, model)
    model.armature = to.armature()
    data = model.createData()
    frames = [model.getFrameId(name, pin.FrameType.BODY) for name in robot.link_names]

    def answers(x: State) -> Answers:
        q, v = to.q(x.q), to.v(x.v)
        pin.framesForwardKinematics(model, data, q)
        poses = [data.oMf[k] for k in frames]
        H = np.triu(pin.crba(model, data, q))
        out = {
            "mass": np.array(sum(model.inertias[k].mass for k in range(1, model.njoints))),
            "H": to.matrix_back(H + np.triu(H, 1).T),
            "C": to.v_back(pin.nonLinearEffects(model, data, q, v)),
            "tau": to.v_back(pin.rnea(model, data, q, v, to.v(x.a))),
            "rotation": np.array([M.rotation for M in poses]),
            "position": np.array([M.translation for M in poses]),
        }
        if x.tau is not None:
            out["qdd"] = to.v_back(pin.aba(model, data, q, v, to.v(x.tau)))
        if robot.total_mass > 0:
            out["CoM"] = np.array(pin.centerOfMass(model, data, q))
            out["A_G"] = to.centroidal_back(pin.computeCentroidalMap(model, data, q))
        return out

    return answers


# ---- MuJoCo's answers for a URDF; if MuJoCo cannot load it, for the MJCF that robokit writes of it


def open_mujoco(text: bytes, robot: Robot, changes: list[str]) -> Answering:
    """Load a URDF into MuJoCo, with contacts, limits and passive forces switched off."""
    import mujoco

    try:
        names = names_there(robot)
        spec = mujoco.MjSpec.from_string(plain_text(text, names.get(THEIR_WORLD, THEIR_WORLD)))
        if robot.base == "floating":
            spec.body(names[root_link(robot)]).add_freejoint()
        model = spec.compile()
    except Exception as refusal:  # of any type; robokit's MJCF may still load
        try:
            with warnings_into([]):  # what cannot be written is not compared either
                model = mujoco.MjModel.from_xml_string(to_mjcf(robot, meshes=False, visuals=False))
        except Exception as second:
            both = one_line(refusal), one_line(second)
            raise ValueError(both[0] if both[0] == both[1] else "; as robokit's MJCF: ".join(both)) from None
        changes.append(f"it cannot load the URDF ({one_line(refusal)}); robokit's own MJCF of it is compared")
    return mujoco_answering(model, robot)


def mujoco_answering(model: Any, robot: Robot) -> Answering:
    """The function that answers for a robot with a MuJoCo model of it; joints and links go by name."""
    import mujoco

    model.opt.gravity[:] = robot.gravity
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    model.dof_damping[:] = model.dof_frictionloss[:] = 0.0
    to = MujocoAdapter(robot, model)
    model.dof_armature[:] = to.T(robot.neutral()) ** 2 @ armature_by_dof(robot)
    data = mujoco.MjData(model)
    moving = model.body_weldid != 0

    def answers(x: State) -> Answers:
        data.qpos[:], data.qvel[:] = to.q(x.q), to.v(x.q, x.v)
        data.qfrc_applied[:] = 0.0 if x.tau is None else to.force(x.q, x.tau)
        mujoco.mj_forward(model, data)
        M = np.zeros((model.nv, model.nv))
        if hasattr(data, "qM"):
            mujoco.mj_fullM(model, M, data.qM)  # up to MuJoCo 3
        else:
            mujoco.mj_fullM(model, data, M)
        mass, (rotation, position) = model.body_mass[moving], mujoco_poses(model, data, robot, x.q)
        out = {
            "mass": np.array(mass.sum()),
            "H": to.matrix_back(x.q, M),
            "C": to.bias_back(x.q, x.v, data.qfrc_bias, M),
            "rotation": np.array(rotation),
            "position": np.array(position),
        }
        if x.tau is not None:
            out["qdd"] = to.a_back(x.q, x.v, data.qacc)
        data.qacc[:], data.qfrc_applied[:] = to.a(x.q, x.v, x.a), 0.0
        mujoco.mj_inverse(model, data)
        out["tau"] = to.force_back(x.q, data.qfrc_inverse)
        if robot.total_mass > 0:
            out["CoM"] = mass @ data.xipos[moving] / mass.sum()
            out["A_G"] = np.array([momentum(v, out["CoM"]) for v in to.T(x.q).T]).T
        return out

    def momentum(v: np.ndarray, center: np.ndarray) -> np.ndarray:
        data.qvel[:] = v
        mujoco.mj_comVel(model, data)
        mujoco.mj_subtreeVel(model, data)
        linear = data.subtree_linvel[0] * model.body_subtreemass[0]
        # MuJoCo's centre of mass is that of all bodies, including the fixed ones.
        return np.r_[data.subtree_angmom[0] + np.cross(data.subtree_com[0] - center, linear), linear]

    return answers


def mujoco_poses(
    model: Any, data: Any, robot: Robot, q: np.ndarray
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Rotations and positions of the robot's links in a model of MuJoCo, as bodies or sites.

    Links without mass between the joints of one body have no frame there: robokit's own pose is taken.
    """
    sites = {model.site(k).name: k for k in range(model.nsite)}
    bodies = {model.body(k).name: k for k in range(model.nbody)}
    names, own = names_there(robot), None
    found = []
    for link in robot.link_names:
        if link in sites:
            R, p = data.site_xmat[sites[link]], data.site_xpos[sites[link]]
        elif names[link] in bodies:
            R, p = data.xmat[bodies[names[link]]], data.xpos[bodies[names[link]]]
        else:
            own = own or forward_kinematics(robot, q, engine="python")
            R, p = own[link]
        found.append((R.reshape(3, 3).copy(), p.copy()))
    return [R for R, _ in found], [p for _, p in found]


# ---- Drake's answers for a URDF, with the inertias of the file -----------------------------------


def open_drake(text: bytes, robot: Robot, changes: list[str]) -> Answering:
    """Load a URDF without meshes; inertias that Drake's reader replaces are set back."""
    plant, bodies = _drake_plant(text, robot)
    context, to = plant.CreateDefaultContext(), DrakeAdapter(robot, plant)
    moving = [b for b, link in zip(bodies, robot.links, strict=True) if link.body > 0]
    _inertias_as_written(robot, bodies, context, changes)

    def answers(x: State) -> Answers:
        from pydrake.multibody.tree import MultibodyForces

        plant.SetPositions(context, to.q(x.q))
        plant.SetVelocities(context, to.v(x.q, x.v))
        M, none = plant.CalcMassMatrix(context), MultibodyForces(plant)
        gravity = plant.CalcGravityGeneralizedForces(context)
        forces = plant.CalcInverseDynamics(context, to.a(x.q, x.v, x.a), none) - gravity
        poses = [plant.EvalBodyPoseInWorld(context, body) for body in bodies]
        mass = np.array([body.get_mass(context) for body in moving])
        out = {
            "mass": np.array(mass.sum()),
            "H": to.matrix_back(x.q, M),
            "C": to.bias_back(x.q, x.v, plant.CalcBiasTerm(context) - gravity, M),
            "tau": to.force_back(x.q, forces),
            "rotation": np.array([X.rotation().matrix() for X in poses]),
            "position": np.array([X.translation() for X in poses]),
        }
        if x.tau is not None:
            plant.get_applied_generalized_force_input_port().FixValue(context, to.force(x.q, x.tau))
            try:
                rates = plant.EvalTimeDerivatives(context).get_generalized_velocity().CopyToVector()
                out["qdd"] = to.a_back(x.q, x.v, rates)
            except RuntimeError as refusal:
                said = f"it cannot compute accelerations: {one_line(refusal)}"
                changes.extend([] if said in changes else [said])
        if robot.total_mass > 0:
            at = [
                plant.EvalBodyPoseInWorld(context, b).multiply(b.CalcCenterOfMassInBodyFrame(context))
                for b in moving
            ]
            out["CoM"] = mass @ np.array(at) / mass.sum()
            out["A_G"] = np.array([momentum(v, out["CoM"]) for v in to.T(x.q).T]).T
        return out

    def momentum(v: np.ndarray, center: np.ndarray) -> np.ndarray:
        plant.SetVelocities(context, v)
        L = plant.CalcSpatialMomentumInWorldAboutPoint(context, center)
        return np.r_[L.rotational(), L.translational()]

    return answers


def _drake_plant(text: bytes, robot: Robot) -> tuple[Any, list[Any]]:
    """A plant of the URDF with the robot's base, gravity and rotors; its bodies in the order of the links."""
    from pydrake.multibody.parsing import Parser
    from pydrake.multibody.plant import MultibodyPlant

    names, plant = names_there(robot), MultibodyPlant(0.0)
    plain = plain_text(text, names.get(THEIR_WORLD, THEIR_WORLD))
    with quiet_drake():  # robot.diagnostics has its warnings about inertias
        (instance,) = Parser(plant).AddModelsFromString(plain, "urdf")
    if robot.base == "fixed":
        root = plant.GetBodyByName(names[root_link(robot)], instance)
        plant.WeldFrames(plant.world_frame(), root.body_frame())
    plant.mutable_gravity_field().set_gravity_vector(robot.gravity)
    for joint in robot.joints:
        if joint.armature:
            rotor = plant.AddJointActuator(f"{joint.name} rotor", plant.GetJointByName(joint.name, instance))
            rotor.set_default_rotor_inertia(joint.armature)
    plant.Finalize()
    return plant, [plant.GetBodyByName(names[link], instance) for link in robot.link_names]


def _inertias_as_written(robot: Robot, bodies: list[Any], context: Any, changes: list[str]) -> None:
    """Set the inertias of the file where Drake's reader has replaced them.

    Drake's reader replaces an inertia that no body can have by that of a ball of water: of the link's mass,
    or of 1 kg if the link has none. Drake has no inertia without mass; such a link's inertia is moved to a
    link with mass that it is fixed to. It acts in the same way there, because it only resists rotation.
    """
    inertias = [np.array(link.inertia, dtype=float) for link in robot.links]
    changed, moved, kept = [], [], []
    for k, (body, link) in enumerate(zip(bodies, robot.links, strict=True)):
        theirs = body.CalcSpatialInertiaInBodyFrame(context)
        its = theirs.CalcRotationalInertia().CopyToFullMatrix3()
        I = inertias[k] + steiner(link.mass, link.com)
        same = np.abs(its - I).max() <= 1e-9 * np.abs(I).max()
        if same and abs(theirs.get_mass() - link.mass) <= 1e-9 * link.mass:
            continue
        if link.mass > 0.0:
            changed.append(k)
            continue
        onto = next((n for n, x in enumerate(robot.links) if x.body == link.body and x.mass > 0.0), None)
        if onto is None:
            kept.append(link.name)
            continue
        R = robot.links[onto].placement.rotation.T @ link.placement.rotation
        inertias[onto] = inertias[onto] + R @ link.inertia @ R.T
        moved.append((k, onto))
    for k in {*changed, *(onto for _, onto in moved)}:
        _set(bodies[k], context, robot.links[k], inertias[k])
    for k, _ in moved:
        _set(bodies[k], context, robot.links[k], np.zeros((3, 3)))
    balls = sorted({*changed, *(k for k, _ in moved)})
    if balls:
        named = count_and_names([robot.links[k].name for k in balls])
        changes.append(
            f"it puts a ball of water in the place of inertias that no body can have, for {named}; set back "
            "to those of the file"
        )
    if kept:
        changes.append(
            f"it makes {count_and_names(kept)}, with inertia but no mass, a ball of 1 kg: masses and forces "
            "differ"
        )


def _set(body: Any, context: Any, link: Link, inertia: np.ndarray) -> None:
    """Set a link's mass and inertia without Drake's validity check."""
    from pydrake.multibody.tree import RotationalInertia, SpatialInertia, UnitInertia

    m, I = float(link.mass), inertia + steiner(link.mass, link.com)
    if m == 0.0:
        body.SetSpatialInertiaInBodyFrame(context, SpatialInertia.Zero())
        return
    six = (float(I[i, j]) / m for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)))
    unit = UnitInertia(RotationalInertia(*six))
    body.SetSpatialInertiaInBodyFrame(
        context, SpatialInertia(m, np.asarray(link.com), unit, skip_validity_check=True)
    )


# ---- The engines by name -------------------------------------------------------------------------


@frozen
class Engine:
    """Another program: its Python module, package, base velocity, and the function that opens a file."""

    module: str
    package: str
    base_velocity: str
    open: Opener

    @property
    def program(self) -> str:
        """Its key in ``other_programs.PROGRAMS``, whose readers work in a child; "" for another."""
        programs = other_programs.PROGRAMS.items()
        return next((key for key, each in programs if each.module.partition(".")[0] == self.module), "")


ENGINES = {
    "Pinocchio": Engine("pinocchio", "pin", "[v; omega] in base axes", open_pinocchio),
    "MuJoCo": Engine("mujoco", "mujoco", "v in world, omega in base axes", open_mujoco),
    "Drake": Engine("pydrake", "drake", "[omega; v] in world axes", open_drake),
}
"""Name of an engine -> the engine."""


def open_engine(name: str, text: bytes, robot: Robot, changes: list[str]) -> Answering:
    """A file that an engine has opened, in a child with bounded time and memory.

    ``changes`` gets what the engine changed or refused. Raises MissingDependency if the engine cannot be
    imported, RobokitError if it cannot load the file.
    """
    engine = ENGINES[name]
    if not engine.program:
        return engine.open(text, robot, changes)
    other_programs.require(engine.program)
    number, changes[:] = other_programs.call(__name__, "open_here", name, text, robot)

    def answers(x: State) -> Answers:
        found, changes[:] = other_programs.call(__name__, "answer_here", number, x)
        return dict(found)

    return answers


MOST_OPEN_FILES = 8  # files that the child keeps open: one is enough for each thread that compares

_open: dict[int, tuple[Answering, list[str]]] = {}


def open_here(name: str, text: bytes, robot: Robot) -> tuple[int, list[str]]:
    """Open a file in this process: the number that it is asked by, and what was changed."""
    changes: list[str] = []
    answering = ENGINES[name].open(text, robot, changes)
    number = max(_open, default=0) + 1
    if len(_open) == MOST_OPEN_FILES:
        del _open[min(_open)]
    _open[number] = answering, changes
    return number, changes


def answer_here(number: int, x: State) -> tuple[Answers, list[str]]:
    """The answers for a state, and all changes made until then."""
    answering, changes = _open[number]
    return answering(x), changes


# ==== comparison ==================================================================================

TOLERANCE = 1e-10  # largest relative error that counts as agreement

QUANTITIES = ("mass", "CoM", "H", "C", "tau", "qdd", "A_G", "rotation", "position")


@dataclass
class Comparison:
    """One engine compared with robokit.

    Attributes:
        engine: name of the engine.
        version: version of its package.
        errors: quantity -> largest relative error.
        failure: why there are no errors; "" if there are.
        imported: whether the engine itself could be imported; if not, ``failure`` says nothing about the
            file.
        notes: known differences between the engine and robokit that apply to this robot.
        changes: what the engine changed or refused in this file, and what was done about it.
        uncertain: relative error of the accelerations that rounding can cause: H's condition number times
            the machine precision.
    """

    engine: str
    version: str
    errors: dict[str, float] = field(default_factory=dict)
    failure: str = ""
    notes: list[str] = field(default_factory=list)
    changes: list[str] = field(default_factory=list)
    uncertain: float = 0.0
    imported: bool = True

    @property
    def agrees(self) -> bool:
        """Whether the error of every quantity is within its tolerance."""
        return not self.failure and all(e <= self.tolerance(what) for what, e in self.errors.items())

    def tolerance(self, what: str) -> float:
        """Largest relative error of a quantity that counts as agreement."""
        return max(TOLERANCE, self.uncertain) if what == "qdd" else TOLERANCE

    @property
    def worst(self) -> float:
        """The largest of the errors; infinite if the engine cannot load the file."""
        return float("inf") if self.failure else max(self.errors.values(), default=0.0)


def compare(
    path: str | os.PathLike[str],
    robot: Robot,
    states: int = 3,
    seed: int = 0,
    run: str | None = None,
    xacro_args: Mapping[str, str] | None = None,
    package_dirs: Sequence[str | os.PathLike[str]] = (),
) -> list[Comparison]:
    """Compare a robot with the results of the installed engines for its file.

    It compares mass and centre of mass of the moving bodies, mass matrix, bias forces, inverse and forward
    dynamics, centroidal momentum matrix and the pose of every link. The states are random: configurations
    within the joint limits; velocities, accelerations and forces with standard normal distribution. If the
    robot has coupled mimic joints, the engines' results for all joints are projected by its coupling matrix
    G: H_r = G^T H G, tau_r = G^T tau, A_G G, and the accelerations are solved with H_r. Accelerations are not
    compared where H is singular.

    Args:
        path: the URDF.
        robot: the robot that robokit loaded from it.
        states: number of random states; each error is the largest over them.
        seed: seed of the random states.
        run: robokit's own engine, "llvm" or "python", as ``engine`` of :func:`robokit.rnea`.
        xacro_args, package_dirs: as for :func:`robokit.load_urdf`.

    Returns:
        one comparison for each installed engine.

    Example:
        >>> from robokit.parity import compare
        >>> path = rk.find_robot("double_pendulum")
        >>> found = compare(path, rk.load_urdf(path), states=1, run="python")
        >>> all(one.agrees for one in found)  # one comparison for each engine that is installed
        True
    """
    found: list[Comparison] = []
    full = robot
    if robot.coupling is not None:
        full = ModelBuilder.from_robot(robot).build(robot.base, (), tuple(robot.gravity))
    singular = singular_joint(robot)
    # The engines are given a URDF, and of another format what robokit makes of it.
    own = format_of(Path(path)) == "URDF"
    text = robot_text(path, xacro_args, package_dirs) if own else plain_text(dump(full).encode()).encode()
    if robot.base == "floating":
        text = without_other_links(text, robot.link_names)
    told = [(x, own_answers(robot, x, run)) for x in _states(robot, states, seed, singular is None)]
    # Rounding errors in H appear in the accelerations multiplied by H's condition number.
    conditions = [float(np.linalg.cond(ours["H"])) for _, ours in told if "qdd" in ours]
    uncertain = max(conditions, default=0.0) * float(np.finfo(float).eps)
    for name in installed():
        engine = ENGINES[name]
        comparison = Comparison(name, installed_version(engine.package), uncertain=uncertain)
        # They are given the file with fusestatic="false".
        comparison.notes = peer_faults(engine.program, lambda: text, fuses=False)
        comparison.notes += known_differences(name, robot, singular)
        found.append(comparison)
        try:
            answers = open_engine(name, text, full, comparison.changes)
            for x, ours in told:
                theirs = answers(x) if robot.coupling is None else _project(robot, x, answers)
                for what in [name for name in QUANTITIES if name in theirs and name in ours]:
                    error = relative_error(theirs[what], ours[what])
                    comparison.errors[what] = max(comparison.errors.get(what, 0.0), error)
        except MissingDependency as problem:
            comparison.failure, comparison.imported = str(problem), False
        except Exception as refusal:  # of any type: the answer of another program may have any shape
            comparison.failure = one_line(refusal)
            comparison.errors.clear()
        if TOLERANCE < comparison.errors.get("qdd", 0.0) <= uncertain:
            comparison.changes.append(f"H is ill conditioned: rounding may change qdd by {uncertain:.0e}")
    return found


def _states(robot: Robot, count: int, seed: int, regular: bool) -> Iterator[State]:
    """Random states; without forces if H is singular, because then no accelerations are asked for."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        q, (v, a, tau) = robot.random_configuration(rng), rng.standard_normal((3, robot.nv))
        yield State(q, v, a, tau if regular and robot.nv else None)


def installed() -> list[str]:
    """Names of the engines that are installed."""
    return [name for name, e in ENGINES.items() if importlib.util.find_spec(e.module) is not None]


def relative_error(got: Any, expected: Any) -> float:
    """Largest difference, divided by the largest expected entry (or by 1e-3 if that is larger)."""
    got, expected = np.asarray(got, dtype=float), np.asarray(expected, dtype=float)
    if got.size == 0:
        return 0.0
    error = float(np.abs(got - expected).max() / max(1e-3, np.abs(expected).max()))
    return error if np.isfinite(error) else float("inf")


def own_answers(robot: Robot, x: State, run: str | None = None) -> Answers:
    """robokit's own quantities of a state, by name."""
    poses = forward_kinematics(robot, x.q, engine=run)
    out = {
        "rotation": poses.rotation,
        "position": poses.position,
        "mass": np.array(robot.total_mass),
        "H": np.asarray(crba(robot, x.q, engine=run)),
        "C": bias_forces(robot, x.q, x.v, engine=run),
        "tau": rnea(robot, x.q, x.v, x.a, engine=run),
    }
    if robot.total_mass > 0:
        out["CoM"] = center_of_mass(robot, x.q, engine=run)
        out["A_G"] = centroidal_momentum_matrix(robot, x.q, engine=run)
    if x.tau is not None:
        out["qdd"] = aba(robot, x.q, x.v, x.tau, engine=run)
    return out


def _project(robot: Robot, x: State, answers: Answering) -> Answers:
    """Answers for the coupled robot of an engine in which mimic joints are coordinates of their own."""
    assert robot.coupling is not None
    G = robot.coupling.G
    q = np.array(robot.coupling.full_q(x.q.tolist()))
    out = answers(State(q, G @ x.v, G @ x.a, None))
    out["H"] = G.T @ out["H"] @ G
    out["C"], out["tau"] = G.T @ out["C"], G.T @ out["tau"]
    if "A_G" in out:
        out["A_G"] = out["A_G"] @ G
    if x.tau is not None:
        out["qdd"] = np.linalg.solve(out["H"], x.tau - out["C"])
    return out


# ---- Known differences between the engines: what was converted or left out so that the figures compare

_DYNAMICS = {
    "MuJoCo": "its dynamics include damping and friction; they are left out, since H and C have neither",
    "Drake": "its dynamics include damping; it is left out",
}

_ARMATURE = {
    "MuJoCo": "its armature, a rotor inertia on H's diagonal, is set to 0",
    "Drake": "<transmission> is left out: it would add rotor inertias to H's diagonal",
}

_MIMIC = {
    "Pinocchio": "reads them, and keeps their coordinates unless told otherwise",
    "MuJoCo": "drops them",
    "Drake": "keeps their coordinates, and couples them in discrete time only",
}


def known_differences(engine: str, robot: Robot, singular: Joint | None) -> list[str]:
    """Known differences that apply to this robot and engine, a sentence each."""
    notes = []
    if robot.base == "floating":
        how = ENGINES[engine].base_velocity
        notes.append(f"base velocity is {how}; robokit's is [omega; v] in base axes (converted)")
    if engine == "Pinocchio" and robot.base == "floating":
        notes.append("base quaternion is xyzw after the position; robokit's is wxyz before it (converted)")
    mimics = [joint for joint in robot.body_joints if joint.mimic is not None]
    if mimics:
        done = (
            "all are compared as free coordinates"
            if robot.coupling is None
            else "its results are projected by the coupling matrix G"
        )
        notes.append(f"mimic joints {_joint_names(mimics)}: it {_MIMIC.get(engine, 'drops them')}; {done}")
    if any(joint.damping or joint.friction for joint in robot.body_joints) and engine in _DYNAMICS:
        notes.append(_DYNAMICS[engine])
    if robot.tree.armature:
        notes.append("the rotor inertias of its joints are set to robokit's")
    elif engine in _ARMATURE:
        notes.append(_ARMATURE[engine])
    if robot.fixed_joints:
        notes.append(f"links behind fixed joints ({len(robot.fixed_joints)}) are compared as frames, by name")
    if robot.base == "fixed" and any(link.mass for link in robot.links if link.body == 0):
        notes.append("mass and CoM are those of the moving bodies, without the fixed root")
    if engine != "Pinocchio" and "world" in robot.link_names:
        notes.append("link 'world' was renamed: its own fixed frame has that name")
    if singular is not None:
        notes.append(f"accelerations are not compared: H is singular at joint {singular.name!r}")
    return notes


def _joint_names(joints: Sequence[Joint]) -> str:
    shown = ", ".join(repr(joint.name) for joint in joints[:3])
    return f"({len(joints)}: {shown}{', ...' if len(joints) > 3 else ''})"


# ---- Many robots compared with every installed engine, one after the other -----------------------


@dataclass
class FileComparison:
    """One file, with one base, compared with the engines.

    Attributes:
        file: the URDF, as given.
        base: "fixed" or "floating".
        nv: degrees of freedom; 0 if robokit cannot load the file.
        failure: why robokit cannot load it, or "".
        engines: one comparison for each installed engine.
    """

    file: Path
    base: str
    nv: int = 0
    failure: str = ""
    engines: list[Comparison] = field(default_factory=list)

    @property
    def agrees(self) -> bool:
        """Whether robokit and all engines can load the file and agree."""
        return not self.failure and all(c.agrees for c in self.engines)


def compare_files(
    files: Iterable[Path],
    bases: Sequence[str] = ("fixed", "floating"),
    states: int = 3,
    mimic: str | None = None,
    run: str | None = "python",
    xacro_args: Mapping[str, str] | None = None,
    package_dirs: Sequence[str | os.PathLike[str]] = (),
    loops: str = "declared",
) -> Iterator[FileComparison]:
    """Compare the robots of many files, one after the other.

    Args:
        files: URDFs.
        bases: "fixed", "floating" or both.
        states, run: as for :func:`compare`. By default robokit's Python engine runs, because compiling would
            take most of the time.
        mimic, package_dirs, loops: as for :func:`robokit.load_urdf`.
        xacro_args: for those of the files that are .xacro files.

    Example:
        >>> from robokit.parity import compare_files
        >>> files = [rk.find_robot("double_pendulum")]
        >>> [one.nv for one in compare_files(files, bases=["fixed"], states=1)]
        [2]
    """
    for file in files:
        for base in bases:
            try:
                given: dict[str, Any] = {
                    "xacro_args": xacro_args if is_xacro(file) else None,
                    "package_dirs": package_dirs,
                }
                with stage(f"comparing {file.name}, {base} base"):
                    robot = load(file, base=base, mimic=mimic, loops=loops, **given)
                    found = compare(file, robot, states, run=run, **given)
                    row = FileComparison(file, base, robot.nv, "", found)
            except RobokitError as error:
                row = FileComparison(file, base, failure=_reason(error))
            yield row


def _reason(error: RobokitError) -> str:
    """The first error of a file, and how many more there are."""
    if isinstance(error, UrdfError):
        first = next((d for d in error.diagnostics if d.severity == "error"), None)
        if first is not None:
            more = sum(d.severity == "error" for d in error.diagnostics) - 1
            return f"{first.code}: {first.element} {first.message}" + (f" (and {more} more)" if more else "")
    return str(error)


# ---- Comparisons as lines of text, at most 80 columns wide; only a long file name can exceed that

NAME_WIDTH = 32  # columns for the name of a file; a longer name takes a line of its own


def table(robot: Robot, found: list[Comparison], states: int = 3) -> list[str]:
    """One robot: a row for each quantity, a column for each engine, then notes on each engine."""
    coupled = ", coupled mimic joints" if robot.coupling is not None else ""
    title = f"{robot.name}: {robot.base} base{coupled}, {robot.nv} degrees of freedom, {states} states;"
    lines = [*textwrap.wrap(f"{title} largest relative errors against robokit", 80)]
    lines.append(f"  {'':<12}" + "".join(f"{c.engine:>12}" for c in found))
    for what in QUANTITIES:
        cells = (f"{c.errors[what]:.1e}" if what in c.errors else "-" for c in found)
        lines.append(f"  {what:<12}" + "".join(f"{cell:>12}" for cell in cells))
    for c in found:
        verdict = f"agrees to {TOLERANCE:.0e}" if c.agrees else "differs"
        if c.failure:
            verdict = "cannot load the file" if c.imported else "cannot be imported"
        lines.append(f"{c.engine} {c.version}".strip() + f": {verdict}")
        for note in ([c.failure] if c.failure else []) + c.changes + c.notes:
            lines += textwrap.wrap(note, 80, initial_indent="  - ", subsequent_indent="    ")
    return lines


def short_names(files: Iterable[Path]) -> dict[Path, str]:
    """File -> its name, with as many of its folders as are needed to tell it from the other files."""
    files = list(dict.fromkeys(files))
    ends = Counter(file.parts[-k:] for file in files for k in range(1, len(file.parts) + 1))
    names = {}
    for file in files:
        lengths = range(1, len(file.parts) + 1)
        k = next((k for k in lengths if ends[file.parts[-k:]] == 1), len(file.parts))
        names[file] = str(Path(*file.parts[-k:]))
    return names


def files_table(
    found: Iterable[FileComparison], engines: Sequence[str], files: Iterable[Path] = ()
) -> Iterator[str]:
    """Many robots: a line for each as it is done, then reasons, then the largest errors by quantity.

    Args:
        found: the comparisons, as they come.
        engines: names of the engines, in the order of the columns.
        files: all the files, for short names; without them, whole paths are shown.
    """
    names = short_names(files)
    rows: list[FileComparison] = []
    yield f"{'':<{NAME_WIDTH}} {'base':<9}{'nv':>4}" + "".join(f"{engine:>11}" for engine in engines)
    for row in found:
        rows.append(row)
        name = names.setdefault(row.file, str(row.file))
        if len(name) > NAME_WIDTH:
            yield name
            name = ""
        head = f"{name:<{NAME_WIDTH}} {row.base:<9}"
        if row.failure:
            yield head + "   - robokit refuses the file"
            continue
        by_name = {c.engine: c for c in row.engines}
        cells = (_cell(by_name[e]) for e in engines)
        yield head + f"{row.nv:>4}" + "".join(f"{cell:>11}" for cell in cells)
    yield from _reasons(rows, names)
    yield ""
    yield "largest relative errors against robokit"
    yield f"  {'':<12}" + "".join(f"{engine:>12}" for engine in engines)
    for what in QUANTITIES:
        yield f"  {what:<12}" + "".join(f"{_largest(rows, e, what):>12}" for e in engines)
    loaded = [row for row in rows if not row.failure]
    for label, wanted in ((f"agree to {TOLERANCE:.0e}", "agrees"), ("refused", "failure")):
        counts = (
            sum(
                bool(getattr(c, wanted)) and c.imported
                for row in loaded
                for c in row.engines
                if c.engine == e
            )
            for e in engines
        )
        yield f"  {label:<16}" + "".join(f"{count:>{8 if k == 0 else 12}}" for k, count in enumerate(counts))
    files_loaded = len({row.file for row in loaded})
    yield f"  of {counted(len(loaded), 'reading')} of {counted(files_loaded, 'file')}"


def _cell(c: Comparison) -> str:
    """The largest error; with "!" if it is not within the tolerance."""
    if c.failure:
        return "refuses" if c.imported else "broken"
    return f"{c.worst:.1e}" + ("" if c.agrees else "!")


def _reasons(rows: Sequence[FileComparison], names: Mapping[Path, str]) -> Iterator[str]:
    """Who cannot load which file and why, and what was changed; once for both bases."""
    seen: dict[tuple[Path | None, str], str] = {}
    for row in rows:
        if row.failure:
            seen.setdefault((row.file, "robokit"), "cannot load it: " + row.failure)
        for c in row.engines:
            if not c.imported:
                seen.setdefault((None, c.engine), c.failure)  # once, since it does not depend on the file
            elif c.failure:
                seen.setdefault((row.file, c.engine), "cannot load it: " + c.failure)
            elif c.changes:
                seen.setdefault((row.file, c.engine), "; ".join(c.changes))
    if seen:
        yield ""
    for (file, engine), why in seen.items():
        text = f"{engine}: {why}" if file is None else f"{names[file]}: {engine}: {why}"
        yield from textwrap.wrap(
            text, 80, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
        )


def _largest(rows: Sequence[FileComparison], engine: str, what: str) -> str:
    errors = [c.errors[what] for row in rows for c in row.engines if c.engine == engine and what in c.errors]
    return f"{max(errors):.1e}" if errors else "-"


def no_engine() -> RobokitError:
    """The error if no engine is installed."""
    packages = " or ".join(engine.package for engine in ENGINES.values())
    return RobokitError(f"there is no engine to compare with; pip install {packages}")
