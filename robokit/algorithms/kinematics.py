"""Forward kinematics: the pose of every body in the world.

Source: RBDA section 4.4 (^iX_0 = ^iX_lambda(i) ^lambda(i)X_0); seeds 003, position update.
Cost: O(n).
"""

from __future__ import annotations

from robokit.model.tree import Tree
from robokit.spatial import Transform


def forward_kinematics(tree: Tree, q) -> list[Transform]:
    """^iX_0 for i in 0..N: E takes world axes to body axes, r is the body's origin in the world [m]."""
    X0 = [Transform.identity()]
    for i in tree.outward():
        X0.append(tree.X(i, q[i]) @ X0[tree.parent[i]])
    return X0
