"""USD as full robots: stages written here, beside the same robots made of their numbers."""

from __future__ import annotations

import numpy as np
import pytest

import robokit as rk
from robokit.errors import LoadError
from robokit.model.geometry import Box, Capsule, Cylinder, Mesh, Sphere

pytestmark = pytest.mark.parity
pytest.importorskip("pxr", reason="usd-core has no wheel for every machine")

HEAD = """#usda 1.0
(
    defaultPrim = "robot"
    metersPerUnit = {metres}
    kilogramsPerUnit = {kilograms}
    upAxis = "{up}"
)
"""

MASS = "float physics:mass = {m}\npoint3f physics:centerOfMass = (0, 0, 0)\n"
MASS += "float3 physics:diagonalInertia = ({i}, {i}, {i})\nquatf physics:principalAxes = (1, 0, 0, 0)\n"


def body(name, at=(0, 0, 0), mass=1.0, inertia=0.5, inside="", apis=""):
    x, y, z = at
    said = MASS.format(m=mass, i=inertia) if mass else ""
    return f"""def Xform "{name}" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsMassAPI"{apis}]) {{
double3 xformOp:translate = ({x}, {y}, {z})
uniform token[] xformOpOrder = ["xformOp:translate"]
{said}{inside}}}
"""


def joint(kind, name, first, second, inside="", at=(0, 0, 0), apis=""):
    ends = "".join(
        f"rel physics:body{k} = </robot/{end}>\n" for k, end in enumerate((first, second)) if end is not None
    )
    x, y, z = at
    applied = f"(prepend apiSchemas = [{apis}])" if apis else ""
    return f"""def {kind} "{name}" {applied} {{
{ends}point3f physics:localPos0 = ({x}, {y}, {z})
quatf physics:localRot0 = (1, 0, 0, 0)
point3f physics:localPos1 = (0, 0, 0)
quatf physics:localRot1 = (1, 0, 0, 0)
{inside}}}
"""


def load(tmp_path, inside, metres=1, kilograms=1, up="Z", after="", **options):
    file = tmp_path / "robot.usda"
    head = HEAD.format(metres=metres, kilograms=kilograms, up=up)
    file.write_text(f'{head}def Xform "robot" {{\n{inside}}}\n{after}')
    return rk.load(file, **options)


def told(robot, severity=None):
    return " | ".join(str(d) for d in robot.diagnostics if severity in (None, d.severity))


def pendulum(**numbers):
    builder = rk.ModelBuilder("robot").link("base", 1.0, inertia=0.5 * np.eye(3))
    builder.link("arm", 2.0, inertia=0.25 * np.eye(3))
    return builder.joint("j", "revolute", "base", "arm", **numbers)


def alike(robot, other, scale=1e-6):
    """USD keeps single precision."""
    q, v = other.random_configuration(3), np.linspace(-1, 1, other.nv)
    assert robot.joint_names == other.joint_names
    assert np.allclose(rk.crba(robot, q), rk.crba(other, q), rtol=0, atol=scale)
    assert np.allclose(rk.rnea(robot, q, v, v), rk.rnea(other, q, v, v), rtol=scale, atol=20 * scale)
    for link in other.links:
        for a, b in zip(*(rk.forward_kinematics(r, q)[link.name] for r in (robot, other)), strict=True):
            assert np.allclose(a, b, atol=scale)


def test_units_axes_limits_and_drives(tmp_path):
    inside = body("base", mass=1000, inertia=5e6) + body("arm", (0, 0, 100), 2000, 2.5e6)
    drive = """uniform token physics:axis = "Y"
float physics:lowerLimit = -90
float physics:upperLimit = 45
float drive:angular:physics:stiffness = 1e6
float drive:angular:physics:damping = 2e5
float drive:angular:physics:maxForce = 3e8
float drive:angular:physics:targetPosition = 10
"""
    apis = '"PhysicsDriveAPI:angular"'
    inside += joint("PhysicsRevoluteJoint", "j", "base", "arm", drive, (0, 0, 100), apis)
    robot = load(tmp_path, inside, metres=0.01, kilograms=0.001)
    place = rk.Placement(position=np.array([0, 0, 1.0]))
    alike(robot, pendulum(placement=place, axis=(0, 1, 0)).build(base="floating"))
    hinge = robot.joint("j")
    assert (hinge.lower, hinge.upper) == pytest.approx((-np.pi / 2, np.pi / 4))
    assert hinge.effort == pytest.approx(30.0)  # g cm^2/s^2
    (drive,) = robot.scene.actuators
    assert isinstance(drive, rk.PD)
    turn = 180.0 / np.pi * 1e-7
    stiffness, damping = (float(np.ravel(list(_values(getattr(drive, n))))[0]) for n in ("kp", "kd"))
    assert (stiffness, damping) == pytest.approx((1e6 * turn, 2e5 * turn), rel=1e-6)
    assert "target of drives" in told(robot, "note")


def _values(x):
    return x.values() if isinstance(x, dict) else np.ravel(x)


def test_a_stage_with_y_up_stands_upright(tmp_path):
    """The joint to the world turns about the stage's y, which is z here."""
    inside = body("base", (0, 1, 0), 1.0, 0.5)
    inside += joint(
        "PhysicsRevoluteJoint", "j", None, "base", 'uniform token physics:axis = "Y"\n', (0, 1, 0)
    )
    scene = 'def PhysicsScene "scene" {\nvector3f physics:gravityDirection = (0, -1, 0)\n'
    scene += "float physics:gravityMagnitude = 9.81\n}\n"
    robot = load(tmp_path, inside, up="Y", after=scene)
    assert robot.base == "fixed" and robot.joint_names == ("j",)
    _, p = rk.forward_kinematics(robot, [0.0])["base"]
    R, _ = rk.forward_kinematics(robot, [0.7])["base"]
    R0, _ = rk.forward_kinematics(robot, [0.0])["base"]
    assert np.allclose(p, [0, 0, 1]) and np.allclose(robot.gravity, [0, 0, -9.81], atol=1e-6)
    c, s = np.cos(0.7), np.sin(0.7)
    assert np.allclose(R @ R0.T, [[c, -s, 0], [s, c, 0], [0, 0, 1]], atol=1e-7)


LOCK = "float limit:{0}:physics:low = 1\nfloat limit:{0}:physics:high = -1\n"
ALL = ("transX", "transY", "transZ", "rotX", "rotY", "rotZ")

FREE = {
    "fixed": (),
    "revolute": ("rotY",),
    "prismatic": ("transZ",),
    "spherical": ("rotX", "rotY", "rotZ"),
    "floating": ALL,
    "two": ("rotX", "rotY"),
    "slide and turn": ("transX", "rotX"),
}


@pytest.mark.parametrize("kind", FREE)
def test_joints_are_what_their_limits_leave_free(kind, tmp_path):
    free = FREE[kind]
    locked = [name for name in ALL if name not in free]
    apis = ", ".join(f'"PhysicsLimitAPI:{name}"' for name in locked)
    inside = body("base") + body("arm", (0, 0, 1), 2.0, 0.25)
    inside += joint("PhysicsJoint", "d", "base", "arm", "".join(map(LOCK.format, locked)), (0, 0, 1), apis)
    robot = load(tmp_path, inside)
    assert robot.nv == 6 + len(free)
    kinds = {joint.kind for joint in robot.joints if joint.name != "floating_base"}
    several = kind in ("two", "slide and turn")
    assert several or kinds <= {kind, "continuous"}
    assert ("one joint for each" in told(robot)) == several
    if kind == "two":  # a body turned about x, then about the turned y
        q = np.array([0.3, -0.8])
        R, _ = rk.forward_kinematics(robot, np.r_[1, 0, 0, 0, 0, 0, 0, q])["arm"]
        (cx, sx), (cy, sy) = ((np.cos(x), np.sin(x)) for x in q)
        about_x = np.array([[1, 0, 0], [0, cx, -sx], [0, sx, cx]])
        assert np.allclose(R, about_x @ [[cy, 0, sy], [0, 1, 0], [-sy, 0, cy]], atol=1e-7)


def test_masses_of_colliders(tmp_path):
    """By density, and by a mass whose inertia the shape gives; the numbers written out by hand."""
    cube = """def Cube "c" (prepend apiSchemas = ["PhysicsCollisionAPI"]) {
double size = 2
double3 xformOp:scale = (0.1, 0.2, 0.3)
uniform token[] xformOpOrder = ["xformOp:scale"]
}
"""
    inside = body("base", mass=0, inside="float physics:density = 500\n" + cube)
    inside += body("arm", (0, 0, 1), mass=0, inside="float physics:mass = 3\n" + cube)
    robot = load(tmp_path, inside + joint("PhysicsFixedJoint", "f", "base", "arm", at=(0, 0, 1)))
    box = np.array([0.2, 0.4, 0.6])
    moments = np.array([box @ box - x * x for x in box]) / 12.0
    for name, mass in (("base", 500 * box.prod()), ("arm", 3.0)):
        link = robot.link(name)
        assert link.mass == pytest.approx(mass, rel=1e-6)
        assert np.allclose(link.inertia, mass * np.diag(moments), rtol=1e-6)


def test_shapes_looks_and_ground(tmp_path):
    shapes = """def Sphere "s" {
double radius = 0.2
color3f[] primvars:displayColor = [(0.1, 0.2, 0.3)]
float[] primvars:displayOpacity = [0.5]
}
def Capsule "k" (prepend apiSchemas = ["PhysicsCollisionAPI"]) {
uniform token axis = "X"
double radius = 0.1
double height = 0.4
uniform token purpose = "guide"
}
def Cylinder "z" (prepend apiSchemas = ["PhysicsCollisionAPI"]) {
double radius = 0.1
double height = 0.4
}
def Mesh "m" (prepend apiSchemas = ["MaterialBindingAPI"]) {
point3f[] points = [(0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0)]
int[] faceVertexCounts = [4]
int[] faceVertexIndices = [0, 1, 2, 3]
rel material:binding = </looks/red>
}
def Camera "eye" {}
"""
    after = """def Scope "looks" {
def Material "red" {
token outputs:surface.connect = </looks/red/shader.outputs:surface>
def Shader "shader" {
uniform token info:id = "UsdPreviewSurface"
color3f inputs:diffuseColor = (0.9, 0.1, 0.2)
float inputs:opacity = 0.7
token outputs:surface
}
}
}
def Plane "floor" (prepend apiSchemas = ["PhysicsCollisionAPI"]) {
uniform token axis = "Z"
}
def Cube "step" (prepend apiSchemas = ["PhysicsCollisionAPI"]) {
double size = 0.5
}
"""
    robot = load(tmp_path, body("base", inside=shapes), after=after)
    base = robot.link("base")
    kinds = {shape.name: type(shape.geometry) for shape in (*base.visuals, *base.collisions)}
    assert kinds == {"s": Sphere, "k": Capsule, "z": Cylinder, "m": Mesh}
    assert {shape.name for shape in base.visuals} == {"s", "z", "m"}
    assert {shape.name for shape in base.collisions} == {"k", "z"}
    looks = {shape.name: shape.rgba for shape in base.visuals}
    assert looks["s"] == pytest.approx((0.1, 0.2, 0.3, 0.5)) and looks["m"] == pytest.approx(
        (0.9, 0.1, 0.2, 0.7)
    )
    (capsule,) = (shape for shape in base.collisions if shape.name == "k")
    assert np.allclose(np.abs(capsule.placement.rotation[:, 2]), [1, 0, 0], atol=1e-12)
    assert robot.scene.ground is not None and "eye" in told(robot, "note")
    assert Box not in kinds.values()  # the step is the ground's


def test_meshes_of_a_stage_go_with_what_is_written(tmp_path):
    """They lie in the cache else, which may be emptied; a collider's API may be on a prim above."""
    mesh = """def Xform "parts" (prepend apiSchemas = ["PhysicsCollisionAPI"]) {
def Mesh "m" {
point3f[] points = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]
int[] faceVertexCounts = [3, 3, 3, 3]
int[] faceVertexIndices = [0, 2, 1, 0, 1, 3, 0, 3, 2, 1, 2, 3]
}
}
"""
    robot = load(tmp_path, body("base", inside=mesh))
    for ending in (".sdf", ".urdf", ".xml"):
        done = rk.convert(robot, tmp_path / f"out{ending}")
        assert len(done.copied) == 1 and f"out_meshes/{done.copied[0].name}" in done.path.read_text()
        (shape,) = rk.load(done.path).link("base").collisions
        assert shape.geometry.path.resolve() == done.copied[0].resolve()


def test_what_is_no_joint_is_told(tmp_path):
    inside = body("base") + body("arm", (0, 0, 1))
    robot = load(tmp_path, inside + joint("PhysicsDistanceJoint", "rope", "base", "arm"))
    assert "rope" in told(robot, "warning") and robot.nv == 12
    cone = "float physics:coneAngle0Limit = 30\nfloat physics:coneAngle1Limit = 30\n"
    robot = load(tmp_path, inside + joint("PhysicsSphericalJoint", "ball", "base", "arm", cone))
    assert "limit of spherical joints" in told(robot, "warning") and robot.joint("ball").kind == "spherical"


def test_bad_stages_are_refused(tmp_path):
    with pytest.raises(LoadError, match="no prim with PhysicsRigidBodyAPI"):
        load(tmp_path, "")
    with pytest.raises(LoadError, match="upAxis"):
        load(tmp_path, body("base"), up="X")
    (tmp_path / "broken.usda").write_text("#usda 1.0\ndef {")
    with pytest.raises(LoadError, match="USD cannot open it"):
        rk.load(tmp_path / "broken.usda")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("float physics:mass = </robot/b>", "</robot/a.physics:mass>: expected a float, got /robot/b"),
        ('uniform token[] xformOpOrder = ["xformOp:turn"]', "Invalid xform op"),
    ],
)
def test_values_that_usd_lets_pass_are_named(line, said, tmp_path):
    kept = "\n".join(x for x in body("a").splitlines()[:-1] if line.split(" = ")[0] not in x.split(" = "))
    with pytest.raises(LoadError) as caught:
        load(tmp_path, f"{kept}\n{line}\n}}\n" + body("b"))
    assert said in str(caught.value) and "\n" not in str(caught.value)


LOOKS = """rel material:binding = </robot/red>
def Sphere "ball" {
color3f[] primvars:displayColor = %s
}
"""
RED = """def Material "red" {
token outputs:surface.connect = </robot/red/s.outputs:surface>
def Shader "s" {
uniform token info:id = "UsdPreviewSurface"
%s
token outputs:surface
}
}
"""


@pytest.mark.parametrize(
    ("colour", "shader", "rgba", "wrong"),
    [
        ("[(0, 1, 0)]", "color3f inputs:diffuseColor = </robot/a>", (0, 1, 0, 1), "s.inputs:diffuseColor"),
        ("</robot/a>", "color3f inputs:diffuseColor = (1, 0, 0)", (1, 0, 0, 1), "ball.primvars:displayColor"),
        ("[(0, 1, 0)]", 'string inputs:diffuseColor = "red"', (0, 1, 0, 1), ""),
        ("[(0, 1, 0)]", "custom float weight = </robot/a>", (0, 1, 0, 1), "s.weight"),
    ],
)
def test_a_wrong_value_that_no_robot_needs_is_told(colour, shader, rgba, wrong, tmp_path):
    apis = ', "MaterialBindingAPI"'
    robot = load(tmp_path, body("a", inside=LOOKS % colour, apis=apis) + RED % shader)
    (shape,) = robot.link("a").visuals
    assert shape.rgba == rgba and robot.link("a").mass == 1.0
    assert wrong in told(robot) and ("another type" in told(robot)) == bool(wrong)


def test_a_free_body_that_is_held_has_no_configuration_of_its_base(tmp_path):
    inside = body("a", (1, 2, 3)) + body("b", (1, 2, 4))
    inside += joint("PhysicsRevoluteJoint", "turn", "a", "b", 'uniform token physics:axis = "Y"\n')
    assert load(tmp_path, inside).scene.configurations.keys() == {"initial"}
    assert load(tmp_path, inside, base="fixed").scene.configurations == {}


def test_joints_of_one_name_go_by_their_paths(tmp_path):
    arms = "".join(
        f'def Xform "{side}" {{\n{body("link", (0, y, 1))}'
        + joint("PhysicsRevoluteJoint", "turn", None, None, 'uniform token physics:axis = "Y"\n').replace(
            "{", f"{{\nrel physics:body0 = </robot/base>\nrel physics:body1 = </robot/{side}/link>\n", 1
        )
        + "}\n"
        for side, y in (("left", 1), ("right", -1))
    )
    robot = load(tmp_path, body("base") + arms + joint("PhysicsFixedJoint", "held", None, "base"))
    assert robot.joint_names == ("turn", "/robot/right/turn")
    assert robot.link_names[1:] == ("base", "link", "/robot/right/link")


def test_a_stage_that_moves_is_read_at_its_first_time(tmp_path):
    moving = body("a", (9, 9, 9)).replace(
        "xformOp:translate = (9, 9, 9)", "xformOp:translate.timeSamples = {1: (1, 2, 3), 5: (4, 5, 6)}"
    )
    q = load(tmp_path, moving).configuration("initial")
    np.testing.assert_allclose(q, (1, 0, 0, 0, 1, 2, 3))


def test_free_bodies_are_where_the_stage_has_them(tmp_path):
    robot = load(tmp_path, body("a", (1, 2, 3)) + body("b", (4, 5, 6)))
    poses = rk.forward_kinematics(robot, robot.configuration("initial"))
    np.testing.assert_allclose([poses[name][1] for name in "ab"], [(1, 2, 3), (4, 5, 6)])


def test_names_of_free_joints_are_new_ones(tmp_path):
    hinge = joint("PhysicsRevoluteJoint", "a_free", "a", "b", 'uniform token physics:axis = "Y"\n')
    robot = load(tmp_path, body("a", (1, 2, 3)) + body("b", (1, 2, 3)) + hinge + body("c", (4, 5, 6)))
    assert set(robot.joint_names) == {"a_free", "a_free_joint", "c_free"}
    poses = rk.forward_kinematics(robot, robot.configuration("initial"))
    np.testing.assert_allclose([poses[name][1] for name in "ac"], [(1, 2, 3), (4, 5, 6)])


def test_a_distance_joint_with_one_bound_is_a_rod(tmp_path):
    """Units of the stage; without a tree joint its bodies are both free."""
    bounds = "float physics:minDistance = 40\nfloat physics:maxDistance = 40\n"
    inside = body("base") + body("arm", (0, 0, 100)) + joint("PhysicsRevoluteJoint", "j", "base", "arm")
    inside += body("end", (30, 0, 100)) + joint("PhysicsDistanceJoint", "rod", "arm", "end", bounds)
    inside += joint("PhysicsSphericalJoint", "ball", "base", "end")
    robot = load(tmp_path, inside, metres=0.01)
    (rod,) = robot.loop_joints
    assert (rod.name, rod.kind, rod.predecessor, rod.successor) == ("rod", "distance", "arm", "end")
    assert rod.length == pytest.approx(0.4) and "Distance" not in told(robot)
