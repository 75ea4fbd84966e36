"""Simulation: contact with the ground, joint limits, time steps, and a ledger of energy and momentum.

simulator       simulate(robot, q0, v0, ...) -> Trajectory
run_loop        the loop over the steps of one simulation, and its reasons to stop
run_results     what a run recorded, as a trajectory with its summary
rollouts        rollout(robot, q0, v0, ...) -> Rollout: many states at once
rollout_batch   the rows of a rollout: their states and records
rollout_forces  joint forces of a rollout
rollout_energy  rows of a rollout whose energy has grown without a cause
iterated_steps  steps that are iterated until their contacts have settled
acceleration    Anderson's acceleration of that iteration
half_step       how far a run can be trusted: the same with half the step
row_ledgers     the ledgers of the rows of a rollout at its end
run_arguments   what simulate and rollout make of their arguments, and which they refuse
run_warnings    warnings about a run's result
run_report      a run in a few lines of text
default_step    the time step where none is given
energy_growth   when a simulation has made energy out of nothing
trajectory      Trajectory: what happened, with energies, momenta and contact forces
contact_record  Contacts by point and StepForces by link
trajectory_file the file of a trajectory: sizes are checked, nothing in it runs
saved_robot     the robot of a saved trajectory: what is stored of it, and the same robot again
closing         configurations and velocities that close the loops
saved_ground    the ground of a saved trajectory
standing        configurations that stand on the ground
recorded        energies, momenta and contact forces of recorded states
collide/        which bodies can touch each other, and their shapes as boxes and capsules
replay          the steps of a run between its records
step_facts      what happens in single steps: contacts, stops, limits of actuators
events          Event: contacts, impacts, sliding, limits, rest, with time and size
answers         the questions that everyone has after a run, answered from its events
sensors         what sensors would have measured: IMU, contact wrench, joint force
contact_points  contact points from collision shapes
contact_shapes  points that lie or move on a shape: corners, balls, the lowest of several corners, rims
touching_size   how large that is, for the softness of the ground
contact_patches which corners of a hull share a contact point
body_surface    what of a body's shapes can touch a plane, within a stated error
ground          Ground: what is there to fall on, and the constants of the contact law
ground_values   what a ground is given, checked
height_field    HeightField: ground whose height is given on a grid
solids          Solid: boxes, balls, cylinders, capsules and hulls at rest
ground_inputs   a ground as a kernel takes it
ground_gaps     how far points are from a ground
actuators       Torque, PD, Velocity: what drives joints
run_inputs      actuators and pushes as inputs of the steps
driven_joints   actuators fitted to a robot and the steps of a run
servo_numbers   gains of a servo as a step takes them, to the bit on every machine
joint_values    which joints an actuator drives, numbers by joint, rotors
signals         targets that change with time, as tables
keyframes       Keyframes: joint values at points in time
keyframe_files  their files
pushes          Push: forces from outside on links
start_momentum  momentum and energy that the first step is handed, to the bit
page_step       the step and the look of a state for a page, which has no Python
linearised_step  how the next state changes with this one
measuring/      what rollouts measure in every step
step/           one time step as a kernel
"""

from robokit.sim.actuators import PD, Torque, Velocity
from robokit.sim.closing import close_loops
from robokit.sim.collide import CollisionPairs, collision_pairs
from robokit.sim.contact_points import ContactPoints, contact_points
from robokit.sim.ground import Ground
from robokit.sim.height_field import HeightField
from robokit.sim.keyframes import Keyframes
from robokit.sim.linearised_step import StepDerivatives, step_derivatives
from robokit.sim.measuring import Measure, measures
from robokit.sim.pushes import Push
from robokit.sim.rollouts import Rollout, rollout
from robokit.sim.simulator import simulate
from robokit.sim.solids import Solid
from robokit.sim.standing import standing_configuration, standing_height
from robokit.sim.trajectory import Contacts, Energy, Trajectory

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
]
