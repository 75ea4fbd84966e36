"""The cases of benchmarks/fidelity.py.

table.py        what a case is, and what it finds
scenes.py       small robots, and robokit's ways to move them
peer.py         the same robots in MuJoCo, with the same shapes
rest.py         a box on a slope, an arm held by friction, fallen robots
sliding.py      stopping distance, and the start of sliding
turning.py      a gimballed rotor, drops of spun robots
rolling.py      cylinders that roll
impacts.py      balls of two sizes, restitution, two carts
forces.py       contact forces: pull, friction cone, their sum
meshes.py       the deepest vertex of the meshes of fallen robots
falls.py        random falls: convergence in dt, falls beside MuJoCo
books.py        the ledger: free flight, falls, momentum with pushes, energy_momentum
joints.py       PD control, the four-bar
speed.py        speed at equal error
worlds.py       loose bodies in one world, for both programs
piles.py        towers, heaps, mass ratios, dominoes, near starts, scale, robots that collide
grips.py        a cart, a gripper, a rope over a drum
edges.py        flush tiles, stairs, crossed edges
mechanisms.py   IFToMM's A01 to A05, Andrews' squeezing mechanism
tops.py         a free cylinder, a heavy top, a chaotic pendulum
simbenchmark.py rolling, elastic bounces, crowds of balls, a robot shot at
laws.py         order, energy, admissible forces and balance of every step, rest
"""
