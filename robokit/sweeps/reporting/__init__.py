"""The report of a sweep: one HTML file that shows all rows and runs each again.

report        the report, from the table and the recipe
report_page   its HTML file
recipe_words  the recipe in words
held_rows     which rows it holds
column_data   parameters and measures as it gets them
row_inputs    what rows hand to the step, packed
rerun_data    what the page needs to run the rows of a robot again
"""
