"""A description written as SDF and as USD, by the formats' own rules, for the readers of the referee."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from robokit.model.geometry import Box, Cylinder, Placement, Sphere
from robokit.urdf.description import Origin, RobotDescription

DEGREE = math.pi / 180.0


def _pose(origin: Origin) -> str:
    assert origin.quat_xyzw is None
    return " ".join(repr(float(x)) for x in (*origin.xyz, *origin.rpy))


def sdf(robot: RobotDescription) -> str:
    """SDF 1.9: each link's frame is relative to the joint that carries it."""
    out = [f'<sdf version="1.9"><model name="{robot.name or "robot"}">']
    carrier = {joint.child: joint for joint in robot.joints}
    for link in robot.links:
        joint = carrier.get(link.name)
        out.append(f'<link name="{link.name}">')
        if joint is not None:
            out.append(f'<pose relative_to="{joint.name}"/>')
        if link.inertial is not None:
            own = link.inertial
            six = zip(("ixx", "ixy", "ixz", "iyy", "iyz", "izz"), own.inertia, strict=True)
            inertia = "".join(f"<{name}>{value!r}</{name}>" for name, value in six)
            out.append(f"<inertial><pose>{_pose(own.origin)}</pose><mass>{own.mass!r}</mass>")
            out.append(f"<inertia>{inertia}</inertia></inertial>")
        for k, shape in enumerate(link.collisions):
            g = shape.geometry
            if isinstance(g, Box):
                body = f"<box><size>{' '.join(map(repr, g.size))}</size></box>"
            elif isinstance(g, Sphere):
                body = f"<sphere><radius>{g.radius!r}</radius></sphere>"
            elif isinstance(g, Cylinder):
                body = f"<cylinder><radius>{g.radius!r}</radius><length>{g.length!r}</length></cylinder>"
            else:
                continue
            out.append(f'<collision name="c{k}"><pose>{_pose(shape.origin)}</pose>')
            out.append(f"<geometry>{body}</geometry></collision>")
        out.append("</link>")
    for joint in robot.joints:
        out.append(f'<joint name="{joint.name}" type="{joint.type}">')
        out.append(f'<pose relative_to="{joint.parent}">{_pose(joint.origin)}</pose>')
        out.append(f"<parent>{joint.parent}</parent><child>{joint.child}</child>")
        if joint.moves:
            out.append(f"<axis><xyz>{' '.join(map(repr, joint.axis))}</xyz>")
            if joint.limit is not None:
                ranged = joint.limit.range if joint.type != "continuous" else None
                lower, upper = ranged or (-math.inf, math.inf)
                out.append(f"<limit><lower>{lower!r}</lower><upper>{upper!r}</upper>")
                for name in ("effort", "velocity"):
                    value = getattr(joint.limit, name)
                    out.append(f"<{name}>{value!r}</{name}>" if value else "")
                out.append("</limit>")
            if joint.dynamics is not None:
                own = joint.dynamics
                out.append(f"<dynamics><damping>{own.damping!r}</damping>")
                out.append(f"<friction>{own.friction!r}</friction></dynamics>")
            if joint.mimic is not None:
                law = joint.mimic
                out.append(f'<mimic joint="{law.joint}"><multiplier>{law.multiplier!r}</multiplier>')
                out.append(f"<offset>{law.offset!r}</offset><reference>0</reference></mimic>")
            out.append("</axis>")
        out.append("</joint>")
    return "\n".join(out) + "</model></sdf>"


def usd(robot: RobotDescription, path: Path, fixed: bool = True, axes_inverted: bool = False) -> None:
    """A USD stage in centimetres and grams, y up, with UsdPhysics and Newton's attributes.

    Args:
        robot: the description.
        path: the file, .usda.
        fixed: weld the base to the world.
        axes_inverted: write the inverse of the principal axes, as a converter did.
    """
    from pxr import Gf, Sdf, Usd, UsdGeom, UsdPhysics

    stage = Usd.Stage.CreateNew(str(path))
    UsdGeom.SetStageMetersPerUnit(stage, 0.01)
    UsdPhysics.SetStageKilogramsPerUnit(stage, 0.001)
    UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.y)
    up = Placement(np.array([[1.0, 0, 0], [0, 0, 1.0], [0, -1.0, 0]]))
    place = {}
    carried = {joint.child: joint for joint in robot.joints}
    left = list(robot.links)
    while left:
        link = left.pop(0)
        joint = carried.get(link.name)
        if joint is not None and joint.parent not in place:
            left.append(link)
            continue
        own = up if joint is None else place[joint.parent] @ joint.origin.placement()
        place[link.name] = own

    def quat(R: np.ndarray) -> Gf.Quatf:
        rows = Gf.Matrix3d(*map(float, R.T.ravel()))
        return Gf.Quatf(rows.ExtractRotation().GetQuat())

    def vector(p: np.ndarray) -> Gf.Vec3f:
        return Gf.Vec3f(*(float(100.0 * x) for x in p))

    root = UsdGeom.Xform.Define(stage, "/robot")
    UsdPhysics.ArticulationRootAPI.Apply(root.GetPrim())
    for link in robot.links:
        prim = UsdGeom.Xform.Define(stage, f"/robot/{link.name}")
        X = place[link.name]
        prim.AddTranslateOp(UsdGeom.XformOp.PrecisionDouble).Set(Gf.Vec3d(*(100.0 * X.position)))
        prim.AddOrientOp(UsdGeom.XformOp.PrecisionDouble).Set(Gf.Quatd(quat(X.rotation)))
        UsdPhysics.RigidBodyAPI.Apply(prim.GetPrim())
        if link.inertial is not None:
            mass = UsdPhysics.MassAPI.Apply(prim.GetPrim())
            moments, V = np.linalg.eigh(link.inertial.matrix())
            V = V * np.sign(np.linalg.det(V))
            mass.CreateMassAttr(1000.0 * link.inertial.mass)
            mass.CreateCenterOfMassAttr(vector(np.array(link.inertial.origin.xyz)))
            mass.CreateDiagonalInertiaAttr(Gf.Vec3f(*(float(1e7 * x) for x in moments)))
            mass.CreatePrincipalAxesAttr(quat(V.T if axes_inverted else V))
        for k, shape in enumerate(link.collisions):
            at, g, name = shape.origin.placement(), shape.geometry, f"/robot/{link.name}/c{k}"
            if isinstance(g, Box):
                made = UsdGeom.Cube.Define(stage, name)
                made.CreateSizeAttr(1.0)
            elif isinstance(g, Sphere):
                made = UsdGeom.Sphere.Define(stage, name)
                made.CreateRadiusAttr(100.0 * g.radius)
            elif isinstance(g, Cylinder):
                made = UsdGeom.Cylinder.Define(stage, name)
                made.CreateRadiusAttr(100.0 * g.radius)
                made.CreateHeightAttr(100.0 * g.length)
            else:
                continue
            made.AddTranslateOp(UsdGeom.XformOp.PrecisionDouble).Set(Gf.Vec3d(*(100.0 * at.position)))
            made.AddOrientOp(UsdGeom.XformOp.PrecisionDouble).Set(Gf.Quatd(quat(at.rotation)))
            if isinstance(g, Box):
                made.AddScaleOp(UsdGeom.XformOp.PrecisionDouble).Set(Gf.Vec3d(*(100.0 * x for x in g.size)))
            UsdPhysics.CollisionAPI.Apply(made.GetPrim())
    kinds = {
        "revolute": UsdPhysics.RevoluteJoint,
        "continuous": UsdPhysics.RevoluteJoint,
        "prismatic": UsdPhysics.PrismaticJoint,
        "fixed": UsdPhysics.FixedJoint,
    }
    if fixed:
        first = next(link.name for link in robot.links if link.name not in carried)
        weld = UsdPhysics.FixedJoint.Define(stage, "/robot/joints/root")
        weld.CreateBody1Rel().SetTargets([Sdf.Path(f"/robot/{first}")])
    for joint in robot.joints:
        made = kinds[joint.type].Define(stage, f"/robot/joints/{joint.name}")
        made.CreateBody0Rel().SetTargets([Sdf.Path(f"/robot/{joint.parent}")])
        made.CreateBody1Rel().SetTargets([Sdf.Path(f"/robot/{joint.child}")])
        X, turn = joint.origin.placement(), np.eye(3)
        if joint.moves:  # USD's axes are x, y, z: the joint's frame is turned so that its x is the axis
            x = np.array(joint.axis) / np.linalg.norm(joint.axis)
            y = np.cross(x, [0.0, 0.0, 1.0] if abs(x[2]) < 0.9 else [0.0, 1.0, 0.0])
            y /= np.linalg.norm(y)
            turn = np.array([x, y, np.cross(x, y)]).T
        made.CreateLocalPos0Attr(vector(X.position))
        made.CreateLocalRot0Attr(quat(X.rotation @ turn))
        made.CreateLocalPos1Attr(Gf.Vec3f(0, 0, 0))
        made.CreateLocalRot1Attr(quat(turn))
        if not joint.moves:
            continue
        made.CreateAxisAttr("X")
        unit = 100.0 if joint.type == "prismatic" else 1.0 / DEGREE
        prim = made.GetPrim()
        if joint.limit is not None:
            if joint.limit.range and joint.type != "continuous":
                made.CreateLowerLimitAttr(joint.limit.range[0] * unit)
                made.CreateUpperLimitAttr(joint.limit.range[1] * unit)
            if joint.limit.effort:
                drive = UsdPhysics.DriveAPI.Apply(prim, "linear" if joint.type == "prismatic" else "angular")
                # Forces in g cm/s^2, torques in g cm^2/s^2.
                drive.CreateMaxForceAttr(joint.limit.effort * (1e5 if joint.type == "prismatic" else 1e7))
            if joint.limit.velocity:
                made.GetPrim().CreateAttribute("newton:velocityLimit", Sdf.ValueTypeNames.Double).Set(
                    joint.limit.velocity * unit
                )
    scene = UsdPhysics.Scene.Define(stage, "/physics")
    scene.CreateGravityDirectionAttr(Gf.Vec3f(0, -1, 0))
    scene.CreateGravityMagnitudeAttr(981.0)
    stage.Save()
