"""Bodies that touch each other: their shapes as boxes and capsules, and which of them can meet.

capsule_distance    nearest points of two capsules in closed form
hull_surface        points on the surface of a hull of balls, and its support function
capsule_fit         capsules in place of cylinders and hulls, with the errors of the fit
box_distance        distance of a box from what is near it, in closed form
box_points          where a box touches what is near it
box_fit             a box in place of a hull, with the error of the fit
body_shapes         boxes and capsules of a robot's links
shape_distance      distance of any two of them
hull_distance       exact distance of convex hulls, for lists that are made once
gaps                distances of bodies in many configurations at once
pair_list           CollisionPairs: the pairs that are kept apart, printed and edited
collision_pairs     collision_pairs(robot) -> CollisionPairs: the pairs that can meet, found by sampling
acting_pairs        those that act in a run, asked for or by default
moved_apart         a configuration near a given one in which none of them overlap
"""

from robokit.sim.collide.acting_pairs import acting_pairs
from robokit.sim.collide.body_shapes import LinkBox, LinkCapsule, LinkShape, body_shapes
from robokit.sim.collide.collision_pairs import collision_pairs
from robokit.sim.collide.pair_list import CollisionPairs

__all__ = [
    "CollisionPairs",
    "LinkBox",
    "LinkCapsule",
    "LinkShape",
    "acting_pairs",
    "body_shapes",
    "collision_pairs",
]
