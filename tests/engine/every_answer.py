"""Answers of every public function on a small robot, single and in a batch.

As a script it writes them to a file, in a process in which llvmlite cannot be imported.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np


class NoCompiler:
    """Stands in sys.meta_path and refuses llvmlite, as if it had never been installed."""

    def find_spec(self, name: str, *_: Any) -> None:
        if name.partition(".")[0] == "llvmlite":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def every_answer() -> dict[str, np.ndarray]:
    """Results by name."""
    import ladder
    import table_calls

    import robokit as rk

    found: dict[str, Any] = {}
    robot = ladder.random_tree(6, "floating", n=3)
    states = [ladder.State(robot, k) for k in range(5)]
    one, many = table_calls.values(robot, states[0]), table_calls.batch_of(robot, states)
    rows = {"single": states[0].f_body, "batch": np.array([s.f_body for s in states])}
    world = {"link1": np.arange(6.0), "link3": np.ones(6)}
    for how, given in (("single", one), ("batch", many)):
        for name in table_calls.PUBLIC:
            forms: dict[str, dict[str, Any]] = {"": {}}
            if "f_ext" in table_calls.TAKES[name]:
                forms |= {", rows": {"f_ext": rows[how]}, ", wrenches": {"f_ext": world}}
            for form, more in forms.items():
                for k, array in enumerate(table_calls.arrays(table_calls.call(name, robot, given, **more))):
                    found[f"{how} {name} {k}{form}"] = array
        found[f"{how} solve"] = rk.ltdl(robot, given["H"]).solve(given["tau"])
        found[f"{how} out"] = rk.rnea(
            robot, given["q"], given["v"], given["a"], f_ext=rows[how], out=np.empty_like(given["v"])
        )
    found["sparse"] = rk.crba(robot, one["q"], sparse=True).toarray()
    found["entries"] = np.array(rk.inertia_entries(robot))
    found["pattern"] = rk.inertia_sparsity(robot)
    run = rk.simulate(ladder.pendulum(), [0.3], [0.1], duration=0.02)
    found["simulate"] = np.concatenate([run.q, run.v], axis=1)
    return {name: np.asarray(x) for name, x in found.items()}


if __name__ == "__main__":
    sys.meta_path.insert(0, NoCompiler())  # type: ignore[arg-type]
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    np.savez(sys.argv[1], **every_answer())
    assert "llvmlite" not in sys.modules
