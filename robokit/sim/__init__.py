"""Simulation: contact with the ground, joint limits, time steps, and a ledger of energy and momentum.

simulator        simulate(robot, q0, v0, ...) -> Trajectory
simulation       Simulation: step by step, one robot or many
rollouts/        rollout(robot, q0, v0, ...) -> Rollout: many states at once
run/             a run from its arguments to its results: what both share
starts/          where runs begin: standing configurations, and what is wrong with others
record/          what is known of a run: states, energies, forces, events, sensors, and its file
measuring/       what rollouts measure in every step
contact_state    one state in the arrays of contact/step.py, and its steps
stepping/        how steps are taken: by default, first, with contact, by a page
step/            a time step with all that goes into it; that of passive motion as a function for the engine
motion/          velocities and momenta of bodies in a step, and what is kept of them
joints/          damping, friction, limits, actuators, loops and pushes in a step
ground/          what there is to fall on
body_pairs       which bodies of a robot touch each other
driving/         actuators, keyframes, springs, prescribed motions, pushes
loop_closure     configurations and velocities that close the loops
distances        signed distances of links, and which are in contact
"""

from robokit.sim.actuators import PD, Keyframes, Torque, Velocity
from robokit.sim.body_pairs import CollisionPairs, collision_pairs
from robokit.sim.distances import Collision, Collisions, Distances, collisions, distance
from robokit.sim.ground import Ground, HeightField, Solid
from robokit.sim.loop_closure import close_loops
from robokit.sim.measuring import Measure, measures
from robokit.sim.prescribed import PrescribedMotion
from robokit.sim.pushes import Push
from robokit.sim.record import Contacts, Energy, Trajectory
from robokit.sim.rollouts import Rollout, rollout
from robokit.sim.run.distance_function import DistanceFunction, distance_function
from robokit.sim.run.step_derivatives import StepDerivatives, StepGradient, step_derivatives, step_vjp
from robokit.sim.run.step_functions import step_function
from robokit.sim.simulation import Simulation, SimulationState
from robokit.sim.simulator import simulate
from robokit.sim.springs import JointSpring, Spring
from robokit.sim.starts.standing import standing_configuration, standing_height

__all__ = [
    "PD",
    "Collision",
    "CollisionPairs",
    "Collisions",
    "Contacts",
    "DistanceFunction",
    "Distances",
    "Energy",
    "Ground",
    "HeightField",
    "JointSpring",
    "Keyframes",
    "Measure",
    "PrescribedMotion",
    "Push",
    "Rollout",
    "Simulation",
    "SimulationState",
    "Solid",
    "Spring",
    "StepDerivatives",
    "StepGradient",
    "Torque",
    "Trajectory",
    "Velocity",
    "close_loops",
    "collision_pairs",
    "collisions",
    "distance",
    "distance_function",
    "measures",
    "rollout",
    "simulate",
    "standing_configuration",
    "standing_height",
    "step_derivatives",
    "step_function",
    "step_vjp",
]
