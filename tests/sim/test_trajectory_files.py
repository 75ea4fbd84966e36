"""Saving and loading trajectories."""

import io
import json
import os
import pickle
import sys
import tracemalloc
import zipfile

import numpy as np
import pytest
import sim_models as m

import robokit as rk
from robokit.model import Box, Mesh, ModelBuilder, Shape, lock_joints


def _same(a, b):
    for name in ("t", "q", "v", "momentum", "contact_force"):
        assert np.array_equal(getattr(a, name), getattr(b, name)), name
    for name in ("kinetic", "potential", "dissipated", "work", "total"):
        assert np.array_equal(getattr(a.energy, name), getattr(b.energy, name)), name
    assert a.summary == b.summary
    assert a.losses.keys() == b.losses.keys() and all((b.losses[k] == x).all() for k, x in a.losses.items())


@pytest.mark.slow
def test_round_trip_reloads_the_robot(tmp_path):
    robot = m.humanoid()
    q = rk.standing_configuration(robot)
    trajectory = rk.simulate(
        robot, q, duration=0.05, ground=rk.Ground(friction={"left_foot": 0.3}, height=-0.01)
    )
    path = trajectory.save(tmp_path / "fall")
    assert path.name == "fall.npz"
    loaded = rk.Trajectory.load(path)
    _same(trajectory, loaded)
    assert loaded == trajectory == pickle.loads(pickle.dumps(trajectory))
    assert loaded.robot.joint_names == robot.joint_names and loaded.robot.base == "floating"
    assert loaded.ground == trajectory.ground
    assert np.array_equal(loaded.contacts.forces, trajectory.contacts.forces)
    assert loaded.contacts.links == trajectory.contacts.links
    assert loaded.report() == trajectory.report()


def test_contacts_between_bodies_come_back(tmp_path):
    robot = m.sliders(2 * (Shape(Box((0.2, 0.2, 0.2))),), (1.0, 1.0), 0.21)
    run = rk.simulate(robot, v0=[1.0, 0.0], duration=0.03, self_collision=True, record_every=1)
    found, loaded = run.body_contacts, rk.Trajectory.load(run.save(tmp_path / "t.npz"))
    assert found.forces.any() and loaded.contacts is None
    for name in ("points", "forces", "normals", "links", "against"):
        assert np.array_equal(getattr(loaded.body_contacts, name), getattr(found, name)), name


def test_robot_comes_from_the_kept_text_when_its_file_is_gone(tmp_path):
    file = tmp_path / "p.urdf"
    file.write_text((m.ROBOTS / "double_pendulum.urdf").read_text())
    trajectory = rk.simulate(rk.load_urdf(file), [0.1, 0.2], duration=0.02, gravity=(0, 0, -1.62))
    path = trajectory.save(tmp_path / "t.npz")
    file.unlink()
    loaded = rk.Trajectory.load(path)
    assert loaded.robot is not None and loaded.robot.gravity[2] == -1.62


def test_a_robot_made_in_code_comes_back(tmp_path):
    trajectory = rk.simulate(m.box(), duration=0.02, controller=lambda t, q, v: np.zeros(6))
    path = trajectory.save(tmp_path / "t.npz")
    loaded = rk.Trajectory.load(path)
    _same(trajectory, loaded)
    assert np.array_equal(loaded.tau, trajectory.tau)
    assert loaded.robot.fingerprint == m.box().fingerprint
    assert rk.Trajectory.load(path, robot=m.box()).robot is m.box()
    with pytest.raises(rk.ShapeError, match=r"does not fit .*base is 'fixed', the trajectory's 'floating'"):
        rk.Trajectory.load(path, robot=m.double_pendulum())
    with pytest.raises(rk.WrongType, match="load it first"):
        rk.Trajectory.load(path, robot="box.urdf")


def test_a_robot_that_no_urdf_can_say_is_given_or_missing(tmp_path):
    robot = m.free_chain()
    path = rk.simulate(robot, duration=0.02).save(tmp_path / "t.npz")
    loaded = rk.Trajectory.load(path)
    assert loaded.robot is None and "free_chain" in repr(loaded)
    with pytest.raises(rk.RobokitError, match="robot="):
        loaded.to_html(tmp_path / "x.html")
    assert rk.Trajectory.load(path, robot=robot).robot is robot


# ---- the robot that moved --------------------------------------------------------------------------------


def test_changed_inertias_come_back(tmp_path, monkeypatch):
    """What moved is what is loaded, whatever masses the robot's own file has."""
    monkeypatch.setenv("ROBOKIT_ENGINE", "python")  # two steps take less time than to compile them
    robot = m.quadruped()
    heavy = robot.with_inertias(1.5 * robot.inertial_parameters)
    by_link = robot.with_inertias({robot.link_names[0]: (50.0, None, None)})
    for robot in (heavy, by_link):
        path = rk.simulate(robot, duration=0.002).save(tmp_path / "t.npz")
        loaded = rk.Trajectory.load(path)
        assert np.array_equal(loaded.robot.inertial_parameters, robot.inertial_parameters)
        assert loaded.robot.fingerprint == robot.fingerprint
        with pytest.raises(rk.ShapeError, match=r"another mass or inertia \(in all 18 kg, the trajectory's"):
            rk.Trajectory.load(path, robot=m.quadruped())


def test_an_edited_robot_comes_back(tmp_path):
    arm = rk.load_urdf(m.ROBOTS / "arm.urdf")
    robot = lock_joints(arm, {arm.joint_names[1]: 0.3})
    path = rk.simulate(robot, duration=0.01).save(tmp_path / "t.npz")
    loaded = rk.Trajectory.load(path).robot
    assert loaded.joint_names == robot.joint_names and loaded.nq == arm.nq - 1
    q = robot.random_configuration(0)
    assert rk.crba(loaded, q) == pytest.approx(rk.crba(robot, q), abs=1e-12)
    with pytest.raises(rk.ShapeError, match=r"it has nq .* the trajectory"):
        rk.Trajectory.load(path, robot=arm)


MIMIC = """<robot name="twins"><link name="a"/>
<link name="b"><inertial><mass value="1"/>
<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<link name="c"><inertial><mass value="1"/>
<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="lead" type="continuous"><parent link="a"/><child link="b"/><axis xyz="0 1 0"/></joint>
<joint name="follow" type="continuous"><parent link="b"/><child link="c"/><axis xyz="0 1 0"/>
<origin xyz="0 0 1"/><mimic joint="lead" multiplier="-2"/></joint></robot>"""


def test_coupled_mimic_joints_come_back(tmp_path):
    for mimic, nq in ((None, 2), ("couple", 1)):
        robot = rk.loads_urdf(MIMIC, mimic=mimic)
        path = rk.simulate(robot, np.full(nq, 0.1), duration=0.01).save(tmp_path / "t.npz")
        loaded = rk.Trajectory.load(path).robot
        assert loaded.nq == nq and loaded.fingerprint == robot.fingerprint
    with pytest.raises(rk.ShapeError, match="mimic is None, the trajectory's 'couple'"):
        rk.Trajectory.load(path, robot=rk.loads_urdf(MIMIC))


def test_another_place_of_a_joint_is_told(tmp_path):
    path = rk.simulate(rk.loads_urdf(MIMIC), duration=0.01).save(tmp_path / "t.npz")
    other = rk.loads_urdf(MIMIC.replace('xyz="0 0 1"', 'xyz="0 0 1.1"'))
    with pytest.raises(rk.ShapeError, match="joint 'follow' is at another place"):
        rk.Trajectory.load(path, robot=other)


def _tampered(path, to, change):
    """The file with another text about it: change works on the dict."""
    with np.load(path) as data:
        arrays = {name: data[name] for name in data.files}
    about = json.loads(str(arrays["about"]))
    change(about)
    np.savez(to, **arrays | {"about": np.array(json.dumps(about))})
    return to


def test_a_text_that_is_another_robot_is_told(tmp_path):
    path = rk.simulate(rk.loads_urdf(MIMIC), duration=0.01).save(tmp_path / "t.npz")
    for change, said in (
        (lambda r: r.update(urdf=MIMIC.replace('xyz="0 0 1"', 'xyz="0 0 2"')), "joint 'follow'"),
        (lambda r: r.update(urdf=r["urdf"].replace("<link", "<knil")), "well-formed"),
        (lambda r: r.update(base="sideways"), "no base named"),
        (lambda r: r.update(gravity="down"), "gravity"),
        (lambda r: r.update(joint_names=["lead", "other"]), "joint names is 'follow'"),
    ):
        other = _tampered(path, tmp_path / "other.npz", lambda about, change=change: change(about["robot"]))
        with pytest.warns(UserWarning, match=f"does not make the robot of this trajectory .*({said})"):
            assert rk.Trajectory.load(other).robot is None


# ---- files that want to be more --------------------------------------------------------------------------


def test_loading_reads_no_file_but_its_own(tmp_path, monkeypatch):
    """The file may name any source, mesh and picture: none is read, nothing is run."""
    trap = tmp_path / "trap.xacro"
    trap.write_text('<robot name="trap" xmlns:xacro="http://www.ros.org/wiki/xacro"><link name="a"/></robot>')
    mesh = tmp_path / "pkg" / "mesh.stl"
    mesh.parent.mkdir()
    mesh.write_bytes(b"solid x\nendsolid x\n")
    shape = Shape(Mesh("package://pkg/mesh.stl", path=mesh), texture_filename="package://pkg/mesh.stl")
    builder = ModelBuilder("looks")
    builder.link("a", mass=1.0, inertia=np.eye(3), visuals=(shape, Shape(Mesh(str(mesh), path=mesh))))
    path = rk.simulate(builder.build("floating"), duration=0.01).save(tmp_path / "t.npz")
    path = _tampered(path, tmp_path / "u.npz", lambda about: about["robot"].update(source=str(trap)))
    monkeypatch.setenv("ROS_PACKAGE_PATH", str(tmp_path))
    opened = []
    names = ("open", "subprocess.Popen", "os.exec", "os.system", "os.posix_spawn")

    def watch(event, arguments):
        if opened is not None and event in names and watching:
            opened.append((event, str(arguments[0])))

    watching = True
    sys.addaudithook(watch)
    loaded = rk.Trajectory.load(path)
    watching = False
    assert {name for _, name in opened if str(tmp_path) in name} == {str(path)}
    assert all(event == "open" for event, _ in opened)
    assert [s.geometry.path for s in loaded.robot.links[0].visuals] == [None, None]
    asked = rk.Trajectory.load(path, package_dirs=[tmp_path]).robot.links[0].visuals
    assert [s.geometry.path for s in asked] == [mesh, mesh]
    elsewhere = rk.Trajectory.load(path, package_dirs=[tmp_path / "none"]).robot.links[0].visuals
    assert [s.geometry.path for s in elsewhere] == [None, None]


def test_files_of_the_first_format_load_by_their_text(tmp_path, saved):
    with np.load(saved) as data:
        arrays = {name: data[name] for name in data.files if not name.startswith("robot_")}
    about = json.loads(str(arrays["about"]))
    kept = ("name", "base", "gravity", "joint_names", "source", "urdf")
    about |= {"format": 1, "robot": {k: about["robot"][k] for k in kept}}
    np.savez(tmp_path / "old.npz", **arrays | {"about": np.array(json.dumps(about))})
    assert rk.Trajectory.load(tmp_path / "old.npz").robot.fingerprint == m.box().fingerprint
    about["robot"]["urdf"] = None
    np.savez(tmp_path / "old.npz", **arrays | {"about": np.array(json.dumps(about))})
    assert rk.Trajectory.load(tmp_path / "old.npz").robot is None


def test_a_small_file_does_not_unpack_to_a_large_one(saved, tmp_path):
    path = tmp_path / "bomb.npz"
    with np.load(saved) as data:
        arrays = {name: data[name] for name in data.files}
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f8", "fortran_order": False, "shape": (1 << 26, 7)}
    )
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as packed:
        for name, array in arrays.items():
            with packed.open(f"{name}.npy", "w") as file:
                if name == "q":
                    file.write(header.getvalue())
                    for _ in range(160):
                        file.write(bytes(1 << 20))
                else:
                    np.lib.format.write_array(file, array)
    assert path.stat().st_size < 3 << 20
    tracemalloc.start()
    with pytest.raises(
        rk.ShapeError, match=r"bomb\.npz: not a trajectory .* would unpack to 167,\d{3},\d{3}"
    ):
        rk.Trajectory.load(path)
    with zipfile.ZipFile(path, "w") as packed, packed.open("q.npy", "w") as file:
        file.write(header.getvalue())  # it says 3.5 GiB and holds nothing
    with pytest.raises(rk.ShapeError, match="which is not what it holds"):
        rk.Trajectory.load(path)
    assert tracemalloc.get_traced_memory()[1] < 8 << 20
    tracemalloc.stop()


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "t.npz")
    with pytest.raises(rk.ShapeError, match="not a regular file"):
        rk.Trajectory.load(tmp_path / "t.npz")


def test_other_files_are_refused(tmp_path):
    path = tmp_path / "x.npz"
    np.savez(path, a=np.zeros(3))
    with pytest.raises(rk.ShapeError, match="not a trajectory"):
        rk.Trajectory.load(path)
    path.write_text("nonsense")
    with pytest.raises(rk.ShapeError, match="not a trajectory"):
        rk.Trajectory.load(path)
    with pytest.raises(FileNotFoundError):
        rk.Trajectory.load(tmp_path / "none.npz")


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A saved trajectory: its path."""
    run = rk.simulate(m.box(), rk.standing_configuration(m.box()), duration=0.02, ground=rk.Ground())
    return run.save(tmp_path_factory.mktemp("saved") / "t.npz")


def _cut(raw):
    return raw[: len(raw) // 2]


@pytest.mark.parametrize("damage", [_cut, lambda raw: b"", lambda raw: b"PK\x03\x04" + b"x" * 99])
def test_damaged_files_are_refused(saved, tmp_path, damage):
    path = tmp_path / "damaged.npz"
    path.write_bytes(damage(saved.read_bytes()))
    with pytest.raises(rk.RobokitError, match=r"damaged\.npz: not a trajectory"):
        rk.Trajectory.load(path)


@pytest.mark.parametrize(
    "change",
    [
        {"q": np.zeros(5)},
        {"q": np.zeros((2, 7))},
        {"energy_kinetic": np.zeros(3)},
        {"momentum": None},
        {"about": np.array("{}")},
        {"about": np.array("[1]")},
        {"about": np.array("no json")},
        {"about": np.array("[" * 100_000)},
        {"about": np.array(json.dumps({"robot": [], "summary": [], "ground": None}))},
        {"about": np.array(json.dumps({"robot": None, "summary": {"steps": "many"}, "ground": None}))},
        {"t": np.zeros(0)},
        {"q": np.zeros((5, 7), dtype=complex)},
        {"q": np.array([["x"] * 7] * 5)},
        {"contact_points": None},
        {"surplus": np.zeros(5)},
        {"about": np.array(json.dumps({"robot": None, "summary": {}, "ground": {"friction": -1.0}}))},
        {"about": np.array(json.dumps({"robot": None, "summary": {}, "ground": {"colour": "red"}}))},
    ],
)
def test_files_with_wrong_contents_are_refused(saved, tmp_path, change):
    with np.load(saved) as data:
        arrays = {name: data[name] for name in data.files} | change
    path = tmp_path / "wrong.npz"
    np.savez(path, **{name: array for name, array in arrays.items() if array is not None})
    with pytest.raises(rk.RobokitError, match=r"wrong\.npz: not a trajectory"):
        rk.Trajectory.load(path)


def test_an_array_file_is_no_trajectory(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros(3))
    with pytest.raises(rk.RobokitError, match="not a trajectory"):
        rk.Trajectory.load(tmp_path / "a.npy")


def test_interrupted_and_failed_runs_can_be_saved(tmp_path):
    def controller(t, q, v):
        if t > 0.02:
            raise KeyboardInterrupt
        return np.zeros(2)

    run = rk.simulate(m.double_pendulum(), duration=1.0, controller=controller)
    loaded = rk.Trajectory.load(run.save(tmp_path / "stopped"))
    _same(run, loaded)
    assert loaded.summary["interrupted"] is True
    with pytest.raises(rk.SimulationError) as caught:
        rk.simulate(m.double_pendulum(), [0.3, 0.2], [1e200, 0.0], duration=0.1)
    kept = caught.value.trajectory
    assert len(rk.Trajectory.load(kept.save(tmp_path / "broken"))) == len(kept)


@pytest.mark.parametrize(
    "content", [b"\x93NUMPY\x01\x00\x76\x00{'descr': ('<f8', (" + b" " * 98 + b"\n", b"\x93NUMPY\x01\x00"]
)
@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_LZMA])
def test_headers_and_ways_of_packing_that_fail_in_other_libraries(tmp_path, content, method):
    with zipfile.ZipFile(tmp_path / "t.npz", "w", method) as packed:
        packed.writestr("q.npy", content)
    with pytest.raises(rk.ShapeError, match=r"t\.npz: not a trajectory"):
        rk.Trajectory.load(tmp_path / "t.npz")
