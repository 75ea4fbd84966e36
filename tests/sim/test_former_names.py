"""Modules that have moved are found under the names that the manual of 0.2 had."""

import importlib
import sys

import pytest

from robokit.sim.former_names import FOLDERS, MOVED


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("robokit.sim.driving.actuators", "Actuator"),
        ("robokit.sim.record.events", "Event"),
        ("robokit.sim.record.sensors", "Imu"),
        ("robokit.sim.record.sensors", "JointForce"),
        ("robokit.sim.record.sensors", "Sensors"),
        ("robokit.sim.record.trajectory", "Contacts"),
        ("robokit.sim.record.trajectory", "Energy"),
        ("robokit.sim.run.distance_function", "DistanceFunction"),
    ],
)
def test_a_module_that_moved_warns_and_is_the_one_of_today(
    module: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, module, raising=False)
    with pytest.warns(DeprecationWarning, match=f"{module} is {MOVED[module]} now"):
        found = importlib.import_module(module)
    now = importlib.import_module(MOVED[module])
    assert found is now and now.__name__ == now.__spec__.name == MOVED[module]  # it keeps its own name
    assert isinstance(getattr(found, name), type)


def test_a_folder_that_is_gone_has_the_names_that_it_had() -> None:
    from robokit.sim.record import Trajectory

    assert Trajectory is importlib.import_module("robokit").Trajectory
    for folder in FOLDERS:
        with pytest.raises(AttributeError):
            _ = importlib.import_module(folder).no_such_name
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("robokit.sim.record.no_such_module")
