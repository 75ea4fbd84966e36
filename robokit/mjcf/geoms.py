"""Visual and collision shapes as geoms; mesh files as assets, one for each pair of file and scale."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree as ET

from robokit.mjcf.attributes import numbers, pose
from robokit.model.geometry import Box, Capsule, Cylinder, Mesh, Placement, Shape, Sphere

MESHES = (".stl", ".obj", ".msh")

STL_HEADER, STL_FACE, STL_FACES = 84, 50, 200_000
"""Binary STL: bytes before the faces, bytes of a face; the largest number of faces that MuJoCo reads."""

OPTIONS = {
    "visual": {"group": "2", "contype": "0", "conaffinity": "0"},
    "collision": {"group": "3"},
}


class Shapes:
    """Writes shapes, and collects the ones that are left out by reason.

    Args:
        assets: the element that mesh assets are added to.
        meshes: whether shapes that are meshes are written.
    """

    def __init__(self, assets: ET.Element, meshes: bool) -> None:
        self.assets, self._meshes = assets, meshes
        self._asset: dict[tuple[str, tuple[float, ...]], str] = {}
        self._taken: set[str] = set()
        self._left: dict[tuple[str, str], list[str]] = {}
        self._unreadable: dict[Path, str] = {}

    def add(
        self, body: ET.Element, what: str, link: str, placement: Placement, shapes: Sequence[Shape]
    ) -> None:
        """Add geoms for a link's shapes; ``what`` is "visual" or "collision"."""
        for k, shape in enumerate(shapes):
            found = self._geometry(what, f"{link}/{k}", shape)
            if found is None:
                continue
            if what == "visual" and shape.rgba is not None:
                found["rgba"] = numbers(shape.rgba)
            ET.SubElement(body, "geom", {**found, **OPTIONS[what], **pose(placement @ shape.placement)})

    def left_out(self) -> list[str]:
        """One line for each reason why shapes were left out."""
        lines = []
        for (what, why), names in self._left.items():
            shown = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
            lines.append(f"{len(names)} {what}{'s' if len(names) > 1 else ''} left out, {why}: {shown}")
        return lines

    def _geometry(self, what: str, name: str, shape: Shape) -> dict[str, str] | None:
        geometry = shape.geometry
        if isinstance(geometry, Mesh):
            return self._mesh(what, geometry) if self._meshes else None
        sizes: tuple[float, ...]
        if isinstance(geometry, Box):
            kind, sizes = "box", tuple(x / 2.0 for x in geometry.size)
        elif isinstance(geometry, Sphere):
            kind, sizes = "sphere", (geometry.radius,)
        else:
            assert isinstance(geometry, Cylinder | Capsule)
            kind = "capsule" if isinstance(geometry, Capsule) else "cylinder"
            sizes = (geometry.radius, geometry.length / 2.0)
        if min(sizes) <= 0.0:
            self._left.setdefault((what, "of no size"), []).append(f"{name!r} ({kind} {numbers(sizes)})")
            return None
        return {"type": kind, "size": numbers(sizes)}

    def _mesh(self, what: str, mesh: Mesh) -> dict[str, str] | None:
        if mesh.path is None:
            why = "whose mesh was not found"
        else:
            path = Path(mesh.path).resolve()
            if path not in self._unreadable:
                self._unreadable[path] = _unreadable(path)
            why = self._unreadable[path]
        if why:
            self._left.setdefault((what, why), []).append(repr(mesh.filename))
            return None
        key = str(path), tuple(mesh.scale)
        if key not in self._asset:
            free = path.stem
            while free in self._taken:
                free += "_"
            self._taken.add(free)
            self._asset[key] = free
            # "shell": thin and open meshes have no volume that MuJoCo could compute an inertia from.
            options = {"name": free, "file": key[0], "scale": numbers(mesh.scale), "inertia": "shell"}
            ET.SubElement(self.assets, "mesh", options)
        return {"type": "mesh", "mesh": self._asset[key]}


def _unreadable(path: Path) -> str:
    """Why MuJoCo cannot read a mesh file; "" if it can."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return "whose path is not UTF-8, as XML must be"
    if path.suffix.lower() not in MESHES:
        return f"whose mesh is none of {', '.join(MESHES)}"
    if path.suffix.lower() != ".stl":
        return ""
    with path.open("rb") as file:
        head = file.read(STL_HEADER)
    faces = int.from_bytes(head[STL_HEADER - 4 :], "little")
    if path.stat().st_size != STL_HEADER + STL_FACE * faces:
        return "whose STL is written as text or incomplete; MuJoCo reads binary STL"
    return "" if 1 <= faces <= STL_FACES else f"whose STL has not 1 to {STL_FACES} faces"
