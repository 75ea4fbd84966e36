"""Held links beside Pinocchio: constrained dynamics, operational space and hybrid dynamics.

python benchmarks/constrained.py                    G1 on two feet, Panda with its hand held
python benchmarks/constrained.py --seconds 10

First call (processor time, nothing on disk), single call, and a batch on one core; ratios to Pinocchio in
the same run, which has no batches. Its operational-space inertia comes from its contact Cholesky
decomposition, Lambda alone; robokit's has the inverse and Jbar too. Its constraintDynamics makes at most
five proximal iterations.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from measure import arguments_of, machine, minima, nothing_compiled, one_core, prepare_to_measure
from models import G1, in_pinocchio, states

import robokit as rk

DEFAULT = (
    (G1, "floating", ("left_ankle_roll_link", "right_ankle_roll_link")),
    ("example-robot-data:panda", "fixed", ("panda_link7",)),
)
BATCH = 4096


def peers(robot: rk.Robot, links: tuple[str, ...], q: Any, v: Any, tau: Any) -> dict[str, Callable[[], Any]]:
    """Pinocchio's functions on converted arguments, checked against robokit's."""
    import pinocchio as pin

    model, data, to = in_pinocchio(robot)
    contacts, datas = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
    for link in links:
        frame = model.frames[model.getFrameId(link, pin.FrameType.BODY)]
        kind = pin.ContactType.CONTACT_6D
        contacts.append(
            pin.RigidConstraintModel(kind, model, frame.parentJoint, frame.placement, pin.LOCAL_WORLD_ALIGNED)
        )
        datas.append(contacts[-1].createData())
    pin.initConstraintDynamics(model, data, contacts, datas)
    settings = pin.ProximalSettings(1e-9, 1e-9, 5)
    pq, pv, pt = to.q(q), to.v(v), to.v(tau)
    held = [rk.Contact(link, kind="pose") for link in links]
    a, _ = rk.constrained_dynamics(robot, q, v, tau, held)
    theirs = pin.constraintDynamics(model, data, pq, pv, pt, contacts, datas, settings)
    assert np.allclose(to.v_back(theirs), a, rtol=1e-6, atol=1e-6)

    factor = pin.ContactCholeskyDecomposition(model, data, contacts, datas)

    def space() -> Any:
        pin.crba(model, data, pq)
        factor.compute(model, data, contacts, datas, 1e-9)
        return factor.getOperationalSpaceInertiaMatrix()

    return {
        "constrained_dynamics": lambda: pin.constraintDynamics(
            model, data, pq, pv, pt, contacts, datas, settings
        ),
        "operational_space_inertia": space,
        "hybrid_dynamics": lambda: pin.aba(model, data, pq, pv, pt),
    }


def compare(name: str, base: str, links: tuple[str, ...], seconds: float) -> None:
    """Check, measure and print one robot."""
    robot = rk.load_urdf(rk.find_robot(name), base=base)
    q, v, tau = states(robot, BATCH)
    feet = tuple(rk.Contact(link, kind="pose") for link in links)
    # Velocities that the contacts allow: Pinocchio's rows are of spatial accelerations.
    v, _ = rk.impact(robot, q, v, feet)
    given = robot.joint_names[1::2]
    calls: dict[str, Callable[..., Any]] = {
        "constrained_dynamics": lambda q, v, tau, **out: rk.constrained_dynamics(
            robot, q, v, tau, feet, **out
        ),
        "operational_space_inertia": lambda q, v, tau, **out: rk.operational_space_inertia(
            robot, q, feet, **out
        ),
        "hybrid_dynamics": lambda q, v, tau, **out: rk.hybrid_dynamics(robot, q, v, tau, v, given, **out),
    }
    one = q[0].copy(), v[0].copy(), tau[0].copy()
    first: dict[str, float] = {}
    for what, call in calls.items():
        started = time.process_time()
        call(*one)
        first[what] = time.process_time() - started
    outs = {what: list(call(q, v, tau)) for what, call in calls.items()}
    theirs = peers(robot, links, *one)
    contestants: dict[str, Callable[[], Any]] = {}
    for what, call in calls.items():
        contestants[what] = theirs[what]
        contestants[f"{what}, single"] = lambda call=call: call(*one)
        contestants[f"{what}, batch"] = lambda call=call, out=outs[what]: call(q, v, tau, out=out)
    with one_core():
        found = minima(contestants, seconds)
    print(f"{robot.name}, {base} base, {', '.join(links)}")
    for what in calls:
        peer, single, batch = found[what], found[f"{what}, single"], found[f"{what}, batch"] / BATCH
        print(
            f"  {what:<26} Pinocchio {1e6 * peer:7.2f} us, single {1e6 * single:6.2f} us "
            f"({single / peer:.2f}), batch {1e6 * batch:6.3f} us ({peer / batch:5.1f} x), "
            f"first call {first[what]:.2f} s of processor time"
        )
    print("  hybrid_dynamics is beside Pinocchio's aba: it has no hybrid dynamics")


def main() -> None:
    """Parse, measure, print."""
    arguments = arguments_of(__doc__, 3.0, robots=False)
    print(machine())
    with nothing_compiled():
        for name, base, links in DEFAULT:
            compare(name, base, links, arguments.seconds)


if __name__ == "__main__":
    prepare_to_measure()
    main()
