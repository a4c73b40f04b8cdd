"""`python -m questbook.graphs.terminal` is `questbook`."""

import sys

from questbook.graphs.terminal.cli import main

if __name__ == "__main__":
    sys.exit(main())
