"""Mesh files, for pictures, contact points and plausibility: what comes from anywhere, read within limits.

read_mesh    the one reader of all formats; STL, OBJ and PLY, by trimesh; glTF
surface      what a reader returns: triangles with colours and a picture; fewer of them, for display
untrusted    how much one file may become, which files it may name, which pictures are opened
collada      COLLADA (.dae): scene, materials, geometries, text
hull         convex hulls of meshes and points; circles and boxes among them
"""
