"""A URDF in every engine that is installed: mass, centre of mass, H, C and link poses side by side.

Each engine reads the file itself; its answers come back in robokit's order through the adapters of
robokit.interop. What the engines are known to read differently is said beside the figures.
"""

from __future__ import annotations

import importlib.util
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from robokit.dynamics import bias_forces, center_of_mass, crba, forward_kinematics
from robokit.errors import RobokitError
from robokit.interop import MujocoAdapter, PinocchioAdapter
from robokit.model.robot import Robot

TOLERANCE = 1e-9
"""Relative error up to which engines agree."""

QUANTITIES = ("mass", "CoM", "H", "C", "rotation", "position")

LEFT_OUT = ("visual", "collision", "limit", "dynamics", "mimic", "safety_controller", "calibration")

Answers = dict[str, np.ndarray]


@dataclass
class Comparison:
    """One engine beside robokit.

    Attributes:
        engine: its name.
        version: of the installed package.
        errors: largest relative error of each quantity.
        failure: why there are none, or "".
        notes: differences that are known.
    """

    engine: str
    version: str
    errors: dict[str, float] = field(default_factory=dict)
    failure: str = ""
    notes: list[str] = field(default_factory=list)

    @property
    def agrees(self) -> bool:
        """Whether every quantity is within the tolerance."""
        return not self.failure and all(e <= TOLERANCE for e in self.errors.values())


def compare(path: str | os.PathLike[str], robot: Robot, states: int = 3, seed: int = 0) -> list[Comparison]:
    """Compare a robot with what the installed engines make of its file.

    Args:
        path: the URDF.
        robot: the robot that robokit loaded from it.
        states: random states, with the errors' maximum over them.
        seed: of the states.

    Returns:
        one comparison for each installed engine; none where none is installed.
    """
    found = []
    for engine, (module, opened) in ENGINES.items():
        if importlib.util.find_spec(module) is None:
            continue
        version = getattr(importlib.import_module(module), "__version__", "")
        comparison = Comparison(engine, version, notes=_notes(engine, robot))
        found.append(comparison)
        try:
            answers = opened(Path(path), robot)
        except Exception as refusal:  # another program's, whatever its type
            comparison.failure = " ".join(str(refusal).split()) or type(refusal).__name__
            continue
        rng = np.random.default_rng(seed)
        for _ in range(states):
            q, v = robot.random_configuration(rng), rng.standard_normal(robot.nv)
            theirs, ours = answers(q, v), _ours(robot, q, v)
            for what, value in theirs.items():
                error = relative_error(value, ours[what])
                comparison.errors[what] = max(comparison.errors.get(what, 0.0), error)
    return found


def relative_error(got: Any, expected: Any) -> float:
    """Largest difference beside the largest expected entry, or beside 1e-3 where that is smaller."""
    got, expected = np.asarray(got, dtype=float), np.asarray(expected, dtype=float)
    if got.size == 0:
        return 0.0
    error = float(np.abs(got - expected).max() / max(1e-3, np.abs(expected).max()))
    return error if np.isfinite(error) else float("inf")


def _ours(robot: Robot, q: np.ndarray, v: np.ndarray) -> Answers:
    poses = forward_kinematics(robot, q)
    out = {"rotation": poses.rotation, "position": poses.position, "mass": np.array(robot.total_mass)}
    if robot.total_mass > 0:
        out["CoM"] = center_of_mass(robot, q)
    return out | {"H": np.asarray(crba(robot, q)), "C": bias_forces(robot, q, v)}


def _pinocchio(path: Path, robot: Robot) -> Any:
    import pinocchio as pin

    root = (pin.JointModelFreeFlyer(),) if robot.base == "floating" else ()
    model = pin.buildModelFromUrdf(str(path), *root)
    data, to = model.createData(), PinocchioAdapter(robot, model)
    frames = [model.getFrameId(name, pin.FrameType.BODY) for name in robot.link_names]

    def answers(q: np.ndarray, v: np.ndarray) -> Answers:
        pq = to.q(q)
        pin.framesForwardKinematics(model, data, pq)
        poses = [data.oMf[k] for k in frames]
        H = np.triu(pin.crba(model, data, pq))
        out = {
            "mass": np.array(sum(model.inertias[k].mass for k in range(1, model.njoints))),
            "H": to.matrix_back(H + np.triu(H, 1).T),
            "C": to.v_back(pin.nonLinearEffects(model, data, pq, to.v(v))),
            "rotation": np.array([M.rotation for M in poses]),
            "position": np.array([M.translation for M in poses]),
        }
        if robot.total_mass > 0:
            out["CoM"] = np.array(pin.centerOfMass(model, data, pq))
        return out

    return answers


def mujoco_text(text: bytes) -> str:
    """A URDF without shapes, limits, friction, couplings and extensions: what H, C and poses depend on.

    MuJoCo reads meshes to load a file at all, and takes revolute joints without limits as errors.
    """
    from lxml import etree

    root = etree.fromstring(
        text, etree.XMLParser(remove_comments=True, resolve_entities=False, no_network=True)
    )
    for element in list(root.iter(*LEFT_OUT)):
        element.getparent().remove(element)
    for element in list(root):
        if element.tag not in ("link", "joint"):
            root.remove(element)
    for joint in root.iter("joint"):
        if joint.get("type") == "revolute":
            joint.set("type", "continuous")
    options = {"fusestatic": "false", "discardvisual": "true", "balanceinertia": "false", "strippath": "true"}
    etree.SubElement(etree.SubElement(root, "mujoco"), "compiler", options)
    return str(etree.tostring(root, encoding="unicode"))


def _mujoco(path: Path, robot: Robot) -> Any:
    import mujoco

    spec = mujoco.MjSpec.from_string(mujoco_text(path.read_bytes()))
    children = {j.child_link for j in (*robot.joints, *robot.fixed_joints) if j.kind != "floating"}
    if robot.base == "floating":
        spec.body(next(name for name in robot.link_names if name not in children)).add_freejoint()
    model = spec.compile()
    model.opt.gravity[:] = robot.gravity
    model.dof_armature[:] = 0.0
    data, to = mujoco.MjData(model), MujocoAdapter(robot, model)
    bodies = [model.body(name).id for name in robot.link_names]
    moving = [model.body(link.name).id for link in robot.links if link.body > 0]

    def answers(q: np.ndarray, v: np.ndarray) -> Answers:
        data.qpos[:], data.qvel[:] = to.q(q), to.v(q, v)
        mujoco.mj_forward(model, data)
        M = np.zeros((model.nv, model.nv))
        if hasattr(data, "qM"):
            mujoco.mj_fullM(model, M, data.qM)  # up to MuJoCo 3
        else:
            mujoco.mj_fullM(model, data, M)
        mass = model.body_mass[moving]
        out = {
            "mass": np.array(mass.sum()),
            "H": to.matrix_back(q, M),
            "C": to.bias_back(q, v, data.qfrc_bias, M),
            "rotation": data.xmat[bodies].reshape(-1, 3, 3),
            "position": data.xpos[bodies],
        }
        if robot.total_mass > 0:
            out["CoM"] = mass @ data.xipos[moving] / mass.sum()
        return out

    return answers


ENGINES: dict[str, tuple[str, Any]] = {
    "Pinocchio": ("pinocchio", _pinocchio),
    "MuJoCo": ("mujoco", _mujoco),
}


def _notes(engine: str, robot: Robot) -> list[str]:
    """Differences that are no errors: what was converted or left out so that the figures compare."""
    notes = []
    if robot.base == "floating":
        frame = "[v; omega] in base axes" if engine == "Pinocchio" else "v in world, omega in base axes"
        notes.append(f"base velocity is {frame}; robokit's is [omega; v] in base axes (converted)")
    mimics = [joint.name for joint in robot.joints if joint.mimic is not None]
    if mimics:
        what = "off by default" if engine == "Pinocchio" else "dropped"
        notes.append(
            f"mimic joints ({len(mimics)}): the coupling is {what}; all are compared as free coordinates"
        )
    if any(joint.damping or joint.friction for joint in robot.joints) and engine == "MuJoCo":
        notes.append("damping and friction act in its dynamics; left out, they are in neither H nor C")
    if engine == "MuJoCo":
        notes.append("armature, which it can add to H's diagonal, is set to 0")
    if engine == "MuJoCo" and robot.base == "floating" and "world" in robot.link_names:
        notes.append("it takes the link 'world' as its own fixed frame, which cannot float: rename the link")
    if robot.fixed_joints:
        notes.append(f"links behind fixed joints ({len(robot.fixed_joints)}) are compared as frames, by name")
    if robot.base == "fixed" and any(link.mass for link in robot.links if link.body == 0):
        notes.append("mass and CoM are of the moving bodies; the fixed root's mass does not count")
    return notes


def table(robot: Robot, found: list[Comparison]) -> list[str]:
    """The comparison in lines of at most 80 columns."""
    import textwrap

    lines = [f"{robot.name}: {robot.base} base, largest relative errors against robokit"]
    lines.append(f"  {'':<12}" + "".join(f"{what:>10}" for what in QUANTITIES))
    for c in found:
        cells = (f"{c.errors[what]:.1e}" if what in c.errors else "-" for what in QUANTITIES)
        lines.append(f"  {c.engine:<12}" + "".join(f"{cell:>10}" for cell in cells))
    for c in found:
        verdict = "agrees" if c.agrees else ("cannot load the file" if c.failure else "differs")
        lines.append(f"{c.engine} {c.version}: {verdict}".rstrip())
        for note in ([c.failure] if c.failure else []) + c.notes:
            lines += textwrap.wrap(note, 80, initial_indent="  - ", subsequent_indent="    ")
    return lines


def no_engine() -> RobokitError:
    """What to say where there is nothing to compare with."""
    return RobokitError(f"parity needs another engine: pip install {' or '.join(('pin', 'mujoco'))}")
