"""The model: numbered tree, joint table, robot with names, and the builder.

tree                 Tree: lambda, mu, nu, kappa, p, s
joints               the joint table
parts                Link, Joint, LoopJoint, Mimic, Safety, Calibration
geometry             shapes and placements
inertia_box          the box of even density with a mass and an inertia
robot                Robot: names on top of the tree
configurations       its half about q and v
inertial_parameters  inertial parameters as arrays
regrouping           what of a body acts only through its parent goes there
sparse_frames        body frames slid along their joints' axes
sparsity             patterns and operation counts of H and its factors
mimic_coupling       Coupling: q_full = G q + offset
mimics               couple(robot): mimic joints lose their coordinates
builder              ModelBuilder: robots in code
builder_arguments    what it asks of its arguments
drafts               links and joints until they are numbered
assemble             drafts become a numbered robot
contacts             contacts by name and by body, for the algorithms
loop_models          loop joints by body and frame, for the algorithms
rotors               inertia of motors' rotors, set by hand and by degree of freedom
twin_limbs           limbs that are alike, such as a left and a right leg
walks                a robot's links and joints in their order, by name
several              several robots in one world
edit                 lock joints, remove and graft subtrees, merge links, replace inertias
"""

from robokit.model.builder import ModelBuilder
from robokit.model.constraints import Contact
from robokit.model.edit import graft, lock_joints, merge_links, remove_subtree, replace_inertia
from robokit.model.geometry import Box, Capsule, Cylinder, Mesh, Placement, Shape, Sphere
from robokit.model.mimic_coupling import Coupling
from robokit.model.mimics import couple
from robokit.model.parts import Calibration, Joint, Link, LoopJoint, Mimic, Safety
from robokit.model.robot import Robot
from robokit.model.rotors import armature_by_dof, replace_armature
from robokit.model.several import together
from robokit.model.tree import Tree, plain_tree

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
