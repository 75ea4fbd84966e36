"""Landings: the whole impact in the velocity, and in the way what is left after the landing.

What lands within a step is aimed at -phi/dt by the step's first solution, which gives the velocity of the way
from this kick to the next: there it is on the surface. The impulse of that solution is only a part of the
impact. If the rest followed in the next step, friction would be opposed to the slip at the end of each part,
and what both are worth would depend on when in the step it lands. So a second solution, begun at the first,
has the aim 0 for what lands. It gives the velocity after the step, and all impulses.

    y1: aim -phi/dt          y2: aim 0          q' = q + dt/2 (2 y1 - y2)

A landing at the share l of the step after its kick leaves y1 = l v0 + (1 - l) y2, and two wholes that meet
have gone on by l dt v until then. Angular momentum stays where the impulse J acts on each of them where the
contact is from it at the landing, seen from its centre of mass: at p -+ l dt (v_b - v_a)/2.

Cost: a solution, in steps in which something lands.
"""

from __future__ import annotations

import math
from typing import Any

from robokit.contact.accounts import AHEAD, FREE, MASS, NOTHING, PATH, add_to_row
from robokit.contact.constraints.adding import axes_of, body_velocity
from robokit.contact.constraints.contacts import RIGID
from robokit.contact.fields import FRICTION, PRESCRIBED, SPIN, SPRING, STOP
from robokit.contact.kinematics import advance_along, mass_matrix, multiply, place_bodies, velocities
from robokit.contact.solver import impulses, relative, solve, solve_impact
from robokit.contact.vectors import inertia, motion, nothing, put, vector, write_row
from robokit.engine.loops.fields import once
from robokit.spatial import Vector3
from robokit.spatial.control_flow import cond, for_range
from robokit.spatial.scalars import maximum, minimum, where

FIRST = NOTHING - 2  # of ``keeps``: the step stops with its first solution


def solve_landings(x: Any) -> None:
    """The solution of the step, before what bounces give back is judged; ``ahead`` is 2 (y1 - y2)."""
    once(x, solve)
    count = for_range(x.n_of[0], lambda c, n: n + where(lands(x, c), 1, 0), 0)
    x.landed[0], x.landed[1] = count, 0
    for_range(x.n_of[0], lambda c: write_row(x.c_ahead, c, [0.0] * 5))
    cond((count > 0) & (x.keeps[0] > FIRST), lambda: _take_whole(x), nothing)


def lands(x: Any, c: Any) -> Any:
    """Whether a constraint is a contact that the first solution has stopped at the surface."""

    def contact() -> Any:
        k = x.c_of[c]
        pair = x.contact_pair[k]
        fast = x.pair_impact[pair] * x.contact_hit[k] * x.contact_hit[k] > x.pair_damping[pair]
        rests_later = (x.contact_bounces[k] == 0) & (x.contact_arrives[k] == 0.0)
        return fast & rests_later & (x.c_aim[c, 2] < 0.0) & (x.c_g[c, 2] > 0.0)

    return cond(x.c_kind[c] == FRICTION, contact, lambda: False)


def stops(x: Any, i: Any) -> Any:
    """The same of a row, that of a limit."""
    return (x.r_kind[i] == STOP) & (x.r_aim[i] < 0.0) & (x.r_g[i] > 0.0)


def _take_whole(x: Any) -> None:
    def way(c: Any) -> list[Any]:
        return [*(x.c_g[c, k] for k in range(3)), *(x.c_u[c, k] for k in range(2))]

    def less(c: Any) -> None:
        write_row(x.c_ahead, c, [x.c_ahead[c, k] - now for k, now in enumerate(way(c))])

    def constraint(c: Any) -> None:
        write_row(x.c_last, c, [x.c_g[c, k] for k in range(3)])
        write_row(x.c_ahead, c, way(c))
        for k in range(2):
            x.c_first[c, k] = x.c_R[c, k]
        strike(x, c)

    def row(i: Any) -> None:
        write_row(x.r_first, i, [x.r_R[i], x.r_g[i]])
        strike_row(x, i)

    def row_again(i: Any) -> None:
        x.r_R[i] = x.r_first[i, 0]
        x.r_g[i] = where(smooth_row(x, i), x.r_first[i, 1], x.r_g[i])

    def constraint_again(c: Any) -> None:
        write_row(x.c_R, c, [x.c_first[c, k] for k in range(2)])
        kept = x.c_kind[c] == SPRING
        write_row(x.c_g, c, [where(kept, x.c_last[c, k], x.c_g[c, k]) for k in range(3)])

    def coordinate(j: Any) -> None:
        x.guess[j] = x.ahead[j] = x.y[j]

    def soft() -> None:
        """What does not settle has the compliance of contacts that rest."""

        def of_constraint(c: Any) -> None:
            for k in range(2):
                x.c_R[c, k] = where(x.c_R[c, k] < math.inf, x.c_first[c, k], math.inf)

        def of_row(i: Any) -> None:
            x.r_R[i] = where(x.r_R[i] < math.inf, x.r_first[i, 0], math.inf)

        for_range(x.n_of[0], of_constraint)
        for_range(x.n_of[1], of_row)
        taken, x.landed[1] = 1.0 * x.solved[0], 1
        once(x, solve_impact)
        x.solved[0] = x.solved[0] + taken

    iterations, *worst = (x.solved[k] for k in range(3))
    find_times(x)
    for_range(x.n_of[0], constraint)
    for_range(x.n_of[1], row)
    for_range(x.nv, coordinate)
    once(x, impulses, x.n_of[0], x.n_of[1])
    for_range(x.nv, lambda j: put(x.smooth, j, x.b[j] - x.Hv0[j] + x.Jg[j]))
    go_to_landings(x)
    once(x, multiply, x.v0, x.Hv0)
    for_range(x.nv, lambda j: put(x.Hv0, j, x.Hv0[j] + x.smooth[j]))
    once(x, solve_impact)
    cond(x.solved[2] > 0.0, soft, nothing)
    for_range(x.n_of[0], constraint_again)
    for_range(x.n_of[1], row_again)
    x.solved[0] = x.solved[0] + iterations
    for k, found in enumerate(worst, 1):
        x.solved[k] = maximum(x.solved[k], found)
    for_range(x.n_of[0], less)
    cond(x.keeps[0] == FREE, lambda: _move_wholes(x), nothing)


def strike(x: Any, c: Any) -> None:
    """A constraint becomes one of impulses alone: what touches is rigid, and springs have no part."""
    friction, touches = x.c_kind[c] == FRICTION, touches_now(x, c)
    k_c = where(touches, x.c_of[c], 0)
    stops_it = touches & (x.contact_bounces[k_c] < 1)
    still = [x.contact_surface[k_c, k] + x.contact_rolls[k_c, k] for k in range(2)]
    for k, aim in enumerate([*still, 0.0]):
        x.c_aim[c, k] = where(stops_it, aim, x.c_aim[c, k])
    no_part = (x.c_kind[c] == SPRING) | (friction & ~touches)
    for k in range(2):
        R = where(no_part, math.inf, x.c_R[c, k])
        x.c_R[c, k] = where(touches, RIGID * x.c_w[c], R)
    write_row(x.c_g, c, [where(x.c_kind[c] == SPRING, x.c_g[c, k], 0.0) for k in range(3)])


def touches_now(x: Any, c: Any) -> Any:
    """Whether a constraint is a contact that takes part in impacts: it presses, or its gap is closed."""
    return (x.c_kind[c] == FRICTION) & ((x.c_g[c, 2] > 0.0) | (x.c_aim[c, 2] >= 0.0))


def strike_row(x: Any, i: Any) -> None:
    """The same of a row: limits and prescribed motions have impulses, all other forces no part."""
    stop, kept = x.r_kind[i] == STOP, smooth_row(x, i)
    touches = stop & ((x.r_g[i] > 0.0) | (x.r_aim[i] >= 0.0))
    x.r_aim[i] = where(stop, 0.0, x.r_aim[i])
    x.r_R[i] = where(kept | (stop & ~touches), math.inf, where(touches, RIGID * x.r_w[i], x.r_R[i]))
    x.r_g[i] = where(kept, x.r_g[i], 0.0)


def smooth_row(x: Any, i: Any) -> Any:
    """Whether a row is a force that an impact does not change."""
    return (x.r_kind[i] != STOP) & (x.r_kind[i] != PRESCRIBED)


def shift(x: Any, c: Any) -> Vector3:
    """l dt (v_b - v_a)/2 of a contact that lands between two wholes that hang on nothing, else 0."""
    a, b = (x.body_whole[x.c_bodies[c, k]] for k in range(2))
    apart = _velocity(x, b) - _velocity(x, a)
    return apart * where((a > 0) & (b > 0) & (a != b), 0.5 * x.dt[0] * x.c_late[c], 0.0)


def share(aim: Any, u: Any) -> Any:
    """l = phi / (dt |u0|), at most 1, where the aim is -phi/dt."""
    return minimum(-aim / maximum(-u, -aim + 1e-300), 1.0)


def _velocity(x: Any, w: Any) -> Vector3:
    """Of the centre of mass of a whole, before the kick; 0 of what hangs on the world."""
    return vector(x.account, w, VELOCITY)


LATE, WEIGHT, VELOCITY = AHEAD + 3, AHEAD + 4, AHEAD + 5


def find_times(x: Any) -> None:
    """Shares l of contacts, and times of wholes and what they move until then."""

    def note(w: Any, weight: Any, late: Any) -> None:
        add_to_row(x.account, w, LATE, [weight * late, weight])

    def contact(c: Any) -> None:
        one, u = lands(x, c), relative(x, c, x.V)[2]
        late = where(one, share(x.c_aim[c, 2], u), 0.0)
        x.c_late[c] = late
        write_row(x.c_shift, c, shift(x, c))
        weight = where(one, maximum(-u, 0.0) / x.c_w[c], 0.0)
        for k in range(2):
            b = x.c_bodies[c, k]
            note(x.body_whole[b], where(b > 0, weight, 0.0), late)

    def of_spin(c: Any) -> None:
        of = where(x.c_kind[c] == SPIN, x.c_of[c], c)
        write_row(x.c_shift, c, vector(x.c_shift, of, 0))

    def row(i: Any) -> None:
        one, j = stops(x, i), x.r_row[i]
        u = x.r_gain[i] * x.v0[j]
        weight = where(one, maximum(-u, 0.0) / x.r_w[i], 0.0)
        note(x.row_whole[j], weight, where(one, share(x.r_aim[i], u), 0.0))

    def momentum(m: Any) -> None:
        w, h = x.body_whole[m + 1], inertia(x.I, m + 1) @ motion(x.V, m + 1)
        mass = where(x.account[w, MASS] > 0.0, x.account[w, MASS], 1.0)
        add_to_row(x.account, w, VELOCITY, h.lin * where(w > 0, 1.0 / mass, 0.0))

    def whole(w: Any) -> None:
        weight = x.account[w, WEIGHT]
        x.account[w, LATE] = x.dt[0] * x.account[w, LATE] / where(weight > 0.0, weight, 1.0)

    def coordinate(j: Any) -> None:
        x.landing_way[j] = x.account[x.row_whole[j], LATE] * x.v0[j]

    def base(m: Any) -> None:
        b = m + 1

        def stay() -> None:
            w, at = x.body_whole[b], x.dof_row[x.body_dofs[b, 0]] + 3
            v = axes_of(x, b).transpose_apply(_velocity(x, w)) * x.account[w, LATE]
            for k, more in enumerate(v):
                x.landing_way[at + k] = x.landing_way[at + k] - more

        cond((x.parent[b] == 0) & (x.body_whole[b] > 0), stay, nothing)

    for_range(x.n_bodies - 1, momentum)
    for_range(x.n_of[0], contact)
    for_range(x.n_of[0], of_spin)
    for_range(x.n_of[1], row)
    for_range(x.n_wholes, whole)
    for_range(x.nv, coordinate)
    for_range(x.n_bodies - 1, base)


def go_to_landings(x: Any) -> None:
    """The second solution has the poses at the landings, but for the way of each whole's centre of mass."""
    old = vector(x.origin)
    for_range(x.n_of[0], lambda c: carry(x, c))
    for_range(x.nq, lambda k: put(x.q_drifted, k, x.q[k]))
    once(x, advance_along, x.q_drifted, x.v0, x.landing_way, 1.0)
    once(x, place_bodies, x.q_drifted, 0)
    once(x, velocities, x.v0, x.V)
    once(x, mass_matrix)
    o = vector(x.origin) - old

    def about_new(c: Any) -> None:
        for k in range(3):
            e = motion(x.c_E, c, 6 * k)
            for n, moved in enumerate(e.ang - o.cross(e.lin)):
                x.c_E[c, 6 * k + n] = moved

    def path(w: Any) -> None:
        for k, moved in enumerate(o):
            x.account[w, PATH + k] = x.account[w, PATH + k] - moved

    for_range(x.n_of[0], about_new)
    for_range(x.n_wholes, path)


def carry(x: Any, c: Any) -> None:
    """A contact goes on with the cores of its shapes, from the centres of mass of their wholes."""

    def go() -> None:
        k = x.c_of[c]
        p, n = vector(x.contact_place, k, 0), vector(x.contact_frame, k, 6)
        moved = Vector3.zero()
        first = x.c_bodies[c, 0]
        for side in range(2):
            b = x.c_bodies[c, side]
            shape = x.pair_shapes[x.contact_pair[k], side]
            core = p + n * (x.shape_radius[shape] * (1.0 if side else -1.0))
            V = body_velocity(x, b)
            v = V.lin + V.ang.cross(core) - _velocity(x, x.body_whole[b])
            moved = moved + v * where(b > 0, x.account[x.body_whole[b], LATE], 0.0)
        moved = moved * where(first > 0, 0.5, 1.0)
        for r in range(3):
            e = motion(x.c_E, c, 6 * r)
            for m, now in enumerate(e.ang + moved.cross(e.lin)):
                x.c_E[c, 6 * r + m] = now

    cond(x.c_kind[c] == FRICTION, go, nothing)


def _move_wholes(x: Any) -> None:
    """How much farther than with y each centre of mass goes, times mass over time, to ``account``."""

    def constraint(c: Any) -> None:
        D = Vector3.zero()
        for k in range(3):
            D = D + motion(x.c_E, c, 6 * k).lin * (2.0 * x.c_ahead[c, k])
        for k, sign in enumerate((-1.0, 1.0)):
            b = x.c_bodies[c, k]
            add_to_row(x.account, x.body_whole[b], AHEAD, D * where(b > 0, sign, 0.0))

    for_range(x.n_of[0], constraint)


def set_way(x: Any) -> None:
    """``ahead``: velocity of the way to the end of the step; and y as seen from the axes at its middle."""

    def landed() -> None:
        for_range(x.nv, lambda j: put(x.landing_way, j, -x.landing_way[j]))
        once(x, advance_along, x.q_drifted, x.y, x.landing_way, 1.0)
        for_range(x.nv, lambda j: put(x.ahead, j, 2.0 * x.ahead[j] - x.y[j]))

    cond(x.landed[0] > 0, landed, lambda: for_range(x.nv, lambda j: put(x.ahead, j, x.y[j])))
