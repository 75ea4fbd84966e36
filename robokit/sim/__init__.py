"""Simulation: contact with the ground, joint limits, time steps, and a ledger of energy and momentum.

simulator    simulate(robot, q0, v0, ...) -> Trajectory
rollouts/    rollout(robot, q0, v0, ...) -> Rollout: many states at once
run/         a run from its arguments to its results: what both share
record/      what is known of a run: states, energies, forces, events, sensors, and its file
measuring/   what rollouts measure in every step
simulation   one state in the arrays of contact/step.py, and its steps
step/        one time step as a text for the engine
motion/      velocities and momenta of bodies in a step, and what is kept of them
touching/    a robot on the ground in a step: its points, the contact law, what acts
meeting/     bodies that touch each other in a step
joints/      damping, friction, limits, actuators, loops and pushes in a step
stepping/    how steps are taken: by default, first, iterated to an accuracy, by a page
ground/      what there is to fall on
shapes/      what of a robot touches the ground
collide/     which bodies can touch each other, and their shapes
driving/     actuators, keyframes, pushes
closing      configurations and velocities that close the loops
"""

from robokit.sim.closing import close_loops
from robokit.sim.collide import CollisionPairs, collision_pairs
from robokit.sim.driving.actuators import PD, Torque, Velocity
from robokit.sim.driving.keyframes import Keyframes
from robokit.sim.driving.pushes import Push
from robokit.sim.ground import Ground, HeightField, Solid
from robokit.sim.measuring import Measure, measures
from robokit.sim.record import Contacts, Energy, Trajectory
from robokit.sim.rollouts import Rollout, rollout
from robokit.sim.run.linearised_step import StepDerivatives, step_derivatives
from robokit.sim.run.standing import standing_configuration, standing_height
from robokit.sim.run.step_functions import step_function
from robokit.sim.run.step_gradient import StepGradient, step_vjp
from robokit.sim.shapes.contact_points import ContactPoints, contact_points
from robokit.sim.simulator import simulate

__all__ = [
    "PD",
    "CollisionPairs",
    "ContactPoints",
    "Contacts",
    "Energy",
    "Ground",
    "HeightField",
    "Keyframes",
    "Measure",
    "Push",
    "Rollout",
    "Solid",
    "StepDerivatives",
    "StepGradient",
    "Torque",
    "Trajectory",
    "Velocity",
    "close_loops",
    "collision_pairs",
    "contact_points",
    "measures",
    "rollout",
    "simulate",
    "standing_configuration",
    "standing_height",
    "step_derivatives",
    "step_function",
    "step_vjp",
]
