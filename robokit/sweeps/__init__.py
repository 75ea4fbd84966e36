"""Sweeps: many runs with other starts, masses, friction and robots, each of which can be made again.

A run is its recipe: row k of a sweep follows from the recipe and k alone, to the last bit.

    sweep_function  rk.sweep
    sweep_folder    a sweep that was computed: its table, and each of its motions again
    recipes         all that the rows of a sweep follow from, and what a row comes to
    draws           distributions, random streams, parameters
    rows            what a row starts from and what is its own
    running         computes the chunks on processes or a cluster, and keeps them
    reporting       the report: one HTML file that runs each row again
"""

from robokit.sweeps.draws.distributions import Choice, Grid, Normal, Sobol, Uniform
from robokit.sweeps.draws.parameter_table import sweep_parameters
from robokit.sweeps.recipes.recipe import Recipe
from robokit.sweeps.sweep_folder import Sweep, open_sweep
from robokit.sweeps.sweep_function import sweep

__all__ = [
    "Choice",
    "Grid",
    "Normal",
    "Recipe",
    "Sobol",
    "Sweep",
    "Uniform",
    "open_sweep",
    "sweep",
    "sweep_parameters",
]
