"""What of a page follows from the robot alone is made once a machine."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest
import trimesh
from PIL import Image
from viewer_cases import pendulum

from robokit import disk_cache
from robokit.meshes.read_mesh import read_mesh
from robokit.meshes.surface import Surface, as_arrays, of_arrays
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


@pytest.mark.parametrize("ending", ["stl", "ply", "obj", "gltf", "glb"])
def test_a_mesh_is_read_once_for_its_drawing(cache, monkeypatch, tmp_path, ending):
    scene = import_module("robokit.viewer.scene")  # whose name in the viewer is a function's
    path = tmp_path / f"part.{ending}"

    def drawn():
        scene._mesh_parts.cache_clear()
        scene._read.cache_clear()
        assert scene._triangles(path) > 0
        ((mesh, rgba),), missing = scene._mesh_parts(path, (1.0, -1.0, 2.0), 200)
        return mesh.vertices.tobytes(), mesh.faces.tobytes(), rgba, missing

    trimesh.creation.icosphere(3, radius=0.1).export(path)
    first = drawn()
    assert drawn() == first
    with monkeypatch.context() as patch:
        patch.setattr(scene, "read_mesh", fails)
        assert drawn() == first
    trimesh.creation.icosphere(3, radius=0.2).export(path)
    assert drawn() != first


def test_what_a_mesh_uses_of_the_files_that_it_names_counts_too(cache, monkeypatch, tmp_path):
    """Its list of materials and where its pictures are: each change shows, and what was drawn is kept."""
    scene = import_module("robokit.viewer.scene")
    folder, path = tmp_path / "meshes", tmp_path / "meshes" / "part.obj"
    folder.mkdir()
    corners = "v 0 0 0\nv 1 0 0\nv 0 1 0\nvt 0 0\nvt 1 0\nvt 0 1\nusemtl m\nf 1/1 2/2 3/3\n"
    path.write_text(f"mtllib part.mtl\n{corners}")

    def drawn():
        scene._mesh_parts.cache_clear()
        scene._read.cache_clear()
        ((mesh, rgba),), missing = scene._mesh_parts(path, (1.0, 1.0, 1.0), 200)
        return mesh.picture, None if mesh.uv is None else mesh.uv.tolist(), rgba, missing

    def image(name):
        Image.new("RGB", (4, 4), (200, 30, 40)).save(folder / name)

    def materials(*lines):
        (folder / "part.mtl").write_text("\n".join(["newmtl m", *lines, ""]))

    changes = [
        lambda: None,
        lambda: materials("Kd 1 0 0"),
        lambda: materials("Kd 0 1 0"),
        lambda: materials("Kd 0 1 0", "map_Kd one.png"),
        lambda: image("one.png"),
        lambda: materials("Kd 0 1 0", "map_Kd two.png"),
        lambda: image("two.png"),
        lambda: (folder / "two.png").unlink(),
    ]
    seen = []
    for change in changes:
        change()
        seen.append(drawn())
        with monkeypatch.context() as patch:
            patch.setattr(scene, "read_mesh", fails)
            assert drawn() == seen[-1]
            patch.setattr(scene, "read_mesh", read_mesh)
            patch.setenv("ROBOKIT_CACHE_DIR", str(tmp_path / f"empty{len(seen)}"))
            assert drawn() == seen[-1]  # as where nothing was kept before
    assert seen[1][2] != seen[2][2] and seen[3][3] == ("one.png",) and seen[5][3] == ("two.png",)
    assert [x[0] for x in seen[3:]] == [None, folder / "one.png", None, folder / "two.png", None]
    image("two.png")
    first = drawn()
    moved = tmp_path / "elsewhere"
    folder.rename(moved)
    path = moved / "part.obj"
    with monkeypatch.context() as patch:
        patch.setattr(scene, "read_mesh", fails)
        assert drawn() == (moved / "two.png", *first[1:])


def test_a_buffer_of_gltf_counts_whatever_its_ending(cache, tmp_path):
    scene = import_module("robokit.viewer.scene")
    path, beside = tmp_path / "part.gltf", tmp_path / "numbers.png"
    seen = []
    for size in (1.0, 2.0):
        box = trimesh.creation.box([size] * 3)
        files = trimesh.exchange.gltf.export_gltf(box.scene(), merge_buffers=True)
        (buffer,) = files.keys() - {"model.gltf"}
        if not seen:
            path.write_bytes(files["model.gltf"].replace(buffer.encode(), beside.name.encode()))
        beside.write_bytes(files[buffer])
        scene._mesh_parts.cache_clear()
        scene._read.cache_clear()
        ((mesh, _),), _ = scene._mesh_parts(path, (1.0, 1.0, 1.0), 200)
        seen.append(mesh.vertices.max())
    assert seen == [0.5, 1.0]


@pytest.mark.parametrize("picture", [None, b"", b"bytes"])
def test_a_picture_inside_a_mesh_comes_back_from_the_disk(tmp_path, picture):
    """An empty one too: whoever draws it warns that it is none."""
    box = trimesh.creation.box()
    given = Surface(np.asarray(box.vertices), np.asarray(box.faces), picture=picture)
    (found,) = of_arrays(as_arrays([given], tmp_path), tmp_path)
    assert found.picture == picture


def test_surfaces_that_share_a_picture_share_it_on_the_disk(tmp_path):
    """A file may have thousands of them, and a picture many megabytes."""
    box = trimesh.creation.box()
    pictures = [b"x" * 100_000, tmp_path / "one.png", None, b"y"]
    given = [
        Surface(np.asarray(box.vertices), np.asarray(box.faces), picture=picture) for picture in pictures * 50
    ]
    kept = as_arrays(given, tmp_path)
    assert sum(each.nbytes for each in kept) < 400_000
    found = of_arrays(kept, tmp_path)
    assert [each.picture for each in found] == pictures * 50
    assert all(np.array_equal(each.vertices, box.vertices) for each in found)
    assert all(found[k].picture is found[k % 4].picture for k in range(len(found)))
