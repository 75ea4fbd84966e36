"""One thread for BLAS: the matrices here are small, and threads cost more than they gain.

OpenBLAS starts as many threads as the machine has cores and lets each wait for all others. On a busy machine,
or in a container that may use fewer cores than it sees, a decomposition of some microseconds then takes the
time that the system gives to other processes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """While it lasts, BLAS has one thread in all of the process; afterwards as many as before."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1, user_api="blas"):
        yield
