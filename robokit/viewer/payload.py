"""The data of a page, for a motion or for a single pose."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from robokit.arguments import check_values, real_array
from robokit.errors import RobokitError, ShapeError, WrongType
from robokit.model.arguments import not_a_robot
from robokit.model.inertial_parameters import equivalent_box
from robokit.model.parts import Joint, Link
from robokit.model.robot import Robot
from robokit.sim.ground import Ground
from robokit.sim.record import Trajectory
from robokit.viewer.data.event_data import event_kinds, events
from robokit.viewer.data.force_data import ForceHistory, link_forces
from robokit.viewer.data.key_frames import with_key_frames
from robokit.viewer.data.mass_matrix_data import structure
from robokit.viewer.data.motion_data import curves, motion_frames, still_frame, stopped, summary, ties
from robokit.viewer.data.own_curves import Curve, Values, own_curves
from robokit.viewer.data.step_states import step_states
from robokit.viewer.drawing import draw
from robokit.viewer.ground_nodes import ground_nodes
from robokit.viewer.nodes import Node
from robokit.viewer.payload_keys import (
    BodiesData,
    FramesData,
    GroundData,
    JointData,
    LinkData,
    NodeData,
    Payload,
    RobotData,
)
from robokit.viewer.poses import (
    body_poses,
    bounds,
    frame_indices,
    pose_numbers,
    relative_pose,
    sane_frames,
)
from robokit.viewer.scene import drawn_size, scene
from robokit.viewer.walk.walk_data import walk_data, walk_of_motion


def trajectory_payload(
    trajectory: Trajectory,
    max_triangles: int | None = None,
    max_fps: float = 60.0,
    walk: bool = True,
    own: Mapping[str, Curve | Values] | None = None,
    follow: bool | str | None = None,
) -> Payload:
    """Everything that the page of a motion shows.

    Args:
        trajectory: the Trajectory.
        max_triangles: a mesh is simplified to about this many triangles; None shares out what a page shows
            well.
        max_fps: frames per second at most; the page interpolates between them.
        walk: whether the page walks through the algorithms.
        own: curves of the caller's own by name.
        follow: a link that the camera follows, True for the centre of mass, False for neither.

    Raises:
        RobokitError: the trajectory was loaded without its robot.
        ShapeError: its robot has samples of masses, or a curve of the caller's own does not fit.
        WrongType: a curve that is none.
        UnknownName: there is no such link.
    """
    if trajectory.robot is None:
        raise RobokitError("the page needs the robot: Trajectory.load(path, robot=...)")
    robot = one_robot(trajectory.robot)
    more = own_curves(trajectory, own)
    check_follow(robot, follow)
    chosen = frame_indices(trajectory.t, max_fps)
    states = step_states(trajectory)  # first: the events are found in the same facts
    whole, shown = with_key_frames(trajectory, chosen)
    poses = body_poses(robot, whole.q[shown])
    nodes = scene(robot, max_triangles)
    sane = sane_frames(whole.t[shown], poses, drawn_size(robot, nodes))
    frames = motion_frames(whole, robot, shown, poses, sane, states)
    forces = ForceHistory(whole, shown)
    return replace(
        _robot_payload(robot, nodes, poses[:sane], frames, trajectory.ground),
        curves=[*curves(trajectory, forces, states), *more],
        follow=follow,
        ties=ties(robot, trajectory.springs),
        link_forces=link_forces(forces),
        summary=summary(trajectory),
        stopped=stopped(trajectory),
        events=events(trajectory),
        walk=walk_of_motion(whole, robot, shown) if walk else None,
    )


def pose_payload(
    robot: Robot, q: np.ndarray | None = None, max_triangles: int | None = None, walk: bool = True
) -> Payload:
    """Everything that the page of a single pose shows.

    Args:
        robot: the Robot.
        q: configuration, (nq,); the neutral one by default.
        max_triangles: a mesh is simplified to about this many triangles; None shares out what a page shows
            well.
        walk: whether the page walks through the algorithms.

    Raises:
        WrongType: not a robot.
        ShapeError: q is not one configuration, or the robot has samples of masses.
    """
    robot = one_robot(robot)
    q = one_configuration(robot, robot.neutral() if q is None else q)[None]
    poses = body_poses(robot, q)
    payload = _robot_payload(robot, scene(robot, max_triangles), poses, still_frame(robot, q, poses))
    # A floating robot stands on its lowest point; the ground under a fixed one is the world's z = 0.
    lowest = payload.bounds[0][2]
    height = min(0.0, lowest) if robot.base == "fixed" else lowest
    ground = GroundData(True, height, [0.0, 0.0, 1.0], [])
    return replace(payload, ground=ground, walk=walk_data(robot) if walk else None)


def motionless_payload(
    robot: Robot, ground: Ground | None, q: np.ndarray, max_triangles: int | None = None
) -> Payload:
    """The page of a motion that is still to come: the robot, what it falls on, and one frame.

    Args:
        robot: the Robot.
        ground: what it falls on, or None.
        q: configuration of the frame, (nq,).
        max_triangles: a mesh is simplified to about this many triangles; None shares out what a page shows
            well.

    Raises:
        WrongType: not a robot.
        ShapeError: q is not one configuration, or the robot has samples of masses.
    """
    robot = one_robot(robot)
    q = one_configuration(robot, q)[None]
    poses = body_poses(robot, q)
    return _robot_payload(robot, scene(robot, max_triangles), poses, still_frame(robot, q, poses), ground)


def structure_payload(robot: Robot) -> Payload:
    """What a page without a scene shows of a robot: names, tree, patterns and counts.

    Args:
        robot: the Robot.

    Raises:
        WrongType: not a robot.
        ShapeError: the robot has samples of masses.
    """
    robot = one_robot(robot)
    q = robot.neutral()[None]
    poses = body_poses(robot, q)
    return _robot_payload(robot, [], poses, still_frame(robot, q, poses))


def check_follow(robot: Robot, follow: bool | str | None) -> None:
    """See that a camera can follow it.

    Raises:
        WrongType: neither a name nor a bool.
        UnknownName: there is no such link.
        RobokitError: the centre of mass of a robot without mass.
    """
    if isinstance(follow, str):
        robot.link(follow)
    elif not isinstance(follow, bool | None):
        raise WrongType("follow", follow, "the name of a link, True, False or None")
    elif follow and not robot.total_mass > 0:
        raise RobokitError(f"follow: {robot.name!r} has no mass, and so no centre of mass; name a link")


def one_robot(robot: Robot) -> Robot:
    """The robot itself, if it is a single one.

    Raises:
        WrongType: not a robot.
        ShapeError: a robot with samples, whose masses are arrays.
    """
    if not isinstance(robot, Robot):
        raise not_a_robot(robot)
    if robot.samples is not None:
        raise ShapeError(
            f"robot: expected a single robot, got {robot.samples} samples of {robot.name!r}; "
            "show one of them: robot.sample(k)"
        )
    return robot


def one_configuration(robot: Robot, q: np.ndarray) -> np.ndarray:
    """A single configuration as an array of floats, (nq,).

    Raises:
        ShapeError: any other shape, or not finite real numbers.
    """
    array = real_array("q", q, (robot.nq,))
    if array.shape != (robot.nq,):
        raise ShapeError(f"q: expected one configuration, shape ({robot.nq},), got {array.shape}")
    check_values(("q",), (array,), ())
    return array


def _robot_payload(
    robot: Robot,
    nodes: list[Node],
    poses: np.ndarray,
    frames: FramesData,
    ground: Ground | None = None,
) -> Payload:
    """The payload of a robot, its frames and its ground, without curves and figures."""
    drawing = draw([*nodes, *(ground_nodes(ground) if ground is not None else ())])
    return Payload(
        robot=RobotData(
            name=robot.name,
            mass=robot.total_mass,
            total_mass=float(sum(link.mass for link in robot.links)),
            dof=robot.nv,
            base=robot.base,
            bodies=robot.nbodies,
            joints=sum(joint.kind != "floating" for joint in robot.joints),
            size=drawn_size(robot, nodes),
        ),
        bodies=BodiesData(
            name=[robot.body_name(i) for i in range(robot.nbodies + 1)],
            parent=list(robot.tree.parent),
            inertial=robot.inertial_parameters.tolist(),
        ),
        links=[_link(link) for link in robot.links],
        joints=_joints(robot),
        geometries=drawing.geometries,
        nodes=drawing.nodes[: len(nodes)],
        pictures=drawing.pictures,
        structure=structure(robot),
        bounds=np.round(bounds(nodes, poses), 5).tolist(),
        ground=None if ground is None else _ground(ground, drawing.nodes[len(nodes) :]),
        frames=frames,
        ties=ties(robot),
        curves=[],
        summary=[],
        event_kinds=event_kinds(),
    )


def _link(link: Link) -> LinkData:
    box = equivalent_box(link.mass, link.inertia)
    moments = None if box is None else box.moments.tolist()
    return LinkData(link.name, link.body, pose_numbers(link.placement), float(link.mass), moments)


def _ground(ground: Ground, nodes: list[NodeData]) -> GroundData:
    return GroundData(bool(ground.plane), float(ground.height), list(ground.up), nodes)


def _joints(robot: Robot) -> list[JointData]:
    """The joints of bodies 1..N; placements are those of the neutral configuration."""
    rest = body_poses(robot, robot.neutral()[None])[0]
    parent = robot.tree.parent
    return [
        JointData(
            name=joint.name,
            kind=joint.kind,
            body=joint.body,
            q=(joint.q_slice.start, joint.q_slice.stop),
            v=(joint.v_slice.start, joint.v_slice.stop),
            axis=joint.axis.tolist(),
            pitch=float(joint.pitch),
            lower=_finite(joint.lower),
            upper=_finite(joint.upper),
            velocity=_finite(joint.velocity),
            effort=_finite(joint.effort),
            follows=_follows(robot, joint),
            mimic=None if joint.mimic is None else joint.mimic.joint,
            parent_link=joint.parent_link,
            child_link=joint.child_link,
            placement=relative_pose(rest[parent[joint.body]], rest[joint.body]),
            rotor=list(robot.tree.armature[joint.body]) if robot.tree.armature else [],
        )
        for joint in robot.body_joints
    ]


def _finite(limit: float) -> float | None:
    return float(limit) if math.isfinite(limit) else None


def _follows(robot: Robot, joint: Joint) -> tuple[int, float] | None:
    """Index in q that a coupled mimic joint follows, and the multiplier; None for a joint of its own."""
    if robot.coupling is None or joint not in robot.mimic_joints:
        return None
    index, multiplier, _ = robot.coupling.q_from[robot.tree.q_slice[joint.body].start]
    return index, float(multiplier)
