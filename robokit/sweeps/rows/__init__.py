"""What a row starts from and what is its own, as inputs of the step.

row_starts     the states in which rows start
row_robots     their masses, ground and pushes
row_actuators  their actuators
state_hash     a number for the last state of a row: equal bits, equal numbers
"""
