"""What the events, forces and summary of a single run say, as the columns of the measures."""

from __future__ import annotations

import numpy as np

import robokit as rk


def columns_of(run: rk.sim.Trajectory) -> dict:
    """The columns that a run's own events and figures give: NaN and None where there is none."""
    by = {}
    for event in run.events:
        by.setdefault(event.kind, []).append(event)
    found = {}

    def first(kind, time, subject=None):
        events = by.get(kind, [])
        found[time] = min((e.time for e in events), default=np.nan)
        if subject:
            found[subject] = min(events, key=lambda e: e.time).subject if events else None

    def largest(kind, name, subject=None):
        events = by.get(kind, [])
        most = max(events, key=lambda e: e.size) if events else None
        found[name] = most.size if most else 0.0
        found[f"{name}_time"] = most.time if most else np.nan
        if subject:
            found[subject] = most.subject if most else None

    first("first contact", "first_contact_time", "first_contact_link")
    first("limit", "limit_time", "limit_joint")
    first("rest", "rest_time")
    largest("peak force", "peak_force", "peak_force_link")
    largest("peak load", "peak_load")
    largest("past limit", "past_limit", "past_limit_joint")
    found["limit_hits"] = len(by.get("limit", []))
    for link in run.program.touching_links:
        own = {
            e.kind: e for e in run.events if e.subject == link and e.kind in ("first contact", "peak force")
        }
        contact, peak = own.get("first contact"), own.get("peak force")
        found[f"first_contact_time/{link}"] = contact.time if contact else np.nan
        found[f"peak_force/{link}"] = peak.size if peak else 0.0
        found[f"peak_force_time/{link}"] = peak.time if peak else np.nan
    for joint in run.robot.body_joints:
        hits = [e.time for e in by.get("limit", []) if e.subject == joint.name]
        found[f"limit_time/{joint.name}"] = min(hits, default=np.nan)
    found["dissipated"] = run.energy.dissipated[-1]
    found["work"] = run.energy.work[-1]
    found["energy_balance"] = run.energy.total[-1] - run.energy.total[0]
    found["final_height"] = float(rk.center_of_mass(run.robot, run.q[-1])[2])
    found["final_base_height"] = run.q[-1][6] if run.robot.base == "floating" else np.nan
    for name in ("resting_height", "resting_base_height"):
        final = found[name.replace("resting", "final")]
        found[name] = final if np.isfinite(found["rest_time"]) else np.nan
    for name in run.losses:
        found[f"dissipated_by_{name}"] = run.losses[name][-1]
    if run.program.ground is not None:
        found["deepest_penetration"] = run.summary["deepest_penetration"]
    found["greatest_speed"] = max(speeds.max() for speeds in speeds_of(run).values())
    return found | momenta_of(run)


def speeds_of(run: rk.sim.Trajectory) -> dict:
    """Speeds of the bodies' centres of mass in each step by differences of places, by link, (S,) each.

    At the middle of a step with contact, but for the turn of the base's axes in half a step, which the step
    drifts through in another order; at the beginning of one of passive motion.
    """
    robot, x, h = run.robot, run.notes.arrays, 1e-6
    contact, dt = run.program.contact, run.summary["dt"]
    q = robot.integrate(x["q"], x["v"] * (0.5 * dt if contact else 0.0))
    ends = [rk.forward_kinematics(robot, robot.integrate(q, side * h * x["v"])) for side in (1.0, -1.0)]
    speeds = {}
    for i in robot.tree.outward():
        I, name = robot.tree.I[i], robot.body_name(i)
        if I.m:
            place = robot.frame(name)[1]
            com = place.rotation.T @ (np.array([*I.h]) / I.m - place.position)
            one, other = (p + R @ com for R, p in (end[name] for end in ends))
            speeds[name] = np.linalg.norm(one - other, axis=1) / (2.0 * h)
    return speeds


def momenta_of(run: rk.sim.Trajectory) -> dict:
    """What neither gravity nor the ground explains of the linear momentum, at the end."""
    if "momentum_balance_linear" not in run.summary:
        return {"momentum_balance_linear": np.nan, "momentum_balance_angular": np.nan}
    gained = run.momentum[-1, 3:] - run.momentum[0, 3:] - run.contact_impulse[-1]
    gained -= run.t[-1] * run.robot.total_mass * run.robot.gravity
    return {"momentum_balance_linear": np.abs(gained).max()}


def differences(
    measures: dict, row: int, run: rk.sim.Trajectory, rel: float = 1e-6, abs_: float = 1e-7
) -> list[str]:
    """Columns of a row that are not what the run says."""
    wrong = []
    for name, said in columns_of(run).items():
        if name not in measures:
            if "/" not in name:
                wrong.append(f"{name}: not measured")
            continue
        got = measures[name][row]
        if isinstance(said, str) or said is None:
            good = got == said
        else:
            own = max(rel, 1e-3) if name == "greatest_speed" else rel
            good = bool(np.isclose(got, said, rtol=own, atol=abs_, equal_nan=True))
        if not good:
            wrong.append(f"{name}: {got!r}, the run says {said!r}")
    return wrong
