"""What each line of the algorithms does, in a sentence, by the line's own text."""

CAPTIONS = {
    # loops and branches, of several algorithms
    "for i in tree.outward():": "From the root to the tips: a parent comes before its children.",
    "for i in tree.inward():": "From the tips to the root: children come before their parent.",
    "p = tree.parent[i]": "The parent of body i.",
    "if p != 0:": "Does the joint hang on another moving body?",
    "if f_ext is not None:": "Are there forces from outside?",
    "S = tree.joint[i].S": "The directions that joint i leaves free.",
    "X[i] = tree.X(i, q[i])": "From the parent's coordinates to the body's, at the joint position q.",
    "vJ = S * qd[i]": "What the joint itself adds to the velocity.",
    "v[0] = Motion.zero()": "The root stands still.",
    "a[0] = Motion(Vector3.zero(), tree.a0)": "The root accelerates with −g: so gravity enters.",
    # RNEA
    "X, v, a, f, tau = tree.lists(5)": "A place for each body's quantities.",
    "p, S, I = tree.parent[i], tree.joint[i].S, tree.I[i]": "Body i: its parent, its joint, its inertia.",
    "v[i] = X[i] @ v[p] + vJ": "The parent's velocity in own coordinates, plus the joint's.",
    "a[i] = X[i] @ a[p] + S * qdd[i] + v[i].cross(vJ)": (
        "The parent's acceleration, the joint's, and what turning makes of the joint velocity."
    ),
    "f[i] = I @ a[i] + v[i].cross_force(I @ v[i])": "Newton and Euler: the force that moves this body alone.",
    "f[i] = f[i] - f_ext[i]": "What the ground gives, the joint need not.",
    "tau[i] = rotor_forces(tree, i, tree.joint[i].S.T @ f[i], qdd[i])": (
        "The part of f along the free directions, and what the joint's rotor takes, is the joint force."
    ),
    "f[p] = f[p] + X[i].T @ f[i]": "The parent's joint carries the child's force too.",
    "return tau": "The joint forces of all joints.",
    # CRBA
    "return composite(tree, tree.transforms(q), tree.I)": "All transforms first, then the composites.",
    "H = [[0.0] * tree.nv for _ in range(tree.nv)]": "Zeros: joints on different branches keep them.",
    "for i, Ic in composite_inertias(tree, X, I):": "Asks for the next body with its composite inertia.",
    "F = S.of(Ic)": "The force that gives the composite unit acceleration about joint i.",
    "block = [S.T @ column for column in F]": "What joint i itself feels of it: the diagonal of H.",
    "add_rotors(tree, i, block)": "The joint's rotor adds to the diagonal, if it has one.",
    "_put(H, tree, i, i, block)": "The diagonal entry of H is done.",
    "j = i": "Now from i to the root, along its branch.",
    "while tree.parent[j] != 0:": "Is there another joint on the way to the root?",
    "F = [X[j].T @ column for column in F]": "The same force, in the coordinates of the body before.",
    "j = tree.parent[j]": "One body closer to the root.",
    "_put(H, tree, i, j, [tree.joint[j].S.T @ column for column in F])": (
        "What joint j feels of the force: the entries H(i, j) and H(j, i)."
    ),
    "return H": "All entries on common branches are there, the others stay 0.",
    "Ic = list(I)": "Each composite begins as the body alone.",
    "Ic[p] = Ic[p] + X[i].T @ Ic[i] @ X[i]": "The parent's composite gains body i's, in its own coordinates.",
    "yield i, Ic[i]": "I^c of body i is complete: everything beyond it is in.",
    # LTDL
    "n = len(parent)": "The number of degrees of freedom.",
    "L = [list(row) for row in H]": "L begins as a copy of H.",
    "for k in reversed(range(n)):": "From the last degree of freedom to the first, so that nothing fills in.",
    "d = 1.0 / L[k][k]": "The pivot of row k.",
    "i = parent[k]": "The row above k on its branch.",
    "while i >= 0:": "Still on the branch? Rows elsewhere have nothing to do with k.",
    "a = L[k][i] * d": "How much of row k goes into row i.",
    "while j >= 0:": "Only columns on the branch: the others are 0 and stay 0.",
    "L[i][j] = L[i][j] - L[k][j] * a": "Elimination: row i loses its share of row k.",
    "j = parent[j]": "The column before it on the branch.",
    "L[k][i] = a": "The multiplier is the entry of L.",
    "i = parent[i]": "The row before it on the branch.",
    "D = [L[k][k] for k in range(n)]": "What is left on the diagonal is D.",
    "for k in range(n):": "Row by row:",
    "L[k] = [*L[k][:k], 1.0, *[0.0] * (n - k - 1)]": "L gets ones on its diagonal and zeros above.",
    "return L, D": "H = LᵀDL, and L is as sparse as H.",
    # ABA
    "X, v, c, IA, pA, U, D, u, a, qdd = tree.lists(10)": "A place for each body's quantities.",
    "S, I = tree.joint[i].S, tree.I[i]": "Body i: its joint and its inertia.",
    "v[i] = X[i] @ v[tree.parent[i]] + vJ": "The parent's velocity in own coordinates, plus the joint's.",
    "c[i] = v[i].cross(vJ)": "The acceleration that velocities alone bring.",
    "IA[i] = I.articulated()": "The articulated inertia begins as the body alone.",
    "pA[i] = v[i].cross_force(I @ v[i])": "The force of the body at zero acceleration.",
    "pA[i] = pA[i] - f_ext[i]": "The ground's force counts against it.",
    "p, S = tree.parent[i], tree.joint[i].S": "Body i: its parent and its joint.",
    "U[i] = S.of(IA[i])": "The force for unit acceleration about joint i, all joints beyond it free.",
    "rows = [S.T @ column for column in U[i]]": "What joint i feels of it: its apparent inertia.",
    "rotors = add_rotors(tree, i, rows)": "The joint's rotor adds to it, if it has one.",
    "D[i] = ldl(rows)": "Factorised, to divide by it.",
    "u[i] = [t - s for t, s in zip(tau[i], S.T @ pA[i], strict=True)]": (
        "The joint force that is left to accelerate: tau less what the bias force takes."
    ),
    "Ia = without_joint(IA[i], U[i], D[i])": "The parent does not feel what gives way about the free joint.",
    "if not rotors:": "Without rotors nothing at all is left along S:",
    "Ia = Ia.without(S.axes)": "these entries are exactly 0.",
    "pa = pA[i] + Ia @ c[i] + combine(U[i], ldl_solve(D[i], u[i]))": "The bias force that the parent feels.",
    "IA[p] = IA[p] + X[i].T @ Ia @ X[i]": "The parent's articulated inertia gains it, in own coordinates.",
    "pA[p] = pA[p] + X[i].T @ pa": "And so does its bias force.",
    "a[i] = X[i] @ a[tree.parent[i]] + c[i]": "The acceleration that the parent brings.",
    "qdd[i] = ldl_solve(D[i], [ui - a[i].dot(column) for ui, column in zip(u[i], U[i], strict=True)])": (
        "The joint acceleration: what is left of u, divided by D."
    ),
    "a[i] = a[i] + S * qdd[i]": "The body's own acceleration, for its children.",
    "return qdd": "The accelerations of all joints.",
}
"""Sentences by line; where two algorithms have the same line, one sentence serves both."""
