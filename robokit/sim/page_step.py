"""The step of passive motion for a host that takes it without Python, and what that host shows of a state.

    step    the next state, ledger and carried numbers
    look    what a state looks like: poses, energies, momentum, and what the first step is handed

Gravity and a wrench on every body are inputs of both; controllers of the run are left out, and its pushes
unless they are asked for. Everything else is as in :func:`robokit.simulate`: the same text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from robokit.algorithms.center_of_mass import composite_moment
from robokit.algorithms.centroidal import centroidal_momentum
from robokit.algorithms.energy import kinetic_energy
from robokit.algorithms.kinematics import forward_kinematics
from robokit.engine import Kernel
from robokit.engine.reproducible import wanted
from robokit.model.regrouping import regrouped
from robokit.sim import motion
from robokit.sim.integrators import Problem
from robokit.sim.joint_forces import GivenLayout
from robokit.sim.motion import Carried
from robokit.sim.step_kernel import Program
from robokit.sim.steppers import kept_of


@dataclass(frozen=True)
class PageStep:
    """The two kernels of a run."""

    program: Program  # the step, without pushes where they are left out, with a wrench on every body
    # (q, v, tau, ledger, gravity, carried, parameters, held) -> (q_next, v_next, ledger_next, carried_next):
    # tau is not read; held (6 N) are wrenches in body coordinates [N m; N]
    step: Kernel
    # (q, v, tau, gravity, carried, parameters, held) -> (places, figures, kept): for each body 1..N the rows
    # of the rotation from world to body axes, then its origin in the world (N, 12); centre of mass, kinetic
    # and potential energy, centroidal momentum (11); momentum and energy that the first step is handed (7)
    look: Kernel


def page_step(program: Program, reproducible: bool | None = None, pushes: bool = False) -> PageStep:
    """The kernels of a run's program.

    With ``reproducible=True``, or of a program that is so, the states of the page are those of
    ``rk.simulate(..., reproducible=True)`` and of ``rk.rollout(..., reproducible=True)``, bit for bit, as
    long as nobody pulls, pushes or changes gravity, friction or the time step. A host with both modules
    (``kernel.compiled(WASM)``, or viewer.live_data.module_data) takes a row of a rollout so:

        1. both are given ``gravity`` (robot.gravity) and ``parameters``, the row's own of
           ``program.parameters(dt)``: (P,) for all rows, or (B, P) where rows of a robot of ``with_inertias``
           differ. Time step and inertial parameters are all in it: the row needs nothing else;
        2. ``tau``, ``held``, ``ledger`` and ``carried`` are 0; q and v are the row's start;
        3. look(); if the layout of the program keeps momentum, carried[0:6] = kept[0:6], and if it keeps
           energy, the last of carried = kept[6];
        4. each step(): q, v, ledger, carried = q_next, v_next, ledger_next, carried_next.

    assets/live/physics.js does this.

    Args:
        program: of the run, passive motion. Where joints are driven both kernels have one more input,
            "drives", with what each of them wants.
        reproducible: None for what the program, or else the environment, says.
        pushes: keep the pushes of the run: both kernels have one more input, "pushes", with the wrench of
            each place as ``robokit.sim.force_elements.OutsideForces`` gives it for the step.
    """
    kept = program if pushes else without_pushes(program)
    bare = replace(
        kept,
        dtype="float64",
        given=GivenLayout(kept.given.drives, kept.given.places, bodies=program.robot.nbodies),
        given_numbers=tuple(kept.given_numbers),
        reproducible=program.reproducible or wanted(reproducible),
    )
    robot = bare.robot
    step = bare.built(
        "page_step",
        _step_text,
        [("ledger", bare.entries), ("gravity", 3)],
        [
            ("q_next", (robot.nq,)),
            ("v_next", (robot.nv,)),
            ("ledger_next", (bare.entries,)),
            ("carried_next", (bare.layout.size,)),
        ],
        {"q_next": "q", "v_next": "v", "ledger_next": "ledger", "carried_next": "carried"},
    )
    look = bare.built(
        "page_look",
        _look_text,
        [("gravity", 3)],
        [("places", (robot.nbodies, 12)), ("figures", (11,)), ("kept", (7,))],
    )
    return PageStep(bare, step, look)


def without_pushes(program: Program) -> Program:
    """The step with its driven joints, without pushes and without a controller's wrench on the base."""
    drives = program.given.drives
    numbers = list(program.given_numbers)[: sum(len(drive.parameters) for drive in drives)]
    return replace(program, given=GivenLayout(drives), given_numbers=tuple(numbers))


def _problem(program: Program, gravity: Sequence[Any], parameters: Any, more: Sequence[Any]) -> Problem:
    """The problem under a gravity that is an input.

    Its inertias are regrouped: only sums over the bodies are asked for, and each zero saves code. Of a
    reproducible step they are not, for those of simulate are not.
    """
    p = program.problem(parameters, more)
    I = p.tree.I if program.open or program.reproducible else regrouped(p.tree, to_ground=False)
    return replace(p, tree=replace(p.tree, gravity=tuple(gravity), I=I))


def _step_text(program: Program) -> Any:
    robot = program.robot

    def text(
        q: Any, v: Any, tau: Any, entries: Any, gravity: Any, carried: Any, parameters: Any, *more: Any
    ) -> list[list[Any]]:
        p, dt = _problem(program, gravity, parameters, more), parameters[0]
        sums, kept = motion.Ledger(entries), Carried(program.layout, carried)
        rows, speeds, none = robot.split_q(q), robot.split_v(v), robot.split_tau([0.0] * len(tau))
        assert program.method.step is not None
        q1, v1 = program.method.step(p, rows, speeds, none, dt, sums, kept)
        return [robot.join_q(q1), robot.join_v(v1), sums.entries, kept.after()]

    return text


def _look_text(program: Program) -> Any:
    robot = program.robot

    def text(
        q: Any, v: Any, tau: Any, gravity: Any, carried: Any, parameters: Any, *more: Any
    ) -> list[list[Any]]:
        p = _problem(program, gravity, parameters, more)
        tree, rows, speeds = p.tree, robot.split_q(q), robot.split_v(v)
        X, X0 = tree.transforms(rows), forward_kinematics(tree, rows)
        places = [x for pose in X0[1:] for x in (*(e for row in pose.E.rows for e in row), *pose.r)]
        m, h = composite_moment(tree, X)
        com = h * (1.0 / m)
        T, V = kinetic_energy(tree, rows, speeds), tree.a0.dot(h)
        momentum = list(centroidal_momentum(tree, rows, speeds))
        kept = kept_of(program, tree, rows, speeds)
        return [places, [*com, T, V, *momentum], kept]

    return text
