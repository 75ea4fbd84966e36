"""Descriptions of robots in other formats: what is read, and the robot that it becomes.

load             ``robokit.load``: a file of any format, or a name, becomes a robot; what ``robokit check``
                 finds in files that are no URDF
build            a description becomes a robot
read             which program reads a file
description      the one form: bodies, joints, shapes and loops in one world; its own meshes as files
urdf             a URDF or xacro, as robokit reads it
mujoco_scene     what MJCF has beside bodies and joints, and what of it robots do not have
mujoco           MJCF, or a URDF, as MuJoCo reads it, with its equality constraints, tendons and actuators
sdf              SDF as robokit reads it: frames, joints, looks of one model
sdf_files        the files of an SDF, with what they include
drake            SDF, or a URDF, as Drake reads it, without what Drake refuses
pinocchio        a URDF, as Pinocchio reads it
usd              USD with the UsdPhysics schema
other_programs   other programs in a child with bounded time and memory, and their known faults
worker           what that child does
"""
