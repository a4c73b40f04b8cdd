"""The program `questbook`, also as `python -m questbook.graphs.terminal`.

Before all other imports: until the command line is ready for it, Ctrl-C ends the program without a word.
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
