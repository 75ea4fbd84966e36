"""Sweeps: many runs with other starts, masses, friction and robots, each of which can be made again.

A run is its recipe: row k of a sweep follows from the recipe and k alone, to the last bit.

    state_hash        a number for the last state of a row: equal bits, equal numbers
    run_sweep         computes what is missing of a sweep, and keeps it
    chunk_queue       the chunks that are still to be computed
    chunk_task        what a worker does with one of them
    chunk_files       the files of a sweep's folder: written once, whole or not at all
    chunk_content     a chunk as a Parquet file, and the hash of its content
    sweep_json        the file with the recipe and the size of the chunks
    clusters          processes of this machine, or a Dask cluster that is there
    command_watch     ends these processes when the command has ended
    sweep_progress    rows, rows a second, failures, time left
"""
