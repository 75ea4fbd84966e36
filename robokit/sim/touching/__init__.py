"""A robot on the ground: where its bodies touch, and what acts there.

ground_law       the contact law's constants, and a plane as the bodies see it
surfaces         what a point can touch: distance, normal, velocity
body_points      the points of a body: where they are, how fast, their bristles
contact          the contact of one body, linearised for a sweep
acting           the forces that act in the end
near_ground      which bodies can touch the ground in a step
ground_contacts  the points of all bodies on the ground
uneven_contact   the points of a body on a ground of many surfaces
solid_contacts   where a solid touches a box or a capsule between its own points
rim_on_box       where a rim, or the end of a cylinder, touches a box
point_moments    inertias and forces at points
"""
