"""Whether robokit and its peers compute the same numbers: nothing else is worth timing.

python benchmarks/agree.py                     the robots of benchmarks/dynamics.py
python benchmarks/agree.py humanoid --base floating
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
from typing import Any

import numpy as np
from measure import prepare_to_measure, step
from models import frictionless, in_pinocchio

import robokit as rk
from robokit.interop import MujocoAdapter

TOLERANCE = 1e-10  # of the largest entry; accelerations are compared by the forces that they take
SWAP = [3, 4, 5, 0, 1, 2]  # Pinocchio's spatial vectors have the linear part first
STATES = 3
DT = 1e-3  # of a step [s]
PEERS = {"pinocchio": "Pinocchio", "mujoco": "MuJoCo", "pydrake": "Drake"}


# Peers that are named where they are installed, and not measured.
UNKNOWN = {"idyntree": "iDynTree", "placo": "placo", "adam": "adam", "jaxsim": "jaxsim", "frax": "frax"}


class Disagreement(Exception):
    """A peer computes another number."""


def error(ours: Any, theirs: Any) -> float:
    """Largest difference over the largest entry."""
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    return float(np.abs(ours - theirs).max() / max(np.abs(theirs).max(), 1e-12))


def with_pinocchio(robot: rk.Robot, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> dict[str, float]:
    """Errors by quantity, largest over the states, its thread pool included."""
    import pinocchio as pin

    model, data, to = in_pinocchio(robot)
    frames = [model.getFrameId(name, pin.FrameType.BODY) for name in robot.link_names]
    rows, columns = rk.inertia_entries(robot)
    tau = rk.rnea(robot, q, v, a)  # forward dynamics of the same motion
    poses = rk.forward_kinematics(robot, q)
    H, A_G = rk.crba(robot, q), rk.centroidal_momentum_matrix(robot, q)
    ours = {
        "rnea": tau,
        "bias": rk.bias_forces(robot, q, v),
        "gravity": rk.gravity_forces(robot, q),
        "crba": H,
        "crba nonzeros": rk.crba_nonzeros(robot, q),
        "aba": rk.aba(robot, q, v, tau),
        "crba and solve": rk.forward_dynamics(robot, q, v, tau, method="crba"),
        "position": poses.position,
        "rotation": poses.rotation,
        "cmm": A_G,
        "cmm bias": rk.centroidal_momentum_bias(robot, q, v),
        "kinetic energy": rk.kinetic_energy(robot, q, v),
        "potential energy": rk.potential_energy(robot, q),
    }
    theirs: dict[str, list[Any]] = {name: [] for name in ours}
    for k in range(len(q)):
        pq, pv, pa, ptau = to.q(q[k]), to.v(v[k]), to.v(a[k]), to.v(tau[k])
        upper = np.triu(pin.crba(model, data, pq))
        full = to.matrix_back(upper + np.triu(upper, 1).T)
        found = {
            "rnea": to.v_back(pin.rnea(model, data, pq, pv, pa)),
            "bias": to.v_back(pin.nonLinearEffects(model, data, pq, pv)),
            "gravity": to.v_back(pin.computeGeneralizedGravity(model, data, pq)),
            "crba": full,
            "crba nonzeros": full[rows, columns],
            "cmm": to.centroidal_back(pin.computeCentroidalMap(model, data, pq)),
            "kinetic energy": pin.computeKineticEnergy(model, data, pq, pv),
            "potential energy": pin.computePotentialEnergy(model, data, pq),
        }
        found["aba"] = found["crba and solve"] = to.v_back(pin.aba(model, data, pq, pv, ptau))
        found["cmm bias"] = (np.array(pin.dccrba(model, data, pq, pv)) @ pv)[SWAP]
        pin.framesForwardKinematics(model, data, pq)
        found["position"] = [data.oMf[i].translation.copy() for i in frames]
        found["rotation"] = [data.oMf[i].rotation.copy() for i in frames]
        for name, value in found.items():
            theirs[name].append(value)

    def forces(x: Any) -> np.ndarray:
        # Where H is ill-conditioned (iCub's: 5e9), accelerations are uncertain far above rounding in every
        # program; the forces that they take are not.
        return (H @ np.asarray(x)[..., None])[..., 0]

    for name in ("aba", "crba and solve"):
        ours[name], theirs[name] = forces(ours[name]), list(forces(theirs[name]))
    errors = {name: error(ours[name], theirs[name]) for name in ours}
    if hasattr(pin, "rneaInParallel"):
        pq, pv, pa, ptau = (
            np.asfortranarray(np.stack([convert(x) for x in xs], axis=1))
            for convert, xs in ((to.q, q), (to.v, v), (to.v, a), (to.v, tau))
        )
        pool = pin.ModelPool(model, 2)
        for n in (1, 2):
            back = [to.v_back(x) for x in np.asarray(pin.rneaInParallel(n, pool, pq, pv, pa)).T]
            errors[f"rnea, its threads: {n}"] = error(tau, back)
            back = [to.v_back(x) for x in np.asarray(pin.abaInParallel(n, pool, pq, pv, ptau)).T]
            errors[f"aba, its threads: {n}"] = error(ours["aba"], forces(back))
    return errors


def with_mujoco(robot: rk.Robot, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> dict[str, float]:
    """Errors by quantity; none where MuJoCo refuses the robot."""
    import mujoco
    from mujoco_model import model_without_shapes

    try:
        model = model_without_shapes(robot)
    except ValueError:
        return {}
    model.opt.timestep = DT
    data, to, free = mujoco.MjData(model), MujocoAdapter(robot, model), frictionless(robot)
    errors: dict[str, float] = {}
    for k in range(len(q)):
        data.qpos[:], data.qvel[:] = to.q(q[k]), to.v(q[k], v[k])
        mujoco.mj_forward(model, data)
        M, H = np.zeros((model.nv, model.nv)), rk.crba(robot, q[k])
        if hasattr(data, "qM"):
            mujoco.mj_fullM(model, M, data.qM)  # up to MuJoCo 3
        else:
            mujoco.mj_fullM(model, data, M)
        tau, inverse = rk.rnea(robot, q[k], v[k], a[k]), np.empty(model.nv)
        data.qfrc_applied[:] = to.v(q[k], tau)  # T is orthogonal: forces turn as velocities do
        mujoco.mj_forward(model, data)
        forward = H @ to.a_back(q[k], v[k], data.qacc)
        data.qacc[:] = to.a(q[k], v[k], a[k])
        mujoco.mj_rne(model, data, 1, inverse)
        data.qfrc_applied[:] = 0.0
        before = data.qvel.copy()
        mujoco.mj_step(model, data)  # its method: the acceleration at the start
        faster = DT * to.a(q[k], v[k], rk.aba(free, q[k], v[k], np.zeros(robot.nv)))
        found = {
            "rnea": error(tau, to.force_back(q[k], inverse)),
            "bias": error(rk.bias_forces(robot, q[k], v[k]), to.bias_back(q[k], v[k], data.qfrc_bias, M)),
            "crba": error(H, to.matrix_back(q[k], M)),
            "aba": error(H @ rk.aba(robot, q[k], v[k], tau), forward),  # as above, the forces
            "free step": error(faster, data.qvel - before),
        }
        errors = {name: max(x, errors.get(name, 0.0)) for name, x in found.items()}
    return errors


def with_drake(robot: rk.Robot, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> dict[str, float]:
    """Errors by quantity; none where Drake refuses the robot."""
    from drake_model import Drake, Refused

    try:
        drake = Drake(robot)
    except Refused:
        return {}
    calls, H, tau = drake.calls(), rk.crba(robot, q), rk.rnea(robot, q, v, a)
    poses = rk.forward_kinematics(robot, q)
    errors: dict[str, float] = {}
    first = np.zeros(2)
    for k in range(len(q)):
        x, calm = drake.state(q[k], v[k]), drake.a(q[k], v[k], np.zeros(robot.nv))
        calls["forward_kinematics"](x)
        theirs = [drake.plant.EvalBodyPoseInWorld(drake.context, body) for body in drake.bodies]
        kinetic, potential = calls["energies"](x)
        heights = np.array([rk.potential_energy(robot, q[k]), potential])
        first = heights if k == 0 else first
        found = {
            "rnea": error(tau[k], drake.force_back(q[k], calls["rnea"](x, drake.a(q[k], v[k], a[k])))),
            "bias": error(rk.bias_forces(robot, q[k], v[k]), drake.force_back(q[k], calls["rnea"](x, calm))),
            "gravity": error(rk.gravity_forces(robot, q[k]), drake.force_back(q[k], calls["gravity"](x))),
            "crba": error(H[k], drake.matrix_back(q[k], calls["crba"](x))),
            # as above, the forces that the accelerations take
            "aba": error(
                H[k] @ rk.aba(robot, q[k], v[k], tau[k]),
                H[k] @ drake.a_back(q[k], v[k], calls["aba"](x, drake.force(q[k], tau[k]))),
            ),
            "position": error(poses.position[k], [pose.translation() for pose in theirs]),
            "rotation": error(poses.rotation[k], [pose.rotation().matrix() for pose in theirs]),
            "kinetic energy": error(rk.kinetic_energy(robot, q[k], v[k]), kinetic),
        }
        if k:  # Drake counts what is welded to the world too
            found["potential energy, differences"] = error(*(heights - first))
        errors = {name: max(x, errors.get(name, 0.0)) for name, x in found.items()}
    return errors


def check(name: str, base: str) -> dict[str, dict[str, float]]:
    """Compare one robot with every peer that is there, print a line a peer and return the errors.

    Raises:
        Disagreement: an error above 1e-10 of the largest entry; it names peer, robot and quantity.
    """
    robot = rk.load_urdf(rk.find_robot(name), base=base)
    rng = np.random.default_rng(0)
    q = np.stack([robot.random_configuration(rng) for _ in range(STATES)])
    v, a = rng.standard_normal((2, STATES, robot.nv))
    found = {}
    for module, compare in (("pinocchio", with_pinocchio), ("mujoco", with_mujoco), ("pydrake", with_drake)):
        if importlib.util.find_spec(module) is None:
            continue
        errors = compare(robot, q, v, a)
        for what, size in errors.items():
            if not size <= TOLERANCE:  # not a number is a disagreement too
                raise Disagreement(f"{PEERS[module]}, {robot.name}, {what}: relative difference {size:.1e}")
        found[PEERS[module]] = errors
        worst = max(errors, key=errors.__getitem__, default="")
        said = f"{errors[worst]:.0e} ({worst})" if errors else "refuses this robot"
        print(f"  {robot.name:<20}{PEERS[module]:<12}{len(errors):3} quantities  {said}")
    return found


def main() -> None:
    """Check, or exit with 1."""
    from dynamics import DEFAULT

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("robot", nargs="*", help="as on the command line of robokit")
    parser.add_argument("--base", choices=("fixed", "floating"), default="floating")
    arguments = parser.parse_args()
    try:
        everything([(name, arguments.base) for name in arguments.robot] or list(DEFAULT))
    except Disagreement as problem:
        sys.exit(str(problem))


def generation() -> str:
    """Whether this Pinocchio has its code generation (CppADCodeGen), in words."""
    import pinocchio as pin

    names = [name for name in dir(pin) if name.startswith("CodeGen")]
    if not names and not getattr(pin, "WITH_CPPADCG", False):
        return "not in this wheel, which was built without CppADCodeGen: left out"
    return f"is there ({', '.join(names) or 'C++ only'}); these benchmarks have no calls for it: left out"


def everything(jobs: list[tuple[str, str]]) -> dict[str, Any]:
    """Check all robots; say which peers are absent, and which have no calls here."""
    for module, peer in PEERS.items():
        if importlib.util.find_spec(module) is None:
            print(f"  {peer} is not installed: left out")
    for module, peer in UNKNOWN.items():
        if importlib.util.find_spec(module) is not None:
            print(f"  {peer} is installed; these benchmarks have no calls for it: left out")
    if importlib.util.find_spec("pinocchio") is not None:
        print(f"  Pinocchio's code generation: {generation()}")
    found = {}
    for name, base in jobs:
        with step(f"agree, {name}"):
            found[name] = check(name, base)
    return found


if __name__ == "__main__":
    prepare_to_measure()
    main()
