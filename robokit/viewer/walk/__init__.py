"""Inside the algorithms: what their own text does, line by line, for any state that the page shows.

text_recorder    runs functions under a line tracer and stores the values that each statement reads and writes
walked_texts     RNEA, CRBA, LTDL and ABA: their functions, passes, symbols and units; runs them on a state
line_captions    what each line does, in a sentence
walk_data        the page's data: the lines, and the traced graph as a program that finds their values
"""
