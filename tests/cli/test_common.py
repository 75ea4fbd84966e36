"""What the commands write: whole files or none, characters that a terminal lacks, readers that go away."""

import io
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path
from xml.etree import ElementTree

import pytest
import waiting

import robokit as rk
from robokit import stages
from robokit.cli import common as compiling
from robokit.cli import main

ROOT = Path(__file__).resolve().parents[2]
EMOJI = '<robot name="&#x1F600;"><link name="a&#x1F600;"/></robot>'
WRITING = [
    ("view", "arm", "--no-open", "-o", "x.html"),
    ("simulate", "double_pendulum", "--duration", "0.05", "--no-open", "-o", "x.html"),
    ("check", "arm", "--no-open", "--page", "x.html"),
    ("sparsity", "arm", "-o", "x.svg"),
    ("sparsity", "arm", "-o", "x.png"),
    ("mjcf", "humanoid", "-o", "x.xml"),
]


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(capsys, *argv):
    """(exit status, standard output, standard error)"""
    status = main([str(a) for a in argv])
    out, err = capsys.readouterr()
    assert "Traceback" not in err and "internal error" not in err
    return status, out, err


# ---- files


@pytest.mark.parametrize("closed", ["stdout", "stderr"])
@pytest.mark.parametrize("argv", [("check", "arm"), WRITING[1], ("info", "arm")], ids=lambda argv: argv[0])
def test_output_that_is_closed_is_no_internal_error(here, monkeypatch, argv, closed):
    other = io.StringIO()
    monkeypatch.setattr(sys, "stdout" if closed == "stderr" else "stderr", other)
    monkeypatch.setattr(sys, closed, None)  # as Python has it after >&-
    assert main(argv) == 0 and "internal error" not in other.getvalue()


@pytest.mark.parametrize("argv", WRITING, ids=lambda argv: f"{argv[0]} {argv[-1]}")
def test_a_full_disk_leaves_what_was_there(here, capsys, monkeypatch, argv):
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # it would be cut short too, and stay
    target = here / argv[-1]
    target.write_text("before")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, hard))  # bytes a file: a disk that fills up on the way
    try:
        status = main(list(argv))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    err = capsys.readouterr().err
    assert (
        status == 1 and f"cannot write {target.name!r}: File too large" in err and len(err.splitlines()) == 1
    )
    assert target.read_text() == "before" and os.listdir(here) == [target.name]
    assert run(capsys, *argv)[0] == 0
    assert target.read_bytes() != b"before" and os.listdir(here) == [target.name]


def test_links_and_modes_of_files_stay(here, capsys):
    (here / "folder").mkdir()
    real = here / "folder" / "real.html"
    real.write_text("before")
    real.chmod(0o640)
    (here / "x.html").symlink_to(real)
    assert run(capsys, "view", "arm", "--no-open", "-o", "x.html")[0] == 0
    assert (here / "x.html").is_symlink() and real.stat().st_size > 1000
    assert real.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize(
    "argv",
    [
        WRITING[0],
        ("simulate", "double_pendulum", "--duration", "0.01", "--no-open", "--save", "x.npz"),
        WRITING[3],
        ("mjcf", "arm", "-o", "x.xml"),
    ],
    ids=lambda argv: argv[-1],
)
@pytest.mark.parametrize("end", ["real", "not_there.dat"])
def test_a_link_to_a_file_of_another_ending_is_written_through(here, capsys, argv, end):
    (here / "folder").mkdir()
    (here / argv[-1]).symlink_to(here / "folder" / end)
    if end.startswith("real"):
        (here / "folder" / end).write_text("before")
    assert run(capsys, *argv)[0] == 0
    assert (here / argv[-1]).is_symlink() and (here / "folder" / end).stat().st_size > 1000
    assert os.listdir(here / "folder") == [end]


@pytest.mark.parametrize(
    ("target", "words", "expected"),
    [
        ("none/x", "there is no folder", 2),
        ("x.html", "links form a cycle", 1),
        (".", "name of a file", 2),
        ("n" * 300, "name too long", 1),
    ],
)
def test_links_to_no_file_are_refused_before_the_work(here, capsys, monkeypatch, target, words, expected):
    (here / "x.html").symlink_to(target)
    monkeypatch.setattr(rk, "simulate", lambda *_, **__: pytest.fail("the work has begun"))
    argv = ("simulate", "double_pendulum", "--no-open", "-o", "x.html")
    status, out, err = run(capsys, *argv)
    assert status == expected and not out and words in err.lower() and len(err.splitlines()) == 1


@pytest.mark.parametrize("there", [False, True])
def test_code_is_written_with_all_its_files_or_none(here, capsys, monkeypatch, there):
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    argv = ("codegen", "double_pendulum", "--function", "crba", "-o", "code")
    assert run(capsys, *argv)[0] == 0
    sizes = [path.stat().st_size for path in sorted(Path("code").iterdir(), key=lambda p: p.stat().st_size)]
    if there:
        for path in Path("code").iterdir():
            path.write_text("before")
    else:
        shutil.rmtree("code")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (sizes[-1] - 1, hard))  # the last one finds no room
    try:
        status, out, err = run(capsys, *argv)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert status == 1 and not out and "File too large" in err and len(err.splitlines()) == 1
    assert not there or {path.read_text() for path in Path("code").iterdir()} == {"before"}
    assert len(os.listdir("code")) == 3 if there else not os.path.exists("code")


@pytest.mark.parametrize("name", ["own.urdf", "linked.xml", "hard.xml", "./own.urdf"])
def test_mjcf_does_not_overwrite_the_robot(here, capsys, name):
    shutil.copy(rk.find_robot("arm"), "own.urdf")
    text = (here / "own.urdf").read_bytes()
    (here / "linked.xml").symlink_to("own.urdf")
    os.link("own.urdf", "hard.xml")
    status, out, err = run(capsys, "mjcf", "own.urdf", "-o", name)
    assert status == 1 and not out and "the robot's own file" in err
    assert (here / "own.urdf").read_bytes() == text
    assert run(capsys, "mjcf", "own.urdf", "-o", "other.xml")[0] == 0


@pytest.mark.parametrize(
    "argv", [("view", "--no-open", "-o"), ("simulate", "--no-open", "-o"), ("sparsity", "-o")]
)
def test_no_command_overwrites_the_robot(here, capsys, argv):
    command, *options = argv
    own = here / ("own.svg" if command == "sparsity" else "own.html")
    shutil.copy(rk.find_robot("arm"), own)
    text = own.read_bytes()
    status, out, err = run(capsys, command, str(own), *options, str(own))
    assert status == 1 and not out and "the robot's own file" in err and own.read_bytes() == text


@pytest.mark.parametrize(
    "argv",
    [
        ("info",),
        ("cost",),
        ("check", "--inertias"),
        ("view", "--no-open", "-o", "x.html"),
        ("sparsity", "-o", "x.svg"),
        ("mjcf", "-o", "x.xml"),
        ("fall", "--no-open", "--no-live", "--duration", "0.01", "-o", "x.html"),
    ],
    ids=lambda argv: argv[0],
)
def test_no_name_reaches_the_terminal_as_control_characters(here, capsys, argv):
    text = rk.find_robot("double_pendulum").read_text()
    text = text.replace('name="double_pendulum"', 'name="a&#x9b;31m&#x202e;b"')
    text = text.replace('"lower"', '"low&#x9b;2J&#10;er"').replace('"lower_joint"', '"lower&#x85;joint"')
    (here / "esc\x1b[31m.urdf").write_text(text)
    status, out, err = run(capsys, argv[0], "esc\x1b[31m.urdf", *argv[1:])
    assert status == 0 and all(line.isprintable() for line in (out + err).split("\n"))


def test_mjcf_writes_to_what_is_no_file(here, capsys):
    reader = os.memfd_create("model")
    assert run(capsys, "mjcf", "arm", "-o", f"/dev/fd/{reader}")[0] == 0
    os.lseek(reader, 0, os.SEEK_SET)
    with open(reader, encoding="utf-8") as file:
        assert ElementTree.fromstring(file.read()).tag == "mujoco"


@pytest.mark.parametrize("name", ["", "/", "..", "a/../b"])
def test_names_of_robots_are_not_paths(here, capsys, name):
    (here / "in.urdf").write_text(f'<robot name="{name}"><link name="a"/></robot>')
    assert run(capsys, "view", "in.urdf", "--no-open")[0] == 0
    assert len([name for name in os.listdir(here) if name.endswith(".html")]) == 1


# ---- characters


@pytest.fixture
def ascii_output(monkeypatch):
    """Runs a command whose standard output has ASCII alone; returns status and text."""

    def go(*argv):
        buffer = io.BytesIO()
        stream = io.TextIOWrapper(buffer, encoding="ascii")
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", stream)
            status = main([str(a) for a in argv])
            stream.flush()
        return status, buffer.getvalue().decode("ascii")

    return go


def test_ascii_terminals_show_escapes(here, ascii_output, capsys):
    (here / "emoji.urdf").write_text(EMOJI)
    for argv in (("info",), ("sparsity",), ("check",), ("cost",)):
        status, out = ascii_output(*argv, "emoji.urdf")
        assert status == 0 and ("\\U0001f600" in out or argv == ("check",))
    assert "internal error" not in capsys.readouterr().err


def test_ascii_json_and_xml_keep_every_character(here, ascii_output):
    (here / "emoji.urdf").write_text(EMOJI.replace("/></robot>", "/><link name='b'/></robot>"))
    _, out = ascii_output("check", "--json", "emoji.urdf")
    assert json.loads(out)["files"][0]["robot"] == "\U0001f600"
    (here / "emoji.urdf").write_text(EMOJI)
    status, out = ascii_output("mjcf", "emoji.urdf")
    assert status == 0 and ElementTree.fromstring(out).get("model") == "\U0001f600"


@pytest.mark.parametrize(
    "argv", [("info",), ("view", "--no-open", "-o", "x.html"), ("check", "--json"), ("check",), ("mjcf",)]
)
def test_file_names_that_are_no_text(here, capsys, argv):
    name = os.fsdecode(b"caf\xe9.urdf")
    (here / name).write_text(EMOJI)
    status, out, err = run(capsys, argv[0], name, *argv[1:])
    assert status == 0 and not err
    assert "\\udce9" in out or argv[0] in ("view", "mjcf")
    if "--json" in argv:
        assert "udce9" in repr(json.loads(out)["files"][0]["file"])


def test_meshes_whose_path_is_no_text_are_copied_for_mjcf(here, capsys):
    folder = here / os.fsdecode(b"caf\xe9")
    folder.mkdir()
    (folder / "m.obj").write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n")
    mesh = '<visual><geometry><mesh filename="m.obj"/></geometry></visual>'
    (folder / "r.urdf").write_text(f'<robot name="r"><link name="a">{mesh}</link></robot>')
    status, out, err = run(capsys, "mjcf", folder / "r.urdf", "-o", "x.xml")
    assert status == 0 and out and "1 mesh file that MuJoCo does not read" in err
    (mesh,) = ElementTree.parse(here / "x.xml").iter("mesh")
    assert (here / mesh.get("file")).read_bytes()[80:84] == b"\1\0\0\0"
    assert "path is not UTF-8" in run(capsys, "mjcf", folder / "r.urdf")[2]


# ---- surroundings


def test_cache_without_a_home(capsys, monkeypatch):
    def no_home():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("ROBOKIT_CACHE_DIR", raising=False)
    monkeypatch.setattr(Path, "home", no_home)
    for flags in ((), ("--clear",)):
        status, out, err = run(capsys, "cache", *flags)
        assert status == 1 and not out and "set ROBOKIT_CACHE_DIR" in err


@pytest.mark.parametrize("command", ["info", "check", "parity"])
@pytest.mark.parametrize("name", ["~no-such-user/a.urdf", ""])
def test_names_that_mean_no_file(here, capsys, command, name):
    status, out, err = run(capsys, command, name)
    assert status == 2 and not out
    assert len(err.splitlines()) == 1 and ("home folder" in err or "is empty" in err)


def process(*argv, **options):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        [sys.executable, "-m", "robokit", *argv],
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def test_a_reader_that_has_gone_is_no_error_to_talk_about():
    read, write = os.pipe()
    os.close(read)
    robots = process("robots", stdout=write)
    os.close(write)
    assert robots.communicate(timeout=waiting.PATIENCE)[1] == "" and robots.returncode == 1


def test_a_full_standard_output_is_said():
    with open("/dev/full", "w") as full:
        robots = process("robots", stdout=full)
        err = robots.communicate(timeout=waiting.PATIENCE)[1]
    assert robots.returncode == 1
    assert err == "robokit: standard output: No space left on device\n"


# ---- progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("stream", "silent", "shown"),
    [(Terminal(), "", True), (Terminal(), "0", False), (io.StringIO(), "", False)],
)
def test_what_takes_long_is_shown_on_a_terminal_only(monkeypatch, stream, silent, shown):
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(stages, "PATIENCE", 0.0)
    monkeypatch.setattr(stages, "PERIOD", 0.01)
    monkeypatch.setenv("ROBOKIT_PROGRESS", silent)
    with stages.stage("fall"), stages.stage("compiling step (single)"):
        if shown:
            waiting.until(lambda: "\r" in stream.getvalue())
        else:
            time.sleep(0.1)
        with stages.stage(""):  # a bar shows something of its own
            before = stream.getvalue()
            time.sleep(0.05)
            assert "robokit" not in stream.getvalue()[len(before) + 40 :]
    text = stream.getvalue()
    assert not text if not shown else re.search(r"\rrobokit: compiling step \(single\): \d+ s", text)
    assert not text or re.search(r"\r +\r$", text)  # the line is cleared
    assert not stages._line.under_way


def test_what_takes_less_than_a_second_is_not_shown(monkeypatch):
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    assert stages.PATIENCE == 1.0
    monkeypatch.setattr(stages, "PATIENCE", waiting.PATIENCE)
    monkeypatch.setattr(stages, "PERIOD", 0.01)
    with stages.stage("reading a.urdf"):
        time.sleep(0.1)
    assert not stream.getvalue()


def test_a_stage_that_fails_is_no_longer_shown(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    with pytest.raises(ZeroDivisionError), stages.stage("reading a.urdf"):
        assert stages._line.under_way[-1][0] == "reading a.urdf"
        _ = 1 / 0
    assert not stages._line.under_way


def test_the_engine_says_what_it_compiles(tmp_path, monkeypatch):
    monkeypatch.setenv("ROBOKIT_CACHE_DIR", str(tmp_path))
    robot = rk.load_urdf(rk.find_robot("double_pendulum"))
    with compiling.Compiling() as watched:
        rk.gravity_forces(robot, robot.neutral())
    assert watched.kernels == 1 and watched.seconds > 0.0
    again = rk.load_urdf(rk.find_robot("double_pendulum")).with_gravity(robot.gravity)
    with compiling.Compiling() as watched:
        rk.gravity_forces(again, again.neutral())
    assert watched.kernels == 0
