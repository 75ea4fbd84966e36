"""Where package://, file:// and relative names lead, and where they never lead."""

import pytest
from for_each import for_each
from urdf_cases import visual

from robokit.errors import UrdfError
from robokit.urdf import check_urdf, load_urdf, loads_urdf, mesh_files
from robokit.urdf.mesh_files import Resolver

NAME = "package://my_robot/meshes/a.STL"


@pytest.fixture
def package(tmp_path):
    folder = tmp_path / "src" / "my_robot"
    (folder / "meshes").mkdir(parents=True)
    (folder / "urdf").mkdir()
    (folder / "meshes" / "a.STL").write_bytes(b"solid")
    return folder


def find(name, folder=None, package_dirs=(), **environ):
    return Resolver(folder, package_dirs, environ)(name)


def test_package_dirs(package):
    mesh = package / "meshes" / "a.STL"
    assert find(NAME, package_dirs=[package.parent]).path == mesh
    assert find(NAME, package_dirs=[package]).path == mesh  # the package itself
    assert find(NAME.replace("://", ":///"), package_dirs=[str(package)]).path == mesh
    assert find(NAME.replace("package", "model"), package_dirs=[package]).path == mesh


def test_environment(package, tmp_path):
    mesh = package / "meshes" / "a.STL"
    assert find(NAME, ROS_PACKAGE_PATH=f"/nowhere:{package.parent}").path == mesh
    assert find(NAME, ROS_PACKAGE_PATH=str(package)).path == mesh
    package.parent.rename(tmp_path / "share")
    assert (
        find(NAME, AMENT_PREFIX_PATH=str(tmp_path)).path
        == tmp_path / "share" / "my_robot" / "meshes" / "a.STL"
    )


def test_parent_folders_of_the_file(package):
    assert find(NAME, package / "urdf").path == package / "meshes" / "a.STL"


def test_package_dirs_come_first(package, tmp_path):
    other = tmp_path / "other" / "my_robot" / "meshes"
    other.mkdir(parents=True)
    (other / "a.STL").touch()
    assert find(NAME, package / "urdf", [tmp_path / "other"]).path == other / "a.STL"


def test_relative_absolute_and_file(package):
    mesh = package / "meshes" / "a.STL"
    assert find("../meshes/a.STL", package / "urdf").path == mesh
    assert find("meshes/a.STL", package).path == mesh
    assert find(str(mesh)).path == mesh
    assert find(f"file://{mesh}").path == mesh
    assert find(f"file:{mesh}").path == mesh
    space = package / "meshes" / "a b.stl"
    space.touch()
    assert find(f"file://{package}/meshes/a%20b.stl").path == space


@pytest.mark.parametrize(
    "name",
    [
        "package://my_robot/../secret.stl",
        "package://my_robot/meshes/../../secret.stl",
        "package://../secret.stl",
        "package://my_robot//../../../../../../../../../../../etc/hostname",
        "../../../secret.stl",
        "../../../../../../../../../../../../../../etc/hostname",
    ],
)
def test_dots_never_leave_the_package(package, name):
    (package.parent / "secret.stl").touch()
    (package.parent.parent / "secret.stl").touch()
    (package / "package.xml").touch()
    found = find(name, package / "urdf", ROS_PACKAGE_PATH=str(package.parent))
    assert found.path is None
    assert "'..'" in found.reason or found.tried


def test_nothing_is_fetched():
    assert "network" in find("http://localhost:9/a.stl").reason


def test_missing_mesh_lists_every_path(package, tmp_path):
    path = package / "urdf" / "r.urdf"
    path.write_text(visual('<mesh filename="package://my_robot/meshes/none.stl"/>'))
    robot = load_urdf(path, package_dirs=[tmp_path])
    (warning,) = robot.diagnostics
    assert (warning.severity, warning.code, warning.file) == ("warning", "mesh-unresolved", str(path))
    for folder in (tmp_path / "my_robot", package):
        assert str(folder / "meshes" / "none.stl") in warning.message
    assert robot.link("b").visuals[0].geometry.path is None
    with pytest.raises(UrdfError, match="mesh-unresolved"):
        load_urdf(path, strict=True)


def test_a_missing_package_is_told_once():
    shapes = "".join(
        f'<visual><geometry><mesh filename="package://gone/{k}.stl"/></geometry></visual>' for k in "abc"
    )
    text = visual('<mesh filename="package://gone/0.stl"/>').replace("<visual>", shapes + "<visual>", 1)
    (warning,) = check_urdf(text)[1]
    assert "'gone'" in warning.message and "4 times" in warning.message and "package_dirs" in warning.hint


def test_found_files_are_on_the_shapes(package):
    path = package / "urdf" / "r.urdf"
    material = '<material name="m"><texture filename="../meshes/a.STL"/></material>'
    path.write_text(visual('<mesh filename="../meshes/a.STL" scale="1 -1 2"/>', material))
    robot = load_urdf(path, strict=True)
    (shape,) = robot.link("b").visuals
    assert shape.geometry.path == package / "meshes" / "a.STL"
    assert shape.geometry.scale == (1, -1, 2)
    assert shape.texture == str(package / "meshes" / "a.STL")


def test_texts_have_no_folder_unless_told(package):
    text = visual('<mesh filename="../meshes/a.STL"/>')
    assert [d.code for d in loads_urdf(text).diagnostics] == ["mesh-unresolved"]
    assert loads_urdf(text, folder=package / "urdf").diagnostics == []


def test_one_folder_instead_of_a_list(package):
    text = visual(f'<mesh filename="{NAME}"/>')
    assert loads_urdf(text, package_dirs=str(package.parent)).diagnostics == []


@for_each(
    "name", ["a\n.stl", "x" * 5000, "package://", "file://", "package://a", "\\\\host\\a", "~/a", "://", " "]
)
def test_strange_names_are_warnings(name):
    resolution = find(name, package_dirs=["/nowhere"])
    assert resolution.path is None


@pytest.mark.parametrize("most", [0, 200])
def test_the_first_folder_that_holds_a_file_wins_in_any_order_of_asking(package, tmp_path, monkeypatch, most):
    monkeypatch.setattr(mesh_files, "_MOST_SCANNED", most)
    first = tmp_path / "over" / "my_robot" / "meshes"
    first.mkdir(parents=True)
    under = package / "meshes"
    for folder, names in ((first, "abd"), (under, "abc")):
        for name in names:
            (folder / f"{name}.STL").touch()
    (first / "c.STL").mkdir()  # no file, whatever its name
    names = {name: NAME.replace("a.STL", f"{name}.STL") for name in "abcde"}
    expected = {"a": first, "b": first, "c": under, "d": first, "e": None}
    for order in ("abcde", "edcba", "cabde"):
        resolver = Resolver(None, [tmp_path / "over", package.parent], {})
        found = {name: resolver(names[name]).path for name in order}
        assert {name: path and path.parent for name, path in found.items()} == expected, order
