"""Trajectory: recorded states of a simulation, with its energies, momenta and contact forces."""

from __future__ import annotations

import json
import math
import os
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np

from robokit import hooks
from robokit.derived import cached_attribute
from robokit.errors import RobokitError, ShapeError
from robokit.model.robot import Robot
from robokit.sim.ground import Ground
from robokit.sim.recorded import contact_forces
from robokit.sim.step.step_kernel import Program

FORMAT = 1


@dataclass(frozen=True)
class Energy:
    """Energies over time, (T,) each [J].

    Attributes:
        kinetic: 1/2 v^T H v.
        potential: of gravity; zero with the centre of mass at the world origin's height.
        dissipated: taken so far by contacts, joint damping, joint friction and joint limits. What the
            ground's springs hold for a moment is part of it.
        work: given so far by the controller.
    """

    kinetic: np.ndarray
    potential: np.ndarray
    dissipated: np.ndarray
    work: np.ndarray

    @property
    def mechanical(self) -> np.ndarray:
        """Kinetic + potential."""
        return self.kinetic + self.potential

    @property
    def total(self) -> np.ndarray:
        """Kinetic + potential + dissipated - work: constant but for the error of the time steps."""
        return self.mechanical + self.dissipated - self.work


@dataclass(frozen=True)
class Contacts:
    """The K contact points over time.

    Attributes:
        points: (T, K, 3) in the world [m]; of a sphere, the point under its centre.
        forces: (T, K, 3) of the ground on the robot in the step after each state, world axes [N].
        links: K link names.
    """

    points: np.ndarray
    forces: np.ndarray
    links: tuple[str, ...]


@dataclass
class Trajectory:
    """Recorded states of a simulation, with the ledger of its energies and impulses.

    Attributes:
        t: (T,) [s].
        q: (T, nq) configurations [rad | m | unit quaternion wxyz].
        v: (T, nv) velocities [rad/s | m/s].
        energy: kinetic, potential, dissipated, work, mechanical, total, (T,) each [J].
        momentum: (T, 6) centroidal momentum [angular about the centre of mass; linear], world axes
            [N m s; N s].
        contact_force: (T, 3) force of the ground on the robot, world axes [N]: the mean over the time
            since the state recorded before, so that its sum is exactly the impulse; 0 at the start.
        robot: the robot; None where a loaded file names one that cannot be had.
        tau: (T, nv) controller's forces [N m | N] in the step after each state, or None.
        ground: the ground, or None.
        summary: figures of the run: steps, steps_per_second, energy_balance, deepest_penetration, ...
    """

    t: np.ndarray
    q: np.ndarray
    v: np.ndarray
    energy: Energy
    momentum: np.ndarray
    contact_force: np.ndarray
    robot: Robot | None
    tau: np.ndarray | None = None
    ground: Ground | None = None
    summary: dict[str, Any] = field(default_factory=dict)
    program: Program | None = field(default=None, repr=False)

    def __repr__(self) -> str:
        name = self.robot.name if self.robot is not None else self.summary.get("robot", "?")
        return f"<Trajectory of {name!r}: {len(self.t)} states, {self.t[0]:g} to {self.t[-1]:g} s>"

    def __len__(self) -> int:
        return len(self.t)

    @cached_attribute
    def contacts(self) -> Contacts | None:
        """Positions and forces of the contact points, computed at the first use; None without a ground."""
        if self.program is None or self.program.points is None:
            return None
        points, forces = contact_forces(self.program, self.q, self.v, self.tau, self.summary["dt"])
        return Contacts(points, forces, self.program.points.link)

    def report(self) -> list[str]:
        """The run in a few lines of text."""
        s = self.summary
        name = self.robot.name if self.robot is not None else s.get("robot", "?")
        lines = [f"{name}: {self.t[-1]:g} s in {s.get('steps', 0):,} steps of {1e3 * s.get('dt', 0.0):g} ms"]
        if s.get("interrupted"):
            lines[0] += " (interrupted)"
        elif "stopped" in s:
            lines[0] += " (stopped)"

        def say(label: str, text: str) -> None:
            lines.append(f"  {label:<13} {text}")

        if s.get("dt_chosen"):
            say("time step", f"{1e3 * s['dt']:g} ms, chosen for the robot")
        if s.get("steps_per_second"):
            say("speed", f"{s['steps_per_second']:,.0f} steps/s ({s['integrator']})")
        e = self.energy
        say("energy", f"{e.mechanical[0]:.4g} J at the start, {e.mechanical[-1]:.4g} J at the end, "
            f"{e.dissipated[-1]:.4g} J dissipated")  # fmt: skip
        say("balance", f"energy {s.get('energy_balance', math.nan):.2e} J" + self._momentum_words())
        if s.get("momentum_corrected_linear") is not None:
            linear, angular = (s[f"momentum_corrected_{k}"] for k in ("linear", "angular"))
            say("corrected", f"{linear:.2e} N s and {angular:.2e} N m s missed by the steps, summed")
        if self.ground is not None:
            fz = self.contact_force[-1, 2]
            say(
                "contact",
                f"{fz:.4g} N upward at the end, deepest point {1e3 * s['deepest_penetration']:.2g} mm",
            )
        if s.get("default_damping"):
            joints = f"{s['default_damping_joints']} joints that have none"
            say("damping", f"{s['default_damping']:g} N m s/rad assumed in {joints}")
        return lines

    def _momentum_words(self) -> str:
        if "momentum_balance_linear" not in self.summary:
            return ""
        linear, angular = (self.summary[f"momentum_balance_{k}"] for k in ("linear", "angular"))
        return f", momentum {linear:.2e} N s and {angular:.2e} N m s"

    # ---- files ---------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write everything to one .npz file, with the text of the robot's URDF where there is one.

        Args:
            path: where to; ".npz" is appended where it is missing.

        Returns:
            the path of the file.
        """
        path = Path(path)
        if path.suffix != ".npz":
            path = path.with_name(path.name + ".npz")
        about: dict[str, Any] = {"format": FORMAT, "summary": self.summary, "ground": None, "robot": None}
        if self.ground is not None:
            about["ground"] = {**asdict(self.ground)}
        if self.robot is not None:
            about["robot"] = {
                "name": self.robot.name,
                "base": self.robot.base,
                "gravity": list(self.robot.tree.gravity),
                "joint_names": list(self.robot.joint_names),
                "source": str(self.robot.source),
                "urdf": _source_text(self.robot.source),
            }
        arrays = {name: getattr(self, name) for name in ("t", "q", "v", "momentum", "contact_force")}
        arrays |= {f"energy_{f.name}": getattr(self.energy, f.name) for f in fields(Energy)}
        if self.tau is not None:
            arrays["tau"] = self.tau
        contacts = self.contacts
        if contacts is not None:
            about["contact_links"] = list(contacts.links)
            arrays |= {"contact_points": contacts.points, "contact_forces": contacts.forces}
        with open(path, "wb") as file:
            np.savez_compressed(file, about=np.array(json.dumps(about, default=float)), **arrays)
        return path

    @staticmethod
    def load(path: str | os.PathLike[str], robot: Robot | None = None) -> Trajectory:
        """Read what :meth:`save` wrote.

        Args:
            path: the file.
            robot: the robot it belongs to. By default the robot is loaded again from the file it came
                from, or from the text kept in the trajectory; where neither works, ``.robot`` is None.

        Raises:
            ShapeError: not a trajectory, or a robot that does not fit.
        """
        try:
            with np.load(path, allow_pickle=False) as data:
                arrays = {name: data[name] for name in data.files}
            about = json.loads(str(arrays.pop("about")))
            energy = Energy(**{f.name: arrays[f"energy_{f.name}"] for f in fields(Energy)})
            t, q, v = (arrays[name] for name in ("t", "q", "v"))
            momentum, contact_force = arrays["momentum"], arrays["contact_force"]
            if {len(x) for x in arrays.values()} != {len(t)} or (q.ndim, v.ndim) != (2, 2):
                raise ValueError("its arrays do not fit together")
            given, summary = about["robot"] or {}, about["summary"]
            ground = Ground(**about["ground"]) if about["ground"] else None
        except (LookupError, TypeError, ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
            raise ShapeError(f"{os.fspath(path)}: not a trajectory saved by robokit ({error})") from error
        if robot is None:
            robot = _reload(given, q.shape[1], v.shape[1])
        elif (robot.nq, robot.nv) != (q.shape[1], v.shape[1]) or list(robot.joint_names) != given.get(
            "joint_names", list(robot.joint_names)
        ):
            raise ShapeError(f"robot {robot.name!r} does not fit this trajectory of {given.get('name')!r}")
        summary.setdefault("robot", given.get("name", "?"))
        found = Trajectory(
            t, q, v, energy, momentum, contact_force, robot, arrays.get("tau"), ground, summary
        )
        if "contact_points" in arrays:
            found.__dict__["contacts"] = Contacts(
                arrays["contact_points"], arrays["contact_forces"], tuple(about["contact_links"])
            )
        return found

    def to_html(self, path: str | os.PathLike[str], **options: Any) -> Path:
        """Write the page that plays the motion: one file, no network.

        Args:
            path: where to.
            options: of ``robokit.viewer.write_page``.
        """
        if self.robot is None:
            raise RobokitError("the page needs the robot: Trajectory.load(path, robot=...)")
        return hooks.call("write_page", self, Path(path), **options)


def _source_text(source: Any) -> str | None:
    path = Path(str(source))
    try:
        return path.read_text(encoding="utf-8") if path.suffix else None
    except (OSError, UnicodeDecodeError, ValueError):
        return None


def _reload(given: dict[str, Any], nq: int, nv: int) -> Robot | None:
    """The robot again, if it still has the same joints."""
    from robokit.urdf import load_urdf, loads_urdf

    attempts: Sequence[Any] = (
        lambda: load_urdf(given["source"], base=given["base"]),
        lambda: loads_urdf(given["urdf"], base=given["base"], folder=Path(given["source"]).parent),
    )
    for attempt in attempts:
        try:
            robot = attempt()
        except (RobokitError, OSError, KeyError, TypeError, ValueError, AttributeError):
            continue
        if (robot.nq, robot.nv, list(robot.joint_names)) == (nq, nv, given["joint_names"]):
            return robot.with_gravity(given["gravity"])
    return None
