"""The program `questbook`, also as `python -m questbook.graphs.terminal`.

Until the command line is ready for it, Ctrl-C ends the program without a word: Python would show where it was
interrupted. So this comes before the other imports.
"""

import signal
import sys

signal.signal(signal.SIGINT, signal.SIG_DFL)


def run() -> None:
    """Run the command line and exit with its status."""
    from questbook.graphs.terminal.cli import main

    status = main()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(status)


if __name__ == "__main__":
    run()
