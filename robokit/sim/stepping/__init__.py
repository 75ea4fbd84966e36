"""How steps are taken: the default step, the first one, those with contact, those of a page.

default_step    the time step where none is given
energies        energies and momenta of states, and what the first step of a run is handed of them
steppers        one state through time: what runs take their steps with
contact_rows    many rows through many of these steps, on several threads
contact_card    the same on a card: a row a thread
linear_steps    these and their derivatives
step_numbers    the numbers of a program as that step takes them
contact_page    that step and the look of a state for a page, which has no Python
page_step       the same of passive motion
"""
