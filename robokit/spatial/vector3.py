"""Vectors of three scalars and rotation matrices: the letters omega, v, r, h and E are made of these."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from robokit.spatial.scalars import Scalar, where


class Vector3:
    """Three scalars. Immutable; ``+ - *`` act as on paper, ``cross`` and ``dot`` by name."""

    __slots__ = ("x", "y", "z")

    def __init__(self, x: Scalar, y: Scalar, z: Scalar) -> None:
        self.x, self.y, self.z = x, y, z

    @staticmethod
    def zero() -> Vector3:
        """The null vector."""
        return Vector3(0.0, 0.0, 0.0)

    def __iter__(self) -> Iterator[Scalar]:
        yield self.x
        yield self.y
        yield self.z

    def __repr__(self) -> str:
        return f"({self.x}, {self.y}, {self.z})"

    def __add__(self, other: Vector3) -> Vector3:
        return Vector3(self.x + other.x, self.y + other.y, self.z + other.z)

    def __sub__(self, other: Vector3) -> Vector3:
        return Vector3(self.x - other.x, self.y - other.y, self.z - other.z)

    def __neg__(self) -> Vector3:
        return Vector3(-self.x, -self.y, -self.z)

    def __mul__(self, s: Scalar) -> Vector3:
        return Vector3(self.x * s, self.y * s, self.z * s)

    __rmul__ = __mul__

    def dot(self, other: Vector3) -> Scalar:
        """self . other."""
        return self.x * other.x + self.y * other.y + self.z * other.z

    def cross(self, other: Vector3) -> Vector3:
        """self x other."""
        return Vector3(
            self.y * other.z - self.z * other.y,
            self.z * other.x - self.x * other.z,
            self.x * other.y - self.y * other.x,
        )


def chosen(condition: Scalar, a: Vector3, b: Vector3) -> Vector3:
    """a where the condition holds, else b."""
    return Vector3(*(where(condition, s, t) for s, t in zip(a, b, strict=True)))


class Matrix3:
    """3 x 3 matrix of scalars, row by row; rotations E are of this type."""

    __slots__ = ("rows",)

    def __init__(self, rows: Iterable[Iterable[Scalar]]) -> None:
        a, b, c = rows
        self.rows = (tuple(a), tuple(b), tuple(c))

    @staticmethod
    def identity() -> Matrix3:
        """The unit matrix."""
        return Matrix3(((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)))

    @staticmethod
    def zero() -> Matrix3:
        """The null matrix."""
        return Matrix3(((0.0,) * 3,) * 3)

    @staticmethod
    def skew(r: Vector3) -> Matrix3:
        """r x as a matrix."""
        return Matrix3(((0.0, -r.z, r.y), (r.z, 0.0, -r.x), (-r.y, r.x, 0.0)))

    def __getitem__(self, index: tuple[int, int]) -> Scalar:
        return self.rows[index[0]][index[1]]

    @property
    def T(self) -> Matrix3:
        """Transpose."""
        return Matrix3(zip(*self.rows, strict=True))

    def __add__(self, other: Matrix3) -> Matrix3:
        return Matrix3(
            [[x + y for x, y in zip(a, b, strict=True)] for a, b in zip(self.rows, other.rows, strict=True)]
        )

    def __sub__(self, other: Matrix3) -> Matrix3:
        return Matrix3(
            [[x - y for x, y in zip(a, b, strict=True)] for a, b in zip(self.rows, other.rows, strict=True)]
        )

    def __mul__(self, s: Scalar) -> Matrix3:
        return Matrix3([[x * s for x in row] for row in self.rows])

    __rmul__ = __mul__

    def __matmul__(self, other):
        """Matrix times vector or matrix."""
        if isinstance(other, Vector3):
            return Vector3(*(a * other.x + b * other.y + c * other.z for a, b, c in self.rows))
        columns = tuple(zip(*other.rows, strict=True))
        return Matrix3([[a * d + b * e + c * f for d, e, f in columns] for a, b, c in self.rows])

    def transpose_apply(self, v: Vector3) -> Vector3:
        """E^T v without building E^T."""
        (a, b, c), (d, e, f), (g, h, i) = self.rows
        return Vector3(a * v.x + d * v.y + g * v.z, b * v.x + e * v.y + h * v.z, c * v.x + f * v.y + i * v.z)


class Symmetric3:
    """Symmetric 3 x 3 matrix: six scalars xx, yy, zz, xy, xz, yz."""

    __slots__ = ("xx", "xy", "xz", "yy", "yz", "zz")

    def __init__(self, xx: Scalar, yy: Scalar, zz: Scalar, xy: Scalar, xz: Scalar, yz: Scalar) -> None:
        self.xx, self.yy, self.zz, self.xy, self.xz, self.yz = xx, yy, zz, xy, xz, yz

    @staticmethod
    def zero() -> Symmetric3:
        """The null matrix."""
        return Symmetric3(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)

    @staticmethod
    def diagonal(a: Scalar) -> Symmetric3:
        """The unit matrix, a times."""
        return Symmetric3(a, a, a, 0.0, 0.0, 0.0)

    @staticmethod
    def upper(m: Matrix3) -> Symmetric3:
        """Upper triangle of a matrix that is known to be symmetric."""
        return Symmetric3(m[0, 0], m[1, 1], m[2, 2], m[0, 1], m[0, 2], m[1, 2])

    def full(self) -> Matrix3:
        """All nine entries."""
        return Matrix3(
            ((self.xx, self.xy, self.xz), (self.xy, self.yy, self.yz), (self.xz, self.yz, self.zz))
        )

    def __iter__(self) -> Iterator[Scalar]:
        yield from (self.xx, self.yy, self.zz, self.xy, self.xz, self.yz)

    def __add__(self, other: Symmetric3) -> Symmetric3:
        return Symmetric3(
            self.xx + other.xx,
            self.yy + other.yy,
            self.zz + other.zz,
            self.xy + other.xy,
            self.xz + other.xz,
            self.yz + other.yz,
        )

    def __sub__(self, other: Symmetric3) -> Symmetric3:
        return Symmetric3(*(a - b for a, b in zip(self, other, strict=True)))

    def __matmul__(self, v: Vector3) -> Vector3:
        """Matrix times vector."""
        return Vector3(
            self.xx * v.x + self.xy * v.y + self.xz * v.z,
            self.xy * v.x + self.yy * v.y + self.yz * v.z,
            self.xz * v.x + self.yz * v.y + self.zz * v.z,
        )

    def rotated(self, E: Matrix3) -> Symmetric3:
        """E^T A E, six entries of it, where E is a rotation."""
        for k in range(3):
            if _is(E[k, k], 1.0) and all(_is(E[k, j], 0.0) and _is(E[j, k], 0.0) for j in range(3) if j != k):
                return self._turned(E, k)
        (a, b, c), (d, e, f), (g, h, i) = E.rows
        # T = A E, column by column; then the upper triangle of E^T T.
        t0 = self @ Vector3(a, d, g)
        t1 = self @ Vector3(b, e, h)
        t2 = self @ Vector3(c, f, i)
        return Symmetric3(
            a * t0.x + d * t0.y + g * t0.z,
            b * t1.x + e * t1.y + h * t1.z,
            c * t2.x + f * t2.y + i * t2.z,
            a * t1.x + d * t1.y + g * t1.z,
            a * t2.x + d * t2.y + g * t2.z,
            b * t2.x + e * t2.y + h * t2.z,
        )

    def _turned(self, E: Matrix3, k: int) -> Symmetric3:
        """E A E^T for a rotation E about coordinate axis k, at half the products: two of the rows mix."""
        i, j = (k + 1) % 3, (k + 2) % 3
        A, c, s = self.full(), E[i, i], E[i, j]
        if _is(c, 1.0) and _is(s, 0.0):  # the cosine of a hundred-millionth of a turn is 1 too
            return self
        a, b, d = A[i, i], A[j, j], A[i, j]
        w = s * (b - a) - 2.0 * c * d
        entries = {
            (i, i): a + s * w,
            (j, j): b - s * w,
            (k, k): A[k, k],
            (i, j): -(c * w) - d,
            (i, k): c * A[i, k] - s * A[j, k],
            (j, k): s * A[i, k] + c * A[j, k],
        }
        entries |= {(n, m): value for (m, n), value in entries.items()}
        return Symmetric3(*(entries[place] for place in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))))


def _is(x: Scalar, number: float) -> bool:
    """Whether a scalar is a constant of this value, whatever the configuration."""
    return isinstance(x, (int, float)) and x == number
