"""reproducible=True: one frozen hash, whatever takes the steps.

A toy's fall is checked in every way that needs no other program than Node. The humanoid, G1, Chromium and
ARM64 are further down, behind their markers. ``every_target.py`` runs everything for one robot and prints it.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import falls
import numpy as np
import page_program
import pytest
import table_calls
from falls import FROZEN, batch, fingerprint, processor, robot_of, runs_here, single

import robokit as rk
from robokit.engine import Kernel
from robokit.engine.reproducible import wanted
from robokit.sim.run_inputs import end_share
from robokit.spatial.scalars import sine_and_cosine, sines_and_cosines

SECONDS = 1.0


@pytest.fixture(scope="module")
def motion():
    return single(robot_of("toy"), SECONDS)


def test_the_hash_of_a_fall_is_frozen(motion):
    assert fingerprint(motion.q, motion.v) == FROZEN["toy", SECONDS]
    # It falls, hits the ground, and its hinge reaches a limit: all of the step has run.
    assert motion.energy.dissipated[-1] > 30.0 and np.abs(motion.q[:, 7]).max() > 0.2


@pytest.mark.parametrize(("rows", "row", "threads"), [(1, 0, 1), (7, 3, 2), (64, 50, 2)])
def test_a_row_of_a_batch_is_the_single_run(motion, rows, row, threads):
    assert batch(motion.robot, SECONDS, rows, row, threads) == FROZEN["toy", SECONDS]


SLOW = [pytest.param(t, marks=pytest.mark.slow) for t in ("SSE2, 1 lane", "AVX-512, 8 lanes")]


@pytest.mark.parametrize("target", ["SSE2, 2 lanes", "AVX2, 4 lanes", *SLOW])
def test_other_processors_have_the_same_bits(target):
    if not runs_here(target):
        pytest.skip(f"not this processor: {target}")
    with processor(target):
        assert batch(robot_of("toy"), SECONDS, 7, 3) == FROZEN["toy", SECONDS]


@pytest.mark.node
def test_webassembly_has_the_same_bits(motion):
    assert fingerprint(*page_program.in_node(motion, falls.EVERY)) == FROZEN["toy", SECONDS]


@pytest.mark.slow
@pytest.mark.node
def test_springs_have_the_same_bits_in_the_page():
    robot = rk.load_urdf(rk.find_robot("quadruped"), base="floating")
    trunk, joint = robot.link_names[0], robot.joint_names[4]
    springs = [
        rk.Spring("world", trunk, (0, 0, 1), stiffness=200.0, damping=5.0, rest_length=0.3),
        rk.JointSpring(joint, stiffness=5.0),
    ]
    q = rk.standing_configuration(robot)
    run = rk.simulate(robot, q, duration=0.2, dt=1e-3, ground=True, springs=springs, reproducible=True)
    for ours, theirs in zip((run.q, run.v), page_program.in_node(run, 5), strict=True):
        assert np.array_equal(ours, theirs)


@pytest.mark.browser
def test_a_browser_has_the_same_bits(motion, chromium):
    found = page_program.in_chromium(motion, falls.EVERY, chromium)
    assert fingerprint(*found) == FROZEN["toy", SECONDS]


@pytest.mark.slow
def test_a_row_with_a_mass_and_a_friction_of_its_own_has_the_same_bits_in_the_page():
    robot = falls.robot_of("toy")
    masses = np.array([0.8, 1.375])[:, None, None] * robot.inertial_parameters
    ground, how = rk.Ground(friction=[0.3, 0.5]), {"record_every": falls.EVERY, "reproducible": True}
    both = robot.with_inertias(masses)
    found = rk.rollout(both, *falls.start(robot), 0.3, falls.DT, ground=ground, **how)
    expected = fingerprint(found.q[:, 1], found.v[:, 1])
    assert expected != fingerprint(found.q[:, 0], found.v[:, 0])
    alone = rk.simulate(
        both.sample(1), *falls.start(robot), 0.3, falls.DT, ground=rk.Ground(friction=0.5), **how
    )
    assert fingerprint(alone.q, alone.v) == expected
    assert fingerprint(*page_program.in_node(found.trajectory(1), falls.EVERY)) == expected


@pytest.mark.slow
def test_arm64_has_the_same_bits(motion):
    if not shutil.which("qemu-aarch64"):
        pytest.skip("qemu-aarch64 is not installed (Debian: qemu-user)")
    assert falls.on_arm(motion) == FROZEN["toy", SECONDS]


@pytest.mark.slow
def test_the_hash_of_ten_seconds_of_a_falling_humanoid_is_frozen():
    assert batch(robot_of("humanoid"), 10.0, 7, 3) == FROZEN["humanoid", 10.0]


@pytest.mark.parity
def test_the_hash_of_ten_seconds_of_a_falling_g1_is_frozen():
    motion = single(robot_of("g1"), 10.0)
    assert fingerprint(motion.q, motion.v) == FROZEN["g1", 10.0]


# ---- what is around the kernels ---------------------------------------------------------------------


OTHERS = {
    "OPENBLAS_CORETYPE": "Prescott",
    "NPY_DISABLE_CPU_FEATURES": "AVX512F AVX512_SKX AVX2 FMA3",
    "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-AVX512F",
}
"""Variables with which BLAS, NumPy and the C library compute as on an older processor."""

CONSTANTS = """
import warnings
warnings.simplefilter("ignore")
import falls, numpy as np, sys
import robokit as rk
robot = falls.robot_of(sys.argv[1])
q = rk.standing_configuration(robot, tilt=0.3)
from robokit.sim.run_inputs import set_up
program = set_up(robot, 1.0, None, True, None, None, None, reproducible=True).program
from robokit.sim.trajectory import joint_numbers
from robokit.sim.steppers import step_numbers
parts = [q, joint_numbers(robot), robot.inertial_parameters, program.parameters(1e-3)]
parts += [x for _, x in sorted(step_numbers(program, 1e-3).items()) if x.dtype == float]
from robokit.sim.starts import closed_rows, tangent
from robokit.sim.run_inputs import end_share
bar, rng = rk.load_urdf(rk.find_robot("four_bar")), np.random.default_rng(3)
closed = closed_rows(bar, rng.normal(0.0, 1.0, (30, 3)))[0]
curve = rk.Keyframes(np.arange(9.0) ** 1.5, ("a", "b"), rng.normal(size=(9, 2)))
parts += [closed, tangent(bar, closed, rng.normal(size=(30, 3))), end_share(np.geomspace(1e-9, 900.0, 300))]
parts += curve.at(np.linspace(-1.0, 23.0, 200))
kept = falls.first_carried(program, np.tile(q, (9, 1)), np.ones((9, robot.nv)))
print(falls.fingerprint(np.concatenate([np.ravel(x) for x in parts]) + 0.0, kept))
print(hash(repr(program.joints)))
"""


def constants(name: str, **environment: str) -> str:
    """A hash of all that Python and NumPy compute for a step, in a process of its own."""
    here = Path(__file__).resolve().parent
    paths = os.pathsep.join(map(str, (here, *here.parents[:2])))
    given = {**os.environ, "PYTHONPATH": paths, "PYTHONHASHSEED": "0", **environment}
    run = [sys.executable, "-c", CONSTANTS, name]
    return subprocess.run(run, env=given, capture_output=True, text=True, check=True).stdout


@pytest.mark.slow
def test_what_numpy_computes_for_a_step_does_not_depend_on_its_libraries():
    assert constants("humanoid", **OTHERS) == constants("humanoid")


def test_the_share_of_a_damper_at_the_end_of_a_step():
    """alpha = 1 / (1 - e^-z) - 1 / z, of which expm1 knows all digits where z is not small."""
    z = np.geomspace(1e-3, 600.0, 2000)
    exact = -1.0 / np.expm1(-z) - 1.0 / z
    np.testing.assert_allclose(end_share(z), exact, rtol=0, atol=3e-16 + 4e-16 / z.min())
    np.testing.assert_allclose(end_share(z[z > 0.1]), exact[z > 0.1], atol=2e-15)
    assert end_share(0.0) == 0.5 and end_share(1e6) == 1.0 - 1e-6
    across = end_share(np.array([0.5 - 1e-12, 0.5]))
    assert abs(across[1] - across[0]) < 3e-13


def test_the_ground_of_a_row_is_that_of_a_single_run():
    normals = np.random.default_rng(2).normal(size=(100, 3)) * 0.3 + np.array([0.0, 0.0, 1.2])
    rows = rk.Ground(normal=normals[normals[:, 2] > 0.6])
    up = np.array(rows.up).T
    assert all(rows.row(k).up == tuple(up[k]) for k in range(rows.rows))
    assert all(
        rk.Ground(normal=up[k]).up == rk.Ground(normal=up[k : k + 1]).row(0).up for k in range(rows.rows)
    )


# ---- functions --------------------------------------------------------------------------------------


FUNCTIONS = ("rnea", "aba", "crba", "forward_kinematics", "centroidal_momentum_matrix")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_single_states_rows_and_python_give_the_same_bits(name):
    robot = falls.robot_of("toy")
    rng = np.random.default_rng(5)
    q = np.tile(robot.neutral(), (5, 1))
    q[:, :4] = np.array([0.7, 0.1, 0.1, 0.7])
    q[:, 4:] = rng.normal(size=(5, 4))
    given = {x: rng.normal(size=(5, robot.nv)) for x in ("v", "a", "tau")} | {"q": q}

    def bits(rows, **how):
        own = {x: np.ascontiguousarray(value[rows]) for x, value in given.items()}
        found = table_calls.arrays(table_calls.call(name, robot, own, reproducible=True, **how))
        return [np.ascontiguousarray(x).tobytes() for x in found]

    for k in range(5):
        one = bits(k)
        assert one == bits(slice(k, k + 1)) and one == bits(k, engine="python")
    whole = table_calls.arrays(table_calls.call(name, robot, given, reproducible=True))
    assert bits(4) == [np.ascontiguousarray(x[4]).tobytes() for x in whole]
    assert bits(slice(0, 5)) == bits(slice(0, 5), engine="python")


def test_the_environment_asks_for_it_and_the_argument_is_checked(monkeypatch):
    def built(**how):
        function = lambda x: [[x[0] * x[1] + x[2]]]  # noqa: E731
        return Kernel("fused", [("x", 3)], [("y", (1,))], function, **how)

    x = np.array([1.0 + 2.0**-30, 1.0 + 2.0**-30, -1.0 - 2.0**-29])
    assert built(reproducible=True)(x)[0] == 0.0  # 2^-60 is rounded away before the sum
    monkeypatch.setenv("ROBOKIT_REPRODUCIBLE", "1")
    assert built()(x)[0] == 0.0 and built(reproducible=False).signature.reproducible is False
    monkeypatch.setenv("ROBOKIT_REPRODUCIBLE", "yes")
    with pytest.raises(rk.UnknownName, match="ROBOKIT_REPRODUCIBLE"):
        built()
    with pytest.raises(rk.WrongType, match="reproducible"):
        rk.simulate(falls.robot_of("toy"), reproducible="yes")


def test_outputs_hold_no_negative_zero():
    function = lambda x: [[-x[0], x[0] * x[1], x[1]]]  # noqa: E731
    kernel = Kernel("zeros", [("x", 2)], [("y", (3,))], function, reproducible=True)
    x = np.array([0.0, -0.0])
    for found in (kernel(x), kernel(np.tile(x, (3, 1))), kernel.python(x), kernel.python(x[None])):
        assert not np.signbit(found).any()


def test_single_precision_has_the_same_bits_in_batches_of_any_size_and_in_python():
    robot = falls.robot_of("toy")
    q, v = (np.tile(x, (19, 1)) for x in falls.start(robot))
    v[:, 6] += np.arange(19)
    how = {"dtype": "float32", "reproducible": True}
    whole = rk.aba(robot, q, v, 0.0 * v, **how)
    assert whole.dtype == np.float32
    for k in (0, 11, 18):
        one = rk.aba(robot, q[k], v[k], 0.0 * v[k], **how)
        assert one.tobytes() == whole[k].tobytes()
        assert rk.aba(robot, q[k], v[k], 0.0 * v[k], engine="python", **how).tobytes() == one.tobytes()


def test_sines_of_python_and_numpy_are_those_of_machine_code():
    from robokit.spatial.scalars import cos, sin

    function = lambda x: [[f(y * 1.0) for y in x for f in (sin, cos)]]  # noqa: E731
    for dtype in ("float64", "float32"):
        kernel = Kernel("s", [("x", 1)], [("y", (2,))], function, dtype=dtype, reproducible=True)
        rng = np.random.default_rng(3)
        x = np.concatenate([rng.normal(size=400), 1e3 * rng.normal(size=200), 1e8 * rng.normal(size=200)])
        x = np.concatenate([x, np.pi * 0.5 * np.arange(-20, 20), [0.0, -0.0, 5e-324, 2.0**20, 2.0**29]])
        x = x.astype(dtype)
        machine = kernel(x[:, None])
        arrays = np.stack(sines_and_cosines(x), axis=1) + x.dtype.type(0.0)
        assert arrays.dtype == dtype and arrays.tobytes() == machine.tobytes()
        if dtype == "float64":
            floats = np.array([sine_and_cosine(y) for y in x.tolist()]) + 0.0
            assert floats.tobytes() == machine.tobytes()


@pytest.mark.skipif(platform.machine() != "x86_64" or sys.platform != "linux", reason="code of x86-64")
def test_a_process_that_takes_tiny_numbers_for_zero_is_refused():
    code = bytes.fromhex("897c24f8 0fae5424f8 c3")  # mov [rsp-8], edi; ldmxcsr [rsp-8]; ret
    memory = mmap.mmap(-1, len(code), prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    memory.write(code)
    control = ctypes.CFUNCTYPE(None, ctypes.c_uint)(ctypes.addressof(ctypes.c_char.from_buffer(memory)))
    control(0x9FC0)
    try:
        with pytest.raises(rk.RobokitError, match="ffast-math"):
            wanted(True)
        assert not wanted(False)
    finally:
        control(0x1F80)
    assert wanted(True)
