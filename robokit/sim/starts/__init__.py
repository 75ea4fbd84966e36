"""Where runs begin: configurations that stand, and what is wrong with others.

given_states    states that were given, checked
standing        configurations that stand on the ground
ground_gaps     how far shapes are from a ground
start_contacts  what overlaps at the start: bodies, and links in the ground
start_warnings  errors and warnings about that, and about spins too fast for a step
"""
