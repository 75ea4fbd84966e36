"""Writes oracles.npz: what Pinocchio computes for our robots, by joint name, without any of robokit's code.

    pip install pin && python tests/oracles/make_oracles.py

Run it again when a robot's masses, placements or joints are changed on purpose. Every state is drawn here, so
the numbers change with the seed below and with nothing else. Layout, for each ROBOT/BASE/K:

    joints              movable joints by name, in the order of the columns below, the floating base excluded
    q v a tau           inputs: of the joints; base_position, base_quat_wxyz and, in v a tau, six base entries
                        [angular; linear] in base axes before the joints' when the base floats
    pushed, wrenches    links and [n; f] in world axes about the world origin
    H C G qdd ...       results, rows and columns [base; joints]; H as its lower triangle
    links, rotation, position

"versions" says which Pinocchio it was.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pinocchio as pin

HERE = Path(__file__).resolve().parent
ROBOTS = HERE.parent.parent / "robots"
STATES = {"double_pendulum": 3, "four_bar": 2, "arm": 2, "quadruped": 2, "humanoid": 2, "chain": 1}
SWAP = [3, 4, 5, 0, 1, 2]


def load(path: Path, base: str) -> pin.Model:
    """The model; gravity is Pinocchio's default, (0, 0, -9.81)."""
    if base == "floating":
        return pin.buildModelFromUrdf(str(path), pin.JointModelFreeFlyer())
    return pin.buildModelFromUrdf(str(path))


def state(model: pin.Model, base: str, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Random inputs by joint, then what Pinocchio makes of them."""
    first = 2 if base == "floating" else 1
    names = list(model.names)[first:]
    angles = rng.uniform(-1.2, 1.2, len(names))
    out: dict[str, np.ndarray] = {"joints": np.array(names), "q": angles}
    q = pin.neutral(model)
    order = []
    for name, angle in zip(names, angles, strict=True):
        joint = model.joints[model.getJointId(name)]
        q[joint.idx_q : joint.idx_q + joint.nq] = [angle] if joint.nq == 1 else [np.cos(angle), np.sin(angle)]
        order.append(joint.idx_v)
    if base == "floating":
        quat = rng.standard_normal(4)
        out["base_quat_wxyz"] = quat = quat / np.linalg.norm(quat)
        out["base_position"] = position = rng.uniform(-1, 1, 3)
        q[:7] = [*position, *quat[1:], quat[0]]
        order = SWAP + order
    back = np.array(order)
    vectors = {}
    for key in ("v", "a", "tau"):
        out[key] = rng.standard_normal(len(back)) * (10.0 if key == "tau" else 1.0)
        vectors[key] = np.empty(model.nv)
        vectors[key][back] = out[key]
    return out | results(model, q, vectors, back, rng)


def results(model, q, vectors, back, rng) -> dict[str, np.ndarray]:
    v, a, tau = vectors["v"], vectors["a"], vectors["tau"]
    data = model.createData()
    pin.framesForwardKinematics(model, data, q)
    frames = [f for f in model.frames if f.type == pin.FrameType.BODY]
    links = [f.name for f in frames]
    poses = [data.oMf[model.getFrameId(name, pin.FrameType.BODY)] for name in links]
    moving = [k for k, f in enumerate(frames) if f.parentJoint > 0]
    pushed = [links[k] for k in rng.choice(moving, min(2, len(moving)), replace=False)]
    wrenches = rng.standard_normal((len(pushed), 6)) * 5.0
    forces = [pin.Force.Zero() for _ in range(model.njoints)]
    for link, wrench in zip(pushed, wrenches, strict=True):
        joint = model.frames[model.getFrameId(link, pin.FrameType.BODY)].parentJoint
        forces[joint] += data.oMi[joint].actInv(pin.Force(wrench[3:], wrench[:3]))
    H = np.array(pin.crba(model, data, q))
    H = np.triu(H) + np.triu(H, 1).T
    out = {
        "pushed": np.array(pushed),
        "wrenches": wrenches,
        "links": np.array(links),
        "rotation": np.array([M.rotation for M in poses]),
        "position": np.array([M.translation for M in poses]),
        "H": H[np.ix_(back, back)][np.tril_indices(model.nv)],
        "C_": pin.nonLinearEffects(model, data, q, v),
        "G_": pin.computeGeneralizedGravity(model, data, q),
        "tau_id_": pin.rnea(model, data, q, v, a),
        "qdd_": pin.aba(model, data, q, v, tau),
        "tau_f_ext_": pin.rnea(model, data, q, v, a, forces),
        "qdd_f_ext_": pin.aba(model, data, q, v, tau, forces),
        "com": np.array(pin.centerOfMass(model, data, q)),
        "T": np.array(pin.computeKineticEnergy(model, data, q, v)),
        "V": np.array(pin.computePotentialEnergy(model, data, q)),
    }
    out = {k.rstrip("_"): np.array(x)[back] if k.endswith("_") else x for k, x in out.items()}
    out["A_G"] = np.array(pin.computeCentroidalMap(model, data, q))[SWAP][:, back]
    out["h_G"] = np.array(pin.computeCentroidalMomentum(model, data, q, v))[SWAP]
    pin.computeCentroidalMapTimeVariation(model, data, q, v)
    out["bias"] = (np.array(data.dAg) @ v)[SWAP]
    return out


def main() -> None:
    arrays = {"versions": np.array([f"pinocchio {pin.__version__}", f"numpy {np.__version__}"])}
    for name, states in STATES.items():
        for base in ("fixed", "floating"):
            model = load(ROBOTS / f"{name}.urdf", base)
            for k in range(states):
                rng = np.random.default_rng([2024, k, model.nv])
                for key, value in state(model, base, rng).items():
                    arrays[f"{name}/{base}/{k}/{key}"] = value
    path = HERE / "oracles.npz"
    np.savez_compressed(path, **arrays)
    print(
        f"{path}: {len(arrays)} arrays, {path.stat().st_size / 1000:.0f} kB, {', '.join(arrays['versions'])}"
    )


if __name__ == "__main__":
    main()
