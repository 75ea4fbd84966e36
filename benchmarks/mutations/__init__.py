"""Mistakes of readers and converters, applied to a description: what the referee has to find.

    mutation    a mistake, and helpers to change descriptions
    inertials   mistakes over <inertial>
    placements  mistakes over the origins and axes of joints
    joints      mistakes over limits, passive forces and mimic laws
    trees       mistakes over what joints and links hang on, the root, and loops
    wholes      mistakes over shapes, fixed links, base, gravity, order of joints
    natives     mistakes that MuJoCo makes itself when it is told to

Nothing here uses the referee's own formulas: a mistake is made the way a program would make it.
"""

from mutations.inertials import INERTIALS
from mutations.joints import JOINTS
from mutations.mutation import Mutant, Mutation
from mutations.placements import PLACEMENTS
from mutations.trees import TREES
from mutations.wholes import WHOLES

MUTATIONS: list[Mutation] = [*INERTIALS, *PLACEMENTS, *JOINTS, *TREES, *WHOLES]

__all__ = ["MUTATIONS", "Mutant", "Mutation"]
