"""Sweeps: many runs with other starts, masses, friction and robots, each of which can be made again.

A run is its recipe: row k of a sweep follows from the recipe and k alone, to the last bit.

    api             rk.sweep, and the sweep that it gives: its table, and each of its motions again
    distributions   what a parameter may be, a number or a distribution; random numbers by row
    parameters      the table of parameters, their values in each row, and the inputs that they become
    recipe          all that the rows of a sweep follow from, from its arguments to what a row comes to
    robot_record    a robot as a recipe keeps it, in JSON; its meshes and pictures, for pages
    workers         computes what is missing: in this process, on processes of this machine, or on a cluster
    folder          the folder: the recipe, and the chunks, computed, written, each byte checked
    table           rows as columns of NumPy, as a Parquet file, and as a hash of their values
    report          the report: one HTML file that runs each row again
"""

from robokit.sweeps.api import Sweep, open_sweep, sweep
from robokit.sweeps.distributions import Choice, Grid, Normal, Sobol, Uniform
from robokit.sweeps.parameters import sweep_parameters
from robokit.sweeps.recipe import Recipe

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
