"""The tree: what each joint hangs on, the body that each fixed link is fixed to, and the root."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from robokit.parity.causes.finding import Finding
from robokit.parity.causes.pairing import Pairing, Tree, grouped, is_static, root_group
from robokit.parity.sides.side import WORLD, Side, SideJoint, parents_first, turned_round


def counterpart(pairing: Pairing, g: int) -> int | None:
    """The group of B that a group of A is part of: its own, or that of the nearest body that it hangs on."""
    while g >= 0 and g not in pairing.groups:
        g = pairing.a.parent[g]
    return pairing.groups.get(g)


def known(pairing: Pairing, h: int) -> int | None:
    """The group of B with a counterpart that a group of B is part of, likewise."""
    found = set(pairing.groups.values())
    while h >= 0 and h not in found:
        h = pairing.b.parent[h]
    return h if h >= 0 else None


def tree_findings(pairing: Pairing) -> Iterator[Finding]:
    """One finding for each joint that hangs on another body, and each link that is fixed to another one.

    Bodies that only one side has, such as those at a joint that the other has welded, count as part of the
    nearest body that they hang on.
    """
    a, b = pairing.a, pairing.b
    for g, joint in enumerate(a.carrier):
        h = pairing.groups.get(g)
        if joint is None or h is None or a.parent[g] < 0 or b.parent[h] < 0:
            continue
        ours, theirs = counterpart(pairing, a.parent[g]), known(pairing, b.parent[h])
        if ours is not None and theirs is not None and ours != theirs:
            text = f"B hangs it on {_named(b, theirs)}; A on {joint.parent!r}"
            line = joint.written.line if joint.written else 0
            yield Finding("joint-parent", "joint", joint.name, line, text)
    for name, (body, _) in pairing.direct.items():
        link = a.side.bodies[name]
        if link.static or b.side.bodies[body].static != is_static(b, b.group[body]):
            continue
        ours, theirs = counterpart(pairing, a.group[name]), known(pairing, b.group[body])
        if ours is not None and theirs is not None and ours != theirs:
            into = a.into.get(name)
            on = f"{into.parent!r}" if into is not None and not into.moves else _named(a, a.group[name])
            text = f"B has it on {_named(b, theirs)}; A on {on}"
            line = into.written.line if into is not None and into.written else link.line
            yield Finding("link-on-another-body", "link", name, line, text)


def _named(tree: Tree, g: int) -> str:
    """A rigid body by its first link, with the joint that carries it."""
    carrier = tree.carrier[g]
    by = f" (behind {carrier.name!r})" if carrier is not None and carrier.name else ""
    return f"{tree.members[g][0]!r}{by}"


def with_the_same_root(a: Side, b: Side) -> tuple[Side, Finding | None]:
    """B from A's root outwards, and the finding where B's root is another body.

    Where nothing holds the root, the same bodies and joints can be written from another one outwards: so one
    exchanged root is one difference, and not one for each joint on the way.
    """
    ours, theirs = grouped(a), grouped(b)
    g, h = root_group(ours), root_group(theirs)
    root = next((name for name in ours.members[g] if name in b.bodies), None)
    if is_static(ours, g) or root is None or any(theirs.group.get(name) == h for name in ours.members[g]):
        return b, None
    path = _to_the_root(theirs, root)
    old, through = path[-1].parent, next(joint for joint in path if joint.moves)
    text = f"B's root is {old!r}; A's is {root!r}, which hangs in B on {through.name!r}"
    found = Finding("root-differs", "robot", a.name or "robot", 0, text)
    if is_static(theirs, h):
        return b, found
    turned = {id(joint): turned_round(joint) for joint in path}
    joints = [turned.get(id(joint), joint) for joint in b.joints]
    joints = [replace(j, child=root) if j.kind == "floating" and j.child == old else j for j in joints]
    floats = WORLD in b.bodies and b.bodies[WORLD].static
    bodies = parents_first(b.bodies, joints, WORLD if floats else root)
    return replace(b, joints=joints, bodies=bodies), found


def _to_the_root(tree: Tree, name: str) -> list[SideJoint]:
    path = []
    while name in tree.into and not (
        tree.into[name].kind == "floating" and tree.side.is_base(tree.into[name])
    ):
        path.append(tree.into[name])
        name = path[-1].parent
    return path
