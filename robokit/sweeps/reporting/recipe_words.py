"""A recipe in words, for readers of its report."""

from __future__ import annotations

import math
from typing import Any

from robokit.sim.driving.actuators import Actuator
from robokit.sim.ground import Ground
from robokit.sweeps.draws.distributions import Choice, Constant, Distribution, Grid, Normal, Sobol, Uniform
from robokit.sweeps.draws.parameter_table import parameter
from robokit.sweeps.recipes.recipe_fields import RecipeFields

MOST_VALUES = 8
"""Values of a list that are named."""


def recipe_words(recipe: RecipeFields) -> list[tuple[str, str]]:
    """Label and text of each part of a recipe."""
    found = []
    for name, record in recipe.robots.items():
        robot = record.robot
        size = f"{robot.total_mass:.4g} kg, {robot.nv} dof, {robot.base} base"
        found.append(("robot", f"{name}: {size}, step {1000 * recipe.dt[name]:.4g} ms"))
    for record in recipe.robots.values():
        found += [("actuators", ", ".join(map(actuator_words, record.actuators)))] if record.actuators else []
    found.append(("rows", f"{recipe.count:,} of {recipe.duration:g} s each".replace(",", " ")))
    standing = all(recipe.standing.values())
    found.append(("start", "standing" if standing else "the configurations that were given"))
    for name, given in recipe.parameters.items():
        found.append((name.replace("_", " "), distribution_words(given, parameter(name).unit)))
    found.append(("ground", ground_words(recipe.ground, "friction" in recipe.parameters)))
    options = {key: value for key, value in recipe.options.items() if value not in (None, False)}
    found += [
        (key.replace("_", " "), "yes" if value is True else str(value)) for key, value in options.items()
    ]
    found.append(("seed", str(recipe.seed)))
    made = {name: version for name, version in recipe.versions.items() if name not in ("processor", "source")}
    found.append(("made with", ", ".join(f"{name} {version}" for name, version in made.items())))
    found += [("made on", recipe.versions[name]) for name in ("processor",) if name in recipe.versions]
    found.append(("recipe", recipe.hash[:16]))
    return found


def distribution_words(given: Distribution, unit: str) -> str:
    """A distribution in words; angles in degrees."""
    scale, unit = (180.0 / math.pi, unit.replace("rad", "°")) if unit in ("rad", "rad/s") else (1.0, unit)

    def number(x: Any) -> str:
        return str(x) if isinstance(x, str) else f"{scale * float(x):.4g}".replace("-", "−")

    tail = f" {unit}" if unit and not unit.startswith("°") else unit
    if isinstance(given, Sobol | Uniform):
        how = "Sobol sequence" if isinstance(given, Sobol) else "uniform"
        return f"{how}, {number(given.low)} to {number(given.high)}{tail}"
    if isinstance(given, Normal):
        ends = [f"from {number(given.low)}"] if given.low is not None else []
        ends += [f"up to {number(given.high)}"] if given.high is not None else []
        cut = f", {' '.join(ends)}{tail}" if ends else ""
        return f"normal, {number(given.mean)} ± {number(given.deviation)}{tail}{cut}"
    if isinstance(given, Constant):
        return f"{number(given.value)}{tail}"
    values = given.values() or []
    several = [number(x) for x in values[:MOST_VALUES]] + (["…"] if len(values) > MOST_VALUES else [])
    if isinstance(given, Grid):
        return f"grid of {len(values)}: {', '.join(several)}{tail}"
    if isinstance(given, Choice) and given.weights is not None:
        total = sum(given.weights)
        pairs = zip(several, given.weights, strict=False)
        return "one of " + ", ".join(f"{value} ({100 * weight / total:.3g} %)" for value, weight in pairs)
    return f"one of {', '.join(several)}{tail}"


def actuator_words(given: Actuator) -> str:
    """An actuator in words: its kind, its joints, and the gains that are one number."""
    kind = {"PD": "position servo", "Velocity": "velocity servo", "Torque": "given force"}[
        type(given).__name__
    ]
    gains = {name: getattr(given, name) for name in given.gains}
    words = [f"{name} {x:.4g}" for name, x in gains.items() if isinstance(x, int | float)]
    where = "all joints" if given.joints is None else ", ".join(given.joints)
    return f"{kind} on {where}" + f" ({', '.join(words)})" * bool(words)


def ground_words(ground: Ground | None, drawn: bool = False) -> str:
    """What the robots fall on, in words; without its friction where rows have their own."""
    if ground is None:
        return "none: free flight"
    parts = []
    if ground.plane:
        tilted = "" if ground.horizontal else f", normal ({', '.join(f'{x:.3g}' for x in ground.up)})"
        parts.append(f"a plane{tilted}")
    if ground.terrain is not None:
        parts.append("a height field")
    if ground.shapes:
        parts.append(f"{len(ground.shapes)} solids")
    mu = ground.friction
    friction = f", friction {float(mu):.3g}" if isinstance(mu, int | float) and not drawn else ""
    return " and ".join(parts) + friction
