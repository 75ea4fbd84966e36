"""Random falls: do they converge as dt shrinks, and what does MuJoCo say?"""

from __future__ import annotations

from functools import cache

import numpy as np

import robokit as rk
from fidelity_cases import scenes as s
from fidelity_cases.peer import Peer
from fidelity_cases.table import Found, Look, case

STEPS = (4e-3, 2e-3, 1e-3, 0.5e-3, 0.25e-3, 0.125e-3)
FINEST = 0.0625e-3
TIMES = (0.08, 0.2, 0.4, 1.0)
"""When falls are compared [s]: multiples of all steps."""


@cache
def starts(name: str, rows: int, high: float = 0.02) -> tuple[rk.Robot, np.ndarray, np.ndarray]:
    """A robot with its joints' damping written down, in random poses above the ground, slowly moving."""
    robot = s.same_joints(s.load(name))
    q, v = s.random_starts(robot, rows, 0.5, 0.0, high)
    return robot, q, v


def ours(name: str, rows: int, dt: float, end: float, every: float) -> np.ndarray:
    """States of robokit's falls, (T, B, nq)."""
    robot, q, v = starts(name, rows)
    options = {"dt": dt, "ground": s.ground(), "record_every": round(every / dt)}
    return s.many(robot, q, v, steps=round(end / dt), **options).q


def theirs(name: str, rows: int, dt: float, end: float, every: float, stiff: bool = False) -> np.ndarray:
    """The same of MuJoCo."""
    robot, q, v = starts(name, rows)
    peer, out = Peer(robot, dt, stiff), []
    for a, b in zip(q, v, strict=True):
        peer.start(a, b)
        out.append(peer.states(round(end / dt), round(every / dt))[0])
    return np.stack(out, axis=1)


def apart(robot: rk.Robot, q: np.ndarray, reference: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Largest difference of a coordinate [m | rad], and of the centre of mass [m], (T, B) each."""
    away = np.abs(q[..., 7:] - reference[..., 7:]).max(axis=-1)
    base = np.abs(q[..., 4:7] - reference[..., 4:7]).max(axis=-1)
    turn = 2.0 * np.arccos(np.clip(np.abs((q[..., :4] * reference[..., :4]).sum(axis=-1)), 0.0, 1.0))
    centre = np.linalg.norm(s.centres(robot, q) - s.centres(robot, reference), axis=-1)
    return np.maximum(np.maximum(away, base), turn), centre


@case("convergence", "Falls", "Whole falls converge as the step shrinks")
def convergence(look: Look) -> Found:
    """Sixty random falls of humanoid and G1, from poses just above the ground, with steps from 4 to 0.125 ms,
    compared with the same falls at 1/16 ms. Measured: the largest error of a coordinate, and that of the
    centre of mass: as the median and the 90th percentile of the falls.
    """
    found = Found()
    rows, end = look.some(60, 8), look.some(10, 4) * 0.1
    times = [t for t in TIMES if t <= end]
    marks = [round(t / 4e-3) for t in times]
    for label, name in (("humanoid", "humanoid"), ("G1", s.G1)):
        robot, _, _ = starts(name, rows)
        lines = {}
        peers = [("robokit", ours)] + [("MuJoCo", theirs)] * (look.peer and not look.quick)
        table: dict[tuple[float, float], dict[str, tuple[float, ...]]] = {}
        for program, run in peers:
            reference = run(name, rows, FINEST, end, 4e-3)
            errors = {}
            for dt in STEPS:
                if look.quick and dt not in (4e-3, 1e-3, 0.25e-3):
                    continue
                errors[dt] = apart(robot, run(name, rows, dt, end, 4e-3), reference)
                for t, k in zip(times, marks, strict=True):
                    both = [np.nanpercentile(x[k], p) for x in errors[dt] for p in (50, 90)]
                    table.setdefault((t, dt), {})[program] = tuple(both)
            for t in (0.08, 0.4):
                k = round(t / 4e-3)
                median = [np.median(errors[dt][1][k]) for dt in errors]
                lines[f"{program}, {t:g} s"] = [1e3 * dt for dt in errors], 1e3 * np.array(median)
        for (t, dt), row in table.items():
            if dt not in (4e-3, 1e-3, 0.25e-3) or t not in (0.08, 0.4):
                continue
            for k, what in ((1, "coordinate, 90 %"), (2, "centre, median"), (3, "centre, 90 %")):
                peer = 1e3 * row["MuJoCo"][k] if "MuJoCo" in row else None
                unit = "mm" if k > 1 else "mm, mrad"
                where = f"{label}, {t:g} s, {1e3 * dt:g} ms: {what}"
                found.add(where, unit, 1e3 * row["robokit"][k], mujoco=peer)
        first, last = table[(0.08, 2e-3 if not look.quick else 4e-3)], table[(0.08, 0.25e-3)]
        halvings = 3 if not look.quick else 4
        for k, what in ((0, "median"), (1, "90 %")):
            order = np.log2(first["robokit"][k] / last["robokit"][k]) / halvings
            found.add(f"{label}: order of the coordinate error at 0.08 s, {what}", "", order, least=0.8)
        title = f"{label}: median error of the centre of mass"
        found.plot(f"convergence_{label.lower()}", title, "dt [ms]", "mm", lines, log="xy")
    return found


@case("accuracy", "Falls", "Falls whose error sets the step")
def accuracy(look: Look) -> Found:
    """Twenty of these falls of the humanoid, to 0.4 s, with ``simulate(accuracy=)``: steps of up to 4 ms are
    divided until the error of each part, by step doubling, is below the accuracy in every coordinate.
    Measured: the parts that missed it; the largest error of a coordinate at 0.08 s compared with 1/16 ms,
    median and 90th percentile; and the medians of the energy error and of the mean length of a part.
    """
    found, rows = Found(), look.some(20, 3)
    robot, q, v = starts("humanoid", rows)
    options = {"dt": FINEST, "ground": s.ground(), "record_every": round(4e-3 / FINEST)}
    fine = s.many(robot, q, v, steps=round(0.4 / FINEST), **options).q
    for wanted in (1e-2, 1e-3, 1e-4):
        options = s.alone({"ground": s.ground(), "accuracy": wanted, "dt": 4e-3, "record_every": 1})
        runs = [s.fall(robot, a, b, duration=0.4, **options) for a, b in zip(q, v, strict=True)]
        errors, _ = apart(robot, np.stack([t.q for t in runs], axis=1), fine)
        where = f"accuracy {wanted:g}"
        missed = sum(t.summary["parts_not_met"] for t in runs)
        found.add(f"{where}: parts that missed it", "", missed, most=0.0)
        for k, what in ((50, "median"), (90, "90 %")):
            error = 1e3 * np.percentile(errors[20], k)
            found.add(f"{where}: error of a coordinate, {what}", "mm, mrad", error)
        found.add(f"{where}: energy's error", "J", np.median([t.summary["energy_balance"] for t in runs]))
        parts = np.median([t.summary["parts_taken"] for t in runs])
        found.add(f"{where}: mean length of a part", "ms", 1e3 * 0.4 / parts)
    return found


@case("beside", "Falls", "Fifty random falls beside MuJoCo")
def beside(look: Look) -> Found:
    """The same shapes, joints and limits at 1 ms. Robots start up to 10 cm above the ground, in random poses.
    Compared with MuJoCo at its defaults and with stiff contacts: the time of the first contact, the centre of
    mass 20, 50 and 200 ms after it, and its height after 4 s. Median and 90th percentile.
    """
    found = Found()
    if not look.peer:
        found.notes.append("MuJoCo is not there.")
        return found
    rows = look.some(50, 6)
    for label, name in (("humanoid", "humanoid"), ("G1", s.G1)):
        robot, _, _ = starts(name, 1)
        q0, v0 = s.random_starts(robot, rows, 0.5, 0.01, 0.1)
        r = s.many(robot, q0, v0, duration=4.0, dt=1e-3, ground=s.ground(), record_every=1)
        touched = (np.abs(r.contact_force[:, :, 2]) > 0.0).argmax(axis=0)
        centre = s.centres(robot, r.q)
        del r
        columns: dict[str, dict[bool, tuple[float, float]]] = {}
        for stiff in (False, True):
            peer, rows_of = Peer(robot, 1e-3, stiff), []
            for k in range(rows):
                rows_of.append(_compare(peer, robot, q0[k], v0[k], touched[k], centre[:, k]))
            for what, values in zip(WHAT, np.array(rows_of).T, strict=True):
                pair = np.nanpercentile(np.abs(values), [50, 90])
                columns.setdefault(what, {})[stiff] = (pair[0], pair[1])
        for what, row in columns.items():
            for k, of in ((0, "median"), (1, "90 %")):
                found.add(f"{label}, difference of {what}, {of}", "ms" if "contact" in what else "mm",
                          mujoco=row[False][k], stiff=row[True][k])  # fmt: skip
    found.notes.append("The columns hold the difference between robokit and MuJoCo at these settings.")
    return found


WHAT = ("first contact", "centre of mass after 20 ms", "centre of mass after 50 ms",
        "centre of mass after 200 ms", "height at rest")  # fmt: skip


def _compare(peer: Peer, robot: rk.Robot, q0, v0, touched: int, centre: np.ndarray) -> list[float]:
    """Differences of one fall: [ms], then [mm]."""
    peer.start(q0, v0)
    first, qs = 0, []
    for k in range(1, touched + 202):
        peer.step()
        qs.append(peer.q)
        contacts = peer.data.contact
        if not first and peer.data.ncon and contacts.dist[: peer.data.ncon].min() < 0.0:
            first = k - 1  # contacts are those of the state before the step
    peer.step(4000 - touched - 201)
    there = s.centres(robot, np.array([*qs, peer.q]))
    after = [1e3 * float(np.linalg.norm(there[touched + d - 1] - centre[touched + d])) for d in (20, 50, 200)]
    return [float(first - touched), *after, 1e3 * float(there[-1, 2] - centre[-1, 2])]
