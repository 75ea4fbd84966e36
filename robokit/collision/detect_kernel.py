"""Detection alone, at given poses: a kernel that serves every scene."""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from robokit.collision.detect import FALL, detect
from robokit.collision.fields import CANDIDATES, CONTACTS, MEMORY, PAIRS, POSES, SHAPES
from robokit.engine.loops.environment import NoMachineCode
from robokit.engine.loops.fields import kernel_of, real
from robokit.engine.loops.kernel import LoopKernel
from robokit.engine.maker import engine

Arrays = dict[str, np.ndarray]

PLACES = 256
"""Contacts and near pairs that there is place for to begin with."""


@functools.cache
def detect_kernel(reproducible: bool = False) -> LoopKernel:
    """The kernel of detection."""
    arrays = (*SHAPES, *PAIRS, *POSES, *CANDIDATES, *MEMORY, *CONTACTS, real("gravity", 3), real("dt", 1))
    return kernel_of("detect", detect, arrays, by_source=True, reproducible=reproducible)


def contacts_at(
    scene: Mapping[str, np.ndarray],
    R: np.ndarray,
    p: np.ndarray,
    V: np.ndarray | None = None,
    gravity: float = 0.0,
    dt: float = 0.0,
    memory: Mapping[str, np.ndarray] | None = None,
    **options: Any,
) -> Arrays:
    """Contacts of bodies at rest or in motion, as many as there are.

    Args:
        scene: arrays SHAPES and PAIRS by name.
        R, p: rotations (n_bodies, 3, 3) and origins (n_bodies, 3) of bodies 0..N in the world [m].
        V: velocities about the world's origin, angular first, (n_bodies, 6).
        gravity: its size [m/s^2].
        dt: time step [s]; with 0 only shapes that overlap have contacts.
        memory: of the last call: its result.
        options: ``engine``.

    Returns:
        CONTACTS and MEMORY by name.
    """
    n = len(p)
    given: dict[str, Any] = {name: np.asarray(array) for name, array in scene.items()}
    given |= {"R": np.reshape(R, (n, 9)), "p": p, "V": np.zeros((n, 6)) if V is None else V}
    given |= {"origin": np.zeros(3), "gravity": np.array([0.0, 0.0, -gravity]), "dt": np.array([dt])}
    sizes = {"n_pairs": len(given["pair_shapes"]), "n_shapes": len(given["shape_body"]), "n_bodies": n}
    given |= {a.name: a.zeros(sizes) for a in CANDIDATES}
    known = memory or {}
    before = len(known["near_pair"]) if known else 0
    places = max(PLACES, before)
    while True:
        given |= {a.name: a.zeros({"n_near": places}) for a in MEMORY}
        given["near_pair"][:] = -1
        for name in (a.name for a in MEMORY if known):
            given[name][:before] = known[name]
        found = detect_kernel()(**given, n_contacts=places, **options)
        contacts, near, missing, _ = found["counts"].tolist()
        if not missing:
            kept = {a.name: found[a.name][:contacts] for a in CONTACTS if a.shape[0] == "n_contacts"}
            return kept | {a.name: found[a.name][:near] for a in MEMORY} | {"counts": found["counts"]}
        places = max(contacts, near)


class Detector:
    """Contacts of one scene at many poses of bodies at rest, one after the other; arrays are made once."""

    def __init__(
        self,
        scene: Mapping[str, np.ndarray],
        bodies: int,
        far: float = 0.0,
        reproducible: bool = False,
    ) -> None:
        """Prepare it.

        Args:
            scene: arrays SHAPES and PAIRS by name.
            bodies: how many there are, the world among them.
            far: gap up to which contacts are found [m]; 0 for shapes that overlap.
            reproducible: whether the bits are the same everywhere.
        """
        self.kernel, self.places = detect_kernel(reproducible), PLACES
        given = {"gravity": np.array([0.0, 0.0, -1.0]), "dt": np.array([math.sqrt(far / FALL)])}
        self._given = {name: np.ascontiguousarray(array) for name, array in scene.items()} | given
        self._bodies = bodies
        self._prepare()

    def at(self, R: np.ndarray, p: np.ndarray) -> Arrays:
        """The contacts, which hold until the next call; arguments as in :func:`contacts_at`."""
        while True:
            x = self.arrays
            x["R"][:], x["p"][:] = np.reshape(R, (-1, 9)), p
            x["near_pair"][:], x["candidates"][:] = -1, 0
            self._call()
            contacts, near, missing, _ = x["counts"].tolist()
            if not missing:
                return {a.name: x[a.name][:contacts] for a in CONTACTS if a.shape[0] == "n_contacts"}
            self.places = max(contacts, near)
            self._given |= {name: x[name] for name in self._given}  # with what was changed since
            self._prepare()

    def _prepare(self) -> None:
        known = {"n_bodies": self._bodies, "n_contacts": self.places, "n_near": self.places}
        for a in self.kernel.arrays:
            if a.name in self._given:
                shape = self._given[a.name].shape
                known |= {n: size for n, size in zip(a.shape, shape, strict=True) if isinstance(n, str)}
        self.arrays = {
            a.name: np.array(self._given[a.name], a.zeros(known).dtype)
            if a.name in self._given
            else a.zeros(known)
            for a in self.kernel.taken
        }
        sizes, arrays = {name: known[name] for name in self.kernel.sizes}, list(self.arrays.values())
        self._call: Callable[[], None] = functools.partial(self.kernel.on_memory, *sizes.values(), *arrays)
        if engine() != "python":
            with contextlib.suppress(NoMachineCode):
                self._call = self.kernel.single(sizes, arrays)
