"""What happens in each step: forces on links, of stops and motors; and what is measured of many steps.

The facts of a step are there where they are wanted (``watched``, or something is measured), and are noted for
every step where ``watched`` is 2: events, sensors and contacts of a run read the notes, and no step is taken
twice. What is measured stands in ``measured``: how many steps there were, then the numbers of each measure
that is wanted (measures.py), from the place that ``measured_at`` says.

Forces are those of the step; speeds, those with which it begins.

Cost: O(contacts + rows + bodies).
"""

from __future__ import annotations

import functools
from typing import Any

from robokit.contact.accounts import impulse_of, late_moment, on_ground
from robokit.contact.constraints.collecting import act
from robokit.contact.fields import FRICTION, LINE, MOTOR, PRESCRIBED, SPIN, SPRING, STOP
from robokit.contact.kinematics import push
from robokit.contact.landings import limited
from robokit.contact.measures import KEPT
from robokit.contact.solver import before
from robokit.contact.vectors import about, force, nothing, put, vector, write_row
from robokit.engine.loops.fields import once, real, whole
from robokit.spatial import Force, Vector3
from robokit.spatial.control_flow import cond, for_range
from robokit.spatial.scalars import added, maximum, sqrt, where

NOTED_CONTACT = 17  # numbers of a contact that is noted

MONITOR = (
    whole("measured_at", len(KEPT)),  # where the numbers of each measure begin in `measured`, or -1
    real("step_share", 2),  # of a step that this one is; how far after its beginning its forces count
    whole("watched", 1),  # 1 where all facts of each step are wanted, 2 where they are noted, too
    whole("link_of_shape", "n_shapes"),  # number of each shape's link among those that can touch, or -1
    whole("joint_of_stop", "n_stops"),  # number of each limit's joint among those with limits
    real("measured", "n_measured", role="inout"),  # empty where nothing is wanted
    real("link_force", "n_link_sums", 4, role="out"),  # of each link, then of all [N]; largest normal force
    real("stop_force", "n_limited", role="out"),  # of each joint's limits [N m | N]
    # Only where it is watched
    real(
        "link_contact", "n_link_sums", 4, role="out"
    ),  # normal force; that of what slides [N]; largest speed
    # of what slides after the step, of approach before it [m/s]
    real("motor_force", "n_motors", 2, role="out"),  # [N m | N]; 1 at a limit of effort or speed
    # Only where it has rows, one for each link of the robot
    real("net_force", "n_felt", 3, role="inout"),  # of all contacts on it, in world axes [N]
    whole("felt_of_shape", "n_shapes"),  # row of each shape's link, or -1
)

NOTES = (
    whole("noted", 2, role="inout"),  # how many steps, or parts of steps, and contacts
    real("noted_share", "n_noted", role="out"),  # of a step
    real("noted_q", "n_noted", "nq", role="out"),  # the state that it set out from
    real("noted_v", "n_noted", "nv", role="out"),
    real("noted_kick", "n_noted", "nq", role="out"),  # configuration at which the forces acted
    real("noted_before", "n_noted", "nv", role="out"),  # velocities there, before these and after them; of a
    real("noted_after", "n_noted", "nv", role="out"),  # base that floats in the axes that it has there
    real("noted_mean", "n_noted", "nv", role="out"),  # that velocity products are taken at
    real("noted_wrench", "n_noted", "n_bodies", 6, role="out"),  # on bodies about their origins: all but
    # gravity and what joints exert, loop joints too, in world axes [N m; N]
    real("noted_link", "n_noted", "n_link_sums", 7, role="out"),  # force [N]; then as `link_contact`
    real("noted_joint", "n_noted", "nv", 3, role="out"),  # of motors and what prescribed motions take; of
    # damping and dry friction; of limits
    real("noted_stop", "n_noted", "n_limited", role="out"),  # force of each joint's limits
    real("noted_limited", "n_noted", "n_motors", role="out"),  # 1 at a limit of effort or speed
    real("noted_loop", "n_noted", "n_loops", 6, role="out"),  # on the successor, as `noted_wrench`
    real("noted_spring", "n_noted", "n_springs", 6, role="out"),  # on the second body, likewise
    whole("noted_end", "n_noted", role="out"),  # contacts until then
    # shapes; place [m]; force on the second [N]; moments of turning friction and of a landing (accounts.py)
    # [N m]; normal, out of the first
    real("noted_contact", "n_noted_contacts", NOTED_CONTACT, role="out"),
)
"""One entry for every step that was taken since they were last emptied.

Contacts are those that press, if only on the way to a landing, and for turning friction one more at the same
place, which has no force.
"""

SLIDING = 1e-3  # speed over the ground from which a point slides [m/s]
CONE = 0.9  # share of Coulomb's limit from which it does


def monitor(x: Any) -> None:
    """Note the events of a step, and update the measures; after the solve, at the step's middle."""
    measured = x.n_measured > 0
    cond(measured | (x.watched[0] > 0), lambda: _forces(x), nothing)
    cond(x.watched[0] > 0, lambda: _watch(x), nothing)
    cond(measured, lambda: _measure(x), nothing)
    cond(x.n_felt > 0, lambda: _feel(x), nothing)


def _measure(x: Any) -> None:
    for k, measure in enumerate(KEPT):
        at = x.measured_at[k]

        def measured(at: Any = at, after: Any = measure.after) -> None:
            after(x, at, x.measured[0] + x.step_share[1])

        cond(at < 0, nothing, measured)
    x.measured[0] = x.measured[0] + x.step_share[0]


def _forces(x: Any) -> None:
    """Force on each link from the ground, largest normal force; in total; and the force of each joint's
    limits.
    """
    per = 1.0 / x.dt[0]
    for_range(x.n_link_sums, lambda k: write_row(x.link_force, k, [0.0] * 4))
    for_range(x.n_limited, lambda k: put(x.stop_force, k, 0.0))

    def contact(i: Any) -> None:
        c = x.c_of[i]
        g = [x.c_g[i, k] * per for k in range(3)]
        force = once(x, _in_world, c, *g)
        link = x.link_of_shape[x.contact_shapes[c, 1]]

        def enter(k: Any) -> None:
            old = [x.link_force[k, m] for m in range(4)]
            more = [a + b for a, b in zip(old, force, strict=False)]
            write_row(x.link_force, k, [*more, maximum(old[3], g[2])])

        cond(link < 0, nothing, lambda: enter(link))
        enter(x.n_link_sums - 1)

    def constraint(i: Any) -> None:
        cond(on_ground(x, i), lambda: contact(i), nothing)

    def stop(i: Any) -> None:
        m = x.r_of[i]
        joint = x.joint_of_stop[m]
        x.stop_force[joint] = x.stop_force[joint] + x.stop_side[m] * x.r_g[i] * per

    for_range(x.n_of[0], constraint)
    for_range(x.n_of[1], lambda i: cond(x.r_kind[i] == STOP, lambda: stop(i), nothing))


def _feel(x: Any) -> None:
    """The net contact force on each link; over the parts of a step, the mean."""
    share = x.step_share[0]
    per = share / x.dt[0]

    def before(k: Any) -> None:
        write_row(x.net_force, k, [where(share < 1.0, x.net_force[k, m], 0.0) for m in range(3)])

    for_range(x.n_felt, before)

    def contact(i: Any) -> None:
        c = x.c_of[i]
        force = once(x, _in_world, c, *(x.c_g[i, k] * per for k in range(3)))

        def enter(link: Any, sign: float) -> None:
            write_row(x.net_force, link, [x.net_force[link, k] + sign * force[k] for k in range(3)])

        for side, sign in ((0, -1.0), (1, 1.0)):
            link = x.felt_of_shape[x.contact_shapes[c, side]]
            cond(link < 0, nothing, functools.partial(enter, link, sign))

    for_range(x.n_of[0], lambda i: cond(x.c_kind[i] == FRICTION, lambda: contact(i), nothing))


def _in_world(x: Any, c: Any, *g: Any) -> list[Any]:
    """Three numbers along t1, t2, n of contact c, in world axes."""
    return [added(x.contact_frame[c, 3 * r + k] * g[r] for r in range(3)) for k in range(3)]


def _watch(x: Any) -> None:
    """How each link touches the ground; the forces of motors; the impulses between bodies."""
    for_range(x.n_link_sums, lambda k: write_row(x.link_contact, k, [0.0] * 4))
    for_range(x.n_motors, lambda k: write_row(x.motor_force, k, [0.0] * 2))

    def contact(i: Any) -> None:
        link = x.link_of_shape[x.contact_shapes[x.c_of[i], 1]]

        def ground() -> None:
            cond(link < 0, nothing, lambda: _touch(x, i, link))

        cond(on_ground(x, i), ground, nothing)

    def motor(i: Any) -> None:
        write_row(x.motor_force, x.r_of[i], [x.r_gain[i] * x.r_g[i] / x.dt[0], limited(x, i)])

    for_range(x.n_of[0], lambda i: cond(x.c_kind[i] == FRICTION, lambda: contact(i), nothing))
    for_range(x.n_of[1], lambda i: cond(x.r_kind[i] == MOTOR, lambda: motor(i), nothing))
    if notes(x):
        cond(x.watched[0] > 1, lambda: _note(x), nothing)


def notes(x: Any) -> bool:
    """Whether the kernel stores notes."""
    return hasattr(x, "noted")


def _note(x: Any) -> None:
    """Append the facts of the step to the notes."""
    n, per = x.noted[0], 1.0 / x.dt[0]
    put(x.noted_share, n, x.step_share[0])
    for_range(x.nq, lambda k: put(x.noted_q, (n, k), x.q_before[k]))
    for_range(x.nv, lambda k: put(x.noted_v, (n, k), x.v_before[k]))
    for_range(x.nq, lambda k: put(x.noted_kick, (n, k), x.q_kick[k]))
    for_range(x.nv, lambda k: put(x.noted_before, (n, k), x.v0[k]))
    for_range(x.nv, lambda k: put(x.noted_after, (n, k), x.y[k]))
    for_range(x.nv, lambda k: put(x.noted_mean, (n, k), 0.5 * (x.v0[k] + x.y_of_C[k])))

    def link(k: Any) -> None:
        facts = [x.link_force[k, m] for m in range(3)] + [x.link_contact[k, m] for m in range(4)]
        write_row(x.noted_link, (n, k), facts)

    def row(i: Any) -> None:
        kind, j = x.r_kind[i], x.r_row[i]
        column = where((kind == MOTOR) | (kind == PRESCRIBED), 0, where(kind == STOP, 2, 1))
        force = x.noted_joint[n, j, column] + x.r_gain[i] * x.r_g[i] * per
        put(x.noted_joint, (n, j, column), force)

    for_range(x.n_link_sums, link)
    for_range(x.nv, lambda j: write_row(x.noted_joint, (n, j), [0.0] * 3))
    for_range(x.n_of[1], row)
    for_range(x.n_limited, lambda k: put(x.noted_stop, (n, k), x.stop_force[k]))
    for_range(x.n_motors, lambda m: put(x.noted_limited, (n, m), x.motor_force[m, 1]))
    _note_wrenches(x, n, per)
    put(x.noted_end, n, x.noted[1])
    put(x.noted, 0, n + 1)


def _note_wrenches(x: Any, n: Any, per: Any) -> None:
    """Store external wrenches on bodies and on the successors of loops, and each contact that pressed."""
    once(x, act)  # f, of which the solver has made sums
    for_range(x.n_loops, lambda m: write_row(x.noted_loop, (n, m), [0.0] * 6))
    for_range(x.n_springs, lambda m: write_row(x.noted_spring, (n, m), [0.0] * 6))

    def contact(i: Any, moment: Any, force: Any, late: Any) -> None:
        c = x.c_of[i]
        place = [x.contact_place[c, k] + x.middle[k] for k in range(3)]
        shapes = [0.0 + x.contact_shapes[c, k] for k in range(2)]
        normal = [x.contact_frame[c, 6 + k] for k in range(3)]
        write_row(x.noted_contact, x.noted[1], [*shapes, *place, *force, *moment, *late, *normal])
        put(x.noted, 1, x.noted[1] + 1)

    def constraint(i: Any) -> None:
        b, kind = x.c_bodies[i, 1], x.c_kind[i]
        f = impulse_of(x, i) * per
        at_b = about(f, vector(x.p, b) - vector(x.c_arms, (i, 1)))

        def loop() -> None:
            m = x.c_of[i] // 2
            old = Force(*(Vector3(*(x.noted_loop[n, m, h + k] for k in range(3))) for h in (0, 3)))
            write_row(x.noted_loop, (n, m), old + at_b)

        def spring() -> None:
            write_row(x.noted_spring, (n, x.c_of[i]), at_b)

        def spin() -> None:
            cond(f.ang.dot(f.ang) > 0.0, lambda: contact(x.c_of[i], f.ang, *[Vector3.zero()] * 2), nothing)

        def press() -> None:
            late = late_moment(x, i) * per
            acts = (x.c_g[i, 2] > 0.0) | (x.c_ahead[i, 2] > 0.0)
            cond(acts, lambda: contact(i, Vector3.zero(), f.lin, late), nothing)

        def on_bodies() -> None:
            push(x, i, f, x.f)
            cond(kind == SPIN, spin, lambda: cond(kind == SPRING, nothing, press))

        cond(kind == LINE, loop, on_bodies)
        cond(kind == SPRING, spring, nothing)

    for_range(x.n_of[0], constraint)
    for_range(x.n_bodies, lambda b: write_row(x.noted_wrench, (n, b), about(force(x.f, b), vector(x.p, b))))


def _touch(x: Any, i: Any, link: Any) -> None:
    c, N = x.c_of[i], maximum(x.c_g[i, 2], 0.0)
    off = [x.c_u[i, k] - x.contact_surface[c, k] - x.contact_rolls[c, k] for k in range(2)]
    speed_after = sqrt(off[0] * off[0] + off[1] * off[1])
    most, along = CONE * x.c_mu[i] * N, x.c_g[i, 0] * x.c_g[i, 0] + x.c_g[i, 1] * x.c_g[i, 1]
    slides = (along >= most * most) & (speed_after > SLIDING) & (N > 0.0)
    force, (normal, sliding, fastest, closing) = N / x.dt[0], (x.link_contact[link, k] for k in range(4))
    fastest = maximum(fastest, where(slides, speed_after, 0.0))
    closing = maximum(closing, where(N > 0.0, -once(x, before, i)[2], 0.0))
    write_row(x.link_contact, link, [normal + force, sliding + where(slides, force, 0.0), fastest, closing])
