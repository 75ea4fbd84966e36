"""The recipe's text on its way to the workers: kept by Dask's scheduler, asked for once by each process.

Sent with each chunk, it would be most of what a scheduler has to carry. As a result that the chunks depend
on, it would draw them to the one worker that has it: Dask sends a task where its data lies, and moves the
others on by and by (with 128 workers the last one began after half a minute or more).
"""

from __future__ import annotations

import contextlib
import zlib
from functools import lru_cache
from typing import Any

from robokit.errors import RobokitError


def send(client: Any, name: str, text: str) -> None:
    """Give a recipe to the scheduler.

    Args:
        client: of the cluster, a ``distributed.Client``.
        name: under which the workers ask for it.
        text: of the recipe.
    """
    client.set_metadata(name, zlib.compress(text.encode(), 1))


def forget(client: Any, name: str) -> None:
    """Take it back, without waiting for that; a scheduler that has gone does not matter."""

    async def clear() -> None:
        with contextlib.suppress(Exception):
            await client.scheduler.set_metadata(keys=[name], value=None)

    with contextlib.suppress(Exception):
        client.loop.add_callback(clear)


@lru_cache(maxsize=2)
def received(name: str) -> str:
    """The text of a recipe, in a task on a worker.

    Args:
        name: as it was sent.

    Raises:
        RobokitError: the scheduler does not have it (any more).
    """
    from distributed import get_worker
    from distributed.utils import sync

    worker = get_worker()
    packed = sync(worker.loop, worker.scheduler.get_metadata, keys=[name], default=None)
    if packed is None:
        raise RobokitError("the scheduler does not have the sweep's recipe; has the command ended?")
    return zlib.decompress(packed).decode()
