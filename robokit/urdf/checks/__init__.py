"""What is wrong with a description, in words.

all             every check, in one call
structure       names, parents, cycles
mimic_laws      mimic joints
loops           loop joints
physics         inertias, axes, limits
masses          joints that move nothing, bodies without mass
missing_files   meshes and textures that are not there
extent          the room that shapes take
plausible       masses beside shapes
"""
