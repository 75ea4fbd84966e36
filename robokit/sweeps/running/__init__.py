"""Runs a sweep on processes or a cluster, and keeps each chunk once, whole or not at all.

run_sweep       computes what is missing of a sweep, and keeps it
chunk_queue     the chunks that are still to be computed
sent_recipe     the recipe's text on its way to the workers
chunk_task      what a worker does with one of them
folder_files    files that are written whole or not at all, and read only where they are files
chunk_files     the chunks of a sweep's folder: each byte checked, and whether they belong to it
chunk_content   a chunk as a Parquet file, the hash of its content and of all its bytes
arithmetic      whether rows come out here as they are there
sweep_json      the file with the recipe and the size of the chunks
clusters        processes of this machine, or a Dask cluster that is there
quiet_dask      Dask, imported where it is used, and kept quiet
command_watch   ends these processes when the command has ended
sweep_progress  rows, rows a second, failures, time left
"""
