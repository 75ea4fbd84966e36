"""Physics in the page: the step as WebAssembly, and what the page needs to feed it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SlotData:
    """An array of float64 in a module's memory.

    Attributes:
        name: of the array.
        at: first byte.
        count: numbers.
    """

    name: str
    at: int
    count: int


@dataclass(frozen=True)
class ModuleData:
    """A kernel as WebAssembly: it exports its memory and ``step()``.

    Attributes:
        content: the module, compressed by gzip, as base64.
        bytes: of the module.
        slots: arrays in its memory, inputs and outputs.
    """

    content: str
    bytes: int
    slots: list[SlotData]


@dataclass(frozen=True)
class LiveData:
    """The step of the recording as WebAssembly, and its start (robokit.sim.stepping.page_step).

    Attributes:
        worker: text of the Worker that runs it.
        step: the step.
        look: what a state looks like.
        q, v: the start of the recording, (nq,) and (nv,) as base64 of float64.
        parameters: what the step is given besides the state, (P,) as base64 of float64: the step [s] first.
        tables: name and content of the tables of the ground, as base64 of float64.
        friction: place in ``parameters`` of the first coefficient of friction, and how many there are.
        gravity: [m/s^2].
        dt: step of the recording [s].
        mass: of the moving bodies [kg].
        masses: of the bodies 1..N [kg].
        contacts: body of each contact point.
        momentum, energy: whether a step is handed the momentum and the energy of the one before.
        floats: whether nothing but the ground and the hand changes its momentum.
        ledger: names of the first entries of the ledger.
        stiffness, damping: of a hand that suits the robot [N/m], [N s/m].
    """

    worker: str
    step: ModuleData
    look: ModuleData
    q: str
    v: str
    parameters: str
    tables: list[tuple[str, str]]
    friction: tuple[int, int]
    gravity: tuple[float, float, float]
    dt: float
    mass: float
    masses: list[float]
    contacts: list[int]
    momentum: bool
    energy: bool
    floats: bool
    ledger: list[str]
    stiffness: float
    damping: float
