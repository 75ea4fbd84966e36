"""Adapters to Pinocchio, MuJoCo and Drake: q, v, a, tau and H converted by joint name, both ways.

Measured on a floating base with an off-centre centre of mass (Pinocchio 4.1, MuJoCo 4.0, Drake 1.51):

                  robokit                 Pinocchio              MuJoCo                 Drake
    base q        quat wxyz, position     position, quat xyzw    position, quat wxyz    quat wxyz, position
    base v        [omega; v]              [v; omega]             [v; omega]             [omega; v]
      in          base, base axes         base, base axes        world, base axes       world, world axes
    planar q      angle, x, y             x, y, cos, sin         x, y, angle            x, y, angle
    planar v      omega; body axes        body axes; omega       parent's axes; omega   parent's axes; omega
    joints        document order,         sorted by name         document order,        its own order
                  depth first                                    depth first
    continuous    one angle               cos, sin               one angle              one angle

A quaternion in another program's order raises no error there and gives wildly wrong numbers. The adapters
therefore match coordinates by joint name and refuse quaternions that are not unit.

    pinocchio   PinocchioAdapter
    mujoco      MujocoAdapter
    drake       DrakeAdapter
    common      what the adapters share
"""

from robokit.interop.drake import DrakeAdapter
from robokit.interop.mujoco import MujocoAdapter
from robokit.interop.pinocchio import PinocchioAdapter

__all__ = ["DrakeAdapter", "MujocoAdapter", "PinocchioAdapter"]
