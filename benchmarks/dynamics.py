"""robokit beside Pinocchio, MuJoCo and Drake: single calls, and batches on one core, where they agree.

python benchmarks/dynamics.py                       G1, Talos, iCub, Panda and Solo12 of example-robot-data
python benchmarks/dynamics.py humanoid --base floating --json results.json
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from measure import arguments_of, chosen, machine, minima, one_core, prepare_to_measure
from models import in_pinocchio, states

import robokit as rk
from robokit.interop import MujocoAdapter

BATCH = 4096
DEFAULT = (
    ("example-robot-data:g1", "floating"),
    ("example-robot-data:talos", "floating"),
    ("example-robot-data:icub", "floating"),
    ("example-robot-data:panda", "fixed"),
    ("example-robot-data:solo12", "floating"),
)

COLUMNS = (("pinocchio", 10), ("mujoco", 9), ("drake", 9))


def solve_dense(model: Any, data: Any, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> np.ndarray:
    """Forward dynamics by Pinocchio's CRBA, its bias forces and its own sparse Cholesky."""
    import pinocchio as pin

    pin.crba(model, data, q)
    pin.cholesky.decompose(model, data)
    return pin.cholesky.solve(model, data, tau - pin.nonLinearEffects(model, data, q, v))


def pinocchio_calls(
    robot: rk.Robot, q: np.ndarray, v: np.ndarray, a: np.ndarray
) -> dict[str, Callable[[], Any]]:
    """Pinocchio's functions as Python users call them, on converted arguments."""
    import pinocchio as pin

    model, data, to = in_pinocchio(robot)
    pq, pv, pa = to.q(q), to.v(v), to.v(a)
    assert np.allclose(
        to.v_back(pin.rnea(model, data, pq, pv, pa)), rk.rnea(robot, q, v, a), rtol=1e-9, atol=1e-9
    )
    assert np.allclose(
        to.v_back(pin.aba(model, data, pq, pv, pa)), rk.aba(robot, q, v, a), rtol=1e-7, atol=1e-7
    )
    frame, axes = model.getFrameId(robot.link_names[-1]), pin.LOCAL_WORLD_ALIGNED

    def link_velocity() -> Any:
        pin.forwardKinematics(model, data, pq, pv)
        return pin.getFrameVelocity(model, data, frame, axes)

    def link_acceleration() -> Any:
        pin.forwardKinematics(model, data, pq, pv, pa)
        return pin.getFrameClassicalAcceleration(model, data, frame, axes)

    return {
        "forward_kinematics": lambda: pin.framesForwardKinematics(model, data, pq),
        "rnea": lambda: pin.rnea(model, data, pq, pv, pa),
        "crba": lambda: pin.crba(model, data, pq),
        "crba nonzeros": lambda: pin.crba(model, data, pq),
        "aba": lambda: pin.aba(model, data, pq, pv, pa),
        "cmm": lambda: pin.ccrba(model, data, pq, pv),
        "gravity": lambda: pin.computeGeneralizedGravity(model, data, pq),
        "bias": lambda: pin.nonLinearEffects(model, data, pq, pv),
        "cmm bias": lambda: pin.dccrba(model, data, pq, pv) @ pv,
        "energies": lambda: (
            pin.computeKineticEnergy(model, data, pq, pv),
            pin.computePotentialEnergy(model, data, pq),
        ),
        "crba and solve": lambda: solve_dense(model, data, pq, pv, pa),
        "com jacobian": lambda: pin.jacobianCenterOfMass(model, data, pq, False),
        "com acceleration": lambda: pin.centerOfMass(model, data, pq, pv, pa, False),
        "link velocity": link_velocity,
        "link acceleration": link_acceleration,
    }


def robokit_calls(
    robot: rk.Robot, q: np.ndarray, v: np.ndarray, a: np.ndarray
) -> dict[str, Callable[[], Any]]:
    """The same through robokit's public functions; results of a batch go to arrays that are there."""
    single = q.ndim == 1
    out: dict[str, Any] = dict.fromkeys(("poses", "tau", "H", "entries", "a", "A_G", "J_G", "twist"))
    if not single:
        out = {
            "poses": rk.forward_kinematics(robot, q),
            "tau": rk.rnea(robot, q, v, a),
            "H": rk.crba(robot, q),
            "entries": rk.crba_nonzeros(robot, q),
            "a": rk.aba(robot, q, v, a),
            "A_G": rk.centroidal_momentum_matrix(robot, q),
            "J_G": rk.center_of_mass_jacobian(robot, q),
            "twist": np.empty((len(q), 6)),
        }
    link = robot.link_names[-1]
    return {
        "forward_kinematics": lambda: rk.forward_kinematics(robot, q, out=out["poses"]),
        "rnea": lambda: rk.rnea(robot, q, v, a, out=out["tau"]),
        "crba": lambda: rk.crba(robot, q, out=out["H"]),
        "crba nonzeros": lambda: rk.crba_nonzeros(robot, q, out=out["entries"]),
        "aba": lambda: rk.aba(robot, q, v, a, out=out["a"]),
        "cmm": lambda: rk.centroidal_momentum_matrix(robot, q, out=out["A_G"]),
        "gravity": lambda: rk.gravity_forces(robot, q, out=out["tau"]),
        "bias": lambda: rk.bias_forces(robot, q, v, out=out["tau"]),
        "cmm bias": lambda: rk.centroidal_momentum_bias(robot, q, v),
        "energies": lambda: (rk.kinetic_energy(robot, q, v), rk.potential_energy(robot, q)),
        "crba and solve": lambda: rk.forward_dynamics(robot, q, v, a, method="crba", out=out["a"]),
        "com jacobian": lambda: rk.center_of_mass_jacobian(robot, q, out=out["J_G"]),
        "com acceleration": lambda: rk.center_of_mass_acceleration(robot, q, v, a),
        "link velocity": lambda: rk.link_velocity(robot, q, v, link, out=out["twist"]),
        "link acceleration": lambda: rk.link_acceleration(
            robot, q, v, a, link, classical=True, out=out["twist"]
        ),
    }


def mujoco_calls(robot: rk.Robot, q: np.ndarray, v: np.ndarray) -> dict[str, Callable[[], Any]]:
    """MuJoCo's nearest functions, each with the kinematics that it needs; none where it refuses the file."""
    import mujoco
    from mujoco_model import model_without_shapes

    try:
        model = model_without_shapes(robot)
    except ValueError as error:
        print(f"  MuJoCo refuses {robot.name}: {str(error).splitlines()[0][:60]}")
        return {}
    data, to = mujoco.MjData(model), MujocoAdapter(robot, model)
    data.qpos[:], data.qvel[:] = to.q(q), to.v(q, v)
    mujoco.mj_forward(model, data)
    tau = np.empty(model.nv)

    def rnea() -> None:
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        mujoco.mj_comVel(model, data)
        mujoco.mj_rne(model, data, 1, tau)

    def crba() -> None:
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        mujoco.mj_crb(model, data)

    return {
        "forward_kinematics": lambda: mujoco.mj_kinematics(model, data),
        "rnea": rnea,
        "crba": crba,
        "aba": lambda: mujoco.mj_forward(model, data),
    }


def drake_calls(robot: rk.Robot, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> dict[str, Callable[[], Any]]:
    """Drake's functions, each with the setting of the state; none where it refuses the file."""
    from drake_model import Drake, Refused

    try:
        drake = Drake(robot)
    except Refused as problem:
        print(f"  Drake refuses {robot.name}: {str(problem)[:60]}")
        return {}
    x, given = drake.state(q, v), {"rnea": drake.a(q, v, a), "aba": drake.force(q, a)}
    return {
        name: partial(call, x, given[name]) if name in given else partial(call, x)
        for name, call in drake.calls().items()
    }


def peers(
    robot: rk.Robot, q: np.ndarray, v: np.ndarray, a: np.ndarray
) -> dict[str, dict[str, Callable[[], Any]]]:
    """Single calls of the peers that are installed, by peer and row."""
    found: dict[str, dict[str, Callable[[], Any]]] = {}
    if importlib.util.find_spec("pinocchio"):
        found["pinocchio"] = pinocchio_calls(robot, q, v, a)
    if importlib.util.find_spec("mujoco"):
        found["mujoco"] = mujoco_calls(robot, q, v)
    if importlib.util.find_spec("pydrake"):
        found["drake"] = drake_calls(robot, q, v, a)
    return found


def compare(name: str, base: str, seconds: float, figures: dict[str, Any]) -> None:
    """Measure one robot, print its table and put the figures [microseconds] into ``figures`` as they come."""
    robot = rk.load_urdf(rk.find_robot(name), base=base)
    q, v, a = states(robot, BATCH)
    single, batch = robokit_calls(robot, q[0], v[0], a[0]), robokit_calls(robot, q, v, a)
    figures |= {"robot": name, "base": base, "nv": robot.nv}
    print(f"\n{robot.name}, {base} base, nv {robot.nv}; microseconds a state, minimum of interleaved repeats")
    others = peers(robot, q[0], v[0], a[0])
    print(
        f"  {'':<19}{'Pinocchio':>10}{'MuJoCo':>9}{'Drake':>9}"
        f"{'single':>9}{'ratio':>8}{f'batch {BATCH}':>13}{'ratio':>8}"
    )
    for what, call in single.items():
        contestants = {peer: calls[what] for peer, calls in others.items() if what in calls}
        t = {
            k: 1e6 * x
            for k, x in minima(contestants | {"single": call, "batch": batch[what]}, seconds).items()
        }
        t["batch"] /= BATCH
        figures[what] = t
        cells = (f"{t[k]:{w}.2f}" if k in t else " " * w for k, w in COLUMNS)
        ratios = (
            [f"{t['single'] / t['pinocchio']:7.2f}x", f"{t['pinocchio'] / t['batch']:7.1f}x"]
            if "pinocchio" in t
            else [" " * 8] * 2
        )
        print(f"  {what:<19}{''.join(cells)}{t['single']:9.2f}{ratios[0]}{t['batch']:13.3f}{ratios[1]}")


def main() -> None:
    """Parse, measure, print, and write JSON if asked to."""
    arguments = arguments_of(__doc__, 1.5, more=lambda parser: parser.add_argument("--json", metavar="FILE"))
    print(machine())
    with one_core():
        results: list[dict[str, Any]] = []
        for name, base in chosen(arguments, DEFAULT):
            results.append({})
            compare(name, base, arguments.seconds, results[-1])
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump({"machine": machine(), "batch": BATCH, "results": results}, file, indent=1)


if __name__ == "__main__":
    prepare_to_measure()
    main()
