"""Documented modules under their names of robokit 0.2, which warn."""

import importlib
import sys
import warnings
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

MOVED = {
    "robokit.sim.driving": "robokit.sim",
    "robokit.sim.driving.actuators": "robokit.sim.actuators",
    "robokit.sim.record": "robokit.sim.trajectory",
    "robokit.sim.record.events": "robokit.sim.events",
    "robokit.sim.record.sensors": "robokit.sim.sensors",
    "robokit.sim.record.trajectory": "robokit.sim.trajectory",
    "robokit.sim.run": "robokit.sim",
    "robokit.sim.run.distance_function": "robokit.sim.graph_functions",
}
FOLDERS = {name.rpartition(".")[0] for name in MOVED}


class FormerNames(MetaPathFinder, Loader):
    """Imports modules by their former names: finds the module that now has the contents."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Of a module that has moved."""
        return ModuleSpec(name, self, is_package=name in FOLDERS) if name in MOVED else None

    def exec_module(self, module: ModuleType) -> None:
        """A module becomes the one of today; a folder has the names of it."""
        name = module.__name__
        found = importlib.import_module(MOVED[name])
        if name in FOLDERS:
            module.__getattr__ = lambda wanted: getattr(found, wanted)  # type: ignore[method-assign]
            return
        said = f"{name} is {found.__name__} now, and will be removed in robokit 0.4"
        warnings.warn(said, DeprecationWarning, stacklevel=2)
        sys.modules[name] = found


sys.meta_path.append(FormerNames())
