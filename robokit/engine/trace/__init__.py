"""Records what a function computes: each operation once, for one robot.

ops      the operations: one place for all that is known of each
graph    the recorded operations, each once, and the program of those that outputs need
scalar   the scalars that record, also inside NumPy's functions
blocks   functions that are taken several times, recorded once
record   runs a function on such scalars; control_flow in a straight line; solved equations
"""
