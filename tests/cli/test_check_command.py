"""robokit check as a linter: which files, what is printed, which status, which JSON."""

import io
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import waiting

from robokit.cli import main
from robokit.urdf import CODES
from robokit.urdf.lint import Paint, urdf_files, wants_colour

ROOT = Path(__file__).resolve().parents[2]
CLEAN = '<robot name="clean"><link name="a"/></robot>'
ODD = '<robot name=""><link name="a"/></robot>'
BAD = '<robot name="bad">\n<link name="a"/>\n<link name="a"/></robot>'
HEAVY = (
    '<robot name="r"><link name="a"><inertial><mass value="1"/><inertia ixx="{0}" ixy="0" ixz="0" iyy="{0}" '
    'iyz="0" izz="{0}"/></inertial><visual><geometry><box size="0.1 0.1 0.1"/></geometry></visual></link>'
    "</robot>"
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """clean.urdf, sub/odd.urdf, sub/deep/bad.urdf, and what no linter should read."""
    (tmp_path / "sub" / "deep").mkdir(parents=True)
    (tmp_path / ".git").mkdir()
    (tmp_path / "clean.urdf").write_text(CLEAN)
    (tmp_path / "sub" / "odd.urdf").write_text(ODD)
    (tmp_path / "sub" / "deep" / "bad.urdf").write_text(BAD)
    (tmp_path / ".git" / "old.urdf").write_text(BAD)
    (tmp_path / "sub" / "notes.txt").write_text("no robot")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NO_COLOR", raising=False)
    return tmp_path


def run(capsys, *argv):
    try:
        status = main(["check", *map(str, argv)])
    except SystemExit as stop:
        status = stop.code
    out, err = capsys.readouterr()
    return status, out, err


@pytest.mark.parametrize(
    ("argv", "status"),
    [
        (["clean.urdf"], 0),
        (["sub/odd.urdf"], 0),
        (["--strict", "sub/odd.urdf"], 1),
        (["--strict", "--ignore", "robot-name-empty", "sub/odd.urdf"], 0),
        (["sub/deep/bad.urdf"], 1),
        (["clean.urdf", "sub/deep/bad.urdf"], 1),
        (["."], 1),
        (["none.urdf"], 2),
        (["none.urdf", "sub/deep/bad.urdf"], 2),
        (["*.xml"], 2),
        ([".git/none"], 2),
        (["--ignore", "no-such-code", "clean.urdf"], 2),
        ([], 2),
    ],
)
def test_exit_status(folder, capsys, argv, status):
    found, out, err = run(capsys, *argv)
    assert found == status and "Traceback" not in out + err
    assert bool(err) == (status == 2)


MIMICS = (
    '<robot name="r"><link name="a"/><link name="b"/><link name="c"/>'
    '<joint name="j" type="{}"><parent link="a"/><child link="b"/></joint>'
    '<joint name="k" type="continuous"><parent link="b"/><child link="c"/><mimic joint="j"/></joint></robot>'
)


@pytest.mark.parametrize(
    ("options", "status", "code"),
    [
        ([], 0, ""),
        (["--mimic", "independent"], 0, "mimic-independent"),
        (["--mimic", "independent", "--strict"], 1, "mimic-independent"),
        (["--mimic", "couple"], 1, "mimic-not-coupled"),
    ],
)
def test_mimic_says_what_independence_drops_and_coupling_refuses(folder, capsys, options, status, code):
    (folder / "mimics.urdf").write_text(MIMICS.format("planar"))
    found, out, _ = run(capsys, "mimics.urdf", "--ignore", "massless-subtree", *options)
    assert found == status
    assert [word for word in out.replace(":", "").split() if word.startswith("mimic-")] == [code] * bool(code)


def test_an_unreadable_file_is_status_2(folder, capsys, monkeypatch):
    def broken(*_):
        raise OSError(5, "broken")

    monkeypatch.setattr("robokit.urdf.source.open", broken, raising=False)
    status, out, _ = run(capsys, "clean.urdf")
    assert status == 2 and "file-unreadable" in out and "broken" in out


def test_files_folders_and_patterns(folder):
    def names(*arguments):
        found, problems = urdf_files(arguments, Path)
        assert not problems
        return [str(path) for path in found]

    deep, odd = "sub/deep/bad.urdf", "sub/odd.urdf"
    assert names(".") == ["clean.urdf", deep, odd]
    assert names("**/*.urdf") == ["clean.urdf", deep, odd]
    assert names("sub/*") == [deep, odd]
    assert names("sub/o?d.urdf", odd, "sub") == [odd, deep]
    (folder / "a[1].urdf").write_text(CLEAN)
    assert names("a[1].urdf") == ["a[1].urdf"]


def test_arguments_that_mean_no_file_are_named(folder, capsys):
    (folder / "empty").mkdir()
    status, out, err = run(capsys, "empty", "x*.urdf", "nobody", "clean.urdf")
    assert status == 2 and "clean.urdf: nothing to report" in out
    assert [word in err for word in ("'empty'", "'x*.urdf'", "'nobody'")] == [True] * 3


def test_findings_are_grouped_and_fit_80_columns(folder, capsys):
    long = "arm_with_quite_a_long_name_for_a_link"
    links = "".join(f'<link name="{long}_{k}"/>\n' for k in range(3))
    (folder / "long.urdf").write_text(f'<robot name="">\n{links}{links}<gazebo/></robot>')
    status, out, _ = run(capsys, "long.urdf")
    lines = out.splitlines()
    assert status == 1 and lines[0] == "long.urdf: 4 errors, 1 warning, 1 note"
    assert max(map(len, lines)) <= 80
    heads = [re.match(r"  (error|warning|note) ([\w-]+): ", line) for line in lines]
    assert [h[2] for h in heads if h] == [
        "tree-two-roots",
        "link-duplicate",
        "robot-name-empty",
        "physics-ignored",
    ]
    assert sum("fix: rename one of them" in line for line in lines) == 1
    assert [line.split()[1] for line in lines if line.startswith("    line")] == [
        "3",
        "5",
        "6",
        "7",
        "1",
        "8",
    ]


def test_the_same_words_about_many_links_are_said_once(folder, capsys):
    link = HEAVY.format("5").removeprefix('<robot name="r">').removesuffix("</robot>")
    three = "".join(link.replace('name="a"', f'name="{name}"') for name in "abc")
    joints = "".join(
        f'<joint name="{k}" type="floating"><parent link="a"/><child link="{k}"/></joint>' for k in "bc"
    )
    (folder / "copies.urdf").write_text(f'<robot name="r">{three}{joints}</robot>')
    _, out, _ = run(capsys, "copies.urdf")
    assert out.count("moment of inertia 5") == 1 and "link 'a' inertial and 2 more" in " ".join(out.split())


def test_json_has_the_documented_keys(folder, capsys):
    status, out, _ = run(capsys, "--json", "--inertias", ".", "nobody")
    table = json.loads(out)
    assert status == table["status"] == 2
    assert set(table) == {"format", "status", "counts", "problems", "files"} and table["format"] == 1
    assert table["counts"] == {"error": 1, "warning": 1, "note": 0} and len(table["problems"]) == 1
    clean, bad, _ = table["files"]
    assert (clean["file"], clean["status"], clean["robot"]) == ("clean.urdf", 0, "clean")
    figures = {"robot", "links", "joints", "moving_joints", "mass_kg"}
    assert set(clean) == {"file", "status", "counts", "diagnostics", "inertias", *figures}
    (finding,) = bad["diagnostics"]
    assert set(finding) == {"severity", "code", "element", "line", "message", "hint"}
    assert (finding["code"], finding["line"], bad["status"]) == ("link-duplicate", 3, 1)


def test_json_of_inertias_and_of_what_cannot_be_read(folder, capsys):
    (folder / "heavy.urdf").write_text(HEAVY.format("0.0017"))
    (folder / "broken.urdf").write_text("<robot")
    _, out, _ = run(capsys, "--json", "--inertias", "heavy.urdf", "broken.urdf")
    heavy, broken = json.loads(out)["files"]
    (row,) = heavy["inertias"]
    assert row["link"] == "a" and row["box_m"] == pytest.approx([0.101] * 3, rel=1e-3)
    assert broken["robot"] is None and broken["mass_kg"] is None and broken["status"] == 1


def test_sarif_has_each_finding_at_its_line(folder, capsys):
    status, out, _ = run(capsys, "--sarif", "--strict", ".", "nobody")
    log = json.loads(out)
    (found,) = log["runs"]
    assert status == 2 and log["version"] == "2.1.0"
    rules = found["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == sorted({rule["id"] for rule in rules})
    assert all(rule["shortDescription"]["text"] == CODES[rule["id"]].meaning for rule in rules)
    (invocation,) = found["invocations"]
    assert not invocation["executionSuccessful"] and len(invocation["toolExecutionNotifications"]) == 1
    bad, odd = found["results"]
    assert [rules[each["ruleIndex"]]["id"] for each in (bad, odd)] == [bad["ruleId"], odd["ruleId"]]
    assert (bad["ruleId"], bad["level"], odd["level"]) == ("link-duplicate", "error", "error")  # --strict
    (place,) = bad["locations"]
    assert place["physicalLocation"]["artifactLocation"]["uri"] == "sub/deep/bad.urdf"
    assert place["physicalLocation"]["region"] == {"startLine": 3}
    assert place["logicalLocations"][0]["fullyQualifiedName"] == "link 'a'"
    assert "link 'a'" in bad["message"]["text"]


def test_sarif_names_files_elsewhere_by_whole_addresses_and_is_not_json(folder, capsys, monkeypatch):
    (folder / "sub" / "a b.urdf").write_text(BAD)
    monkeypatch.chdir(folder / "sub" / "deep")
    _, out, _ = run(capsys, "--sarif", str(folder / "sub" / "a b.urdf"))
    (result,) = json.loads(out)["runs"][0]["results"]
    uri = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert uri == (folder / "sub" / "a b.urdf").as_uri()
    status, out, err = run(capsys, "--sarif", "--json", ".")
    assert status == 2 and not out and "--json" in err and "--sarif" in err


@pytest.mark.parametrize("mass", ["1e308", "1e200"])
def test_json_holds_no_infinity(folder, capsys, mass):
    text = HEAVY.format("1e308").replace('mass value="1"', f'mass value="{mass}"')
    (folder / "huge.urdf").write_text(
        text.replace("</link>", "</link>" + text[text.index("<link") : -8].replace('"a"', '"b"'))
    )
    _, out, _ = run(capsys, "--json", "--inertias", "huge.urdf")
    json.loads(out, parse_constant=lambda name: pytest.fail(name))


def test_colour(folder, capsys):
    assert "\x1b[" not in run(capsys, "sub")[1]
    coloured = run(capsys, "sub", "--color", "always")[1]
    assert "\x1b[1;31m" in coloured and "\x1b[1;33m" in coloured
    assert re.sub(r"\x1b\[[\d;]*m", "", coloured) == run(capsys, "sub", "--color", "never")[1]
    assert Paint(False)("error", "x") == "x"


@pytest.mark.parametrize(
    ("choice", "terminal", "environ", "wanted"),
    [
        ("auto", True, {}, True),
        ("auto", False, {}, False),
        ("auto", True, {"NO_COLOR": "1"}, False),
        ("auto", True, {"NO_COLOR": ""}, True),
        ("auto", True, {"TERM": "dumb"}, False),
        ("always", False, {"NO_COLOR": "1"}, True),
        ("never", True, {}, False),
    ],
)
def test_when_there_is_colour(choice, terminal, environ, wanted):
    stream = io.StringIO()
    stream.isatty = lambda: terminal
    assert wants_colour(choice, stream, environ) is wanted


def test_inertias_are_listed(capsys):
    status, out, _ = run(capsys, "--inertias", "humanoid")
    lines = out.splitlines()
    assert status == 0 and "equivalent box [m]" in lines[1] and max(map(len, lines[1:])) <= 80
    assert any("torso" in line or "pelvis" in line for line in lines)


def test_the_page_of_a_file(folder, capsys):
    (folder / "heavy.urdf").write_text(HEAVY.format("5"))
    status, out, _ = run(capsys, "heavy.urdf", "--page", "heavy", "--no-open")
    assert status == 0 and "heavy.html" in out
    assert "inertia-implausible" in (folder / "heavy.html").read_text(encoding="utf-8")
    status, _, err = run(capsys, "sub/deep/bad.urdf", "--page", "bad", "--no-open")
    assert status == 1 and "no page" in err and not (folder / "bad.html").exists()
    status, _, err = run(capsys, ".", "--page", "all", "--no-open")
    assert status == 2 and "4 were given" in err
    status, _, err = run(capsys, "heavi.urdf", "--page", "all", "--no-open")
    assert status == 2 and "heavi.urdf" in err


# ---- the hook that .pre-commit-hooks.yaml defines


def hooks():
    """The list of flat mappings that the file is."""
    found = []
    for line in (ROOT / ".pre-commit-hooks.yaml").read_text().splitlines():
        mark, key, value = re.fullmatch(r"(- |  )(\w+): (.+)", line).groups()
        if mark == "- ":
            found.append({})
        found[-1][key] = value
    return found


def test_the_hook_runs(folder):
    (hook,) = hooks()
    assert hook["id"] == "robokit-check" and hook["language"] == "python"
    assert (
        "robokit" in (ROOT / "pyproject.toml").read_text().partition("[project.scripts]")[2].partition("[")[0]
    )
    staged = ["clean.urdf", "sub/notes.txt", "sub/deep/bad.urdf"]
    chosen = [name for name in staged if re.search(hook["files"], name)]
    assert chosen == ["clean.urdf", "sub/deep/bad.urdf"]
    program, *rest = shlex.split(hook["entry"])
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    for files, status in ((chosen, 1), (chosen[:1], 0)):
        command = [sys.executable, "-m", program, *rest, *files]
        done = subprocess.run(
            command, capture_output=True, text=True, env=environment, timeout=waiting.PATIENCE
        )
        assert done.returncode == status and done.stderr == ""


def test_every_code_can_be_ignored(folder, capsys):
    flags = [word for code in CODES for word in ("--ignore", code)]
    assert run(capsys, *flags, ".")[0] == 0
