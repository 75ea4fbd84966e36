"""Checked links and joints become a Robot: bodies numbered depth first, fixed joints folded.

Source: RBDA section 4.1 (regular numbering); seeds 003 (connectivity).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from operator import add

import numpy as np

from robokit.arguments import one_of
from robokit.conventions import FLOATING_BASE, SNAP, WORLD
from robokit.errors import Diagnostic, ModelError, UnknownName
from robokit.model.arguments import finite
from robokit.model.drafts import JointDraft, LinkDraft, LoopDraft, snapped
from robokit.model.geometry import Placement, product_of_rows, turned_by_rows
from robokit.model.joints import JOINT_TABLE, NO_JOINT, JointModel
from robokit.model.parts import Joint, Link, LoopJoint
from robokit.model.robot import Robot
from robokit.model.tree import Tree, depth_first
from robokit.spatial import Matrix3, RigidInertia, Symmetric3, Transform, Vector3

BASES = ("fixed", "floating")
_HERE = Placement()  # of a link whose frame is its body's
_UPRIGHT = _HERE.rotation.tolist()
_IDENTITY = Matrix3.identity()


def assemble(
    name: str,
    source: str,
    links: Mapping[str, LinkDraft],
    joints: Mapping[str, JointDraft],
    loops: Mapping[str, LoopDraft],
    base: str,
    diagnostics: Sequence[Diagnostic],
    gravity: Sequence[float] | None,
) -> Robot:
    """Number the bodies and fold the fixed joints: what ``ModelBuilder.build`` does, with its errors.

    Args:
        name: of the robot.
        source: file that it came from, or "<code>".
        links, joints, loops: drafts by name, in document order.
        base: "fixed" or "floating".
        diagnostics: findings that the robot carries along.
        gravity: (3,) in world axes [m/s^2]; (0, 0, -9.81) if None.
    """
    one_of("base", base, BASES)
    order, incoming = _walk(name, links, joints, loops)
    root = order[0]

    # Bodies: each movable joint opens one; a link behind a fixed joint joins its parent's.
    parent = [-1]
    body_names = [WORLD if base == "floating" else root]
    models = [NO_JOINT]
    XT = [Transform.identity()]
    frame: dict[str, tuple[int, Placement]] = {}
    movable: list[JointDraft] = []
    known: dict[tuple, JointModel] = {}
    if base == "floating":
        if FLOATING_BASE in joints:
            raise ModelError(f"the joint name {FLOATING_BASE!r} belongs to the floating base; rename it")
        movable.append(
            JointDraft(
                FLOATING_BASE,
                "floating",
                WORLD,
                root,
                Placement(),
                np.array([1.0, 0, 0]),
                0.0,
                -math.inf,
                math.inf,
                math.inf,
                math.inf,
                0.0,
                0.0,
                None,
            )
        )
        parent.append(0)
        body_names.append(root)
        models.append(JointModel(JOINT_TABLE["floating"], Vector3(1.0, 0.0, 0.0)))
        XT.append(Transform.identity())
        frame[root] = (1, _HERE)
    else:
        frame[root] = (0, _HERE)
    for child in order[1:]:
        draft = incoming[child]
        body, placement = frame[draft.parent]
        rows, shift = draft.placement.rotation.tolist(), draft.placement.position.tolist()
        if placement is not _HERE:
            R, p = placement.rotation.tolist(), placement.position.tolist()
            rows, shift = product_of_rows(R, rows), list(map(add, turned_by_rows(R, shift), p))
        rows = _UPRIGHT if rows == _UPRIGHT else [snapped(row) for row in rows]
        shift = [0.0 if abs(x) < SNAP else x for x in shift]
        if draft.kind == "fixed":
            frame[child] = (body, Placement(np.array(rows), np.array(shift)))
            continue
        movable.append(draft)
        parent.append(body)
        body_names.append(child)
        key = (draft.kind, *draft.axis.tolist(), draft.pitch)
        if key not in known:  # most joints of a robot turn about the same few axes
            known[key] = JointModel(JOINT_TABLE[draft.kind], Vector3(*key[1:4]), draft.pitch)
        models.append(known[key])
        XT.append(
            Transform(_IDENTITY if rows is _UPRIGHT else Matrix3(zip(*rows, strict=True)), Vector3(*shift))
        )
        frame[child] = (len(parent) - 1, _HERE)

    inertia: list[RigidInertia | None] = [None] * len(parent)
    placed_links = []
    for link in links.values():
        body, placement = frame[link.name]
        own, before = _body_inertia(link, placement), inertia[body]
        total = own if before is None else before + own
        if not _is_finite(total):
            raise ModelError(
                f"link {link.name!r}: its mass {link.mass:g} kg and inertia are too large to be added to "
                f"those of body {body_names[body]!r}: the sum is not finite"
            )
        inertia[body] = total
        placed_links.append(_link(link, body, placement))
    g = Tree.gravity if gravity is None else tuple(finite("gravity", gravity, (3,)).tolist())
    tree = Tree(
        parent=tuple(parent),
        loops=tuple((frame[p.predecessor][0], frame[p.successor][0]) for p in loops.values()),
        joint=tuple(models),
        XT=tuple(XT),
        I=tuple(RigidInertia.zero() if I is None else I for I in inertia),
        gravity=g,  # type: ignore[arg-type]
        name=tuple(body_names),
        armature=_rotors(movable),
    )
    return Robot(
        name=name,
        base=base,
        tree=tree,
        joints=tuple(_joint(d, i, tree.q_slice[i], tree.v_slice[i]) for i, d in enumerate(movable, 1)),
        links=tuple(placed_links),
        fixed_joints=tuple(
            _joint(d, frame[d.child][0], slice(0, 0), slice(0, 0))
            for d in joints.values()
            if d.kind == "fixed"
        ),
        loop_joints=tuple(
            LoopJoint(
                d.name,
                d.kind,
                tree.n + k,
                d.predecessor,
                d.successor,
                d.predecessor_placement,
                d.successor_placement,
                d.axis,
                d.pitch,
            )
            for k, d in enumerate(loops.values(), 1)
        ),
        diagnostics=list(diagnostics),
        source=source,
    )


def _walk(
    model: str,
    links: Mapping[str, LinkDraft],
    joints: Mapping[str, JointDraft],
    loops: Mapping[str, LoopDraft],
) -> tuple[list[str], dict[str, JointDraft]]:
    """Links depth first from the root, and the joint that leads to each."""
    if not links:
        raise ModelError(f"model {model!r} has no link; add at least one")
    incoming: dict[str, JointDraft] = {}
    for joint in joints.values():
        for end in (joint.parent, joint.child):
            if end not in links:
                raise UnknownName("link", end, links, f"(joint {joint.name!r})")
        if joint.child in incoming:
            raise ModelError(
                f"link {joint.child!r} has two parents, joints {incoming[joint.child].name!r} and "
                f"{joint.name!r}; a loop is closed with loop_joint"
            )
        incoming[joint.child] = joint
    for loop in loops.values():
        for end in (loop.predecessor, loop.successor):
            if end not in links:
                raise UnknownName("link", end, links, f"(loop joint {loop.name!r})")
    roots = [name for name in links if name not in incoming]
    if len(roots) != 1:
        found = (
            f"{len(roots)} ({', '.join(map(repr, roots[:5]))})" if roots else "none: the joints form a cycle"
        )
        raise ModelError(f"model {model!r} needs one root link, found {found}")
    # Children in the order of the joints, as they were added.
    names = [roots[0], *incoming]
    number = {name: k for k, name in enumerate(names)}
    order = depth_first([-1, *(number[joint.parent] for joint in incoming.values())])
    if len(order) != len(links):
        lost = sorted(set(links) - {names[k] for k in order})
        raise ModelError(f"links {', '.join(map(repr, lost[:5]))} form a cycle that the root does not reach")
    return [names[k] for k in order], incoming


def _rotors(movable: Sequence[JointDraft]) -> tuple[tuple[float, ...], ...]:
    """The armature of each body's joint by dof; empty where no joint has any."""
    if not any(d.armature for d in movable):
        return ()
    return ((), *((d.armature,) * JOINT_TABLE[d.kind].nv for d in movable))


def _link(d: LinkDraft, body: int, placement: Placement) -> Link:
    if d.make_shapes is None:
        return Link(d.name, body, placement, d.mass, d.com, d.inertia, d.visuals, d.collisions)
    return Link.with_shapes_later(
        d.make_shapes, name=d.name, body=body, placement=placement, mass=d.mass, com=d.com, inertia=d.inertia
    )


def _joint(d: JointDraft, body: int, q_slice: slice, v_slice: slice) -> Joint:
    return Joint(
        d.name,
        d.kind,
        body,
        q_slice,
        v_slice,
        d.axis,
        d.pitch,
        d.lower,
        d.upper,
        d.effort,
        d.velocity,
        d.damping,
        d.friction,
        d.mimic,
        d.parent,
        d.child,
        d.placement,
        d.safety,
        d.calibration,
        d.armature,
    )


def _body_inertia(link: LinkDraft, placement: Placement) -> RigidInertia:
    c, Ic = link.com.tolist(), link.inertia.tolist()
    if placement is not _HERE:
        R, p = placement.rotation.tolist(), placement.position.tolist()
        c = map(add, turned_by_rows(R, c), p)
        Ic = product_of_rows(product_of_rows(R, Ic), tuple(zip(*R, strict=True)))
    (xx, xy, xz), (_, yy, yz), (_, _, zz) = Ic
    # RigidInertia.about_com in plain floats, to the bit: a third of its time.
    m, (x, y, z) = link.mass, c
    hx, hy, hz = x * m, y * m, z * m
    sx, sy, sz = x * 0.5, y * 0.5, z * 0.5
    px, py, pz = hx * x, hy * y, hz * z
    about_frame = Symmetric3(
        xx + (py + pz),
        yy + (px + pz),
        zz + (px + py),
        xy - (hx * sy + hy * sx),
        xz - (hx * sz + hz * sx),
        yz - (hy * sz + hz * sy),
    )
    return RigidInertia(m, Vector3(hx, hy, hz), about_frame)


def _is_finite(inertia: RigidInertia) -> bool:
    """Whether all ten numbers are; their sum says so at once unless it overflows by itself."""
    h, I = inertia.h, inertia.Ibar
    total = inertia.m + h.x + h.y + h.z + I.xx + I.yy + I.zz + I.xy + I.xz + I.yz
    return math.isfinite(total) or all(map(math.isfinite, (inertia.m, *h, *I)))
