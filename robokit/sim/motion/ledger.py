"""The ledger of a run, and what a step of passive motion hands to the next one besides q and v.

The ledger has sums of energies and impulses, which each step takes and returns with the state. Handed on are

    momentum    6 numbers of a robot that floats: the centroidal momentum that it ought to have, world axes
    wound       1 number a dof with dry friction: how far its bristle is wound [rad | m]
    energy      1 number of a method that keeps it: of a robot that floats about its centre of mass [J]

All of these start at zero but the momentum and the energy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from robokit.contact.accounts import ENTRIES
from robokit.spatial import Force, Vector3
from robokit.spatial.scalars import Scalar

SLOTS, OWN = ENTRIES[: ENTRIES.index("steps")], ENTRIES[ENTRIES.index("steps") :]
"""Entries of all steps, first in the ledger; and the last ones, those of steps of "contact" alone."""

DISSIPATED = ("contact", "friction", "stops", "collision")
"""Entries that add up to the dissipated energy."""

CONTROL = ("rejected", "shortest", "longest", "not_met")
"""What follows where these are divided to an accuracy (contact/step_control.py)."""

SIZE = len(SLOTS)
AT = {name: k for k, name in enumerate(SLOTS)}
IMPULSE = slice(AT["impulse_nx"], AT["impulse_fz"] + 1)


class Ledger:
    """The ledger in one step: its entries before the step, to which the step adds.

    Attributes:
        entries: as they are now.
        held: the joint forces of the step (held_forces.Held), for what is measured; None without any.
    """

    def __init__(self, before: Sequence[Scalar]) -> None:
        self.entries = list(before)
        self.held: Any = None

    def add(self, name: str, amount: Scalar) -> None:
        """Add to a sum."""
        self.entries[AT[name]] = self.entries[AT[name]] + amount

    def add_more(self, k: int, amount: Scalar) -> None:
        """Add to the sum k of those that only this program has (joints/step_inputs.py)."""
        self.entries[SIZE + k] = self.entries[SIZE + k] + amount


# ---- what a step hands on ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class CarriedLayout:
    """Which of these a robot has.

    Attributes:
        momentum: whether it floats.
        wound: (joint, dof of the joint) with a bristle.
        energy: whether the method keeps the energy.
    """

    momentum: bool = False
    wound: tuple[tuple[int, int], ...] = ()
    energy: bool = False

    @property
    def size(self) -> int:
        """Numbers in all, at least 1: kernels have no empty inputs."""
        return max(1, 6 * self.momentum + len(self.wound) + self.energy)


class Carried:
    """The carried numbers in one step: those from before, and those for the next.

    Attributes:
        momentum: (h_G in world axes) or None; a step replaces it.
        wound: {(joint, dof): angle or distance}; a step replaces them.
        energy: the energy that the robot ought to have [J], or None; a step replaces it.
    """

    def __init__(self, layout: CarriedLayout, before: Sequence[Scalar]) -> None:
        rest = iter(before)
        self.momentum: Force | None = None
        if layout.momentum:
            self.momentum = Force(*(Vector3(next(rest), next(rest), next(rest)) for _ in range(2)))
        self.wound = {place: next(rest) for place in layout.wound}
        self.energy: Scalar | None = next(rest) if layout.energy else None

    def after(self) -> list[Scalar]:
        """All of them in the order of the layout."""
        out: list[Scalar] = [] if self.momentum is None else list(self.momentum)
        out += self.wound.values()
        if self.energy is not None:
            out.append(self.energy)
        return out or [0.0]
