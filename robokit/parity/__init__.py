"""A URDF in every engine that is installed, side by side: masses, H, C, tau, qdd, A_G, poses.

Each engine reads the file itself; its answers come back in robokit's order through the adapters of
robokit.interop. What the engines are known to read differently is said beside the figures.
"""

from robokit.parity.compare import QUANTITIES, TOLERANCE, Comparison, compare, installed, relative_error
from robokit.parity.engines import ENGINES
from robokit.parity.many_robots import FileComparison, compare_files
from robokit.parity.reading import plain_text
from robokit.parity.tables import files_table, no_engine, table

__all__ = [
    "ENGINES",
    "QUANTITIES",
    "TOLERANCE",
    "Comparison",
    "FileComparison",
    "compare",
    "compare_files",
    "files_table",
    "installed",
    "no_engine",
    "plain_text",
    "relative_error",
    "table",
]
