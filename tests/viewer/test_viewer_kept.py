"""What of a page follows from the robot alone is made once a machine."""

from __future__ import annotations

from importlib import import_module

import pytest
import trimesh
from viewer_cases import pendulum

from robokit import disk_cache
from robokit.sim import page_step
from robokit.viewer import payload, walk_data


@pytest.fixture
def cache(monkeypatch, tmp_path):
    monkeypatch.setenv("ROBOKIT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(disk_cache, "source_digest", lambda: b"this source")


def fails(*_):
    raise AssertionError("made again")


def test_walk_and_costs_are_made_once(cache, monkeypatch):
    walk, structure = walk_data.walk_data(pendulum(), pushed=True), payload.structure(pendulum())
    monkeypatch.setattr(walk_data, "_walk", fails)
    monkeypatch.setattr(payload, "_costs", fails)
    assert (
        walk_data.walk_data(pendulum(), pushed=True, touched="x")
        != walk
        == walk_data.walk_data(pendulum(), pushed=True)
    )
    assert payload.structure(pendulum()) == structure
    # Another robot, or another question, is not the same.
    for call in (
        lambda: walk_data.walk_data(pendulum(), pushed=False),
        lambda: walk_data.walk_data(pendulum(links=("upper",)), pushed=True),
    ):
        with pytest.raises(AssertionError, match="made again"):
            call()


def test_the_module_of_all_robots_is_made_once(cache, monkeypatch):
    page_step.page_module.cache_clear()
    content = page_step.page_module()
    page_step.page_module.cache_clear()
    monkeypatch.setattr(page_step, "wasm_module", fails)
    assert page_step.page_module() == content


@pytest.mark.parametrize("ending", ["stl", "ply", "obj"])
def test_a_mesh_is_read_once_for_its_drawing(cache, monkeypatch, tmp_path, ending):
    scene = import_module("robokit.viewer.scene")  # whose name in the viewer is a function's
    path = tmp_path / f"part.{ending}"

    def drawn():
        scene._mesh_parts.cache_clear()
        scene._surfaces.cache_clear()
        assert scene._triangles(path) > 0
        ((mesh, rgba),), missing = scene._mesh_parts(path, (1.0, -1.0, 2.0), 200)
        return mesh.vertices.tobytes(), mesh.faces.tobytes(), rgba, missing

    trimesh.creation.icosphere(3, radius=0.1).export(path)
    first = drawn()
    assert drawn() == first
    with monkeypatch.context() as patch:
        patch.setattr(scene, "read_mesh", fails)
        if ending == "obj":  # its colours are in a file beside it
            with pytest.raises(AssertionError, match="made again"):
                drawn()
        else:
            assert drawn() == first
    trimesh.creation.icosphere(3, radius=0.2).export(path)
    assert drawn() != first
