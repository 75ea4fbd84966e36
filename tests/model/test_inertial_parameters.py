"""Robots with other inertias: the same as built anew, truthful in all they say, and not compiled again."""

from __future__ import annotations

import copy
import pickle

import ladder
import numpy as np
import pytest
from for_each import for_each
from ladder import relative

import robokit as rk
from robokit.dynamics.build import example_key, flat_function, sizes, without_inertias
from robokit.dynamics.table import KERNELS
from robokit.engine.backend import llvm
from robokit.model import ModelBuilder, Placement

SAMPLES = 5
I = np.eye(3)


PLAIN = {"engine": "python"}


def rebuilt(base: str, masses: dict[str, tuple]) -> rk.Robot:
    """A small tree with folded links, every link's inertia from `masses` where named there."""
    rng = np.random.default_rng(3)
    b = rk.ModelBuilder("tree")
    names = ("root", "upper", "lower", "tool", "side", "hand")
    for name in names:
        own = rng.uniform(0.5, 2.0), rng.normal(size=3) * 0.1, ladder.inertia(rng)
        b.link(name, *masses.get(name, own))
    kinds = ("revolute", "prismatic", "fixed", "spherical", "fixed")
    for name, kind, parent in zip(names[1:], kinds, ("root", "upper", "lower", "root", "side"), strict=True):
        placement = rk.Placement(ladder.rotation(rng), rng.normal(size=3) * 0.3)
        b.joint(f"to_{name}", kind, parent, name, placement, axis=rng.normal(size=3))
    return b.build(base=base)


def others(rng: np.random.Generator, *names: str) -> dict[str, tuple]:
    return {n: (rng.uniform(0.5, 2.0), rng.normal(size=3) * 0.1, ladder.inertia(rng)) for n in names}


def state(robot: rk.Robot, rows: int | None = None) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(1)
    q = np.array([robot.random_configuration(rng) for _ in range(rows or 1)])
    rest = rng.normal(size=(3, rows or 1, robot.nv))
    return tuple(x if rows else x[0] for x in (q, *rest))


def some(robot: rk.Robot, q, v, a, tau, **how) -> dict[str, np.ndarray]:
    """The three algorithms: each kernel that is compiled costs a suite half a second."""
    return {
        "rnea": rk.rnea(robot, q, v, a, **how),
        "H": rk.crba(robot, q, **how),
        "aba": rk.aba(robot, q, v, tau, **how),
    }


def everything(robot: rk.Robot, q, v, a, tau, **how) -> dict[str, np.ndarray]:
    link = robot.link_names[-1]
    f_ext = {link: np.arange(6.0)}
    H = rk.crba(robot, q, **how)
    factor = rk.ltdl(robot, H, **how)
    poses = rk.forward_kinematics(robot, q, **how)
    return {
        "rnea": rk.rnea(robot, q, v, a, **how),
        "rnea_f_ext": rk.rnea(robot, q, v, a, f_ext, **how),
        "bias": rk.bias_forces(robot, q, v, **how),
        "bias_f_ext": rk.bias_forces(robot, q, v, f_ext, **how),
        "gravity": rk.gravity_forces(robot, q, **how),
        "H": H,
        "nonzeros": rk.crba_nonzeros(robot, q, **how),
        "D": factor.D,
        "solve": factor.solve(tau),
        "aba": rk.aba(robot, q, v, tau, **how),
        "aba_f_ext": rk.aba(robot, q, v, tau, f_ext, **how),
        "fd": rk.forward_dynamics(robot, q, v, tau, method="crba", **how),
        "fd_f_ext": rk.forward_dynamics(robot, q, v, tau, f_ext, method="crba", **how),
        "com": rk.center_of_mass(robot, q, **how),
        "T": np.asarray(rk.kinetic_energy(robot, q, v, **how)),
        "V": np.asarray(rk.potential_energy(robot, q, **how)),
        "A_G": rk.centroidal_momentum_matrix(robot, q, **how),
        "h_G": rk.centroidal_momentum(robot, q, v, **how),
        "rate": rk.centroidal_momentum_bias(robot, q, v, **how),
        "rotation": poses.rotation,
        "position": poses.position,
    }


def assert_same(got: dict[str, np.ndarray], expected: dict[str, np.ndarray], tolerance: float) -> None:
    errors = {name: relative(got[name], expected[name]) for name in expected}
    assert max(errors.values()) < tolerance, errors


def test_agrees_with_a_robot_built_anew():
    change = others(np.random.default_rng(7), "lower", "tool", "side")
    varied, anew = rebuilt("floating", {}).with_inertias(change), rebuilt("floating", change)
    for x in (state(anew), state(anew, 9)):
        assert_same(everything(varied, *x, **PLAIN), everything(anew, *x, **PLAIN), 1e-12)
        assert_same(some(varied, *x), some(anew, *x, **PLAIN), 1e-12)
    assert np.abs(varied.inertial_parameters - anew.inertial_parameters).max() < 1e-15
    assert varied.total_mass == pytest.approx(anew.total_mass, rel=1e-15)
    assert varied.link("tool").mass == anew.link("tool").mass
    by_body = rebuilt("floating", {}).with_inertias(anew.inertial_parameters)
    assert_same(everything(by_body, *x, **PLAIN), everything(anew, *x, **PLAIN), 1e-12)
    assert by_body.link("lower").mass == pytest.approx(anew.link("lower").mass + anew.link("tool").mass)


@pytest.mark.parametrize("name", ["quadruped", "humanoid"])
@pytest.mark.parametrize("base", ["fixed", "floating"])
def test_agrees_with_the_constants_of_a_description(name, base):
    """The numbers of the robot itself as an input give what they give as constants."""
    robot = rk.load_urdf(rk.find_robot(name), base=base)
    P = robot.inertial_parameters
    varied = robot.with_inertias(2.0 * P).with_inertias(P)
    q, v, a, tau = state(robot)
    assert relative(rk.rnea(varied, q, v, a, **PLAIN), rk.rnea(robot, q, v, a)) < 1e-12
    assert relative(rk.crba(varied, q, **PLAIN), rk.crba(robot, q, **PLAIN)) < 1e-12
    assert relative(rk.aba(varied, q, v, tau, **PLAIN), rk.aba(robot, q, v, tau, **PLAIN)) < 1e-12
    assert varied.fingerprint == robot.fingerprint != robot.with_inertias(2.0 * P).fingerprint


def test_each_sample_is_its_robot():
    base = "floating"
    rng = np.random.default_rng(5)
    sets = [others(rng, "upper", "hand") for _ in range(SAMPLES)]
    stacked = {n: tuple(np.stack(x) for x in zip(*(s[n] for s in sets), strict=True)) for n in sets[0]}
    robot = rebuilt(base, {})
    varied = robot.with_inertias(stacked)
    assert varied.samples == SAMPLES and varied.total_mass.shape == (SAMPLES,)
    assert varied.inertial_parameters.shape == (SAMPLES, robot.nbodies + 1, 10)
    x = state(robot, SAMPLES)
    got = everything(varied, *x, **PLAIN)
    assert_same(some(varied, *x), some(varied, *x, **PLAIN), 1e-12)
    one_state = rk.rnea(varied, *(each[0] for each in x[:3]))
    for k in range(SAMPLES):
        anew = rebuilt(base, sets[k])
        expected = everything(anew, *(each[k] for each in x), **PLAIN)
        assert_same({n: got[n][k] for n in got}, expected, 1e-12)
        assert relative(one_state[k], rk.rnea(anew, *(each[0] for each in x[:3]), **PLAIN)) < 1e-12
        assert varied.sample(k).total_mass == pytest.approx(anew.total_mass, rel=1e-15)
        np.testing.assert_allclose(varied.sample(k).link("hand").com, sets[k]["hand"][1], rtol=1e-15)
    whole = robot.with_inertias(varied.inertial_parameters)
    assert relative(rk.crba(whole, x[0]), got["H"]) < 1e-13


def test_the_second_set_does_not_compile(monkeypatch):
    robot = rebuilt("fixed", {})
    made: list[str] = []
    assemble = llvm.assemble
    monkeypatch.setattr(llvm, "assemble", lambda ir: made.append(ir) or assemble(ir))
    monkeypatch.setattr("robokit.disk_cache.load", lambda name: None)
    monkeypatch.setattr("robokit.disk_cache.store", lambda *given: None)
    q, v, a, _ = state(robot)
    rk.rnea(robot.with_inertias(robot.inertial_parameters), q, v, a)
    assert made
    made.clear()
    second = robot.with_inertias(3.0 * robot.inertial_parameters)
    assert (
        relative(
            rk.rnea(second, q, v, a), 3.0 * rk.rnea(second.with_inertias(robot.inertial_parameters), q, v, a)
        )
        < 1e-12
    )
    assert not made


def test_copies_gravity_and_text_stay_truthful():
    robot = rebuilt("floating", {})
    varied = robot.with_inertias({"upper": (1.5, None, None)})
    np.testing.assert_array_equal(varied.link("upper").com, robot.link("upper").com)
    assert robot.link("upper").mass != 1.5 == varied.link("upper").mass
    q, v, a, _ = state(robot)
    expected = rk.rnea(varied, q, v, a)
    for twin in (pickle.loads(pickle.dumps(varied)), copy.copy(varied), copy.deepcopy(varied)):
        assert twin.fingerprint == varied.fingerprint and not twin.kernels and not twin.shared_kernels
        np.testing.assert_array_equal(rk.rnea(twin, q, v, a), expected)
    floating = varied.with_gravity((0, 0, 0))
    assert floating.total_mass == varied.total_mass
    assert relative(expected - rk.rnea(floating, q, v, a), rk.gravity_forces(varied, q)) < 1e-12
    assert "samples" in repr(robot.with_inertias(np.stack([robot.inertial_parameters] * 3)))
    with pytest.raises(ValueError, match="read-only"):
        varied.inertial_parameters[0, 0] = 1.0


def test_simulates_as_the_robot_built_anew():
    change = others(np.random.default_rng(8), "lower", "side")
    varied, anew = rebuilt("floating", {}).with_inertias(change), rebuilt("floating", change)
    q, v, *_ = state(anew)
    a, b = (rk.simulate(r, q, v, duration=0.02, integrator="contact") for r in (varied, anew))
    assert relative(a.q, b.q) < 1e-11
    with pytest.raises(rk.ShapeError, match=r"sample\(k\)"):
        rk.simulate(varied.with_inertias(np.stack([varied.inertial_parameters] * 2)))


def test_massless_samples_name_the_joint():
    robot = rebuilt("fixed", {})
    P = np.stack([robot.inertial_parameters] * 3)
    P[1, robot.link("hand").body] = 0.0
    varied = robot.with_inertias(P)
    q, v, a, tau = state(robot)
    assert np.isfinite(rk.rnea(varied, q, v, a)).all()
    with pytest.raises(rk.SingularInertia, match="to_side"):
        rk.aba(varied, q, v, tau)


@for_each(
    "change, words",
    [
        ({"upper": (-1.0, None, None)}, "link 'upper': the mass must not be negative"),
        ({"upper": (np.nan, None, None)}, "mass of link 'upper' must be finite"),
        ({"upper": (1.0, (0, 0), I)}, r"com of link 'upper': expected \(3,\)"),
        ({"upper": (1.0, (0, 0, 0), np.diag([1.0, 1.0, 2.1]))}, "link 'upper': no body has this inertia"),
        ({"upper": (1.0, (9, 0, 0), np.diag([1.0, 1.0, -0.1]))}, "link 'upper': no body has this inertia"),
        ({"upper": (1.0, (0, 0, 0), I + np.eye(3, k=1))}, "inertia of link 'upper' is not symmetric"),
        ({"upper": ([1.0, -1.0], None, None)}, "link 'upper', sample 1: the mass"),
        ({"upper": 3.0}, "link 'upper': expected"),
        ({"upper": ([1.0, 2.0], np.zeros((3, 3)), I)}, "link 'upper': batches"),
        ({"uper": (1.0, None, None)}, "did you mean 'upper'"),
        (np.zeros((3, 10)), "inertias: expected"),
        ("heavy", "inertias: expected"),
    ],
)
def test_refuses_what_no_body_has(change, words):
    with pytest.raises((rk.ModelError, rk.UnknownName), match=words):
        rebuilt("fixed", {}).with_inertias(change)


def test_refuses_rows_that_no_body_has():
    robot = rebuilt("fixed", {})
    for column, value, words in ((0, -1.0, "negative"), (4, 9.0, "no body"), (1, np.inf, "finite")):
        P = np.array(robot.inertial_parameters)
        P[2, column] = value
        with pytest.raises(rk.ModelError, match=f"link 'lower': .*{words}"):
            robot.with_inertias(P)
        with pytest.raises(rk.ModelError, match="link 'lower', sample 1: "):
            robot.with_inertias(np.stack([robot.inertial_parameters, P]))
    P = np.array(robot.inertial_parameters)
    P[2, 0], P[2, 4:] = 0.0, 0.0
    with pytest.raises(rk.ModelError, match="first moment without mass"):
        robot.with_inertias(P)
    floating = rebuilt("floating", {})
    with pytest.raises(rk.ModelError, match="row 0"):
        floating.with_inertias(floating.inertial_parameters + 1.0)


def test_wrong_batch_is_refused_in_words():
    robot = rebuilt("fixed", {})
    varied = robot.with_inertias(np.stack([robot.inertial_parameters] * 3))
    with pytest.raises(rk.ShapeError, match="inertial_parameters: expected a batch of 4 like"):
        rk.rnea(varied, *state(robot, 4)[:3])
    with pytest.raises(rk.ShapeError, match="3 samples"):
        varied.sample(3)
    for none in (varied.inertial_parameters[:0], {"upper": ([], None, None)}):
        with pytest.raises(rk.ModelError, match="at least one sample"):
            robot.with_inertias(none)


# ---- the two engines -----------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [None, 0, pytest.param(7, marks=pytest.mark.slow)])
def test_the_engines_agree(rows):
    b = rk.ModelBuilder("small").link("root", 1.0, (0.1, 0, 0), I).link("tip", 1.0, (0, 0, 0.2), I)
    robot = b.joint("hinge", "revolute", "root", "tip").build(base="floating")
    for each in (robot, robot.with_inertias(1.5 * robot.inertial_parameters)):
        x = state(robot, rows) if rows != 0 else tuple(a[:0] for a in state(robot, 1))
        assert_same(everything(each, *x, **PLAIN), everything(each, *x), 1e-12)


def test_python_compiles_nothing(monkeypatch):
    monkeypatch.setattr(llvm, "assemble", lambda ir: pytest.fail("compiled"))
    monkeypatch.setattr("robokit.disk_cache.load", lambda name: None)
    robot = rebuilt("fixed", {})
    expected = everything(robot, *state(robot), engine="python")
    monkeypatch.setenv("ROBOKIT_ENGINE", "python")
    forced = rebuilt("fixed", {})
    assert_same(everything(forced, *state(forced)), expected, 1e-15)
    rk.simulate(forced, duration=0.002)


def test_unknown_engines_are_refused(monkeypatch):
    robot = rebuilt("fixed", {})
    q, v, a, _ = state(robot)
    for call in (rk.rnea, rk.aba):
        with pytest.raises(rk.UnknownName, match="known: llvm, python"):
            call(robot, q, v, a, engine="fortran")
    with pytest.raises(rk.UnknownName, match="did you mean 'python'"):
        rk.crba(robot, q, engine="Python")
    monkeypatch.setenv("ROBOKIT_ENGINE", "jax")
    with pytest.raises(rk.UnknownName, match="ROBOKIT_ENGINE"):
        rk.crba(rebuilt("fixed", {}), q)


def test_arrays_from_elsewhere_have_another_dtype_object():
    robot = rebuilt("fixed", {})
    x = state(robot)[:3]
    far = [pickle.loads(pickle.dumps(each)) for each in x]
    out = pickle.loads(pickle.dumps(np.zeros(robot.nv)))
    np.testing.assert_array_equal(rk.rnea(robot, *far), rk.rnea(robot, *x))
    np.testing.assert_array_equal(rk.rnea(robot, *far, out=out), rk.rnea(robot, *x))
    assert out.any()


def test_python_fills_out_and_refuses_alike():
    robot = rebuilt("fixed", {})
    q, v, a, _ = state(robot)
    out = np.empty(robot.nv)
    assert rk.rnea(robot, q, v, a, out=out, engine="python") is out
    assert relative(out, rk.rnea(robot, q, v, a)) < 1e-12
    with pytest.raises(rk.InvalidValue, match="v: expected finite"):
        rk.rnea(robot, q, v * np.nan, a, engine="python")


def test_rows_that_say_inertias_do_not_matter_never_read_them():
    robot = rebuilt("floating", {})
    bare = without_inertias(robot)  # its tree has no inertias at all: reading one is an error
    for row in KERNELS.values():
        given = [np.random.default_rng(1).uniform(1.0, 2.0, size).tolist() for _, size in sizes(row, robot)]
        run = flat_function(row, bare, example_key(row, robot))
        if row.inertial:
            with pytest.raises(IndexError):
                run(*given)
        else:
            run(*given)


# ---- inertias that are no numbers ----------------------------------------------------------------
# Or too large to be added up: refused with the link's name.


def _two_welded(mass, com=(0.0, 0.0, 0.0)):
    builder = ModelBuilder("welded")
    builder.link("a", mass=1.0, inertia=np.eye(3))
    builder.link("b", mass=mass, com=com, inertia=np.eye(3))
    builder.joint("weld", "fixed", "a", "b", Placement(position=np.array([1e200, 0.0, 0.0])))
    return builder.build("floating")


def test_inertias_that_overflow_when_welded_are_named(recwarn):
    with pytest.raises(rk.ModelError, match=r"link 'b': its mass 1e\+200 kg and inertia are too large"):
        _two_welded(1e200)
    text = """<robot name="r"><link name="a"><inertial><mass value="1"/>
    <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
    <link name="b"><inertial><mass value="1e300"/>
    <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
    <joint name="j" type="fixed"><parent link="a"/><child link="b"/>
    <origin xyz="1e10 0 0"/></joint></robot>"""
    with pytest.raises(rk.RobokitError, match="'b'"):
        rk.loads_urdf(text, base="floating")
    robot = rk.loads_urdf(text.replace("1e300", "1"), base="floating")
    with pytest.raises(rk.ModelError, match="link 'b': its mass and inertia are too large"):
        robot.with_inertias({"b": (1e300, None, None)})
    assert not [w for w in recwarn.list if issubclass(w.category, RuntimeWarning)]


MASKED = np.ma.masked_array([1.0, 2.0], mask=[True, False])


@for_each(
    "wrong", [np.ma.masked, MASKED, [np.ma.masked, 1.0], "1", ["1", "2"], 1j, True, [None, 1.0], object(), {}]
)
def test_masses_that_are_no_numbers_are_refused(wrong):
    robot = rk.load_urdf(rk.find_robot("double_pendulum"))
    with pytest.raises(rk.ModelError, match="mass of link 'upper'"):
        robot.with_inertias({"upper": (wrong, None, None)})


def test_parameters_that_are_no_numbers_are_refused():
    robot = rk.load_urdf(rk.find_robot("double_pendulum"))
    P = robot.inertial_parameters
    for wrong in (
        np.ma.masked_array(P, mask=P > 1.0),
        P.astype(str),
        P.astype(complex),
        P.astype(object),
        "heavy",
    ):
        with pytest.raises(rk.ModelError, match="inertias: expected"):
            robot.with_inertias(wrong)
    with pytest.raises(rk.ModelError, match="com of link 'upper'"):
        robot.with_inertias({"upper": (None, np.ma.masked_array([0.0, 0.0, 1.0], mask=[0, 0, 1]), None)})


# ---- which inertias a body can have --------------------------------------------------------------
# All of those are taken, the others are refused, up to the tolerance.

TOLERANCE = 1e-3  # share of its moments by which with_inertias lets an inertia miss what a body has


def box() -> rk.Robot:
    b = rk.ModelBuilder("one").link("root").link("box", 1.0, inertia=np.eye(3))
    return b.joint("free", "floating", "root", "box").build()


ROBOT = box()


def inertia_of(second: np.ndarray) -> np.ndarray:
    """I = tr(P) 1 - P of the second moments P = integral r r^T dm."""
    return np.trace(second, axis1=-2, axis2=-1)[..., None, None] * np.eye(3) - second


def turned(rng: np.random.Generator, moments: np.ndarray) -> np.ndarray:
    return np.array([R @ np.diag(d) @ R.T for d, R in ((d, ladder.rotation(rng)) for d in moments)])


def as_row(mass: float, com: np.ndarray, I: np.ndarray) -> np.ndarray:
    """The ten parameters of a body whose inertia about its centre of mass is I."""
    about = I + mass * (com @ com * np.eye(3) - np.outer(com, com))
    xx, xy, xz, yy, yz, zz = about[np.triu_indices(3)]
    return np.array([mass, *(mass * com), xx, xy, yy, xz, yz, zz])


def by_body(mass: float, com: np.ndarray, I: np.ndarray) -> np.ndarray:
    P = np.array(ROBOT.inertial_parameters)
    P[1] = as_row(mass, com, I)
    return P


def is_taken(change) -> bool:
    try:
        ROBOT.with_inertias(change)
    except rk.ModelError as error:
        assert "no body has this inertia" in str(error)
        return False
    return True


def test_inertias_of_point_masses_are_taken():
    rng = np.random.default_rng(0)
    points = rng.standard_normal((4000, 4, 3)) * rng.uniform(0.0, 1.0, (4000, 1, 3)) ** 4
    points[::3, 2:] = 0.0  # in a plane
    points[::5, 1:] = 0.0  # on a line
    points -= points.mean(axis=1, keepdims=True)
    I = inertia_of(np.einsum("bki,bkj->bij", points, points))
    scale = 10.0 ** rng.uniform(-6, 4, 4000)
    I *= scale[:, None, None]
    mass, com = 4.0 * scale, rng.standard_normal((4000, 3)) * 0.1
    taken = ROBOT.with_inertias({"box": (mass, com, I)})
    assert taken.samples == 4000
    assert ROBOT.with_inertias(taken.inertial_parameters).samples == 4000
    assert is_taken({"box": (0.0, np.zeros(3), np.zeros((3, 3)))})


@pytest.mark.parametrize("size", [1e-300, 1e-160, 1e-80, 1e80, 1e160, 1e300])
def test_no_size_of_body_is_out_of_range(size):
    com = np.array([0.1, 0.2, 0.3])
    for mass in (size, size**0.5):
        for moments, taken in (((1.0, 2.0, 2.5), True), ((1.0, 1.0, 2.1), False)):
            assert is_taken({"box": (mass, com, size * np.diag(moments))}) is taken
    assert is_taken(by_body(size, com, size * np.diag((1.0, 2.0, 2.5))))


@pytest.mark.parametrize("negative", [1, 2, 3])
def test_second_moments_with_a_negative_direction_are_refused(negative):
    rng = np.random.default_rng(negative)
    moments = rng.uniform(0.02, 1.0, (100, 3))
    moments[:, :negative] *= -1.0
    for I in inertia_of(turned(rng, moments)) * 10.0 ** rng.uniform(-3, 3, (100, 1, 1)):
        # A miss that the tolerance does not explain, in every axes.
        P = 0.5 * np.trace(I) * np.eye(3) - I
        assert np.linalg.eigvalsh(P)[0] < -2.0 * TOLERANCE * abs(np.trace(P))
        com = rng.standard_normal(3)
        assert not is_taken({"box": (1.0, com, I)}), I
        assert not is_taken(by_body(1.0, com, I)), I


def test_one_impossible_inertia_among_many_is_named():
    rng = np.random.default_rng(4)
    I = inertia_of(turned(rng, rng.uniform(0.1, 1.0, (300, 3))))
    for k in (0, 7, 299):
        given = I.copy()
        given[k] = inertia_of(turned(rng, np.array([[-0.2, -0.3, 1.0]])))[0]
        with pytest.raises(rk.ModelError, match=f"'box', sample {k}: no body"):
            ROBOT.with_inertias({"box": (1.0, None, given)})


@for_each("axis", range(3))
@for_each("size", [1e-7, 1.0, 1e7])
@for_each("oblique", [False, True])
def test_the_triangle_inequality_may_be_missed_by_the_tolerance(axis, size, oblique):
    """P with one negative entry: it may be as far below zero as the tolerance times the trace of P."""
    R = ladder.rotation(np.random.default_rng(axis)) if oblique else np.eye(3)
    for share, taken in ((0.0, True), (0.97, True), (1.03, False)):
        second = np.array([0.5, 0.5, 0.5])
        second[axis] = -share * TOLERANCE / (1.0 + share * TOLERANCE)  # of a trace of 1 with it
        I = size * R @ inertia_of(np.diag(second)) @ R.T
        com = np.array([0.01, 0.02, 0.03]) * size**0.5
        assert is_taken({"box": (1.0, com, I)}) is taken
        assert is_taken(by_body(1.0, com, I)) is taken


def test_the_triangle_in_principal_moments():
    """1, 1 and 2 + 4e-3: the largest exceeds the others' sum by the tolerance of all of them."""
    for largest, taken in ((2.0, True), (2.0039, True), (2.0041, False), (2.01, False), (2.1, False)):
        for moments in ((1, 1, largest), (1, largest, 1), (largest, 1, 1)):
            assert is_taken({"box": (1.0, (0, 0, 0), np.diag(moments))}) is taken, moments


def test_a_negative_moment_may_be_as_small_as_the_tolerance():
    for smallest, taken in ((-1.9e-3, True), (-2.1e-3, False)):
        assert is_taken({"box": (1.0, (0, 0, 0), np.diag([1.0, 1.0, smallest]))}) is taken
    for moment in (-1.0, -1e-9):
        assert not is_taken({"box": (1.0, (0, 0, 0), moment * np.eye(3))})


def test_an_inertia_that_is_not_symmetric_is_refused_beyond_rounding():
    for off, taken in ((5e-10, True), (2e-9, False)):
        I = np.eye(3) + 0.1 * (np.ones((3, 3)) - np.eye(3))
        I[0, 1] *= 1.0 + off
        for call in (
            lambda I=I: ROBOT.with_inertias({"box": (1.0, None, I)}),
            lambda I=I: rk.ModelBuilder("m").link("a", 1.0, inertia=I),
        ):
            if taken:
                call()
            else:
                with pytest.raises(rk.ModelError, match="not symmetric"):
                    call()
