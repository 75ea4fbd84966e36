"""Robot: names, joints and limits on top of the numbered tree; configurations; walks over its links."""

from __future__ import annotations

import hashlib
import heapq
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from robokit import hooks
from robokit.arguments import (
    check_finite,
    check_values,
    is_single_precision,
    not_a_robot,
    random_generator,
    real_array,
    whole_number,
)
from robokit.conventions import FLOATING_BASE, LARGEST_ANGLE, UNIT_QUATERNION_TOLERANCE, WORLD
from robokit.dataclass_tools import Derived, Recent, cached_attribute, frozen, same
from robokit.errors import Diagnostic, InvalidValue, ShapeError, UnknownName, WrongType, shown
from robokit.model import inertial_parameters as inertial
from robokit.model.geometry import Placement, Shape
from robokit.model.joints import JointModel
from robokit.model.parts import Joint, Link, LoopJoint, Scene
from robokit.model.tree import Coupling, Tree, inertia_pattern
from robokit.spatial.scalars import added

MOST_GRAVITIES = 4  # unused variants that a robot keeps, each with megabytes of code for a humanoid


COMPARED = (
    *("name", "base", "joints", "links", "fixed_joints", "loop_joints", "mimic_joints", "parameters"),
    "scene",
)
"""Fields of a robot that two equal ones have in common, beside what is in their fingerprints."""


@frozen(eq=False)
class Robot:
    """A robot: the numbered tree and the names on it. Immutable; made by ``load_urdf`` or a builder.

    Attributes:
        name: the description's name.
        base: "fixed" or "floating".
        tree: lambda, mu, nu, kappa, p, s and the joint models, placements and inertias.
        joints: movable joints in the order of v, the floating base first.
        links: all links, in document order, including those behind fixed joints.
        fixed_joints: fixed joints, whose links belong to the parent's body.
        loop_joints: joints N+1..N_J.
        mimic_joints: joints without their own coordinates, which follow others through ``coupling``.
        scene: other contents of the file, such as actuators, a ground and named configurations, or None.
        diagnostics: findings of the importer.
        source: file the robot came from, or "<string>", "<code>".
        parameters: inertial parameters that the robot's kernels take as an input, (N + 1, 10) or
            (B, N + 1, 10); None where they are constants of the code. See :meth:`with_inertias`.
        shared_kernels: by gravity, kernels of all robots that differ in these parameters or in gravity.
    """

    name: str
    base: str
    tree: Tree
    joints: tuple[Joint, ...]
    links: tuple[Link, ...]
    fixed_joints: tuple[Joint, ...] = ()
    loop_joints: tuple[LoopJoint, ...] = ()
    diagnostics: list[Diagnostic] = field(default_factory=list)
    source: str = "<code>"
    parameters: np.ndarray | None = None
    shared_kernels: dict[tuple[float, ...], dict[Any, Any]] = field(default_factory=dict)
    mimic_joints: tuple[Joint, ...] = ()
    scene: Scene | None = None

    def __repr__(self) -> str:
        mass = f"{self.total_mass:.4g} kg" if self.samples is None else f"{self.samples} samples of masses"
        return (
            f"<Robot {self.name!r}: {self.base} base, {self.nbodies} bodies, nq {self.nq}, nv {self.nv}, "
            f"{mass}>"
        )

    def __eq__(self, other: object) -> bool:
        """Whether two robots are alike in all but the file they came from, as a robot and its copy are."""
        if not isinstance(other, Robot):
            return NotImplemented
        if self is other:
            return True
        if self.fingerprint != other.fingerprint:  # which the tree is part of
            return False
        return all(same(getattr(self, name), getattr(other, name)) for name in COMPARED)

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def _repr_html_(self) -> str:
        """A still of the robot and a button that opens its page, as a notebook cell."""
        return str(hooks.call("notebook_html", self))

    def __getstate__(self) -> dict[str, Any]:
        """State for copies and other processes: without machine code and what other modules derived."""
        left = ("kernels", "derived", "_by_gravity")
        kept = {name: value for name, value in vars(self).copy().items() if name not in left}
        return kept | {"shared_kernels": {}}

    if not TYPE_CHECKING:  # for mypy, what is not defined here does not exist

        def __getattr__(self, name: str) -> Any:
            from robokit.unknown_names import OF_A_ROBOT, no_attribute

            raise no_attribute(self, name, OF_A_ROBOT)

    # ---- sizes and names -----------------------------------------------------------------------

    @cached_attribute
    def inertia_pattern(self) -> np.ndarray:
        """Where H can be nonzero, boolean (nv, nv), not to be written to."""
        pattern = inertia_pattern(self.dof_parent)
        pattern.flags.writeable = False
        return pattern

    @cached_attribute
    def body_joints(self) -> tuple[Joint, ...]:
        """The joint of each body 1..N, coupled mimic joints included."""
        return tuple(sorted((*self.joints, *self.mimic_joints), key=lambda joint: joint.body))

    @property
    def nbodies(self) -> int:
        """N, the number of moving bodies."""
        return self.tree.n

    @cached_attribute
    def total_mass(self) -> Any:
        """Mass of the moving bodies 1..N [kg]; a fixed root's own mass does not count.

        A float; (B,) for a robot with samples.
        """
        total = added(I.m for I in self.tree.I[1:])
        return float(total) if self.samples is None else np.asarray(total)

    @property
    def samples(self) -> int | None:
        """Number of samples B, or None if :meth:`with_inertias` gave a single set of parameters or none."""
        return len(self.parameters) if self.parameters is not None and self.parameters.ndim == 3 else None

    @cached_attribute
    def inertial_parameters(self) -> np.ndarray:
        """Inertial parameters of bodies 0..N, (N + 1, 10), or (B, N + 1, 10) for a robot with samples.

        A row is [m, m c_x, m c_y, m c_z, I_xx, I_xy, I_yy, I_xz, I_yz, I_zz]: mass [kg], first moment
        [kg m] and rotational inertia about the body's origin [kg m^2], in body coordinates, fixed joints
        folded in; ``robot.frame(link)`` says which body a link belongs to. Read-only.
        """
        if self.parameters is not None:
            return self.parameters
        found = np.array([inertial.row(I) for I in self.tree.I], dtype=float)
        found.flags.writeable = False
        return found

    @property
    def gravity(self) -> np.ndarray:
        """Acceleration of free fall in world axes, (3,) [m/s^2]; read-only, see :meth:`with_gravity`."""
        found = np.array(self.tree.gravity)
        found.flags.writeable = False
        return found

    @cached_attribute
    def joint_names(self) -> tuple[str, ...]:
        """Movable joints in v order."""
        return tuple(j.name for j in self.joints)

    @cached_attribute
    def all_joint_names(self) -> tuple[str, ...]:
        """Movable joints in v order, then coupled mimic joints and the fixed ones."""
        return (*self.joint_names, *(j.name for j in (*self.mimic_joints, *self.fixed_joints)))

    @cached_attribute
    def link_names(self) -> tuple[str, ...]:
        """All links in document order."""
        return tuple(link.name for link in self.links)

    @cached_attribute
    def link_index(self) -> dict[str, int]:
        """Link name -> its place in links."""
        return {name: k for k, name in enumerate(self.link_names)}

    @cached_attribute
    def _link_by_name(self) -> dict[str, Link]:
        return {link.name: link for link in self.links}

    def link(self, name: str) -> Link:
        """The link of that name; raises UnknownName with the nearest names."""
        try:
            return self._link_by_name[name]
        except (KeyError, TypeError):
            raise UnknownName("link", name, self._link_by_name, f"in robot {self.name!r}") from None

    def frame(self, link: str) -> tuple[int, Placement]:
        """(body, placement of the link frame in its frame); "world" is body 0 unless a link has this name."""
        if link == WORLD and link not in self._link_by_name:
            return 0, Placement()
        found = self.link(link)
        return found.body, found.placement

    def body_name(self, i: int) -> str:
        """Name of body i: the link whose frame is the body's frame; "world" for a floating robot's body 0."""
        return self.tree.name[i]

    @cached_attribute
    def _joint_by_name(self) -> dict[str, Joint]:
        return {j.name: j for j in (*self.joints, *self.mimic_joints, *self.fixed_joints)}

    def joint(self, name: str) -> Joint:
        """The joint of that name; raises UnknownName with the nearest names."""
        try:
            return self._joint_by_name[name]
        except (KeyError, TypeError):  # TypeError: a list cannot be looked up
            raise UnknownName("joint", name, self._joint_by_name, f"in robot {self.name!r}") from None

    # ---- configurations and velocities -----------------------------------------------------------

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
        """q from its parts by body: the inverse of :meth:`split_q`."""
        full = list(chain.from_iterable(rows))
        return full if self.coupling is None else [full[k] for k in self.coupling.own_q]

    def join_v(self, rows: Sequence[Sequence[Any]]) -> list[Any]:
        """v from its parts by body: the inverse of :meth:`split_v`."""
        full = list(chain.from_iterable(rows))
        return full if self.coupling is None else [full[k] for k in self.coupling.own_v]

    def random_configuration(
        self, rng: np.random.Generator | int | None = None, size: int | None = None
    ) -> np.ndarray:
        """Random configurations inside the position limits.

        If a joint has no limit, or one of at least 2^30 (files write 1e16 for none), angles are within +-pi,
        displacements and base positions within +-1 m. Quaternions are uniform.

        Args:
            rng: NumPy random generator, or a seed for one.
            size: how many; None for a single one.

        Returns:
            (nq,), or (size, nq): the rows are what as many calls with one generator give.

        Raises:
            ShapeError: ``rng`` is neither a generator nor a seed, or ``size`` is not a whole number from 0.

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

        If the followers leave no range at all, these are the joint's own limits.
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
        base_position: Sequence[float] | Mapping[str, float | Sequence[float]] | str | None = None,
        base_quat_wxyz: Sequence[float] | None = None,
        joints: Mapping[str, float | Sequence[float]] | None = None,
    ) -> np.ndarray:
        """A configuration given by names, (nq,); joints that are not named stay neutral.

        Args:
            base_position: (3,) of a floating base in world axes [m]. As the first argument, a mapping is
                taken as ``joints``, ``robot.configuration({"left_knee": 0.4})``, and a string as the name of
                a configuration in the robot's file, ``robot.configuration("home")``.
            base_quat_wxyz: (4,) unit quaternion of a floating base.
            joints: joint name -> value [rad | m], or the joint's nq values; a floating base's joint, the
                first of ``robot.joint_names``, has [qw qx qy qz, px py pz].

        Raises:
            UnknownName: no such joint or configuration; says the nearest names.
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
        if isinstance(base_position, str):
            base_position = self._named_configuration(base_position)
        if isinstance(base_position, Mapping):
            if joints is not None:
                raise WrongType("base_position", base_position, "(3,) numbers if joints are given, too")
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
        self._check_quaternions(q, joints or {})
        return q

    def _named_configuration(self, name: str) -> dict[str, Any]:
        """The values of the joints that are there and have coordinates of their own."""
        known = {} if self.scene is None else self.scene.configurations
        if name not in known:
            raise UnknownName("configuration", name, known, f"in robot {self.name!r}")
        return {joint: values for joint, values in known[name].items() if joint in self.joint_names}

    def _check_quaternions(self, q: np.ndarray, by_name: Mapping[str, Any]) -> None:
        """Raise InvalidValue for a quaternion of :meth:`configuration` that is not of unit length."""
        for joint in self.joints:
            offset = self.tree.joint[joint.body].kind.quaternion
            if offset is None:
                continue
            at = joint.q_slice.start + offset
            norm2 = float(q[at : at + 4] @ q[at : at + 4])
            if abs(norm2 - 1.0) > UNIT_QUATERNION_TOLERANCE:
                named = joint.name in by_name
                raise InvalidValue(
                    f"quaternion (wxyz) of joint {joint.name!r} has norm "
                    f"{math.sqrt(norm2):.6g}; a unit quaternion is needed: divide it by its norm",
                    f"joints[{joint.name!r}]" if named else "base_quat_wxyz",
                    (offset if named else 0,),
                )

    def integrate(self, q: Any, dv: Any) -> np.ndarray:
        """Move q along the body velocity dv for one unit of time, on the manifold.

        Args:
            q: (nq,) or (B, nq).
            dv: (nv,) or (B, nv), velocity times time step.

        Returns:
            (nq,) or (B, nq); float32 if all given arrays of floats are.

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
            ShapeError, InvalidValue: as in :meth:`integrate`.

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
            quaternions = [(k, offset) for offset in quaternion_offsets(self) for k in turns]
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

    # ---- variants ------------------------------------------------------------------------------

    def with_gravity(self, gravity: Sequence[float]) -> Robot:
        """The same robot under another gravity, (3,) in world axes [m/s^2].

        Equal numbers give the same object as long as it is in use or was created recently.

        Example:
            >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
            >>> rk.gravity_forces(robot.with_gravity((0, 0, 0)), [0.5, 0.2])
            array([0., 0.])
        """
        x, y, z = finite_values("gravity", gravity, 3).tolist()
        g = (x, y, z)
        if g == self.tree.gravity:
            return self
        return self._by_gravity.get(g, lambda: replace(self, tree=replace(self.tree, gravity=g)))

    def with_inertias(self, inertias: Mapping[str, Any] | np.ndarray | Sequence[Any]) -> Robot:
        """The same robot with other masses, centres of mass and inertias, without compiling again.

        The kernels of the robot that is returned take the inertial parameters as an input. They are
        compiled once for all robots made of one another by this method and :meth:`with_gravity`; they give
        the results of a robot built with these numbers, in slightly more time. With one set of parameters per
        sample, (B, ...), the dynamics functions and ``rollout`` take batches of B states, or one state for
        all samples, and compute row k with sample k (domain randomisation).

        Args:
            inertias: {link: (mass, com, inertia)} with mass [kg], com (3,) in the link frame [m] and
                inertia (3, 3) about the centre of mass in link axes [kg m^2], None for what stays; each
                with a leading B for samples. Or parameters of all bodies like
                :attr:`inertial_parameters`, (N + 1, 10) or (B, N + 1, 10), as they come out of an
                identification. The parameters of a body go to the link that the body is named after;
                links that are fixed to it become massless, because their shares are not known.

        Raises:
            ModelError: a wrong shape, or numbers that no body has (not finite, a negative mass, an inertia
                against the triangle inequality); names the link.
            UnknownName: no such link.

        Example:
            >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
            >>> light = 0.5 * robot.inertial_parameters
            >>> forces = [rk.gravity_forces(each, [0.5, 0.2]) for each in (robot.with_inertias(light), robot)]
            >>> forces[0] / forces[1]
            array([0.5, 0.5])
        """
        bodies = inertial.Bodies(
            self.name, self.links, self.tree.name, self.base == "floating", self.inertial_parameters
        )
        parameters, links = inertial.with_changes(bodies, inertias)
        return self._with_parameters(parameters, links)

    def sample(self, k: int) -> Robot:
        """Sample k of a robot with one set of inertial parameters per sample.

        Raises:
            ShapeError: no such sample.

        Example:
            >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
            >>> pi = robot.inertial_parameters
            >>> both = robot.with_inertias(np.stack([pi, 2.0 * pi]))
            >>> both.sample(1).link("lower").mass
            2.0
        """
        if self.samples is None or self.parameters is None or not -self.samples <= k < self.samples:
            raise ShapeError(f"k: expected a sample of {self!r}, got {shown(k)}")
        return self._with_parameters(self.parameters[k], inertial.samples(self.links, k))

    def _with_parameters(self, parameters: np.ndarray, links: tuple[Link, ...]) -> Robot:
        tree = replace(self.tree, I=inertial.inertias(inertial.columns(parameters)))
        return replace(self, tree=tree, links=links, parameters=parameters)

    @cached_attribute
    def _by_gravity(self) -> Recent[Robot]:
        return Recent(MOST_GRAVITIES)

    def kernels_of_all_inertias(self) -> dict[Any, Any]:
        """The kernels that this robot shares with all that differ from it in their inertias."""
        found = self.shared_kernels.setdefault(self.tree.gravity, {})
        for other in list(self.shared_kernels)[:-MOST_GRAVITIES]:
            if other != self.tree.gravity:
                self.shared_kernels.pop(other, None)
        return found

    def cost(self) -> Any:
        """Exact operation counts of the algorithms on this robot: :func:`robokit.cost`."""
        return hooks.call("cost", self)

    @cached_attribute
    def kernels(self) -> dict[Any, Any]:
        """Compiled kernels by name: a place for the layers above, which fill it at first calls."""
        return {}

    @cached_attribute
    def derived(self) -> Derived:
        """What the layers above compute once from this robot: ``robot.derived.get(key, make)``."""
        return Derived()

    @cached_attribute
    def fingerprint(self) -> bytes:
        """Hash of everything a dynamics kernel depends on."""
        moving = self.inertial_parameters[..., 1:, :]
        parts = self.fingerprint_without_inertias + repr(moving.shape).encode() + moving.tobytes()
        return hashlib.sha256(parts).digest()

    @cached_attribute
    def fingerprint_without_inertias(self) -> bytes:
        """Hash of everything a dynamics kernel depends on that takes the inertial parameters as an input."""
        t = self.tree
        parts: list[Any] = [t.parent, t.gravity]
        if t.coupling is not None:
            parts.append((t.coupling.q_from, t.coupling.v_from))
        if t.armature:
            parts.append(t.armature)
        for joint, X in zip(t.joint[1:], t.XT[1:], strict=True):
            parts.append((joint.kind.name, tuple(joint.axis), joint.pitch, X.E.rows, tuple(X.r)))
        for link in self.links:
            parts.append((link.body, link.placement.rotation.tolist(), link.placement.position.tolist()))
        return hashlib.sha256(repr(parts).encode()).digest()


def check_robot(given: Any, argument: str = "robot") -> None:
    """Raise WrongType for anything but a Robot."""
    if not isinstance(given, Robot):
        raise not_a_robot(given, argument)


# ---- checks of arguments -------------------------------------------------------------------------


def finite_values(what: str, value: Any, n: int) -> np.ndarray:
    """An argument of n finite numbers, (n,); ShapeError for another number of them, or none at all."""
    given = real_array(what, value, f"({n},)")
    array = np.atleast_1d(given)
    if array.shape != (n,):
        got = f"shape {given.shape}" if given.ndim else f"one number, {given:g}"
        raise ShapeError(f"{what}: expected {n} number{'s' * (n != 1)}, got {got}")
    check_finite(what, array)
    return array


def of_joint(robot: Robot, error: InvalidValue) -> InvalidValue:
    """The error with the name of the joint whose number it is about, where the argument is by joint."""
    sizes = {"q_slice": ("q", "q0", "q1"), "v_slice": ("v", "v0", "dv", "a", "tau")}
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


# ---- walks ---------------------------------------------------------------------------------------
# Over a robot's links and joints by name, in the order of its numbering.


def joints_in_order(robot: Robot) -> list[Joint]:
    """All joints but a floating base's, in an order for which a builder gives the robot's own numbers."""
    hung = {j.name: j.parent_link for j in (*robot.body_joints, *robot.fixed_joints) if not is_base(robot, j)}
    return [robot.joint(name) for name in joint_order(robot, hung)]


def joint_order(robot: Robot, hung: Mapping[str, str]) -> list[str]:
    """Names of joints in an order for which a builder gives the robot's own numbers.

    Joints of one parent are sorted by the bodies beyond them, and those of bodies come in the order of their
    numbers. Fixed joints keep their order where that does not contradict it. ``hung``: joint name -> the link
    that it hangs on now.
    """
    below = children(robot)
    order = outward(robot, below)
    # The first body that each link, and what it carries, opens; none where all of it is fixed.
    first: dict[str, float] = dict.fromkeys(order, math.inf)
    first.update((j.child_link, j.body) for j in robot.body_joints)
    for name in reversed(order):
        for joint in below[name]:
            first[name] = min(first[name], first[joint.child_link])
    place = {name: k for k, name in enumerate(order)}
    opens = {name: first[robot.joint(name).child_link] for name in hung}
    rank = {name: place[robot.joint(name).child_link] for name in hung}
    siblings: dict[str, list[str]] = {}
    for name in sorted(hung, key=opens.__getitem__):
        if opens[name] < math.inf:
            siblings.setdefault(hung[name], []).append(name)
    rows = [[j.name for j in robot.body_joints if j.name in hung], *siblings.values()]
    fixed = [j.name for j in robot.fixed_joints if j.name in hung]
    return _merge_orders([fixed, *rows], rank) or _merge_orders(rows, rank)


def _merge_orders(rows: list[list[str]], rank: Mapping[str, int]) -> list[str]:
    """All names, low ranks first, in an order that keeps that of every row; [] if the rows contradict."""
    after: dict[str, list[str]] = {name: [] for name in rank}
    waits = dict.fromkeys(rank, 0)
    for row in rows:
        for one, follower in itertools.pairwise(row):
            after[one].append(follower)
            waits[follower] += 1
    ready = [(rank[name], name) for name, count in waits.items() if count == 0]
    heapq.heapify(ready)
    out: list[str] = []
    while ready:
        _, name = heapq.heappop(ready)
        out.append(name)
        for follower in after[name]:
            waits[follower] -= 1
            if waits[follower] == 0:
                heapq.heappush(ready, (rank[follower], follower))
    return out if len(out) == len(rank) else []


def quaternion_offsets(robot: Robot) -> list[int]:
    """Where q holds unit quaternions; to be read."""

    def found() -> list[int]:
        kinds = ((joint.q_slice.start, robot.tree.joint[joint.body].kind) for joint in robot.joints)
        return [start + kind.quaternion for start, kind in kinds if kind.quaternion is not None]

    return robot.derived.get("quaternion offsets", found)


def is_base(robot: Robot, joint: Joint) -> bool:
    """Whether the joint is the one that ``base="floating"`` adds."""
    return robot.base == "floating" and joint.name == FLOATING_BASE


def children(robot: Robot) -> dict[str, list[Joint]]:
    """Link -> the joints that hang on it."""
    below: dict[str, list[Joint]] = {link.name: [] for link in robot.links}
    for joint in (*robot.body_joints, *robot.fixed_joints):
        if not is_base(robot, joint):
            below[joint.parent_link].append(joint)
    return below


def outward(robot: Robot, below: dict[str, list[Joint]]) -> list[str]:
    """All links, the root first, each after the one that carries it."""
    carried = {j.child_link for joints in below.values() for j in joints}
    return subtree(next(link.name for link in robot.links if link.name not in carried), below)


def subtree(link: str, below: dict[str, list[Joint]]) -> list[str]:
    """A link and all that it carries, each after the one that carries it."""
    order, stack = [], [link]
    while stack:
        name = stack.pop()
        order.append(name)
        stack.extend(joint.child_link for joint in reversed(below[name]))
    return order


def with_shapes(robot: Robot, new: Callable[[Shape], Shape]) -> Robot:
    """The robot with each visual and collision shape replaced by the result of a function."""
    links = tuple(
        replace(link, visuals=tuple(map(new, link.visuals)), collisions=tuple(map(new, link.collisions)))
        for link in robot.links
    )
    return replace(robot, links=links)
