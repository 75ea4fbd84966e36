"""What happens in each step: forces on links, of stops and motors; and what is measured of many steps.

The facts of a step are there where they are wanted (``watched``, or something is measured), and are noted for
every step where ``watched`` is 2: events, sensors and contacts of a run read the notes, and no step is taken
twice. What is measured stands in ``measured``: how many steps there were, then the numbers of each group that
is wanted, from the place that ``measured_at`` says. The trackers of sim/step/trackers.py say what they mean,
and find the same in the steps of other integrators; steps count from 0, and NEVER stands for none. Where a
step is taken in parts (step_control.py), a part is so much of a step.

Forces are those of the step; speeds, those with which it begins.

Cost: O(contacts + rows + bodies).
"""

from __future__ import annotations

from typing import Any

from robokit.contact.constraints.adding import speed
from robokit.contact.constraints.limits import gap
from robokit.contact.constraints.motors import limited
from robokit.contact.fields import FRICTION, MOTOR, STOP
from robokit.contact.solver import relative
from robokit.contact.vectors import inertia, motion, nothing, put, write, write_row
from robokit.engine.loops.fields import real, whole
from robokit.spatial.control_flow import cond, for_range
from robokit.spatial.scalars import Scalar, floor, maximum, sqrt, where

GROUPS = ("links", "load", "deepest", "limits", "past", "motion", "fastest")
"""Entries of ``measured_at``; -1 for what is not wanted."""

MONITOR = (
    whole("measured_at", len(GROUPS)),  # first place of each group in `measured`, or -1
    whole("measured_of_link", 2),  # 1 where peaks, and where first touches are wanted
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
    real("met", "n_bodies", 3, role="out"),  # impulse of other bodies [N s]
)

NOTES = (
    whole("noted", 2, role="inout"),  # how many steps, or parts of steps, and contacts
    real("noted_share", "n_noted", role="out"),  # of a step
    real("noted_q", "n_noted", "nq", role="out"),  # the state that it set out from
    real("noted_v", "n_noted", "nv", role="out"),
    real("noted_link", "n_noted", "n_link_sums", 7, role="out"),  # force [N]; then as `link_contact`
    real("noted_joint", "n_noted", "nv", 3, role="out"),  # of motors; of damping and dry friction; of limits
    real("noted_limited", "n_noted", "n_motors", role="out"),  # 1 at a limit of effort or speed
    real("noted_met", "n_noted", "n_bodies", 3, role="out"),  # impulse of other bodies [N s]
    real("noted_loop", "n_noted", "n_loops", 6, role="out"),  # as `loop_force`
    whole("noted_end", "n_noted", role="out"),  # contacts until then
    real("noted_contact", "n_noted_contacts", 7, role="out"),  # shape; place [m]; force of the ground [N]
)
"""One entry for every step that was taken since they were last emptied; a contact is one that presses."""

NEVER = -1.0
"""Number of a step that has not come."""

SHORTEST = 5e-3
"""Shortest interruption, slip, stop or saturation that counts [s]."""

IMPACT = 0.1
"""Speed of approach of an impact [m/s]; of one at a joint limit [rad/s | m/s]."""

REST = 1e-3
"""Speed of a robot at rest: the root of twice its kinetic energy over its mass [m/s]."""


SLIDING = 1e-3
"""Speed over the ground from which a point slides [m/s]."""

CONE = 0.9
"""Share of Coulomb's limit from which it does."""


def monitor(x: Any) -> None:
    """Note what happened, and bring what is measured up to date; after the solve, at the step's middle."""
    measured = x.n_measured > 0
    cond(measured | (x.watched[0] > 0), lambda: _forces(x), nothing)
    cond(x.watched[0] > 0, lambda: _watch(x), nothing)
    cond(measured, lambda: _measure(x), nothing)


def _measure(x: Any) -> None:
    texts = (_links, _load, _deepest, _limits, _past, _motion, _fastest)
    for group, text in enumerate(texts):
        at = x.measured_at[group]

        def measured(at: Any = at, text: Any = text) -> None:
            text(x, at, x.measured[0] + x.step_share[1])

        cond(at < 0, nothing, measured)
    x.measured[0] = x.measured[0] + x.step_share[0]


def _forces(x: Any) -> None:
    """Of each link on the ground: its force, and the largest normal force; of all; of each joint's stops."""
    per = 1.0 / x.dt[0]
    for_range(x.n_link_sums, lambda k: write_row(x.link_force, k, [0.0] * 4))
    for_range(x.n_limited, lambda k: put(x.stop_force, k, 0.0))

    def contact(i: Any) -> None:
        c = x.c_of[i]
        g = [x.c_g[i, k] * per for k in range(3)]
        force = _in_world(x, c, g)
        link = x.link_of_shape[x.pair_shapes[x.contact_pair[c], 1]]

        def enter(k: Any) -> None:
            old = [x.link_force[k, m] for m in range(4)]
            more = [a + b for a, b in zip(old, force, strict=False)]
            write_row(x.link_force, k, [*more, maximum(old[3], g[2])])

        cond(link < 0, nothing, lambda: enter(link))
        enter(x.n_link_sums - 1)

    def constraint(i: Any) -> None:
        on_ground = (x.c_kind[i] == FRICTION) & (x.c_bodies[i, 0] == 0)
        cond(on_ground, lambda: contact(i), nothing)

    def stop(i: Any) -> None:
        joint = x.joint_of_stop[x.r_of[i]]
        x.stop_force[joint] = x.stop_force[joint] + x.r_gain[i] * x.r_g[i] * per

    for_range(x.n_of[0], constraint)
    for_range(x.n_of[1], lambda i: cond(x.r_kind[i] == STOP, lambda: stop(i), nothing))


def _in_world(x: Any, c: Any, g: Any) -> list[Any]:
    """Three numbers along t1, t2, n of contact c, in world axes."""
    return [sum(x.contact_frame[c, 3 * r + k] * g[r] for r in range(3)) for k in range(3)]


def _watch(x: Any) -> None:
    """Of each link how it touches the ground; of motors their forces; what bodies give to each other."""
    for_range(x.n_link_sums, lambda k: write_row(x.link_contact, k, [0.0] * 4))
    for_range(x.n_motors, lambda k: write_row(x.motor_force, k, [0.0] * 2))
    for_range(x.n_bodies, lambda b: write_row(x.met, b, [0.0] * 3))

    def meet(i: Any) -> None:
        c, a, b = x.c_of[i], x.c_bodies[i, 0], x.c_bodies[i, 1]
        impulse = _in_world(x, c, [x.c_g[i, r] for r in range(3)])
        for k, part in enumerate(impulse):
            x.met[a, k] = x.met[a, k] - part
            x.met[b, k] = x.met[b, k] + part

    def contact(i: Any) -> None:
        link = x.link_of_shape[x.pair_shapes[x.contact_pair[x.c_of[i]], 1]]

        def ground() -> None:
            cond(link < 0, nothing, lambda: _touch(x, i, link))

        cond(x.c_bodies[i, 0] > 0, lambda: meet(i), ground)

    def motor(i: Any) -> None:
        write_row(x.motor_force, x.r_of[i], [x.r_gain[i] * x.r_g[i] / x.dt[0], limited(x, i)])

    for_range(x.n_of[0], lambda i: cond(x.c_kind[i] == FRICTION, lambda: contact(i), nothing))
    for_range(x.n_of[1], lambda i: cond(x.r_kind[i] == MOTOR, lambda: motor(i), nothing))
    if notes(x):
        cond(x.watched[0] > 1, lambda: _note(x), nothing)


def notes(x: Any) -> bool:
    """Whether the kernel has a place for notes."""
    return hasattr(x, "noted")


def _note(x: Any) -> None:
    """The facts of the step, behind those that are noted."""
    n, per = x.noted[0], 1.0 / x.dt[0]
    put(x.noted_share, n, x.step_share[0])
    for_range(x.nq, lambda k: put(x.noted_q, (n, k), x.q_before[k]))
    for_range(x.nv, lambda k: put(x.noted_v, (n, k), x.v_before[k]))

    def link(k: Any) -> None:
        facts = [x.link_force[k, m] for m in range(3)] + [x.link_contact[k, m] for m in range(4)]
        write_row(x.noted_link, (n, k), facts)

    def row(i: Any) -> None:
        kind, j = x.r_kind[i], x.r_row[i]
        column = where(kind == MOTOR, 0, where(kind == STOP, 2, 1))
        force = x.noted_joint[n, j, column] + x.r_gain[i] * x.r_g[i] * per
        put(x.noted_joint, (n, j, column), force)

    def contact(i: Any) -> None:
        c, g = x.c_of[i], [x.c_g[i, k] * per for k in range(3)]
        place = [x.contact_place[c, k] + x.middle[k] for k in range(3)]
        shape = 0.0 + x.pair_shapes[x.contact_pair[c], 1]
        write_row(x.noted_contact, x.noted[1], [shape, *place, *_in_world(x, c, g)])
        put(x.noted, 1, x.noted[1] + 1)

    def constraint(i: Any) -> None:
        presses = (x.c_kind[i] == FRICTION) & (x.c_bodies[i, 0] == 0) & (x.c_g[i, 2] > 0.0)
        cond(presses, lambda: contact(i), nothing)

    for_range(x.n_link_sums, link)
    for_range(x.nv, lambda j: write_row(x.noted_joint, (n, j), [0.0] * 3))
    for_range(x.n_of[1], row)
    for_range(x.n_motors, lambda m: put(x.noted_limited, (n, m), x.motor_force[m, 1]))
    for_range(x.n_bodies, lambda b: write_row(x.noted_met, (n, b), [x.met[b, k] for k in range(3)]))
    for_range(x.n_loops, lambda m: write_row(x.noted_loop, (n, m), [x.loop_force[m, k] for k in range(6)]))
    for_range(x.n_of[0], constraint)
    put(x.noted_end, n, x.noted[1])
    put(x.noted, 0, n + 1)


def _touch(x: Any, i: Any, link: Any) -> None:
    c, N = x.c_of[i], maximum(x.c_g[i, 2], 0.0)
    off = [x.c_u[i, k] - x.contact_surface[c, k] for k in range(2)]
    speed_after = sqrt(off[0] * off[0] + off[1] * off[1])
    most, along = CONE * x.c_mu[i] * N, x.c_g[i, 0] * x.c_g[i, 0] + x.c_g[i, 1] * x.c_g[i, 1]
    slides = (along >= most * most) & (speed_after > SLIDING) & (N > 0.0)
    force, (normal, sliding, fastest, closing) = N / x.dt[0], (x.link_contact[link, k] for k in range(4))
    fastest = maximum(fastest, where(slides, speed_after, 0.0))
    closing = maximum(closing, where(N > 0.0, -relative(x, i, x.V)[2], 0.0))
    write_row(x.link_contact, link, [normal + force, sliding + where(slides, force, 0.0), fastest, closing])


def _keep(x: Any, at: Any, value: Scalar, step: Scalar) -> None:
    """The largest value so far, and its step."""
    more = value > x.measured[at]
    write(x.measured, at, [where(more, value, x.measured[at]), where(more, step, x.measured[at + 1])])


def _square(x: Any, k: Any) -> Scalar:
    return sum((x.link_force[k, m] * x.link_force[k, m] for m in range(3)), 0.0)


def _links(x: Any, at: Any, step: Scalar) -> None:
    """By link: square of the largest force and its step; first step that presses."""
    peaks, touches = x.measured_of_link[0], x.measured_of_link[1]

    def link(k: Any) -> None:
        first = at + k * (2 * peaks + touches)

        def touch() -> None:
            place = first + 2 * peaks
            now = (x.link_force[k, 3] > 0.0) & (x.measured[place] < 0.0)
            x.measured[place] = where(now, step, x.measured[place])

        cond(peaks > 0, lambda: _keep(x, first, _square(x, k), step), nothing)
        cond(touches > 0, touch, nothing)

    for_range(x.n_link_sums - 1, link)


def _load(x: Any, at: Any, step: Scalar) -> None:
    """Square of the largest force of the ground on all."""
    _keep(x, at, _square(x, x.n_link_sums - 1), step)


def _deepest(x: Any, at: Any, step: Scalar) -> None:
    """The deepest point in the ground."""

    def contact(i: Any, depth: Scalar) -> Scalar:
        there = (x.c_kind[i] == FRICTION) & (x.c_bodies[i, 0] == 0)
        return maximum(depth, where(there, -x.contact_gap[where(there, x.c_of[i], 0)], 0.0))

    _keep(x, at, for_range(x.n_of[0], contact, 0.0), step)


def _limits(x: Any, at: Any, step: Scalar) -> None:
    """How often a joint stops; of each: first step of a stop that may count, last one, first that counts."""
    few = maximum(1.0, -floor(0.5 - SHORTEST / x.dt[0])) * x.step_share[0]

    def stop(m: Any) -> None:
        k = x.joint_of_stop[m]
        force, place = x.stop_force[k], at + 1 + 3 * k
        presses = force * x.stop_side[m] > 0.0
        cond(presses, lambda: _stop(x, at, place, force, speed(x, x.stop_dof[m]), few, step), nothing)

    for_range(x.n_stops, stop)


def _stop(
    x: Any, at: Any, place: Any, force: Scalar, rate: Scalar, few: Scalar, step: Scalar
) -> None:  # fmt: skip
    begun, last, first = (x.measured[place + k] for k in range(3))
    share = x.step_share[0]
    side = where(force > 0.0, 1.0, -1.0)
    goes_on = (last * side > 0.0) & (step - last * side < few + 0.5 * share)
    fast = where(goes_on, 0.0, abs(rate)) >= IMPACT
    begun = where(goes_on, begun, step)
    counts = (begun >= 0.0) & ((step + 1.5 * share - begun > few) | fast)
    first = where(counts & (first < 0.0), begun, first)
    write(x.measured, place, [where(counts, NEVER, begun), side * (step + 1.0), first])
    x.measured[at] = x.measured[at] + where(counts, 1.0, 0.0)


def _past(x: Any, at: Any, step: Scalar) -> None:
    """How far a joint is past a limit as a step begins, in which step, and number of the joint."""

    def stop(m: Any, far: Scalar, which: Scalar) -> tuple[Scalar, Scalar]:
        before = gap(x, m) - 0.5 * x.dt[0] * x.stop_side[m] * speed(x, x.stop_dof[m])
        farther = -before > far
        return where(farther, -before, far), where(farther, 0.0 + x.joint_of_stop[m], which)

    far, which = for_range(x.n_stops, stop, x.measured[at], x.measured[at + 2])
    _keep(x, at, far, step)
    x.measured[at + 2] = which


def _motion(x: Any, at: Any, step: Scalar) -> None:
    """Square of the largest speed, twice the kinetic energy over the mass; last step that is not at rest."""

    def body(b: Any, energy: Scalar, mass: Scalar) -> tuple[Scalar, Scalar]:
        V = motion(x.V, b)
        return energy + V.dot(inertia(x.I, b) @ V), mass + x.I[b, 0]

    energy, mass = for_range(x.n_bodies, body, 0.0, 0.0)
    square = energy / mass
    _keep(x, at, square, step)
    x.measured[at + 2] = where(square < REST * REST, x.measured[at + 2], step)


def _fastest(x: Any, at: Any, step: Scalar) -> None:
    """Square of the largest speed of a centre of mass, its step, and number of the body."""

    def body(b: Any, most: Scalar, which: Scalar) -> tuple[Scalar, Scalar]:
        m = x.I[b, 0]
        u = (inertia(x.I, b) @ motion(x.V, b)).lin * where(m > 0.0, 1.0 / where(m > 0.0, m, 1.0), 0.0)
        square = u.dot(u)
        faster = square > most
        return where(faster, square, most), where(faster, 0.0 + b, which)

    most, which = for_range(x.n_bodies, body, x.measured[at], x.measured[at + 2])
    _keep(x, at, most, step)
    x.measured[at + 2] = which
