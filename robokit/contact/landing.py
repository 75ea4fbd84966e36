"""When in a step something lands: its impulse acts then, whole, and not at the middle.

A kick acts at the middle of a step. A contact with the gap phi > 0 and the speed u < 0 of approach before it
is reached a time t = -phi/u later, within the step where t < dt. Of the contacts without restitution that are
reached the first says t. Until then all that it can move goes on with the velocity v before, and the drift
after the kick begins at

    q - s,    s = t (y - v)

So the impulse of an impact is found once, with one direction of friction, whenever in the step it comes.
Other gaps are phi + t u at that time, and have dt - t until the middle of the next step; what is reached so
late goes as far as the surface, and takes the rest of its impulse in the next step.

Source: the motion before and after an impact, one in a step; q at the kick, as in leapfrog.
Cost: O(contacts), about 30 operations each.
"""

from __future__ import annotations

from typing import Any

from robokit.contact.accounts import add
from robokit.contact.constraints.adding import body_velocity, row
from robokit.contact.kinematics import spatial_momentum, velocities
from robokit.contact.vectors import nothing, put, vector
from robokit.engine.loops.fields import once
from robokit.spatial import Motion
from robokit.spatial.control_flow import cond, for_range, while_loop
from robokit.spatial.scalars import maximum, minimum, where


def find_landing(x: Any) -> None:
    """The first landing: ``landing``, its time or 0, and ``landing_contact``, or -1; and what it moves:
    ``part_lands`` is 1 of the parts that contacts connect with it.
    """
    count, dt = minimum(x.counts[0], x.n_contacts), x.dt[0]

    def contact(c: Any, first: Any, which: Any) -> Any:
        u, phi = approach(x, c), x.contact_gap[c]
        reached = (phi > 0.0) & (phi + dt * u < 0.0) & ~(x.pair_restitution[x.contact_pair[c]] > 0.0)
        t = where(reached, phi / where(reached, -u, 1.0), dt)
        return where(t < first, t, first), where(t < first, c, which)

    first, which = for_range(count, contact, dt, -1)
    x.landing[0], x.landing_contact[0] = where(first < dt, first, 0.0), which
    for_range(x.n_parts, lambda p: put(x.part_lands, p, 0))

    def spread(more: Any) -> Any:
        def carry(c: Any, found: Any) -> Any:
            a, b = (x.body_part[x.contact_bodies[c, k]] for k in range(2))
            a, b = where(a < 0, b, a), where(b < 0, a, b)
            before = minimum(x.part_lands[a], x.part_lands[b])
            lands = where(which == c, 1, maximum(x.part_lands[a], x.part_lands[b]))
            x.part_lands[a], x.part_lands[b] = lands, lands
            return where(lands > before, 1, found)

        return for_range(count, carry, 0)

    while_loop(lambda more: more > 0, spread, where(which < 0, 0, 1))


def approach(x: Any, c: Any) -> Any:
    """Velocity along the normal of a contact before the kick [m/s]."""
    p, n = vector(x.contact_place, c, 0), vector(x.contact_frame, c, 6)
    a, b = x.contact_bodies[c, 0], x.contact_bodies[c, 1]
    return row(Motion(p.cross(n), n), body_velocity(x, b) - body_velocity(x, a))


def time_of(x: Any, c: Any) -> Any:
    """Time after the middle at which the kick acts on the bodies of a contact [s]."""
    part = maximum(x.body_part[x.contact_bodies[c, 0]], x.body_part[x.contact_bodies[c, 1]])
    return where(x.part_lands[part] > 0, x.landing[0], 0.0)


def put_back(x: Any) -> None:
    """``drift``: the velocity of the second drift, y less what it is put back over half a step."""
    share = 2.0 * x.landing[0] / x.dt[0]

    def part(p: Any) -> None:
        first, lands = x.part_rows[p, 0], x.part_lands[p] > 0

        def dof(k: Any) -> None:
            j = first + k
            x.drift[j] = where(lands, x.y[j] - share * (x.y[j] - x.v0[j]), x.y[j])

        for_range(x.part_rows[p, 1], dof)

    for_range(x.n_parts, part)


def enter_landing(x: Any) -> None:
    """What gravity takes as the robot is put back, to the energy that contacts take."""

    def taken() -> None:
        for_range(x.nv, lambda j: put(x.d, j, 0.5 * x.dt[0] * (x.y[j] - x.drift[j])))
        once(x, velocities, x.d, x.Vd)
        add(x, "contact", -vector(x.gravity).dot(spatial_momentum(x, x.Vd).lin))

    cond(x.landing_contact[0] < 0, nothing, taken)
