"""Physics in the page: the step as WebAssembly, and what the page needs to feed it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SlotData:
    """An array of float64 in the module's memory.

    Attributes:
        name: of the array.
        at: first byte.
        count: numbers.
    """

    name: str
    at: int
    count: int


@dataclass(frozen=True)
class LiveData:
    """The step of the recording as WebAssembly, and its start.

    Attributes:
        worker: text of the Worker that runs it.
        module: the module, compressed by gzip, as base64.
        bytes: of the module.
        slots: arrays in its memory, inputs and outputs.
        q, v: the start of the recording, (nq,) and (nv,) as base64 of float64.
        parameters: what the step is given besides the state, (P,) as base64 of float64: the step [s] first.
        friction: place in ``parameters`` of the first coefficient of friction, and how many there are.
        gravity: place in ``parameters`` of the three components [m/s^2].
        dt: step of the recording [s].
        mass: of the whole robot [kg].
        masses: of the bodies 1..N [kg].
        contacts: body of each contact point.
        stiffness, damping: of a hand that suits the robot [N/m], [N s/m].
    """

    worker: str
    module: str
    bytes: int
    slots: list[SlotData]
    q: str
    v: str
    parameters: str
    friction: tuple[int, int]
    gravity: int
    dt: float
    mass: float
    masses: list[float]
    contacts: list[int]
    stiffness: float
    damping: float
