"""How long a new process takes to its first accelerations: python benchmarks/starts.py

Imports the program, loads robokit's humanoid with a floating base and calls forward dynamics once, in a
process of its own. Printed is the processor time (user and system), the least of five processes: it depends
little on what else the machine does. "first" is robokit before anything is compiled. Who is not installed is
left out.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile

import robokit as rk

PROGRAMS = {
    "robokit": """
import numpy as np, robokit as rk
r = rk.load_urdf(URDF, base="floating")
rk.aba(r, r.neutral(), np.zeros(r.nv), np.zeros(r.nv))
""",
    "pinocchio": """
import numpy as np, pinocchio as p
m = p.buildModelFromUrdf(URDF, p.JointModelFreeFlyer())
p.aba(m, m.createData(), p.neutral(m), np.zeros(m.nv), np.zeros(m.nv))
""",
    "mujoco": """
import mujoco
m = mujoco.MjModel.from_xml_path(URDF)
mujoco.mj_forward(m, mujoco.MjData(m))
""",
    "drake": """
from pydrake.multibody.parsing import Parser
from pydrake.multibody.plant import MultibodyPlant
m = MultibodyPlant(0.0)
Parser(m).AddModels(URDF)
m.Finalize()
m.EvalTimeDerivatives(m.CreateDefaultContext())
""",
    "mjx": """
import jax, mujoco
from mujoco import mjx
m = mujoco.MjModel.from_xml_path(URDF)
m.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONTACT
m = mjx.put_model(m)
jax.jit(mjx.forward)(m, mjx.make_data(m)).qacc.block_until_ready()
""",
}
"""MJX compiles at each start; contacts, which take it longer still, are left out."""


def seconds(text: str, cache: str) -> float:
    """Processor time of a process that runs the text [s]."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    program = f"URDF = {str(rk.find_robot('humanoid'))!r}\n{text}"
    env = os.environ | {"ROBOKIT_CACHE_DIR": cache, "OPENBLAS_NUM_THREADS": "1"}
    subprocess.run([sys.executable, "-c", program], env=env, check=True, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Print the times."""
    with tempfile.TemporaryDirectory() as cache:
        print(f"robokit, first  {seconds(PROGRAMS['robokit'], cache):.2f} s")
        for name, text in PROGRAMS.items():
            try:
                least = min(seconds(text, cache) for _ in range(5))
            except subprocess.CalledProcessError:
                continue
            print(f"{name:<15} {least:.2f} s", flush=True)


if __name__ == "__main__":
    main()
