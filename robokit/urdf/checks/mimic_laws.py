"""Mimic joints: the joints they follow, their laws, and whether they can be coupled."""

from __future__ import annotations

import math

from robokit.model.joints import JOINT_TABLE
from robokit.urdf.description import JointDescription, RobotDescription
from robokit.urdf.findings import Report


def check_mimics(robot: RobotDescription, report: Report) -> None:
    """Mimics of unknown joints, of themselves, of fixed joints, in a circle, and with laws that overflow."""
    if all(joint.mimic is None for joint in robot.joints):
        return
    joints: dict[str, JointDescription] = {}
    for joint in robot.joints:
        joints.setdefault(joint.name, joint)
    follows: dict[str, str] = {}
    for joint in joints.values():
        mimic, where = joint.mimic, f"joint {joint.name!r} mimic"
        if mimic is None:
            continue
        if mimic.joint == joint.name:
            report.add("mimic-self", where, mimic.line, "mimics itself")
        elif mimic.joint not in joints:
            message = f"mimics joint {mimic.joint!r}, which is not defined"
            report.add("mimic-unknown", where, mimic.line, message, report.nearest(mimic.joint, joints))
        else:
            follows[joint.name] = mimic.joint
            if not joint.moves:
                message = "this joint is fixed, so the mimic moves nothing"
                report.add("mimic-on-fixed", where, mimic.line, message)
            elif not joints[mimic.joint].moves:
                message = f"joint {mimic.joint!r} is fixed, so there is nothing to follow"
                report.add("mimic-of-fixed", where, mimic.line, message)
    _check_circles(joints, follows, report)
    _check_laws(joints, follows, report)


def _check_circles(joints: dict[str, JointDescription], follows: dict[str, str], report: Report) -> None:
    done: set[str] = set()
    for name in follows:
        path: dict[str, int] = {}
        while name in follows and name not in done and name not in path:
            path[name] = len(path)
            name = follows[name]
        if name in path:
            circle = list(path)[path[name] :]
            mimic = joints[circle[0]].mimic
            assert mimic is not None
            shown = " -> ".join(map(repr, [*circle[:8], "..." if len(circle) > 8 else circle[0]]))
            report.add(
                "mimic-cycle", f"joint {circle[0]!r} mimic", mimic.line, f"mimics in a circle: {shown}"
            )
        done.update(path)


def _check_laws(joints: dict[str, JointDescription], follows: dict[str, str], report: Report) -> None:
    """Laws of whole chains of mimics; of a chain only the first joint whose law overflows is reported."""
    laws: dict[str, tuple[float, float]] = {}
    for name in follows:
        chain: dict[str, None] = {}
        while name in follows and name not in laws and name not in chain:
            chain[name] = None
            name = follows[name]
        if name in chain:  # a circle, which has a finding
            laws.update(dict.fromkeys(chain, (1.0, 0.0)))
            continue
        multiplier, offset = laws.get(name, (1.0, 0.0))
        for joint in reversed(chain):
            mimic = joints[joint].mimic
            assert mimic is not None
            was_finite = math.isfinite(multiplier) and math.isfinite(offset)
            multiplier, offset = mimic.multiplier * multiplier, mimic.multiplier * offset + mimic.offset
            laws[joint] = multiplier, offset
            if was_finite and not (math.isfinite(multiplier) and math.isfinite(offset)):
                message = (
                    "the multipliers and offsets along its chain of mimics make a number beyond the largest "
                    "double, 1.8e308"
                )
                where = f"joint {joint!r} mimic"
                report.add("number-not-finite", where, mimic.line, message, "correct the multipliers")


def check_coupled_mimics(robot: RobotDescription, report: Report) -> None:
    """Mimics that mimic='couple' refuses: with or of a joint that has several coordinates."""
    joints = {joint.name: joint for joint in reversed(robot.joints)}
    for joint in robot.joints:
        followed = joints.get(joint.mimic.joint) if joint.mimic is not None and joint.moves else None
        if followed is None:
            continue
        assert joint.mimic is not None
        for end in (joint, followed):
            kind = JOINT_TABLE.get(end.type)
            if kind is not None and kind.nv > 1:
                message = (
                    f"mimics {followed.name!r}, and {end.name!r} is {end.type} and has several coordinates: "
                    "mimic='couple' takes joints with one"
                )
                report.add("mimic-not-coupled", f"joint {joint.name!r} mimic", joint.mimic.line, message)
                break


def check_dropped_mimics(robot: RobotDescription, report: Report) -> None:
    """Warns once of all mimic joints that move, whose laws mimic='independent' drops."""
    free = [joint for joint in robot.joints if joint.moves and joint.mimic is not None]
    if not free:
        return
    names = ", ".join(repr(joint.name) for joint in free[:8]) + (", ..." if len(free) > 8 else "")
    many = f"{len(free)} joints that mimic others" if len(free) > 1 else "1 joint that mimics another"
    message = f"mimic='independent' drops the law of {many} in the file: {names}"
    assert free[0].mimic is not None
    report.add("mimic-independent", "joints", free[0].mimic.line, message)
