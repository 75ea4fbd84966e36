"""Simulation: contact with the ground, joint limits, time steps, and the books that check them.

simulator    simulate(robot, q0, v0, ...) -> Trajectory
rollouts     rollout(robot, q0, v0, ...) -> Rollout: many states at once
rows         the rows of a rollout on their way
controls     joint forces of a rollout
setup        what both make of their common arguments
trajectory   Trajectory: what happened, and its conservation laws
integrators  the table of methods and the text of a step
contact      the implicit solve for contacts and joint forces: one articulated-body sweep
moments      what contact points add to a body's inertia
passive      damping, friction and limits of the joints
ground       Ground: the constants of the contact law
points       contact points from collision shapes
pose         configurations that stand on the ground
ledger       energy and impulse that a step puts into the books
records      energies, momenta and contact forces of recorded states
program      the step as a kernel
"""

from robokit.sim.contact_points import ContactPoints, contact_points
from robokit.sim.ground import Ground
from robokit.sim.rollouts import Rollout, rollout
from robokit.sim.simulator import simulate
from robokit.sim.standing import standing_configuration, standing_height
from robokit.sim.trajectory import Contacts, Energy, Trajectory

__all__ = [
    "ContactPoints",
    "Contacts",
    "Energy",
    "Ground",
    "Rollout",
    "Trajectory",
    "contact_points",
    "rollout",
    "simulate",
    "standing_configuration",
    "standing_height",
]
