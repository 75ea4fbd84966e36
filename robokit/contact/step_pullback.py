"""Reverse mode of a step: from how a number changes with the next state to how it does with this one.

    mu = r_y^-T (what y is worth)     of tau: dt mu     of q, v in the middle: -r_q^T mu, -r_v^T mu

and the transposed derivatives of both drifts. It is step_derivatives.py read backwards: one back substitution
instead of 3 nv.

Source: step_derivatives.py.
Cost: O(n d) for inverse dynamics, O(n (n + contacts)) for contacts.
"""

from __future__ import annotations

import functools
from typing import Any

from robokit.contact import closing_derivatives
from robokit.contact.drift_derivatives import drift_tangents, pulled
from robokit.contact.fields import STEP_PULLBACK
from robokit.contact.parameter_gradients import of_parameters
from robokit.contact.step_derivatives import arrays, end, kick
from robokit.contact.unsymmetric import back_substitute_transposed
from robokit.contact.vectors import nothing
from robokit.engine.loops.fields import kernel_of, once
from robokit.engine.loops.kernel import LoopKernel
from robokit.spatial.control_flow import cond, for_range


@functools.cache
def pullback_kernel() -> LoopKernel:
    """The kernel of a step's reverse mode, of all robots."""
    taken = tuple(a for a in arrays() if a.name != "next")
    return kernel_of("contact_step_pullback", step_pullback, (*taken, *STEP_PULLBACK), by_source=True)


def step_pullback(x: Any) -> None:
    """``of_start`` and what parameters are worth, from ``of_end``; of a step that stopped after its kick."""

    def prepare() -> None:
        kick(x)
        end(x)
        once(x, drift_tangents, 0, x.v_before)
        once(x, drift_tangents, 1, x.y)

    cond(x.again[0] > 0, nothing, prepare)

    def begin(j: Any) -> None:
        x.of_q[j], x.of_v[j] = x.of_end[0, j], x.of_end[1, j]

    for_range(x.nv, begin)
    cond(x.n_loops > 0, lambda: closing_derivatives.pull(x), nothing)
    once(x, pulled, 1, x.of_q, x.of_v, x.of_middle, x.mu)
    back_substitute_transposed(x, x.r_y, x.r_y_inverse, x.mu)

    def middle(j: Any) -> None:
        def more(r: Any, by_q: Any, by_v: Any) -> Any:
            return by_q - x.r_q[r, j] * x.mu[r], by_v - x.r_v[r, j] * x.mu[r]

        x.of_middle[j], x.of_v[j] = for_range(x.nv, more, x.of_middle[j], 0.0)
        x.of_start[2, j] = x.dt[0] * x.mu[j]

    for_range(x.nv, middle)
    of_parameters(x)
    once(x, pulled, 0, x.of_middle, x.of_v, x.of_start[0], x.of_start[1])
