"""Numbers of the forces of a robot and its ground, as the step's arrays take them (FORCES of fields.py).

A contact point alone carries the robot's weight M g at the depth ``sink``, k = M g / sink, and its damper
stops what falls on it, d = k time. How little the ground may give way follows from the sizes of what can
touch: see :func:`sizes`. Joints' numbers are those of their law: damping, dry friction and stops.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from robokit.collision.fields import PLANE
from robokit.collision.scene import neutral_poses
from robokit.collision.support import SUPPORTS
from robokit.model.constraints import LoopModel, loop_models
from robokit.model.joints import plane_axes
from robokit.model.robot import Robot
from robokit.spatial import RigidInertia, Transform, Vector3
from robokit.spatial.scalars import added

Arrays = dict[str, np.ndarray]

FIRM = 0.1
"""Softness of the ground under a loose body over that under a robot of its size: what slides begins to at
most 2 ms too early when it is pushed by a tenth more than friction holds."""

LARGE = 0.2  # radius from which size no longer counts [m]

QUICK = 0.2
"""Speed of an impact that doubles the damping, over sink / time: an impact then bends the spring by a twelfth
of what the weight does, pi / 8 of this; what that gives back is 4e-3 of a speed of 0.1 m/s, where nothing
falls."""

STEADY = 3e-3  # depth over thickness^2 / length: on its narrow end a body tips at 0.97 or more of its limit
ROUND = 4.0  # depth of a body with corners, one of which carries all in the end, over that of a round one
THINNEST = 1.0 / 16.0  # least (thickness / length)^2 that this asks for
LEAST = 1e-12  # effective mass [kg] or inertia [kg m^2] that stands for none


# ---- bodies ----------------------------------------------------------------------------------------------


class Mobilities(NamedTuple):
    """Mobilities of bodies and dofs in the neutral configuration: velocity per impulse; (B, ...)
    for samples.
    """

    # trace(J H^-1 J^T) / 3 of each body's centre of mass, or half of what its points have on average by
    # turning about it, if that is more, as of a drum on its axle; 0 of the world [1/kg]
    move: np.ndarray
    # the diagonal of H^-1, of the tree's dofs, those that others move included [1/(kg m^2) | 1/kg]
    dof: np.ndarray


def mobilities(robot: Robot) -> Mobilities:
    """Mobilities of a robot, computed once."""
    found: Mobilities = robot.derived.get("mobilities of bodies", lambda: _mobilities(robot))
    return found


def _mobilities(robot: Robot) -> Mobilities:
    tree = robot.tree
    X = tree.transforms(robot.split_q(robot.neutral().tolist()))
    samples = () if robot.samples is None else np.shape(robot.tree.I[1].m)
    move, dof = np.zeros((tree.n + 1, *samples)), np.zeros((*samples, tree.nv))
    known: dict[Any, tuple[np.ndarray, np.ndarray]] = {}
    for bodies, dofs in _parts(robot):
        J, M = _columns(robot, X, bodies, dofs), np.stack([_inertia(tree.I[i]) for i in bodies], axis=-3)
        rotors = [r for i in bodies for r in tree.armature[i]] if tree.armature else []
        # Many worlds have many bodies that are alike.
        alone = tree.coupling is None and len(bodies) == 1
        own = 0 if alone else bodies[0], J.tobytes(), M.tobytes(), np.array(rotors).tobytes()
        if own not in known:
            known[own] = _of_part(robot, X, bodies, dofs, J, M, rotors)
        move[bodies], dof[..., dofs] = known[own]
    return Mobilities(np.moveaxis(move, 0, -1), dof)


def _of_part(
    robot: Robot, X: Any, bodies: list[int], dofs: list[int], J: np.ndarray, M: np.ndarray, rotors: list[Any]
) -> tuple[np.ndarray, np.ndarray]:
    """Mobilities of a part of the robot: of its bodies, (n, ...), and of its dofs, (..., dofs).

    ``J``, ``M``: columns and inertias of the bodies; ``rotors``: armature of the dofs, or None.
    """
    H, coupling = _mass_matrix(robot, X, bodies, J, M), robot.tree.coupling
    if rotors:
        H[..., range(len(dofs)), range(len(dofs))] += rotors
    if coupling is None:
        W = _inverse(H)
    else:
        G = coupling.G[dofs]
        G = G[:, (G != 0.0).any(axis=0)]  # coordinates that move one of these dofs
        W = _product(_product(G, _inverse(_product(_product(G.T, H), G))), G.T)
    mass = M[..., 5, 5]
    arm = np.stack([M[..., 2, 4], M[..., 0, 5], M[..., 1, 3]], axis=-1)
    arm = arm / np.where(mass > 0.0, mass, 1.0)[..., None]
    middle = J[:, 3:] - np.cross(arm[..., None, :], np.swapaxes(J[:, :3], -1, -2)).swapaxes(-1, -2)
    moved = _moved(np.concatenate([np.broadcast_to(J[:, :3], middle.shape), middle], axis=-2), W)
    turned = added(moved[..., :3, None, k] * J[..., None, :3, k] for k in range(len(dofs)))
    squares = added(moved[..., 3:, k] * middle[..., k] for k in range(len(dofs)))
    turning = _turning(turned, M, arm)
    own = (squares[..., 0] + squares[..., 1] + squares[..., 2]) / 3.0
    return np.moveaxis(np.maximum(own, 0.5 * turning), -1, 0), np.diagonal(W, axis1=-2, axis2=-1)


def _moved(J: np.ndarray, W: np.ndarray) -> np.ndarray:
    """J H^-1 of bodies, (..., n, 6, dofs), each sum in one order; a dof moves few of the bodies."""
    total = np.zeros((*np.broadcast_shapes(J.shape[:-3], W.shape[:-2]), *J.shape[-3:]))
    for k in range(J.shape[-1]):
        moves = np.flatnonzero(J[..., k].any(axis=-1).reshape(-1, J.shape[-3]).any(axis=0))
        some = slice(moves[0], moves[-1] + 1)
        total[..., some, :, :] += J[..., some, :, k, None] * W[..., None, None, k, :]
    return total


def _turning(turned: np.ndarray, M: np.ndarray, arm: np.ndarray) -> np.ndarray:
    """trace(J H^-1 J^T I) / 3 m, (..., n): mobility of points averaged over each body's mass, minus that of
    its centre.

    ``turned``: J H^-1 J^T of angular velocities, (..., n, 3, 3); ``M``: inertias, ``arm``: centres of mass,
    all in the bodies' axes.
    """
    mass = M[..., 5, 5]
    square = added(arm[..., k] * arm[..., k] for k in range(3))[..., None, None] * np.eye(3)
    about = M[..., :3, :3] - mass[..., None, None] * (square - arm[..., :, None] * arm[..., None, :])
    total = added((turned * about)[..., a, b] for a in range(3) for b in range(3))
    return np.where(mass > 0.0, total / np.where(mass > 0.0, 3.0 * mass, 1.0), 0.0)


def _parts(robot: Robot) -> list[tuple[list[int], list[int]]]:
    """Bodies that move each other, without the world, and their dofs; H has no entry between two parts."""
    tree = robot.tree
    root, dofs_of = [0] * (tree.n + 1), [0] * tree.nv
    for i in tree.outward():
        root[i] = root[tree.parent[i]] or i
        for j in range(tree.nv)[tree.v_slice[i]]:
            dofs_of[j] = i
    if tree.coupling is not None:
        first: dict[int, int] = {}
        for j, (leader, _) in enumerate(tree.coupling.v_from):
            if leader >= 0:
                one, other = root[first.setdefault(leader, dofs_of[j])], root[dofs_of[j]]
                root = [one if r == other else r for r in root]
    parts: dict[int, tuple[list[int], list[int]]] = {}
    for i in tree.outward():
        bodies, dofs = parts.setdefault(root[i], ([], []))
        bodies.append(i)
        dofs.extend(range(tree.nv)[tree.v_slice[i]])
    return list(parts.values())


def _product(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """A B of matrices, each sum in one order: libraries choose it by processor and size."""
    total: np.ndarray = A[..., :, 0, None] * B[..., 0, None, :]
    for k in range(1, A.shape[-1]):
        total = total + A[..., :, k, None] * B[..., k, None, :]
    return total


def _mass_matrix(robot: Robot, X: Any, bodies: list[int], J: np.ndarray, M: np.ndarray) -> np.ndarray:
    """H of a part by composite inertias, (..., dofs, dofs); M: inertias of the bodies, in their axes."""
    tree, place, total = robot.tree, {i: k for k, i in enumerate(bodies)}, np.array(M)
    H = np.zeros((*M.shape[:-3], J.shape[-1], J.shape[-1]))
    end = J.shape[-1]
    for k in reversed(range(len(bodies))):
        i = bodies[k]
        first = end - len(range(tree.nv)[tree.v_slice[i]])
        for j in range(first, end):
            row = _product(_product(J[k][:, [j]].T, total[..., k, :, :]), J[k])[..., 0, :end]
            H[..., j, :end] = H[..., :end, j] = row
        above, end = place.get(tree.parent[i]), first
        if above is not None:
            T = _matrix(X[i])
            total[..., above, :, :] += _product(_product(T.T, total[..., k, :, :]), T)
    return H


def _inverse(H: np.ndarray) -> np.ndarray:
    """H^-1 by Gauss-Jordan elimination, (..., n, n); 0 for a dof with which nothing moves."""
    W, least = np.array(H), LEAST * np.diagonal(H, axis1=-2, axis2=-1)
    for k in range(H.shape[-1]):
        pivot = W[..., k, k]
        moves = pivot > least[..., k]
        one = np.where(moves, 1.0 / np.where(moves, pivot, 1.0), 0.0)
        row, column = W[..., k, :] * one[..., None], np.array(W[..., :, k])
        W -= column[..., :, None] * row[..., None, :]
        W[..., k, :], W[..., :, k], W[..., k, k] = row, -column * one[..., None], one
    return W


def _columns(robot: Robot, X: Any, bodies: list[int], dofs: list[int]) -> np.ndarray:
    """J of each body of a part, in its axes, (n, 6, dofs)."""
    tree, place = robot.tree, {i: k for k, i in enumerate(bodies)}
    column = {j: k for k, j in enumerate(dofs)}
    J = np.zeros((len(bodies), 6, len(dofs)))
    for k, i in enumerate(bodies):
        above = place.get(tree.parent[i])
        if above is not None:
            J[k] = _product(_matrix(X[i]), J[above])
        for m, S in enumerate(tree.joint[i].S.columns):  # type: ignore[union-attr]
            J[k, :, column[tree.v_slice[i].start + m]] += np.array(list(S), dtype=float)
    return J


def _inertia(I: Any) -> np.ndarray:
    """An inertia as a matrix on motions, angular first, (..., 6, 6)."""
    (x, y, z), o, J = I.h, 0.0, I.Ibar
    rows = [
        [J.xx, J.xy, J.xz, o, -z, y],
        [J.xy, J.yy, J.yz, z, o, -x],
        [J.xz, J.yz, J.zz, -y, x, o],
        [o, z, -y, I.m, o, o],
        [-z, o, x, o, I.m, o],
        [y, -x, o, o, o, I.m],
    ]
    return _stacked(rows)


def _stacked(rows: Sequence[Sequence[Any]]) -> np.ndarray:
    """Rows of numbers, or of (B,) arrays where samples differ, as (..., rows, columns)."""
    every = np.broadcast_arrays(*(np.asarray(x, dtype=float) for row in rows for x in row))
    found: np.ndarray = np.stack(every, axis=-1).reshape(*every[0].shape, len(rows), -1)
    return found


def _matrix(X: Any) -> np.ndarray:
    """A transform as a matrix on motions."""
    E, (x, y, z) = np.array(X.E.rows, dtype=float), (float(a) for a in X.r)
    across = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.block([[E, np.zeros((3, 3))], [-_product(E, across), E]])


def loose_bodies(robot: Robot) -> np.ndarray:
    """1 for each body that floats and carries nothing, (n_bodies,)."""
    tree = robot.tree
    found = np.zeros(tree.n + 1, dtype=np.int32)
    for i in tree.children[0]:
        joint = tree.joint[i]
        found[i] = joint is not None and joint.kind.name == "floating" and not tree.children[i]
    return found


# ---- sizes -----------------------------------------------------------------------------------------------


class Sizes(NamedTuple):
    """Sizes from which the default softness of the ground follows; (B,) if masses differ in samples."""

    # radius of what can touch; where it is loose a FIRM part of it over the share of the weight that is so,
    # where it counts up to LARGE [m]
    size: Any
    steady: Any  # depth at which a point may carry the robot's weight for its loose bodies to stand [m]


def sizes(robot: Robot, shapes: Mapping[str, np.ndarray]) -> Sizes:
    """Sizes of a robot's shapes; infinite if nothing can touch, or only a point.

    On a compliant ground, a loose body leans to the side to which it would tip, swings that way when it is
    put down, and so tips too early. The depth follows from a box around it, with proportions of at most
    THINNEST. Of several loose bodies, the one that allows least decides, and each may have to carry all: a
    tower of twenty boxes sways for half a minute if each yields as it may alone. ``shapes``: arrays of
    SHAPES, including those of the world.
    """
    R, p = neutral_poses(robot)
    body = shapes["shape_body"]
    moving = np.flatnonzero(body).tolist()
    boxes = [_box(shapes, k, R[body[k]], p[body[k]]) for k in moving]
    half = 0.5 * _edges(boxes).max() if boxes else 0.0
    firm, steady, loose = math.inf, math.inf, np.flatnonzero(loose_bodies(robot)).tolist()
    for i in loose:
        own = range(*np.searchsorted(body, [i, i + 1]))
        edges = _edges([_box(shapes, k, np.eye(3), np.zeros(3)) for k in own]) if own else np.zeros(3)
        if not edges.any():
            continue  # a point says nothing of its size
        thin, long = edges.min(), max(edges.max(), LEAST)
        depth = STEADY * max(thin**2 / long, THINNEST * long)
        turns = any(int(shapes["shape_kind"][k]) in SUPPORTS for k in own)
        steady = min(steady, depth / ROUND if turns else depth)
        firm = min(firm, FIRM * min(0.5 * edges.max(), LARGE))
    share = added(robot.tree.I[i].m for i in loose) / robot.total_mass if loose else 1.0
    return Sizes(np.minimum(half or math.inf, firm / share), steady / share)


def _edges(boxes: Sequence[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """Of a box around boxes (low, high), (3,) [m]."""
    edges: np.ndarray = np.max([high for _, high in boxes], axis=0) - np.min(
        [low for low, _ in boxes], axis=0
    )
    return edges


def _box(
    shapes: Mapping[str, np.ndarray], k: int, R: np.ndarray, p: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper corner of a box around shape k of a body with the pose R, p [m]."""
    place = shapes["shape_placement"][k]
    A, kind = R @ place[:9].reshape(3, 3), int(shapes["shape_kind"][k])
    centre, radius = p + R @ place[9:], shapes["shape_radius"][k]
    if kind == PLANE:
        low, high = np.full(3, -math.inf), np.full(3, math.inf)
    elif kind in SUPPORTS:
        size, axes = Vector3(*shapes["shape_size"][k]), [Vector3(*row) for row in A]
        high = np.array([SUPPORTS[kind](size, d).dot(d) for d in axes])
        low = np.array([SUPPORTS[kind](size, -d).dot(d) for d in axes])
    else:
        first, count = shapes["shape_corners"][k]
        corners = shapes["corners"][first : first + count] @ A.T
        low, high = corners.min(axis=0), corners.max(axis=0)
    return centre + low - radius, centre + high + radius


# ---- contacts --------------------------------------------------------------------------------------------


class Surface(NamedTuple):
    """How bodies touch the ground."""

    # which shapes are the ground's; a link that is fixed to the world is none, (n_shapes,)
    ground: np.ndarray
    # Coulomb coefficient of each body, (n_bodies,), or (n, n_bodies) for rows of a batch
    friction: np.ndarray
    restitution: np.ndarray  # share of its speed with which each body leaves, likewise
    own: np.ndarray  # friction of each of the ground's shapes that has its own, else NaN, (n_shapes,)
    # torsion, rolling: arms of the friction against turning and rolling [m]
    torsion: float = 0.0
    rolling: float = 0.0


def contact_numbers(
    body: np.ndarray, gains: tuple[Any, Any, Any], surface: Surface, between: tuple[float, float]
) -> Arrays:
    """Numbers of contacts, (...), or (n, ...) for rows of a batch.

    Args:
        body: of each shape.
        gains: k [N/m] and d [N s/m] of a contact, and the weight that sinks by ``sink`` [N], numbers or
            (n,) for rows of a batch.
        surface: of the ground.
        between: friction and restitution of two links.
    """
    own = np.where(np.isnan(surface.own), -1.0, surface.own)
    k, d, load = (np.asarray(x, float)[..., None] for x in gains)
    safe = np.where(load > 0.0, load, 1.0)
    numbers: dict[str, Any] = {
        "pair_stiffness": k,
        "pair_damping": d,
        "pair_impact": np.where(load > 0.0, d * (d / (QUICK * safe)) ** 2, 0.0),
        "shape_friction": np.where(surface.ground, own, surface.friction[..., body]),
        "shape_restitution": np.where(surface.ground, 0.0, surface.restitution[..., body]),
        "ground_arms": np.array([surface.torsion, surface.rolling], float),
        "between": np.array(between, float),
        "ground_shapes": np.array([np.count_nonzero(surface.ground)], np.int32),
    }
    leading = np.broadcast_shapes(*(x.shape[:-1] for x in numbers.values()))
    return {name: np.broadcast_to(x, (*leading, x.shape[-1])) for name, x in numbers.items()}


def body_numbers(robot: Robot) -> Arrays:
    """Numbers of each body."""
    found = mobilities(robot)
    return {"body_mobility": found.move, "dof_mobility": found.dof}


# ---- joints ----------------------------------------------------------------------------------------------


def joint_numbers(robot: Robot, law: Any) -> Arrays:
    """Damping, dry friction and stops of the joints.

    ``law``: by joint 0..N: damping and friction of each dof (an object with ``most`` [N m | N], or None), and
    its stop (``lower``, ``upper``, ``k``, ``d``, or None), as robokit.sim.joint_forces has them.
    """
    tree = robot.tree
    damping, friction = np.zeros(tree.nv), np.zeros(tree.nv)
    stops: list[tuple[int, float, float, float, float, float]] = []
    for i in tree.outward():
        first = tree.v_slice[i].start
        for k, b in enumerate(law.damping[i]):
            damping[first + k] = b
        for k, f in enumerate(law.friction[i]):
            friction[first + k] = 0.0 if f is None else f.most
        stop = law.stop[i]
        if stop is not None:
            between = stop.upper - stop.lower
            for side, bound in ((1.0, stop.lower), (-1.0, stop.upper)):
                if math.isfinite(bound):
                    stops.append((first, side, bound, between, stop.k, stop.d))
    table = np.array(stops, dtype=float).reshape(-1, 6)
    return {
        "damping": damping,
        "dry_friction": friction,
        "stop_dof": table[:, 0].astype(np.int32),
        "stop_side": table[:, 1].copy(),
        "stop_bound": table[:, 2].copy(),
        "stop_range": table[:, 3].copy(),
        "stop_gains": table[:, 4:].copy(),
    }


def motor_numbers(
    robot: Robot, bodies: Sequence[int], gains: Any = 0.0, limits: Any = math.inf, inertia: Any = None
) -> Arrays:
    """Motors of joints with one dof, without targets yet.

    ``bodies``: of the driven joints, (n,); ``gains``: kp and kd, (n, 2) or an array-like of that shape;
    ``limits``: largest effort and speed, likewise; ``inertia``: that each motor moves, (n,); None takes that
    of the neutral configuration.
    """
    tree, n = robot.tree, len(bodies)
    dofs = np.array([tree.v_slice[i].start for i in bodies], dtype=np.int32)
    if inertia is None:
        inertia = 1.0 / np.maximum(mobilities(robot).dof[dofs], LEAST)
    return {
        "motor_dof": dofs,
        "motor_gains": np.array(np.broadcast_to(gains, (n, 2)), dtype=float),
        "motor_limits": np.array(np.broadcast_to(limits, (n, 2)), dtype=float),
        "motor_inertia": np.array(np.broadcast_to(inertia, n), dtype=float),
        "motor_command": np.zeros((n, 2)),
    }


TURNS = {"fixed": 3, "prismatic": 3, "spherical": 0, "universal": 1, "distance": 0}
"""Rotations that a loop joint holds; 2 of others, the tilts of its axis."""

HOLDS = {
    "prismatic": (1.0, 1.0, 0.0),
    "cylindrical": (1.0, 1.0, 0.0),
    "planar": (0.0, 0.0, 1.0),
    "distance": (1.0, 0.0, 0.0),
}
"""Positions along t1, t2 and the axis that a loop joint holds; all of others. A rod holds one."""


def loop_numbers(robot: Robot) -> Arrays:
    """Loop joints, in the order of :func:`robokit.model.constraints.loop_models`."""
    models = loop_models(robot)
    n = len(models)
    bodies = np.array([(m.p, m.s) for m in models], dtype=np.int32).reshape(n, 2)
    frames = [[_placement(m.Xp), _placement(m.Xs)] for m in models]
    return {
        "loop_bodies": bodies,
        "loop_placement": np.array(frames, dtype=float).reshape(n, 2, 12),
        "loop_axes": np.array([_axes(m) for m in models], dtype=float).reshape(n, 9),
        "loop_pitch": np.array(
            [float(m.joint.pitch) if m.joint.kind.name == "helical" else 0.0 for m in models], dtype=float
        ),
        "loop_length": np.array([m.length for m in models], dtype=float),
        "loop_turns": np.array([TURNS.get(m.joint.kind.name, 2) for m in models], dtype=np.int32),
        "loop_holds": np.array(
            [HOLDS.get(m.joint.kind.name, (1.0, 1.0, 1.0)) for m in models], dtype=float
        ).reshape(n, 3),
        "loop_mobility": _loop_mobility(robot, models) if n else np.zeros((0, 2)),
    }


def _loop_mobility(robot: Robot, models: Sequence[LoopModel]) -> np.ndarray:
    """Mobilities of each loop, (n, 2): 3 / trace(I) about its middle, and 1 / M.

    I and M are those of all bodies that loops and joints connect to it, as one rigid body.
    """
    tree = robot.tree
    X = tree.transforms(robot.split_q(robot.neutral().tolist()))
    moved, first = [Transform.identity()], [0]  # of each body the first one of its part; the world's is 0
    for i in tree.outward():
        moved.append(X[i] @ moved[tree.parent[i]])  # type: ignore[operator]
        first.append(first[tree.parent[i]] or i)
    for model in models:
        one, other = first[model.p], first[model.s]
        if one and other:
            first = [one if part == other else part for part in first]
    total = {part: RigidInertia.zero() for part in first}
    for i in tree.outward():
        total[first[i]] = total[first[i]] + tree.I[i].congruence(moved[i])

    def mobility(whole: RigidInertia) -> list[Any]:
        m = np.maximum(whole.m, LEAST)
        turn = whole.Ibar.xx + whole.Ibar.yy + whole.Ibar.zz - 2.0 * whole.h.dot(whole.h) / m
        return [3.0 / np.maximum(turn, LEAST), 1.0 / m]

    return _stacked([mobility(total[first[model.s] or first[model.p]]) for model in models])


def _placement(X: Any) -> list[float]:
    """Rotation by rows and origin of a frame in its body: x_body = R x_frame + r."""
    R = np.array(X.E.rows, dtype=float).T
    return [*R.ravel().tolist(), *(float(a) for a in X.r)]


def _axes(model: LoopModel) -> list[float]:
    a = model.joint.axis if model.joint.kind.has_axis else type(model.joint.axis)(0.0, 0.0, 1.0)
    if model.joint.kind.name == "universal":  # t1 is the axis on the successor
        return [float(s) for t in (model.axis2, a.cross(model.axis2), a) for s in t]
    return [float(s) for t in (*plane_axes(a), a) for s in t]
