"""Physics in the page: the step as WebAssembly, and what the page needs to feed it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from robokit.viewer.payload_keys.packed_tables import Packed


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
class StepperData:
    """The step of all robots, and a robot (robokit.sim.stepping.contact_page).

    Attributes:
        module: it exports its memory, ``contact_step`` and ``contact_look``; compressed by gzip, as base64.
        bytes: of the module.
        sizes: by name, in the order in which the functions take them.
        arrays: name and shape of each, in the order in which they are given; names are those of sizes.
        steps: how many of them the step takes: the others are the look's.
        whole: names of those of int32; the others are float64.
        kept: names of those that a step hands to the next.
        given: names of those whose numbers are those of the page, and how many of their lowest bytes are not
            0; the others are 0, but for the normals of faces, which are made of the corners.
        numbers: deflated, as base64: the lowest bytes of all numbers, one array after another, then all
            second bytes likewise.
    """

    module: str
    bytes: int
    sizes: list[tuple[str, int]]
    arrays: list[list[str | int]]
    steps: int
    whole: list[str]
    kept: list[str]
    given: list[tuple[str, int]]
    numbers: str


@dataclass(frozen=True)
class MotorData:
    """A driven joint: with the target t it is given bias + gain clip(t, -limit, limit) [N m | N].

    Attributes:
        joint: its name.
        kind: "position", "velocity" or "force": what its target is.
        unit: of the target.
        lower, upper: of the target, for a slider.
        gain, bias, limit: of that law; limit None where there is none.
    """

    joint: str
    kind: str
    unit: str
    lower: float
    upper: float
    gain: float
    bias: float
    limit: float | None


@dataclass(frozen=True)
class MotorsData:
    """The driven joints of a run, and what they wanted in it.

    Attributes:
        list: the joints, n.
        t: times at which targets change, or some of them, (K,) [s].
        targets: from these times on, (K, n).
        commands: what the joints are given in the first step, (n,) as base64 of float64.
        gains: of passive motion, the places of their gains among the parameters of the step.
    """

    list: list[MotorData]
    t: Packed
    targets: Packed
    commands: str
    gains: Sequence[int]


@dataclass(frozen=True)
class LiveData:
    """The step of the recording as WebAssembly, and its start.

    Attributes:
        worker: text of the Worker that runs it.
        stepper: the step of the integrator "contact"; None for that of passive motion
            (sim.stepping.page_step), of which the next five are.
        step: the step.
        look: what a state looks like.
        parameters: what the step is given besides the state, (P,) as base64 of float64: the step [s] first.
        own: arrays of a row of a sweep that differ from those of the program: name and content, as base64 of
            float64.
        momentum, energy: whether a step is handed the momentum and the energy of the one before.
        q, v: the start of the recording, (nq,) and (nv,) as base64 of float64.
        grips: least and largest coefficient of friction on the ground; empty where nothing can touch it.
        gravity: [m/s^2].
        dt: step of the recording [s].
        mass: of the moving bodies [kg].
        masses: of the bodies 1..N [kg].
        floats: whether nothing but the ground and the hand changes its momentum.
        ledger: names of the first entries of the ledger.
        stiffness, damping: of a hand that suits the robot [N/m], [N s/m].
        motors: the driven joints whose targets the page has sliders for; None where there are none.
    """

    worker: str
    stepper: StepperData | None
    step: ModuleData | None
    look: ModuleData | None
    parameters: str
    own: list[tuple[str, str]]
    momentum: bool
    energy: bool
    q: str
    v: str
    grips: list[float]
    gravity: tuple[float, float, float]
    dt: float
    mass: float
    masses: list[float]
    floats: bool
    ledger: list[str]
    stiffness: float
    damping: float
    motors: MotorsData | None = None
