"""A sweep of fake rows as a command of its own, to be interrupted and killed: fake_sweep.py JSON."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from fake_recipe import FakeRecipe

from robokit.errors import RobokitError
from robokit.sweeps import workers
from robokit.sweeps.workers import run_sweep

ROOT = Path(__file__).resolve().parents[2]


def started(folder, recipe, **options):
    """The command, running in a process of its own."""
    given = json.dumps({"folder": str(folder), "recipe": recipe, **options})
    env = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), str(Path(__file__).parent)))}
    return subprocess.Popen(
        [sys.executable, __file__, given],
        env=env,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def main(given):
    recipe = FakeRecipe(**given.pop("recipe"))
    workers.AGAIN_SECONDS = given.pop("again", workers.AGAIN_SECONDS)
    try:
        run_sweep(recipe, given.pop("folder"), chunk=10, **given)
    except RobokitError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt as error:
        print(error, file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1])))
