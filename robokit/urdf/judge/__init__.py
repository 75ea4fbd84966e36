"""What is wrong with a description, in words.

all        every verdict, in one call
codes      the table of verdicts
findings   collects them
structure  names, parents, cycles
loops      loop joints
physics    masses, inertias, axes, limits
extent     room that shapes take
plausible  masses beside shapes
"""
