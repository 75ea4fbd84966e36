"""What is done to a recorded graph before it is written.

multiply_add  products into sums
chunks        pieces of a straight line, and their places in memory
repeats       iterations that do the same, found and planned
"""
