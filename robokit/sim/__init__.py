"""Simulation: contact with the ground, joint limits, time steps, and the accounting of energy and momentum.

simulation         simulate(robot, q0, v0, ...) -> Trajectory, and how far a run can be trusted; Simulation:
                   step by step, one robot or many
rollouts           rollout(robot, q0, v0, ...) -> Rollout: many states at once
rollout_measures   what rollouts measure in every step

run_inputs         arguments of runs, checked; actuators and pushes as inputs of the steps
run_loop           the loop over the steps of a run, why it stops; what it recorded, as a trajectory with its
                   summary and warnings
starts             where runs begin: closed loops, standing configurations, and what is wrong with others

trajectory         Trajectory: states, energies, momenta and contact forces of a run; its file, with the robot
events             what each step was given and left, what happens in a run, and the run in a few lines
sensors            IMU, contact wrench, joint force; accelerations and reactions of joints

steppers           how runs take their steps; the default time step, energies of states
kernel_rows        kernels with loops on arrays of one state, or of rows of states
contact_rows       many rows through many of these steps, on several threads
card_rows          rows of rollouts and of a Simulation on a card
linear_steps       how the next state changes with this one, the joint forces and parameters
graph_functions    steps, rollouts and distances for JAX and PyTorch
page_step          steps and the look of a state for a page, which has no Python

step_kernel        Program: a robot's step with everything but the state; what is measured in it
integrators        methods, and the functions of those for passive motion
joint_forces       damping, friction, limits, actuators, loops and pushes in a step
motion             momenta, velocity products, effective masses and energy accounting of a step

ground             a plane, a height field, solids at rest
actuators          what drives joints, keyframes as their targets, and prescribed motion
force_elements     springs and dampers between points and at joints; pushes
distances          pairs of bodies that may touch; signed distances of links, and which are in contact

former_names       modules that the manual of 0.2 had under other names
"""

from robokit.contact.measures import measures
from robokit.sim import former_names as _former_names  # noqa: F401
from robokit.sim.actuators import PD, Keyframes, PrescribedMotion, Torque, Velocity
from robokit.sim.distances import (
    Collision,
    CollisionPairs,
    Collisions,
    Distances,
    collision_pairs,
    collisions,
    distance,
)
from robokit.sim.force_elements import JointSpring, Push, Spring
from robokit.sim.graph_functions import DistanceFunction, distance_function, step_function
from robokit.sim.ground import Ground, HeightField, Solid
from robokit.sim.linear_steps import StepDerivatives, StepGradient, step_derivatives, step_vjp
from robokit.sim.rollout_measures import Measure
from robokit.sim.rollouts import Rollout, rollout
from robokit.sim.simulation import Simulation, SimulationState, simulate
from robokit.sim.starts import close_loops, standing_configuration, standing_height
from robokit.sim.trajectory import Contacts, Energy, Trajectory

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
