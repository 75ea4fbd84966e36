"""The same robots in MuJoCo, with the same shapes.

MuJoCo gets the collision shapes themselves (of meshes it takes the hull); limits and damping of the joints
are the same, self-collision is off, and ``compiler.degree`` too, so that limits are in radians. "stiff" has
contacts with a time constant of 2 ms, the least that 1 ms allows (solref), elliptic cones and impratio 100,
which MuJoCo's manual recommends against slip.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from mujoco_model import _geometry, _quat, tree_spec

import robokit as rk
from robokit.interop import MujocoAdapter

STIFF = 2e-3
"""Time constant of stiff contacts [s]; at least two steps."""


def there() -> bool:
    """Whether MuJoCo is installed."""
    try:
        import mujoco  # noqa: F401
    except ImportError:
        return False
    return True


class Peer:
    """A robot in MuJoCo: set a state, step, look."""

    def __init__(
        self,
        robot: rk.Robot,
        dt: float,
        stiff: bool = False,
        friction: float | None = 0.8,
        joint_friction: bool = False,
        bounce: float | None = None,
        pairs: Any = None,
        solids: Any = (),
        plane: bool = True,
    ) -> None:
        import mujoco

        mujoco.set_mju_user_warning(lambda message: None)  # or it writes a file; its counters say the same
        damping = {j.name: j.damping for j in robot.joints}
        spec = tree_spec(robot, damping)
        spec.option.timestep = dt
        sliding = [0.8 if friction is None else friction, 0.005, 0.0001]
        how: dict[str, Any] = {"friction": sliding}
        if stiff:
            spec.option.cone = mujoco.mjtCone.mjCONE_ELLIPTIC
            spec.option.impratio = 100.0
            how["solref"] = [max(STIFF, 2.0 * dt), 1.0]
        if bounce is not None:
            how["solref"] = [-1e5, -bounce]
        self.how, self.pairs, self.solids, self.plane = how, pairs, solids, plane
        if friction is not None:
            self._ground(spec, robot)
        if joint_friction:
            ours = {j.name: j.friction for j in robot.joints}
            for joint in spec.joints:
                joint.frictionloss = ours.get(joint.name, 0.0)
        self.mujoco, self.model = mujoco, spec.compile()
        self.data, self.to = mujoco.MjData(self.model), MujocoAdapter(robot, self.model)

    def _ground(self, spec: Any, robot: rk.Robot) -> None:
        """The plane, solids at rest, and the robot's shapes; with pairs, these meet each other too."""
        how, fixed = self.how, {"contype": 1, "conaffinity": 2}
        if self.plane:
            kind = self_mujoco().mjtGeom.mjGEOM_PLANE
            spec.worldbody.add_geom(type=kind, size=[0, 0, 1], **fixed, **how)
        for k, (geometry, at) in enumerate(self.solids):
            spec.worldbody.add_geom(pos=list(at), **fixed, **how, **_geometry(spec, geometry, f"solid{k}"))
        bodies = {body.name: body for body in spec.bodies}
        shapes = [(link, shape) for link in robot.links for shape in link.collisions]
        meet = 0 if self.pairs is None else 4
        for k, (link, shape) in enumerate(shapes):
            at = link.placement @ shape.placement
            bodies[robot.body_name(link.body)].add_geom(
                pos=at.position, quat=_quat(at.rotation), contype=2 | meet, conaffinity=1 | meet, mass=0,
                **how, **_geometry(spec, shape.geometry, f"mesh{k}"),
            )  # fmt: skip
        if self.pairs is None:
            return
        used, near = sorted({link.body for link, _ in shapes}), set(self.pairs.bodies)
        for i, j in ((i, j) for i in used for j in used if i < j and (i, j) not in near):
            spec.add_exclude(bodyname1=robot.body_name(i), bodyname2=robot.body_name(j))

    def start(self, q: Any, v: Any = None) -> None:
        """Set the state."""
        self.mujoco.mj_resetData(self.model, self.data)
        q = np.asarray(q, float)
        v = np.zeros(self.to.robot.nv) if v is None else np.asarray(v, float)
        self.data.qpos[:], self.data.qvel[:] = self.to.q(q), self.to.v(q, v)

    def step(self, n: int = 1) -> None:
        """Take steps."""
        self.mujoco.mj_step(self.model, self.data, nstep=n)

    @property
    def q(self) -> np.ndarray:
        """robokit's q."""
        return self.to.q_back(self.data.qpos)

    @property
    def v(self) -> np.ndarray:
        """robokit's v."""
        return self.to.v_back(self.q, self.data.qvel)

    def states(self, steps: int, every: int) -> tuple[np.ndarray, np.ndarray]:
        """q and v now and after each ``every`` steps."""
        q, v = [self.q], [self.v]
        for _ in range(steps // every):
            self.step(every)
            q.append(self.q)
            v.append(self.to.v_back(q[-1], self.data.qvel))
        return np.array(q), np.array(v)

    @property
    def warned(self) -> bool:
        """Whether MuJoCo met a bad state, which it resets."""
        return any(w.number for w in self.data.warning)


def self_mujoco() -> Any:
    """The module."""
    import mujoco

    return mujoco


def both(look: Any, run: Any) -> dict[str, float | None]:
    """run(stiff) of MuJoCo at its defaults and stiff, as arguments of a figure; nothing without MuJoCo."""
    if not look.peer:
        return {}
    return {"mujoco": run(False), "stiff": run(True)}
