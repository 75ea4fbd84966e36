"""robokit beside Pinocchio, MuJoCo and Drake: masses, H, C, tau, qdd, A_G and poses of one URDF.

Each installed engine reads the file itself. The adapters of robokit.interop convert its answers into
robokit's order. Known differences between the engines are listed below the figures.

    comparison        one robot, or many, compared with every installed engine; tables of the errors
    referee           two descriptions of one robot: what differs, and why; their dynamics at random states
    verdict           findings, every cause that is known, and the verdict as text and for JSON
    matching          which body is which, and where each link of A is in B
    inertials         masses and inertias: what readers make of them when they go wrong
    bodies            bodies and joints compared: masses, shapes, merged links, axes, limits, mimic laws
"""

from robokit.parity.comparison import (
    ENGINES,
    QUANTITIES,
    TOLERANCE,
    Comparison,
    FileComparison,
    compare,
    compare_files,
    files_table,
    installed,
    no_engine,
    plain_text,
    relative_error,
    table,
)
from robokit.parity.referee import referee
from robokit.parity.verdict import CAUSES, Dynamics, Finding, Verdict

__all__ = [
    "CAUSES",
    "ENGINES",
    "QUANTITIES",
    "TOLERANCE",
    "Comparison",
    "Dynamics",
    "FileComparison",
    "Finding",
    "Verdict",
    "compare",
    "compare_files",
    "files_table",
    "installed",
    "no_engine",
    "plain_text",
    "referee",
    "relative_error",
    "table",
]
