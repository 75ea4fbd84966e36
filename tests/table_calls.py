"""The public functions of the table of algorithms, called with what their signatures ask for.

A row of robokit/dynamics/table.py puts its function into every test that walks these.
"""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
from ladder import State

import robokit as rk
from robokit.dynamics.build import example_key, flat_function, outputs
from robokit.dynamics.choices import CHOICES
from robokit.dynamics.layout import INPUTS
from robokit.dynamics.table import ALGORITHMS, Algorithm

PUBLIC: dict[str, Algorithm] = {row.name: row for row in ALGORITHMS if hasattr(rk, row.name)}
TAKES = {name: set(inspect.signature(getattr(rk, name)).parameters) for name in PUBLIC}


def inputs(row: Algorithm) -> list[str]:
    """Names of a row's array inputs."""
    return row.inputs.split()


STATE = {"q", "v", "a", "a_joints", "tau", "at"}  # inputs that come straight from a state


def shapes(name: str, robot: rk.Robot) -> list[tuple[int, ...]]:
    """Shapes of a row's outputs for one state."""
    return [shape for _, shape in outputs(PUBLIC[name], robot, example_key(PUBLIC[name], robot))]


def of_states(*names: str) -> list[str]:
    """Rows whose inputs come straight from a state, of those whose functions take all these options."""
    rows = [name for name, row in PUBLIC.items() if set(inputs(row)) <= STATE]
    return [name for name in rows if set(names) <= TAKES[name]]


def values(robot: rk.Robot, state: State) -> dict[str, Any]:
    """A value for each parameter that a public function may have."""
    found = {x: getattr(state, x) for x in ("q", "v", "a", "tau")}
    found |= {"a_joints": state.a[6:], "stabilisation": np.array([30.0, 4.0]), "damping": np.array([0.1])}
    found |= {"restitution": np.array([0.3]), "proximal": np.array([1e-7])}
    found |= {"at": np.array([0.3, -0.2, 0.5]), "H": rk.crba(robot, state.q, engine="python")}
    return found | {name: choice.example(robot) for name, choice in CHOICES.items()}


def batch_of(robot: rk.Robot, states: list[State]) -> dict[str, Any]:
    """The same with a leading axis."""
    each = [values(robot, state) for state in states]
    return {x: np.array([one[x] for one in each]) if x in INPUTS else each[0][x] for x in each[0]}


def call(name: str, robot: Any, given: dict[str, Any], **how: Any) -> Any:
    """The public function of that name, its arguments by name where they have one."""
    row = PUBLIC[name]
    wanted = {*inputs(row), *row.about.split()}
    arguments = {x: given[x] for x in inspect.signature(getattr(rk, name)).parameters if x in wanted}
    if "method" in TAKES[name]:
        how = {"method": "crba"} | how
    return getattr(rk, name)(robot, **arguments, **how)


def arrays(result: Any) -> list[np.ndarray]:
    """What a function returned, as arrays."""
    if isinstance(result, rk.LinkPoses):
        return [result.matrices]
    if isinstance(result, rk.LTDLFactor):
        return [result.L, result.D]
    return [np.asarray(x) for x in (result if isinstance(result, tuple) else (result,))]


def plain(row: Algorithm, robot: rk.Robot, given: dict[str, Any]) -> list[np.ndarray]:
    """The row's function on Python's floats, by the table's own layout."""
    about = row.about.split()
    key = (row.name, *(given[x] for x in about)) if about else row.name
    flat = [np.ravel(given[x]).tolist() for x in inputs(row)]
    shapes = [shape for _, shape in outputs(row, robot, key)]
    results = flat_function(row, robot, key)(*flat)
    return [np.array(x, dtype=float).reshape(shape) for x, shape in zip(results, shapes, strict=True)]
