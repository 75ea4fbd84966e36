"""Descriptions of robots in other formats: what is read, and the robot that it becomes.

load             ``robokit.load``: a file of any format, or a name, becomes a robot; which program reads it
build            a description becomes a robot
description      the one form: bodies, joints, shapes and loops in one world; its own meshes as files
urdf             a URDF or xacro, as robokit reads it
mujoco           MJCF, or a URDF, as MuJoCo reads it: bodies, joints, loops, tendons, actuators, and what else
sdf              SDF as robokit reads it: its files with what they include, frames, joints, looks of one model
drake            SDF, or a URDF, as Drake reads it, without what Drake refuses
pinocchio        a URDF, as Pinocchio reads it
usd              USD with the UsdPhysics schema
other_programs   other programs in a child with bounded time and memory, and their known faults
worker           what that child does
"""
