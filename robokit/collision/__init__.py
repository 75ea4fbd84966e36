"""Contacts of convex shapes: one narrow phase for all kinds; shapes and their poses are data.

fields          the arrays by which the modules meet
shapes          geometry as arrays; convex hulls with flat faces, and fewer corners
support         support points, and the polygon that faces a direction
gjk             distance, and depth of overlap
round_shapes    normal and nearest points of round shapes, to the last digits
narrow          contacts of a pair of shapes: the manifold of two polygons
flush           fixed polytopes side by side as one surface
terrain         height fields, one triangle after the other
detect          pairs that may touch within some steps, and contacts of all pairs, with planes of several rows
                at once; detection alone, as a kernel
scene           all that can touch, and which of it may
"""
