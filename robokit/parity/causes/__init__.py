"""The causes of differences between two descriptions of a robot, and how each is recognised.

catalogue               every cause: code, meaning, usual fix, evidence
finding                 one difference with its cause; all of them
rigid                   sums of masses and inertias, and when they are equal
pairing                 which body is which link, which joint is which
alignment               where each link of A is in B
placement_candidates    what becomes of a joint's origin
inertial_candidates     what becomes of an inertial
merged_candidates       what becomes of a link that is merged into its parent
inertial_causes         which of these B has
shape_masses            masses that come from shapes
bodies_compared         masses and inertias, merged links included
joints_compared         kinds and axes of joints
limit_causes            limits, damping, friction, rotor inertia
mimics_compared         mimic laws
tree_compared           what joints hang on, what links are fixed to, and the root
loops_compared          joints and constraints that close loops
dynamics_compared       mass matrix, velocity forces and gravity at random states
shapes_compared         collision shapes
whole_compared          base, gravity, order of joints
"""
