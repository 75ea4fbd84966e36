"""What a reader makes of <inertial> if it goes wrong in a known way: a list of candidates for B's inertia."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from robokit.parity.causes.rigid import NOTHING, Rigid, steiner
from robokit.urdf.description import InertialDescription

WATER = 1000.0
"""Density of Drake's ball, and default density of MuJoCo, PhysX and SDF [kg/m^3]."""


LENGTHS = (1000.0, 0.001, 100.0, 0.01, 0.0254, 1.0 / 0.0254, 0.3048, 1.0 / 0.3048)
"""Factors between metres and other units: mm, cm, inches, feet."""


class Candidate(NamedTuple):
    """A cause, the verdict, and the body that the cause makes, in the link's frame."""

    cause: str
    text: str
    body: Rigid


def matrix(six: tuple[float, ...]) -> np.ndarray:
    """The symmetric matrix of ixx, ixy, ixz, iyy, iyz, izz."""
    xx, xy, xz, yy, yz, zz = six
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def rotation(rpy: tuple[float, ...], order: str = "zyx") -> np.ndarray:
    """Product of the rotations about z, y, x in the order of the letters."""
    R = np.eye(3)
    for letter in order:
        k = "xyz".index(letter)
        c, s = math.cos(rpy[k]), math.sin(rpy[k])
        turn = np.eye(3)
        i, j = (k + 1) % 3, (k + 2) % 3
        turn[i, i], turn[i, j], turn[j, i], turn[j, j] = c, -s, s, c
        R = R @ turn
    return R


def candidates(own: InertialDescription) -> Iterator[Candidate]:
    """Everything that does not need B's numbers, the more usual causes first."""
    m, c, raw, R = own.mass, np.array(own.origin.xyz), matrix(own.inertia), own.origin.rotation()
    I, line = own.matrix(), own.origin.line

    def made(cause: str, text: str, com: np.ndarray, inertia: np.ndarray, mass: float = m) -> Candidate:
        return Candidate(cause, f"B's inertia is A's with {text}", Rigid(mass, com, inertia))

    where = f"the inertial rotation of line {line}"
    if own.origin.rotated:
        yield made("inertial-rotation-lost", f"{where} left out", c, raw)
        yield made("inertial-rotation-twice", f"{where} applied twice", c, R @ I @ R.T)
        yield made("inertial-rotation-inverted", f"{where} applied backwards", c, R.T @ raw @ R)
        half = R @ raw
        one = f"{where} applied from one side only (R I, not R I R^T)"
        yield made("inertial-rotation-one-sided", one, c, (half + half.T) / 2)
        yield made("inertial-rotation-one-sided", one, c, np.tril(half) + np.tril(half, -1).T)
        yield made("inertial-rotation-one-sided", one, c, np.triu(half) + np.triu(half, 1).T)
        for text, S in _other_rotations(own.origin.rpy):
            yield made("inertial-rotation-convention", f"{where} {text}", c, S @ raw @ S.T)
        yield made("inertial-origin-turned", f"the centre of mass turned by {where}", R @ c, I)
        yield made("inertial-origin-turned", f"the centre of mass turned back by {where}", R.T @ c, I)
    if c.any():
        place, zero = f"the inertial origin of line {line}", np.zeros(3)
        yield made("inertial-origin-lost", f"{place} left out", zero, I)
        if own.origin.rotated:
            yield made("inertial-pose-lost", f"the whole inertial origin of line {line} left out", zero, raw)
        yield made("inertial-origin-twice", f"{place} applied twice", 2.0 * c, I)
        yield made("inertial-origin-twice", f"{place} applied twice", c + R @ c, R @ I @ R.T)
        yield made("inertial-origin-inverted", f"{place} negated", -c, I)
        for k in LENGTHS:
            yield made("inertial-origin-units", f"{place} times {k:g}", k * c, I)
        moved = "moved from the centre of mass to the link's origin (parallel axes)"
        yield made("inertia-about-link-origin", f"its inertia {moved}", c, I + steiner(m, c))
        yield made("inertia-about-link-origin", f"its inertia {moved} and back again", c, I - steiner(m, c))
        yield made("inertia-about-link-origin", f"its inertia {moved}, twice", c, I + 2.0 * steiner(m, c))
        both = f"{place} left out, its inertia {moved}"
        yield made("inertia-about-link-origin", both, zero, I + steiner(m, c))
    yield from _products(own, m, c, I, R)
    for k, letter in enumerate("xyz"):
        mirror = np.eye(3)
        mirror[k, k] = -1.0
        yield made("inertial-mirrored", f"{letter} mirrored", mirror @ c, mirror @ I @ mirror)
        yield made("inertial-mirrored", f"{letter} of its centre of mass negated", mirror @ c, I)
    for S in _QUARTER_TURNS:
        yield made("inertial-axes", "x, y, z exchanged, as for y up", S @ c, S @ I @ S.T)
    yield from _replaced(m, c, I)


def _quarter_turns() -> list[np.ndarray]:
    """The rotations that take coordinate axes to coordinate axes, without the identity."""
    turns = []
    for order in itertools.permutations(range(3)):
        for signs in itertools.product((1.0, -1.0), repeat=3):
            S = np.eye(3)[list(order)] * np.array(signs)
            if np.linalg.det(S) > 0.0 and not np.array_equal(S, np.eye(3)):
                turns.append(S)
    return turns


_QUARTER_TURNS = _quarter_turns()


def _other_rotations(rpy: tuple[float, ...]) -> Iterator[tuple[str, np.ndarray]]:
    degrees, radians = math.pi / 180.0, 180.0 / math.pi
    yield "read as degrees", rotation(tuple(x * degrees for x in rpy))
    yield "in degrees, read as radians", rotation(tuple(x * radians for x in rpy))
    yield "read in the order x, y, z of moving axes", rotation(rpy, "xyz")
    yield "read as yaw, pitch, roll", rotation(rpy[::-1])
    yield from negated(rpy)


def negated(rpy: tuple[float, ...]) -> Iterator[tuple[str, np.ndarray]]:
    """Rotations with some of the angles negated, as between left- and right-handed axes."""
    for signs in itertools.product((1.0, -1.0), repeat=3):
        names = [n for n, s, x in zip(("roll", "pitch", "yaw"), signs, rpy, strict=True) if s < 0.0 and x]
        if len(names) == signs.count(-1.0) and names:
            yield f"with {' and '.join(names)} negated", rotation(tuple(np.array(signs) * rpy))


def _products(
    own: InertialDescription, m: float, c: np.ndarray, I: np.ndarray, R: np.ndarray
) -> Iterator[Candidate]:
    xx, xy, xz, yy, yz, zz = own.inertia
    lost, negated = "the products of inertia left out", "the products of inertia negated"

    def made(cause: str, text: str, inertia: np.ndarray) -> Candidate:
        return Candidate(cause, f"B's inertia is A's with {text}", Rigid(m, c, inertia))

    yield made("products-sign", negated, R @ matrix((xx, -xy, -xz, yy, -yz, zz)) @ R.T)
    yield made("products-lost", lost, R @ matrix((xx, 0.0, 0.0, yy, 0.0, zz)) @ R.T)
    if own.origin.rotated:  # the same in the link's axes
        d = np.diag(np.diag(I))
        yield made("products-sign", negated, 2 * d - I)
        yield made("products-lost", lost, d)
    another = "its six numbers read in another order"
    for six in ((xx, yy, zz, xy, xz, yz), (xx, xy, xz, xy, yy, yz), (xx, yy, zz, xy, yz, xz)):
        yield made("inertia-order", another, R @ matrix(six) @ R.T)
    moments, V = np.linalg.eigh(I)
    if np.linalg.det(V) < 0:
        V[:, 0] = -V[:, 0]
    for order in itertools.permutations(range(3)):
        text = "B's inertia is A's principal moments along the link's axes: their rotation is left out"
        yield Candidate("principal-axes-lost", text, Rigid(m, c, np.diag(moments[list(order)])))
    for order in itertools.permutations(range(3)):
        for signs in itertools.product((1.0, -1.0), repeat=3):
            W = V[:, list(order)] * np.array(signs)
            if np.linalg.det(W) > 0:
                turned = W.T @ np.diag(moments[list(order)]) @ W
                text = "B's inertia is A's with the rotation of its principal axes inverted"
                yield Candidate("principal-axes-inverted", text, Rigid(m, c, turned))
    for frame, J in ((R, matrix(own.inertia)), *(((np.eye(3), I),) if own.origin.rotated else ())):
        for i, j, two in ((0, 1, "ixz and iyz"), (0, 2, "ixy and iyz"), (1, 2, "ixy and ixz")):
            one = J.copy()
            one[i, j] = one[j, i] = -J[i, j]
            name = "i" + "xyz"[i] + "xyz"[j]
            yield made("products-sign", f"its product {name} negated", frame @ one @ frame.T)
            rest = 2.0 * np.diag(np.diag(J)) - one
            yield made("products-sign", f"its products {two} negated, as if mirrored", frame @ rest @ frame.T)
    for x, y, z in itertools.permutations((xx, yy, zz)):
        for p, q, r in itertools.permutations((xy, xz, yz)):
            yield made("inertia-order", another, R @ matrix((x, p, q, y, r, z)) @ R.T)
    yield made("inertia-order", another, R @ matrix((xx, xy, yy, xz, yz, zz)) @ R.T)


def _replaced(m: float, c: np.ndarray, I: np.ndarray) -> Iterator[Candidate]:
    zero, none, one = np.zeros(3), np.zeros((3, 3)), np.eye(3)
    gone = "B leaves its inertial out: no mass, no inertia"
    yield Candidate("inertial-lost", gone, NOTHING)
    yield Candidate("inertial-lost", gone, Rigid(0.0, c, none))
    point = "B leaves its inertia out; the mass is a point"
    yield Candidate("inertia-lost", point, Rigid(m, c, none))
    yield Candidate("inertia-lost", point, Rigid(m, zero, none))
    mean = float(np.trace(I)) / 3.0
    text = "B has the mean of A's principal moments about each axis (balanced)"
    yield Candidate("inertia-balanced", text, Rigid(m, c, mean * one))
    for mass, said in ((m, "of its mass"), (1.0, "of 1 kg")):
        if mass > 0.0:
            r = (3.0 * mass / (4.0 * math.pi * WATER)) ** (1.0 / 3.0)
            ball = 0.4 * mass * r * r * one
            text = f"B has the inertia of a ball of water {said} in its place"
            yield Candidate("inertia-ball", text, Rigid(mass, c, ball))
            yield Candidate("inertia-ball", text, Rigid(mass, zero, ball))
    for mass, moment, said in (
        (1.0, one, "1 kg and 1 kg m^2"),
        (1.0, none, "1 kg without inertia"),
        (m, one, "1 kg m^2 about each axis"),
    ):
        for com in (c, zero):
            yield Candidate(
                "inertial-default", f"B has a default in its place: {said}", Rigid(mass, com, moment)
            )
