"""Inside the algorithms: what their own text does, line by line, on plain numbers.

text_statements  the statements of a function: which values each reads and writes
text_recorder    runs functions under a line tracer and keeps these values
recorded_values  spatial vectors, inertias and blocks as rows of numbers
walked_texts     RNEA, CRBA, LTDL and ABA: their functions, passes, symbols and units
line_captions    what each line does, in a sentence
walk_inputs      the instants of a motion that are shown, and the arguments of the algorithms there
walk_data        all of it as the page's data
"""
