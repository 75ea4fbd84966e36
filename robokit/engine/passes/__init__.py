"""What is done to a recorded graph before it is written.

multiply_add  sums of products in the order that makes fused multiply-adds
chunks        the line of operations cut into functions, and places in memory
repeats       iterations that do the same, found and planned
"""
