"""Readers: a robot's description in one form, whatever it is written in.

description   that form: bodies, joints, shapes and loops in one world
urdf          a URDF or xacro, as robokit reads it
mujoco        MJCF, or a URDF, as MuJoCo reads it, with its equality constraints, tendons and actuators
drake         SDF, or a URDF, as Drake reads it, without what Drake refuses
pinocchio     a URDF, as Pinocchio reads it
usd           USD with the UsdPhysics schema
"""
