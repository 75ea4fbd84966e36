"""What a step hands to the next one besides q and v.

    momentum    6 numbers of a robot that floats: the centroidal momentum that it ought to have, world axes
    anchors     2 numbers a contact point: how far its bristle is bent, along the ground's two axes [m]
    unforeseen  1 number a contact point: what of its last normal force the first sweep did not foresee [N]
    wound       1 number a dof with dry friction: the same of a joint's bristle [rad | m]
    bonds       7 numbers a contact between bodies: which shapes, bristle [m], impulse [N s], world axes
    energy      1 number of a method that keeps it: of a robot that floats about its centre of mass [J]

All start at zero but the momentum and the energy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from robokit.spatial import Force, Vector3
from robokit.spatial.scalars import Scalar


@dataclass(frozen=True)
class CarriedLayout:
    """Which of these a robot has.

    Attributes:
        momentum: whether it floats.
        anchors: contact points with an anchor.
        points: contact points.
        wound: (joint, dof of the joint) with a bristle.
        energy: whether the method keeps the energy.
        bonds: contacts between bodies.
    """

    momentum: bool = False
    anchors: int = 0
    points: int = 0
    wound: tuple[tuple[int, int], ...] = ()
    energy: bool = False
    bonds: int = 0

    @property
    def size(self) -> int:
        """Numbers in all, at least 1: kernels have no empty inputs."""
        of_points = 2 * self.anchors + self.points
        return max(1, 6 * self.momentum + of_points + len(self.wound) + 7 * self.bonds + self.energy)


class Carried:
    """The carried numbers in one step: those from before, and those for the next.

    Attributes:
        momentum: (h_G in world axes) or None; a step replaces it.
        anchors: (along x, along y) of each contact point; a step replaces them.
        unforeseen: of each contact point [N]; a step replaces them.
        wound: {(joint, dof): angle or distance}; a step replaces them.
        bonds: [number of the shapes, bristle, impulse] of the contacts between bodies; a step replaces them.
        energy: the energy that the robot ought to have [J], or None; a step replaces it.
    """

    def __init__(self, layout: CarriedLayout, before: Sequence[Scalar]) -> None:
        rest = iter(before)
        self.momentum: Force | None = None
        if layout.momentum:
            self.momentum = Force(*(Vector3(next(rest), next(rest), next(rest)) for _ in range(2)))
        self.anchors = [(next(rest), next(rest)) for _ in range(layout.anchors)]
        self.unforeseen: list[Scalar] = [next(rest) for _ in range(layout.points)]
        self.wound = {place: next(rest) for place in layout.wound}
        self.bonds = [[next(rest) for _ in range(7)] for _ in range(layout.bonds)]
        self.energy: Scalar | None = next(rest) if layout.energy else None

    def after(self) -> list[Scalar]:
        """All of them in the order of the layout."""
        out: list[Scalar] = [] if self.momentum is None else list(self.momentum)
        for pair in self.anchors:
            out += pair
        out += self.unforeseen
        out += self.wound.values()
        for row in self.bonds:
            out += row
        if self.energy is not None:
            out.append(self.energy)
        return out or [0.0]
