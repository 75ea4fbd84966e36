"""Many files judged at once: ``robokit check``.

folders  which files are robots
files    what was found in each
lines    the findings for a terminal
"""
