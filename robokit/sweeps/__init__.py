"""Sweeps: many runs with other starts, masses, friction and robots, each of which can be made again.

A run is its recipe: row k of a sweep follows from the recipe and k alone, to the last bit.

    report_page   the report of a sweep: one HTML file that runs each row again
    held_rows     which rows it holds
    column_data   parameters and measures as it gets them
    row_inputs    what rows hand to the step, packed
    rerun_data    what the page needs to run the rows of a robot again
    state_hash    a number for the last state of a row: equal bits, equal numbers
"""
