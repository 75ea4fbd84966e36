"""A time step with all that goes into it, and that of passive motion as a function for the engine.

step_kernel      Program: a robot's step with everything but the state, and the kernel of passive motion
integrators      methods, and the functions of those for passive motion
held_forces      damping, friction, stops and actuators, which these hold constant during a step
energy_momentum  energy, momentum and the path of the centre of mass kept to rounding
measured         what is measured while a rollout runs, in every step
"""
