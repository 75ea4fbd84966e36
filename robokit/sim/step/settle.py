"""The kick of a time step: velocities at its end, for contacts, limits, damping and friction together.

    (H + J^T K J + dt b) y = J^T T + dt tau

T are the bodies' momenta with the velocity products of the step (moving_axes.py). Every sweep linearises
contacts and joint forces at the last iterate and solves afresh, so that nothing accumulates:

    sweep 1    points foreseen from the velocities v before and the forces of the last step, products at v
    sweep 2    points looked at again at the result y1, products at (v + y1) / 2
    sweep 3    points released that pull at y2, products at (v + (y1 + y2) / 2) / 2
    sweep 4    where more than a hundredth of the forces of sweep 3, or a motor's, is not possible; only there
    or four    with self-collision, there and where bodies push each other away: ground and joints answer

The last of the sweeps that all states take, if it is not the first, is always one that releases. Where the
velocity products turn the velocities by theta in a step, their size grows by theta^2 / 2 with one sweep, by
theta^4 / 8 with two and by theta^6 / 128 with three: a gyroscope gains no energy that would show.

Source: 7-contact of this project's notes, steps 2 to 7.
Differs: a third sweep and, in some steps, a fourth. Taking the forces of the second as given, cut to what a
ground can do, and solving once more throws light bodies: what is cut at one point is missing at the others.
Cost: O(n) a sweep.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from robokit.model.tree import Tree
from robokit.sim.joints.joint_forces import JointState
from robokit.sim.joints.loop_impulses import LoopKick
from robokit.sim.joints.outside import BodyForces
from robokit.sim.meeting.pair_impulses import Kicked, Meeting, Met, is_loose
from robokit.sim.motion.carried import Carried
from robokit.sim.motion.implicit_sweep import ImplicitSweep, body_velocities
from robokit.sim.motion.moving_axes import Rows, flat, free_base, momenta_after
from robokit.sim.step.problem import Problem
from robokit.sim.step.shared_sweeps import share_rules, shared_forces, shared_solve
from robokit.sim.touching.acting import Acting
from robokit.sim.touching.contact import BodyContact
from robokit.sim.touching.ground_contacts import on_ground
from robokit.sim.touching.near_ground import act, bend, choose, linear, near_ground, unforeseen
from robokit.spatial import Motion, Transform, Vector3
from robokit.spatial.control_flow import cond
from robokit.spatial.scalars import Scalar, likewise, maximum, sharing, sqrt, where

IMPOSSIBLE = 0.01
"""Share of the impulse of the ground, pulling or outside the cone of friction, from which a step goes on."""

CALM = 0.05
"""Change of a body's velocity by other bodies from which the ground is asked again [m/s]."""

ASKED = 0.1
"""Share of the impulse of the ground that is not possible after bodies met from which it is asked again. A
hundredth would be asked for in heaps at rest, which then tremble."""

UNTRUE = 0.02
"""Share of its weight by which the ground may carry a body that creeps otherwise than its law says. A hand
that others lift in each step as far as it has fallen it may carry wholly, while friction holds nothing."""

ANSWER = ("met", "press", "release", "extrapolate")
"""Rules of the sweeps with which it answers. With the last two alone, half of the impulse of a link that is
squeezed out, and slides, was outside the cone of friction."""


@dataclass
class Settled:
    """Outcome of :func:`settle`.

    Attributes:
        X: transforms of the pose.
        before, y: velocities before and after, by joint.
        V_before, V: the same of the bodies, body coordinates.
        contacts: what acts on each touching body.
        joint_force: (damping and friction, limits) of each joint, by dof [N m | N].
        given: the other joint forces, those of actuators among them, by joint [N m | N].
        limited: 1.0 for each actuator at a limit, else 0.0.
        outside: forces from outside, by body.
        residual: largest change of a touching body's velocity in the last sweep [m/s].
        loops: what holds the loop joints closed, or None.
        met: what acts between bodies, or None.
    """

    X: Sequence[Transform | None]
    before: Rows
    y: list[list[Scalar]]
    V_before: list[Motion]
    V: list[Motion]
    contacts: list[Acting]
    joint_force: list[tuple[list[Scalar], list[Scalar]]]
    given: Rows
    limited: Sequence[Scalar]
    outside: BodyForces
    residual: Scalar
    loops: LoopKick | None
    met: Met | None = None


def settle(
    p: Problem, q: Rows, v: Rows, tau: Rows, dt: Scalar, carried: Carried, ahead: Scalar | None = None
) -> Settled:
    """Velocities at the end of a kick at the pose q, from v before it.

    Args:
        p: the robot and all that acts on it.
        q, v, tau: state and joint forces, by joint.
        dt: step [s].
        carried: what the step before has handed on.
        ahead: time from q to the middle of the step, where actuators measure [s]; None for 0.
    """
    kick = Sweeps(p, q, v, tau, dt, carried, ahead)
    V_last: Sequence[Motion]
    before = v
    y, V = v, kick.V_before
    w = v
    for k in range(p.sweeps):
        last, V_last = y, V
        rule = "foresee" if k == 0 else "look_again" if k < p.sweeps - 1 else "release"
        y, V = kick.sweep(rule, y, V, w, last=k == p.sweeps - 1)
        w = mean(before, mean(last, y) if k else y)
    if not kick.may_go_on:
        return kick.settled(y, V, V_last)
    y1, V1, acting = kick.go_on(y, V, w)
    return kick.settled(y1, V1, V, acting)


class Sweeps:
    """A kick at one pose: all that its sweeps share.

    Attributes:
        X: transforms of the pose.
        V_before: velocities of the bodies before, body coordinates.
        contacts: the bodies with contact points.
        state: the passive joint forces.
        drive: the actuators.
    """

    def __init__(
        self, p: Problem, q: Rows, v: Rows, tau: Rows, dt: Scalar, carried: Carried, ahead: Scalar | None
    ) -> None:
        """Prepare it; arguments as of :func:`settle`."""
        tree = p.tree
        self.p, self.v, self.dt, self.carried = p, v, dt, carried
        self.X = X = tree.transforms(q)
        self.V_before = body_velocities(tree, X, v)
        self.P = [tree.I[i] @ self.V_before[i] for i in range(tree.n + 1)]
        self.contacts = touching_bodies(p, X, self.V_before, dt, carried)
        self.state = JointState(tree, p.joints, q, v, dt, carried, 0.5 * dt if ahead is None else dt)
        self.drive = p.given.drive(q, v, tau, dt, ahead)
        self.spin = rotor_momenta(tree, v, dt)
        self.outside = p.given.outside(tree, X, tau)
        self.loops = None if p.loops is None else LoopKick(p.loops, tree, q, X)
        self.pairs = None if p.pairs is None else Meeting(p.pairs, tree, X, self.V_before, dt, carried)
        for body in self.contacts if self.alike and sharing(dt) else ():
            share_rules(body)

    def sweep(
        self, rule: str, y: Rows, V: Sequence[Motion], w: Rows, last: bool = False
    ) -> tuple[Rows, list[Motion]]:
        """One solve.

        Args:
            rule: method of :class:`BodyContact` that linearises the points.
            y, V: the last iterate, by joint and by body.
            w: velocities for the velocity products, by joint.
            last: whether stops that pull are let go.

        Returns:
            the next iterate, by joint and by body.
        """
        tree, dt = self.p.tree, self.dt
        alike = self.alike and sharing(dt, large=True)
        T = [] if alike else momenta_after(tree, self.X, self.P, w, dt)
        K: list[Any] = [None] * (tree.n + 1)
        for body in likewise(self.contacts):
            i = body.i
            getattr(body, rule)(V[i])
            if not alike:
                K[i], impulse = linear(body.near, body)
                T[i] = T[i] + impulse
        for i, f in enumerate(() if alike else self.outside):
            if f is not None:
                T[i] = T[i] + f * dt
        if self.pairs is not None and not alike:
            for i, f in self.pairs.given.items():
                T[i] = T[i] + f
        b, rest = self.state.linearise(y, last=last, converge=rule == "converge")
        slopes, given = self.drive.linearise(y)
        b = _sum(b, slopes)
        if alike:
            return shared_solve(self, w, b, _sum(_sum(rest, given), self.spin))
        sweep = ImplicitSweep(tree, self.X, K, b, dt)
        forces = _sum(_sum(rest, given), self.spin)
        return sweep.solve(T, forces) if self.loops is None else self.loops.solve(sweep, T, forces, self.v)

    @property
    def alike(self) -> bool:
        """Whether all sweeps do the same once their points are chosen: on one plane, no loops."""
        ground = self.p.ground
        return self.loops is None and not (ground is not None and ground.surfaces)

    @property
    def may_go_on(self) -> bool:
        """Whether there may be a fourth sweep: where bodies may meet, :meth:`answer` is in its place."""
        p = self.p
        return p.sweeps >= 3 and p.ground is not None and p.pairs is None and self.only_rows_change

    @property
    def only_rows_change(self) -> bool:
        """Whether what a sweep leaves behind is all among the rows that it chooses."""
        ground = self.p.ground
        # On uneven ground these turn the axes of a body's contact in each sweep.
        turned = ground is not None and (ground.torsional is not None or ground.rolling is not None)
        return self.p.loops is None and not (turned and ground is not None and ground.surfaces)

    def go_on(self, y: Rows, V: list[Motion], w: Rows) -> tuple[Rows, list[Motion], list[Acting]]:
        """One solve more where the ground or a motor would have to do what it cannot.

        Too much of the ground's forces pulls or leaves the cone of friction; or an impact has made a joint so
        much faster or slower than the iterate before that its motor exceeds its limit.

        Args:
            y, V: the last iterate, by joint and by body.
            w: velocities for the velocity products, by joint.

        Returns:
            the iterate by joint and by body, and what acts on each touching body.
        """
        acting = self._remembered(self.acting(V))
        # An impulse and a force: only whether one of them is above 0 counts.
        needed = maximum(_impossible(acting, IMPOSSIBLE), self.drive.excess(y)) > 0.0
        before = self._all(y, V, acting)
        y1, V1 = self.sweep("extrapolate", y, V, w, last=True)
        return self._only_where(needed, before, y1, V1)

    def answer(
        self, y: Rows, V: list[Motion], acting: list[Acting], alone: Sequence[Motion], met: Met
    ) -> tuple[Rows, list[Motion], list[Acting]]:
        """Solves more where bodies met, or where the ground or a motor would have to do what it cannot.

        What acts between the bodies is then a force from outside. While it was found, the ground was a damper
        under bodies that were pressed on it. Now all its points, and the stops and the dry friction of the
        joints, are looked at again. What rests on another body is left alone: there the two ways of seeing
        the ground would take turns.

        Args:
            y, V: the velocities that the meeting left, by joint and by body.
            acting: what acts on each touching body.
            alone: velocities of the bodies before they met.
            met: what acts between bodies.

        Returns:
            the iterate by joint and by body, and what acts on each touching body; as given where the meeting
            changed no body's velocity by more than CALM, the forces of the ground, but for ASKED, and of
            motors are possible, and the ground carries what creeps as its law says, but for UNTRUE.
        """
        assert self.pairs is not None
        square: Scalar = 0.0
        for body, each in likewise(zip(self.contacts, acting, strict=True)):
            change = V[body.i] - alone[body.i]
            far = functools.reduce(maximum, [place.dot(place) for place in body.p])
            moved = 2.0 * (change.lin.dot(change.lin) + change.ang.dot(change.ang) * far)  # (a + b)^2 at most
            square = maximum(square, where(body.near, moved, 0.0))
            body.acted = each.forces
        untrue = cond(square > 0.0, lambda: self._untrue(V, acting), lambda: 0.0)
        share = where(square > 0.0, ASKED, IMPOSSIBLE)
        impossible = maximum(_impossible(acting, share), self.drive.excess(y))
        needed = maximum(square - CALM * CALM, maximum(impossible, untrue)) > 0.0
        before = self._all(y, V, acting)
        self.pairs.given = met.impulse
        w, y1, V1 = mean(self.v, y), y, V
        for rule in ANSWER:
            y1, V1 = self.sweep(rule, y1, V1, w, last=True)
        return self._only_where(needed, before, y1, V1)

    def _untrue(self, V: Sequence[Motion], acting: Sequence[Acting]) -> Scalar:
        """Above 0 where the ground carries a body that creeps otherwise than its law says, but for UNTRUE."""
        falling = sqrt(self.p.tree.a0.dot(self.p.tree.a0)) * self.dt
        worst: Scalar = 0.0
        for body, each in likewise(zip(self.contacts, acting, strict=True)):
            off = self.dt * body.untrue(V[body.i], each.forces) - UNTRUE * body.mass * falling
            worst = maximum(worst, where(body.near, off, 0.0))
        return worst

    def _all(self, y: Rows, V: Sequence[Motion], acting: Sequence[Acting]) -> list[Scalar]:
        """All that is used of a sweep later: iterate, what acts, and what the joints have chosen."""
        for body in likewise(self.contacts):
            choose(body.near, body)
        return flat([*y, *V, *(each.values() for each in acting), *self._chosen()])

    def _only_where(
        self, needed: Any, before: list[Scalar], y: Rows, V: list[Motion]
    ) -> tuple[Rows, list[Motion], list[Acting]]:
        """The last solve, y and V, and what then acts, where it is needed; elsewhere all as before it."""
        acting = self.acting(V)
        after = self._all(y, V, acting)
        found = iter(cond(needed, lambda: after, lambda: before))
        y = [list(islice(found, len(row))) for row in y]
        V = [Motion(Vector3(*islice(found, 3)), Vector3(*islice(found, 3))) for _ in V]
        for each in acting:
            each.take(found)
        for row in self._chosen():
            row[:] = islice(found, len(row))
        return y, V, acting

    def acting(self, V: Sequence[Motion]) -> list[Acting]:
        """What acts on each touching body at the velocities V."""
        if self.alike and sharing(self.dt):
            return shared_forces(self, V)
        return [act(body.near, body, V[body.i]) for body in self.contacts]

    def _remembered(self, acting: list[Acting]) -> list[Acting]:
        """What acts after the sweeps that all states take, kept for what the next step foresees.

        What a fourth sweep makes of it would hardly foresee better, and to have it until then costs a tenth
        of a step of many rows and more of a single one.
        """
        if self.contacts:
            self.carried.unforeseen = [N for each in acting for N in unforeseen(each.body.near, each)]
        return acting

    def _chosen(self) -> list[list[Scalar]]:
        """What the last sweep has chosen for the joints, to be changed in place."""
        held = (
            [] if self.pairs is None else self.state.held
        )  # friction, while what acts between bodies is found
        return [*self.state.chosen(), *held, *self.drive.chosen()]

    def settled(
        self, y: Rows, V: list[Motion], V_last: Sequence[Motion], acting: list[Acting] | None = None
    ) -> Settled:
        """What comes of the kick, with the forces between bodies.

        Args:
            y, V: the last iterate, by joint and by body.
            V_last: that before it, by body.
            acting: what acts on each touching body, where it is known.
        """
        p, state, drive = self.p, self.state, self.drive
        residual: Scalar = 0.0
        for body in likewise(self.contacts):
            change = (V[body.i] - V_last[body.i]).lin
            residual = maximum(residual, change.dot(change))
        acting = self._remembered(self.acting(V)) if acting is None else acting
        met = None
        if self.pairs is not None:
            slopes = _sum(state.hold(y), drive.toward_rest(y))
            kicked = Kicked(p.tree, self.X, self.V_before, slopes, self.dt, acting, self.loops)
            alone = V
            y, V, met = self.pairs.solve(kicked, y, V)
            if self.contacts and self.only_rows_change:
                y, V, acting = self.answer(y, V, acting, alone, met)
        return Settled(
            self.X, self.v, [list(row) for row in y], self.V_before, V, acting, state.forces(y),
            drive.forces(y), drive.limited, self.outside, sqrt(residual), self.loops, met,
        )  # fmt: skip


def _impossible(acting: Sequence[Acting], share: Scalar) -> Scalar:
    """The impulse that the ground cannot give, less a share of all that is let pass [N s]."""
    bad = sum((a.pulled + a.outside for a in acting), 0.0)
    return bad - share * sum((a.pressed for a in acting), 0.0)


def touching_bodies(
    p: Problem, X: Sequence[Transform | None], V: Sequence[Motion], dt: Scalar, carried: Carried
) -> list[BodyContact]:
    """The bodies with contact points, their bristles bent by the last step."""
    if p.ground is None:
        return []
    bodies = [i for i in p.tree.outward() if p.points[i]]
    at = 0
    contacts = list(on_ground(p.tree, X, bodies, p.points, p.ground, dt))
    for body, near in likewise(zip(contacts, near_ground(contacts, p.points, V, dt), strict=True)):
        i, body.near = body.i, near
        body.set_out(V[i], loose_middle(p.tree, i))
        part = slice(at, at + len(p.points[i]))
        body.unforeseen, at = carried.unforeseen[part], part.stop
        if p.ground.slip is None:
            bend(near, body, V[i], carried.anchors[part])
            carried.anchors[part] = body.anchors
    return contacts


def loose_middle(tree: Tree, i: int) -> Vector3 | None:
    """Centre of mass of a body that floats and has no joints, body coordinates [m]; None of others."""
    loose = free_base(tree, i) and is_loose(tree, i) and not tree.loops
    return tree.I[i].h * (1.0 / tree.I[i].m) if loose else None


def rotor_momenta(tree: Tree, v: Rows, dt: Scalar) -> Rows:
    """What the rotors' momenta before a kick add to the joint forces that act during it, by joint."""
    if not tree.armature:
        return [[0.0] * len(row) for row in v]
    return [
        [a * s * (1.0 / dt) if a else 0.0 for a, s in zip(row, rates, strict=True)]
        for row, rates in zip(tree.armature, v, strict=True)
    ]


def _sum(a: Rows, b: Rows) -> Rows:
    return [[s + t for s, t in zip(x, y, strict=True)] for x, y in zip(a, b, strict=True)]


def mean(a: Rows, b: Rows) -> Rows:
    """The mean of velocities, by joint."""
    return [[0.5 * (s + t) for s, t in zip(x, y, strict=True)] for x, y in zip(a, b, strict=True)]
