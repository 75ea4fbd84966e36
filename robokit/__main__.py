"""``python -m robokit``: the command line."""

import sys

from robokit.cli import main

if __name__ == "__main__":
    sys.exit(main())
