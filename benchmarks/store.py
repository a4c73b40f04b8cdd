"""FaissStore beside its peers in one run: puts, searches, opening, memory and disk.

    python benchmarks/store.py --quick          a minute: N = 1e3 and 1e4, and 100 namespaces
    python benchmarks/store.py                  to N = 1e5, 1,000 namespaces of 100
    python benchmarks/store.py --full           also N = 1e6 and 1,000 namespaces of 1,000 (tens of minutes)

Vectors have 384 dimensions and come from a table, so that no embedding is timed. Each store is filled in one
process and measured in a fresh one, with one thread. Peers that are not installed are left out and named.
Every figure is one line `name: value unit`; ratios come last. "search" asks 200 questions (60 of slow peers, 8 at
1e6), each about another item as far as there are so many: most have words, and find items, that nobody asked for
before. "search again" asks the same ones a second time.
"""

import argparse
import json
import math
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from store_data import DIMS, Table, question, text, value, vector
from store_peers import PEERS

SEARCHES, PUTS = 200, 40
SLOW_SEARCHES = 60  # of a peer that compares in Python or in SQL
FAST = ("ours", "ours-dense", "raw-faiss", "raw-faiss-rows", "langchain-faiss")
# What takes too long or too much memory to be worth waiting for, and says nothing new.
MOST = {"inmemory": 100_000, "langchain-faiss": 100_000, "chroma": 100_000}


def items(count, spaces):
    if spaces == 1:
        return [(("bench",), n) for n in range(count)]
    return [(("bench", f"s{n % spaces}"), n) for n in range(count)]


def fill(peer, home, count, spaces):
    store, everything = PEERS[peer](home), items(count, spaces)
    started = time.perf_counter()
    for start in range(0, count, 2_000):
        store.fill(everything[start : start + 2_000])
    took = time.perf_counter() - started
    # What making values and vectors costs is not the store's.
    started = time.perf_counter()
    for n in range(min(count, 2_000)):
        value(n), vector(n).tolist()
    took -= (time.perf_counter() - started) * count / min(count, 2_000)
    store.close()
    disk = sum(file.stat().st_size for file in home.rglob("*") if file.is_file())
    return {"batch put ms": 1e3 * took / count, "disk bytes per item": disk / count}


def rss():
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def timed(action, *given):
    started = time.perf_counter()
    action(*given)
    return 1e3 * (time.perf_counter() - started)


def measure(peer, home, count, spaces, *, filled=None):
    import faiss  # noqa: F401 - loaded before anything is timed, and before memory is counted

    space = ("bench",) if spaces == 1 else ("bench", "s7")
    # About what lies in that namespace, so that it is asked what a store is asked that holds nothing else.
    step = spaces * max(1, count // spaces // (SEARCHES + 2))
    queries = [question(n) for n in range(7, count, step)]
    queries *= 1 + SEARCHES // len(queries)  # in a small namespace they come again
    text(1)
    for query in queries:
        Table().embed_query(query)
    before = rss()
    found = {}
    if filled is None:
        with tempfile.TemporaryDirectory(prefix="questbook-bench-") as elsewhere:
            PEERS[peer](Path(elsewhere)).close()  # imports are not the store's
        started = time.perf_counter()
        store = PEERS[peer](home)
        found["open ms"] = 1e3 * (time.perf_counter() - started)
    else:
        store = filled
    found["first search ms"] = timed(store.search, space, queries[0])
    n_searches = SEARCHES if peer in FAST else SLOW_SEARCHES if count <= 100_000 else 8
    overhead = statistics.median(timed(Table().embed_query, queries[1]) for _ in range(9))
    times = sorted(timed(store.search, space, query) - overhead for query in queries[1 : 1 + n_searches])
    found["search p50 ms"] = statistics.median(times)
    found["search p95 ms"] = times[int(0.95 * len(times))]
    found["search best ms"] = times[0]
    if peer in ("ours", "ours-dense"):
        again = [timed(store.search, space, query) - overhead for query in queries[1 : 1 + n_searches]]
        found["search again p50 ms"] = statistics.median(again)
    found["rss bytes per item"] = (rss() - before) / count
    if peer != "raw-faiss":
        times = [
            timed(store.search, space, query, {"kind": "k3"}) - overhead
            for query in queries[2 : 2 + min(20, n_searches)]
        ]
        found["filtered search p50 ms"] = statistics.median(times)
    puts = PUTS if peer != "langchain-faiss" or count <= 10_000 else 5
    making = statistics.median(timed(lambda: (value(5), vector(5).tolist())) for _ in range(9))
    times = sorted(timed(store.put, space, count + n) - making for n in range(puts))
    found["durable put ms"], found["durable put best ms"] = statistics.median(times), times[0]
    return found


def run_one(job):
    peer, home, count, spaces, phase = (
        job["peer"],
        Path(job["home"]),
        job["count"],
        job["spaces"],
        job["phase"],
    )
    if peer == "inmemory":
        store = PEERS["inmemory"](home)
        for start in range(0, count, 2_000):
            store.fill(items(count, spaces)[start : start + 2_000])
        return measure(peer, home, count, spaces, filled=store)
    return fill(peer, home, count, spaces) if phase == "fill" else measure(peer, home, count, spaces)


def in_fresh_process(**job):
    root = Path(__file__).resolve().parent.parent
    path = os.pathsep.join([str(root), *filter(None, [os.environ.get("PYTHONPATH")])])
    run = subprocess.run(
        [sys.executable, __file__, "--job", json.dumps(job)],
        capture_output=True,
        text=True,
        # One thread each: on a machine that does other work, threads wait for one another and measure the
        # scheduler.
        env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
    )
    if run.returncode:
        return {"missing": run.stderr.strip().splitlines()[-1][:100]}
    return json.loads(run.stdout.splitlines()[-1])


def compare(count, spaces, peers):
    figures = {}
    name = f"{count:.0e}".replace("e+0", "e") + (f" in {spaces} namespaces" if spaces > 1 else "")
    for peer in peers:
        if count > MOST.get(peer, math.inf):
            continue
        home = Path(tempfile.mkdtemp(prefix="questbook-bench-"))
        try:
            job = {"peer": peer, "home": str(home), "count": count, "spaces": spaces}
            filled = {} if peer == "inmemory" else in_fresh_process(**job, phase="fill")
            found = filled if "missing" in filled else filled | in_fresh_process(**job, phase="measure")
        finally:
            shutil.rmtree(home, ignore_errors=True)
        figures[peer] = found
        for what, figure in found.items():
            print(f"{name} {peer} {what}: {figure if isinstance(figure, str) else round(figure, 4)}", flush=True)
    return figures


def ratio(results, name, left, right, lines):
    """One over the other, of the medians and of the fastest: what else the machine does only slows down."""

    def get(place):
        return results.get(place[0], {}).get(place[1], {}).get(place[2])

    a, b = get(left), get(right)
    if a and b:
        lines.append(f"{name}: {a / b:.2f} x")
    if left[2].startswith(("search p50", "durable put")) and "best" not in left[2]:
        best = left[2].replace("p50", "best").replace("put ms", "put best ms")
        ratio(results, f"{name} (fastest)", (*left[:2], best), (*right[:2], best), lines)


P50, PUT, FIRST = "search p50 ms", "durable put ms", "first search ms"
AGAIN = "search again p50 ms"  # of the same questions, asked a second time
IN_ONE = {  # what is told of one large namespace: numerator and denominator
    "dense search / raw faiss": (("ours-dense", P50), ("raw-faiss", P50)),
    "dense search / raw faiss that reads its ten items": (("ours-dense", P50), ("raw-faiss-rows", P50)),
    "hybrid / dense search": (("ours", P50), ("ours-dense", P50)),
    "hybrid / dense search, asked again": (("ours", AGAIN), ("ours-dense", AGAIN)),
    "SqliteStore / our dense search": (("sqlite", P50), ("ours-dense", P50)),
    "InMemoryStore / our hybrid search": (("inmemory", P50), ("ours", P50)),
    "langchain FAISS / our dense search": (("langchain-faiss", P50), ("ours-dense", P50)),
    "Chroma / our dense search": (("chroma", P50), ("ours-dense", P50)),
    "durable put / SqliteStore's": (("ours", PUT), ("sqlite", PUT)),
}
IN_MANY = {  # what is told of one of many namespaces; "alone": in a store that holds nothing else
    "one / alone": (("ours", P50), ("alone", P50)),
    "first search, one / alone": (("ours", FIRST), ("alone", FIRST)),
    "InMemoryStore / ours, one": (("inmemory", P50), ("ours", P50)),
    "InMemoryStore / our dense search, one": (("inmemory", P50), ("ours-dense", P50)),
    "SqliteStore / ours, one": (("sqlite", P50), ("ours", P50)),
}


def ratios(results):
    lines = []
    for (count, spaces), figures in results.items():
        label = f"{count:.0e}".replace("e+0", "e")
        if spaces > 1:
            label = f"of {spaces} namespaces of {count // spaces}"
            figures["alone"] = results[count // spaces, 1].get("ours", {})
        for name, (left, right) in (IN_ONE if spaces == 1 else IN_MANY).items():
            ratio(
                results,
                f"{name} {'at ' if spaces == 1 else ''}{label}",
                ((count, spaces), *left),
                ((count, spaces), *right),
                lines,
            )
        rss_of = figures.get("ours-dense", {}).get("rss bytes per item")
        if rss_of and count >= 10_000 and spaces == 1:
            lines.append(f"memory / vectors at {label}: {rss_of / (DIMS * 4):.2f} x")
    ratio(results, "durable put at 1e5 / at 1e3", ((100_000, 1), "ours", PUT), ((1_000, 1), "ours", PUT), lines)
    print("\n".join(lines), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--sizes", type=lambda given: [int(float(n)) for n in given.split(",")])
    parser.add_argument(
        "--spaces", type=lambda given: [tuple(map(int, one.split("x"))) for one in given.split(",") if one]
    )
    parser.add_argument("--peers", type=lambda given: given.split(","), default=list(PEERS))
    parser.add_argument("--job", type=json.loads, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.job:
        print(json.dumps(run_one(given.job)))
        return
    sizes = given.sizes or ([1_000, 10_000] if given.quick else [1_000, 10_000, 100_000])
    spaces = given.spaces if given.spaces is not None else [(100, 100)] if given.quick else [(1_000, 100)]
    if given.full:
        sizes, spaces = [*sizes, 1_000_000], [*spaces, (1_000, 1_000)]
    results = {}
    for number, each in spaces:
        results[(each, 1)] = compare(each, 1, ["ours", "ours-dense"])
        results[(number * each, number)] = compare(number * each, number, given.peers)
    for count in sizes:
        results[(count, 1)] = compare(count, 1, given.peers)
    ratios(results)


if __name__ == "__main__":
    main()
