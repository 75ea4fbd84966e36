"""How deep the true corners of meshes lie after a fall: what the summary says, within its shape error."""

import numpy as np
import pytest

import robokit as rk
from robokit.meshes.hull import hull_corners
from robokit.model import Box, Cylinder, Mesh, Sphere

pytestmark = [pytest.mark.parity, pytest.mark.slow]


def _lowest(robot: rk.Robot, q: np.ndarray) -> float:
    """Lowest point of all collision shapes, each whole, by its own formula."""
    poses, low = rk.forward_kinematics(robot, q), []
    for link in robot.links:
        R, p = poses[link.name]
        for shape in link.collisions if link.body else ():
            P, g = shape.placement, shape.geometry
            up, z = (R @ P.rotation)[2], (R @ P.position + p)[2]
            if isinstance(g, Mesh):
                low.append(z + float((hull_corners(g) @ up).min()))
            elif isinstance(g, Box):
                low.append(z - 0.5 * float(np.abs(up) @ g.size))
            elif isinstance(g, Sphere):
                low.append(z - g.radius)
            else:
                assert isinstance(g, Cylinder)
                low.append(z - 0.5 * g.length * abs(up[2]) - g.radius * float(np.hypot(up[0], up[1])))
    return min(low)


@pytest.mark.parametrize("name", ["go2", "hyq"])
def test_true_corners_sink_no_deeper_than_is_said(name):
    robot = rk.load_urdf(rk.find_robot(f"example-robot-data:{name}"), base="floating")
    q0 = rk.standing_configuration(robot, height=0.02, tilt=0.07, seed=0)
    # Pairs of bodies are no matter of the ground, and their code takes long to compile.
    run = rk.simulate(robot, q0, duration=2.0, dt=1e-3, ground=rk.Ground(), self_collision=False)
    error = run.summary["shape_error"]
    assert error <= 1e-3
    deepest = -min(_lowest(robot, q) for q in run.q[::20])
    assert deepest <= run.summary["deepest_penetration"] + error
    points = run.contacts.points[-1, :, 2].min()
    assert _lowest(robot, run.q[-1]) == pytest.approx(points, abs=error + 1e-6)
