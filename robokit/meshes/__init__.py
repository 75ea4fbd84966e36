"""Mesh files, for pictures, contact points and plausibility.

read_mesh  the one reader
collada    COLLADA
hull       corners of the convex hull of a mesh file
"""
