"""Laws that every step must keep: order, energy, admissible forces, balance of momentum, rest."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import robokit as rk
from fidelity_cases import scenes as s
from fidelity_cases import worlds as w
from fidelity_cases.falls import apart
from fidelity_cases.peer import Peer
from fidelity_cases.table import Found, Look, case
from robokit.model import Box, Capsule, Sphere

MU = 0.5


@case("order", "Laws of a step", "The order of falls, bodies that touch each other")
def order(look: Look) -> Found:
    """Forty random falls of humanoid and G1 from just above the ground, no body in another at the start,
    self-collision on, at 2, 1, 0.5 and 0.25 ms compared with 1/16 ms. Measured: the exponent of the median
    error of a coordinate, by least squares, and the errors of the centre of mass at 1 ms.
    """
    found, rows = Found(), look.some(40, 6)
    steps = (2e-3, 1e-3, 0.5e-3, 0.25e-3)
    for label, name in (("humanoid", "humanoid"), ("G1", s.G1))[: look.some(2, 1)]:
        robot = s.same_joints(s.load(name))
        q, v = _apart(robot, *s.random_starts(robot, 12 * rows, 0.5, 0.0, 0.02), rows)
        pairs = rk.collision_pairs(robot)

        def mine(dt: float, robot: Any = robot, q: Any = q, v: Any = v) -> np.ndarray:
            options = {"ground": s.ground(), "self_collision": True, "record_every": round(4e-3 / dt)}
            return s.many(robot, q, v, steps=round(0.4 / dt), dt=dt, **options).q

        def theirs(dt: float, robot: Any = robot, q: Any = q, v: Any = v, pairs: Any = pairs) -> np.ndarray:
            peer, out = Peer(robot, dt, pairs=pairs), []
            for a, b in zip(q, v, strict=True):
                peer.start(a, b)
                out.append(peer.states(round(0.4 / dt), round(4e-3 / dt))[0])
            return np.stack(out, axis=1)

        exponents: dict[str, dict[float, float]] = {}
        at: dict[str, dict[float, float]] = {}
        for program, run in (("robokit", mine), ("mujoco", theirs))[: 1 + look.peer]:
            fine = run(1e-3 / 16)
            errors = {dt: apart(robot, run(dt), fine) for dt in steps}
            for t in (0.08, 0.4):
                k = round(t / 4e-3)
                logs = [math.log(np.nanmedian(errors[dt][0][k])) for dt in steps]
                exponents.setdefault(program, {})[t] = float(np.polyfit(np.log(steps), logs, 1)[0])
                at.setdefault(program, {})[t] = 1e3 * float(np.nanmedian(errors[1e-3][1][k]))
        for t in (0.08, 0.4):
            them = {"mujoco": exponents["mujoco"][t]} if look.peer else {}
            found.add(f"{label}, {t:g} s: order", "", exponents["robokit"][t], **them, least=0.95)
            them = {"mujoco": at["mujoco"][t]} if look.peer else {}
            found.add(f"{label}, {t:g} s: centre of mass at 1 ms, median", "mm", at["robokit"][t], **them)
    return found


def _apart(robot: rk.Robot, q: np.ndarray, v: np.ndarray, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """The first so many starts in which no body is in another: at rest, in the air, nothing moves.

    What begins in another is thrown, along a normal that changes by leaps: three quarters of G1's poses.
    """
    options = {"ground": s.ground(height=-10.0), "self_collision": True, "gravity": (0.0, 0.0, 0.0)}
    r = s.many(robot, q, np.zeros_like(v), steps=1, dt=1e-4, record_every=1, **options)
    still = np.flatnonzero(np.abs(r.v[-1]).max(axis=-1) < 1e-6)[:rows]
    return q[still], v[still]


def _mixed(rng: np.random.Generator, count: int) -> w.World:
    """Small bodies above each other, at random angles."""
    bodies = []
    for k in range(count):
        size = rng.uniform(0.05, 0.1)
        kinds = (
            Box(tuple(size * rng.uniform(0.5, 2.0, 3))),
            Sphere(size),
            Capsule(0.5 * size, size),
            w.hull(rng, size),
        )
        at = (*rng.uniform(-0.03, 0.03, 2), 0.25 + 0.35 * k)
        bodies.append(w.Body(kinds[rng.integers(4)], rng.uniform(0.2, 5.0), at))
    return w.World(bodies)


LEANING = 4
"""Of the energy case's ten kinds of scenes, that of slabs in a row."""

SLABS = np.array([[0.02, 0.06, 0.12], [0.03, 0.08, 0.10], [0.015, 0.06, 0.14], [0.02, 0.05, 0.12]])
"""Their edges [m]."""


def _leaning(rng: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Slabs that stand in a row; the first tips over its edge with 1.1 to 2 times the speed that it takes."""
    q, v = np.zeros((rows, len(SLABS), 7)), np.zeros((rows, len(SLABS), 6))
    angle = rng.uniform(-0.1, 0.1, (rows, len(SLABS)))
    q[..., 0], q[..., 3] = np.cos(0.5 * angle), np.sin(0.5 * angle)
    q[..., 4] = np.cumsum(rng.uniform(0.04, 0.09, (rows, len(SLABS))), axis=1)
    q[..., 6] = 0.5 * SLABS[:, 2]
    x, _, z = SLABS[0]
    up = 0.5 * (math.hypot(x, z) - z)
    speed = rng.uniform(1.1, 2.0, rows) * math.sqrt(6.0 * s.G * up / (x**2 + z**2))
    v[:, 0, 1], v[:, 0, 3], v[:, 0, 5] = speed, 0.5 * speed * z, 0.5 * speed * x
    return q.reshape(rows, -1), v.reshape(rows, -1)


@case("energy", "Laws of a step", "Ten thousand random scenes make no energy")
def energy(look: Look) -> Found:
    """Worlds of one to four mixed bodies, a row of slabs that topple and lean on each other, the humanoid and
    G1, with self-collision, random friction of 0 to 1.2, restitution of 0 to 1 and steps of 0.5 to 4 ms; 500
    random starts of each with random speeds, two draws, 0.6 s each. Measured: the scenes in which kinetic
    and potential energy are above the start after any step by more than 1e-9 of what moves, and the largest
    such rise.
    MuJoCo gets the first ten starts of each draw, and no restitution.
    """
    found = Found()
    rng = np.random.default_rng(1)
    rows, worst, above, scenes = look.some(500, 20), 0.0, 0, 0
    rises: dict[str, list[float]] = {"mujoco": [], "stiff": []}
    for draw in range(look.some(20, 3)):
        kind = draw % 10
        robot, options = _scene(rng, kind, draw)
        q, v = _starts(rng, robot, rows, kind)
        dt = float(rng.choice((0.5e-3, 1e-3, 2e-3, 4e-3)))
        r = s.many(robot, q, v, steps=round(0.6 / dt), dt=dt, record_every=1, **options)
        rise = _rise(robot, r.q, r.v)
        above += int((rise > 1e-9).sum()) + len(r.failed)
        worst, scenes = max(worst, float(rise.max())), scenes + rows
        pairs = options["self_collision"] or None
        for key, stiff in (("mujoco", False), ("stiff", True)) if look.peer else ():
            friction = options["ground"].friction
            peer = Peer(s.same_joints(robot), dt, stiff, friction, pairs=pairs)
            for x, y in zip(q[:10], v[:10], strict=True):
                peer.start(x, y)
                qs, vs = peer.states(round(0.6 / dt), round(4e-3 / dt))
                rises[key].append(
                    math.inf if peer.warned else float(_rise(robot, qs[:, None], vs[:, None])[0])
                )
    them = {key: sum(x > 1e-9 for x in of) / len(of) for key, of in rises.items() if of}
    found.add(f"of {scenes} scenes, share with energy above the start", "", above / scenes, **them, most=0.0)
    them = {key: max(of) for key, of in rises.items() if of}
    found.add("largest energy above the start, of what moves", "", max(worst, 0.0), **them, most=1e-9)
    return found


def _rise(robot: rk.Robot, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Largest energy above the start, over what moves, of each row (B,)."""
    kinetic, potential = s.rollout_energies(robot, q, v)
    total = kinetic + potential
    moves = kinetic[0] + np.ptp(potential, axis=0)
    return np.nanmax((total - total[0]) / moves, axis=0)


def _scene(rng: np.random.Generator, kind: int, draw: int) -> tuple[rk.Robot, dict[str, Any]]:
    """A robot or a world, with the options of a run."""
    friction, restitution = rng.uniform(0.0, 1.2), float(rng.choice((0.0, 0.0, 0.5, 1.0)))
    if kind == LEANING:
        robot = w.World([w.Body(Box(tuple(size)), 0.1) for size in SLABS]).robot()
    elif kind < 8:
        robot = _mixed(np.random.default_rng(kind), 1 + kind % 4).robot()
    else:
        robot = s.load("humanoid" if kind == 8 else s.G1)
    pairs: Any = rk.collision_pairs(robot).with_law(friction=friction, restitution=restitution)
    pairs = pairs if kind % 4 or kind >= 4 else False
    return robot, {"ground": s.ground(friction=friction, restitution=restitution), "self_collision": pairs}


def _starts(rng: np.random.Generator, robot: rk.Robot, rows: int, kind: int) -> tuple[np.ndarray, np.ndarray]:
    if kind >= 8:
        q, v = s.random_starts(robot, rows, 3.0, 0.02, 0.5)
        q[:, 7:] = robot.neutral()[7:]  # other poses may begin with bodies in each other, a hidden energy
        q[:, 6] = [rk.standing_height(robot, x, clearance=rng.uniform(0.02, 0.5)) for x in q]
        return q, v
    if kind == LEANING:
        return _leaning(rng, rows)
    count = 1 + kind % 4
    q, v = np.empty((rows, count, 7)), rng.uniform(-3.0, 3.0, (rows, count, 6))
    turn = rng.standard_normal((rows, count, 4))
    q[..., :4] = turn / np.linalg.norm(turn, axis=-1)[..., None]
    q[..., 4:6] = rng.uniform(-0.03, 0.03, (rows, count, 2))
    q[..., 6] = 0.4 + 0.45 * np.arange(count)
    return q.reshape(rows, -1), v.reshape(rows, -1)


@case("balance", "Laws of a step", "Forces that are possible, and the balance of momentum of every step")
def balance(look: Look) -> Found:
    """Humanoid and G1 fall from 2 cm for 2 s, and a heap of four boxes, self-collision on, friction 0.5,
    every step recorded, at 0.5, 1 and 4 ms. Measured: the largest pull and the largest force outside the cone
    of all contacts, with the ground and between bodies, in weights, and how far m Δv is from the impulses of
    gravity and of the contacts, of the weight's: for each robot as a whole and for each box.
    """
    found = Found()
    for label, name in (("humanoid", "humanoid"), ("G1", s.G1), ("boxes", None))[: look.some(3, 1)]:
        if name is None:
            turn = 0.9, 0.3, 0.1, 0.2
            world = w.World([w.Body(Box((0.1,) * 3), 1.0, (0.03 * k, 0.0, 0.15 + 0.2 * k), turn)
                             for k in range(4)], friction=MU)  # fmt: skip
            robot, (q0, _), options = world.robot(), world.start(), {}
            options = world.options(robot)
        else:
            robot = s.load(name)
            q0 = rk.standing_configuration(robot, height=0.02, tilt=math.radians(4.0), seed=0)
            options = {"ground": s.ground(friction=MU), "self_collision": True}
        for dt in (0.5e-3, 1e-3, 4e-3):
            t = s.fall(robot, q0, duration=2.0, dt=dt, record_every=1, **options)
            with s.quiet():
                still, moving = t.contacts, t.body_contacts
            weight, pull, over = robot.total_mass * s.G, 0.0, 0.0
            for points in (still, moving):
                normal = np.einsum("tki,tki->tk", points.forces, points.normals)
                aside = points.forces - normal[..., None] * points.normals
                pull = max(pull, float(-normal.min(initial=0.0)))
                cone = np.linalg.norm(aside, axis=-1) - MU * np.maximum(normal, 0.0)
                over = max(over, float(cone.max(initial=0.0)))
            if name is None:
                missed = _missed_of_boxes(t, dt, still, moving)
            else:
                given = still.forces.sum(axis=1)[1:] - np.array([0.0, 0.0, weight])
                missed = np.abs(np.diff(t.momentum[:, 3:], axis=0) / dt - given).max()
            theirs = {}
            if look.peer and name is not None:
                for key, stiff in (("mujoco", False), ("stiff", True)):
                    theirs[key] = _balance_there(robot, q0, dt, stiff)
            for k, (what, x) in enumerate((
                ("largest pull", pull),
                ("largest force outside the cone", over),
                ("balance of momentum of a step", missed),
            )):  # fmt: skip
                them = {key: found_there[k] / weight for key, found_there in theirs.items()}
                found.add(f"{label}, {1e3 * dt:g} ms: {what}", "weights", x / weight, **them, most=1e-9)
    return found


def _balance_there(robot: rk.Robot, q: np.ndarray, dt: float, stiff: bool) -> np.ndarray:
    """Largest pull, force outside the cone and missing force of a step of MuJoCo's fall of 2 s [N]."""
    peer = Peer(s.same_joints(robot), dt, stiff, MU, pairs=rk.collision_pairs(robot))
    peer.start(q)
    weight, worst = np.array([0.0, 0.0, robot.total_mass * s.G]), np.zeros(3)
    before = np.zeros(3)
    for _ in range(round(2.0 / dt)):
        peer.step()
        own, world = peer.contact_forces()
        over = np.linalg.norm(own[:, 1:], axis=1) - MU * np.maximum(own[:, 0], 0.0)
        after = rk.centroidal_momentum(robot, peer.q, peer.v)[3:]
        missing = np.abs((after - before) / dt - world.sum(axis=0) + weight).max()
        before = after
        worst = np.maximum(worst, [0.0 - own[:, 0].min(initial=0.0), over.max(initial=0.0), missing])
    return worst


def _missed_of_boxes(t: rk.Trajectory, dt: float, still: Any, moving: Any) -> float:
    """Largest force that is missing in the balance of a loose body of 1 kg around its middle [N]."""
    worst = 0.0
    for link in t.robot.links:
        if not link.body:
            continue
        R, _ = rk.forward_kinematics(t.robot, t.q)[link.name]
        rows = t.robot.joints[link.body - 1].v_slice
        momentum = np.einsum("tij,tj->ti", R, t.v[:, rows][:, 3:])
        force = np.tile([0.0, 0.0, -s.G], (len(t), 1))
        for points, ends, sign in ((still, still.links, 1.0), (moving, moving.links, 1.0),
                                   (moving, moving.against, -1.0)):  # fmt: skip
            force += sign * points.forces[:, [end == link.name for end in ends]].sum(axis=1)
        worst = max(worst, float(np.abs(np.diff(momentum, axis=0) / dt - force[1:]).max()))
    return worst


RESIDUAL_NOTES = (
    "A point that touches and is hit counts in (1) only if the gap also opens with the velocity after the "
    "impact. Points of a body that touched in the previous step are evaluated half a step later, where the "
    "solver holds them: with the acceleration of the point, or of its sphere's middle, while those of joints "
    "are 0.",
    "Velocities are those after the forces, at the pose where they acted: by the end of the step the box has "
    "turned by half a step more, which changes a speed of 5 m/s by 1e-4, in an impact of 500 weights.",
)


@case("residuals", "Laws of a step", "ContactBench's residuals: Signorini, Coulomb, greatest dissipation")
def residuals(look: Look) -> Found:
    """A box of 10 cm is tossed and slides, twenty times, friction 0.5, 1 ms; humanoid and G1 fall from 2 cm,
    leaning by 4 degrees, eight times for 2 s. Measured for each point on the ground and each step, the
    largest of: (1) the normal force times the gap at the next kick, a step later, if that is open; (2) the
    force outside the cone; (3) the length of µ N u + t s, with the tangential force t, the velocity u of the
    point and its speed s. The last is zero if friction is as large as possible and opposed to u; points count
    if they slide by more than 1 mm/s. Forces are in weights. Source: Q. Le Lidec et al., "Contact models in
    robotics: a comparative analysis" (2024).
    """
    found, rng = Found(notes=list(RESIDUAL_NOTES)), np.random.default_rng(2)
    robot, ground = s.box((0.1, 0.1, 0.1), 1.0), s.ground(friction=MU)
    tosses = []
    for _ in range(look.some(20, 3)):
        turn = rng.standard_normal(4)
        v0 = np.concatenate([rng.uniform(-5, 5, 3), rng.uniform(-1, 1, 3)])
        tosses.append((s.at_height(robot, 0.12, turn), v0))
    runs = {"box": (robot, tosses, 0.6)}
    for label, name in (("humanoid", "humanoid"), ("G1", s.G1))[: look.some(2, 0)]:
        robot = s.load(name)
        starts = [(rk.standing_configuration(robot, height=0.02, tilt=math.radians(4.0), seed=k), None)
                  for k in range(8)]  # fmt: skip
        runs[label] = robot, starts, 2.0
    for label, (robot, starts, end) in runs.items():
        worst = np.zeros(3)
        for q0, v0 in starts:
            t = s.fall(robot, q0, v0, duration=end, dt=1e-3, ground=ground, record_every=1)
            worst = np.maximum(worst, _residuals(t))
        for what, unit, x, most in zip(
            ("a force where the gap is open (× gap)", "force outside the cone", "greatest dissipation"),
            ("weights m", "weights", "weights m/s"), worst, (1e-9, 1e-9, 1e-2), strict=True,
        ):  # fmt: skip
            found.add(f"{label}: {what}", unit, x, most=most)
    return found


def _residuals(t: rk.Trajectory) -> np.ndarray:
    """The largest three of all points on the ground (3,), steps of 1 ms, each recorded."""
    q, y, before, mean = (t.notes.arrays[name] for name in ("kick", "after", "before", "mean"))
    way = 2.0 * mean - before  # from this kick to the next
    with s.quiet():
        contacts = t.contacts
    force, points = contacts.forces[1:] / (t.robot.total_mass * s.G), contacts.points[1:]
    poses, u, u_way = rk.forward_kinematics(t.robot, q), np.empty_like(points), np.empty_like(points)
    normal, aside = force[..., 2], force[..., :2]
    links, turning = np.array(contacts.links), before.copy()
    turning[:, 3:6] = 0.0  # whatever its velocity is, the base goes straight on
    for k, link in enumerate(contacts.links):
        rests = np.append(False, (normal[:-1, links == link] > 0.0).any(axis=1))
        arm = points[:, k] - poses[link][1]
        R = poses[link][0]
        middle = _turning_about(t.robot, link, np.einsum("tji,tj->ti", R, arm))
        a = rk.link_acceleration(t.robot, q, turning, 0.0 * turning, link, at=middle, classical=True)
        later = a[:, 3:] + np.cross(a[:, :3], arm - np.einsum("tij,tj->ti", R, middle))
        for at, velocity in ((u, y), (u_way, way)):
            V = rk.link_velocity(t.robot, q, velocity, link)
            at[:, k] = V[:, 3:] + np.cross(V[:, :3], arm) + 0.5e-3 * later * rests[:, None]
    outside = np.linalg.norm(aside, axis=-1) - MU * np.maximum(normal, 0.0)
    gap = points[..., 2] + 1e-3 * u_way[..., 2]
    gap = np.where(points[..., 2] > 0.0, gap, np.minimum(gap, 1e-3 * u[..., 2]))
    slides = np.linalg.norm(u[..., :2], axis=-1)
    x = MU * normal[..., None] * u[..., :2] + slides[..., None] * aside
    lost = np.linalg.norm(x, axis=-1) * (slides > 1e-3)
    acts = normal > 1e-6
    return np.array(
        [(np.maximum(gap, 0.0) * normal * acts).max(), max(outside.max(), 0.0), (lost * acts).max()]
    )


def _turning_about(robot: rk.Robot, link: str, places: np.ndarray) -> np.ndarray:
    """Middles of the link's spheres that touch at places (T, 3) of its axes; elsewhere the places."""
    found = places.copy()
    for shape in robot.link(link).collisions:
        if isinstance(shape.geometry, Sphere):
            middle = shape.placement.position
            on_it = np.abs(np.linalg.norm(places - middle, axis=1) - shape.geometry.radius) < 1e-3
            found[on_it] = middle
    return found


def _stirs(robot: rk.Robot, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Shares of rows that move late, and after they came to rest, and the speed of nine in ten at the end.

    Args:
        robot: on a floating base.
        q, v: (T, B, nq) and (T, B, nv), a tenth of a second apart.
    """
    late, after = 0, 0
    for k in range(q.shape[1]):
        speed = np.abs(v[:, k]).max(axis=1)
        places = rk.forward_kinematics(robot, np.ascontiguousarray(q[:, k])).position
        late += bool(np.linalg.norm(places[100:] - places[100], axis=-1).max() > 1e-4)
        calm = np.convolve(speed < 1e-6, np.ones(6), "valid") > 5.5
        if calm.any():
            first = int(np.argmax(calm)) + 5
            after += bool(np.linalg.norm(places[first:] - places[first], axis=-1).max() > 1e-4)
    return np.array([late, after, 0.0]) / q.shape[1] + [0, 0, np.percentile(np.abs(v[-1]).max(axis=1), 90)]


@case("still", "Laws of a step", "320 fallen humanoids and 120 fallen G1")
def still(look: Look) -> Found:
    """Robots fall from 2 cm, leaning 4 degrees, self-collision on, 1 ms, 30 s. Measured: those whose bodies
    move by more than 0.1 mm after 10 s, and those that move so after they had come to rest: no speed above
    1e-6 for half a second. MuJoCo gets the first eight of each.
    """
    found, end = Found(), look.some(30, 12)
    for label, name, rows in (("humanoid", "humanoid", 320), ("G1", s.G1, 120))[: look.some(2, 1)]:
        rows, robot = look.some(rows, 8), s.load(name)
        q0 = np.array([rk.standing_configuration(robot, height=0.02, tilt=math.radians(4.0), seed=k)
                       for k in range(rows)])  # fmt: skip
        options = {"ground": s.ground(), "self_collision": True, "record_every": 100}
        r = s.many(robot, q0, None, steps=1000 * end, dt=1e-3, **options)
        mine = _stirs(robot, r.q, r.v)
        theirs: dict[str, np.ndarray] = {}
        for key, stiff in (("mujoco", False), ("stiff", True)) if look.peer else ():
            peer = Peer(s.same_joints(robot), 1e-3, stiff, pairs=rk.collision_pairs(robot))
            states = []
            for x in q0[:8]:
                peer.start(x)
                states.append(peer.states(1000 * end, 100))
            theirs[key] = _stirs(robot, *(np.stack(x, axis=1) for x in zip(*states, strict=True)))
        for k, (what, unit, most) in enumerate((
            ("share that moves by 0.1 mm after 10 s", "", None),
            ("share that moves after it came to rest", "", 0.0),
            ("speed of nine in ten at the end", "rad/s, m/s", None),
        )):  # fmt: skip
            them = {key: x[k] for key, x in theirs.items()}
            found.add(f"{label}, {rows}: {what}", unit, mine[k], **them, most=most)
        found.add(f"{label}: rows that failed", "", len(r.failed), most=0.0)
    return found
