"""Configurations of a robot: neutral, random, by names, by joint, and moved on the manifold."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np

from robokit.arguments import (
    check_finite,
    check_values,
    is_single_precision,
    random_generator,
    real_array,
    whole_number,
)
from robokit.caching import cached_attribute
from robokit.conventions import LARGEST_ANGLE, UNIT_QUATERNION_TOLERANCE
from robokit.errors import InvalidValue, ShapeError, UnknownName, WrongType
from robokit.model.joints import JointModel
from robokit.model.mimic_coupling import Coupling
from robokit.model.parts import Joint
from robokit.model.tree import Tree


class Configurations:
    """The half of :class:`~robokit.model.robot.Robot` that is about joints, q and v.

    Attributes:
        name, base, tree, joints, mimic_joints, fixed_joints: the robot's.
    """

    name: str
    base: str
    tree: Tree
    joints: tuple[Joint, ...]
    mimic_joints: tuple[Joint, ...]
    fixed_joints: tuple[Joint, ...]

    @cached_attribute
    def _joint_by_name(self) -> dict[str, Joint]:
        return {j.name: j for j in (*self.joints, *self.mimic_joints, *self.fixed_joints)}

    def joint(self, name: str) -> Joint:
        """The joint of that name; raises UnknownName with the nearest names."""
        try:
            return self._joint_by_name[name]
        except (KeyError, TypeError):  # TypeError: a list cannot be looked up
            raise UnknownName("joint", name, self._joint_by_name, f"in robot {self.name!r}") from None

    @cached_attribute
    def _quaternions(self) -> list[int]:
        """Where q holds unit quaternions."""
        offsets = ((j, self.tree.joint[j.body].kind.quaternion) for j in self.joints)
        return [joint.q_slice.start + k for joint, k in offsets if k is not None]

    @property
    def nq(self) -> int:
        """Length of a configuration q."""
        return self.tree.nq if self.coupling is None else self.coupling.nq

    @property
    def nv(self) -> int:
        """Length of a velocity v."""
        return self.tree.nv if self.coupling is None else self.coupling.nv

    @property
    def coupling(self) -> Coupling | None:
        """G and offset of the coupled mimic joints; None where every joint has its coordinates."""
        return self.tree.coupling

    @property
    def dof_parent(self) -> tuple[int, ...]:
        """lambda on degrees of freedom, which gives the sparsity of H and of its factor."""
        return self.tree.dof_parent if self.coupling is None else self.coupling.dof_parent

    def neutral(self) -> np.ndarray:
        """The undisplaced configuration, (nq,): zeros, and unit quaternions."""
        q: list[float] = []
        for joint in self.joints:
            q += self.tree.joint[joint.body].neutral()
        return np.array(q, dtype=float)

    def split_q(self, q: Sequence[Any]) -> list[Sequence[Any]]:
        """q by body 0..N, coupled mimic joints included: what the algorithms take."""
        return self.tree.split_q(q if self.coupling is None else self.coupling.full_q(q))

    def split_v(self, v: Sequence[Any]) -> list[Sequence[Any]]:
        """v or a by body 0..N, coupled mimic joints included: what the algorithms take."""
        return self.tree.split_v(v if self.coupling is None else self.coupling.full_v(v))

    def split_tau(self, tau: Sequence[Any]) -> list[Sequence[Any]]:
        """Joint forces by body 0..N; coupled mimic joints have none of their own."""
        return self.tree.split_v(tau if self.coupling is None else self.coupling.force_at_own(tau))

    def join_q(self, rows: Sequence[Sequence[Any]]) -> list[Any]:
        """q of its values by body: the opposite of :meth:`split_q`."""
        full = list(chain.from_iterable(rows))
        return full if self.coupling is None else [full[k] for k in self.coupling.own_q]

    def join_v(self, rows: Sequence[Sequence[Any]]) -> list[Any]:
        """v of its values by body: the opposite of :meth:`split_v`."""
        full = list(chain.from_iterable(rows))
        return full if self.coupling is None else [full[k] for k in self.coupling.own_v]

    def random_configuration(
        self, rng: np.random.Generator | int | None = None, size: int | None = None
    ) -> np.ndarray:
        """Random configurations inside the position limits.

        Where a joint has no limit, or one of 2^30 and more (files write 1e16 for none): angles within +-pi,
        shifts and base positions within +-1 m. Quaternions are uniform.

        Args:
            rng: NumPy random generator, or a seed for one.
            size: how many; None for a single one.

        Returns:
            (nq,), or (size, nq): the rows are what as many calls with one generator give.

        Raises:
            ShapeError: neither a generator nor a seed, or a size that is no whole number from 0.

        Example:
            >>> robot = rk.load_urdf(rk.find_robot("arm"))
            >>> np.array_equal(robot.random_configuration(7), robot.random_configuration(7))
            True
            >>> robot.random_configuration(7, 100).shape
            (100, 7)
        """
        rng = random_generator("rng", rng)
        if size is None:
            return self._drawn(rng)
        count = whole_number("size", size, 0)
        if len(self._drawn_at_once) == 1:  # no quaternions: all rows in one draw
            _, lower, upper = self._drawn_at_once[0]
            return rng.uniform(lower, upper, (count, self.nq))
        return np.array([self._drawn(rng) for _ in range(count)], dtype=float).reshape(count, self.nq)

    def _drawn(self, rng: np.random.Generator) -> np.ndarray:
        """One random configuration, (nq,)."""
        q: list[float] = []
        for model, lower, upper in self._drawn_at_once:
            q += rng.uniform(lower, upper).tolist() if model is None else model.random(rng, lower, upper)
        return np.array(q, dtype=float)

    @cached_attribute
    def _drawn_at_once(self) -> list[tuple[JointModel | None, list[float], list[float]]]:
        """Bounds in a random configuration: of each joint with a quaternion, and of all between two of them.

        The latter have no model.
        """
        found: list[tuple[JointModel | None, list[float], list[float]]] = [(None, [], [])]
        for joint in self.joints:
            model = self.tree.joint[joint.body]
            spread = math.pi if model.kind.name in ("revolute", "continuous", "helical") else 1.0
            lower, upper = [-spread] * model.kind.nq, [spread] * model.kind.nq
            if model.kind.nq == 1:
                low, high = self.position_range(joint)
                if abs(low) < LARGEST_ANGLE:
                    lower[0] = low
                    upper[0] = max(upper[0], low)
                if abs(high) < LARGEST_ANGLE:
                    upper[0] = high
                    lower[0] = min(lower[0], high)
            elif model.kind.name in ("cylindrical", "planar"):
                lower[0], upper[0] = -math.pi, math.pi
            if model.kind.quaternion is None:
                found[-1][1].extend(lower)
                found[-1][2].extend(upper)
            else:
                found += [(model, lower, upper), (None, [], [])]
        return found

    def position_range(self, joint: Joint) -> tuple[float, float]:
        """Position limits of a joint, narrowed by those of the joints that follow it.

        Where the followers leave no range at all, the joint's own limits.
        """
        low, high = joint.lower, joint.upper
        if self.coupling is not None:
            for follower in self.mimic_joints:
                k, m, offset = self.coupling.q_from[self.tree.q_slice[follower.body].start]
                if k == joint.q_slice.start and m:
                    ends = sorted(((follower.lower - offset) / m, (follower.upper - offset) / m))
                    low, high = max(low, ends[0]), min(high, ends[1])
        # A range that ends at -0.0, a zero limit times a negative multiplier, is none to NumPy's generator.
        return (low + 0.0, high + 0.0) if low <= high else (joint.lower, joint.upper)

    def configuration(
        self,
        base_position: Sequence[float] | Mapping[str, float | Sequence[float]] | None = None,
        base_quat_wxyz: Sequence[float] | None = None,
        joints: Mapping[str, float | Sequence[float]] | None = None,
    ) -> np.ndarray:
        """A configuration by names, (nq,); what is not named stays neutral.

        Args:
            base_position: (3,) of a floating base in world axes [m]. A mapping in its place is ``joints``:
                ``robot.configuration({"left_knee": 0.4})``.
            base_quat_wxyz: (4,) unit quaternion of a floating base.
            joints: joint name -> value [rad | m], or the joint's nq values; a floating base's joint, the
                first of ``robot.joint_names``, has [qw qx qy qz, px py pz].

        Raises:
            UnknownName: no such joint; says the nearest names.
            WrongType: joints is no mapping, or is given twice.
            ShapeError: a wrong number of values, a joint that is fixed or follows another, or a base pose for
                a fixed base.
            InvalidValue: NaN, infinity, or a quaternion that is not of unit length.

        Example:
            >>> robot = rk.load_urdf(rk.find_robot("humanoid"), base="floating")
            >>> q = robot.configuration({"left_knee": 0.4}, base_quat_wxyz=(0, 0, 0, 1))
            >>> q[robot.joint("left_knee").q_slice]
            array([0.4])
        """
        if isinstance(base_position, Mapping):
            if joints is not None:
                raise WrongType("base_position", base_position, "(3,) numbers where joints are given too")
            base_position, joints = None, base_position
        if not isinstance(joints, (Mapping, type(None))):
            raise WrongType("joints", joints, "a mapping from joint names to values")
        q = self.neutral()
        for what, pose, place in (
            ("base_quat_wxyz", base_quat_wxyz, slice(0, 4)),
            ("base_position", base_position, slice(4, 7)),
        ):
            if pose is None:
                continue
            if self.base != "floating":
                raise ShapeError(
                    f"{what}: robot {self.name!r} has a fixed base; load it with base='floating'"
                )
            q[place] = finite_values(what, pose, place.stop - place.start)
        for name, value in (joints or {}).items():
            joint = self.joint(name)
            if joint in self.mimic_joints:
                leader = joint.mimic.joint if joint.mimic else ""
                raise ShapeError(
                    f"joints[{name!r}]: the joint is coupled and follows {leader!r}; set that one"
                )
            if joint in self.fixed_joints:
                raise ShapeError(f"joints[{name!r}]: the joint is fixed and has no value")
            q[joint.q_slice] = finite_values(
                f"joints[{name!r}]", value, joint.q_slice.stop - joint.q_slice.start
            )
        for joint in self.joints:
            offset = self.tree.joint[joint.body].kind.quaternion
            if offset is not None:
                at = joint.q_slice.start + offset
                norm2 = float(q[at : at + 4] @ q[at : at + 4])
                if abs(norm2 - 1.0) > UNIT_QUATERNION_TOLERANCE:
                    by_name = joint.name in (joints or {})
                    raise InvalidValue(
                        f"quaternion (wxyz) of joint {joint.name!r} has norm "
                        f"{math.sqrt(norm2):.6g}; a unit quaternion is needed: divide it by its norm",
                        f"joints[{joint.name!r}]" if by_name else "base_quat_wxyz",
                        (offset if by_name else 0,),
                    )
        return q

    def integrate(self, q: Any, dv: Any) -> np.ndarray:
        """Move q along the body velocity dv for one unit of time, on the manifold.

        Args:
            q: (nq,) or (B, nq).
            dv: (nv,) or (B, nv), velocity times time step.

        Returns:
            (nq,) or (B, nq); float32 where all arrays of floats that are given are.

        Raises:
            ShapeError: another shape.
            InvalidValue: NaN, infinity, or a quaternion that is not of unit length.

        Example:
            >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"), base="floating")
            >>> quarter_turn = [0, 0, np.pi / 2, 0, 0, 0, 0.1, 0]  # about z
            >>> q = robot.integrate(robot.neutral(), quarter_turn)
            >>> q.round(4)
            array([0.7071, 0.    , 0.    , 0.7071, 0.    , 0.    , 0.    , 0.1   ,
                   0.    ])
        """
        single = is_single_precision((q, dv))
        q = _array("q", q, self.nq)
        dv = _array("dv", dv, self.nv)
        self._check_values(q=q, dv=dv)
        result = self._manifold("integrate", q, dv)
        return result.astype(np.float32) if single else result

    def difference(self, q0: Any, q1: Any) -> np.ndarray:
        """The dv with ``integrate(q0, dv) = q1``, (nv,) or (B, nv).

        Raises:
            ShapeError, InvalidValue: as of :meth:`integrate`.

        Example:
            >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"), base="floating")
            >>> q, dv = robot.random_configuration(0), np.linspace(-1.0, 1.0, 8)
            >>> np.allclose(robot.difference(q, robot.integrate(q, dv)), dv)
            True
        """
        single = is_single_precision((q0, q1))
        q0 = _array("q0", q0, self.nq)
        q1 = _array("q1", q1, self.nq)
        self._check_values(q0=q0, q1=q1)
        result = self._manifold("difference", q0, q1)
        return result.astype(np.float32) if single else result

    def _check_values(self, **arrays: np.ndarray) -> None:
        turns = [k for k, name in enumerate(arrays) if name.startswith("q")]
        try:
            quaternions = [(k, offset) for offset in self._quaternions for k in turns]
            check_values(list(arrays), list(arrays.values()), quaternions)
        except InvalidValue as error:
            raise of_joint(self, error) from None

    def _manifold(self, what: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        single = a.ndim == 1 and b.ndim == 1
        if a.ndim == 2 and b.ndim == 2 and len(a) != len(b):
            raise ShapeError(f"{what}: batches of {len(a)} and {len(b)} do not go together; give the same B")
        # One scalar a coordinate: a float, or the whole batch as a NumPy array.
        xs = a.tolist() if single else list(np.atleast_2d(a).T)
        ys = b.tolist() if single else list(np.atleast_2d(b).T)
        out: list[Any] = []
        for joint in self.joints:
            second = joint.v_slice if what == "integrate" else joint.q_slice
            out += getattr(self.tree.joint[joint.body], what)(xs[joint.q_slice], ys[second])
        if single:
            return np.array(out, dtype=float)
        rows = len(a) if a.ndim == 2 else len(b)
        result = np.empty((rows, len(out)))
        for k, x in enumerate(out):
            result[:, k] = x
        return result


def finite_values(what: str, value: Any, n: int) -> np.ndarray:
    """An argument of n finite numbers, (n,).

    Raises:
        ShapeError: another number of them, or none at all.
    """
    array = np.atleast_1d(real_array(what, value, f"({n},)"))
    if array.shape != (n,):
        raise ShapeError(f"{what}: expected {n} number{'s' * (n != 1)}, got shape {array.shape}")
    check_finite(what, array)
    return array


def of_joint(robot: Configurations, error: InvalidValue) -> InvalidValue:
    """The error with the name of the joint whose number it is about, where the argument is by joint."""
    sizes = {
        "q_slice": ("q", "q0", "q1"),
        "v_slice": ("v", "v0", "dv", "a", "tau"),
    }
    for place, names in sizes.items():
        if error.argument in names and error.place:
            for joint in robot.joints:
                at = getattr(joint, place)
                if at.start <= error.place[-1] < at.stop:
                    return InvalidValue(f"{error} (joint {joint.name!r})", error.argument, error.place)
    return error


def _array(what: str, value: Any, n: int) -> np.ndarray:
    array = real_array(what, value, f"({n},) or (B, {n})")
    if array.ndim not in (1, 2) or array.shape[-1] != n:
        raise ShapeError(f"{what}: expected shape ({n},) or (B, {n}), got {array.shape}")
    return array
