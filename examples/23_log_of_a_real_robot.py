"""The log of a robot: what its model cannot explain, and a better model.

A ROS 2 bag is read without ROS, and matched with the robot by joint names:

    log = rk.read_log("run", robot)

Its page is like that of a simulation; here the ghost is a simulation from the same start with the logged
torques. The torques of the model and of the motors differ because of missing friction and wrong masses in the
description; ``rk.identify_log`` estimates both. In the shell: ``robokit log run --robot arm`` and
``robokit identify run --robot arm -o better.urdf``.

Here the "real" arm is simulated, with other masses, friction and noise. This example needs robokit[logs].

Check: the unexplained torques of the better model are less than a tenth of those of the description.
"""

import argparse
import tempfile
import webbrowser
from dataclasses import replace
from pathlib import Path

import numpy as np
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

import robokit as rk

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--headless", action="store_true", help="only write the page")
parser.add_argument("--output", type=Path, default=Path("log.html"), metavar="FILE")
arguments = parser.parse_args()

robot, rng = rk.load_urdf(rk.find_robot("arm")), np.random.default_rng(0)
real = robot.with_inertias(robot.inertial_parameters * rng.uniform(0.7, 1.4, (robot.nbodies + 1, 1)))
real = replace(real, joints=tuple(replace(joint, damping=0.9, friction=0.6) for joint in real.joints))
motion = rk.excitation(robot, 8.0)
steps = np.linspace(0.0, len(motion.q) - 1, 8000)
q, v = (np.stack([np.interp(steps, range(len(x)), y) for y in x.T], axis=1) for x in (motion.q, motion.v))
servos = rk.PD(kp=2000.0, kd=100.0, target=q, velocity=v, effort=np.inf, max_velocity=np.inf)
run = rk.simulate(real, motion.q[0], motion.v[0], 8.0, 1e-3, actuators=servos, record_every=2)
tau = run.actuator_force + 0.01 * run.actuator_force.std(axis=0) * rng.standard_normal(run.v.shape)
noisy = run.q + 2e-5 * rng.standard_normal(run.q.shape)

types = get_typestore(Stores.ROS2_HUMBLE)
kind = "sensor_msgs/msg/JointState"
State, Header, Time = (types.types[k] for k in (kind, "std_msgs/msg/Header", "builtin_interfaces/msg/Time"))
with tempfile.TemporaryDirectory() as folder:
    with Writer(f"{folder}/run", version=9, storage_plugin=StoragePlugin.MCAP) as bag:
        channel = bag.add_connection("/joint_states", kind, typestore=types)
        for t, *values in zip(1.0 + run.t, noisy, run.v, tau, strict=True):
            state = State(Header(Time(int(t), int(1e9 * (t % 1.0))), ""), list(robot.joint_names), *values)
            bag.write(channel, int(1e9 * t), types.serialize_cdr(state, kind))
    log = rk.read_log(f"{folder}/run", robot)
before, fit = rk.unexplained_torques(log), rk.identify_log(log)
print("\n".join([*before.table(), "", fit.excitation(), *fit.table()]))
rk.write_log_page(log, arguments.output, before, rk.simulate_log(log))
if not arguments.headless:
    webbrowser.open(arguments.output.resolve().as_uri())
assert np.linalg.norm(fit.after) < np.linalg.norm(fit.before) / 10, "a better model explains more"
