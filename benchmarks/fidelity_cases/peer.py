"""The same robots in MuJoCo, with the same shapes.

MuJoCo gets the collision shapes themselves (of meshes it takes the hull); limits and damping of the joints
are the same, self-collision is off, and ``compiler.degree`` too, so that limits are in radians. "stiff" has
contacts with a time constant of 2 ms, the least that 1 ms allows (solref), elliptic cones and impratio 100,
which MuJoCo's manual recommends against slip. Hinges that close loops hold two points of their axis together
("connect"), stiff ones with a time constant of three steps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from mujoco_model import _geometry, _quat, tree_spec

import robokit as rk
from robokit.interop import MujocoAdapter

STIFF = 2e-3
"""Time constant of stiff contacts [s]; at least two steps."""

LEVER = 0.1
"""Distance of the two points of a hinge that closes a loop [m]."""


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
        spec = tree_spec(robot, damping, least=1e-12)
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
        ends = _close(spec, robot)
        if friction is not None:
            self._ground(spec, robot)
        if joint_friction:
            ours = {j.name: j.friction for j in robot.joints}
            for joint in spec.joints:
                joint.frictionloss = ours.get(joint.name, 0.0)
        self.mujoco, self.model = mujoco, spec.compile()
        self.model.eq_data[:, :6] = np.reshape(ends, (-1, 6))  # compiled, the ends are those of q = 0
        if stiff:
            self.model.eq_solref[:, 0] = 3.0 * dt  # two are unstable in a governor
        self.data, self.to = mujoco.MjData(self.model), MujocoAdapter(robot, self.model)

    def _ground(self, spec: Any, robot: rk.Robot) -> None:
        """The plane, solids at rest, and the robot's shapes; with pairs, these meet each other too."""
        how, fixed = self.how, {"contype": 1, "conaffinity": 2}
        if self.plane:
            kind = self_mujoco().mjtGeom.mjGEOM_PLANE
            spec.worldbody.add_geom(type=kind, size=[0, 0, 1], **fixed, **how)
        for k, (geometry, at, *turn) in enumerate(self.solids):
            way = {"quat": _quat(np.asarray(turn[0]))} if turn else {}
            shape = _geometry(spec, geometry, f"solid{k}")
            spec.worldbody.add_geom(pos=list(at), **way, **fixed, **how, **shape)
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

    def contact_forces(self) -> tuple[np.ndarray, np.ndarray]:
        """Forces of the last step: normal, tangential, tangential (n, 3); in the world on robots (n, 3) [N].

        The latter are 0 for contacts between bodies.
        """
        n, wrench = self.data.ncon, np.zeros(6)
        own, world = np.zeros((n, 3)), np.zeros((n, 3))
        for k in range(n):
            self.mujoco.mj_contactForce(self.model, self.data, k, wrench)
            own[k], contact = wrench[:3], self.data.contact[k]
            still = [self.model.geom_bodyid[g] == 0 for g in (contact.geom1, contact.geom2)]
            world[k] = (still[0] - float(still[1])) * (contact.frame.reshape(3, 3).T @ own[k])
        return own, world

    @property
    def warned(self) -> bool:
        """Whether MuJoCo met a bad state, which it resets."""
        return any(w.number for w in self.data.warning)


States = tuple[np.ndarray, np.ndarray]
"""q and v of many times."""


class Others:
    """The same motions in MuJoCo, at its defaults and, where loops are, stiff; none without MuJoCo.

    Args:
        look: how closely to look.
        robot: whose loops are hinges.
        dt: time step [s].
        ready: called with each peer: what it gets besides.
    """

    def __init__(self, look: Any, robot: rk.Robot, dt: float, ready: Callable[[Peer], Any] | None = None):
        self.peers: dict[str, Peer] = {}
        keys = ("mujoco", "stiff") if robot.loop_joints else ("mujoco",)
        for key in keys if look.peer else ():
            self.peers[key] = Peer(robot, dt, key == "stiff", None)
            if ready is not None:
                ready(self.peers[key])
        self.found: dict[str, States] = {}

    def run(self, q: np.ndarray, v: np.ndarray | None, steps: int, every: int) -> None:
        """The states of each from this one."""
        for key, peer in self.peers.items():
            peer.start(q, v)
            self.found[key] = peer.states(steps, every)

    def of(self, measure: Callable[[np.ndarray, np.ndarray], float]) -> dict[str, float]:
        """A figure of each, as arguments of Found.add."""
        return {key: measure(q, v) for key, (q, v) in self.found.items()}


def _close(spec: Any, robot: rk.Robot) -> list[np.ndarray]:
    """Hinges that close loops, as pairs of points; where these are on both bodies, (6,) each."""
    kinds, ends = self_mujoco(), []
    for loop in robot.loop_joints:
        if loop.kind != "revolute":
            raise TypeError(f"loop {loop.name!r} is no hinge but {loop.kind!r}")
        links = robot.link(loop.predecessor), robot.link(loop.successor)
        places = loop.predecessor_placement, loop.successor_placement
        frames = [link.placement @ place for link, place in zip(links, places, strict=True)]
        for along in (0.0, LEVER):
            spec.add_equality(
                type=kinds.mjtEq.mjEQ_CONNECT,
                objtype=kinds.mjtObj.mjOBJ_BODY,
                name1=robot.body_name(links[0].body) if links[0].body else "world",
                name2=robot.body_name(links[1].body) if links[1].body else "world",
            )
            ends.append(np.concatenate([f.position + f.rotation @ (along * loop.axis) for f in frames]))
    return ends


def self_mujoco() -> Any:
    """The module."""
    import mujoco

    return mujoco


def both(look: Any, run: Any) -> dict[str, float | None]:
    """run(stiff) of MuJoCo at its defaults and stiff, as arguments of a figure; nothing without MuJoCo."""
    if not look.peer:
        return {}
    return {"mujoco": run(False), "stiff": run(True)}
