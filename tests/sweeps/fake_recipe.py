"""A recipe that computes nothing, for tests of the engine: numbers from the row, and what a test asks for."""

from __future__ import annotations

import json
import os
import signal
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa


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

    def compute(self, first, last):
        row = np.arange(first, last)
        time.sleep(self.pause * len(row))
        if self.raiser in row:
            raise ValueError(f"row {self.raiser} cannot be")
        if self.killer in row and not (self.once and Path(self.once).exists()):
            if self.once:
                Path(self.once).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        failure = pa.array(["not finite" if k % 10 == 7 else None for k in row.tolist()], pa.string())
        robot = pa.array([f"robot {k % 3}" for k in row.tolist()]).dictionary_encode()
        table = pa.table({"row": row, "height": np.sqrt(row), "robot": robot, "failure": failure})
        fields = [field.with_metadata({b"unit": b"m"}) for field in table.schema]
        return table.cast(pa.schema(fields))
