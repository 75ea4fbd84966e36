"""What is known of a run: its states, energies, forces, events and sensors, and the file of all that.

trajectory       Trajectory: what happened, with energies, momenta and contact forces
notes            what each step was given and left: what the others are made of
step_facts       what happens in single steps: contacts, stops, limits of actuators
events           events of a run, what they answer, and the run in a few lines
sensors          what sensors would have measured: IMU, contact wrench, joint force
motion_of_steps  accelerations, and the reactions of joints
saved_robot      the robot of a saved trajectory: what is stored of it, and the same robot again
"""

from robokit.sim.record.trajectory import Contacts, Energy, Trajectory

__all__ = ["Contacts", "Energy", "Trajectory"]
