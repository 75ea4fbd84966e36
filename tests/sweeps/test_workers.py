"""kill -9 of whatever takes part, and Ctrl-C: nothing is lost, nothing is left behind."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import waiting
from fake_recipe import FakeRecipe
from fake_sweep import ROOT, started
from sweep_files import contents

import robokit as rk
from robokit.child_process import search_path
from robokit.sweeps.workers import run_sweep, worker_environment

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc"),
]


RECIPE = {"count": 95, "pause": 0.01}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sweep") / "undisturbed"
    run_sweep(FakeRecipe(**RECIPE), folder, chunk=10, workers=0)
    return contents(folder)


def chunks(folder):
    return len(list(folder.glob("chunks/*.parquet")))


def below(pid):
    """Processes that descend from one."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if fields[0] != "Z":
            parents[int(stat.parent.name)] = int(fields[1])
    found, size = {pid}, 0
    while size < len(found):
        size = len(found)
        found |= {child for child, parent in parents.items() if parent in found}
    return found - {pid}


def alive(pids):
    return {pid for pid in pids if Path(f"/proc/{pid}").exists()}


def answers(port):
    """Whether somebody listens: Dask is imported for some seconds, on a busy machine for many."""
    with socket.socket() as caller:
        return caller.connect_ex(("127.0.0.1", int(port))) == 0


def ended(command, code):
    text = command.communicate(timeout=waiting.PATIENCE)[1]
    assert command.returncode == code, text
    return text


def test_a_worker_is_killed_then_the_command_interrupted_then_killed(tmp_path, undisturbed):
    folder = tmp_path / "sweep"
    command = started(folder, RECIPE, workers=1)
    waiting.until(lambda: chunks(folder) >= 1)
    (worker,) = (
        pid for pid in below(command.pid) if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes()
    )
    os.kill(worker, signal.SIGKILL)
    kept = chunks(folder)
    waiting.until(lambda: chunks(folder) >= kept + 2)  # by another worker in its place
    family = below(command.pid)
    assert len(family) >= 2
    command.send_signal(signal.SIGINT)
    said = ended(command, 130)
    waiting.until(lambda: not alive(family))  # init may take a moment to reap them
    assert f"of 95 rows are kept; go on with: robokit sweep --resume {folder}" in said
    assert "Traceback" not in said

    kept = chunks(folder)
    command = started(folder, RECIPE, workers=2, resume=True)
    waiting.until(lambda: chunks(folder) > kept)
    family = below(command.pid)
    command.kill()
    ended(command, -signal.SIGKILL)
    waiting.until(lambda: not alive(family))

    run_sweep(FakeRecipe(**RECIPE), folder, chunk=10, workers=0, resume=True)
    assert contents(folder) == undisturbed


def listening(pids):
    """Addresses, as the system writes them, on which these processes wait for connections."""
    sockets = set()
    for pid in pids:
        for file in Path(f"/proc/{pid}/fd").iterdir():
            try:
                sockets.add(os.readlink(file))
            except OSError:  # closed in between
                continue
    found = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        lines = Path(table).read_text().splitlines()[1:] if Path(table).exists() else []
        rows = [line.split() for line in lines]
        found |= {
            row[1].partition(":")[0] for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in sockets
        }
    return found


def test_processes_take_no_code_of_the_current_folder_and_listen_on_this_machine_alone(tmp_path, monkeypatch):
    trap = f"open({str(tmp_path / 'ran')!r}, 'a').close(); raise ImportError"
    here = tmp_path / "here"
    here.mkdir()
    for name in ("random", "queue", "json", "tornado", "dask", "multiprocessing", "click"):
        (here / f"{name}.py").write_text(trap)
    monkeypatch.chdir(here)
    command = started(tmp_path / "sweep", RECIPE | {"pause": 0.05}, workers=2)
    waiting.until(lambda: chunks(tmp_path / "sweep") >= 2)
    family = below(command.pid) | {command.pid}
    assert len(family) >= 4
    for pid in family - {command.pid}:
        assert b"\0-P\0" in Path(f"/proc/{pid}/cmdline").read_bytes()
    assert listening(family) == {"0100007F"}  # 127.0.0.1
    command.kill()
    ended(command, -signal.SIGKILL)
    assert not (tmp_path / "ran").exists()


def test_a_chunk_that_kills_its_workers_does_not_stop_the_others(tmp_path, monkeypatch):
    monkeypatch.setenv("DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES", "0")
    said = ended(started(tmp_path / "sweep", {"count": 40, "killer": 13}, workers=2), 1)
    assert "rows 10 to 19 could not be computed: their worker is killed again and again" in said
    assert "30 of 40 rows are kept" in said


def test_a_scheduler_that_is_there_and_is_killed(tmp_path, undisturbed):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    address, env = f"tcp://127.0.0.1:{port}", {**os.environ, "PYTHONPATH": f"{ROOT}:{Path(__file__).parent}"}

    def dask(*words):
        given = [sys.executable, "-m", "dask", *words, "--no-dashboard"]
        return subprocess.Popen(given, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    scheduler = dask("scheduler", "--host", "127.0.0.1", "--port", port)
    workers = [dask("worker", address, "--nthreads", "1", "--no-nanny") for _ in range(2)]
    try:
        waiting.until(lambda: answers(port))
        run_sweep(FakeRecipe(**RECIPE), tmp_path / "whole", chunk=10, scheduler=address)
        assert contents(tmp_path / "whole") == undisturbed
        robot = rk.load_urdf(rk.find_robot("double_pendulum"))
        run = {"starts": {"joint:upper_joint": rk.Uniform(0.0, 1.0)}, "ground": None, "duration": 0.02}
        for name, how in (("here", {"workers": 0}), ("there", {"scheduler": address})):
            rk.sweep(robot, **run, count=6, chunk=2, out=tmp_path / name, **how)
        assert contents(tmp_path / "here") == contents(tmp_path / "there")
        from distributed import Client  # takes half a second, in each process that collects tests

        with Client(address, set_as_default=False) as client:  # nothing of the sweep is left there
            left = client.run_on_scheduler(lambda dask_scheduler: dict(dask_scheduler.task_metadata))
        assert [name for name, given in left.items() if given] == [] and len(left) == 2
        command = started(tmp_path / "sweep", RECIPE, scheduler=address, again=3.0)
        waiting.until(lambda: chunks(tmp_path / "sweep") >= 2)
        scheduler.kill()
        said = ended(command, 1)
        assert "the scheduler has gone;" in said
        assert f"rows are kept; go on with: robokit sweep --resume {tmp_path / 'sweep'}" in said
        assert "Traceback" not in said
    finally:
        for process in (scheduler, *workers):
            process.kill()
            process.wait()
    run_sweep(FakeRecipe(**RECIPE), tmp_path / "sweep", chunk=10, workers=0, resume=True)
    assert contents(tmp_path / "sweep") == undisturbed


def test_no_process_has_the_current_folder_on_its_path(monkeypatch, tmp_path):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(("", "/one", "", "/two", "")))
    found = worker_environment()
    assert found["PYTHONSAFEPATH"] == "1"
    parts = found["PYTHONPATH"].split(os.pathsep)
    assert parts[-2:] == ["/one", "/two"] and "" not in parts
    started = []

    def start(command, **_):
        started.append(command)
        raise OSError("no process")

    monkeypatch.setattr(subprocess, "Popen", start)
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    (tmp_path / "arm.xacro").write_text('<robot name="r"/>')
    with pytest.raises(rk.UrdfError):
        rk.load_urdf(tmp_path / "arm.xacro")
    assert "-P" in started[0]
    assert "" not in search_path() and sys.path[1] in search_path()
