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

    import robokit as rk

    found: dict[str, Any] = {}
    robot = ladder.random_tree(6, "floating", n=3)
    states = [ladder.State(robot, k) for k in range(5)]
    one = {x: getattr(states[0], x) for x in ("q", "v", "a", "tau", "f_body")}
    many = {x: np.array([getattr(s, x) for s in states]) for x in one}
    world = {"link1": np.arange(6.0), "link3": np.ones(6)}
    for how, s in (("single", one), ("batch", many)):
        q, v, a, tau, rows = s.values()
        H = rk.crba(robot, q)
        poses = rk.forward_kinematics(robot, q)
        answers = {
            "crba": H,
            "crba_nonzeros": rk.crba_nonzeros(robot, q),
            "rotation": poses.rotation,
            "position": poses.position,
            "rnea": rk.rnea(robot, q, v, a),
            "rnea, wrenches": rk.rnea(robot, q, v, a, f_ext=world),
            "rnea, rows": rk.rnea(robot, q, v, a, f_ext=rows, out=np.empty_like(v)),
            "bias_forces": rk.bias_forces(robot, q, v, f_ext=rows) - rk.bias_forces(robot, q, v),
            "gravity_forces": rk.gravity_forces(robot, q),
            "aba": rk.aba(robot, q, v, tau),
            "aba, rows": rk.aba(robot, q, v, tau, f_ext=rows),
            "by crba": rk.forward_dynamics(robot, q, v, tau, method="crba"),
            "by crba, rows": rk.forward_dynamics(robot, q, v, tau, f_ext=rows, method="crba"),
            "L": rk.ltdl(robot, H).L,
            "D": rk.ltdl(robot, H).D,
            "solve": rk.ltdl(robot, H).solve(tau),
            "center_of_mass": rk.center_of_mass(robot, q),
            "kinetic_energy": rk.kinetic_energy(robot, q, v),
            "potential_energy": rk.potential_energy(robot, q),
            "matrix": rk.centroidal_momentum_matrix(robot, q),
            "momentum": rk.centroidal_momentum(robot, q, v),
            "momentum bias": rk.centroidal_momentum_bias(robot, q, v),
        }
        found |= {f"{how} {name}": x for name, x in answers.items()}
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
