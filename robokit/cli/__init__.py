"""The command line.

    robokit fall [ROBOT]       a robot falls; the page opens in the browser
    robokit simulate ROBOT     passive motion
    robokit sweep ROBOT ...    many falls, each with its own parameters
    robokit replay FOLDER ROW  one of them again
    robokit view ROBOT         the robot in the browser
    robokit log LOG            the log of a real robot: its motion, torques unexplained
    robokit identify LOG       masses and friction from a log
    robokit info ROBOT         tree, masses, joints
    robokit check FILE ...     what the importer finds
    robokit parity ROBOT ...   the robot in other engines, compared
    robokit parity A B         two descriptions of one robot: what differs, and why
    robokit mjcf ROBOT -o FILE the robot as a MuJoCo model
    robokit convert ROBOT -o FILE
                               the robot in another format
    robokit sparsity ROBOT     the pattern of H as a picture
    robokit cost ROBOT         operation counts of the algorithms
    robokit codegen ROBOT      a function of the robot as C
    robokit cache              compiled code on disk
    robokit robots             names that ROBOT may take

The files of this folder:

    parser               the commands' arguments and what they accept
    commands             the commands that do not simulate
    simulation_commands  the commands fall, simulate, sweep and replay
    common               what the commands share
"""

from __future__ import annotations

import atexit
import errno
import gc
import os
import sys
import time
import warnings
from collections.abc import Sequence

from robokit.cli.common import (
    INTERRUPTED,
    NO_SUCH_PLACE,
    NOT_ACCEPTED,
    WRONG_USAGE,
    Compiling,
    drop_output,
    fail,
    flush_output,
    say,
    show_warning,
    tolerant_output,
    xacro_arguments,
)
from robokit.cli.parser import make_parser
from robokit.errors import RobokitError, WriteError
from robokit.stages import stage


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command.

    Args:
        argv: the command and its arguments; those of the process by default.

    Returns:
        The exit status. 0: done. 1: the command found errors in its subject, or could not do its work.
        2: wrong usage, which is an argument that the command does not accept or that names nothing, and in
        ``check`` a file that cannot be read. 3: a simulation broke down; what was computed until then is
        written. 130: interrupted with Ctrl-C.
    """
    tolerant_output()
    before, warnings.showwarning = warnings.showwarning, show_warning
    if argv is None:  # a process of its own: Python would search it for cycles at its end, up to a second
        atexit.register(gc.freeze)
    try:
        left, xacro = xacro_arguments(sys.argv[1:] if argv is None else argv)
        parser = make_parser(left[0] if left else None)
        arguments = parser.parse_args(left)
        if xacro and not hasattr(arguments, "loops"):
            parser.error(
                f"{next(iter(xacro))}:=... is an argument of a .xacro file, and this command reads none"
            )
        arguments.xacro = xacro
        if arguments.command is None:
            parser.print_help()
            status = 0
        else:
            # The outermost stage: what has no other is shown as the command itself. Importing counts.
            imported = 0.0 if argv is not None else time.process_time()
            with stage(arguments.command.__name__, imported), Compiling() as arguments.compiling:
                status = int(arguments.command(arguments) or 0)
        flush_output()
        return status
    except RobokitError as error:
        fail(str(error))
        no_place = isinstance(error, WriteError) and error.errno in NO_SUCH_PLACE
        return WRONG_USAGE if no_place or isinstance(error, NOT_ACCEPTED) else 1
    except BrokenPipeError:
        drop_output()
        return 1  # the reader (head, less) has gone: there is nobody to tell
    except OSError as error:
        drop_output()
        # Errors over files carry the name; without one, the disk has no room for standard output.
        where = error.filename or ("standard output" if error.errno == errno.ENOSPC else "")
        fail(f"{where}: {error.strerror}" if where else str(error))
        return WRONG_USAGE if isinstance(error, FileNotFoundError) else 1
    except MemoryError:
        return fail("not enough memory")
    except KeyboardInterrupt:
        say("interrupted")
        return INTERRUPTED
    except Exception as error:  # a defect of robokit: one line, not a traceback
        if os.environ.get("ROBOKIT_DEBUG"):
            raise
        what = f"{type(error).__name__}: {error}"
        return fail(f"internal error: {what} (please report it; ROBOKIT_DEBUG=1 shows the traceback)")
    finally:
        if argv is not None:  # a program called this, and goes on
            warnings.showwarning = before
