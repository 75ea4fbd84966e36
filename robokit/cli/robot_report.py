"""What the commands print about a robot: plain lines of at most 80 columns."""

from __future__ import annotations

import math
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from robokit.cli.plumbing import counted
from robokit.disk_cache import Entry
from robokit.model.parts import Joint
from robokit.model.robot import Robot
from robokit.model.sparsity import ltdl_counts

WIDTH = 80


def wrapped(words: Iterable[str], indent: str = "  ") -> Iterator[str]:
    """Words separated by two blanks, in lines of at most 80 columns."""
    line = indent
    for word in words:
        if len(line) + len(word) > WIDTH and line.strip():
            yield line.rstrip()
            line = indent
        line += word + "  "
    if line.strip():
        yield line.rstrip()


def describe(robot: Robot) -> Iterator[str]:
    """A robot in words: sizes, mass, the numbered tree with lambda, mu and nu, joints and limits."""
    tree = robot.tree
    title = f"{robot.name}  ({robot.source})"
    if len(title) <= WIDTH:
        yield title
    else:
        yield from _sentence(robot.name, "")
        yield f"  {_tail(robot.source, WIDTH - 2)}"
    sizes = f"{counted(robot.nbodies, 'moving body')}, {counted(len(robot.links), 'link')}"
    yield f"  {robot.base} base, {sizes}, nq {robot.nq}, nv {robot.nv}"
    fixed = sum(link.mass for link in robot.links if link.body == 0)
    parts = f": {robot.total_mass:.4g} kg move, {fixed:.4g} kg are fixed to the world" if fixed else ""
    yield f"  mass {robot.total_mass + fixed:.4g} kg{parts}"
    yield ""
    yield "Tree: body i has parent lambda(i), children mu(i) and subtree nu(i)"
    rows = []
    for i in range(tree.n + 1):
        rows.append(
            (
                str(i),
                "-" if i == 0 else str(tree.parent[i]),
                _shortened(", ".join(map(str, tree.children[i])) or "-", 12),
                _span(tree.subtree[i]),
                f"{tree.I[i].m:.4g}" if i or robot.base == "fixed" else "-",
                _shortened(robot.body_name(i), 32),
            )
        )
    yield from _table(("i", "lambda", "mu", "nu", "kg", "body"), rows, "rrllrl")
    yield ""
    yield "Joints (radians, metres; - means no limit)"
    rows = [
        (
            str(joint.body),
            joint.kind,
            _interval(joint),
            _limit(joint.effort),
            _limit(joint.velocity),
            _shortened(joint.name, 34),
        )
        for joint in robot.joints
    ]
    yield from _table(("i", "kind", "range", "effort", "speed", "joint"), rows, "rllrrl")
    for loop in robot.loop_joints:
        yield from _sentence(
            f"loop joint {loop.number}: {loop.name}, {loop.kind}, p = {tree.predecessor[loop.number]} "
            + (f"({loop.predecessor}), s = {tree.successor[loop.number]} ({loop.successor})")
        )
    mimics = [j for j in robot.body_joints if j.mimic is not None]
    for joint in mimics:
        assert joint.mimic is not None
        m = joint.mimic
        law = f"{m.multiplier:g} * q + {m.offset:g}"
        own = "coupled" if joint in robot.mimic_joints else "a coordinate of its own"
        yield from _sentence(f"{joint.name} mimics {m.joint}: {law} ({own})")
    damped = [j for j in robot.joints if j.damping or j.friction]
    if damped:
        yield f"  {counted(len(damped), 'joint')} with damping or friction, which act in simulations"
    geared = [j for j in robot.body_joints if j.armature]
    if geared:
        yield f"  {counted(len(geared), 'joint')} with the inertia of a motor's rotor, in H and all dynamics"
    findings = [d for d in robot.diagnostics if d.severity != "note"]
    if findings:
        yield f"  {counted(len(findings), 'warning')}: robokit check lists them"


def sparsity_lines(robot: Robot) -> Iterator[str]:
    """Zeros of H and exact operation counts of its factorisation and solve."""
    counts = ltdl_counts(robot.dof_parent)
    pattern = robot.inertia_pattern
    n = robot.nv
    head = f"{robot.name}, {robot.base} base"
    yield f"{head}: H is {n} x {n}, {np.mean(~pattern):.0%} zeros" if n else f"{head}: nothing moves"
    if n:
        yield "  factorisation " + _saving(counts["factorise_dense"], counts["factorise"])
        yield "  solve         " + _saving(counts["solve_dense"], counts["solve"])


def cache_room(entries: Sequence[Entry]) -> str:
    """The number of files and their size together."""
    size = sum(entry.size for entry in entries) / 1e6
    return f"{counted(len(entries), 'file')}, {size:.2f} MB"


def cache_lines(where: Path, entries: Sequence[Entry]) -> Iterator[str]:
    """The folder of compiled code: number and size of its files, and the kernels in them."""
    yield str(where)
    yield "  " + cache_room(entries)
    if not entries:
        return
    yield ""
    files, sizes = Counter[tuple[str, str]](), Counter[str]()
    for entry in entries:
        name = entry.kernel or "(unknown)"
        files[name, entry.part] += 1
        sizes[name] += entry.size
    rows = [
        (name, str(files[name, "single"] or "-"), str(files[name, "batch"] or "-"), f"{size / 1e6:.2f}")
        for name, size in sizes.most_common()
    ]
    yield from _table(("kernel", "single", "batch", "MB"), rows, "lrrr")


def _saving(dense: float, sparse: float) -> str:
    ratio = f"{dense / sparse:.1f}x" if sparse else "nothing to do"
    return f"{dense} multiply-adds dense, {sparse} in the tree's sparsity: {ratio}"


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]], align: str) -> Iterator[str]:
    widths = [max(len(row[k]) for row in [head, *rows]) for k in range(len(head))]
    for row in [head, *rows]:
        cells = (
            cell.rjust(w) if a == "r" else cell.ljust(w)
            for cell, w, a in zip(row, widths, align, strict=True)
        )
        line = ("  " + "  ".join(cells)).rstrip()
        yield line if len(line) <= WIDTH else line[: WIDTH - 3] + "..."


def _sentence(text: str, indent: str = "  ") -> list[str]:
    """Text in lines of at most 80 columns; a name is broken only if it alone is longer."""
    return textwrap.wrap(text, WIDTH, initial_indent=indent, subsequent_indent="    ", break_on_hyphens=False)


def _tail(path: str, width: int) -> str:
    """A path, shortened at its start: the end tells it from others."""
    return path if len(path) <= width else "..." + path[3 - width :]


def _span(nu: range) -> str:
    return str(nu.start) if len(nu) == 1 else f"{nu.start}..{nu.stop - 1}"


def _shortened(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 3] + "..."


def _limit(value: float) -> str:
    return f"{value:.4g}" if math.isfinite(value) else "-"


def _interval(joint: Joint) -> str:
    if not (math.isfinite(joint.lower) or math.isfinite(joint.upper)):
        return "-"
    return f"{joint.lower:.3g} .. {joint.upper:.3g}"
