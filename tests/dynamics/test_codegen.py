"""Functions of robots as C: the header's words, strict compilers, the numbers of the machine code."""

from __future__ import annotations

import re
import subprocess

import ladder
import numpy as np
import pytest
from c_compiler import caller, compiled, run_check
from ladder import relative

import robokit as rk
from robokit.dynamics.build import example_key, flat, kernel
from robokit.dynamics.choices import CHOICES
from robokit.dynamics.codegen import code_files, example_state
from robokit.dynamics.table import KERNELS
from robokit.engine.loops.c_source import identifier
from robokit.model import couple
from robokit.spatial.control_flow import for_range
from robokit.spatial.scalars import maximum, sqrt


def example_choices(robot, name):
    return {c: CHOICES[c].example(robot) for c in KERNELS[name].about.split()}


def written(robot, folder, names=KERNELS, dtype="float64"):
    """Header, source and check of each function."""
    return {n: rk.codegen(robot, n, folder, dtype=dtype, **example_choices(robot, n)) for n in names}


EVERY = [name for name in KERNELS if not name.endswith("_f_ext")]
SOME = ("aba", "crba", "rnea_f_ext", "link_jacobian", "ltdl_solve", "forward_kinematics")


@pytest.mark.parametrize(
    ("dtype", "names"),
    [
        pytest.param("float64", EVERY, marks=pytest.mark.slow, id="all"),
        pytest.param("float64", SOME, id="some"),
        pytest.param("float32", SOME[:2], id="float32"),
    ],
)
def test_every_function_compiles_strictly_and_gives_what_its_text_gives(tmp_path, dtype, names):
    robot = ladder.random_tree(2, "floating", ("prismatic", "planar"), n=2)
    files = written(robot, tmp_path, names, dtype)
    library = compiled(tmp_path, [c for _, c, _ in files.values()])
    for name, (_, source, _) in files.items():
        row = KERNELS[name]
        made = flat(row, robot, example_key(row, robot))
        state = [x.astype(dtype) for x in example_state(robot, row, made.inputs)]
        shapes = [shape for _, shape in made.outputs]
        got = caller(library, source.stem, dtype)(state, shapes)
        expected = kernel(robot, example_key(row, robot)).python(*(x.astype(float) for x in state))
        expected = expected if isinstance(expected, tuple) else (expected,)
        for a, b in zip(got, expected, strict=True):
            assert relative(a, b) < (1e-13 if dtype == "float64" else 1e-3), name


def test_the_check_passes_and_finds_what_is_wrong(tmp_path):
    _, source, check = rk.codegen(ladder.chain(2), "aba", tmp_path)
    done = run_check(tmp_path, [source, check])
    assert done.returncode == 0 and "right" in done.stdout
    text = source.read_text()
    for wrong in ("a[1] = NAN;", "a[0] = a[0] * 1.0001;", "a[0] = NAN;"):
        source.write_text(text.rstrip().removesuffix("}") + f"{wrong}\n}}\n")
        done = run_check(tmp_path, [source, check])
        assert done.returncode == 1 and "WRONG" in done.stdout


def test_the_header_says_sizes_joints_units_and_is_for_cpp_too(tmp_path):
    robot = ladder.random_tree(0, "floating", n=4)
    header, _, _ = rk.codegen(robot, "rnea_f_ext", tmp_path)
    text = header.read_text()
    name = header.stem.upper()
    for word, size in (
        ("Q", robot.nq),
        ("V", robot.nv),
        ("F_EXT", 6 * (robot.nbodies + 1)),
        ("TAU", robot.nv),
    ):
        assert f"#define {name}_{word}_SIZE {size}\n" in text
    assert "0..6  floating_base (floating): unit quaternion w x y z, position [m]" in text
    assert "0..5  floating_base (floating): 3 [rad/s], 3 [m/s]" in text
    for joint in robot.joint_names:
        assert text.count(f"  {joint} (") == 3
    user = tmp_path / "user.cpp"
    user.write_text(
        f'#include "{header.name}"\nint main() {{ return sizeof({header.stem}) == 0; }}\n'.replace(
            f"sizeof({header.stem})", f"sizeof(&{header.stem})"
        )
    )
    subprocess.run(
        ["c++", "-Wall", "-Wextra", "-pedantic", "-Werror", "-fsyntax-only", str(user)], check=True
    )


def test_names_that_c_does_not_take(tmp_path):
    b = rk.ModelBuilder("2 arms */ in C: ünder_/*??/")
    b.link("ground").link("r */ od", 2.0, (0, 0, -0.5), np.eye(3))
    robot = b.joint("while\n", "continuous", "ground", "r */ od", axis=(0, 1, 0)).build()
    _, source, check = rk.codegen(robot, "link_jacobian", tmp_path, link="r */ od")
    assert source.name == "r_2_arms_in_C_nder_link_jacobian_r_od_world.c"
    assert run_check(tmp_path, [source, check]).returncode == 0
    assert [identifier(x, ["q"]) for x in ("while", "q", "x_1", "7", "", "é")] == [
        "r_while",
        "q_",
        "r_x_1",
        "r_7",
        "robot",
        "robot",
    ]


def test_names_of_three_hundred_letters_are_shortened_and_stay_different(tmp_path):
    links = ["l" * 150 + middle + "l" * 149 for middle in "ab"]
    b = rk.ModelBuilder("r" * 300).link("ground")
    for k, link in enumerate(links):
        b.link(link, 2.0, (0, 0, -0.5), np.eye(3))
        b.joint("j" * 300 + str(k), "continuous", "ground", link, axis=(0, 1, 0))
    robot = b.build()
    files = [rk.codegen(robot, "link_jacobian", tmp_path, link=link) for link in links]
    files.append(rk.codegen(robot, "aba", tmp_path))
    assert len({path.name for each in files for path in each}) == 9
    for header, source, check in files:
        assert len(check.name) < 120 and source.stem.startswith("rrrr") and source.stem == header.stem
        assert run_check(tmp_path, [source, check]).returncode == 0
    assert files[2][1].stem.endswith("_aba")


def test_robots_without_degrees_of_freedom_and_with_coupled_joints(tmp_path):
    still = rk.ModelBuilder("still").link("block", 1.0, (0, 0, 0), np.eye(3)).build()
    b = rk.ModelBuilder("pair").link("root").link("one", 1.0, (0.1, 0, 0), np.eye(3))
    b.link("two", 2.0, (0.2, 0, 0), np.eye(3)).joint("j1", "continuous", "root", "one", axis=(0, 1, 0))
    b.joint("j2", "continuous", "one", "two", axis=(0, 1, 0), mimic=rk.Mimic("j1", -2.0, 0.1))
    coupled = couple(b.build())
    for robot in (still, coupled):
        _, source, check = rk.codegen(robot, "aba", tmp_path)
        assert run_check(tmp_path, [source, check]).returncode == 0
    (a,) = caller(compiled(tmp_path, [source]), source.stem)([[0.3], [0.2], [1.0]], [(1,)])
    assert relative(a, rk.aba(coupled, [0.3], [0.2], [1.0], engine="python")) < 1e-14
    assert "mimic joints coupled: nq 1, nv 1" in source.with_suffix(".h").read_text()


def test_samples_of_inertias_are_an_argument(tmp_path):
    robot = ladder.chain(3)
    sampled = robot.with_inertias(
        np.stack([robot.inertial_parameters] * 2) * np.array([1.0, 2.0])[:, None, None]
    )
    header, source, _ = rk.codegen(sampled, "rnea", tmp_path)
    assert "inertial_parameters" in header.read_text()
    call = caller(compiled(tmp_path, [source]), source.stem)
    rng = np.random.default_rng(0)
    q, v, a = rng.standard_normal((3, 3))
    expected = rk.rnea(robot, q, v, a, engine="python")
    for factor in (1.0, 2.0):
        (tau,) = call([q, v, a, factor * robot.inertial_parameters], [(3,)])
        assert relative(tau, factor * expected) < 1e-14


def test_functions_of_ones_own_and_derivatives(tmp_path):
    @rk.function(inputs={"q": "q", "goal": "q", "gain": ()}, outputs={"e": (), "d": ("nv",)})
    def distance(tree, q, goal, gain):
        """How far the joints are from a goal."""
        d = [a - b for x, y in zip(q[1:], goal[1:], strict=True) for a, b in zip(x, y, strict=True)]
        return {"e": gain * sum(x * x for x in d), "d": d}

    robot = ladder.chain(3)
    q, goal = np.random.default_rng(0).standard_normal((2, 3))
    for f in (distance, distance.derivative("q")):
        header, source, check = f.codegen(robot, tmp_path)
        assert run_check(tmp_path, [source, check]).returncode == 0
        expected = f(robot, q, goal, 1.5, engine="python")
        shapes = [np.shape(x) for x in expected]
        got = caller(compiled(tmp_path, [source]), source.stem)([q, goal, [1.5]], shapes)
        assert all(relative(a, b) < 1e-14 for a, b in zip(got, expected, strict=True))
        text = header.read_text()
        assert "How far the joints are" in text and "Input goal[3]: configuration\n *     0  joint" in text


def test_the_check_runs_where_outputs_are_finite_and_not_zero(tmp_path):
    """Those of the first random state are 0 or NaN: no iteration, a negative root, a part that is cut off."""
    robot = ladder.chain(2)

    @rk.function(
        inputs={"q": "q", "n": (), "x": (2,)}, outputs={"sum": (), "root": (), "part": (), "none": ()}
    )
    def odd(tree, q, n, x):
        total = for_range(n, lambda k, s: s + q[1][0] * k, 0.0)
        return [total, sqrt(x[0]) * sqrt(x[1]), maximum(x[0] - 1.0, 0.0), 0.0 * x[0]]

    _, source, check = rk.codegen(robot, odd, tmp_path)
    stored = dict(re.findall(r"static const double (\w+)_stored\[1\] = {\s*([^}]*)}", check.read_text()))
    assert all(abs(float(stored[name].strip("\n ()"))) > 0.0 for name in ("sum", "root", "part"))
    assert float(stored["none"]) == 0.0
    assert run_check(tmp_path, [source, check]).returncode == 0


def test_choices_of_several_names(tmp_path):
    robot = ladder.chain(4)
    q, last = np.array([0.3, -0.2, 0.1, 0.4]), robot.link_names[-1]
    _, source, check = rk.codegen(robot, "operational_space_inertia", tmp_path, frames=[last])
    assert run_check(tmp_path, [source, check]).returncode == 0
    got = caller(compiled(tmp_path, [source]), source.stem)([q, [1e-3]], [(6, 6), (6, 6), (4, 6)])
    expected = rk.operational_space_inertia(robot, q, [last], 1e-3, engine="python")
    assert all(relative(a, b) < 1e-11 for a, b in zip(got, expected, strict=True))
    with pytest.raises(rk.WrongType, match="frames: expected a list of frames"):
        rk.codegen(robot, "operational_space_inertia", tmp_path, frames=last)
    with pytest.raises(TypeError, match="rnea has no choice 'link': it has none"):
        rk.functions["rnea"].codegen(robot, tmp_path, link=last)


def test_several_links(tmp_path):
    robot = ladder.chain(4)
    q, (first, *_, last) = np.array([0.3, -0.2, 0.1, 0.4]), robot.link_names
    at = np.array([[0.1, 0.2, 0.3], [0.0, -0.1, 0.5]])
    _, source, check = rk.codegen(robot, "link_jacobian", tmp_path, link=[last, first])
    assert run_check(tmp_path, [source, check]).returncode == 0
    (got,) = caller(compiled(tmp_path, [source]), source.stem)([q, at.ravel()], [(2, 6, 4)])
    assert relative(got, rk.link_jacobian(robot, q, [last, first], at=at, engine="python")) < 1e-14


def test_what_is_wrong_is_said(tmp_path):
    robot = ladder.chain(2)
    with pytest.raises(rk.UnknownName, match="no function named 'abba'; did you mean 'aba'"):
        rk.codegen(robot, "abba", tmp_path)
    with pytest.raises(rk.UnknownName, match=r"no function named .*\(give its name, 'aba'\)"):
        rk.codegen(robot, rk.aba, tmp_path)
    with pytest.raises(rk.RobokitError, match="link_jacobian: say which link it is about, for example link="):
        rk.codegen(robot, "link_jacobian", tmp_path)
    with pytest.raises(rk.UnknownName, match="no link named 'link7'"):
        rk.codegen(robot, "link_jacobian", tmp_path, link="link7")
    with pytest.raises(rk.RobokitError, match="aba has no choice 'link': it has none"):
        rk.codegen(robot, "aba", tmp_path, link="link1")
    with pytest.raises(rk.UnknownName, match="no language named 'rust'"):
        rk.codegen(robot, "aba", tmp_path, language="rust")
    with pytest.raises(rk.WrongType, match="robot"):
        rk.codegen("arm", "aba", tmp_path)
    (tmp_path / "file").touch()
    for place in (tmp_path / "file", tmp_path / "no" / "folder"):
        with pytest.raises(rk.RobokitError, match="cannot write to"):
            rk.codegen(robot, "aba", place)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "base"), [("arm", "fixed"), ("humanoid", "floating")])
def test_c_gives_the_numbers_of_the_machine_code(tmp_path, name, base):
    robot = rk.load_urdf(rk.find_robot(name), base=base)
    files = written(robot, tmp_path, ("rnea", "aba", "crba"))
    library = compiled(tmp_path, [c for _, c, _ in files.values()])
    rng = np.random.default_rng(0)
    for _ in range(20):
        q, (v, a) = robot.random_configuration(rng), rng.standard_normal((2, robot.nv))
        for function, (_, source, _) in files.items():
            given = [q] if function == "crba" else [q, v, a]
            expected = getattr(rk, function)(robot, *given)
            (got,) = caller(library, source.stem)(given, [expected.shape])
            assert np.abs(got - expected).max() <= 1e-14 * np.abs(expected).max()
    _, source, check = files["aba"]
    assert run_check(tmp_path, [source, check]).returncode == 0


@pytest.mark.slow
def test_long_robots_are_cut_into_functions_of_bounded_length():
    text = code_files(ladder.chain(40), "aba", "c", None, {})["chain_aba.c"]
    lengths = [len(part.splitlines()) for part in text.split("static APART")]
    assert len(lengths) > 10 and max(lengths) < 1200
