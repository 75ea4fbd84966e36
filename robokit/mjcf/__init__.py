"""MJCF export: the numbered tree as a model that MuJoCo loads.

A body of MuJoCo is a body of robokit, with the inertia of all links fixed to it; the other links are
sites, so that their poses can be asked for by name. A fixed root is the world: its own mass is not
written. A moving link named "world", which is MuJoCo's name for its fixed frame, is body "world_link"
with a site "world". What MJCF cannot say is a warning, or an error where the model would move differently.

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

:class:`robokit.interop.MujocoAdapter` converts q, v, a, tau and H of such models, too.
"""

from robokit.mjcf.document import to_mjcf

__all__ = ["to_mjcf"]
