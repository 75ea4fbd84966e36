"""The table of everything that can be found in a URDF, and the collector of what was found."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from robokit.dataclass_tools import frozen
from robokit.errors import COMPARED, Diagnostic, Severity, UrdfError, nearest_names, one_line

# ==== codes =======================================================================================
# Everything that the importer can find: code, severity, meaning, usual fix. Codes never change.
#
# Errors are files that have no single physical reading; warnings are files that load as written although
# the user should look; notes are things that were left out on purpose.


@frozen
class Code:
    """One row of the table.

    Attributes:
        severity: "error", "warning" or "note".
        meaning: what the code says about the file.
        fix: what to do about it; the default hint of its diagnostics.
    """

    severity: Severity
    meaning: str
    fix: str


def _rows(severity: Severity, *rows: tuple[str, str, str]) -> dict[str, Code]:
    return {code: Code(severity, meaning, fix) for code, meaning, fix in rows}


_ERRORS = _rows(
    "error",
    ("file-missing", "there is no such file", "check the path"),
    ("file-not-regular", "a directory or a device, not a file", "name the .urdf file itself"),
    ("file-unreadable", "the system refuses to read the file", "check the file's permissions"),
    ("file-too-large", "more than 64 MiB of text", "keep meshes in files of their own"),
    ("file-empty", "the file is empty", "write it again"),
    ("file-compressed", "a compressed archive", "unpack it first"),
    ("file-lfs-pointer", "a Git LFS pointer that stands for the file", "git lfs pull"),
    ("file-binary", "not text", "name a URDF, xacro, MJCF, SDF or USD file"),
    ("file-encoding", "the bytes are not text in the encoding they claim", "save the file as UTF-8"),
    ("xml-doctype", "a DOCTYPE, which can define entities", "delete the DOCTYPE: URDF has no use for one"),
    ("xml-syntax", "not well-formed XML", "correct the XML at this line"),
    ("root-not-robot", "the outermost element is not <robot>", "give a URDF, whose root is <robot name=...>"),
    ("xacro-unexpanded", "a xacro macro file that was not expanded", "expand it: xacro in.xacro > out.urdf"),
    ("xacro-missing", "a .xacro file, and xacro is not installed", 'pip install "robokit[xacro]"'),
    ("xacro-argument", "a .xacro file that needs the value of an argument", "give it: NAME:=VALUE"),
    ("xacro-failed", "xacro cannot expand the file", "correct what xacro says, or run xacro by hand"),
    ("no-links", "no <link> at all", "a robot needs at least one <link name=...>"),
    (
        "base-floats-twice",
        "a moving joint has the name of the joint that base='floating' adds",
        "load with base='fixed' if this joint is the free one, or rename it",
    ),
    ("name-missing", "a link or joint without a name", "give it a name"),
    ("link-duplicate", "two links with the same name", "rename one of them"),
    ("joint-duplicate", "two joints with the same name", "rename one of them"),
    ("joint-type-missing", "a joint without a type", "add type=..."),
    ("joint-type-unknown", "a joint type that URDF does not have", "use one of URDF's types"),
    ("joint-parent-missing", "a joint without a parent", 'add <parent link="..."/>'),
    ("joint-child-missing", "a joint without a child", 'add <child link="..."/>'),
    ("link-undefined", "a joint's parent or child that is not a link", "define the link or correct the name"),
    ("joint-self", "a joint from a link to itself", "name two different links"),
    (
        "link-two-parents",
        "a link that is the child of two joints",
        "URDF is a tree: load with loops='close', or close the loop with a <loop_joint>",
    ),
    ("loop-end-missing", "a <loop_joint> without a predecessor or successor", "name the link of each end"),
    ("loop-length", "a <loop_joint> of type distance whose length is not above 0", "give the rod's length"),
    (
        "loop-axes",
        "a universal <loop_joint> whose two axes are not perpendicular",
        "turn one of them, or leave out <axis2>",
    ),
    ("tree-cycle", "joints that close a circle", "break the circle: one link must have no parent"),
    ("tree-two-roots", "parts that no joint connects", "connect each root to the robot with a fixed joint"),
    ("attribute-missing", "an attribute without which there is no number to use", "add the attribute"),
    (
        "orientation-twice",
        "both rpy and quat_xyzw, which readers of URDF 1.1 refuse and those of 1.0 take for rpy alone",
        "keep one of the two",
    ),
    ("number-invalid", "not a number", "write decimals with a point, separated by spaces"),
    ("number-not-finite", "not a finite number", "write a finite number or leave the attribute out"),
    ("number-count", "too few or too many numbers", "write as many numbers as the attribute takes"),
    ("mass-missing", "an <inertial> without <mass>", 'add <mass value="..."/> or delete the <inertial>'),
    ("mass-negative", "a mass below zero", "masses are positive, or zero for frames"),
    ("axis-zero", "a moving joint with a zero axis", "give the axis a direction, or make the joint fixed"),
    ("limit-inverted", "a lower limit above the upper one", "exchange them"),
    ("mimic-unknown", "a mimic of a joint that does not exist", "correct the name"),
    ("mimic-self", "a joint that mimics itself", "name another joint"),
    ("mimic-cycle", "joints that mimic one another in a circle", "let one of them move on its own"),
    (
        "mimic-not-coupled",
        "a mimic with or of a joint of several coordinates (judged with mimic='couple' only)",
        "leave out mimic='couple', or give the joint one coordinate",
    ),
)

_WARNINGS = _rows(
    "warning",
    (
        "xacro-argument-unknown",
        "a value of an argument that the .xacro file never asks for",
        "correct its name",
    ),
    (
        "xml-prefix-undeclared",
        "an element or attribute whose prefix no xmlns declares, which strict XML readers refuse",
        'declare the prefix, xmlns:PREFIX="..." at <robot>, or delete what has it',
    ),
    ("robot-name-empty", "the robot has no name", "add name=... to <robot>"),
    ("element-repeated", "an element given twice, of which only one counts", "delete all but one"),
    (
        "inertia-not-psd",
        "a rotational inertia with a negative principal moment",
        "export the inertia again; mind the signs of ixy, ixz, iyz",
    ),
    (
        "inertia-triangle",
        "a principal moment above the sum of the other two, which no body has",
        "export the inertia about the centre of mass, in kg m^2",
    ),
    ("inertia-zero", "a mass without rotational inertia", "give the inertia of the link's shape"),
    ("inertia-incomplete", "products of inertia left out, taken as 0", "write all six numbers"),
    (
        "massless-subtree",
        "a joint that moves no inertia: H is singular",
        "give a link it moves a mass and an inertia, or make the joint fixed",
    ),
    (
        "inertial-missing",
        "a link that moves and is visible, but has no mass, nor has a link that is fixed to it",
        "add an <inertial>; if it is a frame of reference only, delete its visual",
    ),
    ("limit-missing", "a revolute or prismatic joint without <limit>", 'add <limit>, or type="continuous"'),
    ("limit-range-missing", "a <limit> without lower and upper", "add lower and upper"),
    ("limit-incomplete", "a <limit> without effort or velocity", "add effort and velocity"),
    (
        "safety-incomplete",
        "a <safety_controller> without k_velocity, which other readers refuse",
        "add k_velocity",
    ),
    ("limit-effort-negative", "an effort limit below zero", "effort is a magnitude"),
    ("limit-velocity-negative", "a velocity limit below zero", "velocity is a magnitude"),
    ("damping-negative", "a negative damping, which adds energy", "damping is zero or positive"),
    ("friction-negative", "a negative friction, which adds energy", "friction is zero or positive"),
    ("armature-negative", "a rotor inertia below zero", "rotor inertias are zero or positive"),
    (
        "transmission-joint",
        "a transmission with a rotor for a joint that is not there or does not move",
        "name the joint that the motor drives",
    ),
    (
        "version-unknown",
        "a version that URDF does not have, for which other readers refuse the file",
        'write version="1.2", or leave it out: then it is 1.0',
    ),
    (
        "quat-needs-version",
        "a quat_xyzw in a file of a version without it: other readers take no rotation",
        'write version="1.1" at <robot>, or rpy instead',
    ),
    (
        "quat-not-unit",
        "a quaternion far from unit length, which was normalised",
        "write a unit quaternion x y z w",
    ),
    (
        "angle-beyond-turn",
        "an rpy angle of more than a full turn, which was probably meant in degrees",
        "write radians: 90 degrees are 1.5707963",
    ),
    ("axis-not-unit", "an axis far from unit length, which was normalised", "write a unit vector"),
    (
        "mimic-of-fixed",
        "a mimic of a joint that does not move",
        "name the joint to follow, or delete the mimic",
    ),
    (
        "mimic-independent",
        "mimic joints that move on their own (judged with mimic='independent' only)",
        "mimic='couple' keeps the coupling",
    ),
    ("mesh-unresolved", "a mesh file that was not found", "pass package_dirs=[the folder above the package]"),
    (
        "mesh-unreadable",
        "a mesh file that cannot be read (judged with --meshes only)",
        "export the mesh again",
    ),
    (
        "mesh-lfs-pointer",
        "a Git LFS pointer where a mesh or texture should be (judged by check only)",
        "fetch the files of its repository: git lfs pull",
    ),
    ("texture-unresolved", "a texture file that was not found", "pass package_dirs=[...]"),
    ("geometry-missing", "a visual or collision without a usable shape", "add a shape or delete the element"),
    ("geometry-negative", "a shape of negative size", "sizes are positive"),
)

_NOTES = _rows(
    "note",
    (
        "physics-ignored",
        "a tag for another program that can change the physics there",
        "check whether the robot's motion depends on it; nothing else to do",
    ),
    ("tag-unknown", "a tag that URDF does not have, ignored", "correct its spelling, or delete it"),
    (
        "attribute-unknown",
        "an attribute that URDF does not have, ignored",
        "correct its spelling, or delete it",
    ),
    (
        "version-too-low",
        "a feature of a later version of URDF, which readers of the file's version leave out",
        "write the later version at <robot>",
    ),
    (
        "xacro-leftover",
        "xacro tags left in an expanded file, ignored",
        "expand the macro file again, or delete the tag",
    ),
    (
        "material-undefined",
        "a material that is named but not defined",
        "give the material a <color>, here or at the top of the file",
    ),
    (
        "mesh-up-axis",
        "COLLADA meshes that say that x or y is up, which is ignored as in RViz (judged by check only)",
        "if the parts look turned: mesh_up_axis='apply', on the command line --mesh-up-axis apply",
    ),
    ("geometry-zero-size", "a shape of size zero", "give the shape a size, or delete it"),
    (
        "limit-on-continuous",
        "position limits on a continuous joint, ignored",
        'delete them, or write type="revolute"',
    ),
    (
        "limit-locked",
        "a joint whose lower and upper limit are equal",
        "widen the limits, or make the joint fixed",
    ),
    (
        "limit-excludes-zero",
        "position zero lies outside a joint's limits: the neutral configuration breaks them",
        "start from a configuration inside the limits",
    ),
    (
        "base-massless",
        "a root without inertia that carries one joint: with base='floating' H is singular",
        "give the root link a mass and an inertia before the base floats",
    ),
    (
        "density-implausible",
        "a mass that no material explains in the volume of the link's shapes",
        "mind the units: kg and metres; or correct the shape",
    ),
    (
        "com-outside",
        "a centre of mass far outside the bounding box of the link's shapes",
        "give <inertial><origin> in the link's frame, in metres",
    ),
    (
        "inertia-implausible",
        "an inertia that is too large, far too small, or turned, for the mass and the link's shapes",
        "mind the units: kg m^2, about the centre of mass",
    ),
    (
        "mass-too-dense",
        "a mass that even the densest material does not hold within so small an inertia",
        "mind the units: kg and kg m^2, about the centre of mass",
    ),
    ("inertia-without-mass", "a rotational inertia on a link of zero mass, kept", "give the mass too"),
    (
        "base-own",
        "a massless root and a floating joint that are the floating base themselves, left out",
        "nothing: base='floating' gives the robot as it is without them",
    ),
    (
        "loop-frames",
        "two frames that mark where a loop was cut; it is open as long as nothing closes it",
        "load with loops='close', on the command line --loops close",
    ),
    (
        "loop-limits",
        "a joint that closes a loop, where its limits, damping and friction do not act",
        "let another joint of the loop have them",
    ),
    (
        "joint-renamed",
        "a fixed joint has the name of the joint that base='floating' adds",
        "rename the joint",
    ),
    ("mimic-on-fixed", "a mimic on a joint that does not move", "delete the mimic"),
)

CODES: dict[str, Code] = {**_ERRORS, **_WARNINGS, **_NOTES}  # errors first


# ==== Collects findings, so that all problems of a file are reported at once ======================

_ORDER: dict[Severity, int] = {"error": 0, "warning": 1, "note": 2}
_SHOWN = 20  # findings in the message of an error; the rest is in .diagnostics
_LONGEST = 600  # characters of each
MOST_COMPARED = 10_000  # pairs of names, for the hints of one report; after that there are no more


class Report:
    """The findings about one file. ``file``: the file's name in every diagnostic."""

    def __init__(self, file: str) -> None:
        self.file = file
        self._pairs = MOST_COMPARED
        self._found: list[Diagnostic] = []
        self._codes: set[str] = set()
        self._repeated: dict[tuple[str, str], tuple[str, int, str, int, str | None]] = {}

    def add(self, code: str, element: str, line: int, message: str, hint: str | None = None) -> None:
        """One finding; the hint defaults to the code's usual fix."""
        self._codes.add(code)
        self._found.append(self._diagnostic(code, element, line, message, hint))

    def once(
        self, code: str, kind: str, element: str, line: int, message: str, hint: str | None = None
    ) -> None:
        """A finding that is reported once for all its repetitions of the same kind, with their number."""
        self._codes.add(code)
        first = self._repeated.get((code, kind))
        if first is None:
            self._repeated[code, kind] = (element, line, message, 1, hint)
        else:
            self._repeated[code, kind] = (*first[:3], first[3] + 1, first[4])

    def nearest(self, name: str, known: Collection[str], most: int = 2) -> str | None:
        """A hint with the known names that are most like a wrong one; None where there are none.

        The time of all hints of a report is bounded: there are none after MOST_COMPARED pairs of names.
        """
        compared = min(len(known), COMPARED)
        if compared > self._pairs:
            return None
        self._pairs -= compared
        near = nearest_names(name, known, most)
        return "did you mean " + " or ".join(map(repr, near)) + "?" if near else None

    @property
    def has_errors(self) -> bool:
        """Whether any finding is an error."""
        return any(CODES[code].severity == "error" for code in self._codes)

    def has(self, code: str) -> bool:
        """Whether there is a finding of this code."""
        return code in self._codes

    def diagnostics(self) -> list[Diagnostic]:
        """All findings: errors, warnings, notes; each in the file's order."""
        out = list(self._found)
        for (code, _), (element, line, message, count, hint) in self._repeated.items():
            if count > 1:
                message = f"{message} ({count} times; first here)"
            out.append(self._diagnostic(code, element, line, message, hint))
        return sorted(out, key=lambda d: (_ORDER[d.severity], d.line))

    def _diagnostic(self, code: str, element: str, line: int, message: str, hint: str | None) -> Diagnostic:
        row = CODES[code]
        return Diagnostic(
            row.severity, code, element, self.file, line, message, row.fix if hint is None else hint
        )


def refusal(file: str, diagnostics: Iterable[Diagnostic], strict: bool = False) -> UrdfError | None:
    """The error that findings of a file amount to, or None; ``strict``: warnings refuse it, too."""
    diagnostics = list(diagnostics)
    errors = [d for d in diagnostics if d.severity == "error"]
    warnings = [d for d in diagnostics if d.severity == "warning"] if strict else []
    told = errors + warnings
    if not told:
        return None
    counts = [_count(len(errors), "error")] if errors else []
    if warnings:
        counts.append(_count(len(warnings), "warning") + " (refused by strict=True)")
    shown = [f"  {one_line(str(d), _LONGEST)}" for d in told[:_SHOWN]]
    lines = [f"{one_line(file)}: {' and '.join(counts)}", *shown]
    if len(told) > _SHOWN:
        lines.append(f"  and {len(told) - _SHOWN} more, all in .diagnostics")
    return UrdfError("\n".join(lines), diagnostics)


def _count(n: int, word: str) -> str:
    return f"{n} {word}" + ("s" if n != 1 else "")
