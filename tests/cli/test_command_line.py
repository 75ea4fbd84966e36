"""The command line: exit statuses, files, one-line errors, nothing wider than a terminal."""

import json
import re
import warnings
from pathlib import Path

import pytest

import robokit as rk
from robokit.cli import main
from robokit.cli.common import xacro_arguments
from robokit.errors import counted

COMMANDS = (
    "fall",
    "simulate",
    "view",
    "log",
    "identify",
    "info",
    "check",
    "parity",
    "mjcf",
    "convert",
    "sparsity",
    "collisions",
    "cost",
    "codegen",
    "sweep",
    "replay",
    "cache",
    "robots",
)
NO_BASE = ("replay", "cache", "robots", "check", "convert", "log", "identify")
"""Commands without a base, or one with a default of its own."""
SHORT = ("--duration", "0.05", "--no-open")


def run(capsys, *argv):
    """(exit status, lines of stdout, lines of stderr)"""
    try:
        status = main([str(a) for a in argv])
    except SystemExit as stop:
        status = stop.code
    out, err = capsys.readouterr()
    assert "Traceback" not in err
    return status, out.splitlines(), err.splitlines()


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_an_example(capsys, command):
    status, out, _ = run(capsys, command, "--help")
    assert status == 0 and any(f"example: robokit {command}" in line for line in out)
    assert max(map(len, out)) <= 80


@pytest.mark.parametrize(
    "argv",
    [
        ["info", "humanoid", "--base", "floating"],
        ["robots"],
        ["info", "four_bar"],
        pytest.param(["cost", "chain"], marks=pytest.mark.slow),
    ],
)
def test_reports_fit_a_terminal(capsys, argv):
    status, out, _ = run(capsys, *argv)
    assert status == 0 and out and max(map(len, out[1:])) <= 80


def test_the_program_alone_prints_its_commands(capsys):
    status, out, err = run(capsys)
    assert status == 0 and not err and max(map(len, out)) <= 80
    assert [line.split()[0] for line in out if re.match("    [a-z]", line)] == list(COMMANDS)


@pytest.mark.parametrize("command", [c for c in COMMANDS if c not in NO_BASE])
def test_every_command_takes_a_base(capsys, command):
    help_text = " ".join(" ".join(run(capsys, command, "--help")[1]).split())
    by_file = "fixed" if command == "parity" else "the base of the file, and fixed for a URDF"
    default = "floating" if command in ("fall", "sweep") else by_file
    assert "--base {fixed,floating" in help_text and f"default: {default}" in help_text


SAYING_BASE = [("cost",), ("view", "--no-open"), ("sparsity",), ("mjcf",), ("simulate", *SHORT)]


@pytest.mark.parametrize(
    ("argv", "base"),
    [(("info",), "fixed"), (("info",), "floating"), *((argv, "floating") for argv in SAYING_BASE)],
)
def test_the_base_is_said(capsys, tmp_path, argv, base):
    suffix = {"sparsity": "svg", "mjcf": "xml"}.get(argv[0], "html")
    file = () if argv[0] in ("info", "cost") else ("-o", tmp_path / f"x.{suffix}")
    status, out, _ = run(capsys, argv[0], "arm", "--base", base, *argv[1:], *file)
    assert status == 0 and f"{base} base" in "\n".join(out[:2])


def test_the_mass_is_the_same_with_either_base(capsys):
    _, fixed, _ = run(capsys, "info", "humanoid")
    _, floating, _ = run(capsys, "info", "humanoid", "--base", "floating")
    assert fixed[2] == "  mass 75 kg: 66.62 kg move, 8.377 kg are fixed to the world"
    assert floating[2] == "  mass 75 kg"


def test_files_named_after_robots_of_long_names_can_be_written(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = Path(rk.find_robot("double_pendulum")).read_text()
    for end in "ab":
        file = tmp_path / f"{end}.urdf"
        file.write_text(text.replace('name="double_pendulum"', f'name="{"ü" * 300}{end}"'), encoding="utf-8")
        assert run(capsys, "sparsity", file)[0] == 0
        assert run(capsys, "view", file, "--no-open")[0] == 0
        assert run(capsys, "codegen", file, "--function", "rnea", "-o", tmp_path / "code")[0] == 0
    assert len([*tmp_path.glob("üü*_sparsity.png")]) == len([*tmp_path.glob("üü*.html")]) == 2
    assert len([*(tmp_path / "code").iterdir()]) == 6


def test_one_is_no_plural(capsys, tmp_path):
    file = tmp_path / "one.urdf"
    file.write_text(
        f'<robot name="r"><link name="a"/><link name="b">{BODY}</link><joint name="j" type="continuous">'
        '<parent link="a"/><child link="b"/><dynamics damping="1"/></joint></robot>'
    )
    text = "\n".join(run(capsys, "info", file)[1])
    assert "1 moving body, 2 links" in text and "1 joint with damping" in text
    assert "1 body, 1 degree of freedom" in run(capsys, "mjcf", file, "-o", tmp_path / "x.xml")[1][0]
    assert [counted(n, "body") for n in (0, 1, 2)] == ["0 bodies", "1 body", "2 bodies"]


def test_the_choices_for_mimic_joints_are_explained(capsys):
    text = " ".join(" ".join(run(capsys, "info", "--help")[1]).split())
    assert "couple makes each follow the joint that it mimics" in text
    assert "independent gives each its own coordinate" in text


def test_fall_writes_the_page_and_the_trajectory(capsys, tmp_path):
    status, out, err = run(
        capsys, "fall", "quadruped", *SHORT, "--no-live", "-o", tmp_path / "fall", "--save", tmp_path / "fall"
    )
    assert status == 0 and not err
    assert (tmp_path / "fall.html").stat().st_size > 100_000
    assert rk.Trajectory.load(tmp_path / "fall.npz").t[-1] == pytest.approx(0.05)
    text = "\n".join(out)
    said = ("steps/s", "energy", "momentum", "deepest penetration", "first contact", "joint limits", "rest")
    for word in (*said, "fall.html", "fall.npz"):
        assert word in text


def test_codegen_writes_three_files_and_says_what_is_wrong(capsys, tmp_path):
    folder = tmp_path / "c"
    given = ("codegen", "arm", "--function", "link_jacobian", "-o", folder)
    status, out, err = run(capsys, *given, "--link", "flange", "--choose", "axes=body")
    assert status == 0 and not err and out[0] == "arm, fixed base: link_jacobian in C99"
    stem = "arm_link_jacobian_flange_body"
    assert {path.name for path in folder.iterdir()} == {f"{stem}.h", f"{stem}.c", f"{stem}_test.c"}
    status, _, err = run(capsys, *given, "--choose", "link=gripper, flange")
    assert status == 0 and not err
    assert "J[2][6][" in (folder / "arm_link_jacobian_gripper_flange_world.h").read_text()
    several = (*given[:3], "operational_space_inertia", "-o", folder, "--choose")
    status, out, err = run(capsys, *several, "frames=flange, gripper")
    assert status == 0 and not err and len(out) == 4
    assert "Lambda[12][12]" in next(folder.glob("arm_operational*.h")).read_text()
    held = (*given[:3], "constrained_dynamics", "-o", folder, "--choose")
    status, out, err = run(capsys, *held, "constraints=gripper:position, flange:pose")
    assert status == 0 and not err and "lambda[9]" in next(folder.glob("arm_constrained*.h")).read_text()
    for argv, said in (
        ((*held, "constraints=gripper"), "no loop joint named 'gripper'"),
        ((*held, "constraints=hand:pose"), "no link named 'hand'"),
        ((*several, "frames=flange,hand"), "no link named 'hand'"),
        (given, "say which link it is about"),
        ((*given, "--link", "flansh"), "no link named 'flansh'; did you mean 'flange'"),
        ((*given[:3], "abba"), "no function named 'abba'; did you mean 'aba'"),
        ((*given[:3], "aba", "--language", "d"), "no language named 'd'"),
        ((*given[:3], "aba", "-o", folder / f"{stem}.c"), "give the name of a folder"),
        ((*given[:3], "aba", "-o", tmp_path / "no" / "folder"), "there is no folder"),
    ):
        status, out, err = run(capsys, *argv)
        assert status == 2, said
        assert not out and len(err) == 1 and said in err[0]
    own = tmp_path / "own.py"
    own.write_text(
        "import robokit as rk\n@rk.function(inputs=('q',), outputs={'s': ()})\ndef total(tree, q):\n"
        "    return sum(x[0] for x in q[1:])\n"
    )
    name = f"{own}:total"
    status, out, err = run(capsys, "codegen", "arm", "--function", name, "--derivative", "q", "-o", folder)
    assert status == 0 and not err and (folder / "arm_total_derivative_q.c").is_file()
    (tmp_path / "bad.py").write_text("1 / 0\n")
    for function, more, said in (
        (f"{own}:totl", (), "did you mean 'total'"),
        (f"{tmp_path / 'no.py'}:f", (), "no file"),
        (f"{tmp_path / 'bad.py'}:f", (), "ZeroDivisionError: division by zero"),
        (name, ("--derivative", "p"), "no input named 'p'"),
        (name, ("--link", "flange"), "total has no choice 'link'"),
        ("link_jacobian", ("--derivative", "q"), "say which link it is about"),
    ):
        status, out, err = run(capsys, "codegen", "arm", "--function", function, *more, "-o", folder)
        assert status == (1 if "ZeroDivisionError" in said else 2), said
        assert not out and len(err) == 1 and said in err[0]
    status, _, err = run(capsys, *given, "--choose", "axes")
    assert status == 2 and "expected NAME=VALUE" in err[-1]


def test_warnings_are_shown_as_before_when_a_command_has_ended(capsys):
    before = warnings.showwarning
    assert run(capsys, "robots")[0] == 0 and warnings.showwarning is before


def test_cost_prints_a_table_or_json(capsys):
    robot = rk.load_urdf(rk.find_robot("double_pendulum"), base="floating")
    status, out, err = run(capsys, "cost", "double_pendulum", "--base", "floating")
    assert status == 0 and not err and out == str(robot.cost()).splitlines()
    _, out, _ = run(capsys, "cost", "double_pendulum", "--base", "floating", "--json")
    assert json.loads("\n".join(out)) == robot.cost().as_dict()


def test_cache_is_shown_and_cleared(capsys, tmp_path, monkeypatch):
    small = rk.load_urdf(rk.find_robot("double_pendulum"), base="fixed")
    rk.crba(small, small.neutral())  # the code of calls from Python is written once a process
    monkeypatch.setenv("ROBOKIT_CACHE_DIR", str(tmp_path / "cache"))
    assert run(capsys, "cache") == (0, [f"{tmp_path / 'cache'}", "  0 files, 0.00 MB"], [])
    robot = rk.load_urdf(rk.find_robot("double_pendulum"), base="fixed")
    rk.gravity_forces(robot, robot.neutral())
    (tmp_path / "cache" / "mine.txt").write_text("not a kernel")
    status, out, _ = run(capsys, "cache")
    assert status == 0 and "1 file," in out[1] and out[-1].split()[:3] == ["gravity_forces", "1", "-"]
    status, out, _ = run(capsys, "cache", "--clear")
    assert status == 0 and "removed 1 file," in out[0]
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["mine.txt"]
    monkeypatch.setenv("ROBOKIT_CACHE_DIR", str(tmp_path / "cache" / "mine.txt"))
    status, _, err = run(capsys, "cache")
    assert status == 1 and "mine.txt: " in err[0]


def test_simulate_takes_a_base_and_a_ground(capsys, tmp_path):
    for extra in ((), ("--base", "floating", "--ground"), ("--ground", "--ground-height", "-3")):
        status, _, _ = run(capsys, "simulate", "double_pendulum", *SHORT, *extra, "-o", tmp_path / "s.html")
        assert status == 0


def test_check_goes_on_after_a_name_that_is_not_there(capsys, tmp_path):
    bad = tmp_path / "bad.urdf"
    bad.write_text('<robot name="r"><link name="a"/><link name="a"/></robot>')
    status, out, err = run(capsys, "check", "nobody", bad, "humanoid")
    assert status == 2 and "no robot named 'nobody'" in err[0]
    assert any("link-duplicate" in line for line in out) and out[-2].endswith("nothing to report")
    assert run(capsys, "check", "humanoid")[0] == 0


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["fall", "humanoidd"], "did you mean 'humanoid'"),
        (["fall", "nowhere.urdf"], "no file 'nowhere.urdf'"),
        (["fall", "--seed", "-1"], "expected a whole number of 0 or more, got '-1'"),
        (["fall", "--dt", "abc"], "expected a positive number, got 'abc'"),
        (["fall", "--dt", "nan"], "expected a positive number, got 'nan'"),
        (["fall", "--height", "-1"], "expected a height of 0 to 100 m"),
        (["fall", "--dt", "10"], "make 0.4 steps"),
        (["fall", "--ground-tilt", "100"], "take an angle from -89 to 89"),
        (["fall", "--terrain", "none.png"], "--terrain none.png: no picture of heights (No such file"),
        (["fall", "--terrain", "none.png", "--ground-tilt", "1"], "take one of them"),
        (["fall", "--dt", "1e-300"], "take between 1 and 100,000,000"),
        (["fall", "-o", ""], "give the name of a file"),
        (["fall", "-o", "none/x.html"], "there is no folder 'none'; make it first"),
        (["fall", "-o", "arm.xml/x/y.html"], "'arm.xml' is a file, not a folder; give another name"),
        (["fall", "-o", "x.txt"], "must end in .html"),
        (["sparsity", "arm", "-o", "x.foo"], "must end in .png, .svg, .pdf"),
        (["simulate", "double_pendulum", "--ground"], "below the ground"),
        (["fly"], "invalid choice"),
        (["info", "arm", "--root", "base"], "root= is for files with several robots"),
        (["cost", "arm.xml", "--loops", "close"], "loops='close' is for URDF files; this one is MJCF"),
        (["view", "arm.xml", "--mesh-up-axis", "apply"], "mesh_up_axis='apply' is for URDF files"),
        (["info", "arm", "mass:=2"], "mass:=... is an argument of a .xacro file"),
    ],
)
def test_bad_input_is_one_clear_error(capsys, tmp_path, monkeypatch, argv, said):
    (tmp_path / "arm.xml").write_text("<mujoco/>")
    monkeypatch.chdir(tmp_path)
    status, out, err = run(capsys, *argv)
    assert status == 2 and not out and said in err[-1]


def test_of_the_values_of_an_argument_of_xacro_the_last_counts():
    left = ["info", "a.xacro", "mass:=1", "mass:=2", "2x:=3", "mass:=1", "size:=a:=b"]
    assert xacro_arguments(left) == (["info", "a.xacro", "2x:=3"], {"mass": "1", "size": "a:=b"})


def test_a_defect_of_ours_is_a_line_too(capsys, monkeypatch):
    monkeypatch.setattr("robokit.robot_names.own_robots", lambda: 1 / 0)
    status, _, err = run(capsys, "robots")
    assert status == 1 and "internal error: ZeroDivisionError" in err[0] and "ROBOKIT_DEBUG=1" in err[0]
    monkeypatch.setenv("ROBOKIT_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        main(["robots"])


BODY = '<inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>'
MIMIC = f"""<robot name="m"><link name="a"/><link name="b">{BODY}</link>
<link name="c">{BODY}</link>
<joint name="j" type="continuous"><parent link="a"/><child link="b"/></joint>
<joint name="k" type="continuous"><parent link="b"/><child link="c"/><mimic joint="j"/></joint></robot>"""


def test_mimic_joints_are_coupled_or_warned_of(capsys, tmp_path):
    file = tmp_path / "m.urdf"
    file.write_text(MIMIC)
    status, out, err = run(capsys, "info", file)
    assert status == 0 and not err and any("(a coordinate of its own)" in line for line in out)
    status, out, err = run(capsys, "info", file, "--mimic", "independent")
    assert status == 0 and len(err) == 1 and "m.urdf:4: warning mimic-independent" in err[0]
    status, out, err = run(capsys, "info", file, "--mimic", "couple")
    assert status == 0 and not err and any("(coupled)" in line for line in out)
    args = ("simulate", file, *SHORT, "-o", tmp_path / "m.html", "--save", tmp_path / "m.npz")
    assert run(capsys, *args, "--mimic", "couple")[0] == 0
    assert rk.Trajectory.load(tmp_path / "m.npz").q.shape[1] == 1
