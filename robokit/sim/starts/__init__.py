"""Where runs begin: configurations that stand, and what is wrong with others.

given_states    states that were given, checked
standing        configurations that stand on the ground
moved_apart     a configuration near a given one in which no bodies overlap
ground_gaps     how far shapes are from a ground
start_contacts  what overlaps at the start: bodies, and links in the ground
start_warnings  errors and warnings about that, and about spins too fast for a step
"""
