"""Mesh files, for pictures, contact points and plausibility.

read_mesh   the one reader of all formats
collada     COLLADA (.dae)
companions  the files that a mesh file may name
surface     what a reader returns: triangles with colours and a picture
thin        fewer triangles, for display
hull        corners of the convex hull of a file, for contact points
"""
