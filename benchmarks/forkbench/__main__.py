"""Run ForkBench.

    python -m benchmarks.forkbench --games 200             all memories on all stores, two games at a time
    python -m benchmarks.forkbench --adapter my.adapter    a memory of your own, by the import path of its module
    python -m benchmarks.forkbench --adapter plain_node --kind rewind --source told

Memories, stores and games whose packages are not installed are left out and named. Last comes one line for each
figure, `name: value unit`.
"""

from __future__ import annotations

import argparse
import sys

from benchmarks.forkbench.adapters import NAMES
from benchmarks.forkbench.game import KINDS
from benchmarks.forkbench.report import SOURCES, jobs_of, play_jobs, report
from benchmarks.forkbench.stores import STORES


def main() -> None:
    """Read the options, play, and print the tables."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.forkbench",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--games", type=int, default=200, help="games on each memory and store, half of them TextWorld's"
    )
    parser.add_argument("--adapter", action="append", help=f"only this memory: {', '.join(NAMES)}, or an import path")
    parser.add_argument("--store", action="append", choices=STORES, help="only this store")
    parser.add_argument("--source", action="append", choices=SOURCES, help="only these games")
    parser.add_argument("--kind", action="append", choices=KINDS, help="only this kind of operation")
    parser.add_argument("--processes", type=int, default=2, help="how many are played at the same time")
    given = parser.parse_args()
    kinds = tuple(given.kind or KINDS)
    jobs = jobs_of(given.adapter or NAMES, given.store or STORES, given.source or SOURCES, given.games, kinds)
    answers = list(play_jobs(jobs, given.processes))
    broken = [(job, answer) for job, answer in answers if isinstance(answer, str)]
    whole = [(job, answer) for job, answer in answers if not isinstance(answer, str)]
    figures = report(sorted(whole, key=lambda one: jobs.index(one[0])))
    for job, reason in broken:
        print(f"{job.adapter} on {job.store} broke off: {reason}")
    print("\n".join(figures))
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
