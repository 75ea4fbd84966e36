"""Bodies that touch each other: their shapes as capsules, and which of them can meet.

capsule_distance    nearest points of two capsules in closed form
capsule_fit         capsules in place of boxes, cylinders and hulls, with the error of the fit
body_capsules       capsules of a robot's links
hull_distance       exact distance of convex hulls, for lists that are made once
collision_pairs     collision_pairs(robot) -> CollisionPairs: the pairs that can meet, found by sampling
"""

from robokit.sim.collide.body_capsules import LinkCapsule, body_capsules
from robokit.sim.collide.collision_pairs import CollisionPairs, collision_pairs

__all__ = ["CollisionPairs", "LinkCapsule", "body_capsules", "collision_pairs"]
