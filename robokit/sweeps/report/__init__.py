"""The report of a sweep: one HTML file that shows its rows, and runs each of them again.

    held_rows     which rows the page holds
    column_data   parameters and measures as the page gets them
    recipe_words  the recipe in words
    row_inputs    what rows hand to the step, packed
    rerun_data    what the page needs to run the rows of a robot again
    report_page   the page
"""

from robokit.sweeps.report.report_page import Report, write_html

__all__ = ["Report", "write_html"]
