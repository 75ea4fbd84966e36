"""A recipe that computes nothing, for tests of the engine: numbers from the row, and what a test asks for."""

from __future__ import annotations

import json
import os
import signal
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from robokit.sweeps.table import RowTable


@dataclass(frozen=True)
class FakeRecipe:
    """Rows that take ``pause`` seconds each; ``killer`` ends its worker, ``once`` only the first time."""

    count: int
    pause: float = 0.0
    killer: int = -1
    once: str = ""
    raiser: int = -1

    @property
    def hash(self):
        return str(self.count)

    def to_json(self):
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text):
        return cls(**json.loads(text))

    def compute_rows(self, first, last):
        row = np.arange(first, last)
        time.sleep(self.pause * len(row))
        if self.raiser in row:
            raise ValueError(f"row {self.raiser} cannot be")
        if self.killer in row and not (self.once and Path(self.once).exists()):
            if self.once:
                Path(self.once).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        failure = np.array(["not finite" if k % 10 == 7 else None for k in row.tolist()], object)
        robot = np.array([f"robot {k % 3}" for k in row.tolist()], object)
        columns = {"row": row, "height": np.sqrt(row), "robot": robot, "failure": failure}
        return RowTable(columns, {"height": "m"})
