"""Runs a sweep on processes or a cluster, and keeps each chunk once, whole or not at all.

run_sweep       computes what is missing of a sweep, and keeps it
chunk_queue     the chunks that are still to be computed
sent_recipe     the recipe's text on its way to the workers
chunk_task      what a worker does with one of them
chunk_files     the files of a sweep's folder: written once, whole or not at all
chunk_content   a chunk as a Parquet file, and the hash of its content
arithmetic      whether rows come out here as they are there
sweep_json      the file with the recipe and the size of the chunks
clusters        processes of this machine, or a Dask cluster that is there
quiet_dask      Dask, imported where it is used, and kept quiet
command_watch   ends these processes when the command has ended
sweep_progress  rows, rows a second, failures, time left
"""
