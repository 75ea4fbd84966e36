"""What there is to fall on: a plane, a height field and solids at rest.

ground         Ground: all of it, and the constants of the contact law
height_field   HeightField: ground whose height is given on a grid
solids         Solid: boxes, balls, cylinders, capsules and hulls at rest
"""

from robokit.sim.ground.ground import Ground
from robokit.sim.ground.height_field import HeightField
from robokit.sim.ground.solids import Solid

__all__ = ["Ground", "HeightField", "Solid"]
