"""The command line: one function a command (commands.py), errors in one line, exit status 0, 1 or 2.

robokit fall [ROBOT]       a robot falls; the page opens in the browser
robokit simulate ROBOT     passive motion
robokit view ROBOT         the robot in the browser
robokit info ROBOT         tree, masses, joints
robokit check FILE ...     what the importer finds
robokit parity ROBOT ...   robots in other engines, side by side
robokit mjcf ROBOT -o FILE the robot as a MuJoCo model
robokit sparsity ROBOT     the pattern of H as a picture
robokit cost ROBOT         operation counts of the algorithms
robokit cache              compiled code on disk
robokit robots             names that ROBOT may take
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence

from robokit.cli.parser import make_parser
from robokit.cli.plumbing import fail, show_warning
from robokit.errors import RobokitError


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit status.

    0: done. 1: the command found errors in its subject, or could not do its work. 2: wrong usage, and in
    `check` a file that cannot be read.
    """
    arguments = make_parser().parse_args(argv)
    warnings.showwarning = show_warning
    try:
        return int(arguments.command(arguments) or 0)
    except RobokitError as error:
        return fail(str(error))
    except BrokenPipeError:
        # The reader (head, less) has gone; say nothing and keep the interpreter from trying again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        return fail(f"{error.filename}: {error.strerror}" if error.filename else str(error))
    except KeyboardInterrupt:
        return fail("interrupted")
    except Exception as error:  # a defect of ours: say so in a line, not in a traceback
        if os.environ.get("ROBOKIT_DEBUG"):
            raise
        what = f"{type(error).__name__}: {error}"
        return fail(f"internal error: {what} (please report it; ROBOKIT_DEBUG=1 shows the traceback)")
