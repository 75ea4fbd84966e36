"""What rollouts measure in every step, without keeping the states: ``rk.rollout(..., measures=[...])``.

The measures that robokit knows are in contact/measures.py, one class each.

own_measure   Measure: a function of the user's and how to reduce it over the steps
run_ends      numbers of single states, by a kernel: energy, momentum, heights
row_measures  the measures of a rollout: what its steps must keep, and its columns in the end
"""

from robokit.contact.measures import DEFAULT, Column, Monitor, column_of, measures
from robokit.sim.measuring.own_measure import Measure
from robokit.sim.measuring.row_measures import ChosenMeasures

__all__ = ["DEFAULT", "ChosenMeasures", "Column", "Measure", "Monitor", "column_of", "measures"]
