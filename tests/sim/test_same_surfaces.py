"""A surface is the same, however it is described: as a plane, a slab, tiles or a height field."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import robokit as rk
from robokit.model import Box, Capsule, Cylinder, Mesh, ModelBuilder, Shape, Sphere

SHAPES = {
    "box": Box((0.2, 0.3, 0.1)),
    "ball": Sphere(0.1),
    "capsule": Capsule(0.05, 0.2),
    "cylinder": Cylinder(0.08, 0.3),
    "disc": Cylinder(0.15, 0.04),
}
SLAB = rk.Solid(Box((20.0, 20.0, 1.0)), (0.0, 0.0, -0.5))


def body(name: str) -> rk.Robot:
    inertia = np.diag([5.0, 5.0, 4.0]) * 1e-3
    builder = ModelBuilder("body").link("body", 1.0, inertia=inertia, collisions=(Shape(SHAPES[name]),))
    return builder.build("floating")


@pytest.mark.parametrize("turn", [(1.0, 0.0, 0.0, 0.0), (0.9, 0.3, 0.1, 0.3)], ids=["upright", "turned"])
@pytest.mark.parametrize("name", SHAPES)
def test_a_slab_is_a_plane(name: str, turn: tuple[float, ...]) -> None:
    """A plane had other points of a rim than a slab: discs moved 0.3 to 4 m apart."""
    q, v = [*np.divide(turn, np.linalg.norm(turn)), 0.0, 0.0, 0.3], [0.5, -0.3, 1.0, 0.4, 0.2, 0.0]
    plane, slab = (
        rk.simulate(body(name), q, v, duration=0.8, dt=1e-3, ground=ground).q
        for ground in (rk.Ground(), rk.Ground(plane=False, shapes=[SLAB]))
    )
    np.testing.assert_allclose(slab, plane, rtol=0.0, atol=1e-10)


def lying(name: str, yaw: float) -> np.ndarray:
    """Pose of a body that lies on its side, or its face, at z = 0."""
    on_side = name in ("capsule", "cylinder")
    c, s = np.cos(0.5 * yaw), np.sin(0.5 * yaw)
    half = np.sqrt(0.5) if on_side else 1.0
    height = {"box": 0.05, "ball": 0.1, "capsule": 0.05, "cylinder": 0.08, "disc": 0.02}[name]
    y = half if on_side else 0.0
    return np.array([c * half, -s * y, c * y, s * half, 0.0, 0.0, height - 1e-4])


def sliding(name: str, ground: rk.Ground, yaw: float) -> np.ndarray:
    q = lying(name, yaw)
    w, x, y, z = q[:4]
    # The velocity (0.8, 0.5, 0) of the world in body axes.
    R = np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )
    v = np.concatenate([np.zeros(3), R.T @ [0.8, 0.5, 0.0]])
    return rk.simulate(body(name), q, v, duration=0.6, dt=1e-3, ground=ground).q


TILES, SIDE = 8, 0.25
CORNER = 0.013 - TILES * SIDE / 2, -0.021 - TILES * SIDE / 2


def one_slab() -> rk.Ground:
    half = TILES * SIDE / 2
    middle = CORNER[0] + half, CORNER[1] + half, -0.25
    return rk.Ground(plane=False, shapes=[rk.Solid(Box((2.0 * half, 2.0 * half, 0.5)), middle)])


def tiles() -> rk.Ground:
    middles = [SIDE * (k + 0.5) for k in range(TILES)]
    places = [(CORNER[0] + x, CORNER[1] + y, -0.25) for x in middles for y in middles]
    return rk.Ground(plane=False, shapes=[rk.Solid(Box((SIDE, SIDE, 0.5)), place) for place in places])


CASES = [
    ("box", 0.0, 1e-12),
    ("ball", 0.0, 1e-12),
    ("disc", 0.0, 1e-10),
    ("disc", 0.8, 1e-10),
    ("capsule", 0.8, 1e-6),
]


@pytest.mark.parametrize(("name", "yaw", "apart"), CASES)
def test_flush_tiles_are_one_slab(name: str, yaw: float, apart: float) -> None:
    """Edges and corners inside the surface are none: capsules moved 5 mm apart, boxes 10 um."""
    one, many = (sliding(name, ground, yaw) for ground in (one_slab(), tiles()))
    np.testing.assert_allclose(many, one, rtol=0.0, atol=apart)


FALLS = [
    ("box", 0, 1e-7),
    ("box", 2, 1e-7),
    ("capsule", 0, 1e-6),
    ("capsule", 1, 1e-6),
    ("cylinder", 1, 1e-6),
]


@pytest.mark.parametrize(("name", "seed", "apart"), FALLS)
def test_falls_onto_flush_tiles_are_falls_onto_one_slab(name: str, seed: int, apart: float) -> None:
    """With an edge or corner first: what crosses a seam left the tile behind it sideways, 4 mm apart."""
    rng = np.random.default_rng(seed)
    turn = rng.normal(size=4)
    q = [*turn / np.linalg.norm(turn), 0.02, 0.03, 0.3]
    v = np.concatenate([rng.normal(size=3) * 2.0, [0.5, 0.3, 0.0]])
    one, many = (
        rk.simulate(body(name), q, v, duration=0.6, dt=1e-3, ground=ground).q
        for ground in (one_slab(), tiles())
    )
    np.testing.assert_allclose(many, one, rtol=0.0, atol=apart)


def over_a_seam(name: str, side: float, beside: float, above: float) -> float:
    """Speed that is left of 1 m/s when a body has slid over the seam of two solids, without friction."""
    halves = [
        rk.Solid(Box((side, side, 0.5)), (0.5 * way * (side + beside), 0.0, z))
        for way, z in ((-1.0, -0.25), (1.0, -0.25 + above))
    ]
    q = lying(name, 0.0)
    q[4] = -0.3
    ground = rk.Ground(plane=False, shapes=halves, friction=0.0)
    run = rk.simulate(body(name), q, [0.0, 0.0, 0.0, 1.0, 0.0, 0.0], duration=0.5, dt=1e-3, ground=ground)
    return float(run.v[-1, 3])


@pytest.mark.parametrize("side", [1.0, 100.0])
@pytest.mark.parametrize(("beside", "above"), [(1e-6, 0.0), (0.0, 1e-6), (1e-6, -1e-6)])
@pytest.mark.parametrize("name", ["box", "disc"])
def test_tiles_a_micrometre_apart_stop_nothing(name: str, beside: float, above: float, side: float) -> None:
    """Numbers in files have so many digits: of 1 m/s 0.03 to 0.6 m/s were left."""
    assert over_a_seam(name, side, beside, above) == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize("side", [1.0, 100.0])
@pytest.mark.parametrize("name", ["box", "disc"])
def test_a_step_of_a_tenth_of_a_millimetre_is_one_on_floors_of_all_sizes(name: str, side: float) -> None:
    """What is flush is a matter of the body: where it was one of the floor, 1 mm was no step on 100 m."""
    assert over_a_seam(name, side, 0.0, 1e-4) < 0.0


def sliding_off(name: str, layers: list[float]) -> np.ndarray:
    """Poses of a body that slides over the end of a floor of layers with these upper sides [m]."""
    ends = zip([-0.5, *layers], layers, strict=False)
    solids = [rk.Solid(Box((4.0, 4.0, b - a)), (-2.0, 0.0, 0.5 * (a + b))) for a, b in ends]
    q = lying(name, 0.0)
    q[4:6] = -0.2, 0.03
    ground = rk.Ground(plane=False, shapes=solids, friction=0.0)
    return rk.simulate(body(name), q, [0, 0, 0, 1, 0, 0], duration=0.4, dt=1e-3, ground=ground).q


@pytest.mark.parametrize("thickness", [1e-4, 1e-3])
@pytest.mark.parametrize("name", ["box", "disc", "ball"])
def test_a_layer_on_a_floor_covers_it_up_to_its_end(name: str, thickness: float) -> None:
    """What lay over the end by less than 3 cm left the covered floor sideways: the energy grew."""
    one, two = (sliding_off(name, layers) for layers in ([0.0], [-thickness, 0.0]))
    np.testing.assert_allclose(two, one, rtol=0.0, atol=1e-3)


@pytest.mark.parametrize("name", ["box", "ball"])
def test_a_plate_bears_on_floors_of_all_sizes(name: str) -> None:
    """A body left the covered floor, 100 m wide and 0.5 m thick, through its lower side: the energy grew."""
    plate = rk.Solid(Box((0.5, 0.5, 3e-4)), (0.0, 0.0, 1.5e-4))
    floor = rk.Solid(Box((100.0, 100.0, 0.5)), (0.0, 0.0, -0.25))
    q = lying(name, 0.0)
    q[6] += 0.01
    run = rk.simulate(
        body(name), q, duration=0.3, dt=1e-3, ground=rk.Ground(plane=False, shapes=[floor, plate])
    )
    assert run.q[-1, 6] - lying(name, 0.0)[6] == pytest.approx(4e-4, abs=5e-5)


LEVEL = [("box", 0.0, 1e-12), ("ball", 0.0, 1e-12), ("disc", 0.8, 1e-12), ("capsule", 0.8, 1e-6)]


@pytest.mark.parametrize(("name", "yaw", "apart"), LEVEL)
def test_a_level_height_field_is_a_plane(name: str, yaw: float, apart: float) -> None:
    """Normals at edges between cells are those of the ground around: capsules moved 3 mm apart."""
    heights = rk.HeightField(np.zeros((TILES + 1, TILES + 1)), cell=SIDE, origin=CORNER)
    field, plane = rk.Ground(plane=False, terrain=heights), rk.Ground()
    np.testing.assert_allclose(sliding(name, field, yaw), sliding(name, plane, yaw), rtol=0.0, atol=apart)


HALVES = [rk.Solid(Box((1.0, 1.0, 0.5)), (x, 0.0, -0.25)) for x in (-0.5, 0.5)]


def resting(shape: Shape, q: list[float]) -> rk.Trajectory:
    builder = ModelBuilder("body").link("body", 1.0, inertia=np.eye(3) * 5e-3, collisions=(shape,))
    ground = rk.Ground(plane=False, shapes=HALVES)
    return rk.simulate(builder.build("floating"), q, duration=0.5, dt=1e-3, ground=ground)


def prisms(field: rk.HeightField) -> rk.Ground:
    """Each triangle of a field down to z = -1."""
    nx, ny = field.heights.shape
    x, y = (o + field.cell[0] * np.arange(n) for o, n in zip(field.origin, (nx, ny), strict=False))
    solids = []
    for i in range(nx - 1):
        for j in range(ny - 1):
            for second in ((1, 0), (0, 1)):
                places = [(i, j), (i + second[0], j + second[1]), (i + 1, j + 1)]
                top = np.array([(x[a], y[b], field.heights[a, b]) for a, b in places])
                solids.append(rk.Solid(np.vstack([top, [(*p[:2], -1.0) for p in top]])))
    return rk.Ground(plane=False, shapes=solids)


@pytest.mark.parametrize(
    ("name", "rough", "apart"), [("ball", 0.05, 1e-4), ("box", 0.0, 1e-9), ("capsule", 0.0, 1e-9)]
)
def test_a_height_field_is_its_prisms(name: str, rough: float, apart: float) -> None:
    """Where bodies touch at several edges, both are right to the step, but part soon: balls tell all."""
    rng = np.random.default_rng(0)
    field = rk.HeightField(rough * rng.uniform(-1.0, 1.0, (6, 6)), cell=0.2, origin=(-0.5, -0.5))
    q, v = [0.9, 0.3, 0.1, 0.3, 0.02, 0.03, 0.2], [1.0, -0.6, 2.0, 0.3, 0.2, 0.0]
    q = [*np.divide(q[:4], np.linalg.norm(q[:4])), *q[4:]]
    one, other = (
        rk.simulate(body(name), q, v, duration=0.5, dt=1e-3, ground=ground).q
        for ground in (rk.Ground(terrain=field), prisms(field))
    )
    np.testing.assert_allclose(other, one, rtol=0.0, atol=apart)
    assert one[:, 6].min() < 0.15


@pytest.mark.parametrize("off", [0.0, 1e-7, 1e-6, 1e-5])
def test_a_capsule_along_a_seam_is_held_where_both_tiles_end(off: float) -> None:
    """Both tiles have a corner there, and the edge that ends is not the one across which the other lies."""
    half = np.sqrt(0.5)
    run = resting(Shape(Capsule(0.05, 1.6)), [half, half, 0.0, 0.0, off, 0.0, 0.05])
    np.testing.assert_allclose(run.q[-1, 4:], [off, 0.0, 0.05], rtol=0.0, atol=1e-4)


@pytest.mark.parametrize("over", [0.0, 1e-6, 1e-5, 1e-4])
def test_a_body_that_is_wider_above_stands_on_a_seam(over: float, tmp_path: Path) -> None:
    """What of it is over the other tile is its lower face, not what it has above: it rocked at 1e-2 m/s."""
    import trimesh

    corners = [[x * a, y * a, z] for a, z in ((0.1, -0.1), (0.3, 0.1)) for x in (-1, 1) for y in (-1, 1)]
    trimesh.convex.convex_hull(np.array(corners)).export(tmp_path / "foot.stl")
    foot = Shape(Mesh("foot.stl", path=tmp_path / "foot.stl"))
    run = resting(foot, [1.0, 0.0, 0.0, 0.0, over - 0.1, 0.03, 0.1])
    assert np.abs(run.v[-1]).max() < 2e-3
    np.testing.assert_allclose(run.q[-1, :4], [1.0, 0.0, 0.0, 0.0], rtol=0.0, atol=4e-5)


def test_where_friction_changes_each_half_bears_its_load() -> None:
    """A thin box slides along the seam of halves of friction 0 and 1: it acts in the middle of its half.

    The corners of the box alone, twice as far from the seam, turned it twice as fast.
    """
    halves = [rk.Solid(solid.geometry, solid.placement, mu) for mu, solid in enumerate(HALVES)]
    box = Shape(Box((0.2, 0.2, 0.002)))
    robot = (
        ModelBuilder("box").link("box", 1.0, inertia=np.eye(3) * 5e-3, collisions=(box,)).build("floating")
    )
    q, v = [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1e-3], [0.0, 0.0, 0.0, 0.0, 1.0, 0.0]
    ground = rk.Ground(plane=False, shapes=halves)
    run = rk.simulate(robot, q, v, duration=0.02, dt=1e-3, ground=ground)
    torque, force = -5e-3 * run.v[-1, 2] / 0.02, (1.0 - run.v[-1, 4]) / 0.02
    assert force == pytest.approx(0.5 * 9.81, rel=0.01)
    assert torque == pytest.approx(0.05 * force, rel=0.15)
