"""Sweeps: many runs with other starts, masses, friction and robots, each of which can be made again.

A run is its recipe: row k of a sweep follows from the recipe and k alone, to the last bit.

    sweep_function    rk.sweep
    sweep_folder      a sweep that was computed: its table, and each of its motions again
    recipe            all that the rows of a sweep follow from, and what a row comes to
    recipe_fields     what a recipe holds; JSON both ways
    make_recipe       from the arguments of a sweep to its recipe
    distributions     what a parameter may be: Uniform, Normal, Choice, Grid, Sobol
    distribution_base  what these share
    distribution_text  distributions as text, for the command line
    parameter_table   the parameters: names, units, what they mean
    row_parameters    what each row draws, or what its number decides
    random_streams    random numbers by row: the same in every chunk
    normal_quantile   normal variables, to the bit on every machine
    row_starts        the states in which rows start
    row_robots        their masses, ground and pushes, as inputs of the step
    chunk_rows        the runs of a chunk's rows, and their table
    own_measures      measures of the user's own in a recipe
    robot_record      a robot as a recipe keeps it
    stored_points     its contact points in JSON
    stored_pairs      its pairs of bodies that are kept apart
    stored_numbers    arrays in JSON
    state_hash        a number for the last state of a row: equal bits, equal numbers
    run_sweep         computes what is missing of a sweep, and keeps it
    chunk_queue       the chunks that are still to be computed
    chunk_task        what a worker does with one of them
    chunk_files       the files of a sweep's folder: written once, whole or not at all
    chunk_content     a chunk as a Parquet file, and the hash of its content
    sweep_json        the file with the recipe and the size of the chunks
    clusters          processes of this machine, or a Dask cluster that is there
    quiet_dask        Dask, imported where it is used, and kept quiet
    command_watch     ends these processes when the command has ended
    sweep_progress    rows, rows a second, failures, time left
    report_page       the report of a sweep: one HTML file that runs each row again
    report            the report of a sweep, from its table and its recipe
    recipe_words      the recipe in words
    held_rows         which rows it holds
    column_data       parameters and measures as it gets them
    row_inputs        what rows hand to the step, packed
    rerun_data        what the page needs to run the rows of a robot again
"""

from robokit.sweeps.distributions import Choice, Grid, Normal, Sobol, Uniform
from robokit.sweeps.parameter_table import sweep_parameters
from robokit.sweeps.recipe import Recipe
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
