"""Is the referee right? Every mistake of mutations/ on every robot of example-robot-data, and what is named.

python benchmarks/referee.py                        all robots, as URDF and as MJCF
python benchmarks/referee.py --robot panda --urdf   one robot, as URDF only
python benchmarks/referee.py --cause mass-density -v
python benchmarks/referee.py --manual               writes the tables of the manual, docs/referee_table.inc

A mutant is right if the referee names its cause and its element. "or" means that another cause makes the same
file: the referee names both. The unchanged robots must have no finding.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from measure import ROOT, commit, machine, prepare_to_measure
from mutations import MUTATIONS, Mutant, Mutation
from mutations.natives import NATIVES
from mutations.wholes import fixed_links, merged

import robokit as rk
from robokit.formats.description import Description
from robokit.mjcf import to_mjcf
from robokit.model.geometry import Mesh
from robokit.parity import referee
from robokit.parity.referee import compare_descriptions, read_description
from robokit.robot_names import example_files
from robokit.urdf import build, check_urdf, dump
from robokit.urdf.description import RobotDescription
from robokit.urdf.mesh_files import Resolver
from robokit.urdf.write import write

SEED = 20261122


@dataclass
class Row:
    """One comparison."""

    robot: str
    cause: str
    format: str
    element: str
    right: bool = False
    first: bool = False
    alone: bool = False
    skipped: str = ""
    said: str = ""


def text_of(description: RobotDescription, extension: str = "") -> str:
    """The URDF of a description, with more XML at its end."""
    refused: list[str] = []
    return write(description, refused).replace("</robot>", extension + "</robot>")


_SIDES: dict[str, Description] = {}


def _read(path: Path) -> Description:
    """A's side, read once as long as its text is the same."""
    text = path.read_text(encoding="utf-8")
    if text not in _SIDES:
        _SIDES.clear()
        _SIDES[text] = read_description(path)
    return _SIDES[text]


def judged(mutation: Mutation, mutant: Mutant, a: Path, b: Path, format: str, name: str) -> Row:
    """The row of one comparison."""
    row = Row(name, mutation.cause, format, mutant.element)
    verdict = compare_descriptions(_read(a), read_description(b), mutant.base)
    for finding in verdict.findings:
        named = (finding.name, *finding.instead)
        here = finding.kind == "robot" if not mutant.element else mutant.element in named
        if here and mutation.cause in (finding.cause, *finding.also):
            row.right = True
            row.first = row.first or finding.cause == mutation.cause
    row.alone = row.right and len(verdict.findings) == 1
    row.said = "; ".join(f"{f.name}: {f.cause} {f.also or ''}" for f in verdict.findings[:3])
    return row


def mjcf_of(description: RobotDescription, folder: Path, base: str, path: Path) -> rk.Robot:
    """Write a description as MJCF; returns its robot."""
    robot = build(description, base, Resolver(folder))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        to_mjcf(robot, path, visuals=False)
    return robot


def _built(description: RobotDescription, folder: Path) -> rk.Robot:
    return build(description, _base(description), Resolver(folder))


def changed(a: rk.Robot, b: rk.Robot) -> bool:
    """Whether a mistake over inertias is left in the bodies after fixed links are merged."""
    if a.nbodies != b.nbodies:
        return True
    for I, J in zip(a.tree.I[1:], b.tree.I[1:], strict=True):
        one, two = (np.r_[x.m, [*x.h], np.ravel(x.Ibar.full().rows)].astype(float) for x in (I, J))
        parts = (slice(0, 1), slice(1, 4), slice(4, 13))
        if any(np.abs(one[p] - two[p]).max() > 1e-4 * max(np.abs(one[p]).max(), 1e-300) for p in parts):
            return True
    return False


def rows_of(file: Path, formats: tuple[str, ...], causes: set[str], scratch: Path) -> Iterator[Row]:
    """All comparisons of one robot."""
    description, _ = check_urdf(file, "either")
    if description is None or not description.links:
        return
    # Beside the robot's own meshes by absolute name: the mutants lie elsewhere.
    resolver = Resolver(file.parent)
    description = _absolute(description, resolver)
    light = _without_meshes(description)  # MuJoCo would read every mesh for each of a hundred mutants
    a = scratch / "a.urdf"
    yield from unchanged(description, file, formats, scratch)
    for mutation in MUTATIONS:
        if causes and mutation.cause not in causes:
            continue
        whole = description if mutation.cause.startswith(("mesh", "shape")) else light
        for format in formats:
            if format == "MJCF" and not mutation.mjcf:
                continue
            rng = np.random.default_rng(SEED)
            row = None
            for tries, mutant in enumerate(mutation.make(whole, rng)):
                first = mutant.a or whole
                a.write_text(text_of(first), encoding="utf-8")
                row = one(mutation, mutant, first, file, a, format, scratch)
                if not row.skipped or tries >= 20:
                    break
            if row is not None:
                yield row
    if "MJCF" in formats:
        a.write_text(text_of(light), encoding="utf-8")
        for native in NATIVES:
            if causes and native.cause not in causes:
                continue
            row = Row(file.stem, native.cause, "MuJoCo", "")
            mjcf = scratch / "native.xml"
            try:
                mjcf_of(light, file.parent, native.base or _base(light), mjcf)
                made = native.make(mjcf.read_text(encoding="utf-8"), light)
                if made is None:
                    continue
                text, mutant = made
                mjcf.write_text(text, encoding="utf-8")
                row = judged(Mutation(native.cause, None), mutant, a, mjcf, "MuJoCo", file.stem)  # type: ignore[arg-type]
            except rk.RobokitError as refusal:
                row.skipped = str(refusal).split("\n")[0]
            yield row


def one(mutation, mutant, first, file, a, format, scratch) -> Row:
    """The comparison of one mutant in one format."""
    row = Row(file.stem, mutation.cause, format, mutant.element)
    b = scratch / ("b.urdf" if format == "URDF" else "b.xml")
    try:
        if format == "URDF":
            b.write_text(text_of(mutant.b, mutant.extension), encoding="utf-8")
        else:
            robot = mjcf_of(mutant.b, file.parent, _base(first), b)
            if mutation.kind == "inertia" and not changed(_built(first, file.parent), robot):
                row.skipped = "not seen in the merged bodies"
                return row
            if mutation.cause == "total-mass" and robot.nbodies < 3:
                row.skipped = "one body is no whole robot"
                return row
        return judged(mutation, mutant, a, b, format, file.stem)
    except (rk.RobokitError, AssertionError, KeyError) as refusal:
        row.skipped = str(refusal).split("\n")[0] or type(refusal).__name__
        return row


def unchanged(description, file, formats, scratch) -> Iterator[Row]:
    """The robot beside itself: the same file, written by robokit, as MJCF, one fixed link merged rightly."""
    a, b, mjcf = scratch / "a.urdf", scratch / "b.urdf", scratch / "b.xml"
    a.write_text(text_of(description), encoding="utf-8")
    pairs = [("URDF", file, file), ("URDF", a, b)]
    if "MJCF" in formats:
        pairs += [("MJCF", a, mjcf)]
    for format, x, y in pairs:
        row = Row(file.stem, "(unchanged)", format, "")
        try:
            if format == "MJCF":
                mjcf_of(description, file.parent, _base(description), mjcf)
            elif y == b:
                dump(_built(description, file.parent), b)
            verdict = referee(x, y)
            row.right = row.first = row.alone = verdict.same
            row.said = "; ".join(map(str, verdict.findings[:3]))
        except (rk.RobokitError, AssertionError) as refusal:
            row.skipped = str(refusal).split("\n")[0]
        yield row
    for joint, _, _ in fixed_links(description)[:1]:
        row = Row(file.stem, "(merged rightly)", "URDF", joint.name)
        b.write_text(text_of(merged(description, joint, "right")), encoding="utf-8")
        verdict = referee(a, b)
        row.right = row.first = row.alone = verdict.same
        row.said = "; ".join(map(str, verdict.findings[:3]))
        yield row


def _absolute(description: RobotDescription, resolver: Resolver) -> RobotDescription:
    def named(shape):
        filename = getattr(shape.geometry, "filename", None)
        path = resolver(filename).path if filename else None
        if path is None:
            return shape
        geometry = type(shape.geometry)(str(path), shape.geometry.scale, path)
        return shape._replace(geometry=geometry)

    links = (
        link._replace(visuals=(), collisions=tuple(map(named, link.collisions))) for link in description.links
    )
    return description._replace(links=tuple(links))


def _base(description: RobotDescription) -> str:
    """A robot that hangs on a link "world" is fixed."""
    return "fixed" if any(joint.parent == "world" for joint in description.joints) else "floating"


def _without_meshes(description: RobotDescription) -> RobotDescription:
    links = (
        link._replace(collisions=tuple(s for s in link.collisions if not isinstance(s.geometry, Mesh)))
        for link in description.links
    )
    return description._replace(links=tuple(links))


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--robot", help="part of the file's name")
    parser.add_argument("--cause", action="append", default=[])
    parser.add_argument("--urdf", action="store_true", help="as URDF only")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--manual", action="store_true")
    parser.add_argument("-v", "--verbose", action="store_true", help="show what is not right")
    options = parser.parse_args()
    formats = ("URDF",) if options.urdf else ("URDF", "MJCF")
    start = time.perf_counter()
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder, contextlib.suppress(KeyboardInterrupt):
        for file in example_files():
            if options.robot and options.robot not in file.stem:
                continue
            print(f"{time.perf_counter() - start:6.0f} s  {file.stem}", file=sys.stderr, flush=True)
            for row in rows_of(file, formats, set(options.cause), Path(folder)):
                rows.append(row)
                if options.verbose and not row.right and not row.skipped:
                    print(
                        f"{row.robot} {row.format} {row.cause} {row.element}: said {row.said or 'same'}",
                        flush=True,
                    )
    from mutations.report import lines, manual

    print("\n".join(lines(rows)))
    print(f"{time.perf_counter() - start:.0f} s, {machine()}, {commit()}")
    if options.json:
        Path(options.json).write_text(json.dumps([vars(row) for row in rows], indent=0), encoding="utf-8")
    if options.manual:
        (ROOT / "docs" / "referee_table.inc").write_text(manual(rows), encoding="utf-8")


if __name__ == "__main__":
    prepare_to_measure()
    main()
