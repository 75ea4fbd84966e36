"""Arguments that are not what they should be at all: one error each, in words, never a bare one."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path

import ladder
import numpy as np
import pytest
import table_calls
from for_each import for_each

import robokit as rk
import robokit.urdf
from robokit.mjcf import to_mjcf
from robokit.model import couple, edit
from robokit.viewer import draw_sparsity, write_pose_page


def small() -> rk.Robot:
    b = ladder.ModelBuilder("small").link("a", 1.0, inertia=np.eye(3)).link("b", 1.0, (0, 0, 0.2), np.eye(3))
    return b.joint("j", "revolute", "a", "b").build("floating")


R = small()
Q, V, H = R.neutral(), np.ones(R.nv), rk.crba(R, R.neutral())
ROWS = np.zeros((R.nbodies + 1, 6))
MISREAD = {
    "text": lambda x: np.asarray(x).astype(str),
    "bytes": lambda x: np.asarray(x).astype(bytes),
    "complex": lambda x: np.asarray(x) + 0j,
    "masked": lambda x: np.ma.masked_array(x, mask=np.arange(np.size(x)).reshape(np.shape(x)) == 0),
    "objects": lambda x: np.asarray(x).astype(object),
    "booleans": lambda x: np.ones(np.shape(x), bool),
}
TAKES_ARRAYS = {
    "q": lambda m: rk.crba(R, m(Q)),
    "v": lambda m: rk.rnea(R, Q, m(V), V),
    "tau": lambda m: rk.forward_dynamics(R, Q, V, m(V), method="crba"),
    "f_ext": lambda m: rk.rnea(R, Q, V, V, f_ext=m(ROWS)),
    "f_ext['a']": lambda m: rk.aba(R, Q, V, V, f_ext={"a": m(ROWS[0])}),
    "H": lambda m: rk.ltdl(R, m(H)),
    "b": lambda m: rk.ltdl(R, H).solve(m(V)),
    "dv": lambda m: R.integrate(Q, m(V)),
    "q0": lambda m: R.difference(m(Q), Q),
    "joints['j']": lambda m: R.configuration(joints={"j": m([0.3])}),
    "gravity": lambda m: R.with_gravity(m([0.0, 0.0, -1.0])),
    "v0": lambda m: rk.simulate(R, Q, m(V), duration=0.01),
}


@for_each("how", MISREAD)
@for_each("argument", TAKES_ARRAYS)
def test_numbers_that_numpy_would_reinterpret_are_refused(argument, how):
    with pytest.raises(rk.ShapeError) as caught:
        TAKES_ARRAYS[argument](MISREAD[how])
    message = str(caught.value)
    assert message.startswith(f"{argument}: expected real numbers of shape (") and how in message


@for_each("how", [k for k in MISREAD if k != "booleans"])
def test_a_builder_refuses_them_too(how):
    change = MISREAD[how]
    for call, name in (
        (lambda: rk.ModelBuilder("r").link("x", 1.0, inertia=change(np.eye(3))), "inertia of link 'x'"),
        (lambda: rk.ModelBuilder("r").link("x", 1.0, com=change(np.ones(3))), "com of link 'x'"),
        (lambda: rk.ModelBuilder("r").link("x").build(gravity=change(np.ones(3))), "gravity"),
    ):
        with pytest.raises(rk.ModelError, match=f"^{name}: expected real numbers"):
            call()


NOT_ROBOTS = ["humanoid", Path("humanoid.urdf"), None, Q, rk.Robot, {"name": "r"}]
GIVEN = table_calls.values(R, ladder.State(R))
TAKES_A_ROBOT = {
    **{name: partial(table_calls.call, name, given=GIVEN) for name in table_calls.PUBLIC},
    "rnea with forces": lambda r: rk.rnea(r, Q, V, V, f_ext={"a": np.zeros(6)}),
    "crba sparse": lambda r: rk.crba(r, Q, sparse=True),
    "inertia_entries": rk.inertia_entries,
    "inertia_sparsity": rk.inertia_sparsity,
    "regressor_entries": rk.regressor_entries,
    "simulate": lambda r: rk.simulate(r, Q, V, duration=0.01),
}


@for_each("name", TAKES_A_ROBOT)
def test_what_is_no_robot_is_said_to_be_none(name):
    for given in NOT_ROBOTS:
        with pytest.raises(rk.WrongType, match=r"^robot: expected a Robot") as caught:
            TAKES_A_ROBOT[name](given)
        assert isinstance(caught.value, TypeError)
        assert ("load it first: rk.load('humanoid" in str(caught.value)) == ("humanoid" in str(given))


@for_each(
    "call, error, message",
    [
        (lambda: rk.rnea(R, Q, V, V, f_ext={3: V[:6]}), rk.UnknownName, "no link named 3; known: a, b"),
        (
            lambda: rk.rnea(R, Q, V, V, f_ext={"a": np.zeros((2, 6)), "b": np.zeros((3, 6))}),
            rk.ShapeError,
            r"^f_ext\['b'\]: expected a batch of 2 like f_ext\['a'\], got 3",
        ),
        (lambda: R.joint(3), rk.UnknownName, "no joint named 3"),
        (lambda: R.link(None), rk.UnknownName, "no link named None"),
        (lambda: R.frame(["a"]), rk.UnknownName, r"no link named \['a'\]"),
        (lambda: rk.forward_kinematics(R, Q)[3], rk.UnknownName, "no link named 3"),
        (lambda: R.configuration(joints={3: 0.1}), rk.UnknownName, "no joint named 3"),
        (lambda: R.configuration(joints=[1]), rk.WrongType, "^joints: expected a mapping"),
        (lambda: rk.load_urdf(None), rk.WrongType, "^path: expected the path .* got None"),
        (lambda: rk.load_urdf(3), rk.WrongType, "^path: .* got int 3"),
        (lambda: rk.load_urdf(b"<robot/>"), rk.WrongType, "^path: .*loads_urdf"),
        (lambda: rk.loads_urdf(None), rk.WrongType, "^text: .* got None"),
        (lambda: rk.loads_urdf(3), rk.WrongType, "^text: .* got int 3"),
        (lambda: rk.rnea(R, Q, V, V, out=[0.0] * 7), rk.ShapeError, r"^out: .*\(7,\), got list"),
        (lambda: rk.rnea(R, Q, V, V, out=[]), rk.ShapeError, r"^out: .*\(7,\), got list"),
        (lambda: rk.rnea(R, Q, V, V, out=np.ma.zeros(7)), rk.ShapeError, "^out: .*masked"),
        (lambda: rk.crba(small(), [[1.0, 2.0], [1.0]]), rk.ShapeError, "^q: .*ragged"),
        (lambda: rk.crba(R, [[1.0, 2.0], [1.0]], sparse=True), rk.ShapeError, "^q: .*ragged"),
        (lambda: rk.ModelBuilder("r").link("x", "heavy"), rk.ModelError, "^mass of link 'x'.*'heavy'"),
        (lambda: rk.ModelBuilder("r").link("x", "3"), rk.ModelError, "^mass of link 'x'.*'3'"),
        (lambda: rk.ModelBuilder("r").link("x").build(gravity=(0, 1)), rk.ModelError, "^gravity"),
        (
            lambda: rk.ModelBuilder("r").link("x").joint("j", "fixed", 3, "x").build(),
            rk.UnknownName,
            "no link named 3",
        ),
    ],
)
def test_other_wrong_types(call, error, message):
    with pytest.raises(error, match=message):
        call()


class Derived(np.ndarray):
    """An array of another class, like np.memmap."""


def unaligned(x: np.ndarray) -> np.ndarray:
    y = np.frombuffer(bytearray(x.nbytes + 1), np.uint8)[1:].view(float)
    y[:] = x
    return y


@for_each(
    "dress",
    [
        lambda x: x.view(Derived),
        lambda x: x.astype(np.dtype(float, metadata={"unit": "rad"})),
        lambda x: x.astype(">f8"),
        unaligned,
    ],
)
def test_the_same_numbers_in_other_clothes_give_the_same(dress):
    expected = rk.aba(R, Q, V, 2 * V)
    assert (rk.aba(R, dress(Q), dress(V), dress(2 * V)) == expected).all()
    rows = rk.aba(R, dress(Q), np.stack([V, V]), dress(2 * V))
    np.testing.assert_allclose(rows, [expected] * 2, rtol=1e-12)


@for_each("out", [np.zeros(7).view(Derived), np.zeros(7, np.dtype(float, metadata={"unit": "N"}))])
def test_they_can_be_written_to(out):
    assert rk.rnea(R, Q, V, V, out=out) is out
    assert (out == rk.rnea(R, Q, V, V)).all()


def test_motions_of_empty_batches_and_of_robots_without_joints():
    q, v = np.empty((0, R.nq)), np.empty((0, R.nv))
    for a, b in ((q, v), (q, V), (Q, v)):
        assert R.integrate(a, b).shape == (0, R.nq)
    for a, b in ((q, q), (q, Q), (Q, q)):
        assert R.difference(a, b).shape == (0, R.nv)
    still = rk.ModelBuilder("still").link("a", 1.0, inertia=np.eye(3)).build()
    for rows in (0, 1, 5):
        x = np.empty((rows, 0))
        assert still.integrate(x, x).shape == still.difference(x, x).shape == (rows, 0)


NO_NAMES = [np.zeros(3), np.array(["llvm"]), 10**5000, b"llvm", None, "\ud800", ["aba"]]
CHOICES = {
    "engine": lambda x: rk.crba(R, Q, engine=x if x is not None else 0),
    "method": lambda x: rk.forward_dynamics(R, Q, V, V, method=x),
    "axes": lambda x: rk.link_jacobian(R, Q, "a", axes=x),
    "dtype": lambda x: rk.crba(R, Q, dtype=x if x is not None else "half"),
    "base": lambda x: rk.loads_urdf("<robot/>", base=x),
    "mimic": lambda x: rk.loads_urdf("<robot/>", mimic=x if x is not None else 0),
    "joint kind": lambda x: rk.ModelBuilder("r").joint("j", x, "a", "b"),
    "integrator": lambda x: rk.simulate(R, Q, duration=0.01, integrator=x if x is not None else 0),
}


@for_each("wrong", NO_NAMES)
@for_each("choice", CHOICES)
def test_what_is_no_name_of_a_choice_is_an_unknown_name(choice, wrong):
    with pytest.raises(rk.UnknownName, match=f"^no {choice} named") as caught:
        CHOICES[choice](wrong)
    assert len(str(caught.value)) < 400


NO_PATHS = [1, True, 2.5, None, b"a.npz", ["a"], Q, R]
MOTION = rk.simulate(R, Q, duration=0.01)
TAKES_A_PATH = {
    "Trajectory.load": rk.Trajectory.load,
    "Trajectory.save": MOTION.save,
    "Trajectory.to_html": MOTION.to_html,
    "check_urdf": lambda p: rk.urdf.check_urdf(p if not isinstance(p, bytes) else 1),
    "dump": lambda p: rk.urdf.dump(R, p if p is not None else 1),
    "to_mjcf": lambda p: to_mjcf(R, p if p is not None else 1),
    "expand_xacro": rk.urdf.expand_xacro,
    "write_pose_page": lambda p: write_pose_page(R, p),
    "draw_sparsity": lambda p: draw_sparsity(R, p),
    "find_robot": rk.find_robot,
    "folder": lambda p: rk.loads_urdf("<robot/>", folder=p if p is not None else 1),
    "package_dirs": lambda p: rk.loads_urdf("<robot/>", package_dirs=[p]),
}


@for_each("wrong", NO_PATHS)
@for_each("function", TAKES_A_PATH)
def test_what_is_no_path_is_said_to_be_none(function, wrong):
    with pytest.raises(rk.WrongType, match=r"expected (a path|the path|the name|folders)"):
        TAKES_A_PATH[function](wrong)
    os.fstat(1)  # numbers are open files of the process: nobody has closed them


def test_values_that_cannot_be_shown_are_refused_in_words():
    huge = 10**5000  # its repr is a ValueError of Python
    for call, error in (
        (lambda: rk.crba(huge, Q), rk.WrongType),
        (lambda: rk.crba(R, huge), rk.ShapeError),
        (lambda: rk.Ground(height=huge), rk.ShapeError),
        (lambda: R.random_configuration(-huge), rk.ShapeError),
        (lambda: rk.ModelBuilder("r").link("a", huge), rk.ModelError),
        (lambda: rk.load_urdf(huge), rk.WrongType),
        (lambda: rk.crba(R, Hostile()), rk.ShapeError),
        (lambda: rk.crba("x" * 100_000, Q), rk.WrongType),
    ):
        with pytest.raises(error) as caught:
            call()
        assert len(str(caught.value)) < 800 and str(caught.value).isprintable()


class Hostile:
    def __repr__(self):
        return "\x1b[31m" + 1000 * "line\n"


NOT_A_ROBOT = {
    "cost": rk.cost,
    "to_mjcf": to_mjcf,
    "dump": rk.urdf.dump,
    "couple": couple,
    "lock_joints": lambda r: edit.lock_joints(r, {}),
    "remove_subtree": lambda r: edit.remove_subtree(r, "a"),
    "graft": lambda r: edit.graft(r, R, "a"),
    "grafted": lambda r: edit.graft(R, r, "a"),
    "merge_links": edit.merge_links,
    "replace_inertia": lambda r: edit.replace_inertia(r, {}),
}


@for_each("name", NOT_A_ROBOT)
def test_edits_and_writers_take_robots_only(name):
    for wrong in NOT_ROBOTS:
        with pytest.raises(rk.WrongType, match=r"^(robot|other): expected a Robot"):
            NOT_A_ROBOT[name](wrong)


@for_each("how", MISREAD)
def test_single_numbers_of_a_builder_are_not_reinterpreted(how):
    wrong = MISREAD[how](np.float64(1.0))
    with pytest.raises(rk.ModelError, match=r"^mass of link 'a': expected real numbers"):
        rk.ModelBuilder("r").link("a", wrong)
    with pytest.raises(rk.ModelError, match=r"^damping of joint 'j': expected real numbers"):
        rk.ModelBuilder("r").joint("j", "revolute", "a", "b", damping=wrong)
