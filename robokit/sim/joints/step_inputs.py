"""What a step is given: actuators, pushes, and what a controller gives to the six entries of a floating base.

The kernel of a step has an input more for each of the first two that there is. Where nothing is given it is
the kernel of a robot that only falls. Forces from outside change the momentum of a floating robot, which
joint forces do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from robokit.algorithms.center_of_mass import composite_moment
from robokit.algorithms.centroidal import about
from robokit.model.tree import Tree
from robokit.sim.joints.drives import Drive, DriveNumbers, DriveState
from robokit.sim.motion.ledger import Ledger
from robokit.sim.motion.moving_axes import Rows
from robokit.spatial import Force, Motion, Transform, Vector3
from robokit.spatial.scalars import Scalar

# ---- forces from outside -----------------------------------------------------------------------------------


Place = tuple[int, tuple[Scalar, Scalar, Scalar] | None]
"""Body and point in its coordinates [m]; None where the wrench is about the world's origin."""

BodyForces = list[Force | None]
"""Force on each body 0..N in its coordinates, None where there is none."""


def body_forces(
    tree: Tree, X: Sequence[Any], places: Sequence[Place], wrenches: Sequence[Scalar], base: Sequence[Scalar]
) -> BodyForces:
    """The forces from outside in one configuration.

    Args:
        X: ^iX_lambda(i).
        places: where the wrenches act.
        wrenches: moment and force of each in world axes, 6 a place [N m; N].
        base: (6,) wrench on body 1 in its coordinates [N m; N]; empty where there is none.
    """
    forces: BodyForces = [None] * (tree.n + 1)
    if base:
        forces[1] = Force(Vector3(*base[:3]), Vector3(*base[3:]))
    turned: dict[int, Transform] = {0: Transform.identity()}
    for k, (i, point) in enumerate(places):
        moment, push = Vector3(*wrenches[6 * k : 6 * k + 3]), Vector3(*wrenches[6 * k + 3 : 6 * k + 6])
        pose = _pose(tree, X, i, turned)
        if point is None:
            f = pose.star(Force(moment, push))
        else:
            turned_push = pose.E @ push
            f = Force(pose.E @ moment + Vector3(*point).cross(turned_push), turned_push)
        own = forces[i]
        forces[i] = f if own is None else own + f
    return forces


def _pose(tree: Tree, X: Sequence[Any], i: int, known: dict[int, Transform]) -> Transform:
    """^iX_0, and those of the bodies on the way."""
    path = []
    while i not in known:
        path.append(i)
        i = tree.parent[i]
    for j in reversed(path):
        known[j] = X[j] @ known[i]
        i = j
    return known[i]


def power(forces: BodyForces, V: Sequence[Motion]) -> Scalar:
    """Of the forces on bodies that move at V [W]."""
    total: Scalar = 0.0
    for f, v in zip(forces, V, strict=True):
        if f is not None:
            total = total + v.dot(f)
    return total


def about_center(tree: Tree, X: Sequence[Any], forces: BodyForces) -> Force:
    """Their sum about the centre of mass, world axes [N m; N]."""
    total = [Force.zero() if f is None else f for f in forces]
    for i in tree.inward():
        p = tree.parent[i]
        total[p] = total[p] + X[i].T @ total[i]
    m, h = composite_moment(tree, X)
    return about(total[0], h * (1.0 / m))


def as_list(forces: BodyForces) -> list[Force]:
    """As algorithms take f_ext: a force for each body."""
    return [Force.zero() if f is None else f for f in forces]


# ---- what a step is given ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class GivenLayout:
    """What a step is given, without the numbers.

    Attributes:
        drives: the driven joints.
        places: (body, whether the wrench is about the world's origin) of each place of pushes.
        base: whether the first six joint forces are a wrench from outside on a base that floats.
        bodies: how many bodies, from the first on, are given a wrench each, in body coordinates.
        fixed_links: whether bodies can touch links that are fixed to the world.
        links: that are pushed at these places.
        motions: bodies whose joints move as is prescribed; steps of "contact" alone take them.
    """

    drives: tuple[Drive, ...] = ()
    places: tuple[tuple[int, bool], ...] = ()
    base: bool = False
    bodies: int = 0
    fixed_links: bool = False
    links: tuple[str, ...] = field(default=(), compare=False, repr=False)
    motions: tuple[int, ...] = ()

    @property
    def inputs(self) -> list[tuple[str, int]]:
        """(name, size) of the inputs of the kernel."""
        found = [("drives", len(self.drives)), ("pushes", 6 * len(self.places)), ("held", 6 * self.bodies)]
        found.append(("motions", 3 * len(self.motions)))
        return [(name, size) for name, size in found if size]

    @property
    def entries(self) -> int:
        """Entries of the ledger besides those that every step has.

        They are the impulse from outside about the centre of mass, world axes [N m s; N s], and for each
        drive the sum of its force times dt [N m s | N s] and the time at a limit [s].
        """
        return 6 * self.outside + 2 * len(self.drives)

    @property
    def outside(self) -> bool:
        """Whether there are forces from outside."""
        return bool(self.places) or self.base or bool(self.bodies) or self.fixed_links

    def problem(self, numbers: Sequence[Scalar], inputs: Sequence[Sequence[Scalar]]) -> Given:
        """What is given in a step.

        Args:
            numbers: the parameters of the drives, then three coordinates for each point of a body.
            inputs: as :attr:`inputs`.
        """
        rest, values = iter(numbers), iter(inputs)
        drives = [
            DriveNumbers(**dict(zip(d.parameters, islice(rest, len(d.parameters)), strict=True)))
            for d in self.drives
        ]
        places: list[Place] = [
            (body, None if world else (next(rest), next(rest), next(rest))) for body, world in self.places
        ]
        u = next(values) if self.drives else ()
        wrenches = next(values) if self.places else ()
        held = next(values) if self.bodies else ()
        return Given(self, drives, u, places, wrenches, held)


NOTHING = GivenLayout()


@dataclass(frozen=True)
class Given:
    """What is given in a step, with its numbers as plain numbers or scalars of a kernel."""

    layout: GivenLayout = NOTHING
    numbers: Sequence[DriveNumbers] = ()
    u: Sequence[Scalar] = ()
    places: Sequence[Place] = ()
    wrenches: Sequence[Scalar] = ()
    held: Sequence[Scalar] = ()

    def joint_forces(self, tau: Rows) -> Rows:
        """The joint forces without those that come from outside."""
        return [tau[0], [0.0] * 6, *tau[2:]] if self.layout.base else tau

    def drive(self, q: Rows, v: Rows, tau: Rows, dt: Scalar, ahead: Scalar) -> DriveState:
        """The actuators in a step, at the configuration q moved along v for the time ahead."""
        at: list[Any] = [()] * len(q)
        for drive in self.layout.drives:
            i = drive.body
            at[i] = [q[i][0] + ahead * v[i][0]]
        return DriveState(self.layout.drives, self.numbers, self.u, at, v, self.joint_forces(tau), dt)

    def outside(self, tree: Tree, X: Sequence[Any], tau: Rows) -> BodyForces:
        """The forces from outside in a configuration with the transforms X, by body."""
        if not self.layout.outside:
            return [None] * (tree.n + 1)
        forces = body_forces(tree, X, self.places, self.wrenches, tau[1] if self.layout.base else ())
        for k in range(self.layout.bodies):
            f = Force(Vector3(*self.held[6 * k : 6 * k + 3]), Vector3(*self.held[6 * k + 3 : 6 * k + 6]))
            own = forces[k + 1]
            forces[k + 1] = f if own is None else own + f
        return forces

    def enter_drives(self, ledger: Ledger, forces: Rows, limited: Sequence[Scalar], dt: Scalar) -> None:
        """Enter the forces of the actuators and the time that they were limited."""
        at = 6 * self.layout.outside
        for k, (drive, share) in enumerate(zip(self.layout.drives, limited, strict=True)):
            ledger.add_more(at + 2 * k, dt * forces[drive.body][0])
            ledger.add_more(at + 2 * k + 1, dt * share)

    def enter_outside(
        self, ledger: Ledger, tree: Tree, X: Sequence[Any], f: BodyForces, V: Sequence[Motion], dt: Scalar
    ) -> Force | None:
        """Enter what the forces from outside do in the time dt on bodies that move at V.

        Args:
            X: transforms of a robot seen from its base, or from the world.
            f: the forces, by body.
            V: velocities of the bodies.
            dt: time [s].

        Returns:
            their impulse about the centre of mass, world axes [N m s; N s]; None where there are none.
        """
        if not self.layout.outside:
            return None
        ledger.add("work", dt * power(f, V))
        impulse = about_center(tree, X, f) * dt
        for k, x in enumerate(impulse):
            ledger.add_more(k, x)
        return impulse
