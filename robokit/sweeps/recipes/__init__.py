"""The recipe of a sweep: all that its rows follow from, as JSON, and what a row comes to.

recipe          the recipe, its rows and their motions
recipe_fields   what it holds; JSON both ways
make_recipe     from the arguments of a sweep to its recipe
chunk_rows      the runs of a chunk's rows, and their table
own_measures    measures of the user's own
robot_record    a robot as a recipe keeps it
shown_files     its meshes and pictures, for pages
stored_shapes   what of it can touch, in JSON
stored_pairs    its pairs of bodies that are kept apart
stored_actuators  its actuators
stored_numbers  arrays in JSON
"""
