"""Impulses between bodies of a robot that touch, equal and opposite.

Before the sweeps, the contacts give what they gave in the last step too, along the normal and sideways, as
forces from outside. So what lies on another body weighs on the ground and the joints, and pulls at them, in
all sweeps. After them, an impulse f on one body and -f on the other changes the relative velocity u of their
points by W f, and what is missing follows the law of pair_contact.py:

    f = first - K (u - u0)        u = u0 + W f        W = J A^-1 J^T

A is H with damping and limits of the joints, and with the ground under bodies that are pressed on it. Dry
friction in joints and of the ground stays as the sweeps found it: as a damper of an iterate it would be too
stiff for what comes now, but for points of loose bodies that stick (ground_in_return.py); where that counts,
sweeps more let both answer (settle.py). Conjugate gradients in the space of the impulses take one solve of
the tree an iteration; the first finds the normal parts, from which friction follows, three more how far it
slows down what slides, six where several bodies are loose. However few are taken, their impulses gain no more
energy than springs give back. Impulses that pull or leave Coulomb's cone are cut, and of what is left, the
part acts that takes most energy, that of the springs included. What acts on one body acts on the other: the
momentum of the robot stays.

In a heap that rests nothing is missing: no solve is made, and nothing moves.

Source: conjugate gradients, Hestenes and Stiefel (1952); matrix-free, with the articulated-body sweep as W.
Cost: ITERATIONS + BRAKING + 2 solves of the tree, nothing where no pair is near; ITERATIONS + 2 and a
factorisation more where a loose body that stuck must slide. Where several bodies are loose, BRAKING_LOOSE
takes the place of BRAKING.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any

from robokit.model.tree import Tree
from robokit.sim.joints.loop_impulses import LoopKick
from robokit.sim.meeting.ground_in_return import GroundInReturn
from robokit.sim.meeting.nearest_pairs import Nearest, Pose, Vicinity, any_of, slots_of
from robokit.sim.meeting.pair_contact import TINY, Bond, PairContact, PairLaw
from robokit.sim.motion.carried import Carried
from robokit.sim.motion.implicit_sweep import ImplicitSweep
from robokit.sim.motion.moving_axes import flat
from robokit.sim.touching.acting import Acting
from robokit.spatial import Force, Matrix3, Motion, Vector3
from robokit.spatial.control_flow import cond
from robokit.spatial.scalars import Scalar, clamp, is_zero, likewise, maximum, shared, sqrt, where

ITERATIONS = 2

BRAKING = 3
"""Those that find how far friction slows down what slides: a box that is dragged leans, too."""

BRAKING_LOOSE = 6
"""The same where several loose bodies may lean on each other in a chain, as dominoes do."""

PRESSED = -0.1
"""A body whose push has this cosine with the ground's normal or less is pressed on the ground."""

PLACE = 10
"""Numbers of where a contact is."""

KNOWN = 8
"""Numbers of what is known of it before the sweeps."""

WIDTH = PLACE + KNOWN

Rows = list[Any]


@dataclass(frozen=True)
class Kicked:
    """The kick so far.

    Attributes:
        tree: the tree.
        X: transforms of the pose.
        V_before: velocities of the bodies before the kick.
        b: slopes of the joints' damping and limits, by joint.
        dt: step [s].
        ground: what acts on the bodies that can touch the ground.
        loops: the loop joints, or None.
    """

    tree: Tree
    X: Sequence[Any]
    V_before: Sequence[Motion]
    b: Rows
    dt: Scalar
    ground: Sequence[Acting] = ()
    loops: LoopKick | None = None


@dataclass
class Met:
    """What acts between bodies in a step.

    Attributes:
        impulse: on each body, {number: impulse in body coordinates [N m s; N s]}.
        overlap: deepest of all pairs [m].
    """

    impulse: dict[int, Force] = field(default_factory=dict)
    overlap: Scalar = 0.0


class Meeting:
    """The contacts between bodies in a step.

    Attributes:
        given: impulses that are known before the sweeps, on each body, {number: body coordinates}.
    """

    def __init__(
        self,
        law: PairLaw,
        tree: Tree,
        X: Sequence[Any],
        V: Sequence[Motion],
        dt: Scalar,
        carried: Carried,
    ) -> None:
        """Find them at a pose, and bend their bristles; those for the next step are entered in ``carried``.

        Args:
            law: of the contacts.
            tree, X: the tree and its transforms.
            V: velocities of the bodies before the kick.
            dt: step [s].
            carried: what the step before has handed on.
        """
        self.law, self.dt = law, dt
        bodies = law.shapes.bodies
        self.around = around = Vicinity(law.shapes, tree, X, dt)
        self.some = any_of(around.near)
        falling = sqrt(tree.a0.dot(tree.a0)) * dt

        def near() -> Sequence[Scalar]:
            contacts = [PairContact(pair, law) for pair in likewise(around.deepest())]
            before = _seen(around.poses, [V[b] for b in bodies])

            def load(*place: Scalar) -> list[Scalar]:
                contact = PairContact(Nearest.of(place), law)
                contact.load(law, before, falling, dt, _bond(contact, carried))
                return [*contact.values(), *contact.given]

            values: list[Scalar] = []
            given = []
            for contact in likewise(contacts):
                found = _repeated((self, "load"), load, contact.near.values())
                values += [*contact.near.values(), *found[:KNOWN]]
                given.append(Vector3(*found[KNOWN:]))
            total = _forces(around.poses, contacts, given)
            return [*values, *(x for F in total for x in F)]

        slots = slots_of(law.shapes)
        nothing = [*Nearest.none().values(), *([0.0] * KNOWN)]
        values = cond(self.some, near, lambda: nothing * slots + [0.0] * (6 * len(bodies)))
        self.slots = [values[WIDTH * k : WIDTH * (k + 1)] for k in range(slots)]
        rest = iter(values[WIDTH * slots :])
        self.given = {b: Force(_vector(rest), _vector(rest)) for b in bodies}
        self.carried = carried
        carried.bonds = [[row[9], *row[11:14], 0.0, 0.0, 0.0] for row in self.slots]

    def solve(self, kicked: Kicked, y: Rows, V: list[Motion]) -> tuple[Rows, list[Motion], Met]:
        """The velocities y and V of a kick with the impulses between bodies, and these.

        What the ground gives in return is entered in its forces.
        """
        law, dt, bodies = self.law, self.dt, self.law.shapes.bodies
        ground = [acting for acting in kicked.ground if acting.body.i in bodies]
        rest = 6 * len(bodies) + 3 * len(self.slots)
        for acting in ground:
            count = len(acting.forces)
            rest += 7 + 3 * count if is_loose(kicked.tree, acting.body.i) else 6 + count
        none = [*flat(y), *flat(V), *([0.0] * rest)]

        def near() -> Sequence[Scalar]:
            contacts = [PairContact(Nearest.of(row[:PLACE]), law) for row in likewise(self.slots)]
            now = _seen(self.around.poses, [V[b] for b in bodies])

            def relative(*place: Scalar) -> list[Scalar]:
                return [*PairContact(Nearest.of(place), law).relative(now)]

            overlap: Scalar = 0.0
            for contact, row in likewise(zip(contacts, self.slots, strict=True)):
                contact.loaded(law, dt, row[PLACE:])
                u = _repeated((self, "relative"), relative, row[:PLACE])
                contact.start(law, Vector3(*u), dt)
                overlap = maximum(overlap, -contact.near.phi)
            touching = any_of([contact.moves for contact in contacts])
            given = [x for contact in contacts for x in contact.given]
            others = [*none[: -len(given)], *given]
            poses = self.around.poses
            solved = cond(
                touching, lambda: _solve(bodies, poses, contacts, kicked, ground, y, V), lambda: others
            )
            return [*solved, overlap]

        values = iter(cond(self.some, near, lambda: [*none, 0.0]))
        y = [[next(values) for _ in row] for row in y]
        V = [Motion(_vector(values), _vector(values)) for _ in V]
        met = Met({b: self.given[b] + Force(_vector(values), _vector(values)) for b in bodies})
        for acting in ground:
            total, sideways = Force(_vector(values), _vector(values)), is_loose(kicked.tree, acting.body.i)
            work = next(values) if sideways else 0.0
            rows = [[next(values) for _ in range(3 if sideways else 1)] for _ in acting.forces]
            acting.give_back(total, work, [(row[0], *(row[1:] or (0.0, 0.0))) for row in rows])
        for row in self.carried.bonds:
            row[4:] = _vector(values)
        met.overlap = next(values)
        return y, V, met


def is_loose(tree: Tree, i: int) -> bool:
    """Whether no joint but that to the world is at a body."""
    return not tree.parent[i] and not tree.children[i]


def _bond(contact: PairContact, carried: Carried) -> Bond:
    """That of the same shapes after the last step; 0 where they did not touch."""
    e = f = Vector3.zero()
    for which, *row in carried.bonds:
        same = where(which == contact.near.which, 1.0, 0.0)
        e, f = e + Vector3(*row[:3]) * same, f + Vector3(*row[3:]) * same
    return Bond(e, f)


def _repeated(key: object, text: Callable[..., list[Scalar]], given: Sequence[Scalar]) -> list[Scalar]:
    """The values of a text that a step takes several times: written once, with all numbers as arguments."""
    return shared(key, text, given, [True] * len(given), large=True, numbers=True)


def _seen(poses: Sequence[Pose], V: Sequence[Motion]) -> list[Motion]:
    """Velocities of the bodies in pairs, world axes."""
    return [pose.seen(v) for pose, v in likewise(zip(poses, V, strict=True))]


def _solve(
    bodies: Sequence[int],
    poses: Sequence[Pose],
    contacts: list[PairContact],
    kicked: Kicked,
    ground: Sequence[Acting],
    y: Rows,
    V: list[Motion],
) -> list[Scalar]:
    """New y and V, impulses on bodies, what the ground's points give in return, those of contacts."""
    places = range(len(ground))
    gains = [_pressed(acting, bodies, poses, contacts) for acting in ground]
    loose = [is_loose(kicked.tree, acting.body.i) for acting in ground]
    holding = [GroundInReturn.of(ground[k], gains[k], loose[k]) for k in places]
    respond = _response(bodies, poses, contacts, kicked, holding)
    normal = conjugate_gradients(contacts, lambda f: respond(f)[0], 1)
    for contact, x in likewise(zip(contacts, normal[0], strict=True)):
        contact.rub(x)
    several = sum(is_loose(kicked.tree, i) for i in bodies) > 1
    braking = BRAKING_LOOSE if several else BRAKING
    rough = conjugate_gradients(contacts, lambda f: respond(f)[0], braking, normal)
    for contact, x in likewise(zip(contacts, rough[0], strict=True)):
        contact.slide(x)
    found = conjugate_gradients(contacts, lambda f: respond(f)[0], start=rough)
    done = _acting(contacts, kicked, holding, respond, found[0], y, V)
    if not any(loose):
        return done

    # Where the ground cannot give so much, once more with what it can.
    rest = iter(done[len(flat(y)) :])
    changes = [Motion(_vector(rest), _vector(rest)) - before for before in V]
    over = [
        each.overload(changes[each.acting.body.i]) > 0.0 if loose[k] else False
        for k, each in enumerate(holding)
    ]

    def again() -> list[Scalar]:
        sliding = [
            each.sliding(over[k], changes[each.acting.body.i]) if loose[k] else each
            for k, each in enumerate(holding)
        ]
        answer = _response(bodies, poses, contacts, kicked, sliding)
        start = found[0], answer(found[0], 1.0)[0]
        f, _ = conjugate_gradients(contacts, lambda f: answer(f)[0], start=start)
        return _acting(contacts, kicked, sliding, answer, f, y, V)

    return list(cond(any_of(over), again, lambda: done))


Response = Callable[..., tuple[list[Vector3], list[Scalar]]]
"""Impulses of the contacts, and 1.0 if the ground pushes besides: relative velocities, and all else."""


def _response(
    bodies: Sequence[int],
    poses: Sequence[Pose],
    contacts: list[PairContact],
    kicked: Kicked,
    ground: Sequence[GroundInReturn],
) -> Response:
    """What impulses of the contacts change; all else are y, V, and the impulses on the bodies."""
    tree = kicked.tree
    K: list[Any] = [None] * (tree.n + 1)
    pushes = {}
    for each in ground:
        K[each.acting.body.i] = each.stiffness()
        if each.pushes:
            pushes[each.acting.body.i] = each.push()
    sweep = ImplicitSweep(tree, kicked.X, K, kicked.b, kicked.dt)
    nothing = [[0.0] * (s.stop - s.start) for s in tree.v_slice]

    def text(*given: Scalar) -> list[Scalar]:
        rest = iter(given)
        forces = _forces(poses, contacts, [_vector(rest) for _ in contacts])
        T = [Force.zero()] * (tree.n + 1)
        for body, F in zip(bodies, forces, strict=True):
            T[body] = F
        for body, F in pushes.items():
            T[body] = T[body] + F * next(rest)
        loops = copy(kicked.loops)
        dy, dV = sweep.solve(T, nothing) if loops is None else loops.solve(sweep, T, nothing, None)
        moved = _seen(poses, [dV[b] for b in bodies])
        relative = [contact.relative(moved) for contact in likewise(contacts)]
        return [*flat(relative), *flat(dy), *flat(dV), *flat(forces)]

    def respond(f: list[Vector3], besides: float = 0.0) -> tuple[list[Vector3], list[Scalar]]:
        values = iter(_repeated((sweep, "respond"), text, [*flat(f), *(besides for _ in pushes)]))
        return [_vector(values) for _ in contacts], list(values)

    return respond


def _acting(
    contacts: Sequence[PairContact],
    kicked: Kicked,
    ground: Sequence[GroundInReturn],
    respond: Response,
    f: Sequence[Vector3],
    y: Rows,
    V: Sequence[Motion],
) -> list[Scalar]:
    """What :func:`_solve` returns of impulses: they are cut, and the part that takes most energy acts."""
    f = [contact.cut(x) for contact, x in likewise(zip(contacts, f, strict=True))]
    moved, rest = respond(f, 1.0)
    changes = iter(rest)
    dy = [next(changes) for _ in flat(y)]
    dV = [Motion(_vector(changes), _vector(changes)) for _ in V]
    wanted = sum((contact.missing(x) for contact, x in zip(contacts, f, strict=True)), 0.0)
    s = clamp(_ratio(wanted, _dot(f, moved)), 0.0, 1.0)
    returned = [x for each in ground for x in each.values(dV[each.acting.body.i], s)]
    return [
        *(a + b * s for a, b in zip(flat(y), dy, strict=True)),
        *(a + b * s for a, b in zip(flat(V), flat(dV), strict=True)),
        *(x * s for x in changes),
        *returned,
        *(y for contact, x in zip(contacts, f, strict=True) for y in contact.given + x * s),
    ]


def _pressed(
    acting: Acting, bodies: Sequence[int], poses: Sequence[Pose], contacts: Sequence[PairContact]
) -> list[Scalar]:
    """dt times the damper of the ground at each point of a body: 0 where the body is not pressed on it."""
    body = acting.body
    k, gain = bodies.index(body.i), body.dt * body.kd

    def text(*given: Scalar) -> list[Scalar]:
        rest = iter(given)
        turn, normal, place = Matrix3([_vector(rest) for _ in range(3)]), _vector(rest), next(rest)
        pushes = [turn @ (contact.n * where(contact.on, contact.weight(place), 0.0)) for contact in contacts]
        return [where(any_of([push.dot(normal) < PRESSED for push in pushes]), 1.0, 0.0)]

    at: dict[int, Scalar] = {}
    for m in range(len(body.p)):
        frame = body.frame(m)
        if id(frame) not in at:
            given = [*flat(poses[k].E.rows), *frame.n, float(k)]
            (pressed,) = _repeated((contacts[0], "pressed"), text, given)
            at[id(frame)] = where(pressed > 0.5, gain, 0.0)
    return [where(N > 0.0, at[id(body.frame(m))], 0.0) for m, (N, _, _) in enumerate(acting.forces)]


def _forces(poses: Sequence[Pose], contacts: Sequence[PairContact], f: Sequence[Vector3]) -> list[Force]:
    """Impulses on the bodies in pairs, body coordinates."""
    at = [contact.force(x) for contact, x in zip(contacts, f, strict=True)]
    total = []
    for k, pose in enumerate(likewise(poses)):
        F = Force.zero()
        for contact, own in zip(contacts, at, strict=True):
            w = contact.weights[k]
            if not is_zero(w):
                F = F + own * w
        total.append(pose.own(F))
    return total


def conjugate_gradients(
    contacts: Sequence[Any],
    response: Callable[[list[Vector3]], list[Vector3]],
    iterations: int = ITERATIONS,
    start: tuple[list[Vector3], list[Vector3]] | None = None,
) -> tuple[list[Vector3], list[Vector3]]:
    """Impulses f of the contacts with f = first - K W f, after so many iterations, and W f.

    Args:
        contacts: each with ``first`` and ``slope(u)`` = K u.
        response: f -> W f.
        iterations: calls of it.
        start: f and W f to begin with; None for 0.
    """
    total = moving = [Vector3.zero() for _ in contacts]
    residual = [contact.first for contact in contacts]
    if start is not None:
        total, moving = start
        residual = [
            r - f - contact.slope(u)
            for contact, r, f, u in likewise(zip(contacts, residual, total, moving, strict=True))
        ]
    direction, turned = residual, moving
    size: Scalar = 0.0
    for k in range(iterations):
        moved = response(residual)
        new = _dot(residual, moved)
        if k:
            ratio = _ratio(new, size)
            direction = [r + d * ratio for r, d in zip(residual, direction, strict=True)]
            turned = [m + a * ratio for m, a in zip(moved, turned, strict=True)]
        else:
            direction, turned = residual, moved
        size = new
        back = [
            d + contact.slope(a) for contact, d, a in likewise(zip(contacts, direction, turned, strict=True))
        ]
        step = _ratio(size, _dot(turned, back))
        total = [f + d * step for f, d in zip(total, direction, strict=True)]
        moving = [u + a * step for u, a in zip(moving, turned, strict=True)]
        residual = [r - b * step for r, b in zip(residual, back, strict=True)]
    return total, moving


def _dot(a: Sequence[Vector3], b: Sequence[Vector3]) -> Scalar:
    return sum((x.dot(y) for x, y in zip(a, b, strict=True)), 0.0)


def _ratio(a: Scalar, b: Scalar) -> Scalar:
    """a / b; 0 where nothing is left to do."""
    some = b > TINY
    return where(some, a / where(some, b, 1.0), 0.0)


def _vector(values: Any) -> Vector3:
    return Vector3(next(values), next(values), next(values))
