"""What goes wrong when a link behind a fixed joint is merged into its parent: candidates for B's body."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from robokit.model.geometry import Placement
from robokit.parity.causes.inertial_candidates import Candidate
from robokit.parity.causes.rigid import Rigid, steiner
from robokit.parity.sides.side import SideBody, SideJoint


def merged(body: SideBody, joint: SideJoint, parent_in_child: Placement) -> Iterator[Candidate]:
    """The link at a wrong pose.

    Args:
        body: the link.
        joint: the fixed joint.
        parent_in_child: pose of the parent link in the link's frame.
    """
    assert joint.written is not None
    own, origin = Rigid(body.mass, body.com, body.inertia), joint.written.origin
    P = origin.placement()
    line = f" of line {origin.line}" if origin.line else ""
    fixed = f"fixed joint {joint.name!r}"
    turned, moved = bool(origin.rotated), any(origin.xyz)
    wrong = []
    if turned and moved:
        wrong.append((f"without the rotation{line} of {fixed}", Placement(np.eye(3), P.position)))
        wrong.append((f"without the position{line} of {fixed}", Placement(P.rotation, np.zeros(3))))
    if turned:
        back = Placement(P.rotation.T, P.position)
        wrong.append((f"with the rotation{line} of {fixed} backwards", back))
    if turned or moved:
        wrong.append((f"as if the origin{line} of {fixed} were zero", Placement()))
    for text, other in wrong:
        yield Candidate("fixed-link-merged-wrongly", f"B merges it {text}", own.at(parent_in_child @ other))


def sums(a: Rigid, own: Rigid, pose: Placement) -> Iterator[tuple[str, Rigid]]:
    """The link added wrongly: what is said of it, and the sum.

    Args:
        a: the parent, in its own axes.
        own: the link, in its own axes.
        pose: of the link in its parent's axes.
    """
    b = own.at(pose)
    right = a + b
    m, c, plain = right.mass, right.com, a.inertia + b.inertia
    of_a, of_b = steiner(a.mass, a.com - c), steiner(b.mass, b.com - c)
    axes = "its parallel-axis term"
    yield f"without {axes}", Rigid(m, c, plain)
    yield f"without {axes}", Rigid(m, c, plain + of_b)
    yield f"without {axes}", Rigid(m, c, plain + of_a)
    yield f"without {axes}, keeping the link's centre of mass", Rigid(m, b.com, plain)
    kept = "keeping its parent's centre of mass"
    yield kept, Rigid(m, a.com, right.inertia)
    yield f"without {axes}, {kept}", Rigid(m, a.com, plain)
    yield f"by its mass alone, {kept}", Rigid(m, a.com, a.inertia)
    yield "without an inertia for it", Rigid(m, c, a.inertia)
    R, p = pose.rotation, pose.position
    turned = "its inertia not turned into the parent's axes"
    yield f"with {turned}", a + Rigid(b.mass, b.com, own.inertia)
    yield f"with {turned} but back", a + Rigid(b.mass, b.com, R.T @ own.inertia @ R)
    yield (
        "with its centre of mass not turned into the parent's axes",
        a + Rigid(b.mass, p + own.com, b.inertia),
    )
    zero = np.zeros(3)
    for inertia in (right.inertia, plain):
        yield "with the centre of mass of the sum at its parent's origin", Rigid(m, zero, inertia)
        yield "with the mean of the two centres of mass", Rigid(m, (a.com + b.com) / 2.0, inertia)
    about = plain + steiner(a.mass, a.com) + steiner(b.mass, b.com)
    yield "with the inertia of the sum about its parent's origin", Rigid(m, c, about)
    yield "twice", right + b
