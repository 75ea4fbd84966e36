"""What is done to a recorded graph before it is written, and what is made of it.

multiply_add  sums of products in the order that makes fused multiply-adds
signs_early   signs of outputs where their values are computed
guards        blocks that run only where a lane needs them
chunks        the line of operations cut into functions, and places in memory
regions       places in memory for a program with shared texts, as WebAssembly
called_lines  the same for this process, where calls are chunks
in_place      arguments and results of calls that are not copied
windows       calls that have places of their own
side_by_side  memory of columns that share a vector
twins         operations that are done for a left and for a right limb
pair_order    the order of evaluation in which both are computed at once
paired        both in the lanes of a vector, in code of one state
alike         pieces of a line that do the same with other numbers
outlined      pieces that are alike become shared texts
stretches     where the values of a chunk are computed, for code with a stack
repeats       iterations that do the same, found and planned
played_back   a program over other scalars
forward_mode  derivatives along directions, one after the other
forward_along the same along one direction, beside the values; calls stay calls
reverse_mode  derivatives of one output
equations     derivatives of numbers that solve equations
listed        instructions for an interpreter, which leave a tape of derivatives
derivative    texts of derivatives
linear_maps   texts of derivatives along a direction, and of their transposes
"""
