"""What is done to a recorded graph before it is written, and what is made of it.

order         sums of products that make fused multiply-adds; signs where values are computed
guards        blocks that run only where a lane needs them
chunks        the line of operations cut into functions, and places in memory
calls         the same with shared functions: one plan of calls, one of memory
teams         operations shared among workers that meet after each round
contraction   the products that are fused with a sum
superword     what is done for a left and for a right limb in two lanes, in code of one state
regions       places in memory for a program with shared functions, as WebAssembly
similarity    pieces of a line that do the same with other numbers
basic_blocks  where the values of a chunk are computed, for code with a stack
outlining     pieces that are alike become shared functions
rerolling     iterations that do the same become one loop over a table
replay        a program over other scalars
forward_mode  derivatives along directions, one after the other, or one beside the values
reverse_mode  derivatives of one output
equations     derivatives of numbers that solve equations
derivative    derivatives as functions, and as linear maps forward and back
"""
