"""What Pinocchio, MuJoCo and Drake answer for a URDF and a state.

The opener of an engine is called with the XML, the robot as robokit read it, and a list, to which it adds
what it had to change for the engine. It returns a function that answers for a state, in robokit's order. It
raises whatever the engine raises over the file.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import numpy as np

from robokit.dynamics import forward_kinematics
from robokit.formats import other_programs
from robokit.formats.other_programs import count_and_names, one_line
from robokit.interop import DrakeAdapter, MujocoAdapter, PinocchioAdapter
from robokit.mjcf import to_mjcf
from robokit.model.edit import armature_by_dof
from robokit.model.parts import Link
from robokit.model.robot import Robot, is_base

Answers = dict[str, np.ndarray]


@dataclass(frozen=True)
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
        free = THEIR_WORLD + "_link"
        while free in names:
            free += "_"
        names[THEIR_WORLD] = free
    return names


# The XML that the other engines are given: the file without what H, C and poses do not depend on
# -----------------------------------------------------------------------------------------------

OMITTED_ELEMENTS = ("visual", "collision", "limit", "dynamics", "mimic", "safety_controller", "calibration")

THEIR_WORLD = "world"
"""Name of the fixed frame of MuJoCo and of Drake."""


def without_other_links(text: bytes, links: Collection[str]) -> bytes:
    """A URDF without the links that a robot does not have, and the joints that hang on them.

    A root and a floating joint that are the floating base themselves are not in robokit's robot.

    Args:
        text: the XML.
        links: the robot's.
    """
    from lxml import etree

    root = etree.fromstring(text, etree.XMLParser(resolve_entities=False, no_network=True))
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
    """A URDF without shapes, limits, friction, mimic joints and extensions.

    MuJoCo cannot load a file without reading its meshes, and refuses revolute joints without limits.

    Args:
        text: the XML.
        world: new name of a link that is called "world".
    """
    from lxml import etree

    root = etree.fromstring(
        text, etree.XMLParser(remove_comments=True, resolve_entities=False, no_network=True)
    )
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


# Pinocchio's answers for a URDF
# ------------------------------


def open_pinocchio(text: bytes, robot: Robot, changes: list[str]) -> Answering:
    """Load a URDF into Pinocchio; mimic joints are coordinates of their own."""
    import pinocchio as pin

    root = (pin.JointModelFreeFlyer(),) if robot.base == "floating" else ()
    model = pin.buildModelFromXML(_without_encoding(text), *root)
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


def _without_encoding(text: bytes) -> str:
    """The XML as Pinocchio reads it: a string without a declaration of another encoding."""
    from lxml import etree

    root = etree.fromstring(text, etree.XMLParser(resolve_entities=False, no_network=True))
    return str(etree.tostring(root, encoding="unicode"))


# MuJoCo's answers for a URDF; if MuJoCo cannot load it, for the MJCF that robokit writes of it
# ---------------------------------------------------------------------------------------------


def open_mujoco(text: bytes, robot: Robot, changes: list[str]) -> Answering:
    """Load a URDF into MuJoCo, with contacts, limits and passive forces switched off."""
    import mujoco

    try:
        model = _mujoco_urdf(text, robot)
    except Exception as refusal:  # of any type; robokit's MJCF may still load
        try:
            model = mujoco.MjModel.from_xml_string(_quiet_mjcf(robot))
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


def _mujoco_urdf(text: bytes, robot: Robot) -> Any:
    import mujoco

    names = names_there(robot)
    spec = mujoco.MjSpec.from_string(plain_text(text, names.get(THEIR_WORLD, THEIR_WORLD)))
    if robot.base == "floating":
        spec.body(names[root_link(robot)]).add_freejoint()
    return spec.compile()


def _quiet_mjcf(robot: Robot) -> str:
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what cannot be written is not compared either
        return to_mjcf(robot, meshes=False, visuals=False)


# Drake's answers for a URDF, with the inertias of the file
# ---------------------------------------------------------


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
    log = logging.getLogger("drake")
    level = log.level
    log.setLevel(logging.ERROR)  # robot.diagnostics has its warnings about inertias
    try:
        (instance,) = Parser(plant).AddModelsFromString(
            plain_text(text, names.get(THEIR_WORLD, THEIR_WORLD)), "urdf"
        )
    finally:
        log.setLevel(level)
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
        I = _about_origin(link, inertias[k])
        if abs(theirs.get_mass() - link.mass) <= 1e-9 * link.mass and _near(its, I):
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


def _about_origin(link: Link, inertia: np.ndarray) -> np.ndarray:
    c = link.com
    return np.asarray(inertia + link.mass * (c @ c * np.eye(3) - np.outer(c, c)))


def _near(a: np.ndarray, b: np.ndarray) -> bool:
    return bool(np.abs(a - b).max() <= 1e-9 * np.abs(b).max())


def _set(body: Any, context: Any, link: Link, inertia: np.ndarray) -> None:
    """Set a link's mass and inertia without Drake's validity check."""
    from pydrake.multibody.tree import RotationalInertia, SpatialInertia, UnitInertia

    m, I = float(link.mass), _about_origin(link, inertia)
    if m == 0.0:
        body.SetSpatialInertiaInBodyFrame(context, SpatialInertia.Zero())
        return
    six = (float(I[i, j]) / m for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)))
    unit = UnitInertia(RotationalInertia(*six))
    body.SetSpatialInertiaInBodyFrame(
        context, SpatialInertia(m, np.asarray(link.com), unit, skip_validity_check=True)
    )


# The engines by name
# -------------------


@dataclass(frozen=True)
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

    Args:
        name: of the engine.
        text: the XML.
        robot: as robokit read it.
        changes: gets what the engine changed or refused.

    Raises:
        MissingDependency: the engine cannot be imported.
        RobokitError: it cannot load the file.
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


MOST_OPEN_FILES = 8
"""Files that the child keeps open: one is enough for each thread that compares."""

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
