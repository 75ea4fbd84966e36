"""Sweeps: many runs with other starts, masses, friction and robots, each of which can be made again.

A run is its recipe: row k of a sweep follows from the recipe and k alone, to the last bit.

    api             rk.sweep, and the sweep that it gives: its table, and each of its motions again
    distributions   what a parameter may be, a number or a distribution; random numbers by row
    parameters      the table of parameters, and their values in each row
    recipe          all that the rows of a sweep follow from, and what a row comes to
    make_recipe     from the arguments of a sweep to its recipe
    robot_record    a robot as a recipe keeps it, in JSON; its meshes and pictures, for pages
    user_measures   measures of the user's own
    row_inputs      starts, masses, ground, pushes and actuators of rows
    run_sweep       computes what is missing of a sweep, and keeps it
    workers         computes chunks: in this process, on processes of this machine, or on a cluster
    chunks          the chunks of a sweep's folder: computed, written, each byte checked
    table           rows as columns of NumPy, as a Parquet file, and as a hash of their values
    folder          the folder, and the file with the recipe and the size of the chunks
    report          the report: one HTML file that runs each row again
    report_rows     which rows it holds, and what the page needs to run them again
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
