"""Records what a function computes: each operation once, for one robot.

ops      the operations: one place for all that is known of each
graph    the recorded operations, each once
program  the finished graph: what the outputs need
scalar   the scalars that record
blocks   functions that are taken several times, recorded once
words    what the words of control_flow do in a straight line; solved equations
numpy_calls  what NumPy does with these scalars
record   runs a function on such scalars
"""
