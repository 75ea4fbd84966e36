"""The model: numbered tree, joint table, robot with names, and the builder.

tree                 Tree: lambda, mu, nu, kappa, p, s; Coupling of joints that follow others; patterns and
                     operation counts of H and its factors
joints               the joint table
parts                Link, Joint, LoopJoint, Mimic, Safety, Calibration; Scene; checks of their numbers
geometry             shapes and placements
inertial_parameters  inertial parameters as arrays; the equivalent box
robot                Robot: names on top of the tree; its configurations; walks over its links
builder              ModelBuilder: robots in code; links and joints in any order, numbered at the end
edit                 robots made of robots: lock, remove, graft, merge, replace, couple, put together
constraints          loop joints and contacts by body and frame, for the algorithms
regrouping           trees of the same motion with fewer numbers; limbs that are alike
"""

from robokit.model.builder import ModelBuilder
from robokit.model.constraints import Contact
from robokit.model.edit import (
    armature_by_dof,
    couple,
    graft,
    lock_joints,
    merge_links,
    remove_subtree,
    replace_armature,
    replace_inertia,
    together,
)
from robokit.model.geometry import Box, Capsule, Cylinder, Mesh, Placement, Shape, Sphere
from robokit.model.parts import Calibration, Joint, Link, LoopJoint, Mimic, Safety, Scene
from robokit.model.robot import Robot
from robokit.model.tree import Coupling, Tree, plain_tree

__all__ = [
    "Box",
    "Calibration",
    "Capsule",
    "Contact",
    "Coupling",
    "Cylinder",
    "Joint",
    "Link",
    "LoopJoint",
    "Mesh",
    "Mimic",
    "ModelBuilder",
    "Placement",
    "Robot",
    "Safety",
    "Scene",
    "Shape",
    "Sphere",
    "Tree",
    "armature_by_dof",
    "couple",
    "graft",
    "lock_joints",
    "merge_links",
    "plain_tree",
    "remove_subtree",
    "replace_armature",
    "replace_inertia",
    "together",
]
