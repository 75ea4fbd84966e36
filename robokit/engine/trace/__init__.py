"""Records what a function computes: each operation once, for one robot.

ops      the operations: one place for all that is known of each
graph    the recorded operations, each once, and the program of those that outputs need
scalar   the scalars that record, also inside NumPy's functions
record   runs a function on such scalars: functions taken several times, control_flow, solved equations
"""
