"""Contacts of convex shapes: one narrow phase for all kinds; shapes and their poses are data.

fields          the arrays by which the modules meet
hulls           convex hulls with flat faces, and fewer corners
shapes          geometry as arrays
broad           pairs that may touch within some steps
support         support points, and the polygon that faces a direction
gjk             distance, and depth of overlap
manifold        contacts of two polygons
narrow          contacts of a pair of shapes
on_plane        contacts of several rows at once with planes
flush           contacts that are none, of fixed shapes side by side
terrain         height fields, one triangle after the other
detect          contacts of all pairs
detect_kernel   detection alone
scene           all that can touch, and which of it may
"""
