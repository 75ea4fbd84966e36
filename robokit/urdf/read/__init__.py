"""URDF text to description.

source       file or text to an XML tree, safely
numbers      numbers as URDF writes them
elements     attributes and children, and all that is odd about them
parse        the elements of a robot
usual        links and joints as nearly all files write them, quickly
shapes       visuals, collisions and materials
loop_joints  joints that close loops
inferred_loops  loops by pairs of frames and by second parents
own_base     a floating base that the file describes itself
transmissions  the inertia of motors' rotors
mesh_files   package://, model://, file:// and relative names
mesh_axes    shapes turned by the up axis of their meshes
xacro        .xacro files
xacro_child  expands one in a process of its own
"""
