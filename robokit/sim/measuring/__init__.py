"""What rollouts measure in every step, without keeping the states: ``rk.rollout(..., measures=[...])``.

measure_table  rk.measures: the measures by name, with the names, units and meaning of their numbers
own_measure    Measure: a function of the user's and how to reduce it over the steps
state_kernels  numbers of single states, by a kernel
run_ends       energy, momentum and heights of the states at the start and at the end
readings       from the numbers that the steps have kept to the columns of the table
chosen         the measures of a rollout: what its steps must keep, and its columns in the end
"""

from robokit.sim.measuring.chosen import ChosenMeasures
from robokit.sim.measuring.measure_table import DEFAULT, BuiltIn, Column, column_of, measures
from robokit.sim.measuring.own_measure import Measure

__all__ = ["DEFAULT", "BuiltIn", "ChosenMeasures", "Column", "Measure", "column_of", "measures"]
