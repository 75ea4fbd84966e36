"""What is wrong with a description, in words.

all            every check, in one call
structure      names, parents, cycles
loops          loop joints
physics        masses, inertias, axes, limits
missing_files  meshes and textures that are not there
extent         the room that shapes take
plausible      masses beside shapes
"""
