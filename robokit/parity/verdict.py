"""The referee's verdict: findings, every cause that is known, and the verdict as text and for JSON."""

from __future__ import annotations

import textwrap
from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any

from robokit.errors import counted


@dataclass(frozen=True)
class Finding:
    """One difference.

    Attributes:
        cause: code of the cause, a key of ``robokit.parity.CAUSES``.
        kind: "link", "joint" or "robot".
        name: of the link or joint in A, or in B if A has none; the robot's for "robot".
        line: line in A's file, 0 if unknown.
        text: the verdict, one sentence without the element.
        also: other causes that would have the same effect.
        a, b: the values that differ.
        instead: other elements that would explain the difference as well.
    """

    cause: str
    kind: str
    name: str
    line: int
    text: str
    also: tuple[str, ...] = ()
    a: Any = None
    b: Any = None
    instead: tuple[str, ...] = ()

    def __str__(self) -> str:
        place = f" (line {self.line})" if self.line and f"line {self.line}" not in self.text else ""
        more = ", ..." if len(self.instead) > 2 else ""
        other = f" (or {', '.join(self.instead[:2])}{more})" if self.instead else ""
        return f"{self.name}{other}: {self.text}{place}"


@dataclass(frozen=True)
class Dynamics:
    """The largest relative differences of mass matrix, velocity forces and gravity at random states.

    Attributes:
        H, C, gravity: largest relative differences of the mass matrix, of velocity forces without gravity,
            and of gravity forces. An entry H_ij is relative to sqrt(H_ii H_jj), a force to the largest that
            the same accelerations can cause.
        where: the quantity and the joints that differ most.
        largest: the difference there.
        rounding: the difference that rounding in the files can cause there.
        differs: whether any difference is larger than rounding can explain.
    """

    H: float
    C: float
    gravity: float
    where: str
    largest: float
    rounding: float
    differs: bool


@dataclass
class Verdict:
    """The result of the referee.

    Attributes:
        a, b: the files.
        a_format, b_format: their formats, and the programs that read them.
        bodies, joints: numbers of links and movable joints of A that have a counterpart in B.
        findings: the differences, those of the whole robot first, then by line.
        notes: things not compared, and differences that do not affect the motion.
        tolerance: largest relative difference that counts as equal.
        dynamics: differences of mass matrix, velocity forces and gravity; None if nothing moves.
    """

    a: str
    b: str
    a_format: str
    b_format: str
    bodies: int = 0
    joints: int = 0
    findings: list[Finding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    tolerance: float = 1e-6
    dynamics: Dynamics | None = None

    @property
    def same(self) -> bool:
        """Whether there is no difference, in the descriptions and in their dynamics."""
        return not self.findings and not (self.dynamics is not None and self.dynamics.differs)


# ---- Every cause that the referee knows: what it means, what to do, and where it was found in the field


@dataclass(frozen=True)
class Cause:
    """A row of the list."""

    code: str  # its name; never changes once released
    meaning: str  # what B has, in one sentence
    fix: str  # what to do about it
    evidence: tuple[str, ...] = ()  # "owner/repository#number" of reports of programs that did this


_ROWS: tuple[tuple[str, str, str, str], ...] = (
    # code, meaning, fix, evidence
    ("inertial-rotation-lost", "the rpy of <inertial> left out", "write the inertia in link axes, rpy 0",
     "google-deepmind/mujoco#3559 newton-physics/urdf-usd-converter#131 dartsim/dart#47"),
    ("inertial-rotation-twice", "the rpy of <inertial> applied twice",
     "write the inertia in link axes, rpy 0",
     "mi-lib/roki#21"),
    ("inertial-rotation-inverted", "the rpy of <inertial> applied backwards, R^T I R",
     "write the inertia in link axes, rpy 0", "laas/metapod#73 mi-lib/roki#21"),
    ("inertial-rotation-one-sided", "the inertia rotated from one side only, R I",
     "update the converter", "newton-physics/newton#2245"),
    ("inertial-rotation-convention", "the rpy of <inertial> in degrees or in another order",
     "write roll, pitch, yaw in radians", ""),
    ("inertial-origin-turned", "the centre of mass turned by the inertial's rotation", "update the converter",
     "mi-lib/roki#21"),
    ("inertial-origin-lost", "the xyz of <inertial> left out: the centre of mass is at the link's origin",
     "update the converter", "Genesis-Embodied-AI/genesis-world#2499"),
    ("inertial-pose-lost", "the whole <origin> of <inertial> left out", "update the converter",
     "bulletphysics/bullet3#1671"),
    ("inertial-origin-twice", "the xyz of <inertial> applied twice", "update the converter", ""),
    ("inertial-origin-inverted", "the xyz of <inertial> negated", "update the converter", ""),
    ("inertial-origin-units", "the centre of mass in other units", "write metres", ""),
    ("inertia-about-link-origin", "parallel-axis term added or subtracted: inertia about the link's origin",
     "URDF's inertia is about the centre of mass", "gazebosim/sdformat#22"),
    ("products-sign", "products of inertia with the other sign", "check the CAD program's convention", ""),
    ("products-lost", "products of inertia left out", "export the full inertia", "openai/mujoco-py#216"),
    ("inertia-order", "the six numbers of the inertia in another order",
     "URDF: ixx ixy ixz iyy iyz izz; MJCF: xx yy zz xy xz yz", ""),
    ("principal-axes-lost", "principal moments without the rotation of the principal axes",
     "write the principal axes", "isaac-sim/urdf-importer-extension#2"),
    ("principal-axes-inverted", "the rotation of the principal axes inverted", "update the converter",
     "newton-physics/urdf-usd-converter#118 gbionics/adam#165 isaac-sim/urdf-importer-extension#2"),
    ("inertial-mirrored", "centre of mass and inertia mirrored", "check the left and right halves", ""),
    ("inertial-axes", "centre of mass and inertia in other axes, such as y up",
     "export with z up", ""),
    ("inertial-lost", "no mass and no inertia", "give the link its inertial", "gazebosim/sdformat#199"),
    ("inertia-lost", "the mass without its inertia", "give the link its inertia", ""),
    ("inertia-balanced", "principal moments replaced by their mean", "correct A's inertia: A + B >= C",
     "google-deepmind/mujoco#375 HumaRobotics/darwin_description#1"),
    ("inertia-ball", "the inertia of a ball of water (Drake's substitute)", "correct A's inertia",
     "RobotLocomotion/drake#18773"),
    ("inertial-default", "a default mass or inertia, such as 1 kg", "give each link an inertial",
     "dartsim/dart#1604 bulletphysics/bullet3#3110 RobotLocomotion/drake#17446 o3de/o3de-extras#552"),
    ("mass-density", "mass from the volume of the shapes and a density",
     "switch it off: inertiafromgeom, density",
     "kscalelabs/urdf2mjcf#81"),
    ("inertia-from-shapes", "A's mass with the inertia of the shapes",
     "in PyBullet: URDF_USE_INERTIA_FROM_FILE",
     "bulletphysics/bullet3#763 learnsyslab/gym-pybullet-drones#56"),
    ("mass-scaled", "mass, or mass and inertia, times a factor", "check units", ""),
    ("inertia-scaled", "inertia times a factor", "check units: kg m^2", ""),
    ("total-mass", "all masses times one factor", "remove settotalmass, or check units", ""),
    ("inertia-clamped", "principal moments raised to a minimum", "remove boundinertia", ""),
    ("mass-clamped", "mass raised to a minimum", "remove boundmass",
     "Unity-Technologies/URDF-Importer#57"),
    ("fixed-link-dropped", "the mass of a link behind a fixed joint is gone",
     "keep fixed joints in the conversion",
     "gazebosim/sdformat#199"),
    ("fixed-link-merged-wrongly",
     "a link behind a fixed joint merged at a wrong pose or without parallel axes",
     "keep fixed joints in the conversion", "gazebosim/sdformat#22 Seeed-Projects/reBot-Isaacsim#6"),
    ("mass-differs", "another mass, for no known reason", "look at both files", ""),
    ("com-differs", "another centre of mass, for no known reason", "look at both files", ""),
    ("inertia-differs", "another inertia, for no known reason", "look at both files", ""),
    ("link-missing", "a link with mass that B does not have", "look at both files", ""),
    ("link-added", "a body with mass that A does not have", "look at both files",
     "newton-physics/urdf-usd-converter#80"),
    ("gravity-off", "gravity switched on or off for one body", "check gravcomp, disableGravity, <gravity>",
     ""),
    ("origin-rotation-lost", "the rpy of the joint's origin left out", "update the converter", ""),
    ("origin-rotation-twice", "the rpy of the joint's origin applied twice", "update the converter", ""),
    ("origin-rotation-inverted", "the rpy of the joint's origin backwards", "update the converter", ""),
    ("origin-degrees", "the rpy of the joint's origin in degrees", "write radians; MJCF: angle=\"radian\"",
     ""),
    ("origin-rotation-convention", "roll, pitch, yaw in another order", "MJCF: eulerseq=\"XYZ\"", ""),
    ("origin-position-turned", "the position expressed in the turned axes", "update the converter", ""),
    ("origin-position-lost", "the xyz of the joint's origin left out", "update the converter", ""),
    ("origin-position-twice", "the xyz of the joint's origin applied twice", "update the converter", ""),
    ("origin-position-inverted", "the xyz of the joint's origin negated", "update the converter", ""),
    ("origin-units", "the xyz of the joint's origin in other units", "write metres", ""),
    ("origin-mirrored", "the xyz of the joint's origin mirrored", "check the left and right halves", ""),
    ("origin-lost", "the whole origin of the joint left out", "update the converter",
     "Rhoban/onshape-to-robot#188"),
    ("zero-position", "another zero position of the joint", "add the offset to positions and limits", ""),
    ("origin-differs", "another placement of the joint, for no known reason", "look at both files", ""),
    ("axis-flipped", "the joint's axis negated",
     "negate positions, velocities, forces and limits, or the axis",
     "ros/solidworks_urdf_exporter#11 facebookresearch/momentum#1335"),
    ("axis-length", "an axis of another length, which not every reader normalises", "write a unit vector",
     "petercorke/robotics-toolbox-python#441"),
    ("axis-default", "the default axis instead of A's", "write the axis", ""),
    ("axis-frame", "the axis expressed in another frame", "update the converter",
     "ros/kdl_parser#31 bulletphysics/bullet3#4240 RobotecAI/o3de-ros2-gem#167"),
    ("axis-snapped", "the axis moved to the nearest coordinate axis", "turn the joint's frame instead",
     "isaac-sim/IsaacSim#91 robotology/urdf2casadi-matlab#21"),
    ("axis-permuted", "components of the axis exchanged", "update the converter", ""),
    ("axis-differs", "another axis, for no known reason", "look at both files", ""),
    ("joint-type", "another type of joint", "look at both files", ""),
    ("joint-welded", "a joint that does not move in B", "give B the joint", ""),
    ("joint-freed", "a fixed joint that moves in B", "remove it in B", "gazebosim/sdformat#131"),
    ("joint-missing", "a joint that B does not have", "look at both files", ""),
    ("joint-added", "a joint that A does not have", "look at both files", ""),
    ("joint-parent", "a joint with another parent body", "look at both files", ""),
    ("link-on-another-body", "a link that is fixed to another body", "look at both files", ""),
    ("root-differs", "another root: the joints on the way to it are turned round",
     "write the tree from A's root outwards", ""),
    ("loop-missing", "a loop joint that B does not have", "close the loop in B", ""),
    ("loop-added", "a loop joint that A does not have", "look at both files", ""),
    ("loop-differs", "another loop joint: its bodies, kind or place", "look at both files", ""),
    ("limits-degrees", "position limits in degrees instead of radians, or the reverse",
     "URDF: radians; USD: degrees; MJCF: compiler angle",
     "openai/mujoco-py#216 ros-industrial-attic/CAD-to-ROS#30"),
    ("limits-swapped", "lower and upper limit exchanged, or their signs", "exchange them", ""),
    ("limits-negated", "limits negated without the axis", "negate them",
     "facebookresearch/momentum#1335"),
    ("limits-lost", "no position limits", "write them", ""),
    ("limits-added", "position limits that A does not have", "remove them", ""),
    ("limits-shifted", "limits about another zero", "check the zero position", ""),
    ("limits-scaled", "limits times a factor", "check units and soft limits", ""),
    ("limits-differ", "one or both limits differ", "look at both files", "DoosanRobotics/doosan-robot#73"),
    ("effort-lost", "no effort limit", "write it", ""),
    ("effort-added", "an effort limit that A does not have", "look at both files", ""),
    ("effort-scaled", "the effort limit times a factor", "check units and gears", ""),
    ("effort-range", "another effort range, not by a single factor", "look at both ends of the range", ""),
    ("effort-velocity-swapped", "effort and velocity limits exchanged", "exchange them", ""),
    ("velocity-lost", "no velocity limit", "write it", ""),
    ("velocity-added", "a velocity limit that A does not have", "look at both files", ""),
    ("velocity-degrees", "the velocity limit in degrees per second", "write rad/s; USD: deg/s",
     "newton-physics/urdf-usd-converter#116"),
    ("velocity-scaled", "the velocity limit times a factor", "check units", ""),
    ("damping-lost", "no damping", "write it", "isaac-sim/IsaacSim#841"),
    ("damping-added", "damping that A does not have", "remove it", "bulletphysics/bullet3#4240"),
    ("damping-degrees", "damping per degree instead of per radian", "multiply by pi/180 or its inverse",
     "newton-physics/mujoco-usd-converter#106 newton-physics/newton#2536"),
    ("damping-scaled", "damping times a factor", "check units", ""),
    ("damping-friction-swapped", "damping and friction exchanged", "exchange them", ""),
    ("friction-lost", "no friction", "write it", "isaac-sim/IsaacSim#841"),
    ("friction-added", "friction that A does not have", "remove it", "bulletphysics/bullet3#4240"),
    ("friction-scaled", "friction times a factor", "check units", ""),
    ("armature-added", "a rotor inertia that A does not have", "write it in A, or remove it",
     "unitreerobotics/unitree_ros#130"),
    ("armature-lost", "no rotor inertia", "write it", ""),
    ("armature-scaled", "the rotor inertia times a factor", "check gears: it grows with their square", ""),
    ("spring-added", "a spring in the joint", "remove stiffness and springref", ""),
    ("mimic-dropped", "no mimic law: the joint is free", "add the constraint",
     "google-deepmind/mujoco#3527 Genesis-Embodied-AI/genesis-world#129"),
    ("mimic-twice", "the mimic joint driven twice", "keep the law or the actuator", ""),
    ("mimic-multiplier", "another multiplier of the mimic law", "correct it", ""),
    ("mimic-inverted", "the multiplier's inverse: leader and follower exchanged", "correct it",
     "google-deepmind/mujoco#3530"),
    ("mimic-offset", "another offset of the mimic law", "correct it", ""),
    ("mimic-curved", "a mimic law with squares or higher powers", "URDF has linear laws only", ""),
    ("mimic-leader", "another joint to follow", "correct it", ""),
    ("mimic-added", "a mimic law that A does not have", "remove it", ""),
    ("mesh-scale", "another scale of a collision mesh", "correct it",
     "o3de/o3de-extras#504 personalrobotics/or_urdf#6 RobotWebTools/roslibjs#40 osrf/drcsim#275"),
    ("mesh-file", "another mesh file instead of A's", "correct it", ""),
    ("shape-size", "another size of a collision shape", "MJCF has half sizes, URDF full ones",
     "Unity-Technologies/URDF-Importer#79"),
    ("shape-pose", "a collision shape at another place", "look at both files", ""),
    ("shape-kind", "a collision shape of another kind", "look at both files", ""),
    ("shape-missing", "a collision shape that B does not have", "look at both files", ""),
    ("shape-added", "a collision shape that A does not have", "look at both files", ""),
    ("dynamics-differ", "H, C or gravity differ, for no known reason", "look at both files", ""),
    ("base-tilted", "the fixed base is turned against gravity", "turn the base, or A's link 'world'", ""),
    ("gravity", "another gravity", "write 0 0 -9.81", ""),
    ("base-welded", "the base is fixed to the world", "add a free joint; SDF: <static>; Isaac: fix_base",
     "ecto/vcad#769 newton-physics/newton#2555"),
    ("base-freed", "the base is free", "weld it to the world", "gbionics/mujoco-urdf-loader#15"),
    ("joint-order", "the joints in another order", "address joints by name",
     "isaac-sim/IsaacLab#37 stack-of-tasks/pinocchio#379 unitreerobotics/unitree_rl_gym#98"),
)  # fmt: skip

CAUSES = {row[0]: Cause(row[0], row[1], row[2], tuple(row[3].split())) for row in _ROWS}  # code -> the cause


# ---- A verdict as lines of text and as a table for JSON ------------------------------------------

MOST_SHOWN = 8  # number of findings of one cause that are shown


def verdict_lines(verdict: Verdict, width: int | None = None, most: int | None = MOST_SHOWN) -> list[str]:
    """The verdict in lines: the two files, one line for each finding, notes, and a summary.

    ``width`` wraps lines, None does not; ``most`` findings of one cause are shown, None for all.
    """
    a, b = verdict.a, verdict.b
    lines = [f"A  {a} ({verdict.a_format})", f"B  {b} ({verdict.b_format})"]
    lines.append(f"   {counted(verdict.bodies, 'link')} and {counted(verdict.joints, 'joint')} matched")
    shown: Counter[str] = Counter()
    count = Counter(finding.cause for finding in verdict.findings)
    for finding in verdict.findings:
        shown[finding.cause] += 1
        if most is None or shown[finding.cause] <= most:
            also = f"; or {', '.join(finding.also)}" if finding.also else ""
            lines += _wrap(f"{finding} [{finding.cause}{also}]", width, "    ")
        elif shown[finding.cause] == most + 1:
            lines.append(f"... and {count[finding.cause] - most} more [{finding.cause}] (--all shows them)")
    for note in verdict.notes:
        lines += _wrap(f"note: {note}", width, "    ")
    if verdict.dynamics is not None:
        lines += _wrap(_dynamics(verdict.dynamics), width, "    ")
    return [*lines, *_wrap(_summary(verdict, count), width, "    ")]


def verdict_table(verdict: Verdict) -> dict[str, Any]:
    """The verdict for JSON; every finding with the meaning of its cause and what to do."""
    findings = [
        asdict(f) | {"meaning": CAUSES[f.cause].meaning, "fix": CAUSES[f.cause].fix} for f in verdict.findings
    ]
    return asdict(verdict) | {"same": verdict.same, "findings": findings}


def _dynamics(found: Dynamics) -> str:
    """How far the dynamics are apart, and whether rounding can make that."""
    if found.differs:
        apart = f"{found.where} differs by a relative {found.largest:.1g}"
        return f"dynamics at random states: {apart}; rounding makes at most {found.rounding:.1g}"
    return f"dynamics at random states: H, C and gravity agree to {max(found.H, found.C, found.gravity):.1g}"


def _summary(verdict: Verdict, count: Counter[str]) -> str:
    if verdict.same:
        return f"same: no difference above {verdict.tolerance:g}"
    causes = ", ".join(f"{cause} {n}" if n > 1 else cause for cause, n in count.most_common())
    return f"different: {counted(len(verdict.findings), 'finding')} ({causes})"


def _wrap(line: str, width: int | None, indent: str) -> list[str]:
    if width is None:
        return [line]
    return textwrap.wrap(line, width, subsequent_indent=indent, break_on_hyphens=False) or [""]
