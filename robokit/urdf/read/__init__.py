"""URDF text to description.

source      file or text to an XML tree, safely
elements    attributes and children, and all that is odd about them
numbers     numbers as URDF writes them
parse       the elements of a robot
shapes      visuals, collisions and materials
mesh_files  package://, model://, file:// and relative names
xacro       .xacro files
"""
