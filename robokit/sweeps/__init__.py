"""Sweeps: many runs with other starts, masses, friction and robots, each of which can be made again.

A run is its recipe: row k of a sweep follows from the recipe and k alone, to the last bit.

    state_hash    a number for the last state of a row: equal bits, equal numbers
"""
