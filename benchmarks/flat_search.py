"""What a search costs on PostgreSQL by the size of a campaign: all its records are compared, none of other campaigns.

    python benchmarks/flat_search.py

Needs the group `bench`. Records of 120 random words of 7,200, the default vectors (512 dimensions); questions of 8
words, 64 results, the fastest of seven.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import time
from pathlib import Path

from langgraph.store.base import PutOp

sys.path.append(str(Path(__file__).parent))

from database import Database, name_in

from questbook.graphs.local.postgres_home import PostgresHome

_WORDS, _RESULTS, _TIMES, _BATCH = 120, 64, 7, 500
_SYLLABLES = [f"{first}{vowel}" for first in "bdfgklmnprst" for vowel in "aeiou"]
_VOCABULARY = [f"{one}{other}{last}" for one in _SYLLABLES for other in _SYLLABLES for last in "nr"]


def text(words: random.Random, count: int) -> str:
    """Return random words, the first ones far more often than the last."""
    return " ".join(_VOCABULARY[int(len(_VOCABULARY) * words.random() ** 3)] for _ in range(count))


async def measure(sizes: list[int], others: int) -> None:
    """Fill campaigns of some sizes and `others` records of other people, and search in each."""
    words = random.Random(1)
    with Database() as database:
        url = await database.new()
        async with PostgresHome(url, database.directory).open_store() as store:
            for name, size in [*((f"of-{size}", size) for size in sizes), ("of-others", others)]:
                for first in range(0, size, _BATCH):
                    numbers = range(first, min(first + _BATCH, size))
                    values = [{"text": text(words, _WORDS), "turn": number} for number in numbers]
                    space = ("ann", name, "exchanges")
                    await store.abatch([PutOp(space, str(value["turn"]), value) for value in values])
            database.execute("VACUUM ANALYZE", name=name_in(url))
            rows = []
            for size in sizes:
                seconds = []
                for _ in range(_TIMES):
                    question, began = text(words, 8), time.perf_counter()
                    assert await store.asearch(("ann", f"of-{size}"), query=question, limit=_RESULTS)
                    seconds.append(time.perf_counter() - began)
                rows.append((size, 1000 * min(seconds)))
    print("\n| records of the campaign | ms of a search |\n|---|---|")
    for size, milliseconds in rows:
        print(f"| {size:,} | {milliseconds:.0f} |")
    for size, milliseconds in rows:
        print(f"flat_search_{size}: {milliseconds:.1f} ms")


def main() -> None:
    """Read the arguments, and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", nargs="+", type=int, default=[200, 1_000, 5_000, 20_000])
    parser.add_argument("--others", type=int, default=20_000, help="records of other campaigns (default: 20,000)")
    arguments = parser.parse_args()
    asyncio.run(measure(arguments.sizes, arguments.others))


if __name__ == "__main__":
    main()
