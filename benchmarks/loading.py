"""Loading URDF files without their meshes, beside yourdfpy and Pinocchio.

python benchmarks/loading.py              G1, Talos, iCub and PR2 of example-robot-data
python benchmarks/loading.py g1 panda

What each one does in its time: yourdfpy parses the elements into objects. Pinocchio (C++) parses the file and
builds its model; it takes what it cannot read as zero. robokit parses, judges every element (a look on the
disk for each mesh file is part of it), numbers the tree and builds the robot. All three stay in the calling
thread, whose own time is counted: other processes on the machine matter little.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from importlib.util import find_spec

from measure import commit, machine, minima, one_core, prepare_to_measure

import robokit as rk

ROBOTS = ("g1", "talos", "icub", "pr2")
PEERS = {"yourdfpy": "yourdfpy", "pinocchio": "Pinocchio"}  # module -> name


def loaders(path: str) -> dict[str, Callable[[], object]]:
    """How robokit and those that are installed read the file."""
    found: dict[str, Callable[[], object]] = {"robokit": lambda: rk.load_urdf(path)}
    if find_spec("yourdfpy"):
        import yourdfpy

        parts = ("build_scene_graph", "load_meshes", "build_collision_scene_graph", "load_collision_meshes")
        without = dict.fromkeys(parts, False)
        found["yourdfpy"] = lambda: yourdfpy.URDF.load(path, **without)
    if find_spec("pinocchio"):
        import pinocchio

        found["pinocchio"] = lambda: pinocchio.buildModelFromUrdf(path)
    return found


def measure(names: tuple[str, ...] = ROBOTS, seconds: float = 3.0) -> dict[str, dict[str, float]]:
    """Times of each robot [s], printed as a table: least of interleaved repeats."""
    print(f"  {'':<8}{'links':>6}{'robokit':>11}" + "".join(f"{PEERS[p]:>11}{'ratio':>7}" for p in PEERS))
    results = {}
    for name in names:
        path = str(rk.find_robot(f"example-robot-data:{name}"))
        best = minima(loaders(path), seconds, time.thread_time)
        results[name] = best
        cells = "".join(
            f"{1e3 * best[p]:8.2f} ms{best['robokit'] / best[p]:7.2f}" if p in best else f"{'-':>11}{'':>7}"
            for p in PEERS
        )
        print(f"  {name:<8}{len(rk.load_urdf(path).links):>6}{1e3 * best['robokit']:8.2f} ms{cells}")
    print("  ratio: robokit's time over the other's")
    return results


def main() -> None:
    """Parse and measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("robot", nargs="*", default=ROBOTS, help="of example-robot-data")
    parser.add_argument("--seconds", type=float, default=3.0, help="measuring time a robot")
    arguments = parser.parse_args()
    print(f"{machine()}\ncommit {commit()}")
    with one_core():
        measure(tuple(arguments.robot), arguments.seconds)


if __name__ == "__main__":
    prepare_to_measure()
    main()
