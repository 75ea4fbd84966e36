"""The mass matrix: zeros that the robot's shape puts there, and a factorisation that keeps them.

H(i, j) is zero whenever joints i and j lie on different branches: the left arm does not feel how the
right leg accelerates. The tree alone says where; rk.inertia_sparsity(robot) needs no numbers at all.

Plain Cholesky, H = L L^T, works from the base outward and fills these zeros in. Taken from the leaves
inward, H = L^T D L, the factor keeps the pattern of H, and the work is the least possible: each joint
touches only the joints between itself and the base.

    H = rk.crba(robot, q);  factor = rk.ltdl(robot, H);  x = factor.solve(b)

The picture shows the three patterns; added entries are red. `robokit sparsity humanoid --base floating`
draws the same beside the tree.

Check: entries off the pattern are exactly zero, in H and in L; L^T D L is H; and the solution solves.
"""

import argparse
import webbrowser
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import robokit as rk
from robokit.model.sparsity import ltdl_counts

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--headless", action="store_true", help="only write the picture")
parser.add_argument("--output", type=Path, default=Path("mass_matrix.png"), metavar="FILE")
arguments = parser.parse_args()

robot = rk.load_urdf(rk.find_robot("humanoid"), base="floating")
H = rk.crba(robot, robot.random_configuration(0))
factor = rk.ltdl(robot, H)
cholesky = np.linalg.cholesky(H)
pattern = rk.inertia_sparsity(robot)

counts = ltdl_counts(robot.tree.dof_parent)
print(f"H is {robot.nv} x {robot.nv}, {counts['zeros_share']:.0%} of it zeros")
for work in ("factorise", "solve"):
    tree, dense, ratio = (counts[work + ending] for ending in ("", "_dense", "_ratio"))
    print(f"{work}: {tree} multiply-adds, dense {dense}: {ratio:.1f}x")

axes = Figure(figsize=(10, 3.6), layout="constrained").subplots(1, 3)
matrices = {"H": H, "L of L^T D L": factor.L, "L of Cholesky": cholesky}
for ax, (title, matrix) in zip(axes, matrices.items(), strict=True):
    ax.spy(matrix != 0, markersize=4, color="black")
    ax.spy((matrix != 0) & ~pattern, markersize=4, color="red")
    ax.set_title(title)
axes[0].figure.savefig(arguments.output, dpi=120)
if not arguments.headless:
    webbrowser.open(arguments.output.resolve().as_uri())

b = np.arange(robot.nv) - 10.0
assert not H[~pattern].any() and not factor.L[~pattern].any(), "an entry off the pattern is not zero"
assert np.allclose(factor.L.T @ np.diag(factor.D) @ factor.L, H, atol=1e-11), "L^T D L is not H"
assert np.allclose(H @ factor.solve(b), b, atol=1e-9), "the solution does not solve H x = b"
