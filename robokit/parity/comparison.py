"""Robots compared with what every installed engine makes of their files, and tables of the errors.

compare           one robot
compare_files     many robots, one after the other
table             one robot as lines of text
files_table       many robots as lines of text
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from robokit.dynamics import (
    aba,
    bias_forces,
    center_of_mass,
    centroidal_momentum_matrix,
    crba,
    forward_kinematics,
    rnea,
)
from robokit.dynamics.singular import singular_joint
from robokit.errors import MissingDependency, RobokitError, UrdfError
from robokit.formats.load import load
from robokit.formats.other_programs import one_line, peer_faults
from robokit.formats.read import format_of
from robokit.formats.urdf import robot_text
from robokit.model.builder import ModelBuilder
from robokit.model.parts import Joint
from robokit.model.robot import Robot
from robokit.parity import engines
from robokit.parity.engines import ENGINES, Answering, Answers, State, plain_text, without_other_links
from robokit.stages import stage
from robokit.urdf import dump
from robokit.urdf.xacro import is_xacro

TOLERANCE = 1e-10
"""Largest relative error that counts as agreement."""

QUANTITIES = ("mass", "CoM", "H", "C", "tau", "qdd", "A_G", "rotation", "position")


@dataclass
class Comparison:
    """One engine compared with robokit.

    Attributes:
        engine: name of the engine.
        version: version of its package.
        errors: quantity -> largest relative error.
        failure: why there are no errors; "" if there are.
        imported: whether the engine itself could be imported; if not, ``failure`` says nothing of the file.
        notes: known differences between the engine and robokit that apply to this robot.
        changes: what the engine changed or refused in this file, and what was done about it.
        uncertain: relative error of the accelerations that rounding can cause: H's condition number times
            the machine precision.
    """

    engine: str
    version: str
    errors: dict[str, float] = field(default_factory=dict)
    failure: str = ""
    notes: list[str] = field(default_factory=list)
    changes: list[str] = field(default_factory=list)
    uncertain: float = 0.0
    imported: bool = True

    @property
    def agrees(self) -> bool:
        """Whether the error of every quantity is within its tolerance."""
        return not self.failure and all(e <= self.tolerance(what) for what, e in self.errors.items())

    def tolerance(self, what: str) -> float:
        """Largest relative error of a quantity that counts as agreement."""
        return max(TOLERANCE, self.uncertain) if what == "qdd" else TOLERANCE

    @property
    def worst(self) -> float:
        """The largest of the errors; infinite if the engine cannot load the file."""
        return float("inf") if self.failure else max(self.errors.values(), default=0.0)


def compare(
    path: str | os.PathLike[str],
    robot: Robot,
    states: int = 3,
    seed: int = 0,
    run: str | None = None,
    xacro_args: Mapping[str, str] | None = None,
    package_dirs: Sequence[str | os.PathLike[str]] = (),
) -> list[Comparison]:
    """Compare a robot with the results of the installed engines for its file.

    It compares mass and centre of mass of the moving bodies, mass matrix, bias forces, inverse and forward
    dynamics, centroidal momentum matrix and the pose of every link. The states are random: configurations
    within the joint limits; velocities, accelerations and forces with standard normal distribution. If the
    robot has coupled mimic joints, the engines' results for all joints are projected by its coupling matrix
    G: H_r = G^T H G, tau_r = G^T tau, A_G G, and the accelerations are solved with H_r. Accelerations are not
    compared where H is singular.

    Args:
        path: the URDF.
        robot: the robot that robokit loaded from it.
        states: number of random states; each error is the largest over them.
        seed: seed of the random states.
        run: robokit's own engine, "llvm" or "python", as ``engine`` of :func:`robokit.rnea`.
        xacro_args, package_dirs: as for :func:`robokit.load_urdf`.

    Returns:
        one comparison for each installed engine.

    Example:
        >>> from robokit.parity import compare
        >>> path = rk.find_robot("double_pendulum")
        >>> found = compare(path, rk.load_urdf(path), states=1, run="python")
        >>> all(one.agrees for one in found)  # one comparison for each engine that is installed
        True
    """
    found: list[Comparison] = []
    full = (
        robot
        if robot.coupling is None
        else ModelBuilder.from_robot(robot).build(robot.base, (), tuple(robot.gravity))
    )
    singular = singular_joint(robot)
    # The engines are given a URDF, and of another format what robokit makes of it.
    own = format_of(Path(path)) == "URDF"
    text = robot_text(path, xacro_args, package_dirs) if own else plain_text(dump(full).encode()).encode()
    if robot.base == "floating":
        text = without_other_links(text, robot.link_names)
    told = [(x, own_answers(robot, x, run)) for x in _states(robot, states, seed, singular is None)]
    # Rounding errors in H appear in the accelerations multiplied by H's condition number.
    conditions = [float(np.linalg.cond(ours["H"])) for _, ours in told if "qdd" in ours]
    uncertain = max(conditions, default=0.0) * float(np.finfo(float).eps)
    for name in installed():
        engine = engines.ENGINES[name]
        comparison = Comparison(name, _version(engine.package), uncertain=uncertain)
        # They are given the file with fusestatic="false".
        comparison.notes = peer_faults(engine.program, lambda: text, fuses=False)
        comparison.notes += known_differences(name, robot, singular)
        found.append(comparison)
        try:
            answers = engines.open_engine(name, text, full, comparison.changes)
            for x, ours in told:
                theirs = answers(x) if robot.coupling is None else _project(robot, x, answers)
                for what in [name for name in QUANTITIES if name in theirs and name in ours]:
                    error = relative_error(theirs[what], ours[what])
                    comparison.errors[what] = max(comparison.errors.get(what, 0.0), error)
        except MissingDependency as problem:
            comparison.failure, comparison.imported = str(problem), False
        except Exception as refusal:  # of any type: the answer of another program may have any shape
            comparison.failure = one_line(refusal)
            comparison.errors.clear()
        if TOLERANCE < comparison.errors.get("qdd", 0.0) <= uncertain:
            comparison.changes.append(f"H is ill conditioned: rounding may change qdd by {uncertain:.0e}")
    return found


def _states(robot: Robot, count: int, seed: int, regular: bool) -> Iterator[State]:
    """Random states; without forces if H is singular, because then no accelerations are asked for."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        q, (v, a, tau) = robot.random_configuration(rng), rng.standard_normal((3, robot.nv))
        yield State(q, v, a, tau if regular and robot.nv else None)


def installed() -> list[str]:
    """Names of the engines that are installed."""
    return [name for name, e in engines.ENGINES.items() if importlib.util.find_spec(e.module) is not None]


def relative_error(got: Any, expected: Any) -> float:
    """Largest difference, divided by the largest expected entry (or by 1e-3 if that is larger)."""
    got, expected = np.asarray(got, dtype=float), np.asarray(expected, dtype=float)
    if got.size == 0:
        return 0.0
    error = float(np.abs(got - expected).max() / max(1e-3, np.abs(expected).max()))
    return error if np.isfinite(error) else float("inf")


def own_answers(robot: Robot, x: State, run: str | None = None) -> Answers:
    """robokit's own quantities of a state, by name."""
    poses = forward_kinematics(robot, x.q, engine=run)
    out = {
        "rotation": poses.rotation,
        "position": poses.position,
        "mass": np.array(robot.total_mass),
        "H": np.asarray(crba(robot, x.q, engine=run)),
        "C": bias_forces(robot, x.q, x.v, engine=run),
        "tau": rnea(robot, x.q, x.v, x.a, engine=run),
    }
    if robot.total_mass > 0:
        out["CoM"] = center_of_mass(robot, x.q, engine=run)
        out["A_G"] = centroidal_momentum_matrix(robot, x.q, engine=run)
    if x.tau is not None:
        out["qdd"] = aba(robot, x.q, x.v, x.tau, engine=run)
    return out


def _project(robot: Robot, x: State, answers: Answering) -> Answers:
    """Answers for the coupled robot of an engine in which mimic joints are coordinates of their own."""
    assert robot.coupling is not None
    G = robot.coupling.G
    q = np.array(robot.coupling.full_q(x.q.tolist()))
    out = answers(State(q, G @ x.v, G @ x.a, None))
    out["H"] = G.T @ out["H"] @ G
    out["C"], out["tau"] = G.T @ out["C"], G.T @ out["tau"]
    if "A_G" in out:
        out["A_G"] = out["A_G"] @ G
    if x.tau is not None:
        out["qdd"] = np.linalg.solve(out["H"], x.tau - out["C"])
    return out


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


# Known differences between the engines: what was converted or left out so that the figures compare
# -------------------------------------------------------------------------------------------------

_DYNAMICS = {
    "MuJoCo": "its dynamics include damping and friction; they are left out, since H and C have neither",
    "Drake": "its dynamics include damping; it is left out",
}

_ARMATURE = {
    "MuJoCo": "its armature, a rotor inertia on H's diagonal, is set to 0",
    "Drake": "<transmission> is left out: it would add rotor inertias to H's diagonal",
}

_MIMIC = {
    "Pinocchio": "reads them, and keeps their coordinates unless told otherwise",
    "MuJoCo": "drops them",
    "Drake": "keeps their coordinates, and couples them in discrete time only",
}


def known_differences(engine: str, robot: Robot, singular: Joint | None) -> list[str]:
    """Known differences that apply to this robot and engine, a sentence each."""
    notes = []
    if robot.base == "floating":
        how = engines.ENGINES[engine].base_velocity
        notes.append(f"base velocity is {how}; robokit's is [omega; v] in base axes (converted)")
    if engine == "Pinocchio" and robot.base == "floating":
        notes.append("base quaternion is xyzw after the position; robokit's is wxyz before it (converted)")
    mimics = [joint for joint in robot.body_joints if joint.mimic is not None]
    if mimics:
        done = (
            "all are compared as free coordinates"
            if robot.coupling is None
            else "its answers are projected by the coupling matrix G"
        )
        notes.append(f"mimic joints {_joint_names(mimics)}: it {_MIMIC.get(engine, 'drops them')}; {done}")
    if any(joint.damping or joint.friction for joint in robot.body_joints) and engine in _DYNAMICS:
        notes.append(_DYNAMICS[engine])
    if robot.tree.armature:
        notes.append("the rotor inertias of its joints are set to robokit's")
    elif engine in _ARMATURE:
        notes.append(_ARMATURE[engine])
    if robot.fixed_joints:
        notes.append(f"links behind fixed joints ({len(robot.fixed_joints)}) are compared as frames, by name")
    if robot.base == "fixed" and any(link.mass for link in robot.links if link.body == 0):
        notes.append("mass and CoM are those of the moving bodies, without the fixed root")
    if engine != "Pinocchio" and "world" in robot.link_names:
        notes.append("link 'world' was renamed: its own fixed frame has that name")
    if singular is not None:
        notes.append(f"accelerations are not compared: H is singular at joint {singular.name!r}")
    return notes


def _joint_names(joints: Sequence[Joint]) -> str:
    shown = ", ".join(repr(joint.name) for joint in joints[:3])
    return f"({len(joints)}: {shown}{', ...' if len(joints) > 3 else ''})"


# Many robots compared with every installed engine, one after the other
# ---------------------------------------------------------------------


@dataclass
class FileComparison:
    """One file, with one base, compared with the engines.

    Attributes:
        file: the URDF, as given.
        base: "fixed" or "floating".
        nv: degrees of freedom; 0 if robokit cannot load the file.
        failure: why robokit cannot load it, or "".
        engines: one comparison for each installed engine.
    """

    file: Path
    base: str
    nv: int = 0
    failure: str = ""
    engines: list[Comparison] = field(default_factory=list)

    @property
    def agrees(self) -> bool:
        """Whether robokit and all engines can load the file and agree."""
        return not self.failure and all(c.agrees for c in self.engines)


def compare_files(
    files: Iterable[Path],
    bases: Sequence[str] = ("fixed", "floating"),
    states: int = 3,
    mimic: str | None = None,
    run: str | None = "python",
    xacro_args: Mapping[str, str] | None = None,
    package_dirs: Sequence[str | os.PathLike[str]] = (),
    loops: str = "declared",
) -> Iterator[FileComparison]:
    """Compare the robots of many files, one after the other.

    Args:
        files: URDFs.
        bases: "fixed", "floating" or both.
        states, run: as for :func:`compare`. By default robokit's Python engine runs, because compiling would
            take most of the time.
        mimic, package_dirs, loops: as for :func:`robokit.load_urdf`.
        xacro_args: for those of the files that are .xacro files.

    Example:
        >>> from robokit.parity import compare_files
        >>> files = [rk.find_robot("double_pendulum")]
        >>> [one.nv for one in compare_files(files, bases=["fixed"], states=1)]
        [2]
    """
    for file in files:
        for base in bases:
            try:
                given: dict[str, Any] = {
                    "xacro_args": xacro_args if is_xacro(file) else None,
                    "package_dirs": package_dirs,
                }
                with stage(f"comparing {file.name}, {base} base"):
                    robot = load(file, base=base, mimic=mimic, loops=loops, **given)
                    found = compare(file, robot, states, run=run, **given)
                    row = FileComparison(file, base, robot.nv, "", found)
            except RobokitError as error:
                row = FileComparison(file, base, failure=_reason(error))
            yield row


def _reason(error: RobokitError) -> str:
    """The first error of a file, and how many more there are."""
    if isinstance(error, UrdfError):
        first = next((d for d in error.diagnostics if d.severity == "error"), None)
        if first is not None:
            more = sum(d.severity == "error" for d in error.diagnostics) - 1
            return f"{first.code}: {first.element} {first.message}" + (f" (and {more} more)" if more else "")
    return str(error)


# Comparisons as lines of text, at most 80 columns wide; only a long file name can exceed that
# --------------------------------------------------------------------------------------------

NAME_WIDTH = 32
"""Columns for the name of a file; a longer name takes a line of its own."""


def table(robot: Robot, found: list[Comparison], states: int = 3) -> list[str]:
    """One robot: a row for each quantity, a column for each engine, then notes on each engine."""
    coupled = ", coupled mimic joints" if robot.coupling is not None else ""
    title = f"{robot.name}: {robot.base} base{coupled}, {robot.nv} degrees of freedom, {states} states;"
    lines = [*textwrap.wrap(f"{title} largest relative errors against robokit", 80)]
    lines.append(f"  {'':<12}" + "".join(f"{c.engine:>12}" for c in found))
    for what in QUANTITIES:
        cells = (f"{c.errors[what]:.1e}" if what in c.errors else "-" for c in found)
        lines.append(f"  {what:<12}" + "".join(f"{cell:>12}" for cell in cells))
    for c in found:
        verdict = f"agrees to {TOLERANCE:.0e}" if c.agrees else "differs"
        if c.failure:
            verdict = "cannot load the file" if c.imported else "cannot be imported"
        lines.append(f"{c.engine} {c.version}".strip() + f": {verdict}")
        for note in ([c.failure] if c.failure else []) + c.changes + c.notes:
            lines += textwrap.wrap(note, 80, initial_indent="  - ", subsequent_indent="    ")
    return lines


def short_names(files: Iterable[Path]) -> dict[Path, str]:
    """File -> its name, with as many of its folders as are needed to tell it from the other files."""
    files = list(dict.fromkeys(files))
    ends = Counter(file.parts[-k:] for file in files for k in range(1, len(file.parts) + 1))
    names = {}
    for file in files:
        lengths = range(1, len(file.parts) + 1)
        k = next((k for k in lengths if ends[file.parts[-k:]] == 1), len(file.parts))
        names[file] = str(Path(*file.parts[-k:]))
    return names


def files_table(
    found: Iterable[FileComparison], engines: Sequence[str], files: Iterable[Path] = ()
) -> Iterator[str]:
    """Many robots: a line for each as it is done, then reasons, then the largest errors by quantity.

    Args:
        found: the comparisons, as they come.
        engines: names of the engines, in the order of the columns.
        files: all the files, for short names; without them, whole paths are shown.
    """
    names = short_names(files)
    rows: list[FileComparison] = []
    yield f"{'':<{NAME_WIDTH}} {'base':<9}{'nv':>4}" + "".join(f"{engine:>11}" for engine in engines)
    for row in found:
        rows.append(row)
        name = names.setdefault(row.file, str(row.file))
        if len(name) > NAME_WIDTH:
            yield name
            name = ""
        head = f"{name:<{NAME_WIDTH}} {row.base:<9}"
        if row.failure:
            yield head + "   - robokit refuses the file"
            continue
        by_name = {c.engine: c for c in row.engines}
        cells = (_cell(by_name[e]) for e in engines)
        yield head + f"{row.nv:>4}" + "".join(f"{cell:>11}" for cell in cells)
    yield from _reasons(rows, names)
    yield ""
    yield "largest relative errors against robokit"
    yield f"  {'':<12}" + "".join(f"{engine:>12}" for engine in engines)
    for what in QUANTITIES:
        yield f"  {what:<12}" + "".join(f"{_largest(rows, e, what):>12}" for e in engines)
    loaded = [row for row in rows if not row.failure]
    for label, wanted in ((f"agree to {TOLERANCE:.0e}", "agrees"), ("refused", "failure")):
        counts = (
            sum(
                bool(getattr(c, wanted)) and c.imported
                for row in loaded
                for c in row.engines
                if c.engine == e
            )
            for e in engines
        )
        yield f"  {label:<16}" + "".join(f"{count:>{8 if k == 0 else 12}}" for k, count in enumerate(counts))
    files_loaded = len({row.file for row in loaded})
    yield f"  of {_count(len(loaded), 'reading')} of {_count(files_loaded, 'file')}"


def _cell(c: Comparison) -> str:
    """The largest error; with "!" if it is not within the tolerance."""
    if c.failure:
        return "refuses" if c.imported else "broken"
    return f"{c.worst:.1e}" + ("" if c.agrees else "!")


def _reasons(rows: Sequence[FileComparison], names: Mapping[Path, str]) -> Iterator[str]:
    """Who cannot load which file and why, and what was changed; once for both bases."""
    seen: dict[tuple[Path | None, str], str] = {}
    for row in rows:
        if row.failure:
            seen.setdefault((row.file, "robokit"), "cannot load it: " + row.failure)
        for c in row.engines:
            if not c.imported:
                seen.setdefault((None, c.engine), c.failure)  # once, since it does not depend on the file
            elif c.failure:
                seen.setdefault((row.file, c.engine), "cannot load it: " + c.failure)
            elif c.changes:
                seen.setdefault((row.file, c.engine), "; ".join(c.changes))
    if seen:
        yield ""
    for (file, engine), why in seen.items():
        text = f"{engine}: {why}" if file is None else f"{names[file]}: {engine}: {why}"
        yield from textwrap.wrap(
            text, 80, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
        )


def _largest(rows: Sequence[FileComparison], engine: str, what: str) -> str:
    errors = [c.errors[what] for row in rows for c in row.engines if c.engine == engine and what in c.errors]
    return f"{max(errors):.1e}" if errors else "-"


def _count(n: int, thing: str) -> str:
    return f"{n} {thing}{'s' * (n != 1)}"


def no_engine() -> RobokitError:
    """The error if no engine is installed."""
    packages = " or ".join(engine.package for engine in ENGINES.values())
    return RobokitError(f"there is no engine to compare with; pip install {packages}")
