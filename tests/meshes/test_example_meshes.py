"""Every mesh of example-robot-data loads, far from all untrusted."""

from __future__ import annotations

import pytest

from robokit.meshes import untrusted
from robokit.meshes.read_mesh import READERS, read_mesh
from robokit.robot_names import example_files

pytestmark = pytest.mark.parity


def test_the_meshes_of_example_robots_need_a_tenth_of_what_is_allowed():
    root = next(path for path in example_files()[0].parents if path.name == "example-robot-data")
    meshes = [path for path in sorted(root.rglob("*")) if path.suffix.lower() in READERS]
    assert len(meshes) > 700
    for path in meshes:
        pieces = [len(surface.faces) for surface in read_mesh(path)]
        size = path.stat().st_size
        assert pieces, path
        assert (
            sum(pieces) < size / untrusted.BYTES_A_TRIANGLE / 10
            or sum(pieces) < untrusted.FREE_TRIANGLES / 10
        ), path
        assert len(pieces) < untrusted.FREE_PLACES / 3, path
