"""The state in the middle of the step to come, from those before it: what a controller is asked about.

A force that is held over a step is right to second order if it is that of the step's middle, and to first
order if it is that of its beginning. The configuration there is q + dt/2 v, at which steps of "contact" let
their forces act, too. The velocity goes on as it has changed in the last two steps, by half of the smaller of
the two changes, and not at all where they differ in sign: what an impact did to it is over.

Source: B. van Leer, "Towards the ultimate conservative difference scheme" (1974): slopes by minmod.
Cost: O(n).
"""

from __future__ import annotations

import numpy as np

from robokit.model.robot import Robot

History = tuple[tuple[int, np.ndarray], ...]
"""Numbers of steps, ascending, and the velocities that they began with."""


class MiddleOfSteps:
    """Predicts the middle of steps.

    Attributes:
        history: what is known of the steps before, two of them at most besides the last that was asked for.
    """

    def __init__(self, robot: Robot, dt: float) -> None:
        """Of a robot; ``dt``: time step [s]."""
        self.dt, self.history = dt, History()
        single = [joint for joint in robot.joints if joint.v_slice.stop - joint.v_slice.start == 1]
        self._q = np.array([joint.q_slice.start for joint in single], dtype=int)
        self._v = np.array([joint.v_slice.start for joint in single], dtype=int)
        self._others = [
            (robot.tree.joint[joint.body], joint.q_slice, joint.v_slice)
            for joint in robot.joints
            if joint not in single
        ]

    def __call__(self, step: int, q: np.ndarray, v: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """(t, q, v) in the middle of the step of that number, which begins with q and v."""
        known = dict(self.history)
        self.history = (*((k, w) for k, w in self.history if step - 3 < k < step), (step, v.copy()))
        half = 0.5 * self.dt
        middle = q.copy()
        middle[self._q] += half * v[self._v]
        for joint, at, dofs in self._others:
            middle[at] = joint.integrate(q[at].tolist(), (half * v[dofs]).tolist())
        t = (step + 0.5) * self.dt
        if step - 1 not in known or step - 2 not in known:
            return t, middle, v.copy()
        last, before = v - known[step - 1], known[step - 1] - known[step - 2]
        smaller = np.where(np.abs(last) < np.abs(before), last, before)
        return t, middle, v + np.where(last * before > 0.0, 0.5 * smaller, 0.0)
