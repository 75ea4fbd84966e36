"""Mesh files, for pictures, contact points and plausibility: what comes from anywhere, read within limits.

read_mesh    the one reader of all formats
surface      what a reader returns: triangles with colours and a picture
untrusted    how much one file may become, which files it may name, which pictures are opened
stl_obj_ply  STL, OBJ and PLY, by trimesh
gltf         glTF: scene, materials, JSON, buffers
collada      COLLADA (.dae): scene, materials, geometries, text
simplify     fewer triangles, for display
hull         convex hulls of meshes and points; circles and boxes among them
"""
