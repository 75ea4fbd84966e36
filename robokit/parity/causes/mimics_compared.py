"""Mimic laws: dropped, changed, or at work together with an actuator."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from robokit.parity.causes.finding import Finding
from robokit.parity.causes.inertial_causes import ROUGH, number
from robokit.parity.causes.limit_causes import near
from robokit.parity.causes.pairing import Pairing
from robokit.parity.sides.side import Law, Relation, Side, SideJoint

Found = tuple[str, str]


def mimic_findings(pairing: Pairing, tolerance: float) -> Iterator[Finding]:
    """One finding for each joint whose law differs, and each relation that only B has.

    Straight laws are linear equations between joints. A law is the same if it follows from the other side's
    equations, whichever of them is written, in which direction, through which other joints or tendon.
    """
    a, b = pairing.a.side, pairing.b.side
    back = {theirs.name: mine for mine, theirs in pairing.joints.items()}
    ours, theirs = Couplings(a, {}, tolerance), Couplings(b, back, tolerance)
    ends = {joint.name: joint for joint in a.joints}, {joint.name: joint for joint in b.joints}
    told = set()
    for joint in a.movable:
        other = pairing.joints.get(joint.name)
        if other is None or joint.laws is None or other.laws is None:
            continue
        line = joint.written.mimic.line if joint.written and joint.written.mimic else 0
        line = line or (joint.written.line if joint.written else 0)
        found = [*_driven_twice(joint, other)]
        curved = [law for law in other.laws if _resolved(law, ends[1]).curve]
        if curved:
            found.append(("mimic-curved", f"B's law is no straight line: {_power_series(curved[0])}"))
        elif not (theirs.hold(ours.of(joint)) and ours.hold(theirs.of(other))):
            found += _one(joint, other, *ends, back, theirs.relations, tolerance)
        for cause, text in found:
            told.add(joint.name)
            yield Finding(cause, "joint", joint.name, line, text)
    for relation in b.relations:
        names = [back.get(name, name) for name in relation.factors]
        if not ours.hold([theirs.equation(relation.factors, relation.constant)]) and not told & set(names):
            text = f"{relation.name or 'a tendon'} of B couples {' and '.join(names)}; A does not"
            yield Finding("mimic-added", "joint", names[0], 0, text)


Equation = tuple[dict[str, float], float]
"""Factors of joints, by A's names, and the constant that the sum is."""


class Couplings:
    """The linear equations between the joints of a side.

    Args:
        side: the description.
        names: name of its joint -> name in A.
        tolerance: largest relative difference that counts as none.
    """

    def __init__(self, side: Side, names: dict[str, str], tolerance: float) -> None:
        self.names, self.tolerance, self.relations = names, tolerance, side.relations
        self.fixed = {joint.name for joint in side.joints if not joint.moves and joint.name}
        self.equations = [equation for joint in side.joints for equation in self.of(joint)]
        self.equations += [self.equation(each.factors, each.constant) for each in side.relations]

    def of(self, joint: SideJoint) -> list[Equation]:
        """The equations that the joint's straight laws are."""
        return [
            self.equation({joint.name: 1.0, law.leader: -law.multiplier}, law.offset)
            for law in joint.laws or ()
            if not law.curve
        ]

    def equation(self, factors: dict[str, float], constant: float) -> Equation:
        """An equation with A's names; fixed joints stand at zero."""
        kept = {n: x for n, x in factors.items() if n and x and n not in self.fixed}
        return {self.names.get(n, n): x for n, x in kept.items()}, constant

    def hold(self, equations: list[Equation]) -> bool:
        """Whether equations follow from those of this side."""
        return all(self._follows(*equation) for equation in equations)

    def _follows(self, factors: dict[str, float], constant: float) -> bool:
        names = sorted({name for equation in (*self.equations, (factors, 0.0)) for name in equation[0]})
        if not self.equations:
            return False
        rows = np.array([[own.get(name, 0.0) for name in names] for own, _ in self.equations])
        sums = np.array([sum_ for _, sum_ in self.equations])
        wanted = np.array([factors.get(name, 0.0) for name in names])
        weights = np.linalg.lstsq(rows.T, wanted, rcond=None)[0]
        off = np.abs(weights @ rows - wanted)
        ours = float(weights @ sums)
        # 2: an equation and its reverse are each within the tolerance of their own multiplier.
        straight = bool(
            (off <= 2.0 * self.tolerance * np.abs(wanted) + 1e-12 * np.abs(wanted).max(initial=0.0)).all()
        )
        return straight and abs(ours - constant) <= 2.0 * self.tolerance * max(abs(constant), 1e-6)


def _power_series(law: Law) -> str:
    terms = enumerate((law.offset, law.multiplier, *law.curve))
    return " + ".join(f"{number(x)} q^{k}" if k > 1 else f"{number(x)} q" if k else number(x)
                      for k, x in terms if x)  # fmt: skip


def _driven_twice(a: SideJoint, b: SideJoint) -> Iterator[Found]:
    assert b.laws is not None
    if a.laws and b.laws:
        if len(b.laws) > 1:
            yield "mimic-twice", f"B drives it twice: {len(b.laws)} mimic laws act on it"
        elif b.drives and not a.drives:
            yield "mimic-twice", "B drives it twice: by its mimic law and by an actuator"


def _one(
    a: SideJoint,
    b: SideJoint,
    ours: dict[str, SideJoint],
    theirs: dict[str, SideJoint],
    back: dict[str, str],
    relations: list[Relation],
    tolerance: float,
) -> Iterator[Found]:
    """Why laws that do not follow from each other differ."""
    assert a.laws is not None and b.laws is not None
    if not a.laws:
        law = b.laws[0]
        yield "mimic-added", f"B {_follows(law)}; A does not"
        return
    law = a.laws[0]
    direct = b.laws[0] if b.laws else _of_a_tendon(b.name, law.leader, relations, back)
    if direct is None:
        yield "mimic-dropped", f"B has no mimic law; in A it follows {law.leader!r}"
        return
    mine, his = _resolved(law, ours), _resolved(direct, theirs)
    leaders = {back.get(his.leader, his.leader), back.get(direct.leader, direct.leader)}
    if law.leader not in leaders and mine.leader not in leaders:
        yield "mimic-leader", f"B {_follows(direct)}; in A it follows {law.leader!r}"
        return
    same_leader = back.get(direct.leader, direct.leader) == law.leader
    other = direct if same_leader else his
    yield from _numbers(law if same_leader else mine, other.multiplier, other.offset, tolerance)


def _follows(law: Law) -> str:
    return f"makes it follow {law.leader!r}" if law.leader else f"holds it at {number(law.offset)}"


def _of_a_tendon(name: str, leader: str, relations: list[Relation], back: dict[str, str]) -> Law | None:
    """The law that a relation of two joints is, where one of them is the leader's counterpart."""
    for relation in relations:
        others = [n for n in relation.factors if n != name]
        own = relation.factors.get(name, 0.0)
        if own and len(others) == 1 and back.get(others[0], others[0]) == leader:
            return Law(others[0], -relation.factors[others[0]] / own, relation.constant / own)
    return None


def _numbers(law: Law, k: float, o: float, tolerance: float) -> Iterator[Found]:
    m, off = law.multiplier, law.offset
    if near(k, m, ROUGH) and (near(o, off, ROUGH) or abs(o - off) <= 1e-12):
        yield "rounded", "B's mimic law is A's rounded"
        return
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
    """The law of the joint at the end of a chain of mimics; a constant where that joint is fixed."""
    seen = set()
    series = np.polynomial.Polynomial([law.offset, law.multiplier, *law.curve])
    leader = law.leader
    while leader in joints and leader not in seen:
        seen.add(leader)
        if not joints[leader].moves:
            leader = ""
            break
        further = joints[leader].laws
        if not further:
            break
        up = further[0]
        series = series(np.polynomial.Polynomial([up.offset, up.multiplier, *up.curve]))
        leader = up.leader
    offset, multiplier, *curve = (
        float(x) for x in [*series.trim().coef, 0.0, 0.0][: max(2, series.trim().degree() + 1)]
    )
    if not leader or not (multiplier or curve):
        return Law("", 0.0, offset)
    return Law(leader, multiplier, offset, tuple(curve))
