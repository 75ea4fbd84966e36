"""Dask, imported where it is used, and kept quiet: what matters is said in this program's words."""

from __future__ import annotations

import contextlib
import logging
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from robokit.errors import MissingDependency

_QUIET = {
    "DASK_LOGGING__DISTRIBUTED": "critical",
    "DASK_DISTRIBUTED__ADMIN__SYSTEM_MONITOR__DISK": "False",
    # A processor a worker: no library may start threads of its own.
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}


def distributed() -> Any:
    """The module distributed.

    Raises:
        MissingDependency: it is not installed.
    """
    try:
        import distributed as found
    except ImportError as error:
        raise MissingDependency(
            "a sweep on several processes needs Dask: pip install 'robokit[sweep]'"
        ) from error
    return found


def environment() -> dict[str, str]:
    """That of the processes: quiet, one thread each, with this robokit, and without the current folder.

    An empty part of PYTHONPATH stands for the current folder.
    """
    found = {**os.environ, **_QUIET, "PYTHONSAFEPATH": "1"}
    home = str(Path(__file__).resolve().parents[3])
    own = [] if "site-packages" in Path(home).parts else [home]
    given = [part for part in found.get("PYTHONPATH", "").split(os.pathsep) if part]
    found["PYTHONPATH"] = os.pathsep.join(own + given)
    return found


def has_bokeh() -> bool:
    """Whether the library of Dask's dashboard is installed."""
    from importlib.util import find_spec

    return find_spec("bokeh") is not None


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Without the log and the warnings of Dask."""
    names = [name for name in logging.root.manager.loggerDict if name.startswith("distributed")]
    loggers = [logging.getLogger(name) for name in (*names, "tornado.application", "asyncio")]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)
