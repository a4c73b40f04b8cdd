"""A file of a million memories: opened at once, searched well, and no burden on a small namespace beside it."""

import json
import os
import statistics
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from questbook import FaissStore
from questbook.memory.store.database import Database
from questbook.memory.store.writes import Write, apply_write

DIMS, COUNT, SMALL = 128, 1_000_000, 100
ROOT = Path(__file__).parent.parent

# A process of its own for each opening, because a first search is first only once.
FIRST = """
import json, sys, time
import faiss
from test_store_million import opened
text, path = sys.argv[1:]
started = time.process_time()
store = opened(path)
found = store.search(("small",), query=text)
print(json.dumps({"ms": 1e3 * (time.process_time() - started), "keys": [item.key for item in found],
                  "held": store.cached_bytes}))
store.close()
"""


def vectors(first, count):
    """Unit vectors that vary in few directions, as those of texts do; each thousand has a seed of its own."""
    directions = np.random.default_rng(7).standard_normal((24, DIMS), dtype=np.float32)
    blocks = []
    for block in range(first // 1000, (first + count) // 1000):
        rng = np.random.default_rng(block)
        found = rng.standard_normal((1000, 24), dtype=np.float32) @ directions
        blocks.append(found + rng.standard_normal((1000, DIMS), dtype=np.float32))
    found = np.concatenate(blocks)
    return found / np.linalg.norm(found, axis=1, keepdims=True)


def vector(text):
    number = int(text) if text.isdigit() else 0  # a word by which the store finds out the dimension
    return vectors(number // 1000 * 1000, 1000)[number % 1000].tolist()


def opened(path):
    return FaissStore.open(path, {"embed": embed, "dims": DIMS, "fields": ["text"], "lexical": False})


def embed(texts):
    return [vector(text) for text in texts]


def first_search(path, number):
    run = subprocess.run(
        [sys.executable, "-c", FIRST, str(number), str(path)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")])},
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout.splitlines()[-1])


def fastest(searches):
    return min(one["ms"] for one in searches)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_a_million_memories(tmp_path):
    large, small = tmp_path / "large.db", tmp_path / "small.db"
    for path in (large, small):
        with opened(path) as store:
            for n in range(SMALL):
                store.put(("small",), f"s{n}", {"text": str(2_000_000 + n)})
    with closing(Database(large)) as database:
        for start in range(0, COUNT, 20_000):
            block = vectors(start, 20_000).astype("<f4")
            with database.writing() as connection:  # as `put` does, without a million texts embedded one by one
                for n, one in enumerate(block, start):
                    apply_write(connection, Write(("large",), str(n), f'{{"text":"{n}"}}', vectors=[one.tobytes()]))

    beside, alone = [], []
    while len(beside) < 5 or (fastest(beside) > 2 * fastest(alone) and len(beside) < 20):
        for searches, path in ((beside, large), (alone, small)):
            searches.append(first_search(path, 2_000_000 + len(searches)))
    assert all(one["keys"][0] == f"s{n}" for n, one in enumerate(beside))
    assert all(one["held"] < 1_000_000 for one in beside), "nothing of the large namespace is loaded"
    print(
        f"\nfirst search of a small namespace: {fastest(beside):.1f} ms beside a million, {fastest(alone):.1f} ms alone"
    )
    assert fastest(beside) <= 2 * fastest(alone)

    everything = vectors(0, COUNT)
    queries = [*range(500, COUNT, COUNT // 20), *range(3_000_000, 3_000_020)]  # stored ones, and new ones
    same, times = 0, []
    with opened(large) as store:
        for number in queries:
            started = time.perf_counter()
            found = {item.key for item in store.search(("large",), query=str(number), limit=10)}
            times.append(time.perf_counter() - started)
            exact = np.argsort(-(everything @ np.array(vector(str(number)), np.float32)))[:10]
            same += len(found & {str(n) for n in exact.tolist()})
        held = store.cached_bytes
    recall = same / (10 * len(queries))
    print(
        f"first search with training: {times[0]:.1f} s, then {1e3 * statistics.median(times[1:]):.1f} ms; "
        f"recall@10 {recall:.4f}; {held / COUNT / DIMS / 4:.2f} of the vectors' bytes"
    )
    assert recall >= 0.99
    assert held <= DIMS * 4 * COUNT
    large.unlink()  # more than a gigabyte, which other tests need
