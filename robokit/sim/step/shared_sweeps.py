"""What all sweeps of a step have in common, written once where code is dear (``scalars.shared``).

The rule that chooses which points are on differs from sweep to sweep. All that follows from the choice does
not: the linearised contacts, the momenta, the solve, and the forces of the points. The numbers are those of
the plain text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any, Protocol

from robokit.sim.motion.implicit_sweep import ImplicitSweep
from robokit.sim.motion.moving_axes import Rows, flat, momenta_after
from robokit.sim.touching.acting import Acting
from robokit.sim.touching.body_points import Velocities
from robokit.sim.touching.contact import BodyContact
from robokit.sim.touching.near_ground import act, linear
from robokit.spatial import Force, Motion, Vector3
from robokit.spatial.scalars import Scalar, likewise, shared


class Kick(Protocol):
    """What of a kick (settle.py) its sweeps share; see there."""

    p: Any
    X: Any
    P: Any
    dt: Scalar
    contacts: list[BodyContact]
    outside: Any
    pairs: Any


def shared_solve(sweeps: Kick, w: Rows, b: Rows, forces: Rows) -> tuple[Rows, list[Motion]]:
    """One solve with what the bodies' points have chosen: the iterate by joint and by body.

    Args:
        sweeps: of the step.
        w: velocities for the velocity products, by joint.
        b, forces: slope and force at rest of the joint forces, by joint.
    """
    tree, dt = sweeps.p.tree, sweeps.dt
    choices = [row for body in sweeps.contacts for row in body.choice()]
    near = [body.near for body in sweeps.contacts for row in body.choice() for _ in row]

    def text(*given: Scalar) -> list[Scalar]:
        rest = iter(given)
        w1, b1, forces1 = _like(w, rest), _like(b, rest), _like(forces, rest)
        between1 = {i: Force(Vector3(*islice(rest, 3)), Vector3(*islice(rest, 3))) for i in between}
        with _chosen(choices, rest):
            K: list[Any] = [None] * (tree.n + 1)
            impulse = {}
            for body in likewise(sweeps.contacts):
                K[body.i], impulse[body.i] = linear(body.near, body)
        sweep = ImplicitSweep(tree, sweeps.X, K, b1, dt)
        T = momenta_after(tree, sweeps.X, sweeps.P, w1, dt)
        for i, f in impulse.items():
            T[i] = T[i] + f
        for i, f in enumerate(sweeps.outside):
            if f is not None:
                T[i] = T[i] + f * dt
        if sweeps.pairs is not None:
            for i, f in between1.items():
                T[i] = T[i] + f
        y, V = sweep.solve(T, forces1)
        return [*flat(y), *flat(V)]

    between = {} if sweeps.pairs is None else sweeps.pairs.given
    given = [*flat(w), *flat(b), *flat(forces), *flat(between.values())]
    matter = [*[True] * len(given), *near]
    found = iter(shared((sweeps, "solve"), text, [*given, *flat(choices)], matter, large=True))
    return _like(w, found), _motions(tree.n + 1, found)


def shared_forces(sweeps: Kick, V: Sequence[Motion]) -> list[Acting]:
    """What acts on each touching body at the velocities V."""
    out = []
    for body in likewise(sweeps.contacts):
        choices = body.choice()

        def text(*given: Scalar, body: BodyContact = body, choices: list[Any] = choices) -> list[Scalar]:
            rest = iter(given)
            (own,) = _motions(1, rest)
            with _chosen(choices, rest):
                done = act(body.near, body, own)
            sums = [done.pressed, done.pulled, done.outside, done.work, done.depth]
            return [*done.impulse, *flat(done.forces), *sums]

        given = flat(choices)
        matter = [*[True] * 6, *[body.near] * len(given)]
        found = iter(shared((sweeps, body.i), text, [*V[body.i], *given], matter))
        done = Acting(body)
        done.impulse = Force(Vector3(*islice(found, 3)), Vector3(*islice(found, 3)))
        done.forces = [(next(found), next(found), next(found)) for _ in body.p]
        done.pressed, done.pulled, done.outside, done.work, done.depth = found
        out.append(done)
    return out


def share_rules(body: BodyContact) -> None:
    """Let the rules of a body share what all of them do: the points' velocities, and how they slide."""
    velocities, slide = body.velocities, body._slide
    points = len(body.p)

    def shared_velocities(V: Motion) -> list[Velocities]:
        def text(*given: Scalar) -> list[Scalar]:
            return [x for at in velocities(_motions(1, iter(given))[0]) for x in (at.vn, *at.x)]

        found = iter(shared((body, "velocities"), text, [*V], [True] * 6))
        return [Velocities(next(found), (next(found), next(found))) for _ in range(points)]

    def shared_slide(speeds: Sequence[Velocities]) -> None:
        def text(*given: Scalar) -> list[Scalar]:
            rest = iter(given)
            before = body.c, body.N
            body.c, body.N = list(islice(rest, points)), list(islice(rest, points))
            slide([Velocities(next(rest), (next(rest), next(rest))) for _ in range(points)])
            found = body.c
            body.c, body.N = before
            return found

        given = [*body.c, *body.N, *(x for at in speeds for x in (at.vn, *at.x))]
        body.c = shared((body, "slide"), text, given, [True] * len(given))

    # On this body alone: its rules call these by name, and the plain text stays as it is.
    body.velocities, body._slide = shared_velocities, shared_slide  # type: ignore[method-assign]


@contextmanager
def _chosen(choices: Sequence[list[Scalar]], values: Iterator[Scalar]) -> Iterator[None]:
    """While it lasts, the choices have other values."""
    before = [list(row) for row in choices]
    for row in choices:
        row[:] = list(islice(values, len(row)))
    yield
    for row, old in zip(choices, before, strict=True):
        row[:] = old


def _like(rows: Rows, values: Iterator[Scalar]) -> Rows:
    return [list(islice(values, len(row))) for row in rows]


def _motions(count: int, values: Iterator[Scalar]) -> list[Motion]:
    return [Motion(Vector3(*islice(values, 3)), Vector3(*islice(values, 3))) for _ in range(count)]
