"""The model: numbered tree, joint table, robot with names, and the builder.

tree       Tree: lambda, mu, nu, kappa, p, s
joints     the joint table
parts      Link, Joint, LoopJoint, Mimic, Safety, Calibration
robot      Robot
builder    ModelBuilder: robots in code
coupling   mimic joints without coordinates of their own: couple(robot)
drafts     a robot back to its builder
edit       lock joints, remove and graft subtrees, merge links, replace inertias
geometry   shapes and placements
inertia_box  the box of even density with a mass and an inertia
parameters inertial parameters as arrays
sparsity   patterns and operation counts of H and its factors
"""

from robokit.model.builder import ModelBuilder
from robokit.model.edit import graft, lock_joints, merge_links, remove_subtree, replace_inertia
from robokit.model.geometry import Box, Capsule, Cylinder, Mesh, Placement, Shape, Sphere
from robokit.model.mimic_coupling import Coupling, couple
from robokit.model.parts import Calibration, Joint, Link, LoopJoint, Mimic, Safety
from robokit.model.robot import Robot
from robokit.model.tree import Tree, plain_tree

__all__ = [
    "Box",
    "Calibration",
    "Capsule",
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
    "Shape",
    "Sphere",
    "Tree",
    "couple",
    "graft",
    "lock_joints",
    "merge_links",
    "plain_tree",
    "remove_subtree",
    "replace_inertia",
]
