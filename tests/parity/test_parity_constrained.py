"""Constrained dynamics, impacts, hybrid dynamics and operational space against Pinocchio."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
from ladder import relative

import robokit as rk
from robokit.algorithms.constrained_dynamics import constrained_dynamics
from robokit.model.constraints import constraint_models

pytestmark = pytest.mark.parity

STATES = 2
PLAIN = {"engine": "python"}
EXAMPLES = {
    "g1": ("g1_description/urdf/g1_29dof_rev_1_0.urdf", ("left_ankle_roll_link", "right_ankle_roll_link")),
    "talos": ("talos_data/robots/talos_full_v2.urdf", ("leg_left_6_link", "leg_right_6_link")),
    "icub": ("icub_description/robots/icub.urdf", ("l_ankle_2", "r_ankle_2")),
    "panda": ("panda_description/urdf/panda.urdf", ("panda_link7",)),
    "solo12": ("solo_description/robots/solo12.urdf", ("FL_FOOT", "FR_FOOT", "HL_FOOT", "HR_FOOT")),
}


@pytest.mark.parametrize("base", ["fixed", "floating"])
@pytest.mark.parametrize("name", EXAMPLES)
def test_held_links_are_pinocchios(name, base, record_error):
    import pinocchio as pin
    from peers import PinocchioPeer, example

    file, links = EXAMPLES[name]
    path = example(file)
    robot = rk.load_urdf(path, base=base)
    peer = PinocchioPeer(robot, path)
    model, data, to = peer.model, peer.data, peer.adapter
    # A point at each foot of a quadruped; poses elsewhere. A fixed leg of three joints holds a point only.
    kind = "position" if name == "solo12" else "pose"
    at = (0.02, -0.01, -0.03)
    held = [rk.Contact(link, at, kind) for link in links]
    contacts, datas = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
    for link in links:
        contacts.append(contact(pin, model, link, at, kind))
        datas.append(contacts[-1].createData())
    pin.initConstraintDynamics(model, data, contacts, datas)
    rng = np.random.default_rng(3)
    worst: dict[str, float] = {}
    uncertain = 0.0
    for _ in range(STATES):
        q = robot.random_configuration(rng)
        v, a, tau = rng.standard_normal((3, robot.nv))
        pq = to.q(q)
        # Velocities that the contacts allow: Pinocchio's six rows are of spatial accelerations.
        still, impulses = rk.impact(robot, q, v, held, **PLAIN)
        found, forces = rk.constrained_dynamics(robot, q, still, tau, held, **PLAIN)
        settings = pin.ProximalSettings(1e-12, 1e-12, 1e-10, 20)
        theirs = pin.constraintDynamics(model, data, pq, to.v(still), to.v(tau), contacts, datas, settings)
        wrenches = [d.contact_force for d in datas]
        pushed = [np.r_[w.angular, w.linear] if kind == "pose" else w.linear for w in wrenches]
        note(worst, "constrained a", relative(found, to.v_back(theirs)))
        note(worst, "constrained forces", relative(forces, np.concatenate(pushed)))

        J = np.concatenate([jacobian(pin, model, data, pq, c, kind, to) for c in contacts])
        H = to.matrix_back(full(pin.crba(model, data, pq)))
        inverse = np.linalg.inv(H)
        # Rounding errors in H appear in accelerations multiplied by its condition number: 1e9 for iCub, where
        # Pinocchio is 2e-9 off; the next test has what is left of robokit's.
        uncertain = max(uncertain, float(np.linalg.cond(H) * np.finfo(float).eps))
        Lambda, mobility, Jbar = rk.operational_space_inertia(robot, q, held, **PLAIN)
        note(worst, "mobility", relative(mobility, J @ inverse @ J.T))
        note(worst, "Jbar", relative(Jbar, inverse @ J.T @ np.linalg.inv(J @ inverse @ J.T)))
        note(worst, "Lambda", relative(Lambda @ mobility, np.eye(len(J))))
        note(worst, "impact", relative(still, v + inverse @ J.T @ impulses))
        note(worst, "impact rows", relative(J @ still, np.zeros(len(J))))

        given = robot.joint_names[1::2]
        hybrid = rk.hybrid_dynamics(robot, q, v, tau, a, given, **PLAIN)
        torques = pin.rnea(model, data, pq, to.v(v), to.v(hybrid[1]))
        note(worst, "hybrid", relative(hybrid[0], to.v_back(torques)))
        if base == "floating":
            moved, joints = rk.floating_base_inverse_dynamics(robot, q, v, a[6:], **PLAIN)
            torques = to.v_back(pin.rnea(model, data, pq, to.v(v), to.v(np.r_[moved, a[6:]])))
            note(worst, "floating base", relative(np.r_[np.zeros(6), joints], torques))
    for what, error in worst.items():
        record_error("pinocchio", name, base, what, error)
    for what, error in worst.items():
        assert error < (max(1e-9, uncertain) if "constrained" in what else 1e-9), what


def test_an_ill_conditioned_robot_against_forty_digits():
    """iCub on two feet: H has condition 1e9, and the text in 40 digits is the oracle."""
    mp = pytest.importorskip("mpmath")
    from peers import example

    importlib.import_module("fifty_digits")  # its functions
    file, links = EXAMPLES["icub"]
    robot = rk.load_urdf(example(file), base="floating")
    held = [rk.Contact(link, (0.02, -0.01, -0.03), "pose") for link in links]
    rng = np.random.default_rng(3)
    q = robot.random_configuration(rng)
    v, _, tau = rng.standard_normal((3, robot.nv))
    found, forces = rk.constrained_dynamics(robot, q, v, tau, held, **PLAIN)
    with mp.workdps(40):
        flat = [[mp.mpf(float(x)) for x in row] for row in (q, v, tau)]
        rows = robot.split_q(flat[0]), robot.split_v(flat[1]), robot.split_v(flat[2])
        models, proximal = constraint_models(robot, held), [mp.mpf(10) ** -20]
        a, exact = constrained_dynamics(robot.tree, *rows, [0, 0], proximal, models)
    assert relative(found, [float(x) for row in a for x in row]) < 1e-9
    assert relative(forces, [float(x) for x in exact]) < 1e-9


def test_machine_code_of_a_humanoid_on_two_feet():
    from peers import example

    file, links = EXAMPLES["g1"]
    robot = rk.load_urdf(example(file), base="floating")
    held = [rk.Contact(link, kind="pose") for link in links]
    rng = np.random.default_rng(1)
    q = np.array([robot.random_configuration(rng) for _ in range(3)])
    v, tau = rng.standard_normal((2, 3, robot.nv))
    expected = rk.constrained_dynamics(robot, q, v, tau, held, **PLAIN)
    for x, y in zip(rk.constrained_dynamics(robot, q, v, tau, held), expected, strict=True):
        assert relative(x, y) < 1e-9


def test_drake_reads_the_same_rotors():
    pytest.importorskip("pydrake")
    from pydrake.multibody.parsing import Parser
    from pydrake.multibody.plant import MultibodyPlant

    body = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
    text = f"""<robot name="r" xmlns:drake="http://drake.mit.edu">
      <link name="a">{body}</link><link name="b">{body}</link>
      <joint name="j" type="continuous"><parent link="a"/><child link="b"/></joint>
      <transmission name="t"><type>SimpleTransmission</type><joint name="j"/><actuator name="m">
      <drake:rotor_inertia value="3e-5"/>
      <drake:gear_ratio value="100"/></actuator></transmission></robot>"""
    robot, plant = rk.loads_urdf(text), MultibodyPlant(0.0)
    Parser(plant).AddModelsFromString(text, "urdf")
    plant.WeldFrames(plant.world_frame(), plant.GetFrameByName("a"))
    plant.Finalize()
    context, q = plant.CreateDefaultContext(), np.array([0.3])
    plant.SetPositions(context, q)
    assert relative(rk.crba(robot, q, **PLAIN), plant.CalcMassMatrix(context)) < 1e-14


def note(worst: dict[str, float], what: str, error: float) -> None:
    worst[what] = max(worst.get(what, 0.0), error)


def contact(pin, model, link, at, kind):
    """Pinocchio's contact of a link's point, in world axes."""
    frame = model.frames[model.getFrameId(link, pin.FrameType.BODY)]
    place = frame.placement * pin.SE3(np.eye(3), np.array(at))
    what = pin.ContactType.CONTACT_6D if kind == "pose" else pin.ContactType.CONTACT_3D
    return pin.RigidConstraintModel(what, model, frame.parentJoint, place, pin.LOCAL_WORLD_ALIGNED)


def jacobian(pin, model, data, q, held, kind, to):
    """Rows [angular; linear] of a contact in world axes, columns in our order."""
    pin.computeJointJacobians(model, data, q)
    at = data.oMi[held.joint1_id].act(held.joint1_placement.translation)
    J = np.array(pin.getJointJacobian(model, data, held.joint1_id, pin.WORLD))
    linear, angular = J[:3], J[3:]
    linear = linear - np.cross(at, angular.T).T
    rows = np.concatenate([angular, linear]) if kind == "pose" else linear
    return np.array([to.v_back(row) for row in rows])


def full(H):
    H = np.triu(H)
    return H + np.triu(H, 1).T
