"""Mimic laws: dropped, changed, or at work together with an actuator."""

from __future__ import annotations

import math
from collections.abc import Iterator

from robokit.parity.causes.finding import Finding
from robokit.parity.causes.inertial_causes import number
from robokit.parity.causes.limit_causes import near
from robokit.parity.causes.pairing import Pairing
from robokit.parity.sides.side import Law, SideJoint

Found = tuple[str, str]


def mimic_findings(pairing: Pairing, tolerance: float) -> Iterator[Finding]:
    """One finding for each joint whose law differs."""
    theirs = {joint.name: joint for joint in pairing.b.side.joints}
    ours = {joint.name: joint for joint in pairing.a.side.joints}
    back = {b.name: a for a, b in pairing.joints.items()}
    for joint in pairing.a.side.movable:
        other = pairing.joints.get(joint.name)
        if other is None or joint.laws is None or other.laws is None:
            continue
        line = joint.written.mimic.line if joint.written and joint.written.mimic else 0
        line = line or (joint.written.line if joint.written else 0)
        for cause, text in _one(joint, other, ours, theirs, back, tolerance):
            yield Finding(cause, "joint", joint.name, line, text)


def _one(
    a: SideJoint,
    b: SideJoint,
    ours: dict[str, SideJoint],
    theirs: dict[str, SideJoint],
    back: dict[str, str],
    tolerance: float,
) -> Iterator[Found]:
    assert a.laws is not None and b.laws is not None
    if not a.laws:
        if b.laws and not _reversed(a, b, ours, back, tolerance):
            law = b.laws[0]
            yield "mimic-added", f"B makes it follow {law.leader!r}; A does not"
        return
    law = a.laws[0]
    if not b.laws:
        leader = next((theirs[n] for n, mine in back.items() if mine == law.leader and n in theirs), None)
        if leader is not None and _reversed(ours[law.leader], leader, ours, back, tolerance):
            return
        yield "mimic-dropped", f"B has no mimic law; in A it follows {law.leader!r}"
        return
    if len(b.laws) > 1:
        yield "mimic-twice", f"B drives it twice: {len(b.laws)} mimic laws act on it"
    elif b.drives and not a.drives:
        yield "mimic-twice", "B drives it twice: by its mimic law and by an actuator"
    mine, his = _resolved(law, ours), _resolved(b.laws[0], theirs)
    direct = b.laws[0]
    leaders = {back.get(his.leader, his.leader), back.get(direct.leader, direct.leader)}
    if law.leader not in leaders and mine.leader not in leaders:
        yield "mimic-leader", f"B makes it follow {direct.leader!r}; in A it follows {law.leader!r}"
        return
    k = b.laws[0].multiplier if back.get(direct.leader, direct.leader) == law.leader else his.multiplier
    o = b.laws[0].offset if back.get(direct.leader, direct.leader) == law.leader else his.offset
    if back.get(direct.leader, direct.leader) != law.leader:
        law = mine
    yield from _numbers(law, k, o, tolerance)


def _numbers(law: Law, k: float, o: float, tolerance: float) -> Iterator[Found]:
    m, off = law.multiplier, law.offset
    said = f"{number(k)} for {number(m)}"
    if not near(k, m, tolerance):
        if near(k, -m, tolerance):
            yield "mimic-multiplier", f"B's multiplier is A's negated: {said}"
        elif m and near(k, 1.0 / m, tolerance):
            yield "mimic-inverted", f"B's multiplier is the inverse of A's: {said}"
        elif near(k, m * m, tolerance):
            yield "mimic-twice", f"B applies the multiplier twice: {said}"
        elif near(k, 1.0, tolerance):
            yield "mimic-multiplier", f"B leaves the multiplier out: {said}"
        else:
            yield "mimic-multiplier", f"B's multiplier differs: {said}"
    if not near(o, off, tolerance) and abs(o - off) > 1e-12:
        said = f"{number(o)} for {number(off)}"
        if o == 0.0:
            yield "mimic-offset", f"B leaves the offset out: {said}"
        elif near(o, -off, tolerance):
            yield "mimic-offset", f"B's offset is A's negated: {said}"
        elif any(near(o, off * u, tolerance) for u in (180.0 / math.pi, math.pi / 180.0)):
            yield "mimic-offset", f"B's offset is A's with degrees for radians: {said}"
        else:
            yield "mimic-offset", f"B's offset differs: {said}"


def _resolved(law: Law, joints: dict[str, SideJoint]) -> Law:
    """The law of the joint at the end of a chain of mimics."""
    seen = set()
    while law.leader in joints and law.leader not in seen:
        seen.add(law.leader)
        further = joints[law.leader].laws
        if not further:
            break
        up = further[0]
        law = Law(up.leader, law.multiplier * up.multiplier, law.multiplier * up.offset + law.offset)
    return law


def _reversed(
    a: SideJoint, b: SideJoint, ours: dict[str, SideJoint], back: dict[str, str], tolerance: float
) -> bool:
    """Whether B writes a law of A the other way round: the leader follows the follower."""
    if not b.laws:
        return False
    law = b.laws[0]
    follower = ours.get(back.get(law.leader, law.leader))
    if follower is None or not follower.laws or follower.laws[0].leader != a.name:
        return False
    m, o = follower.laws[0].multiplier, follower.laws[0].offset
    return bool(m) and near(law.multiplier, 1.0 / m, tolerance) and abs(law.offset + o / m) <= tolerance
