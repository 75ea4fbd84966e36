"""Shows, hulls and measures every mesh of a folder, and prints what the process tried to start meanwhile.

Run in a process of its own: an audit hook stays for good.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

STARTS = (
    "subprocess.",
    "os.exec",
    "os.posix_spawn",
    "os.spawn",
    "os.fork",
    "os.system",
    "pty.",
    "socket.connect",
)
started: list[str] = []
sys.addaudithook(lambda event, args: started.append(event) if event.startswith(STARTS) else None)


def main(folder: Path) -> None:
    """Open all files of a folder in every way that robokit has."""
    import numpy as np

    from robokit.meshes.hull import hull_corners
    from robokit.model import Box, Mesh, ModelBuilder, Shape
    from robokit.viewer.payload import pose_payload

    warnings.simplefilter("ignore")
    for path in sorted(folder.iterdir()):
        picture = path.suffix in (".png", ".jpg", ".tga")
        shape = Shape(Box((1.0,) * 3), texture=str(path)) if picture else Shape(Mesh(path.name, path=path))
        builder = ModelBuilder("hostile").link("l", 1.0, (0, 0, 0), np.eye(3), visuals=(shape,))
        pose_payload(builder.build())
        if not picture:
            try:
                hull_corners(shape.geometry)
            except Exception as problem:  # most cannot be read; what counts is what they try
                print(f"{path.name}: {problem}")
    print("started:", *sorted(set(started)))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
