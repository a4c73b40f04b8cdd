"""`python -m benchmarks.trials`: see the folder's `__init__`."""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from benchmarks.trials import __doc__ as about  # noqa: E402
from benchmarks.trials.aegra import AegraTrial  # noqa: E402
from benchmarks.trials.page import PageTrial  # noqa: E402
from benchmarks.trials.server import ServerTrial  # noqa: E402


def main() -> None:
    """Play one trial and print what it counted."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trial", choices=("server", "aegra", "page"))
    parser.add_argument("--steps", type=int, default=500, help="random steps (default: 500)")
    parser.add_argument("--seed", type=int, default=1, help="which steps (default: 1)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        path, seed = Path(directory), options.seed
        match options.trial:
            case "server":
                counts = asyncio.run(ServerTrial(path, seed).play(options.steps))
            case "aegra":
                counts = asyncio.run(AegraTrial(path, seed).play(options.steps))
            case _:
                counts = PageTrial(path, seed).play(options.steps)
    for name, (number, unit) in counts.items():
        print(f"{options.trial}_{name}: {number} {unit}")


if __name__ == "__main__":
    main()
