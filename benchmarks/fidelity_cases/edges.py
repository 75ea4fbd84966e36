"""Edges: flush tiles, stairs, two crossed edges; solids and bodies of the same shape must be alike."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fidelity_cases import scenes as s
from fidelity_cases import worlds as w
from fidelity_cases.peer import both
from fidelity_cases.table import Found, Look, case
from robokit.model import Box

TILE = 0.25


def tiles(count: int) -> list[tuple[Any, tuple[float, float, float]]]:
    """Square tiles side by side, their tops at z = 0."""
    return [(Box((TILE, 1.0, 0.1)), (TILE * k, 0.0, -0.05)) for k in range(count)]


@case("tiles", "Edges", "A box slides over flush tiles")
def flush(look: Look) -> Found:
    """A box of 20 x 20 x 10 cm and 2 kg slides over tiles of 25 cm that lie side by side, friction 0.1, from
    2 m/s; and on one long solid. Measured: how the speeds after 1 s differ, from each other and from
    2 m/s - µ g t, and how far the box jumps.
    """
    found, mu = Found(), 0.1
    wanted = 2.0 - mu * s.G
    long = [(Box((4.0, 1.0, 0.1)), (1.5, 0.0, -0.05))]
    for label, solids in (("one solid", long), ("tiles", tiles(10))):
        world = w.World([w.Body(Box((0.2, 0.2, 0.1)), 2.0, (0.03, 0.0, 0.05), v=(0, 0, 0, 2.0, 0, 0))],
                        friction=mu, plane=False, solids=solids)  # fmt: skip
        t = world.run(1.0, every=1e-3)

        def theirs(stiff: bool, world: w.World = world) -> float:
            _, v = world.peer(stiff=stiff).states(1000, 10)
            return abs(float(v[-1, 3]) - wanted)

        speed = abs(float(np.linalg.norm(t.v[-1, 3:])) - wanted)
        found.add(f"{label}: speed after 1 s, error", "m/s", speed, **both(look, theirs), most=5e-3)
        found.add(f"{label}: rise and fall of the box", "mm", 1e3 * np.ptp(t.q[100:, 6]), most=0.1)
    return found


@case("stairs", "Edges", "A box and a hull come down stairs")
def stairs(look: Look) -> Found:
    """Five steps of 20 cm and 10 cm height, as solids side by side. A box of 8 cm and a hull of 6 cm are
    thrown down them at 1 m/s, friction 0.5. Measured: the energy above the start, how deep a corner
    ever is in a step, and the speed after 4 s.
    """
    found = Found()
    steps = [(Box((0.2, 1.0, 0.1 * (5 - k))), (0.2 * k, 0.0, 0.05 * (5 - k))) for k in range(5)]
    rng = np.random.default_rng(0)
    for label, shape in (("box", Box((0.08,) * 3)), ("hull", w.hull(rng, 0.06))):
        body = w.Body(shape, 1.0, (0.0, 0.0, 0.7), (0.9, 0.2, 0.3, 0.1), (0.0, 3.0, 0.0, 1.0, 0.1, 0.0))
        world = w.World([body], solids=steps)
        t = world.run(4.0, every=1e-3)
        corners = shape if isinstance(shape, np.ndarray) else 0.04 * np.array(
            [(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])  # fmt: skip

        def depth(q: np.ndarray, corners: np.ndarray = corners) -> float:
            return 1e3 * max(_depth(_placed(corners, x)) for x in q)

        def theirs(stiff: bool, world: w.World = world, depth: Any = depth) -> float:
            return depth(world.peer(stiff=stiff).states(4000, 5)[0])

        above = t.energy.mechanical.max() - t.energy.mechanical[0]
        found.add(f"{label}: energy above the start", "J", above, most=1e-9)
        what = f"{label}: deepest corner in a step"
        found.add(what, "mm", depth(t.q[::5]), **both(look, theirs), most=10.0)
        found.add(f"{label}: speed after 4 s", "m/s, rad/s", np.abs(t.v[-1]).max(), most=1e-9)
    return found


def _placed(x: np.ndarray, q: np.ndarray) -> np.ndarray:
    a, b, c, d = q[:4]
    R = np.array([[1 - 2 * (c * c + d * d), 2 * (b * c - a * d), 2 * (b * d + a * c)],
                  [2 * (b * c + a * d), 1 - 2 * (b * b + d * d), 2 * (c * d - a * b)],
                  [2 * (b * d - a * c), 2 * (c * d + a * b), 1 - 2 * (b * b + c * c)]])  # fmt: skip
    return x @ R.T + q[4:7]


def _depth(x: np.ndarray) -> float:
    """Depth of the deepest corner in the stairs and the ground: through the nearest face of their outline."""
    deepest = -math.inf
    for px, _, pz in x:
        k = math.floor((px + 0.1) / 0.2)
        top = 0.1 * (5 - k) if 0 <= k < 5 else 0.5 if k < 0 else 0.0
        if px < -0.1:
            continue
        side = 0.1 + 0.2 * k - px  # to the face down to the next step
        deepest = max(deepest, min(top - pz, side if pz > top - 0.1 and k < 5 else math.inf))
    return deepest


@case("crossed", "Edges", "Crossed edges: a solid and a body of the same shape")
def crossed(look: Look) -> Found:
    """A bar of 40 x 5 x 5 cm lies edge down across the upward edge of another one, turned by 90 degrees. The
    lower one is a solid at rest, then a body that is a thousand times as heavy and stands on its edge on the
    plane. Measured: how deep the edges are in each other after 0.1 s, and how the two ways differ.
    """
    found, half = Found(), 0.025
    edge = math.sqrt(2.0) * half
    eighth = math.radians(45.0) / 2.0
    lower_turn = (math.cos(eighth), math.sin(eighth), 0.0, 0.0)
    upper_turn = _times((math.cos(math.pi / 4), 0.0, 0.0, math.sin(math.pi / 4)), lower_turn)
    bar = Box((0.4, 0.05, 0.05))
    corners = half * np.array([(x * 8, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], float)
    lower = _placed(corners, np.array([*lower_turn, 0.0, 0.0, edge]))
    top = w.Body(bar, 1.0, (0.0, 0.0, 3.0 * edge), upper_turn)
    ways = {
        "solid": w.World([top], solids=[(lower, (0.0, 0.0, 0.0))]),
        "body": w.World([top, w.Body(bar, 1000.0, (0.0, 0.0, edge), lower_turn)], gravity=(0, 0, -s.G)),
    }
    sunk: dict[str, dict[str, float]] = {}
    for label, world in ways.items():
        t = world.run(0.1, every=1e-3)

        def deep(q: np.ndarray) -> float:
            below = q[-1, 13] if q.shape[1] > 7 else edge
            return 1e3 * float(below + 2.0 * edge - q[-1, 6])

        sunk[label] = {"robokit": deep(t.q)}
        if look.peer and label == "body":
            for key, stiff in (("mujoco", False), ("stiff", True)):
                sunk[label][key] = deep(world.peer(stiff=stiff).states(100, 1)[0])
        found.add(f"on a {label}: depth after 0.1 s", "mm", sunk[label].get("robokit"),
                  **{k: x for k, x in sunk[label].items() if k != "robokit"}, most=1.0)  # fmt: skip
    mine = [sunk[label].get("robokit", math.nan) for label in ways]
    found.add("solid less body", "mm", abs(mine[0] - mine[1]), most=0.2)
    return found


def _times(a: Any, b: Any) -> tuple[float, ...]:
    """Product of two quaternions."""
    (p, x), (q, y) = ((v[0], np.array(v[1:], float)) for v in (a, b))
    return (float(p * q - x @ y), *(float(z) for z in p * y + q * x + np.cross(x, y)))
