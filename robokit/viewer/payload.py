"""The data of a page, for a motion or for a single pose."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from robokit.arguments import check_values, real_array
from robokit.contact.measures import KINDS, Event, EventKind, length, newtons, side_of, three
from robokit.dynamics.cost import GROWTH, AlgorithmCost, algorithm_cost, formulas
from robokit.errors import RobokitError, ShapeError, WrongType
from robokit.meshes.surface import Picture
from robokit.model.geometry import Box, Capsule, Cylinder, Sphere
from robokit.model.inertial_parameters import equivalent_box
from robokit.model.parts import Joint, Link
from robokit.model.robot import Robot, check_robot
from robokit.model.tree import cholesky_fill, factorisation_counts, inertia_pattern, ltdl_counts
from robokit.sim.events import answers as answers_of
from robokit.sim.ground import Ground
from robokit.sim.joint_forces import assumed_damping
from robokit.sim.run_inputs import longest_step
from robokit.sim.run_loop import UNBALANCED
from robokit.sim.starts import DEEP
from robokit.sim.trajectory import Trajectory
from robokit.viewer.motion_data import (
    Curve,
    ForceHistory,
    Values,
    base64_text,
    curves,
    every_step,
    link_forces,
    motion_frames,
    own_curves,
    packed,
    packed_bits,
    step_states,
    still_frame,
    stopped,
    summary,
    ties,
    with_key_frames,
)
from robokit.viewer.payload_keys import (
    AnswerData,
    BodiesData,
    CostData,
    CountData,
    EventKindData,
    EventsData,
    FramesData,
    GroundData,
    HappeningData,
    JointData,
    LinkData,
    NodeData,
    Payload,
    ReachedData,
    RobotData,
    ShapeData,
    StructureData,
    TouchedData,
)
from robokit.viewer.scene import (
    Drawable,
    Node,
    Triangles,
    body_poses,
    bounds,
    drawn_size,
    frame_indices,
    ground_nodes,
    picture_of,
    pose_numbers,
    relative_pose,
    sane_frames,
    scene,
)
from robokit.viewer.walk_data import kept, touched_bodies, walk_data

# ==== the events of a run as a page shows them: the important ones, and tables by link and by joint ====

MOST_EVENTS = 500  # events of a page: as many as a reader scrolls through
UNKNOWN = EventKind("", "Contacts", len(KINDS), "")  # stands for kinds in files of other versions


def events(trajectory: Trajectory) -> EventsData | None:
    """The events of a run, its answers and tables; None of a trajectory whose file has no events.

    The first limit of each joint and side is always there, and the events that the answers are about. Of very
    long runs it is the recorded states that count.
    """
    robot = trajectory.robot
    assert robot is not None
    try:
        known = "events" in vars(trajectory) or every_step(trajectory)
        found = trajectory.events if known else trajectory.sampled_events
    except RobokitError:
        return None
    answers = answers_of(found, float(trajectory.t[-1]), trajectory.ground is not None)
    needed = [answer.event for answer in answers if answer.event is not None]
    kept = important(found, needed, MOST_EVENTS)
    # Body and link that are selected with a name of a joint or link; links come first.
    joints = {joint.name: (joint.body, joint.child_link) for joint in robot.body_joints}
    names = {robot.body_name(i): (i, robot.body_name(i)) for i in range(robot.nbodies + 1)}
    bodies = joints | names | {link.name: (link.body, link.name) for link in robot.links}
    places = {id(event): k for k, event in enumerate(kept)}
    return EventsData(
        happenings=[_happening(event, robot, bodies) for event in kept],
        left_out=len(found) - len(kept),
        answers=[
            AnswerData(x.label, x.value, x.note, None if x.event is None else places[id(x.event)], False)
            for x in answers
        ],
        sampled="" if "events" in vars(trajectory) else trajectory.sampling(),
        touched=_touched(found, kept),
        reached=_reached(found, kept),
        assumed=assumed(trajectory),
        books=books(trajectory),
    )


def important(events: Sequence[Event], needed: Sequence[Event], most: int) -> list[Event]:
    """At most so many events and those that must not miss, in the order of time.

    Each kind keeps its largest; no kind crowds out another.
    """
    if len(events) <= most:
        return list(events)
    must, seen = {id(event) for event in needed}, set()
    for event in events:
        side = (event.subject, side_of(event)) if event.kind == "limit" else None
        if kind_of(event).once or (side is not None and side not in seen):
            must.add(id(event))
        seen.add(side)
    kinds = defaultdict(list)
    for event in events:
        kinds[event.kind].append(event)
    rank = {}
    for same in kinds.values():
        for k, event in enumerate(sorted(same, key=lambda event: -abs(event.size))):
            rank[id(event)] = k
    rest = sorted((event for event in events if id(event) not in must), key=lambda event: rank[id(event)])
    must |= {id(event) for event in rest[: max(0, most - len(must))]}
    return [event for event in events if id(event) in must]


def kind_of(event: Event) -> EventKind:
    """What is known of its kind."""
    return KINDS.get(event.kind, UNKNOWN)


def event_kinds() -> list[EventKindData]:
    """All kinds, the most important first."""
    return [EventKindData(x.name, x.family) for x in sorted(KINDS.values(), key=lambda kind: kind.rank)]


def _happening(event: Event, robot: Robot, bodies: dict[str, tuple[int, str]]) -> HappeningData:
    """An event with the body that it happened to."""
    body: int | None = None
    link: str | None = None
    about = kind_of(event).subject
    if about in ("joint", "drive"):
        joint = next((one for one in robot.body_joints if one.name == event.subject), None)
        if joint is not None:
            body, link = joint.body, joint.child_link
    elif about != "robot":
        body, link = bodies.get(event.subject, (None, None))
    return HappeningData(event.time, event.kind, event.subject, body, link, event.text, _size(event))


def _size(event: Event) -> str:
    """The size of an event in words."""
    if not event.unit or not math.isfinite(event.size):
        return ""
    if event.unit == "N":
        return newtons(event.size)
    return length(event.size) if event.unit == "m" else f"{three(event.size)} {event.unit}"


def _touched(events: Sequence[Event], kept: Sequence[Event]) -> list[TouchedData]:
    """Links that touched the ground, in the order of their first contact."""
    impacts = Counter(event.subject for event in events if event.kind == "impact")
    slid: dict[str, float] = defaultdict(float)
    for event in events:
        if event.kind == "stick":
            slid[event.subject] += event.size
    peaks = {event.subject: k for k, event in enumerate(kept) if event.kind == "peak force"}
    return [
        TouchedData(
            event.subject,
            k,
            peaks.get(event.subject),
            impacts[event.subject],
            length(slid[event.subject]) if slid[event.subject] else "",
        )
        for k, event in enumerate(kept)
        if event.kind == "first contact"
    ]


def _reached(events: Sequence[Event], kept: Sequence[Event]) -> list[ReachedData]:
    """Limits that joints reached, the one that is furthest past it first."""
    times: Counter[tuple[str, str]] = Counter()
    forces: dict[tuple[str, str], Event] = {}
    for event in events:
        key = event.subject, side_of(event)
        if event.kind == "limit":
            times[key] += 1
        if event.kind == "limit left" and (key not in forces or event.size > forces[key].size):
            forces[key] = event
    first: dict[tuple[str, str], int] = {}
    past: dict[tuple[str, str], int] = {}
    for k, event in enumerate(kept):
        if event.kind in ("limit", "past limit"):
            (first if event.kind == "limit" else past).setdefault((event.subject, side_of(event)), k)
    rows = [
        ReachedData(
            joint,
            side,
            k,
            past.get((joint, side)),
            times[joint, side],
            _size(forces[joint, side]) if (joint, side) in forces else "",
        )
        for (joint, side), k in first.items()
    ]
    return sorted(rows, key=lambda row: -kept[row.past].size if row.past is not None else 0.0)


# ---- answers, assumptions, energy and momentum accounting ----------------------------------------


def assumed(trajectory: Trajectory) -> list[AnswerData]:
    """The assumptions of the run, in words; doubtful ones are marked."""
    s, rows = trajectory.summary, []

    def say(label: str, value: str, note: str = "", doubtful: bool = False) -> None:
        rows.append(AnswerData(label, value, note, None, doubtful))

    if "dt" in s:
        note = "chosen for the robot" if s.get("dt_chosen") else "as given"
        most = math.inf if trajectory.ground is None else longest_step(trajectory.ground)
        long = s["dt"] > most
        if long:
            note = f"long for contact: take {1e3 * most:.3g} ms or less"
        say("time step", f"{1e3 * s['dt']:g} ms", note, long)
    if s.get("interrupted"):
        say("ended", f"at {trajectory.t[-1]:.4g} s", "interrupted early", True)
    if "integrator" in s:
        say("method", str(s["integrator"]))
    robot = trajectory.robot
    pairs = s.get("self_collision_pairs", 0)
    if pairs:
        say("self-collision", "on", f"{pairs} pair{'s' if pairs > 1 else ''} of bodies")
    elif robot is not None and robot.nbodies > 1:
        say("self-collision", "off", "links of the robot pass through each other")
    if s.get("default_damping"):
        words = assumed_damping(s["default_damping"])
        joints = s.get("default_damping_joints", 0)
        say("damping", words, f"assumed in {joints} joint{'' if joints == 1 else 's'} that have none")
    if trajectory.ground is not None:
        mu = trajectory.ground.friction
        say("friction", f"{mu:.3g}" if isinstance(mu, (int, float)) else "by link", "of the ground")
    if s.get("shape_error"):
        say("shapes", f"within {1e3 * s['shape_error']:.2g} mm", "of the convex hulls of meshes")
    return rows


def books(trajectory: Trajectory) -> list[AnswerData]:
    """Errors of the energy and momentum balance, and the depth of contacts."""
    s, rows = trajectory.summary, []

    def say(label: str, value: str, note: str = "", doubtful: bool = False) -> None:
        rows.append(AnswerData(label, value, note, None, doubtful))

    if "energy_balance" in s:
        error, moved = s["energy_balance"], s.get("energy_exchanged", 0.0)
        share = f"{100 * error / moved:.2g} % of the energy exchanged" if moved > 0.0 else ""
        say("energy", f"{error:.3g} J", share, moved > 0.0 and error > UNBALANCED * moved)
    if "momentum_balance_linear" in s:
        say("momentum", f"{s['momentum_balance_linear']:.3g} N s", "largest error")
        say("angular", f"{s['momentum_balance_angular']:.3g} N m s", "largest error of the angular momentum")
    for key, unit, what in CORRECTED:
        if s.get(key):
            say("corrected", f"{s[key]:.3g} {unit}", f"{what}, summed over the steps")
    for key, what in TAKEN:
        if s.get(key):
            say(what, f"{s[key]:.4g} J", "dissipated")
    if "deepest_penetration" in s:
        deep, fine = s["deepest_penetration"], s.get("deepest_fine", DEEP)
        say("deepest point", f"{1e3 * deep:.2g} mm", f"up to {1e3 * fine:.3g} mm is fine", deep > fine)
    if "residual_largest" in s:
        say("residual", f"{s['residual_largest']:.2g}", "largest, relative to the impulses of a step")
    if s.get("steps_not_settled"):
        say("unconverged", f"{s['steps_not_settled']}", "steps that did not converge", True)
    if "loop_gap" in s:
        say("loops", f"{s['loop_gap']:.2g} m", "largest gap")
    return rows


CORRECTED = (
    ("energy_corrected", "J", "energy"),
    ("momentum_corrected_linear", "N s", "momentum"),
    ("momentum_corrected_angular", "N m s", "angular momentum"),
)
"""Entries of the summary, their units, and what was corrected."""

TAKEN = (
    ("dissipated_by_contact", "in contacts"),
    ("dissipated_by_friction", "in joints"),
    ("dissipated_by_stops", "at stops"),
    ("dissipated_by_collision", "between links"),
)
"""Entries of the summary [J], and where that energy went."""


# ==== motions and poses ===========================================================================


def trajectory_payload(
    trajectory: Trajectory,
    max_triangles: int | None = None,
    max_fps: float = 60.0,
    walk: bool = True,
    own: Mapping[str, Curve | Values] | None = None,
    follow: bool | str | None = None,
) -> Payload:
    """Everything that the page of a motion shows; ``own`` are the caller's curves by name.

    Arguments and errors as of :func:`robokit.viewer.write_page`; RobokitError for a motion without its robot.
    """
    if trajectory.robot is None:
        raise RobokitError("the page needs the robot: Trajectory.load(path, robot=...)")
    robot = one_robot(trajectory.robot)
    more = own_curves(trajectory, own)
    check_follow(robot, follow)
    chosen = frame_indices(trajectory.t, max_fps)
    states = step_states(trajectory)  # before the events, which are found in the same records
    whole, shown = with_key_frames(trajectory, chosen)
    poses = body_poses(robot, whole.q[shown])
    nodes = scene(robot, max_triangles)
    sane = sane_frames(whole.t[shown], poses, drawn_size(robot, nodes))
    frames = motion_frames(whole, robot, shown, poses, sane, states)
    forces = ForceHistory(whole, shown)
    pushed = trajectory.ground is not None or trajectory.contacts is not None
    return replace(
        _robot_payload(robot, nodes, poses[:sane], frames, trajectory.ground),
        curves=[*curves(trajectory, forces, states), *more],
        follow=follow,
        ties=ties(robot, trajectory.springs),
        link_forces=link_forces(forces),
        summary=summary(trajectory),
        stopped=stopped(trajectory),
        events=events(trajectory),
        walk=walk_data(robot, pushed, touched_bodies(whole, robot, shown)) if walk else None,
    )


def pose_payload(
    robot: Robot, q: np.ndarray | None = None, max_triangles: int | None = None, walk: bool = True
) -> Payload:
    """Everything that the page of a pose shows; arguments, errors: :func:`robokit.viewer.write_page`."""
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
    """The page of a motion to come: the robot, what it falls on (or None), and one frame of q, (nq,).

    Arguments and errors as of :func:`pose_payload`.
    """
    robot = one_robot(robot)
    q = one_configuration(robot, q)[None]
    poses = body_poses(robot, q)
    return _robot_payload(robot, scene(robot, max_triangles), poses, still_frame(robot, q, poses), ground)


def structure_payload(robot: Robot) -> Payload:
    """What a page without a scene shows of a robot: names, tree, patterns and counts."""
    robot = one_robot(robot)
    q = robot.neutral()[None]
    poses = body_poses(robot, q)
    return _robot_payload(robot, [], poses, still_frame(robot, q, poses))


def check_follow(robot: Robot, follow: bool | str | None) -> None:
    """Raise WrongType for a value that no camera can follow, UnknownName for a link that does not exist.

    And RobokitError for the centre of mass of a robot without mass.
    """
    if isinstance(follow, str):
        robot.link(follow)
    elif not isinstance(follow, bool | None):
        raise WrongType("follow", follow, "the name of a link, True, False or None")
    elif follow and not robot.total_mass > 0:
        raise RobokitError(f"follow: {robot.name!r} has no mass, and so no centre of mass; name a link")


def one_robot(robot: Robot) -> Robot:
    """The robot itself; WrongType if it is none, ShapeError for one with samples, whose masses are arrays."""
    check_robot(robot)
    if robot.samples is not None:
        raise ShapeError(
            f"robot: expected a single robot, got {robot.samples} samples of {robot.name!r}; "
            "show one of them: robot.sample(k)"
        )
    return robot


def one_configuration(robot: Robot, q: np.ndarray) -> np.ndarray:
    """A single configuration as an array of floats, (nq,); ShapeError for anything else."""
    array = real_array("q", q, (robot.nq,))
    if array.shape != (robot.nq,):
        raise ShapeError(f"q: expected one configuration, shape ({robot.nq},), got {array.shape}")
    check_values(("q",), (array,), ())
    return array


def _robot_payload(
    robot: Robot, nodes: list[Node], poses: np.ndarray, frames: FramesData, ground: Ground | None = None
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
        ground=None
        if ground is None
        else GroundData(
            bool(ground.plane), float(ground.height), list(ground.up), drawing.nodes[len(nodes) :]
        ),
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


# ---- the nodes of a scene: geometries and pictures stored once -----------------------------------

STEPS = 65535  # steps that a mesh's box is divided into along each axis: finer than a pixel


@dataclass
class Drawing:
    """What nodes need: the payload's lists of the same names."""

    geometries: list[ShapeData] = field(default_factory=list)  # each once
    nodes: list[NodeData] = field(default_factory=list)  # in the order given
    pictures: list[str] = field(default_factory=list)  # data URIs, each once


def draw(nodes: Sequence[Node]) -> Drawing:
    """The nodes of a scene for the page; a picture that cannot be read is left out with a warning."""
    drawing = Drawing()
    shapes: dict[Drawable | int, int] = {}
    pictures: dict[Picture | None, int | None] = {}
    for node in nodes:
        # Triangles are arrays, which have no hash; each is one object, shared by its nodes.
        key = id(node.geometry) if isinstance(node.geometry, Triangles) else node.geometry
        if key not in shapes:
            shapes[key] = len(drawing.geometries)
            drawing.geometries.append(shape_data(node.geometry))
        if node.picture not in pictures:
            uri = picture_of(node)
            pictures[node.picture] = None if uri is None else len(drawing.pictures)
            drawing.pictures += [] if uri is None else [uri]
        drawing.nodes.append(
            NodeData(
                geometry=shapes[key],
                body=node.body,
                pose=pose_numbers(node.placement),
                rgba=[round(float(c), 4) for c in node.rgba],
                role=node.role,
                link=node.link,
                picture=pictures[node.picture],
            )
        )
    return drawing


def shape_data(geometry: Drawable) -> ShapeData:
    """A geometry for the page; corners of a mesh are rounded to 16 bits of its box."""
    if isinstance(geometry, Box):
        return ShapeData("box", size=geometry.size)
    if isinstance(geometry, Sphere):
        return ShapeData("sphere", radius=geometry.radius)
    if isinstance(geometry, Cylinder):
        return ShapeData("cylinder", radius=geometry.radius, length=geometry.length)
    if isinstance(geometry, Capsule):
        return ShapeData("capsule", radius=geometry.radius, length=geometry.length)
    low, high = geometry.vertices.min(axis=0), geometry.vertices.max(axis=0)
    step = np.where(high > low, (high - low) / STEPS, 1.0)
    corners = np.round((geometry.vertices - low) / step).astype("<u2")
    wide = len(corners) > STEPS
    colours, uv = geometry.colours, geometry.uv
    return ShapeData(
        "mesh",
        low=low.tolist(),
        step=step.tolist(),
        wide=wide,
        vertices=base64_text(corners),
        faces=base64_text(geometry.faces.astype("<u4" if wide else "<u2")),
        colours=None if colours is None else base64_text(colours.astype(np.uint8)),
        uv=None if uv is None else packed(uv),
    )


# ---- the mass matrix -----------------------------------------------------------------------------

COUNTED = ("rnea", "crba", "ltdl", "aba")  # algorithms whose operations the page lists


def structure(robot: Robot) -> StructureData:
    """Patterns of H and of L of H = LLᵀ, the multiply-adds of both, and the operations of the algorithms."""
    parents = robot.dof_parent
    pattern = inertia_pattern(parents)
    filled = cholesky_fill(pattern)
    tree, cholesky = ltdl_counts(parents), factorisation_counts(filled)
    counts = CountData(
        entries=int(tree["entries"]),
        zeros=int(tree["zeros"]),
        zeros_share=float(tree["zeros_share"]),
        factorise=int(tree["factorise"]),
        factorise_dense=int(tree["factorise_dense"]),
        solve=int(tree["solve"]),
        solve_dense=int(tree["solve_dense"]),
        fill=int(filled.sum() - np.tril(pattern).sum()),
        cholesky_factorise=cholesky["factorise"],
        cholesky_solve=cholesky["solve"],
    )
    costs = robot.derived.get(
        "page costs", lambda: kept("page costs", robot, (), list[CostData], lambda: _costs(robot))
    )
    return StructureData(len(parents), packed_bits(pattern), packed_bits(filled), counts, costs)


def _costs(robot: Robot) -> list[CostData]:
    counted = {name: algorithm_cost(robot, name, before=False) for name in COUNTED if name != "ltdl"}
    mul, add, div = (formulas(robot)["ltdl"][operation] for operation in ("mul", "add", "div"))
    counted["ltdl"] = AlgorithmCost("ltdl", GROWTH["ltdl"], mul, add, div, sincos=0)
    rows = [counted[name] for name in COUNTED]
    return [CostData(c.algorithm, c.growth, c.mul, c.add, c.div, c.sincos, c.note) for c in rows]
