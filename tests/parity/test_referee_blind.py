"""Mistakes of converters that benchmarks/mutations does not make, and equal robots written differently."""

from __future__ import annotations

import numpy as np
import pytest
from lxml import etree

from robokit.parity import referee

ROBOT = """<robot name="two">
<link name="base"><inertial><origin xyz="0 0 0"/><mass value="3"/>
  <inertia ixx="0.5" ixy="0.01" ixz="0" iyy="0.4" iyz="0.02" izz="0.3"/></inertial></link>
<link name="upper"><inertial><origin xyz="0.1 0.03 0.2" rpy="0.3 -0.2 0.9"/><mass value="2.34567"/>
  <inertia ixx="0.41" ixy="0.021" ixz="-0.013" iyy="0.52" iyz="0.034" izz="0.63"/></inertial>
  <collision><origin xyz="0 0 0.1" rpy="0.1 0.2 0.3"/>
  <geometry><box size="0.1 0.2 0.3"/></geometry></collision></link>
<link name="foot"><inertial><origin xyz="0.02 0.01 -0.05" rpy="0.5 0 0"/><mass value="0.7"/>
  <inertia ixx="0.004" ixy="0.0003" ixz="0" iyy="0.005" iyz="0" izz="0.006"/></inertial>
  <collision><geometry><sphere radius="0.05"/></geometry></collision></link>
<joint name="hip" type="revolute"><parent link="base"/><child link="upper"/>
  <origin xyz="0.1 0.2 0.3" rpy="0.4 0.2 -0.7"/><axis xyz="0 0.6 0.8"/>
  <limit lower="-1.234567" upper="2.1" effort="10" velocity="3"/></joint>
<joint name="ankle" type="fixed"><parent link="upper"/><child link="foot"/>
  <origin xyz="0.1 -0.05 0.4" rpy="1 0.3 0.2"/></joint>
</robot>"""

SIX = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")


def turn(rpy):
    (r, p, y) = rpy
    c, s = np.cos, np.sin
    x = np.array([[1, 0, 0], [0, c(r), -s(r)], [0, s(r), c(r)]])
    y_ = np.array([[c(p), 0, s(p)], [0, 1, 0], [-s(p), 0, c(p)]])
    return np.array([[c(y), -s(y), 0], [s(y), c(y), 0], [0, 0, 1]]) @ y_ @ x


class Text:
    """The robot's XML, with what the cases change."""

    def __init__(self):
        self.root = etree.fromstring(ROBOT)

    def link(self, name):
        return self.root.find(f"link[@name='{name}']")

    def joint(self, name):
        return self.root.find(f"joint[@name='{name}']")

    def pose(self, element):
        origin = element.find("origin")
        return (np.array([float(x) for x in (origin.get(k) or "0 0 0").split()]) for k in ("rpy", "xyz"))

    def body(self, name):
        """Mass, centre of mass and inertia in the link's axes."""
        inertial = self.link(name).find("inertial")
        xx, xy, xz, yy, yz, zz = (float(inertial.find("inertia").get(k)) for k in SIX)
        rpy, com = self.pose(inertial)
        R = turn(rpy)
        tensor = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        return float(inertial.find("mass").get("value")), com, R @ tensor @ R.T

    def write(self, name, mass, com, inertia):
        inertial = self.link(name).find("inertial")
        inertial.find("mass").set("value", repr(float(mass)))
        origin = inertial.find("origin")
        origin.set("xyz", " ".join(map(repr, map(float, com))))
        origin.set("rpy", "0 0 0")
        for key, value in zip(SIX, inertia[np.triu_indices(3)], strict=True):
            inertial.find("inertia").set(key, repr(float(value)))


def spread(mass, c):
    return mass * (c @ c * np.eye(3) - np.outer(c, c))


def merge(text, how):
    (m, c, I), (n, d, J) = text.body("upper"), text.body("foot")
    rpy, p = text.pose(text.joint("ankle"))
    R = turn(rpy)
    e, K = p + R @ d, R @ J @ R.T
    if how == "not turned":
        K = J
    if how == "com not turned":
        e = p + d
    total = m + n
    g = (m * c + n * e) / total
    inertia = I + spread(m, c - g) + K + spread(n, e - g)
    if how == "plain":
        inertia = I + K
    if how == "mass alone":
        g, inertia = c, I
    if how == "about the origin":
        inertia = I + K + spread(m, c) + spread(n, e)
    text.write("upper", total, g, inertia)
    for shape in text.link("foot").findall("collision"):
        etree.SubElement(shape, "origin", xyz=" ".join(map(repr, map(float, p))))
        text.link("upper").append(shape)
    text.root.remove(text.joint("ankle"))
    text.root.remove(text.link("foot"))


def inertial(change, name="upper"):
    return lambda text: text.write(name, *change(*text.body(name)))


def limits(lower, upper):
    def change(text):
        text.joint("hip").find("limit").attrib.update({"lower": repr(lower), "upper": repr(upper)})

    return change


def angles(text):
    text.joint("hip").find("origin").set("rpy", "-0.4 0.2 -0.7")


def one_product(m, c, I):
    return m, c, I * np.array([[1, -1, 1], [-1, 1, 1], [1, 1, 1]])


def exchanged(m, c, I):
    return m, c, I + np.diag([0, 1, -1]) * (I[2, 2] - I[1, 1])


def raised(m, c, I):
    return m, c, I + np.diag(np.maximum(np.diag(I), 0.45) - np.diag(I))


E = np.eye(3)
Y_UP = turn((np.pi / 2, 0.0, 0.0))
MISTAKES = {
    "inches": (inertial(lambda m, c, I: (m, c / 0.0254, I)), "inertial-origin-units", "upper"),
    "mass of 1 kg": (inertial(lambda m, c, I: (1.0, c, I)), "inertial-default", "upper"),
    "inertia of 0.001": (inertial(lambda m, c, I: (m, c, 1e-3 * E)), "inertial-default", "upper"),
    "y up": (inertial(lambda m, c, I: (m, Y_UP @ c, Y_UP @ I @ Y_UP.T)), "inertial-axes", "upper"),
    "one product": (inertial(one_product), "products-sign", "upper"),
    "yy and zz": (inertial(exchanged, "base"), "inertia-order", "base"),
    "moments raised": (inertial(raised, "base"), "inertia-clamped", "base"),
    "zero limits": (limits(0.0, 0.0), "limits-lost", "hip"),
    "a whole turn": (limits(-np.pi, np.pi), "limits-lost", "hip"),
    "roll negated": (angles, "origin-rotation-convention", "hip"),
    **{f"merged, {how}": (lambda text, how=how: merge(text, how), "fixed-link-merged-wrongly", "foot")
       for how in ("plain", "not turned", "com not turned", "mass alone", "about the origin")},
}  # fmt: skip


def judged(text, tmp_path, digits=17):
    """The verdict over the robot and the changed one, with numbers of so many digits."""
    a, b = tmp_path / "a.urdf", tmp_path / "b.urdf"
    a.write_text(ROBOT)
    for element in text.root.iter():
        for key, value in element.attrib.items():
            if key not in ("name", "type", "link"):
                element.set(key, " ".join(f"{float(x):.{digits}g}" for x in value.split()))
    b.write_bytes(etree.tostring(text.root))
    return referee(a, b)


@pytest.mark.parametrize("digits", [17, 6])
@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_named_under_the_rounding_of_saved_files(name, digits, tmp_path):
    change, cause, element = MISTAKES[name]
    text = Text()
    change(text)
    (finding,) = judged(text, tmp_path, digits).findings
    assert cause in (finding.cause, *finding.also), finding
    assert finding.name == element


def renamed(text):
    for k, element in enumerate(text.root):
        old, new = element.get("name"), f"body_{k}"
        element.set("name", new)
        for end in text.root.iter("parent", "child"):
            if end.get("link") == old:
                end.set("link", new)


def turned_box(text):
    shape = text.link("upper").find("collision")
    shape.find("geometry/box").set("size", "0.2 0.1 0.3")
    shape.find("origin").set(
        "rpy", " ".join(map(repr, angles_of(turn((0.1, 0.2, 0.3)) @ turn((0, 0, np.pi / 2)))))
    )


def angles_of(R):
    return tuple(
        map(float, (np.arctan2(R[2, 1], R[2, 2]), -np.arcsin(R[2, 0]), np.arctan2(R[1, 0], R[0, 0])))
    )


EQUAL = {
    "the links have other names": (renamed, 17),
    "the edges of a box in another order": (turned_box, 17),
    "five digits": (lambda text: None, 5),
    "a link merged as it should be": (lambda text: merge(text, "right"), 17),
    "a link merged as it should be, six digits": (lambda text: merge(text, "right"), 6),
}


@pytest.mark.parametrize("name", EQUAL)
def test_another_writing_is_no_finding(name, tmp_path):
    change, digits = EQUAL[name]
    text = Text()
    change(text)
    verdict = judged(text, tmp_path, digits)
    assert verdict.same, verdict.findings
