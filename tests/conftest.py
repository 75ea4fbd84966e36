"""Options, markers and the fixtures that every folder shares; the robots are built in ladder.py."""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import shutil
import signal
import sys
from pathlib import Path

# A test process for each core: the threads of NumPy's linear algebra would only wait for one another.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# Hundreds of processes import the same modules: their bytecode is kept, though containers may say no, or each
# would compile robokit and all that it imports anew, for two seconds.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

import ladder
import pytest
import waiting
from hypothesis import HealthCheck, settings

sys.dont_write_bytecode = False

settings.register_profile(
    "robokit",
    derandomize=True,
    deadline=None,
    max_examples=40,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("robokit")

# A shell starts what runs in the background with Ctrl-C ignored, and the tests of Ctrl-C would wait for ever.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _import_from_another_place(config: pytest.Config) -> None:
    """Import the test modules, each worker from another one on.

    What pytest makes of a module's assertions, and Python of a source file, is kept on disk: in a fresh clone
    each worker makes its share. They would all make everything if all began with the same module.
    """
    worker = getattr(config, "workerinput", None)
    if worker is None:
        return
    named = [Path(argument.partition("::")[0]) for argument in config.args]
    files = [f for name in named for f in (sorted(name.rglob("test_*.py")) if name.is_dir() else [name])]
    first = len(files) * int(worker["workerid"].removeprefix("gw")) // worker["workercount"]
    for file in files[first:] + files[:first]:
        if (folder := str(file.parent.resolve())) not in sys.path:
            sys.path.insert(0, folder)
        with contextlib.suppress(Exception, pytest.skip.Exception):  # pytest imports it again, and reports it
            importlib.import_module(file.stem)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection(session: pytest.Session):
    """Without the collector of garbage: nearly all that is made here stays."""
    gc.disable()
    _import_from_another_place(session.config)
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish() -> None:
    """The collector leaves alone what stays for the session, and looks less often: an eighth of the time.

    To look first for what is garbage already, a few percent, would take two thirds of a second.
    """
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


def _without_the_name_of_the_test() -> None:
    """Take away the variable that pytest changes with every test and phase.

    A child process that reads files lives as long as the environment stays as it was; with the variable each
    test would start one of its own and import MuJoCo, Drake or USD anew.
    """
    os.environ.pop("PYTEST_CURRENT_TEST", None)


@pytest.hookimpl(tryfirst=True)
def pytest_fixture_setup() -> None:
    _without_the_name_of_the_test()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call() -> None:
    _without_the_name_of_the_test()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--fresh-cache",
        action="store_true",
        help="compile every kernel anew, in an empty cache folder for this session",
    )


@pytest.fixture(scope="session", autouse=True)
def _kernel_cache(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory):
    """The user's ordinary cache of compiled kernels, or an empty one with --fresh-cache."""
    if not request.config.getoption("--fresh-cache"):
        yield
        return
    before = os.environ.get("ROBOKIT_CACHE_DIR")
    os.environ["ROBOKIT_CACHE_DIR"] = str(tmp_path_factory.mktemp("kernels"))
    yield
    os.environ.pop("ROBOKIT_CACHE_DIR")
    if before is not None:
        os.environ["ROBOKIT_CACHE_DIR"] = before


# No network at start-up, no sandbox (containers), WebGL in software.
CHROMIUM_FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--use-gl=angle",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--webgl-msaa-sample-count=0",  # smooth edges cost a quarter of a frame that a processor draws
]


@pytest.fixture(scope="session")
def chromium():
    """A headless Chromium, shared by the browser tests; its first context is shared by their pages."""
    from playwright.sync_api import sync_playwright

    path = os.environ.get("ROBOKIT_CHROMIUM") or shutil.which("chromium") or "/usr/bin/chromium"
    assert Path(path).exists(), f"no browser at {path}; set ROBOKIT_CHROMIUM"
    with sync_playwright() as pw:
        browser = pw.chromium.launch(executable_path=path, args=CHROMIUM_FLAGS)
        first = browser.new_context(reduced_motion="reduce")  # pages do not play by themselves
        first.set_default_timeout(1e3 * waiting.PATIENCE)
        yield browser
        browser.close()


_BUILT = {
    "pendulum": ladder.pendulum,
    "chain": ladder.chain,
    "chain-floating": lambda: ladder.chain(base="floating"),
    "coordinates": lambda: ladder.random_tree(5, kinds=ladder.COORDINATE_KINDS, n=9),
    "tree0": lambda: ladder.random_tree(0),
    "tree1": lambda: ladder.random_tree(1),
    "tree0-floating": lambda: ladder.random_tree(0, "floating"),
    "tree2-floating": lambda: ladder.random_tree(2, "floating"),
}
_CACHE: dict[str, object] = {}


def ladder_robot(name: str):
    """The robot of a rung, built once a session."""
    if name not in _CACHE:
        if name in _BUILT:
            _CACHE[name] = _BUILT[name]()
        else:
            import robokit as rk

            file, _, base = name.partition("-")
            _CACHE[name] = rk.load_urdf(ladder.ROBOTS / f"{file}.urdf", base=base)
    return _CACHE[name]


BUILT_RUNGS = tuple(_BUILT)
OWN_RUNGS = (
    "double_pendulum-fixed",
    "arm-fixed",
    "quadruped-floating",
    "humanoid-fixed",
    "humanoid-floating",
)


@pytest.fixture(params=(*BUILT_RUNGS, *OWN_RUNGS))
def robot(request: pytest.FixtureRequest):
    """Every rung of the ladder in turn."""
    return ladder_robot(request.param)


@pytest.fixture(params=BUILT_RUNGS)
def built(request: pytest.FixtureRequest):
    """The rungs that are built in code: all joint kinds, no file."""
    return ladder_robot(request.param)


@pytest.fixture(params=[r for r in (*BUILT_RUNGS, *OWN_RUNGS) if r.endswith("floating")])
def floating(request: pytest.FixtureRequest):
    """The rungs with a floating base."""
    return ladder_robot(request.param)


@pytest.fixture(params=("chain", "coordinates", "arm-fixed", "humanoid-fixed"))
def holonomic(request: pytest.FixtureRequest):
    """Rungs whose velocities are the rates of their coordinates."""
    return ladder_robot(request.param)
