"""The whole engine before and after: this working tree beside another revision, one row a function and robot.

python benchmarks/compare.py HEAD~20                          everything: an hour and more
python benchmarks/compare.py v0.2 --robots g1 panda --only rnea aba_derivatives
python benchmarks/compare.py main --only simulation           the simulator's step and rollouts

For each row both versions start in new processes with empty caches of compiled code, on one processor,
and take turns. A time is processor time, the least of many turns; a row that comes out slower is measured
again in new processes, twice at most, and the least counts. Columns are ratios, before over after, so that
more is better: the first call of one state and of a batch, a call of one state, of batches of 128 and 4,096,
and the bytes that the calls left in the cache. Batches that take too long or too much memory are left out.

Every row is written to the file of -o as soon as it is there. Ctrl-C ends the measurement and shows the
table; the same command goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from measure import ROOT, commit, machine, one_core, prepare_to_measure, unpack

ROWS = (128, 4096)
TIMES = ("first", "first batch", "single", *map(str, ROWS))
HEADINGS = ("first", "1st B", "single", *(f"B {rows}" for rows in ROWS), "bytes")
FLOOR = 0.97  # no call slower than that
LARGEST_RESULT, LONGEST_BATCH = 4e8, 3.0  # of a batch [bytes], [s]
ROBOTS = ("g1", "talos", "panda", "humanoid", "quadruped", "chain100", "chain1000")
SIMULATIONS = ("simulation", "simulation, self-collision")


def goal(robot: str, function: str) -> float:
    """What the first call of one state may take [s of processor time]."""
    if robot.startswith("g1"):
        return 1.0 if function.startswith("aba_derivatives") else 0.5
    return 2.0 if robot == "chain1000" else math.inf


# -- in the processes that are measured; any version of robokit -------------------------------------------


def serve(job: dict[str, Any]) -> None:
    """Make the first calls of a row, then blocks of calls as they are asked for; a line of JSON for each."""
    import robokit as rk

    if not Path(rk.__file__).is_relative_to(job["root"]):
        raise SystemExit(f"robokit was imported from {rk.__file__}, not from {job['root']}")
    robot = rk.load_urdf(job["file"], base=job["base"])
    calls: dict[str, Callable[[], Any]] = {}
    make = simulation if job["function"] in SIMULATIONS else algorithm
    calls["single"] = make(robot, job, 0)
    found, result = first_call(calls["single"])
    said = {"first": found, "bytes": stored()}
    alone = min(first_call(calls["single"])[0] for _ in range(3))
    for rows in ROWS:
        if rows * len(pickle.dumps(result)) < LARGEST_RESULT and rows * alone < LONGEST_BATCH:
            calls[str(rows)] = make(robot, job, rows)
            found, _ = first_call(calls[str(rows)])
            said.setdefault("first batch", found)
    said |= {"bytes": stored(), "calls": list(calls)}
    print(json.dumps(said), flush=True)
    loops: dict[str, int] = {}
    for name in map(str.strip, sys.stdin):
        if name not in loops:
            seconds, _ = first_call(calls[name])
            loops[name] = max(1, int(2e-3 / max(seconds, 1e-9)))
        call = calls[name]
        call()  # not counted: the other process has used the caches meanwhile
        started = time.process_time()
        for _ in range(loops[name]):
            call()
        print((time.process_time() - started) / loops[name], flush=True)


def first_call(call: Callable[[], Any]) -> tuple[float, Any]:
    """Processor time of one call [s], threads that compile included, and what it returns."""
    started = time.process_time()
    result = call()
    return time.process_time() - started, result


def stored() -> int:
    """What lies in the cache of compiled code [bytes]."""
    return sum(path.stat().st_size for path in Path(os.environ["ROBOKIT_CACHE_DIR"]).rglob("*.bin"))


def algorithm(robot: Any, job: dict[str, Any], rows: int) -> Callable[[], Any]:
    """A public function with what its signature asks for, of one state (0 rows) or a batch."""
    import inspect
    from functools import partial

    import numpy as np

    import robokit as rk

    name, comma, _ = job["function"].partition(",")
    function = getattr(rk, name)
    takes = inspect.signature(function).parameters
    rng = np.random.default_rng(0)
    lead = (rows,) if rows else ()
    held = [rk.Contact(robot.link_names[-1], (0.1, 0.2, -0.1))]

    def q() -> Any:
        many = [robot.random_configuration(rng) for _ in range(rows or 1)]
        return np.stack(many) if rows else many[0]

    values: dict[str, Callable[[], Any]] = {
        "q": q,
        "v": lambda: rng.standard_normal((*lead, robot.nv)),
        "a": lambda: rng.standard_normal((*lead, robot.nv)),
        "tau": lambda: rng.standard_normal((*lead, robot.nv)),
        "a_joints": lambda: rng.standard_normal((*lead, robot.nv - 6)),
        "H": lambda: np.broadcast_to(np.eye(robot.nv), (*lead, robot.nv, robot.nv)).copy(),
        "f_ext": lambda: rng.standard_normal((*lead, robot.nbodies + 1, 6)),
        "link": lambda: robot.link_names[-1],
        "prescribed": lambda: robot.joint_names[::2],
        "frames": lambda: held,
        "constraints": lambda: held,
        "method": lambda: "crba",
        "threads": lambda: 1,
    }
    given = {x: values[x]() for x in takes if x in values and (x != "f_ext" or comma)}
    return partial(function, robot, **given)


def simulation(robot: Any, job: dict[str, Any], rows: int) -> Callable[[], Any]:
    """A fall of 50 steps of 1 ms, or a rollout of as many."""
    import numpy as np

    import robokit as rk

    how = {"ground": rk.Ground(), "self_collision": "," in job["function"], "dt": 1e-3, "joint_damping": 0.1}
    q0 = rk.standing_configuration(robot, height=0.02, tilt=np.radians(4.0), seed=0)
    if not rows:
        return lambda: rk.simulate(robot, q0, duration=0.05, record_every=50, **how)
    v0 = 0.3 * np.random.default_rng(0).standard_normal((rows, robot.nv))
    return lambda: rk.rollout(robot, q0, v0, steps=50, record_every=50, threads=1, **how)


# -- the process that lets them take turns ----------------------------------------------------------------


class Refused(Exception):
    """A version does not have this row, or fails in it; the last line says why."""


@contextmanager
def version(root: Path, job: dict[str, Any]) -> Iterator[tuple[dict[str, Any], Callable[[str], float]]]:
    """A version in a process of its own, its cache empty: what it says first, and how to ask for a block."""
    with tempfile.TemporaryDirectory() as cache:
        env = os.environ | {"PYTHONPATH": str(root), "ROBOKIT_CACHE_DIR": cache, "OPENBLAS_NUM_THREADS": "1"}
        env |= {"PYTHONDONTWRITEBYTECODE": "", "ROBOKIT_PROGRESS": "0"}
        command = [sys.executable, __file__, "--serve", json.dumps(job | {"root": str(root)})]
        with tempfile.TemporaryFile("w+") as errors:
            pipe = subprocess.PIPE
            process = subprocess.Popen(command, env=env, stdin=pipe, stdout=pipe, stderr=errors, text=True)
            assert process.stdin is not None and process.stdout is not None

            def answer() -> Any:
                line = process.stdout.readline()
                if not line:
                    process.wait()
                    errors.seek(0)
                    raise Refused((errors.read().strip().splitlines() or ["it ended"])[-1])
                return json.loads(line)

            def block(name: str) -> float:
                process.stdin.write(name + "\n")
                process.stdin.flush()
                return float(answer())

            try:
                yield answer(), block
            finally:
                process.kill()
                process.communicate()


def once(roots: dict[str, Path], job: dict[str, Any], seconds: float) -> dict[str, dict[str, float]]:
    """Version -> its times [s] and bytes, of one pair of processes; {"refused": why} where one fails."""
    found: dict[str, Any] = {}
    blocks: dict[str, Callable[[str], float]] = {}
    with ExitStack() as stack:
        for name, root in roots.items():
            try:
                said, blocks[name] = stack.enter_context(version(root, job))
                found[name] = said
            except Refused as why:
                found[name] = {"refused": str(why)}
        calls = [said.pop("calls", []) for said in found.values()]
        for what in calls[0]:
            if what not in calls[1]:
                continue
            end, turns = time.perf_counter() + seconds, 0
            while time.perf_counter() < end or turns < 3:
                turns += 1
                for name, block in reversed(blocks.items()) if turns % 2 else blocks.items():
                    found[name][what] = min(found[name].get(what, math.inf), block(what))
    return found


def ratios(row: dict[str, dict[str, float]]) -> dict[str, float]:
    """Before over after, of what both versions have; no bytes are stored where nothing is compiled."""
    before, after = row["before"], row["after"]
    both = [what for what in (*TIMES, "bytes") if before.get(what) and after.get(what)]
    if ("first batch" in before) != ("first batch" in after):
        both = [what for what in both if what != "bytes"]
    return {what: before[what] / after[what] for what in both}


def slow(row: dict[str, dict[str, float]]) -> bool:
    """Whether a time came out slower than the floor."""
    return any(x < FLOOR for what, x in ratios(row).items() if what != "bytes")


def measured(roots: dict[str, Path], job: dict[str, Any], seconds: float) -> dict[str, dict[str, float]]:
    """As :func:`once`; what is slow is slow three times."""
    row = once(roots, job, seconds)
    for _ in range(2):
        if not slow(row):
            break
        again = once(roots, job, seconds)
        for name, figures in row.items():
            # A batch that one of the processes left out has left no code there.
            best = {what: min(x, again[name].get(what, x)) for what, x in figures.items()}
            row[name] = best | {"bytes": max(x["bytes"] for x in (figures, again[name]) if "bytes" in x)}
    return row


def chain(count: int) -> str:
    """A URDF file of a chain, axes in turn about x, y and z, no two links alike."""
    import numpy as np

    rng = np.random.default_rng(0)
    text = [f'<robot name="chain of {count}"><link name="base"/>']
    for k in range(count):
        axis = ("1 0 0", "0 1 0", "0 0 1")[k % 3]
        parent = f"l{k - 1}" if k else "base"
        text.append(
            f'<link name="l{k}"><inertial><origin xyz="0 0 {rng.uniform(0.05, 0.1):.4f}"/>'
            f'<mass value="{rng.uniform(0.1, 1.0):.4f}"/>'
            '<inertia ixx="0.002" iyy="0.0021" izz="0.0015" ixy="0" ixz="0" iyz="0"/></inertial></link>'
            f'<joint name="j{k}" type="continuous"><parent link="{parent}"/><child link="l{k}"/>'
            f'<origin xyz="0 0 0.1"/><axis xyz="{axis}"/></joint>'
        )
    return "\n".join([*text, "</robot>"])


def jobs(robots: list[str], only: list[str], folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Name of a row -> what it measures."""
    import robokit as rk
    from robokit.dynamics.table import ALGORITHMS

    functions = []
    for row in ALGORITHMS:
        if hasattr(rk, row.name) and (not only or row.name in only):
            functions += [row.name] + [f"{row.name}, f_ext"] * row.forces
    simulations = [name for name in SIMULATIONS if "simulation" in only]
    for robot in robots:
        if robot.startswith("chain"):
            file = folder / f"{robot}.urdf"
            file.write_text(chain(int(robot.removeprefix("chain"))))
        else:
            file = Path(rk.find_robot(robot))
        for base in ("fixed", "floating"):
            if base == "floating" and (robot == "panda" or robot.startswith("chain")):
                continue
            title = robot + "+6" * (base == "floating")
            wanted = [x for x in functions if base == "floating" or not x.startswith("floating_base")]
            for function in wanted + simulations * (base == "floating"):
                yield f"{title} {function}", {"file": str(file), "base": base, "function": function}


def source_digest(root: Path) -> str:
    """What a version is known by: its source."""
    import hashlib

    total = hashlib.sha256()
    for path in sorted((root / "robokit").rglob("*.py")):
        total.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes())
    return total.hexdigest()


def both_versions(revision: str, folder: Path) -> dict[str, Path]:
    """Copies of robokit as it was and as it is, side by side and with their bytecode.

    Both have paths of one length, since the environment's length moves a process's stack. What is edited
    meanwhile does no harm, and nothing is left in the repository if this is killed.
    """
    roots = {"before": folder / "old", "after": folder / "new"}
    command = ["git", "archive", "--format=tar", revision, "robokit"]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    if found.returncode:
        sys.exit(f"no revision {revision!r} here: {found.stderr.decode().strip()}")
    unpack(found.stdout, roots["before"])
    shutil.copytree(ROOT / "robokit", roots["after"] / "robokit")  # with its bytecode, where there is some
    for root in roots.values():
        subprocess.run([sys.executable, "-m", "compileall", "-q", root], check=True)
    return roots


def cell(ratio: float | None) -> str:
    """A ratio in six columns, with a star where it is below the floor."""
    if ratio is None:
        return f"{'-':>6}"
    digits = 2 if ratio < 9.995 else 1 if ratio < 99.95 else 0
    return f"{ratio:.{digits}f}{'*' if ratio < FLOOR else ' '}".rjust(6)


def show(rows: dict[str, dict[str, dict[str, float]]]) -> None:
    """The table of ratios, worst first; then who is below the floor, above a goal, or failed."""
    found = {
        name: ratios(row) for name, row in rows.items() if "refused" not in {**row["before"], **row["after"]}
    }
    worst = sorted(
        found, key=lambda name: min((found[name][w] for w in TIMES if w in found[name]), default=9)
    )
    print(f"before / after, more is better; * below {FLOOR}; +6: floating base; B: batch")
    print(f"{'':<44}" + "".join(f"{heading:>6}" for heading in HEADINGS))
    for name in worst:
        robot, _, function = name.partition(" ")
        print(f"{robot:<12}{function:<32}" + "".join(cell(found[name].get(w)) for w in (*TIMES, "bytes")))
    middle = {}
    for what in (*TIMES, "bytes"):
        logs = [math.log(x[what]) for x in found.values() if what in x]
        middle[what] = math.exp(sum(logs) / len(logs)) if logs else None
    print(f"{'geometric mean':<44}" + "".join(cell(middle[w]) for w in (*TIMES, "bytes")))
    for what in TIMES:
        low = [name for name in worst if found[name].get(what, 9) < FLOOR]
        print(f"{what}: {len(low)} of {sum(what in x for x in found.values())} below {FLOOR}")
    print("first calls above their goal [s of processor time]:")
    for name in sorted(found, key=lambda name: -rows[name]["after"]["first"]):
        seconds, most = rows[name]["after"]["first"], goal(*name.split(" ", 1))
        if seconds > most:
            print(f"  {name:<48}{seconds:6.2f}, goal {most:g}; {rows[name]['before']['first']:6.2f} before")
    for name, row in rows.items():
        for which, figures in row.items():
            if "refused" in figures and "refused" not in row["before" if which == "after" else "after"]:
                print(f"{name}: only {which} fails: {figures['refused']}")


def main() -> None:
    """Measure what is not yet in the file, write it row by row, show the table."""
    if sys.argv[1:2] == ["--serve"]:
        serve(json.loads(sys.argv[2]))
        return
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("revision", help="of this repository: what was before")
    parser.add_argument("--robots", nargs="+", default=list(ROBOTS), metavar="ROBOT", help=", ".join(ROBOTS))
    parser.add_argument("--only", nargs="+", default=[], metavar="FUNCTION", help="functions, or simulation")
    parser.add_argument("--seconds", type=float, default=0.3, help="measuring time of a column of a row")
    parser.add_argument("-o", type=Path, default=Path("compare.json"), help="the file of results")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary, one_core():
        roots = both_versions(arguments.revision, Path(temporary))
        about = {f"source {name}": source_digest(root) for name, root in roots.items()}
        results: dict[str, Any] = {"rows": {}}
        if arguments.o.exists():
            results = json.loads(arguments.o.read_text())
            if any(results.get(key) != value for key, value in about.items()):
                sys.exit(
                    f"{arguments.o} has measurements of other versions: remove it, or name another with -o"
                )
        results |= about | {"machine": machine(), "revision": arguments.revision, "commit": commit()}
        wanted = dict(jobs(arguments.robots, arguments.only, Path(temporary)))
        if not wanted:
            parser.error(f"nothing to measure: no function is called {' or '.join(arguments.only)}")
        left = {name: job for name, job in wanted.items() if name not in results["rows"]}
        print(
            f"{results['machine']}\n{arguments.revision} beside {results['commit']}: {len(wanted)} rows, ",
            end="",
        )
        print(f"{len(wanted) - len(left)} of them from {arguments.o}", flush=True)
        started = time.perf_counter()
        try:
            for k, (name, job) in enumerate(left.items()):
                results["rows"][name] = row = measured(roots, job, arguments.seconds)
                whole = arguments.o.with_suffix(".partial")
                whole.write_text(json.dumps(results, indent=1) + "\n")
                whole.replace(arguments.o)
                minutes = (time.perf_counter() - started) / (k + 1) * (len(left) - k - 1) / 60
                text = ", ".join(f"{what} {x:.2f}" for what, x in ratios(row).items())
                print(
                    f"[{k + 1}/{len(left)}, {minutes:.0f} min left] {name}: {text}",
                    file=sys.stderr,
                    flush=True,
                )
        except KeyboardInterrupt:
            print(f"\ninterrupted; the same command goes on from {arguments.o}")
    show({name: row for name, row in results["rows"].items() if name in wanted})


if __name__ == "__main__":
    prepare_to_measure()
    main()
