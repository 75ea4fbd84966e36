"""What a reader of meshes returns: triangles with colours and a picture; fewer of them, for display."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from robokit import disk_cache as cache
from robokit.dataclass_tools import frozen
from robokit.meshes.untrusted import scaled
from robokit.model.geometry import RGBA

# ==== A piece of a mesh file: triangles with their colours and a picture ==========================

Picture = Path | bytes  # path of an image file, or the content of one stored inside a mesh file


@frozen
class Surface:
    """A piece of a mesh file."""

    vertices: np.ndarray  # (n, 3) [m]
    faces: np.ndarray  # (m, 3) numbers of vertices
    rgba: RGBA | None = None  # the one colour that the file gives it, or None
    colours: np.ndarray | None = None  # (n, 3) colour of each vertex, 0..255, or None
    # (m, 3, 2) place of each face's corners in the picture, from its lower left to (1, 1), or None
    uv: np.ndarray | None = None
    picture: Picture | None = None  # the picture that covers it, or None
    missing: str = ""  # name of the picture that should cover it and was not found, or ""

    def transform(self, matrix: np.ndarray) -> Surface:
        """The same surface elsewhere, by a matrix (4, 4); where that mirrors, the winding is turned round."""
        faces, uv = self.faces, self.uv
        with np.errstate(all="ignore"):  # what is not finite is refused afterwards
            vertices = self.vertices @ matrix[:3, :3].T + matrix[:3, 3]
            mirrored = np.linalg.det(matrix[:3, :3]) < 0
        if mirrored:
            faces, uv = faces[:, ::-1], None if uv is None else uv[:, ::-1]
        return replace(self, vertices=vertices, faces=faces, uv=uv)


def revolve(outline: np.ndarray, around: int) -> tuple[np.ndarray, np.ndarray]:
    """Points (k around, 3) and faces, wound outward, of a surface of revolution about z.

    The outline (distance from z, height), (k, 2), goes upwards; each of its points makes a ring of so many.
    """
    turn = 2.0 * np.pi * np.arange(around) / around
    r, z = outline.T
    points = np.stack(
        [np.outer(r, np.cos(turn)), np.outer(r, np.sin(turn)), np.outer(z, turn >= 0.0)], axis=-1
    )
    ring, k = (x.ravel() for x in np.indices((len(outline) - 1, around)))
    first, beside = ring * around + k, ring * around + (k + 1) % around
    lower = np.stack([first, beside, beside + around], axis=1)[r[ring] > 0.0]
    upper = np.stack([first, beside + around, first + around], axis=1)[r[ring + 1] > 0.0]
    return points.reshape(-1, 3), np.concatenate([lower, upper])


def compose(outer: np.ndarray, inner: np.ndarray) -> np.ndarray:
    """The product of two transforms of a scene, (4, 4) each; ValueError if it is not finite."""
    with np.errstate(all="ignore"):
        total = outer @ inner
    if not np.isfinite(total).all():
        raise ValueError("a transform of the scene is not finite")
    return total


def used_vertices(faces: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The numbers (k,) of vertices that faces (m, 3) use, and the faces by their places among these.

    Lists of triangles often share a whole file's vertices, ``count`` of them: ValueError for a face that
    names another.
    """
    if len(faces) and not 0 <= faces.min() <= faces.max() < count:
        wrong = faces.max() if faces.max() >= count else faces.min()
        raise ValueError(f"a face names vertex {wrong} of {count}")
    used, renumbered = np.unique(faces, return_inverse=True)
    return used, renumbered.reshape(faces.shape)


# ==== mesh simplification for display: fewer triangles, scaled, mirrored where the scale is negative ====

SAME_PIECE = 0.05  # two estimates of a corner's place in a picture this near mean the same piece of it


def simplified_surfaces(
    surfaces: Sequence[Surface], scale: tuple[float, float, float], max_triangles: int
) -> tuple[list[Surface], tuple[str, ...]]:
    """The surfaces of a mesh file as they are displayed, at least one; and the names of pictures not found.

    An odd number of negative factors along x, y, z turns the winding round. The whole file is simplified to
    about ``max_triangles``. Raises ValueError for a file without triangles.
    """
    parts = [part for part in surfaces if len(part.faces)]
    total = sum(len(part.faces) for part in parts)
    if not total:
        raise ValueError("the file holds no triangles")
    result = []
    for part in parts:
        budget = max(24, int(max_triangles * len(part.faces) / total))
        shown = simplify_surface(part, budget) if len(part.faces) > budget else part
        faces, uv = np.ascontiguousarray(shown.faces, dtype=np.int64), shown.uv
        if np.prod(np.sign(scale)) < 0:
            faces, uv = faces[:, ::-1], None if uv is None else uv[:, ::-1]
        if len(faces):
            result.append(replace(shown, vertices=scaled(shown.vertices, scale), faces=faces, uv=uv))
    if not result:
        raise ValueError("nothing is left of the mesh after simplification")
    return result, tuple(sorted({part.missing for part in parts} - {""}))


def as_arrays(surfaces: Sequence[Surface], folder: Path) -> list[np.ndarray]:
    """Surfaces as arrays, for the disk; pictures beside the mesh file are named relative to its folder."""
    here = folder.resolve()
    pictures = list(dict.fromkeys(s.picture for s in surfaces if s.picture is not None))  # many may share one
    number = {picture: k for k, picture in enumerate(pictures)}
    found = [np.array([isinstance(each, Path) for each in pictures], bool)]
    for each in pictures:
        found.append(
            text_array(os.path.relpath(each, here))
            if isinstance(each, Path)
            else np.frombuffer(each, np.uint8)
        )
    for s in surfaces:
        looks = [np.asarray(() if part is None else part) for part in (s.rgba, s.colours, s.uv)]
        own = -1 if s.picture is None else number[s.picture]
        found += [s.vertices, s.faces, *looks, np.array(own)]
    return found


def of_arrays(arrays: Sequence[np.ndarray], folder: Path) -> list[Surface]:
    """The surfaces that :func:`as_arrays` gave the arrays of, of a file in this folder."""
    beside, *parts = arrays
    here = folder.resolve()
    pictures: list[Picture] = [
        Path(os.path.normpath(here / array_text(each))) if outside else each.tobytes()
        for outside, each in zip(beside, parts, strict=False)
    ]
    found = []
    for k in range(len(pictures), len(parts), 6):
        vertices, faces, *looks, own = parts[k : k + 6]
        rgba, colours, uv = (part if part.size else None for part in looks)
        colour = None if rgba is None else tuple(rgba.tolist())
        picture = None if own < 0 else pictures[int(own)]
        found.append(Surface(vertices, faces, colour, colours, uv, picture))
    return found


def text_array(text: str) -> np.ndarray:
    """Text as an array of bytes, for the disk; any text, names of files that are not UTF-8 too."""
    return np.frombuffer(text.encode(errors="surrogatepass"), np.uint8)


def array_text(array: np.ndarray) -> str:
    """The text that :func:`text_array` gave the array of."""
    return array.tobytes().decode(errors="surrogatepass")


def simplify_surface(surface: Surface, budget: int) -> Surface:
    """The same surface with about `budget` triangles; each looks as the nearest part of the old one."""
    import fast_simplification

    before = np.asarray(surface.vertices, dtype=np.float32), np.asarray(surface.faces, dtype=np.int32)
    points, triangles = cache.arrays(
        "simplified mesh",
        ("simplified", *(a.tobytes() for a in before), budget),
        lambda: fast_simplification.simplify(*before, target_count=budget),
    )
    vertices, faces = np.asarray(points, dtype=float), triangles
    colours, uv = None, None
    if len(faces) and (surface.colours is not None or surface.uv is not None):
        from scipy.spatial import KDTree

        if surface.colours is not None:
            colours = surface.colours[KDTree(surface.vertices).query(vertices)[1]]
        if surface.uv is not None:
            uv = _transfer_uv(surface.vertices[surface.faces], surface.uv, vertices[faces])
    return replace(surface, vertices=vertices, faces=faces, colours=colours, uv=uv)


def _transfer_uv(before: np.ndarray, uv: np.ndarray, corners: np.ndarray) -> np.ndarray:
    """Picture coordinates of new faces (m, 3, 3) from the corners and picture coordinates of those before.

    A picture is often cut into pieces that lie apart. A new face must not stretch over two of them, so all of
    its corners get a first estimate from the one old face nearest to its middle. The old face nearest to a
    corner gives a finer estimate of it, which counts where both agree on the piece.
    """
    from scipy.spatial import KDTree

    tree, points = KDTree(before.mean(axis=1)), corners.reshape(-1, 3)
    middle = corners.mean(axis=1, keepdims=True)
    at_face = np.repeat(tree.query(middle[:, 0])[1], 3)
    at_corner = tree.query((corners + 0.1 * (middle - corners)).reshape(-1, 3))[1]
    rough, fine = (_extrapolate_uv(before[k], uv[k], points) for k in (at_face, at_corner))
    same = np.abs(fine - rough).max(axis=1, keepdims=True) < SAME_PIECE
    return np.where(same, fine, rough).reshape(-1, 3, 2)


def _extrapolate_uv(triangles: np.ndarray, uv: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Picture coordinates of points (m, 3), each from those of one triangle, a little beyond its edges."""
    origin, first, second = (
        triangles[:, 0],
        triangles[:, 1] - triangles[:, 0],
        triangles[:, 2] - triangles[:, 0],
    )
    aa, ab, bb = (np.sum(x * y, axis=-1) for x, y in ((first, first), (first, second), (second, second)))
    pa, pb = (np.sum((points - origin) * x, axis=-1) for x in (first, second))
    along = np.stack([bb * pa - ab * pb, aa * pb - ab * pa]) / np.maximum(aa * bb - ab * ab, 1e-30)
    s, t = np.clip(along, -30.0, 31.0)[..., None]
    return uv[:, 0] + s * (uv[:, 1] - uv[:, 0]) + t * (uv[:, 2] - uv[:, 0])
