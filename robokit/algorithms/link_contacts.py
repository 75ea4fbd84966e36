"""The constraint of a contact: what moves a point of a link, and the link's axes there, in world axes.

    rows of J: [omega; velocity of the point] of the link, or the velocity alone
    J' qd:     the link's acceleration at qdd = 0, [alpha; a + omega x v]

Source: RBDA sections 2.11, 4.1 and 8.2 (K and k of a constraint to the world; here J and -J' qd).
Cost: O(d), d the depth of the link.
"""

from __future__ import annotations

from collections.abc import Sequence

from robokit.algorithms.loop_constraints import ClosedLoop, Row
from robokit.model.constraints import ContactModel
from robokit.model.tree import Tree
from robokit.spatial import Force, Matrix3, Motion, Transform, Vector3
from robokit.spatial.scalars import Scalar, iterations

_UNIT = tuple(Vector3(*row) for row in Matrix3.identity().rows)


class HeldLink(ClosedLoop):
    """A contact in one configuration: a loop joint between the link and the world, closed where it is now.

    ``rows``, ``columns``: as in :class:`~robokit.algorithms.loop_constraints.ClosedLoop`, in world axes at
    the point.
    """

    def __init__(self, tree: Tree, model: ContactModel, X: Sequence[Transform]) -> None:
        self.tree, self.X, self.model = tree, X, model
        self.path = tree.support[model.body]
        to, moving = model.X, []
        for j in iterations(self.path[::-1]):
            moving += [
                (at, to @ column) for at, column in enumerate(tree.joint[j].S.columns, tree.v_slice[j].start)
            ]
            to = to @ X[j]
        self.R = to.E.T
        self.columns = [(at, self._in_world(column)) for at, column in iterations(moving)]
        self.rows = [_turn(e) for e in _UNIT] if model.turns else []
        self.rows += [_shift(e) for e in _UNIT]

    def _in_world(self, m: Motion) -> Motion:
        """In world axes; the angular part is 0 where no row has one."""
        return Motion(self.R @ m.ang if self.model.turns else Vector3.zero(), self.R @ m.lin)

    def velocity_product(self, qd: Sequence[Sequence[Scalar]]) -> list[Scalar]:
        """J' qd, for velocities by joint."""
        V, a = Motion.zero(), Motion.zero()
        for j in iterations(self.path):
            vJ = self.tree.joint[j].S * qd[j]
            V = self.X[j] @ V + vJ
            a = self.X[j] @ a + V.cross(vJ)
        V, a = self.model.X @ V, self.model.X @ a
        a = self._in_world(Motion(a.ang, a.lin + V.ang.cross(V.lin)))
        return [a.dot(row.f) for row in self.rows]


def _turn(e: Vector3) -> Row:
    return Row(0.0, Force(e, Vector3.zero()), lambda _: Force.zero(), True)


def _shift(e: Vector3) -> Row:
    return Row(0.0, Force(Vector3.zero(), e), lambda V: Force(V.lin.cross(e), Vector3.zero()), False)
