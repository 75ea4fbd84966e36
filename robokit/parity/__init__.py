"""robokit beside Pinocchio, MuJoCo and Drake: masses, H, C, tau, qdd, A_G and poses of one URDF.

Each installed engine reads the file itself. The adapters of robokit.interop convert its answers into
robokit's order. Known differences between the engines are listed below the figures.

    compare           one robot compared with every installed engine
    many_robots       many robots, one after the other
    tables            comparisons as lines of text
    engines           the engines by name
    with_pinocchio    asks Pinocchio
    with_mujoco       asks MuJoCo
    with_drake        asks Drake
    reading           the XML that the engines are given
    state             what every engine is asked, and how links are named there
    foreign           other programs at work in a child with bounded time and memory
    foreign_child     what that child does
    peer_faults       faults of other programs, with their versions
    notes             known differences between the engines
    referee           two descriptions of one robot: what differs, and why
    verdict_text      its verdict in lines and for JSON

    sides/            URDF, MJCF, SDF and USD in one form
    causes/           what makes descriptions differ, and how it is recognised
"""

from robokit.parity.causes.catalogue import CAUSES
from robokit.parity.causes.finding import Dynamics, Finding, Verdict
from robokit.parity.compare import QUANTITIES, TOLERANCE, Comparison, compare, installed, relative_error
from robokit.parity.engines import ENGINES
from robokit.parity.many_robots import FileComparison, compare_files
from robokit.parity.reading import plain_text
from robokit.parity.referee import referee
from robokit.parity.tables import files_table, no_engine, table

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
