"""Robot: names, joints, links and limits on top of the numbered tree."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from robokit import hooks
from robokit.caching import Derived, Recent, cached_attribute
from robokit.conventions import FLOATING_BASE
from robokit.errors import Diagnostic, ShapeError, UnknownName, shown
from robokit.model import inertial_parameters as inertial
from robokit.model.arguments import not_a_robot
from robokit.model.configurations import Configurations, finite_values
from robokit.model.geometry import Placement
from robokit.model.parts import Joint, Link, LoopJoint
from robokit.model.sparsity import inertia_pattern
from robokit.model.tree import Tree

MOST_GRAVITIES = 4
"""Of which a robot keeps variants that nobody uses: each has its machine code, megabytes for a humanoid."""


@dataclass(frozen=True, eq=False)
class Robot(Configurations):
    """A robot: the numbered tree and the names on it. Immutable; made by ``load_urdf`` or a builder.

    Attributes:
        name: the description's name.
        base: "fixed" or "floating".
        tree: lambda, mu, nu, kappa, p, s and the joint models, placements and inertias.
        joints: movable joints in v order, the floating base first.
        links: all links, in document order; those behind fixed joints too.
        fixed_joints: joints that were folded into their parent.
        loop_joints: joints N+1..N_J.
        mimic_joints: joints without coordinates of their own, which follow others through ``coupling``.
        diagnostics: what the importer found.
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

    def __repr__(self) -> str:
        mass = f"{self.total_mass:.4g} kg" if self.samples is None else f"{self.samples} samples of masses"
        return (
            f"<Robot {self.name!r}: {self.base} base, {self.nbodies} bodies, nq {self.nq}, nv {self.nv}, "
            f"{mass}>"
        )

    def _repr_html_(self) -> str:
        """A still of the robot and a button that opens its page, as a notebook cell."""
        return str(hooks.call("notebook_html", self))

    def __getstate__(self) -> dict[str, Any]:
        """What a copy or another process gets: not machine code, nor what other modules derived."""
        left = ("kernels", "derived", "_by_gravity")
        kept = {name: value for name, value in vars(self).copy().items() if name not in left}
        return kept | {"shared_kernels": {}}

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
        total = sum(I.m for I in self.tree.I[1:])
        return float(total) if self.samples is None else np.asarray(total)

    @property
    def samples(self) -> int | None:
        """B where :meth:`with_inertias` gave one set of parameters a sample, else None."""
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
        """Acceleration of free fall in world axes, (3,) [m/s^2]."""
        return np.array(self.tree.gravity)

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
        """(body, placement of the link frame in that body's frame)."""
        found = self.link(link)
        return found.body, found.placement

    def body_name(self, i: int) -> str:
        """Name of body i: the link whose frame is the body's frame; "world" for a floating robot's body 0."""
        return self.tree.name[i]

    # ---- variants ------------------------------------------------------------------------------

    def with_gravity(self, gravity: Sequence[float]) -> Robot:
        """The same robot under another gravity, (3,) in world axes [m/s^2].

        Equal numbers give the same object as long as it is in use, or was among the last few asked for.

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
        """The same robot with other masses, centres of mass and inertias, without compiling anew.

        The kernels of the robot that is returned take the inertial parameters as an input. They are
        compiled once for all robots made of one another by this method and :meth:`with_gravity`; what
        they compute is that of a robot built with these numbers, at a little more time. With one set of
        parameters a sample, (B, ...), the dynamics functions and ``rollout`` take batches of B states, or
        one state for all samples, and compute row k with sample k (domain randomisation).

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
        parameters, links = inertial.changed(bodies, inertias)
        return self._with_parameters(parameters, links)

    def sample(self, k: int) -> Robot:
        """The robot of sample k, of a robot with one set of inertial parameters a sample.

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


__all__ = ["FLOATING_BASE", "Robot"]


def check_robot(given: Any, argument: str = "robot") -> None:
    """Raise WrongType for anything but a Robot."""
    if not isinstance(given, Robot):
        raise not_a_robot(given, argument)
