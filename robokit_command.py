"""The command ``robokit``, from its first moment on.

It stands beside the package, for to import any part of the package is to import all of it, which takes half a
second. Ctrl-C meanwhile ends the process at once: inside an import Python may turn it into another error, or
print it and go on. So this file imports hardly anything: before its first line Python itself answers Ctrl-C.
"""

import gc
import os
import signal

INTERRUPTED = 130
"""As robokit.cli has it."""


def main() -> int:
    """Run the command of this process; returns the exit status."""
    listening = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # it is not after nohup
    if listening:
        signal.signal(signal.SIGINT, _end)
    gc.disable()  # an import makes no garbage, and what it makes stays
    try:
        from robokit.cli import main as command

        gc.freeze()
        gc.enable()
        if listening:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        return command()
    except KeyboardInterrupt:
        return _end()


def _end(*_: object) -> int:
    try:
        os.write(2, b"robokit: interrupted\n")
    finally:
        os._exit(INTERRUPTED)
