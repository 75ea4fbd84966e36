"""Importing a benchmark changes nothing: tests and programs may use its functions."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"

CHILD = """
import ast, importlib, os, sys
from pathlib import Path

folder = Path(sys.argv[1])
sys.path.insert(0, str(folder))
files = [*folder.glob("*.py"), *folder.glob("fidelity_cases/*.py"), *folder.glob("mutations/*.py")]

def imported(node):
    if isinstance(node, ast.Import):
        return [each.name for each in node.names]
    return [node.module, *(f"{node.module}.{each.name}" for each in node.names)]

for file in files:  # what they import of robokit comes first
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            for name in imported(node):
                if name.partition(".")[0] == "robokit":
                    try:
                        importlib.import_module(name)
                    except ModuleNotFoundError:  # a name in a module, or a peer that is not installed
                        pass
import robokit
for name in dir(robokit):  # what is loaded when it is first used
    getattr(robokit, name)

def held(x):
    if isinstance(x, dict):
        return {key: id(value) for key, value in x.items()}
    return [id(value) for value in x] if isinstance(x, list | tuple | set) else id(x)

def state():
    found = {("environment", key): value for key, value in os.environ.items()}
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "robokit":
            found |= {(name, key): held(x) for key, x in vars(module).items() if key != "__builtins__"}
    return found

before = state()
done = set()
for file in files:
    name = ".".join(file.relative_to(folder).with_suffix("").parts)
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as missing:
        if (folder / f"{missing.name}.py").exists() or missing.name.startswith("robokit"):
            raise
        continue
    done.add(name)
assert {"measure", "fidelity", "fidelity_cases.scenes", "run"} <= done, done
after = state()
changed = [".".join(key) for key in {**before, **after} if before.get(key) != after.get(key)]
assert not changed, changed
if sys.argv[2] == "prepared":
    import measure
    measure.prepare_to_measure()
    changed = [".".join(key) for key, x in state().items() if before.get(key) != x]
    assert "robokit.engine.maker.TIERED" in changed and "environment.OMP_WAIT_POLICY" in changed, changed
"""


def test_importing_a_benchmark_changes_neither_robokit_nor_the_environment():
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(BENCHMARKS), "prepared"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert not done.returncode, done.stderr
