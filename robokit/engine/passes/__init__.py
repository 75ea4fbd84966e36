"""What is done to a recorded graph before it is written, and what is made of it.

order       blocks that run only where a lane needs them; sums that make fused multiply-adds; signs
schedule    the line of operations cut into functions, calls of functions, and places in memory
superword   what is done for a left and for a right limb in two lanes, in code of one state
similarity  pieces of a line that do the same with other numbers: loops over a table
replay      a program over other scalars; numbers that solve equations
derivative  derivatives, forward and in reverse mode: as functions, and as linear maps
"""
