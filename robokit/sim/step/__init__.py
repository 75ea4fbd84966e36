"""One time step of a robot, as a text for the engine.

step_kernel          the kernel, and what goes into it
problem              a robot and all that acts on it
integrators          methods, and the text of those for passive motion
drift_kick_drift     the step of falls
settle               its kick: contacts, limits, damping and friction in one solve
shared_sweeps        what all sweeps have in common, written once where code is dear
iterated_kick        a step in three parts, whose kick is iterated to an accuracy
loop_wrenches        the forces that hold loops closed, for what is reported
energy_momentum      energy, momentum and the path of the centre of mass kept to rounding
books                what a step enters into the ledger, and the momentum that it keeps
measured             what is measured while a rollout runs, in every step
trackers             what is measured of the ground's forces, joint limits and velocities
"""
