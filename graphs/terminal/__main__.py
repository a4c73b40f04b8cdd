"""`python -m graphs.terminal` is `questbook`."""

import sys

from graphs.terminal.cli import main

if __name__ == "__main__":
    sys.exit(main())
