"""What rollouts measure in every step, without keeping the states: ``rk.rollout(..., measures=[...])``.

The measures that robokit knows are in contact/measures.py, one class each.

own_measure    Measure: a function of the user's and how to reduce it over the steps
state_kernels  numbers of single states, by a kernel
run_ends       energy, momentum and heights of the states at the start and at the end
readings       what is known of the rows at the end, from which measures make their columns
chosen         the measures of a rollout: what its steps must keep, and its columns in the end
"""

from robokit.contact.measures import DEFAULT, Column, Monitor, column_of, measures
from robokit.sim.measuring.chosen import ChosenMeasures
from robokit.sim.measuring.own_measure import Measure

__all__ = ["DEFAULT", "ChosenMeasures", "Column", "Measure", "Monitor", "column_of", "measures"]
