"""What is wrong with a description, in words.

check      every check, in one call
structure  tree of links, mimic joints, loop joints
physics    inertias, axes, limits, damping; joints that move no inertia
files      meshes and textures that are not there or cannot be read
plausible  masses and inertias beside the links' shapes
"""
