"""The referee: reads two descriptions of one robot, and says what differs, and why."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from robokit.arguments import one_of
from robokit.errors import RobokitError, listed
from robokit.formats.description import Description, with_composite_joints
from robokit.formats.read import read_description
from robokit.parity.bodies import Bodies
from robokit.parity.dynamics import compared_dynamics, dynamics_finding
from robokit.parity.joints import joint_findings, mimic_findings
from robokit.parity.matching import Aligner, pair_descriptions, plain_name
from robokit.parity.shapes import Shapes
from robokit.parity.structure import Loops, shared_factor, tree_findings, whole_findings, with_the_same_root
from robokit.parity.verdict import Finding, Verdict
from robokit.urdf.mesh_files import Resolver, folders

DEFAULT_TOLERANCE = 1e-6
"""Largest relative difference that counts as none, unless the caller says otherwise."""

PathLike = str | os.PathLike[str]


def referee(
    a: PathLike,
    b: PathLike,
    base: str | None = None,
    tolerance: float = DEFAULT_TOLERANCE,
    through: str = "robokit",
    package_dirs: Sequence[PathLike] = (),
    xacro_args: Mapping[str, str] | None = None,
    loops: str = "declared",
) -> Verdict:
    """Compare two descriptions of one robot, and find the cause of each difference.

    Bodies are matched by name, and by their place in the tree, geometry and mass where names differ; joints
    by the bodies that they carry, axis and anchor. Everything is compared in one world with all joints at
    zero. Links that fixed joints hold together may be merged in either description. Beside the causes, mass
    matrix, velocity forces and gravity at random states are compared: where they differ by more than rounding
    makes, the robots are not the same even if no cause is found.

    Args:
        a: a URDF or xacro, the reference. Findings name its elements and lines.
        b: another description: URDF, xacro, MJCF (read by MuJoCo), SDF (read by Drake) or USD (read by
            usd-core).
        base: required base, "fixed" or "floating"; by default that of A, if it has one.
        tolerance: largest relative difference that counts as none.
        through: the program that reads b if it is a URDF: "robokit", "mujoco", "drake" or "pinocchio".
        package_dirs: folders searched first for ``package://`` files.
        xacro_args: values of the arguments of .xacro files.
        loops: of the URDFs that robokit reads, as for :func:`robokit.load_urdf`.

    Returns:
        the verdict: ``.same``, ``.findings``, ``.notes``, ``.dynamics``.

    Raises:
        UrdfError: a file that is no tree of links and joints.
        RobokitError: a file that cannot be read.
        MissingDependency: MuJoCo, Drake, Pinocchio or usd-core is needed and not installed.
    """
    if base is not None:
        one_of("base", base, ("fixed", "floating"))
    if not 0.0 < tolerance < 0.1:
        raise RobokitError(f"tolerance is {tolerance!r}; it is a relative difference above 0 and below 0.1")
    first = read_description(a, "robokit", package_dirs, xacro_args, loops)
    if first.format != "URDF":
        raise RobokitError(
            f"{os.fspath(a)} is {first.format}; the first file is the URDF or xacro that the other is "
            "compared with"
        )
    second = read_description(b, through, package_dirs, xacro_args, loops)
    return compare_descriptions(first, second, base, tolerance, package_dirs)


def compare_descriptions(
    a: Description,
    b: Description,
    base: str | None = None,
    tolerance: float = DEFAULT_TOLERANCE,
    package_dirs: Sequence[PathLike] = (),
) -> Verdict:
    """The verdict over two descriptions that have been read; arguments as for :func:`referee`."""
    b, other_root = with_the_same_root(a, with_composite_joints(b, a))
    pairing = pair_descriptions(a, b)
    aligner = Aligner(pairing, tolerance)
    alignment = aligner.align()
    resolver = Resolver(Path(a.file).absolute().parent, folders(package_dirs))

    def find(name: str) -> Path | None:
        return resolver(name).path

    bodies = Bodies(pairing, alignment, tolerance, find)
    shapes = Shapes(pairing, alignment.maps, tolerance, find)
    verdict = Verdict(a.file, b.file, a.format, b.format, tolerance=tolerance)
    verdict.bodies = sum(not a.bodies[name].static for name in pairing.home)
    verdict.joints = len(pairing.joints)
    found = [*alignment.findings, *bodies.findings()]
    for name in bodies.extra():
        text = f"only B has it: {b.bodies[name].mass:.4g} kg"
        found.append(Finding("link-added", "link", name, 0, text))
    found += joint_findings(pairing, alignment, tolerance, aligner.size)
    found += mimic_findings(pairing, tolerance)
    found += tree_findings(pairing)
    found += Loops(pairing, alignment.maps, tolerance, aligner.size).findings()
    found += shapes.findings()
    found.sort(key=lambda f: (f.line == 0, f.line))
    found = shared_factor(found, bodies.massive)
    whole = [other_root] if other_root is not None else []
    whole += whole_findings(pairing, alignment.maps, base, tolerance, verdict.notes)
    rounded = [f for f in found if f.cause == "rounded"]
    verdict.findings = [*whole, *(f for f in found if f.cause != "rounded")]
    verdict.notes += [*b.notes, *bodies.notes, *shapes.notes]
    verdict.dynamics = compared_dynamics(pairing, alignment, base, tolerance, aligner.size)
    verdict.findings += dynamics_finding(verdict.dynamics, verdict.findings, a.name or "robot")
    if rounded:
        names = list(dict.fromkeys(f.name for f in rounded))
        verdict.notes.append(f"B's numbers are rounded: {listed(names, 3)}")
    named = sum(plain_name(name) == plain_name(theirs.name) for name, theirs in pairing.joints.items())
    alike, names_of_a = len(pairing.direct) + named, len(a.bodies) + len(a.movable)
    if alike < names_of_a / 4 and len(verdict.findings) > len(a.bodies):
        verdict.notes.insert(0, "hardly a name is the same, and most differs: B may be another robot")
    if pairing.unnamed:
        pairs = [f"{x} is {y}" for x, y in pairing.unnamed.items() if a.bodies[x].mass or b.bodies[y].mass]
        if pairs:
            verdict.notes.append(f"matched by geometry: {listed(pairs, 3)}")
    if alignment.reframed:
        verdict.notes.append(
            f"B places {len(alignment.reframed)} link frames elsewhere; the bodies are where A's are"
        )
    return verdict
