"""What a pass of a rollout hands to the next one: moved all at once, whatever goes where."""

import numpy as np
import pytest

from robokit.engine import Kernel
from robokit.engine.emit.rows import in_order


@pytest.mark.parametrize("seed", range(20))
def test_moves_in_order_are_those_meant_at_once(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 12))
    moves = list(zip(rng.permutation(n).tolist(), rng.integers(0, n + 3, n).tolist(), strict=True))
    slots = list(range(n + 4))
    meant = dict(moves)
    for to, source in in_order(moves, n + 3):
        slots[to] = slots[source]
    assert slots[: n + 3] == [meant.get(k, k) for k in range(n + 3)]


def test_circles_need_the_spare_slot():
    assert len(in_order([(0, 1), (1, 0), (2, 3), (3, 4), (4, 2), (5, 5)], 9)) == 7


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("rows", [1, 13])
def test_states_that_change_places_in_every_pass(dtype, rows):
    # x turns round, y takes what x was, z is constant, w passes through; u changes from pass to pass.
    def text(x, y, u):
        a, b, c = x
        return [[b, c + u[0], a], [a * 0.5 + y[1], y[0], 2.0, y[3]]]

    kernel = Kernel.build(
        "turn",
        inputs=[("x", 3), ("y", 4), ("u", 1)],
        outputs=[("x_next", (3,)), ("y_next", (4,))],
        text=text,
        feedback={"x_next": "x", "y_next": "y"},
        dtype=dtype,
    )
    steps, rng = 7, np.random.default_rng(0)
    x, y, u = (rng.standard_normal(s).astype(dtype) for s in ((1, rows, 3), (1, rows, 4), (steps, rows, 1)))
    plain = [x[0].T.copy(), y[0].T.copy()]
    runner = kernel.rollout_runner()
    runner.run([x, y, u], runner.workspace(), range(rows), 0, steps)
    for k in range(steps):
        found = text(list(plain[0]), list(plain[1]), [u[k, :, 0]])
        plain = [np.array([np.broadcast_to(value, rows) for value in row], dtype) for row in found]
    for state, expected in zip((x, y), plain, strict=True):
        assert np.allclose(state[0].T, expected, rtol=1e-6)
