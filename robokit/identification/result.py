"""What an identification has found: parameters, how certain they are, a robot that has them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from robokit.caching import cached_attribute
from robokit.dynamics.regressors import regressor_entries, regressor_nonzeros
from robokit.files import figure_path, replacing
from robokit.identification.combinations import BaseParameters
from robokit.identification.consistent_fit import second_moments
from robokit.identification.measurements import (
    CHUNK,
    FRICTION,
    MOTOR,
    Columns,
    Measurements,
    check_measurements,
    dof_names,
)
from robokit.model.edit import replace_armature
from robokit.model.inertial_parameters import COUNT
from robokit.model.robot import Robot

WELL_DETERMINED_SHARE = 0.1
"""Fraction of its prior deviation to which data bring a combination that they determine well."""


@dataclass(frozen=True, eq=False)
class Identification:
    """The estimate of :func:`robokit.identify`.

    p is the number of all parameters: 10 N inertial ones, then friction and armature of each joint.

    Attributes:
        columns: which parameters were fitted; ``columns.robot`` is the robot as it was given.
        x: all parameters, (p,): the physically consistent estimate.
        covariance: of x, prior included, (p, p). It holds for white noise on tau; filtered or systematic
            errors make it too small.
        prior: the inertial parameters that the fit started from, (N, 10).
        base: the combinations of the p parameters that the data determine one by one.
        base_values: their estimate from the data alone, without prior and consistency, (n,).
        base_covariance: of it, (n, n).
        base_before: standard deviations of the combinations before the data, (n,).
        possible_combinations: how many a richer motion could determine.
        noise: standard deviation of each joint force, as found from its own equations, (nv,) [N m | N]; the
            least squares weigh with 1 over it. Zero where ``weights`` were given.
        residual: root mean square of what the estimate leaves of each joint force, (nv,) [N m | N].
        data: the motion.
        steps: of Newton's method.
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
        """Inertial parameters of the bodies 1..N, (N, 10), each of a body that can exist."""
        return self.x[: self.columns.inertial].reshape(-1, COUNT)

    @property
    def deviations(self) -> np.ndarray:
        """Their standard deviations, (N, 10)."""
        return self._deviation[: self.columns.inertial].reshape(-1, COUNT)

    @property
    def names(self) -> list[str]:
        """Names of all parameters, (p,)."""
        return self.columns.names()

    @property
    def viscous(self) -> np.ndarray:
        """Viscous friction, (nv,) [N m s/rad | N s/m]; zero where it was not fitted, as in the next ones."""
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
        """Which combinations the data bring to a tenth of their deviation before, boolean (n,)."""
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
        """Joint forces of a motion, (B, nv) [N m | N]: of the bodies, of friction and of motors.

        Args:
            q, v, a: states, (B, nq) and (B, nv).

        Raises:
            ShapeError: as in :func:`identify`.
        """
        return predicted_forces(self.columns, self.x, check_measurements(self.columns.robot, q, v, a))

    # ---- reports -------------------------------------------------------------------------------

    def summary(self) -> str:
        """What was found, in at most 80 columns."""
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
            path: .png, .svg, .pdf or another format that matplotlib writes; ".png" where there is no suffix.
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


@dataclass(frozen=True)
class Certainty:
    """Combinations of parameters, in standard deviations of the prior.

    Attributes:
        names: of the combinations, n.
        off: estimates minus prior, (n,).
        deviations: of the estimates, (n,).
        well: which are well determined, boolean (n,).
    """

    names: Sequence[str]
    off: np.ndarray
    deviations: np.ndarray
    well: np.ndarray


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
