"""The mass matrix: zeros that follow from the tree, and a factorisation that keeps them.

H(i, j) is zero if joints i and j are on different branches: an acceleration of the right leg needs no torque
in the left arm. This depends on the tree only; rk.inertia_sparsity(robot) needs no configuration.

Cholesky's factorisation H = L L^T starts at the base and fills these zeros. The factorisation H = L^T D L
starts at the leaves, and its factor has the pattern of H. This takes the least work possible: each joint is
combined only with the joints between itself and the base.

    H = rk.crba(robot, q);  factor = rk.ltdl(robot, H);  x = factor.solve(b)

The picture shows the three patterns; added entries are red. `robokit sparsity humanoid --base floating` draws
the same beside the tree.

Check: entries outside the pattern are exactly zero, in H and in L; L^T D L is H; and x solves H x = b.
"""

import argparse
import webbrowser
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import robokit as rk
from robokit.model.tree import ltdl_counts

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
