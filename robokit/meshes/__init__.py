"""Mesh files, for pictures, contact points and plausibility: what comes from anywhere, read within limits.

read_mesh          the one reader of all formats
surface            what a reader returns: triangles with colours and a picture
limits             how much one file may become
companions         reading files, and which ones a mesh file may name
pictures           which pictures are opened
stl_obj_ply        STL, OBJ and PLY, by trimesh
gltf               glTF: scene and materials
gltf_data          glTF: its text, buffers and accessors
collada            COLLADA (.dae): scene and materials
collada_triangles  COLLADA: geometries
collada_text       COLLADA: its text and lists of numbers
thin               fewer triangles, for display
hull               convex hulls of meshes and points
hull_circles       circles among the corners of a hull
box_corners        whether points are the corners of a box
"""
