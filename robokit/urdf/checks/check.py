"""All verdicts on a parsed description, in one call."""

from __future__ import annotations

from robokit.conventions import FLOATING_BASE
from robokit.errors import listed
from robokit.urdf.checks.files import check_files, check_heads, mesh_boxes
from robokit.urdf.checks.physics import check_inertias, check_joints, check_masses, check_sums
from robokit.urdf.checks.plausible import MeshBox, check_capsules, check_plausible, check_zero
from robokit.urdf.checks.structure import (
    check_frame_pairs,
    check_loops,
    check_mimic_option,
    check_mimics,
    check_structure,
)
from robokit.urdf.description import RobotDescription
from robokit.urdf.findings import Report
from robokit.urdf.mesh_files import Resolver
from robokit.urdf.rewrites import OwnBase, own_base, without_own_base


def check(
    robot: RobotDescription,
    report: Report,
    resolver: Resolver,
    base: str = "fixed",
    plausible: bool = False,
    meshes: bool = False,
    mimic: str | None = None,
    z_up: bool = False,
) -> None:
    """Checks a description; every finding goes to the report.

    Args:
        robot: the description.
        report: the findings so far, those of the parser, and those to come.
        resolver: finds meshes and textures.
        base: "fixed" or "floating": decides which massless parts make H singular. "either" judges a
            fixed base and notes what would be singular with a floating one.
        plausible: whether to look beyond what loading needs: masses beside shapes, zero outside limits.
        meshes: whether meshes are read for that, for their size.
        mimic: "independent" warns of mimic joints, whose coupling is dropped; "couple" finds those that
            cannot be coupled.
        z_up: whether shapes were turned by the up axes of their meshes.
    """
    if report.has("xacro-unexpanded"):
        return  # its names are templates: whatever followed would be noise
    if base == "floating" and (own := own_base(robot)) is not None:
        _tell_own_base(robot, own, report)
        robot = without_own_base(robot, own)
    if not robot.name.strip():
        report.add("robot-name-empty", "robot", robot.line, "has no name")
    check_inertias(robot, report)
    check_joints(robot, report)
    _check_materials(robot, report)
    if base == "floating":
        _check_base_name(robot, report)
    check_files(robot, resolver, report)
    if not robot.links:
        return
    tree = check_structure(robot, report)
    check_mimics(robot, report)
    check_loops(robot, report)
    check_frame_pairs(robot, report)
    check_mimic_option(robot, mimic, report)
    mesh_box: MeshBox | None = None
    if plausible:
        check_heads(robot, resolver, report, z_up)
        mesh_box = mesh_boxes(robot, resolver, report) if meshes else None
        check_zero(robot, report)
        check_capsules(robot, report)
    # Judging masses needs a tree, and numbers that could all be read.
    if tree is None or report.has_errors:
        return
    check_sums(robot, tree, report)
    if report.has_errors:
        return
    check_masses(robot, tree, base, report)
    if plausible:
        check_plausible(robot, tree, report, mesh_box)


def _tell_own_base(robot: RobotDescription, own: OwnBase, report: Report) -> None:
    names = [link.name for link in robot.links if link.name in own.links]
    seen = any(link.visuals or link.collisions for link in robot.links if link.name in own.links)
    what = f"link{'s' * (len(names) > 1)} {listed(map(repr, names), 4)}" + (" with shapes" if seen else "")
    dynamics = own.joint.dynamics
    damped = dynamics is not None and any((dynamics.damping, dynamics.friction, dynamics.armature))
    lost = "origin and dynamics" if damped else "origin"
    message = f"is the floating base; {what}, which it hangs on, and its {lost} are left out"
    report.add("base-own", f"joint {own.joint.name!r}", own.joint.line, message)


def _check_base_name(robot: RobotDescription, report: Report) -> None:
    for joint in robot.joints:
        if joint.name != FLOATING_BASE:
            continue
        where = f"joint {joint.name!r}"
        if joint.moves:
            message = f"moves (type={joint.type!r}), and base='floating' adds a joint of the same name"
            report.add("base-floats-twice", where, joint.line, message)
        else:
            name = fixed_base_name(robot)
            message = f"is fixed and is renamed to {name!r}: base='floating' adds a joint of its name"
            report.add("joint-renamed", where, joint.line, message)
        return


def fixed_base_name(robot: RobotDescription) -> str:
    """A free name for a fixed joint that has the floating base's name."""
    taken = {joint.name for joint in robot.joints}
    name = f"{FLOATING_BASE}_fixed"
    while name in taken:
        name += "_"
    return name


def _check_materials(robot: RobotDescription, report: Report) -> None:
    table = robot.material_table()
    for link in robot.links:
        for visual in link.visuals:
            material = visual.material
            if material is not None and material.name not in table and material.name and not material.defined:
                where = f"link {link.name!r} visual"
                message = f"material {material.name!r} is not defined; the default colour is used"
                report.once("material-undefined", material.name, where, material.line, message)
