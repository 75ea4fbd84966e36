"""Identification: from a measured motion to inertial parameters, friction and motor inertia."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from robokit.arguments import check_finite, one_of, real_array, real_number
from robokit.dataclass_tools import cached_attribute, frozen
from robokit.dynamics.equations_of_motion import regressor_entries, regressor_nonzeros
from robokit.dynamics.run import FExt
from robokit.errors import ShapeError, WrongType, warn
from robokit.files import figure_path, replacing
from robokit.identification.measurements import (
    CHUNK,
    FRICTION,
    MOTOR,
    BaseParameters,
    Columns,
    CompressedEquations,
    Measurements,
    check_measurements,
    combinations,
    compress_equations,
    dof_names,
    one_blas_thread,
    structural_combinations,
    triangle,
)
from robokit.model.edit import replace_armature
from robokit.model.inertial_parameters import COUNT
from robokit.model.robot import Robot, check_robot

# ==== the physically consistent fit: the most probable bodies that can exist, with their covariance ====
#     minimise  1/2 |R x - z|^2 + 1/(4 s^2) sum_i (tr S_i - log det(1 + S_i)) + sum_j (y_j - log(1 + y_j))
#
# Body i has the pseudo-inertia L0 (1 + S_i) L0^T, so that S_i = 0 is the prior body, and tr S - log det(1 +
# S) is its divergence from there: the prior, and a barrier too, because it grows without bound where a body
# ceases to be possible. Friction and motor inertias are scale (1 + y_j) > 0, with the same for one number.
#
# The problem is convex, and Newton's method with halved steps finds its minimum from anywhere.
#
# Source: Wensing, Kim, Slotine 2018 (pseudo-inertia); Lee, Wensing, Park 2020 (the divergence as prior).
# Differs: Newton's method here, in place of scipy's least_squares over log-Cholesky parameters (Rucker,
# Wensing 2022): that took hundreds of evaluations for an arm of seven joints, and this takes some ten steps.


MAX_STEPS = 200
DECREMENT_TOLERANCE = 1e-12  # Newton decrement at the minimum, in units of log probability


@frozen
class Prior:
    """What is assumed before the data."""

    bodies: np.ndarray  # inertial parameters, (N, 10); those of free bodies have P > 0
    free: np.ndarray  # the bodies that are fitted, (n,); the others keep these parameters
    deviation: float  # s, the standard deviation of the logarithm of a body's size
    scales: np.ndarray  # of friction and motor inertias, (m,)


@frozen
class Fit:
    """A consistent fit."""

    x: np.ndarray  # all parameters, (p,)
    covariance: np.ndarray  # of them, prior included, (p, p)
    before: np.ndarray  # the prior's covariance alone, (p, p)
    steps: int  # of Newton's method
    converged: bool  # whether the minimum was reached


class _Barrier:
    """The prior's value and derivatives in u, ten numbers of S a free body, then y."""

    def __init__(self, prior: Prior) -> None:
        self.n, self.weight = len(prior.free), 0.25 / prior.deviation**2

    def value(self, u: np.ndarray) -> float:
        """Infinite outside."""
        S, y = self._split(u)
        if (y <= -1.0).any():
            return np.inf
        try:
            L = np.linalg.cholesky(np.eye(4) + S)
        except np.linalg.LinAlgError:
            return np.inf
        trace, logdet = np.trace(S, axis1=1, axis2=2), 2 * np.log(np.einsum("ikk->ik", L)).sum(axis=1)
        return float(self.weight * (trace - logdet).sum() + (y - np.log1p(y)).sum())

    def derivatives(self, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Gradient, and a square root C of the Hessian C^T C."""
        S, y = self._split(u)
        L = np.linalg.cholesky(np.eye(4) + S)
        half = np.linalg.solve(L, np.broadcast_to(np.eye(4), S.shape))
        # The Hessian's entry (a, b) is tr(M E_a M E_b) = <N_a, N_b> with N = L^-1 E L^-T.
        N = half[:, None] @ BASIS @ np.swapaxes(half, -1, -2)[:, None]
        of_bodies = self.weight * (np.trace(BASIS, axis1=1, axis2=2) - np.trace(N, axis1=2, axis2=3))
        blocks = np.sqrt(self.weight) * np.swapaxes(N.reshape(self.n, COUNT, 16), 1, 2)
        C = np.zeros((len(u), len(u)))
        for k, block in enumerate(blocks):
            here = slice(COUNT * k, COUNT * (k + 1))
            C[here, here] = triangle(block)
        last = np.arange(COUNT * self.n, len(u))
        C[last, last] = 1.0 / (1.0 + y)
        return np.concatenate([of_bodies.ravel(), y / (1.0 + y)]), C

    def _split(self, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        S = np.einsum("ia,akl->ikl", u[: COUNT * self.n].reshape(self.n, COUNT), BASIS)
        return S, u[COUNT * self.n :]


def consistent_fit(R: np.ndarray, z: np.ndarray, prior: Prior) -> Fit:
    """The most probable consistent parameters, by the weighted equations R x = z, (k, p) and (k,).

    These are in units of their standard deviations; ``prior`` has the bodies that it starts from, and their
    trust.
    """
    x0 = np.concatenate([prior.bodies.ravel(), prior.scales])
    G = _rates(prior, len(x0))
    A, r0 = R @ G, R @ x0 - z
    barrier = _Barrier(prior)

    def objective(u: np.ndarray) -> float:
        return 0.5 * float(np.sum((A @ u + r0) ** 2)) + barrier.value(u)

    u = np.zeros(G.shape[1])
    value, converged, steps = objective(u), G.shape[1] == 0, 0
    while not converged and steps < MAX_STEPS:
        steps += 1
        gradient, C = barrier.derivatives(u)
        r = A @ u + r0
        # The Newton step in the form of least squares keeps the digits that R^T R would lose.
        target = -np.concatenate([r, np.linalg.solve(C.T, gradient)])
        Q, T = np.linalg.qr(np.vstack([A, C]))
        along = Q.T @ target
        step, decrement = np.linalg.solve(T, along), float(along @ along)
        length, moved = 1.0, np.inf
        while length > 1e-10 and not (moved := objective(u + length * step)) < value:
            length /= 2
        converged = decrement < DECREMENT_TOLERANCE * max(1.0, value) or not moved < value
        if moved < value:
            u, value = u + length * step, moved
    _, C = barrier.derivatives(u)
    half = np.linalg.solve(triangle(np.vstack([A, C])).T, G.T)
    loose = G * np.repeat([2.0 * prior.deviation, 1.0], [COUNT * len(prior.free), len(prior.scales)])
    return Fit(x0 + G @ u, half.T @ half, loose @ loose.T, steps, converged)


def _rates(prior: Prior, p: int) -> np.ndarray:
    """dx/du, (p, unknowns)."""
    n, N = len(prior.free), len(prior.bodies)
    L0 = np.linalg.cholesky(pseudo_inertia(prior.bodies[prior.free]))
    moved = parameters_of(L0[:, None] @ BASIS @ np.swapaxes(L0, -1, -2)[:, None])
    G = np.zeros((p, COUNT * n + len(prior.scales)))
    for k, body in enumerate(prior.free):
        G[COUNT * body : COUNT * (body + 1), COUNT * k : COUNT * (k + 1)] = moved[k].T
    G[COUNT * N :, COUNT * n :] = np.diag(prior.scales)
    return G


# ---- pseudo-inertia ----------------------------------------------------------------------------

ROWS, COLUMNS = np.triu_indices(4)
BASIS = np.zeros((COUNT, 4, 4))  # symmetric matrices of length 1 that span all of them, (10, 4, 4)
BASIS[np.arange(COUNT), ROWS, COLUMNS] = np.where(ROWS == COLUMNS, 1.0, np.sqrt(0.5))
BASIS[np.arange(COUNT), COLUMNS, ROWS] = BASIS[np.arange(COUNT), ROWS, COLUMNS]

LEAST_THICKNESS_SHARE = 1e-3
"""Least principal second moment of a prior body, as a share of their sum: a rod is given this thickness."""

LEAST_GYRATION_RADIUS = 0.02  # radius of gyration of a prior body that is a point [m]


def pseudo_inertia(parameters: np.ndarray) -> np.ndarray:
    """P of inertial parameters, (..., 10) -> (..., 4, 4)."""
    m, hx, hy, hz, xx, xy, yy, xz, yz, zz = np.moveaxis(np.asarray(parameters, dtype=float), -1, 0)
    half = 0.5 * (xx + yy + zz)
    rows = [[half - xx, -xy, -xz, hx], [-xy, half - yy, -yz, hy], [-xz, -yz, half - zz, hz], [hx, hy, hz, m]]
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def parameters_of(P: np.ndarray) -> np.ndarray:
    """Inertial parameters of P, (..., 4, 4) -> (..., 10)."""
    a, b, c = P[..., 0, 0], P[..., 1, 1], P[..., 2, 2]
    d, e, f = P[..., 0, 1], P[..., 0, 2], P[..., 1, 2]
    hx, hy, hz, m = (P[..., k, 3] for k in range(4))
    return np.stack([m, hx, hy, hz, b + c, -d, a + c, -e, -f, a + b], axis=-1)


def second_moments(parameters: np.ndarray) -> np.ndarray:
    """What consistency asks to be positive: m and the principal moments of x x^T dm about the centre of mass.

    Of parameters (..., 10), (..., 4): m [kg], then the moments [kg m^2] in ascending order.
    """
    P = pseudo_inertia(parameters)
    m, h = P[..., 3, 3], P[..., :3, 3]
    k = 1.0 / np.where(m > 0.0, m, 1.0)
    about = P[..., :3, :3] - h[..., :, None] * h[..., None, :] * k[..., None, None]
    return np.concatenate([m[..., None], np.linalg.eigvalsh(about)], axis=-1)


def nearest_possible(parameters: np.ndarray) -> np.ndarray:
    """The nearest parameters that a body of some thickness has, (n, 10) with positive masses."""
    P = pseudo_inertia(parameters)
    out = np.array(parameters, dtype=float)
    for k, body in enumerate(P):
        m, c = body[3, 3], body[:3, 3] / body[3, 3]
        values, axes = np.linalg.eigh(body[:3, :3] - m * np.outer(c, c))
        least = max(
            LEAST_THICKNESS_SHARE * np.abs(values).sum(), LEAST_THICKNESS_SHARE * m * LEAST_GYRATION_RADIUS**2
        )
        if values.min() >= least:
            continue
        Sigma = (axes * np.maximum(values, least)) @ axes.T
        body[:3, :3] = Sigma + m * np.outer(c, c)
        out[k] = parameters_of(body)
    return out


# ==== identify ====================================================================================


# ---- What an identification has found: parameters, how certain they are, a robot that has them ---

WELL_DETERMINED_SHARE = 0.1  # share of its prior deviation left to a combination that data determine well


@frozen(eq=False)
class Identification:
    """The estimate of :func:`robokit.identify`.

    p is the number of all parameters: 10 N inertial ones, then friction and armature of each joint.

    Attributes:
        columns: which parameters were fitted; ``columns.robot`` is the robot as it was given.
        x: all parameters, (p,): the physically consistent estimate.
        covariance: covariance of x, prior included, (p, p). It holds for white noise on tau; filtered or
            systematic errors make it too small.
        prior: the inertial parameters that the fit started from, (N, 10).
        base: the combinations of the p parameters that the data determine one by one.
        base_values: their estimate from the data alone, without prior and consistency, (n,).
        base_covariance: covariance of ``base_values``, (n, n).
        base_before: standard deviations of the combinations before the data, (n,).
        possible_combinations: how many a richer motion could determine.
        noise: standard deviation of each joint force, estimated from its own equations, (nv,) [N m | N]; the
            least-squares weights are its reciprocals. Zero where ``weights`` were given.
        residual: root mean square of the part of each joint force that the estimate does not explain, (nv,)
            [N m | N].
        data: the motion.
        steps: number of steps of Newton's method.
        converged: whether it reached the minimum.
    """

    columns: Columns
    x: np.ndarray
    covariance: np.ndarray
    prior: np.ndarray
    base: BaseParameters
    base_values: np.ndarray
    base_covariance: np.ndarray
    base_before: np.ndarray
    possible_combinations: int
    noise: np.ndarray
    residual: np.ndarray
    data: Measurements
    steps: int
    converged: bool

    # ---- parameters ----------------------------------------------------------------------------

    @property
    def parameters(self) -> np.ndarray:
        """Inertial parameters of the bodies 1..N, (N, 10), all of them physically possible."""
        return self.x[: self.columns.inertial].reshape(-1, COUNT)

    @property
    def deviations(self) -> np.ndarray:
        """Standard deviations of :attr:`parameters`, (N, 10)."""
        return self._deviation[: self.columns.inertial].reshape(-1, COUNT)

    @property
    def names(self) -> list[str]:
        """Names of all parameters, (p,)."""
        return self.columns.names()

    @property
    def viscous(self) -> np.ndarray:
        """Viscous friction, (nv,) [N m s/rad | N s/m]; zero where it was not fitted."""
        return self.columns.by_dof(self.x, "viscous")

    @property
    def coulomb(self) -> np.ndarray:
        """Coulomb friction, (nv,) [N m | N]."""
        return self.columns.by_dof(self.x, "coulomb")

    @property
    def armature(self) -> np.ndarray:
        """Inertia of the motors as the joints feel it, (nv,) [kg m^2 | kg]."""
        return self.columns.by_dof(self.x, MOTOR)

    @property
    def base_deviations(self) -> np.ndarray:
        """Standard deviations of the combinations, from the data alone, (n,)."""
        return np.sqrt(np.diag(self.base_covariance))

    @property
    def well_determined(self) -> np.ndarray:
        """Which combinations' standard deviations the data reduce to a tenth or less, boolean (n,)."""
        return self.base_deviations < WELL_DETERMINED_SHARE * self.base_before

    @property
    def second_moments(self) -> np.ndarray:
        """Mass and principal second moments about the centre of mass, (N, 4); positive for real bodies."""
        return second_moments(self.parameters)

    @property
    def _deviation(self) -> np.ndarray:
        return np.sqrt(np.maximum(np.diag(self.covariance), 0.0))

    @cached_attribute
    def robot(self) -> Robot:
        """The robot with these parameters.

        Joints of one degree of freedom have the damping, friction and armature that were found. Links that
        are fixed to another become massless: the parameters are those of the whole body.
        """
        before = self.columns.robot
        rows = np.vstack([before.inertial_parameters[:1], self.parameters])
        found = before.with_inertias(rows)
        single = {j.name: j.v_slice.start for j in before.joints if j.v_slice.stop - j.v_slice.start == 1}
        joints = []
        for joint in before.joints:
            k = joint.v_slice.start
            change: dict[str, Any] = {}
            if joint.name in single and "viscous" in self.columns.kinds:
                change["damping"] = float(self.viscous[k])
            if joint.name in single and "coulomb" in self.columns.kinds:
                change["friction"] = float(self.coulomb[k])
            joints.append(replace(joint, **change))
        found = replace(found, joints=tuple(joints))
        if MOTOR in self.columns.kinds:
            rotors = {name: float(self.armature[k]) for name, k in single.items()}
            found = replace_armature(found, rotors | {joint.name: 0.0 for joint in before.mimic_joints})
        return found

    # ---- forces --------------------------------------------------------------------------------

    def predict(self, q: Any, v: Any, a: Any) -> np.ndarray:
        """Joint forces that a motion requires, (B, nv) [N m | N]: those of the bodies, of friction and of the
        motors' inertia.

        Args:
            q, v, a: states, (B, nq) and (B, nv).

        Raises:
            ShapeError: as in :func:`identify`.
        """
        return predicted_forces(self.columns, self.x, check_measurements(self.columns.robot, q, v, a))

    # ---- reports -------------------------------------------------------------------------------

    def summary(self) -> str:
        """A summary of the estimate, in lines of at most 80 columns."""
        robot = self.columns.robot
        well = int(self.well_determined.sum())
        least = self.second_moments.min(initial=np.inf)
        lines = [
            f"{robot.name[:40]}: {len(self.data.q)} states, {len(self.x)} parameters",
            f"{len(self.base)} of {self.possible_combinations} combinations excited, {well} of them known "
            f"to {WELL_DETERMINED_SHARE:.0%} of the prior",
            f"{self.steps} Newton steps, {'converged' if self.converged else 'NOT CONVERGED'}; "
            + ("every body is possible" if least > 0.0 else "held bodies without mass or thickness"),
            "",
            f"{'joint':<22}{'noise':>10}{'residual':>10}"
            + "".join(f"{kind:>12}" for kind in self.columns.kinds),
        ]
        for k, name in enumerate(dof_names(robot)):
            more = (f"{self.columns.by_dof(self.x, kind)[k]:12.4g}" for kind in self.columns.kinds)
            lines.append(f"{shorten(name):<22}{self.noise[k]:10.3g}{self.residual[k]:10.3g}{''.join(more)}")
        lines += ["", f"{'body':<22}{'mass [kg]':>12}{'+-':>10}{'prior':>12}   centre of mass [m]"]
        for i, (row, deviation, before) in enumerate(
            zip(self.parameters, self.deviations, self.prior, strict=True), 1
        ):
            c = row[1:4] / row[0] if row[0] > 0.0 else np.zeros(3)
            centre = " ".join(f"{x:6.3f}" for x in c)
            name = shorten(robot.body_name(i))
            lines.append(f"{name:<22}{row[0]:12.4g}{deviation[0]:10.2g}{before[0]:12.4g}   {centre}")
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        return (
            f"<Identification of {self.columns.robot.name!r}: {len(self.base)} combinations, "
            f"{len(self.data.q)} states>"
        )

    def plot(self, path: str | Path, q: Any = None, v: Any = None, a: Any = None, tau: Any = None) -> Path:
        """Write a figure: joint forces, measured and predicted, and how certain each combination is.

        Args:
            path: .png, .svg, .pdf or another format that matplotlib writes; ".png" is appended if it has no
                suffix.
            q, v, a, tau: another motion, (B, nq) and (B, nv), to compare with; that of the fit if None.

        Returns:
            The path.

        Raises:
            ShapeError: as in :func:`identify`, or an ending that matplotlib does not write.
            WriteError: the file cannot be written.
        """
        robot = self.columns.robot
        data = self.data if q is None else check_measurements(robot, q, v, a, tau)
        prior = np.zeros(len(self.x))
        prior[: self.prior.size] = self.prior.ravel()
        scale = np.where(self.base_before > 0.0, self.base_before, 1.0)
        off = (self.base_values - self.base.values(prior)) / scale
        certainty = Certainty(self.base.expressions, off, self.base_deviations / scale, self.well_determined)
        return write_figure(
            path, dof_names(robot), data.tau, predicted_forces(self.columns, self.x, data), certainty
        )


def shorten(name: str, most: int = 21) -> str:
    """A name in so many characters: its beginning and its end."""
    return name if len(name) <= most else f"{name[: most // 2 - 1]}..{name[most // 2 - most + 1 :]}"


def predicted_forces(columns: Columns, x: np.ndarray, data: Measurements) -> np.ndarray:
    """Joint forces of parameters x, (B, nv)."""
    robot = columns.robot
    rows, places = regressor_entries(robot)
    tau = np.zeros((len(data.q), robot.nv))
    first, starts = np.unique(rows, return_index=True)
    for start in range(0, len(tau), CHUNK):
        part = slice(start, start + CHUNK)
        Y = regressor_nonzeros(robot, data.q[part], data.v[part], data.a[part])
        if len(rows):
            tau[part, first] = np.add.reduceat(Y * x[places], starts, axis=1)
    tau += columns.known_motors * data.a
    for kind in (*FRICTION, MOTOR):
        tau += columns.joint_rates(kind, data.v, data.a) * columns.by_dof(x, kind)
    return tau


# ---- the figure --------------------------------------------------------------------------------

MAX_JOINTS, MAX_NAMES = 8, 90
MEASURED, PREDICTED, LEFT = "#9aa7b8", "#1f5fbf", "#c4473a"


@frozen
class Certainty:
    """Combinations of parameters, in standard deviations of the prior."""

    names: Sequence[str]  # of the combinations, n
    off: np.ndarray  # estimates minus prior, (n,)
    deviations: np.ndarray  # of the estimates, (n,)
    well: np.ndarray  # which are well determined, boolean (n,)


def write_figure(
    path: str | Path, joints: Sequence[str], tau: np.ndarray, predicted: np.ndarray, certainty: Certainty
) -> Path:
    """Draw to a file; see :meth:`Identification.plot`."""
    path = figure_path(path)
    from matplotlib.figure import Figure

    size = np.sqrt(np.mean(tau**2, axis=0))
    shown = np.sort(np.argsort(-size, kind="stable")[:MAX_JOINTS])
    figure = Figure(figsize=(11.0, 1.4 + 1.15 * max(3, len(shown))), layout="constrained")
    grid = figure.add_gridspec(1, 2, width_ratios=(1.6, 1.0))
    left, right = figure.add_subfigure(grid[0]), figure.add_subfigure(grid[1])
    panels = left.subplots(max(1, len(shown)), 1, sharex=True, squeeze=False)[:, 0]
    for axes, k in zip(panels, shown, strict=False):
        axes.plot(tau[:, k], color=MEASURED, lw=2.2, label="measured")
        axes.plot(predicted[:, k], color=PREDICTED, lw=0.9, label="predicted")
        axes.plot(tau[:, k] - predicted[:, k], color=LEFT, lw=0.7, label="difference")
        rms = np.sqrt(np.mean((tau[:, k] - predicted[:, k]) ** 2))
        axes.set_title(f"{_plain(joints[k])}: {rms:.3g} of {size[k]:.3g} left", fontsize=8, loc="left", pad=2)
        axes.tick_params(labelsize=7)
        axes.margins(x=0)
    panels[-1].set_xlabel("state", fontsize=8)
    left.supylabel("joint force [N m | N]", fontsize=8)
    panels[0].legend(fontsize=7, loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=3, frameon=False)
    _draw_combinations(right.subplots(), certainty)
    with replacing(path) as beside:
        figure.savefig(beside, dpi=130, facecolor="white")
    return path


def _draw_combinations(axes: Any, certainty: Certainty) -> None:
    """Each combination's estimate and two deviations of it, the most certain at the bottom."""
    order = np.argsort(certainty.deviations, kind="stable")
    off, bars, well = (x[order] for x in (certainty.off, certainty.deviations, certainty.well))
    places = np.arange(len(order))
    for chosen, color in ((well, PREDICTED), (~well, LEFT)):
        axes.errorbar(off[chosen], places[chosen], xerr=2 * bars[chosen], fmt="o", ms=3, lw=1, color=color)
    axes.axvline(0.0, color=MEASURED, lw=1)
    axes.set(xlim=(-3.0, 3.0), ylim=(-1.0, len(order)))
    axes.set_title(
        f"{len(order)} combinations, blue: well determined ({int(well.sum())})", fontsize=8, loc="left"
    )
    axes.set_xlabel("estimate - prior [deviations of the prior]", fontsize=8)
    named = len(order) <= MAX_NAMES
    words = [_short(certainty.names[k]) for k in order] if named else []
    axes.set_yticks(places if named else [], words, fontsize=4.5)
    axes.tick_params(axis="x", labelsize=7)


def _short(expression: str) -> str:
    return _plain(expression if len(expression) <= 34 else expression[:31] + "...")


def _plain(name: str) -> str:
    """Without matplotlib's math mark-up."""
    return name.replace("$", r"\$")


LEAST_NOISE = 1e-8  # smallest assumed error of a joint force, over the rms of all forces


def identify(
    robot: Robot,
    q: Any,
    v: Any,
    a: Any,
    tau: Any,
    *,
    f_ext: FExt = None,
    friction: bool | str | Iterable[str] = False,
    armature: bool = False,
    prior: Robot | Any = None,
    prior_deviation: float = 1.0,
    weights: Any = None,
    fixed: Iterable[str] = (),
    progress: bool = False,
) -> Identification:
    """Physically consistent inertial parameters from a measured motion, and their uncertainty.

    tau = Y(q, v, a) pi + viscous v + coulomb sign(v) + armature a + noise

    The estimate is the maximum a posteriori. Each joint is weighted by its noise, which is estimated from its
    own equations. Every body has a positive definite pseudo-inertia: its mass is positive, and its moments
    are those of a mass distribution. Combinations that the motion does not excite keep their prior values.
    Apply the same filter to q, v, a and tau first; noise on v and a is not modelled.

    Source: Wensing, Kim, Slotine 2018; Lee, Wensing, Park 2020.  Cost: O(B n d^2) for the equations, then
    about ten Newton steps of O(p^3) for p parameters.

    Args:
        robot: the robot: its joints, its gravity, and the prior bodies unless ``prior`` is given.
        q: configurations of the motion [rad | m | unit quaternion wxyz], (B, nq).
        v: velocities [rad/s | m/s], (B, nv).
        a: accelerations [rad/s^2 | m/s^2], (B, nv).
        tau: joint forces [N m | N], (B, nv); zero for the six of a floating base.
        f_ext: measured forces on the bodies, as in :func:`rnea`; also those of loop joints.
        friction: what to estimate: "viscous", "coulomb", or True for both.
        armature: whether to estimate the inertia of the motors; otherwise that of the robot is used.
        prior: another robot with the same bodies, or inertial parameters (N + 1, 10). Bodies without mass
            in the prior keep none.
        prior_deviation: standard deviation of the logarithm of a body's size: 0.1 for bodies that are known
            to about ten per cent, 1 for a guess.
        weights: 1 over the standard deviations of tau, (nv,) or (B, nv), zero for forces to be left out;
            estimated from the data if None.
        fixed: links whose bodies keep the prior's parameters.
        progress: whether to show a bar on stderr.

    Returns:
        the estimate, which can be printed and plotted; its ``.robot`` can be simulated.

    Raises:
        ShapeError: a wrong shape, too few states, forces that are all zero, or a prior without masses; names
            the argument.
        InvalidValue: NaN or infinity.
        UnknownName: a kind of friction or a link that does not exist.
        WrongType: not a robot, or an argument of a wrong type.

    Example:
        >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        >>> rng = np.random.default_rng(0)
        >>> q, v, a = rng.normal(size=(3, 200, 2))
        >>> tau = rk.rnea(robot, q, v, a) + 0.01 * rng.normal(size=(200, 2))
        >>> found = rk.identify(robot, q, v, a, tau)
        >>> np.allclose(rk.rnea(found.robot, q, v, a), rk.rnea(robot, q, v, a), atol=0.02)
        True
    """
    check_robot(robot)
    for name, value in (("armature", armature), ("progress", progress)):
        if not isinstance(value, bool | np.bool_):
            raise WrongType(name, value, "True or False")
    columns = Columns(robot, (*_friction_kinds(friction), *([MOTOR] if armature else [])))
    bodies = _prior_bodies(robot, prior)
    deviation = real_number("prior_deviation", prior_deviation, above=0.0)
    if isinstance(fixed, str | bytes) or not isinstance(fixed, Iterable):
        raise WrongType("fixed", fixed, "names of links")
    held = {robot.link(name).body for name in fixed}
    data = check_measurements(robot, q, v, a, tau, f_ext, weights)
    if robot.loop_joints and f_ext is None:
        warn(
            f"identify: robot {robot.name!r} has loop joints, whose forces on their two links count as zero; "
            "give them as f_ext",
            UserWarning,
        )
    with one_blas_thread():
        parts = compress_equations(columns, data, progress)
        noise = _noise(robot, parts) if data.weights is None else np.zeros(robot.nv)
        trust = 1.0 / noise if data.weights is None else np.ones(robot.nv)
        # R and z of all equations, each joint's times its trust.
        rows = [np.column_stack([part.R, part.z]) * w for part, w in zip(parts, trust, strict=True)]
        T = triangle(np.vstack([np.zeros((0, columns.size + 1)), *rows]))
        R, z = T[:, :-1], T[:, -1]
        free = _free_bodies(robot, bodies, held)
        bodies[free] = nearest_possible(bodies[free])
        is_free, rest = _unknowns(columns, bodies, free, R, z)
        fit = consistent_fit(R, z, Prior(bodies, free, deviation, _scales(columns, data)))
        base = combinations(columns.names(), R * is_free)
        # What the data alone say of independent combinations.
        W = R[:, base.independent]
        inverse = np.linalg.solve(triangle(W), np.eye(W.shape[1]))
        values, covariance = np.linalg.lstsq(W, rest, rcond=None)[0], inverse @ inverse.T
        possible = len(structural_combinations(columns, is_free))
    if not fit.converged:
        warn(f"identify: Newton's method stopped after {fit.steps} steps", UserWarning)
    if len(base) < possible:
        warn(
            f"identify: the motion excites {len(base)} of {possible} combinations of parameters; the others "
            "stay where the prior has them (see .base)",
            UserWarning,
        )
    errors = data.tau - predicted_forces(columns, fit.x, data)
    residual = np.sqrt(np.mean(errors**2, axis=0))
    if data.weights is None:
        off = find_outliers(data, np.abs(errors))
        warn_unexplained(robot, parts, data, np.abs(errors), off)
        warn_impossible(robot, data, residual, noise)
        warn_outliers(robot, off)
    return Identification(
        columns=columns, x=fit.x, covariance=fit.covariance, prior=bodies, base=base, base_values=values,
        base_covariance=covariance,
        base_before=np.sqrt(np.einsum("ij,jk,ik->i", base.matrix, fit.before, base.matrix)),
        possible_combinations=possible, noise=noise, residual=residual, data=data, steps=fit.steps,
        converged=fit.converged,
    )  # fmt: skip


def _free_bodies(robot: Robot, bodies: np.ndarray, held: set[int]) -> np.ndarray:
    """Places of the fitted bodies among 1..N: those with mass that the caller does not hold fixed."""
    free = np.array([i for i, row in enumerate(bodies) if row[0] > 0.0 and i + 1 not in held], dtype=int)
    if not len(free) and len(held) < robot.nbodies:
        raise ShapeError(
            f"prior: no body of robot {robot.name!r} has mass, and what has none keeps none; give a "
            "guess, prior=parameters like robot.inertial_parameters or another robot"
        )
    return free


def _unknowns(
    columns: Columns, bodies: np.ndarray, free: np.ndarray, R: np.ndarray, z: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Which parameters are fitted, (p,), and the right-hand side without the others, (k,)."""
    is_free = np.ones(columns.size, dtype=bool)
    is_free[: columns.inertial] = np.repeat(np.isin(np.arange(len(bodies)), free), COUNT)
    known = np.concatenate([bodies.ravel(), np.zeros(columns.size - columns.inertial)])
    known[is_free] = 0.0
    rest = z - R @ known
    if len(rest) and not rest.any():
        raise ShapeError(
            "tau: expected measured forces, all are zero, from which no mass can be determined; give those "
            "of the motion, or what else is known: forces as f_ext=, bodies as fixed="
        )
    return is_free, rest


def _friction_kinds(kinds: bool | str | Iterable[str]) -> tuple[str, ...]:
    if isinstance(kinds, bool | np.bool_):
        return FRICTION if kinds else ()
    if isinstance(kinds, str) or not isinstance(kinds, Iterable):
        kinds = [kinds]  # type: ignore[list-item]
    names = {one_of("friction", name, FRICTION) for name in kinds}
    return tuple(kind for kind in FRICTION if kind in names)


def _prior_bodies(robot: Robot, prior: Any) -> np.ndarray:
    """Inertial parameters of the bodies 1..N, (N, 10)."""
    rows = robot.nbodies + 1
    source = robot if prior is None else prior
    if isinstance(source, Robot):
        if source.samples is not None:
            raise ShapeError(
                f"prior: expected one set of inertial parameters, got {source.samples} samples; "
                "give robot.sample(k)"
            )
        source = source.inertial_parameters
    if isinstance(source, str | bytes):
        raise WrongType("prior", source, f"a Robot or inertial parameters ({rows}, {COUNT})")
    array = real_array("prior", source, f"({rows}, {COUNT})")
    if array.shape != (rows, COUNT):
        raise ShapeError(
            f"prior: expected the {rows} bodies of robot {robot.name!r}, ({rows}, {COUNT}) like "
            f"robot.inertial_parameters, got shape {array.shape}"
        )
    check_finite("prior", array)
    if (array[1:, 0] < 0.0).any():
        i = int(array[1:, 0].argmin()) + 1
        raise ShapeError(f"prior: expected masses >= 0, got {array[i, 0]:.6g} kg for {robot.body_name(i)!r}")
    return np.array(array[1:])


def _noise(robot: Robot, parts: Sequence[CompressedEquations]) -> np.ndarray:
    """Standard deviation of each joint force, from what its own best parameters leave, (nv,)."""
    for name, part in zip(dof_names(robot), parts, strict=True):
        if part.count <= part.rank:
            raise ShapeError(
                f"q, v, a, tau: {part.count} state{'s are' if part.count > 1 else ' is'} too few for joint "
                f"{name!r}, whose force depends on {part.rank} combination{'s' * (part.rank > 1)} of "
                f"parameters in them; give more than {part.rank}, or weights="
            )
    least = LEAST_NOISE * np.sqrt(np.mean([part.scale for part in parts] or [0.0])) or LEAST_NOISE
    return np.array([max(np.sqrt(part.rest / (part.count - part.rank)), least) for part in parts])


def _scales(columns: Columns, data: Measurements) -> np.ndarray:
    """Friction and motor inertia that would account for all of a joint's force."""
    tau = np.sqrt(np.mean(data.tau**2, axis=0))
    out = []
    for kind in columns.kinds:
        rate = np.sqrt(np.mean(columns.joint_rates(kind, data.v, data.a) ** 2, axis=0))
        scale = np.where((rate > 0.0) & (tau > 0.0), tau / np.where(rate > 0.0, rate, 1.0), 1.0)
        out.append(scale[columns.dofs])
    return np.concatenate(out) if out else np.zeros(0)


# ---- warnings ----------------------------------------------------------------------------------

UNEXPLAINED_SHARE = 0.5  # residual over a force's rms above which the data must be wrong

OUTLIER_FACTOR, OUTLIER_FORCE_SHARE, OUTLIER_COUNT_SHARE = 10.0, 0.1, 0.1
"""Outliers: least error in usual errors, least fraction of the force, and largest fraction of all forces."""

MAX_JOINTS_NAMED = 3  # number of joints that a warning of outliers names
MEDIAN_OF_NORMAL = 0.6745  # median magnitude of normally distributed noise, in standard deviations


def warn_impossible(robot: Robot, data: Measurements, residual: np.ndarray, noise: np.ndarray) -> None:
    """Warn where some parameters account for a force, but none of bodies that can exist."""
    size = np.sqrt(np.mean(data.tau**2, axis=0))
    bad = np.flatnonzero((residual > UNEXPLAINED_SHARE * size) & (noise < 0.5 * residual))
    if bad.size:
        warn(
            "identify: no bodies that can exist account for the force of joint "
            f"{dof_names(robot)[bad[0]]!r}{_constant(data.tau[:, bad[0]])}: more than half of it is left, "
            "which masses or moments below zero would explain; look at the sign of tau, at gravity, at units "
            "and order of q, v and a, and at the prior",
            UserWarning,
        )


def find_outliers(data: Measurements, errors: np.ndarray) -> np.ndarray:
    """Which single forces are far off where the others are not, (B, nv): spikes, impacts, lost samples."""
    usual = np.median(errors, axis=0) / MEDIAN_OF_NORMAL
    size = np.sqrt(np.mean(data.tau**2, axis=0))
    off = errors > np.maximum(OUTLIER_FACTOR * usual, OUTLIER_FORCE_SHARE * size)
    off[:, (off.mean(axis=0) > OUTLIER_COUNT_SHARE) | (usual > OUTLIER_FORCE_SHARE * size)] = (
        False  # where all is off, none is odd
    )
    return off


def warn_unexplained(
    robot: Robot,
    parts: Sequence[CompressedEquations],
    data: Measurements,
    errors: np.ndarray,
    off: np.ndarray,
) -> None:
    """Warn where no parameters account for a force, though not where a few outliers alone are the reason."""
    for k, (name, part) in enumerate(zip(dof_names(robot), parts, strict=True)):
        left = np.sqrt(part.rest / (part.count - part.rank)) > UNEXPLAINED_SHARE * np.sqrt(part.scale)
        kept = ~off[:, k]
        rest, size = (np.sqrt(np.mean(x[kept, k] ** 2)) for x in (errors, data.tau))
        if left and not (off[:, k].any() and rest < UNEXPLAINED_SHARE * size):
            warn(
                "identify: no parameters account for the force of joint "
                f"{name!r}{_constant(data.tau[:, k])}: more than half of it is left; look at sign, unit, "
                "order and filters of q, v, a and tau",
                UserWarning,
            )


def warn_outliers(robot: Robot, off: np.ndarray) -> None:
    """Warn of single forces that are far off, with the joints that have them, the most first."""
    count, names = off.sum(axis=0), dof_names(robot)
    found = [
        f"{count[k]} of the {len(off)} forces of joint {names[k]!r}, the first in state {off[:, k].argmax()}"
        for k in np.argsort(-count, kind="stable")
        if count[k]
    ]
    if found:
        rest = len(found) - MAX_JOINTS_NAMED
        more = f" (and more of {rest} other joints)" if rest > 0 else ""
        warn(
            f"identify: outliers, {'; '.join(found[:MAX_JOINTS_NAMED])}{more}: more than {OUTLIER_FACTOR:g} "
            "times as far off as is usual; outliers count as much as all others: if they are no part of the "
            "motion, leave them out with weights=, 0 for each of them",
            UserWarning,
        )


def _constant(force: np.ndarray) -> str:
    """In words, that a force does not change, as if nobody measured it; "" where it does."""
    return "" if np.ptp(force) else f", which is {force[0]:.6g} in all states"
