"""Distributions of every kind, for tests of sweeps."""

from robokit.sweeps.distributions import Choice, Grid, Normal, Sobol, Uniform, distribution

ALL = [
    Uniform(-1.0, 3.0),
    Normal(2.0, 0.5),
    Normal(0.0, 1.0, low=-0.5, high=2.0),
    Normal(1.0, 0.0),
    Choice([1.0, 2.0, 5.0], weights=[1, 0, 3]),
    Choice(["a", "b"]),
    Grid(0.0, 1.0, 5),
    Grid(["x", "y"]),
    Sobol(0.1, 0.2),
    distribution("x", 4),
    distribution("x", "word"),
]
