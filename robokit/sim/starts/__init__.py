"""Where runs begin: configurations that stand, and what is wrong with others.

standing        configurations that stand on the ground
ground_gaps     how far shapes are from a ground
start_checks    states that are given, what overlaps there, errors and warnings about that and about spins
"""
