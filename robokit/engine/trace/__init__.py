"""Records what a text computes: each operation once, for one robot.

scalar  the scalars that record
graph   the recorded operations
"""
