"""Steps of one state of a robot and its ground, in the arrays of the step (contact/step.py)."""

from __future__ import annotations

import ctypes
import math
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from robokit.contact import accounts
from robokit.contact.conservation import FIXED, FLOATS, NOTHING, TOGETHER
from robokit.contact.monitor import NOTES
from robokit.contact.step import ADDED, ARRAYS, step_kernel
from robokit.contact.step_control import controlled_kernel
from robokit.engine.loops.environment import NoMachineCode
from robokit.engine.loops.kernel import ENOUGH
from robokit.engine.maker import engine
from robokit.engine.memory import address
from robokit.engine.signature import ArrayOf
from robokit.model.robot import Robot
from robokit.model.tree import Tree
from robokit.sim.motion.momentum_projection import floats, hangs_on_nothing, may_keep_energy

Arrays = dict[str, np.ndarray]

TOLERANCE = 1e-6
"""Of a step's residual beyond rounding, over the impulses of the step, before the polish that squares it."""

AT_START = {"n_contacts": 16, "n_near": 32, "n_constraints": 16, "n_rows": 0}
"""Places to begin with. A step that needs more is taken again with more."""

NOTED_AT_START = {"n_noted": 64, "n_noted_contacts": 512}
"""The same of what is noted."""

KEPT_BYTES = 1 << 24
"""Room for notes that is kept for those of the next steps; new room takes 2 ms."""

MEMORY = {
    "near_pair": "n_near",
    "near_direction": "n_near",
    "near_corners": "n_near",
    "bristle_pair": "n_contacts",
    "bristle_feature": "n_contacts",
    "bristle": "n_contacts",
    "bristle_normal": "n_contacts",
}
"""Lists that a step hands to the next one, and the size of each; they end with the pair -1."""

NOTHING_MEASURED = {
    "measured": np.zeros(0),
    "link_force": np.zeros((1, 4)),
    "stop_force": np.zeros(0),
    "step_share": np.array([1.0, 0.0]),
}
"""Of the monitor."""

ENDS = tuple(name for name in MEMORY if name.endswith("_pair"))
"""Those of them that end so."""

KEPT = ("kept", "change", "loop_force", "dry_force", "motion_force", "part")
"""What else it hands on, if there is such an array."""

LAYOUT = KEPT, tuple((a.name, a.shape) for a in ARRAYS if a.role == "inout"), accounts.ENTRIES
"""What a saved state is made of; that of a batch has all that steps read and write."""


def keeps(tree: Tree) -> int:
    """What the end of a step corrects."""
    if hangs_on_nothing(tree):
        return FLOATS if floats(tree) and may_keep_energy(tree) else TOGETHER
    return FIXED if may_keep_energy(tree) else NOTHING


class ContactState:
    """A state and its steps.

    Attributes:
        dtype: of its real numbers.
        arrays: all that callers of the step give, by name; the state among them.
        sizes: of the arrays.
        refused: why there is no machine code, or None.
        plain: whether there is to be none.
        soon: whether its code was there soon, and is to be compiled well when it has run for a while.
    """

    def __init__(self, robot: Robot, dt: float, numbers: Mapping[str, np.ndarray], **options: Any) -> None:
        """At rest in the neutral configuration.

        Args:
            dt: time step [s].
            numbers: the arrays ROBOT, SHAPES, PAIRS and FORCES by name, and what of STEP is given; with
                "accuracy" those of CONTROL, and steps are divided to it (contact/step_control.py).
            options: ``tolerance``; ``dtype``; ``reproducible``; ``engine``, "python" for no machine code;
                ``springs``, tensions that are functions.
        """
        self.dtype: str = options.get("dtype", "float64")
        kernel = controlled_kernel if "accuracy" in numbers else step_kernel
        self.kernel = kernel(bool(options.get("reproducible", False)), options.get("springs", ()))
        given = {"dt": np.array([dt]), "tolerance": np.array([options.get("tolerance", TOLERANCE)])}
        given |= {"keeps": np.array([keeps(robot.tree)], np.int32), "orders": np.array([1], np.int32)}
        given |= {**NOTHING_MEASURED, **numbers}
        self.sizes = {"nq": robot.nq, "nv": robot.nv, "n_ledger": len(accounts.ENTRIES), **AT_START}
        self.sizes |= NOTED_AT_START
        self.sizes |= _sizes((*ARRAYS, *self.kernel.arrays), given, self.sizes)
        # closing.py and springs.py ask for these every time.
        self.sizes["n_constraints"] += 2 * self.sizes["n_loops"] + self.sizes["n_springs"]
        n = self.sizes
        n["n_rows"] = 2 * n["n_dofs"] + n["n_stops"] + n["n_motors"] + n["n_motions"]  # all that can be
        self.arrays: Arrays = {a.name: self._made(a, given) for a in self.kernel.taken}
        self.work: Arrays = {}
        self.refused: str | None = None
        self.plain = "python" in (engine(), options.get("engine"))
        self.soon = False
        self._call: Any = None
        self.arrays["q"][:] = robot.neutral()
        lists = [name for name in MEMORY if name not in ENDS]
        self._zero = (*lists, *handed_on(self.arrays), "needed", "noted")
        self.forget()

    def _made(self, a: ArrayOf, given: Mapping[str, np.ndarray]) -> np.ndarray:
        x = a.zeros(self.sizes, self.dtype)
        if a.name in given:
            x[...] = given[a.name]
        return x

    def forget(self) -> None:
        """Nothing was before."""
        for name in ENDS:
            self.arrays[name].fill(-1)
        for name in self._zero:
            self.arrays[name].fill(0)

    # ---- steps -------------------------------------------------------------------------------------------

    def take(self, steps: int) -> int:
        """So many steps: how many left a state that is finite. Places are added where they are needed.

        None at all compile the step.
        """
        done = 0
        self.ready()
        while done < steps:
            before = steps_taken(self.arrays)
            self.ready()(steps - done)
            taken = steps_taken(self.arrays) - before
            if not math.isfinite(taken):
                return done
            done += int(taken)
            if self.arrays["needed"][0]:
                self._enlarge()
            elif not self.finite:
                return done - 1
        return done

    @property
    def finite(self) -> bool:
        """Whether the state is."""
        q, v = self.arrays["q"], self.arrays["v"]
        if math.isfinite(q.sum() + v.sum()):  # almost always, and quicker
            return True
        return bool(np.isfinite(q).all() and np.isfinite(v).all())

    def _enlarge(self) -> None:
        """Half as much again as was needed, where it was too little; of notes four times what there was."""
        needed = self.arrays["needed"]
        sizes = enlarged(self.sizes, needed)
        self.make_room({name: 4 * n if name in NOTED_AT_START else n for name, n in sizes.items()})
        needed[:] = 0

    def notes(self) -> Arrays:
        """What was noted of each step since the last call (contact/monitor.py), by name, as float64."""
        counts = dict(zip(NOTED_AT_START, self.arrays["noted"].tolist(), strict=True))
        found = {a.name: self.arrays[a.name][: counts[str(a.shape[0])]] for a in NOTES[1:]}
        self.arrays["noted"][:] = 0
        if self.dtype != "float64":
            found = {name: x.astype(float) if x.dtype.kind == "f" else x for name, x in found.items()}
        if sum(self.arrays[a.name].nbytes for a in NOTES) < KEPT_BYTES:
            return {name: x.copy() for name, x in found.items()}
        self.sizes |= NOTED_AT_START
        self.arrays |= {a.name: a.zeros(self.sizes, self.dtype) for a in NOTES[1:]}
        self._call = None
        return found

    def make_room(self, sizes: dict[str, int]) -> None:
        """Larger arrays, with what is in them.

        Args:
            sizes: new ones by name, of those in ``ADDED``.
        """
        larger, made = self.sizes | sizes, {}
        for a in self.kernel.taken:
            old = self.arrays[a.name]
            if old.shape != a.at(larger):
                new = made[a.name] = a.zeros(larger, self.dtype)
                if a.name.endswith("_pair"):
                    new[...] = -1
                new[: len(old)] = old
        self._call = None  # the rest in one go: Ctrl-C may come at any time
        self.sizes |= sizes
        self.arrays |= made

    def ready(self) -> Any:
        """A function that takes steps, as long as no array is replaced by a larger one."""
        if self._call is not None and not (self.soon and self.kernel.seconds >= ENOUGH):
            return self._call
        try:
            if self.plain:
                raise NoMachineCode("")
            self._call = self._compiled()
        except NoMachineCode:
            self.refused = self.kernel.refused
            work = [a for a in self.kernel.arrays if a.role == "work"]
            self.work = {a.name: a.zeros(self.sizes, self.dtype) for a in work}
            taken = [self.arrays[a.name] for a in self.kernel.taken]

            def plain(steps: int) -> None:
                for _ in range(steps):
                    self.kernel.on_memory(*(self.sizes[n] for n in self.kernel.sizes), *taken, work=self.work)
                    if not self.finite:
                        return

            self._call = plain
        return self._call

    def _compiled(self) -> Any:
        environment = self.kernel.environment(self.sizes, self.dtype)
        held = zip(self.kernel.arrays, environment.memory, strict=True)
        self.work = {
            a.name: x.reshape(-1)[: math.prod(a.at(self.sizes))].reshape(a.at(self.sizes))
            for a, x in held
            if x is not None
        }
        self.soon = self.kernel.soon and self.kernel.seconds < ENOUGH
        driver = self.kernel.driver("single", self.dtype)
        function = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 2, ctypes.c_int64)(driver)
        pointers = np.array([address(self.arrays[a.name]) for a in self.kernel.taken], np.uint64)
        given = address(pointers), address(environment)

        def run(steps: int, _alive: Any = (pointers, environment)) -> None:
            function(*given, steps)
            self.kernel.looked_at(environment)

        def timed(steps: int) -> None:
            started = time.perf_counter()  # the thread's own time costs a system call
            run(steps)
            self.kernel.seconds += time.perf_counter() - started

        return timed if self.soon else run

    # ---- memory ------------------------------------------------------------------------------------------

    def packed(self) -> np.ndarray:
        """What the next step is handed besides q and v, in one row."""
        return packed(self.arrays)

    def unpack(self, row: np.ndarray) -> None:
        """Go on from what :meth:`packed` gave; from nothing, if that is shorter than it can be."""
        self.forget()
        kept = handed_on(self.arrays)
        if len(row) < 2 + sum(self.arrays[name].size for name in kept):
            return
        counts = {"n_near": int(row[0]), "n_contacts": int(row[1])}
        if any(self.sizes[name] < n for name, n in counts.items()):
            self.make_room({name: max(n, self.sizes[name]) for name, n in counts.items()})
        at = 2
        for name in (*kept, *MEMORY):
            to = self.arrays[name]
            part = to[: counts[MEMORY[name]]] if name in MEMORY else to
            part[...] = row[at : at + part.size].reshape(part.shape)
            at += part.size


STEPS = accounts.AT["steps"]


def packed(x: Mapping[str, np.ndarray]) -> np.ndarray:
    """What the next step is handed besides q and v, of the arrays of one state."""
    counts = [_count(x["near_pair"]), _count(x["bristle_pair"])]
    lists = [x[name][: counts[size == "n_contacts"]] for name, size in MEMORY.items()]
    return np.concatenate([counts, *(each.ravel() for each in (*(x[n] for n in handed_on(x)), *lists))])


def handed_on(x: Mapping[str, np.ndarray]) -> list[str]:
    """Arrays besides lists, q and v that a step hands on, of those of a simulation."""
    return [name for name in KEPT if name in x]


def steps_taken(x: Mapping[str, np.ndarray]) -> Any:
    """How many steps an array of states has taken, or one state; NaN may be among them."""
    return np.array(x["part"][..., 2] if "control" in x else x["ledger"][..., STEPS])


def enlarged(sizes: Mapping[str, int], needed: Sequence[int] | np.ndarray) -> dict[str, int]:
    """Half as much again as was needed, where it was too little.

    Args:
        sizes: as they are.
        needed: what a step says, an array of its name.
    """
    needs = zip(ADDED, (int(n) for n in needed[1:]), strict=True)
    return {name: need + need // 2 for name, need in needs if need > sizes[name]}


def _count(pairs: np.ndarray) -> int:
    """Entries of a list before the first -1."""
    ends = pairs < 0
    first = int(ends.argmax()) if len(pairs) else 0
    return first if len(pairs) and ends[first] else len(pairs)


def _sizes(
    arrays: Sequence[ArrayOf], given: Mapping[str, np.ndarray], known: Mapping[str, int]
) -> dict[str, int]:
    """Sizes that given arrays tell."""
    found: dict[str, int] = {}
    for a in arrays:
        if a.name in given:
            for n, size in zip(a.shape, np.shape(given[a.name]), strict=True):
                if isinstance(n, str) and n not in known:
                    found[n] = size
    return found
