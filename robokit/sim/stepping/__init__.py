"""How steps are taken: the default step, the first one, steps iterated to an accuracy, those of a page.

default_step    the time step where none is given
start_momentum  momentum and energy that the first step is handed, to the bit
iterated_steps  steps that are iterated until their contacts have settled
acceleration    Anderson's acceleration of that iteration, in a kernel with loops
newton_rows     many rows through many of these steps, on several threads
newton_lanes    the same in the lanes of vectors
newton_steps    steps of contact/step.py, as runs and rollouts take them
linear_steps    these and their derivatives
step_numbers    the numbers of a program as that step takes them
newton_measures measures of the user's own in those steps
newton_page     that step and the look of a state for a page, which has no Python
page_step       the same of the other integrators
"""
