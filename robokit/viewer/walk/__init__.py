"""Inside the algorithms: what their own text does, line by line, for any state that the page shows.

text_statements  the statements of a function: which values each reads and writes
text_recorder    runs functions under a line tracer and keeps these values
recorded_values  spatial vectors, inertias and blocks as rows of numbers
walked_texts     RNEA, CRBA, LTDL and ABA: their functions, passes, symbols and units
line_captions    what each line does, in a sentence
text_runs        the algorithms run on a state, of plain numbers or of the engine's traced scalars
walk_program     the graph that was traced, as operations that the page takes for the state it shows
algorithm_data   one algorithm as the page's data
walk_data        all of it
"""
