"""MJCF export: the robot's tree as a model that MuJoCo loads.

Each moving body of robokit becomes a body of MuJoCo, with the inertia of all links that are fixed to it. The
other links become sites, so that their poses can be looked up by name. A fixed root becomes MuJoCo's world;
its own mass is not written. A moving link named "world", which is the name of MuJoCo's fixed frame, becomes
body "world_link" with a site "world". What MJCF cannot express gives a warning, or an error where the model
would move differently.

    robokit        MuJoCo                                              qpos of q
    revolute       hinge                                               the angle
    continuous     hinge without range                                 the angle
    prismatic      slide                                               the shift
    cylindrical    hinge NAME_R, slide NAME_T                          angle, shift
    planar         slides NAME_TX, NAME_TY, hinge NAME_RZ              x, y, angle
    spherical      ball                                                quaternion wxyz
    floating       free joint, at the root's frame                     position, quaternion wxyz
                   elsewhere slides NAME_TX, _TY, _TZ, ball NAME_R     position, quaternion wxyz
    helical        none: an error

:class:`robokit.interop.MujocoAdapter` converts q, v, a, tau and H between the robot and such a model.

    document      the whole model: options, assets, bodies, constraints
    bodies        names, inertias and joints of the bodies
    constraints   mimic and loop joints as equality constraints
    geoms         visual and collision shapes, mesh files
    attributes    how numbers and poses are written
"""

from robokit.mjcf.document import to_mjcf

__all__ = ["to_mjcf"]
