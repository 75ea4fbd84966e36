"""Bodies of robots that touch each other.

pair_shapes       what a step knows of the pairs of bodies that may touch
shared_distances  what pairs repeat, written once: distances of two shapes, sorting in
nearest_pairs     which bodies touch or are about to
pair_contact      the law of one contact between two bodies
ground_in_return  what the ground under them gives in return
pair_impulses     impulses between bodies, equal and opposite
"""
