"""How steps are taken: the default step, the first one, those with contact, those of a page.

default_step    the time step where none is given
start_momentum  momentum and energy that the first step of passive motion is handed, to the bit
contact_steps   steps of contact/step.py, as runs and rollouts take them
contact_rows    many rows through many of these steps, on several threads
contact_lanes   the same in the lanes of vectors
linear_steps    these and their derivatives
step_numbers    the numbers of a program as that step takes them
own_measures    measures of the user's own in those steps
contact_page    that step and the look of a state for a page, which has no Python
page_step       the same of passive motion
"""
