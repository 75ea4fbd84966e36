"""What concerns the whole robot: base, gravity, the order of the joints, one factor on every mass."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

import numpy as np

from robokit.conventions import GRAVITY
from robokit.model.geometry import Placement
from robokit.parity.causes.finding import Finding
from robokit.parity.causes.inertial_causes import ROUGH, number
from robokit.parity.causes.pairing import Pairing, held, root_group
from robokit.parity.sides.side import Side, SideJoint

LIKE_DEFAULT = 2e-3
"""Relative difference of a gravity from 9.81 m/s^2 that is only another default, where A says none."""

Text = tuple[str, str]


def whole_findings(
    pairing: Pairing, maps: dict[str, Placement], base: str | None, tolerance: float, notes: list[str]
) -> Iterator[Finding]:
    """Findings of the robot as a whole.

    Args:
        pairing: the two sides.
        maps: link of A -> map from B's world to A's.
        base: what A's base is to be, if the caller says so.
        tolerance: largest relative difference that counts as none.
        notes: gets what is not compared.
    """
    a, b = pairing.a.side, pairing.b.side
    found = [*_base(a, b, base, notes), *_gravity(a, b, tolerance, notes), *_order(pairing, notes)]
    found += _tilt(pairing, maps, base, tolerance)
    for cause, text in found:
        yield Finding(cause, "robot", a.name or "robot", 0, text)
    alone = [name for name, body in a.bodies.items() if not body.gravity and a.format != b.format]
    if alone:
        notes.append(f"A's <gazebo> elements switch gravity off for {len(alone)} links; this is not compared")
    for name, body in a.bodies.items():
        home = pairing.home.get(name)
        if (
            name not in alone
            and home is not None
            and body.mass > 0.0
            and b.bodies[home].gravity != body.gravity
            and not b.bodies[home].static
        ):
            theirs = b.bodies[home].gravity
            text = f"B lets {number(theirs)} of gravity act on it, A {number(body.gravity)}"
            if {theirs, body.gravity} == {0.0, 1.0}:
                text = f"gravity acts on it in {'A, not in B' if body.gravity else 'B, not in A'}"
            yield Finding("gravity-off", "link", name, body.written.line if body.written else 0, text)


def _base(a: Side, b: Side, base: str | None, notes: list[str]) -> Iterator[Text]:
    ours = base or a.base
    both_urdf = a.format == b.format == "URDF"
    if both_urdf and base is None and a.base != b.base:
        if b.base == "fixed":
            yield "base-welded", "B welds the base to a link 'world'; A leaves it to the program"
        elif a.base == "fixed":
            what = "a floating joint" if b.base == "floating" else "nothing: its link 'world' is gone"
            yield "base-freed", f"A welds the base to its link 'world'; B holds it by {what}"
        elif b.base == "floating":
            yield "base-freed", "B holds the base by a floating joint; A leaves it to the program"
        else:
            yield "base-welded", "A's base has a floating joint; B's has none"
    elif ours is not None and b.base is not None and ours != b.base:
        if b.base == "fixed":
            yield "base-welded", "B's base is welded to the world; A's is free"
        else:
            yield "base-freed", "B's base is free; A's is welded to the world"
    elif ours is None and b.base is not None:
        notes.append(f"B's base is {b.base}; A does not say (--base fixed or --base floating compares it)")


def _gravity(a: Side, b: Side, tolerance: float, notes: list[str]) -> Iterator[Text]:
    if b.gravity is None and a.gravity is None:
        return
    if b.gravity is None and a.format != b.format:
        return
    ours = np.array(GRAVITY) if a.gravity is None else a.gravity
    theirs = np.array(GRAVITY) if b.gravity is None else b.gravity
    g = float(np.linalg.norm(ours))
    off = float(np.abs(theirs - ours).max())
    if off <= (LIKE_DEFAULT if a.gravity is None else tolerance) * max(g, 1.0):
        if off > max(tolerance, 1e-6) * g:
            notes.append(f"B's gravity is {_vector(theirs)} m/s^2; A says none, and robokit's is 9.81")
        return
    said = f"{_vector(theirs)} for {_vector(ours)} m/s^2"
    if not theirs.any():
        yield "gravity", f"B has no gravity: {said}"
    elif float(np.abs(theirs + ours).max()) <= 1e-3 * g:
        yield "gravity", f"B's gravity points up: {said}"
    elif abs(float(np.linalg.norm(theirs)) - g) <= LIKE_DEFAULT * g:
        yield "gravity", f"B's gravity points elsewhere: {said}"
    else:
        yield "gravity", f"B's gravity has another strength: {said}"


def _tilt(pairing: Pairing, maps: dict[str, Placement], base: str | None, tolerance: float) -> Iterator[Text]:
    """Whether a fixed base is turned against gravity."""
    a = pairing.a
    root = a.members[root_group(a)][0]
    if not held(pairing, base):
        return
    down = pairing.b.side.gravity if pairing.b.side.gravity is not None else np.array(GRAVITY)
    off = float(np.linalg.norm(maps[root].rotation @ down - down)) / max(float(np.linalg.norm(down)), 1e-300)
    if off > max(10.0 * tolerance, ROUGH):
        angle = math.degrees(2.0 * math.asin(min(1.0, off / 2.0)))
        yield "base-tilted", f"B's base is fixed {number(angle)} deg from where A's is against gravity"


def _vector(v: np.ndarray) -> str:
    return " ".join(number(float(x) + 0.0) for x in v)


def _order(pairing: Pairing, notes: list[str]) -> Iterator[Text]:
    a, b = pairing.a.side, pairing.b.side
    ours = {id(theirs): name for name, theirs in pairing.joints.items()}
    theirs = [ours[id(joint)] for joint in b.movable if id(joint) in ours]
    kept = set(theirs)
    movable = [joint for joint in a.movable if joint.name in kept]
    written = [joint.name for joint in movable]
    deep, broad = _deep(a, kept), _broad(a, movable)
    if theirs == written:
        return
    if theirs == deep:  # as tree walks give them, and as writers write them
        if a.format == b.format:
            notes.append("B writes the joints depth first, A in another order; programs number them alike")
        return
    known = {
        "breadth first": broad,
        "alphabetical": sorted(written),
        "reversed": written[::-1],
    }
    how = next((name for name, order in known.items() if order == theirs), "")
    k, (mine, other) = next(
        (k, pair) for k, pair in enumerate(zip(written, theirs, strict=True)) if pair[0] != pair[1]
    )
    said = f" ({how})" if how else ""
    text = f"B's joints come in another order{said}: number {k + 1} is {other!r}, in A {mine!r}"
    if "through" in b.format:
        notes.append(f"{text}; match by name")
    else:
        yield "joint-order", text


def _deep(side: Side, kept: set[str]) -> list[str]:
    into = side.into()
    names = (into[name].name for name in side.bodies if name in into)
    return [name for name in names if name in kept]


def _broad(side: Side, movable: list[SideJoint]) -> list[str]:
    into = side.into()
    depth: dict[str, int] = {}
    for name in side.bodies:
        joint = into.get(name)
        depth[name] = 0 if joint is None else depth[joint.parent] + 1
    return [joint.name for joint in sorted(movable, key=lambda joint: depth[joint.child])]


def shared_factor(findings: list[Finding], massive: int) -> list[Finding]:
    """The findings with one of the robot in the place of a factor that every mass has."""
    scaled = [f for f in findings if f.cause == "mass-scaled"]
    if massive < 2 or len(scaled) < 0.8 * massive:
        return findings
    count = Counter(f.text.partition(":")[0] for f in scaled)
    text, most = count.most_common(1)[0]
    if most < 0.8 * massive:
        return findings
    rest = [f for f in findings if f not in scaled or f.text.partition(":")[0] != text]
    what = text.removeprefix("B's ")
    whole = Finding("total-mass", "robot", "robot", 0, f"all {most} links: B's {what}")
    return [whole, *rest]
