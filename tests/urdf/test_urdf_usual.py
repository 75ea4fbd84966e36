"""Usual elements, read quickly, are what the careful readers give; links make their shapes late."""

import copy
import pickle
import threading

import pytest
from urdf_cases import CASES, visual

import robokit as rk
from robokit.robot_names import own_robots
from robokit.urdf import check_urdf, loads_urdf, parse

TEXTS = {f"{code} {which}": text for code, texts in CASES.items() for which, text in enumerate(texts[:2])}
TEXTS |= {name: rk.find_robot(name).read_bytes() for name in own_robots()}
EVERYTHING = """<robot name="r">
<link name="a">
  <inertial><origin rpy="0 0 1"/><mass value=" 2 "/>
    <inertia izz="1" iyy="1" ixx="1" ixy="0" ixz="0" iyz="0"/></inertial>
  <visual name="v"><geometry><box size="1 2 3"/></geometry>
    <material name=""><color rgba="1 0 0 1"/><texture/></material></visual>
  <collision><geometry><capsule length="1" radius="2"/></geometry></collision>
  <collision><origin xyz="1 2 3"/><geometry><cylinder radius="1" length="2"/></geometry></collision>
</link>
<link name="b"><visual><geometry><sphere radius="1"/></geometry></visual></link>
<link name="c"/>
<joint type="revolute" name="j"><parent link="a"/><child link="b"/><axis xyz="0 1 0"/>
  <limit effort="1" velocity="2" upper="1"/><dynamics friction="-0"/><calibration falling="1"/>
  <safety_controller k_velocity="3"/></joint>
<joint name="k" type="prismatic"><parent link="b"/><child link="c"/>
  <limit lower="0" upper="1" effort="1" velocity="1"/><mimic joint="j" offset="-0"/></joint>
</robot>"""


@pytest.fixture
def carefully(monkeypatch):
    """check_urdf without the quick reader."""

    def read(text):
        with monkeypatch.context() as patch:
            patch.setattr(parse, "usual_link", lambda element, reader: None)
            patch.setattr(parse, "usual_joint", lambda element, reader: None)
            return check_urdf(text)

    return read


def test_what_the_careful_readers_give(carefully):
    for name, text in TEXTS.items():
        if isinstance(text, (str, bytes)):
            assert repr(check_urdf(text)) == repr(carefully(text)), name


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('value=" 2 "', 'value="1_0"'),
        ('iyz="0"', 'iyz="0 0"'),
        ('iyz="0"', 'iyz="" ixx2="1"'),
        ('iyz="0"', 'iyz="&#x661;"'),
        ('xyz="1 2 3"', 'xyz="1 2 1e999"'),
        ('xyz="1 2 3"', 'quat_xyzw="0 0 0 1"'),
        ('name="v"', 'name="${v}"'),
        ('radius="2"', 'radius="-0"'),
        ("<texture/>", '<texture filename="a.png"/>'),
        ('<material name="">', '<material name="$(m)">'),
        ('<parent link="a"/>', '<parent link="a"/><parent link="b"/>'),
        ('k_velocity="3"', ""),
        ('joint="j" offset', 'joint="${j}" offset'),
        ('<mimic joint="j"', '<mimic joint="j" ofset="1"'),
        ('<axis xyz="0 1 0"/>', '<axis rpy="0 1 0"/>'),
        ('upper="1"/>', 'upper="nan"/>'),
        ("<mass", "<mas"),
        ("<joint type", "<joint typ"),
        ('name="j">', 'name=" ">'),
    ],
)
def test_every_slip_is_still_found(carefully, old, new):
    assert old in EVERYTHING
    slip = EVERYTHING.replace(old, new, 1)
    found = check_urdf(slip)
    assert repr(found) == repr(carefully(slip)) != repr(carefully(EVERYTHING))


def test_nearly_everything_is_usual(monkeypatch):
    monkeypatch.setattr(parse, "_joint", None)
    monkeypatch.setattr(parse, "_link", None)
    for name, text in {**{name: TEXTS[name] for name in own_robots()}, "everything": EVERYTHING}.items():
        description, _ = check_urdf(text)
        assert description.links, name


def shapes():
    """A link whose shapes are not made yet, and what they will be."""
    text = visual('<box size="1 2 3"/>')
    return loads_urdf(text).link("b"), loads_urdf(text).link("b").visuals


def test_shapes_are_made_at_their_first_use():
    link, expected = shapes()
    assert "visuals" not in vars(link)
    assert len(expected) == 1
    assert link.collisions == ()
    assert repr(link.visuals) == repr(expected)
    assert link.visuals is link.visuals
    assert set(vars(link)) == set(rk.model.Link.__dataclass_fields__)


@pytest.mark.parametrize("other", [copy.copy, copy.deepcopy, lambda link: pickle.loads(pickle.dumps(link))])
def test_copies_have_them(other):
    link, expected = shapes()
    assert repr(other(link).visuals) == repr(expected)
    assert repr(other(link)) == repr(link)


def test_threads_get_the_same_shapes():
    for _ in range(20):
        link, _ = shapes()
        gate, got = threading.Barrier(4), []

        def look(link=link, gate=gate, got=got):
            gate.wait()
            got.append((link.visuals, link.collisions))

        threads = [threading.Thread(target=look) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert all(one is two for pair in got for one, two in zip(pair, got[0], strict=True))
