"""FaissStore beside its peers in one run: puts, searches, opening, memory and disk.

    python benchmarks/store.py --quick          a minute: N = 1e3 and 1e4, and 100 namespaces
    python benchmarks/store.py                  to N = 1e5, 1,000 namespaces of 100
    python benchmarks/store.py --full           also N = 1e6 and 1,000 namespaces of 1,000 (tens of minutes)
    python benchmarks/store.py --recall 20000   recall of the approximate index on embeddings of real text

Vectors have 384 dimensions and come from a table, so that no embedding is timed. Each store is filled in one
process and measured in a fresh one, with one thread. Peers that are not installed are left out and named.
Every figure is one line `name: value unit`; ratios come last.
"""

import argparse
import ast
import importlib
import json
import math
import os
import resource
import shutil
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

import numpy as np
from langchain_core.embeddings import Embeddings
from langgraph.store.base import PutOp

DIMS = 384
SYLLABLES = [a + b for a in "bcdfghklmnprstvwz" for b in ("a", "e", "i", "o", "u", "an", "or", "is", "el", "um")]
VOCABULARY = 20_000
LATENT = 24  # directions in which the vectors vary most; independent random ones would defeat every index
SEARCHES, PUTS = 60, 40


class _Table(Embeddings):
    """Unit vectors by the number that a text begins with, the same in every process."""

    dims = DIMS
    identity = "benchmark-table"

    def embed_documents(self, texts):
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text):
        return vector(int(text.split()[0])).tolist()


@lru_cache(maxsize=1)
def directions():
    return np.random.default_rng(7).standard_normal((LATENT, DIMS), dtype=np.float32)


def vector(number):
    """Unit vectors that vary in few directions, as those of texts do, and a little in all others."""
    rng = np.random.default_rng(number)
    found = rng.standard_normal(LATENT, dtype=np.float32) @ directions()
    found += rng.standard_normal(DIMS, dtype=np.float32)
    return found / np.linalg.norm(found)


def word(rank):
    return "".join(SYLLABLES[(rank * 7919 + 13) // 170**power % 170] for power in range(3))


@lru_cache(maxsize=1)
def shares():
    """How often each word occurs: about as 1 / rank, as in natural language."""
    weights = 1 / (np.arange(VOCABULARY) + 2.7)
    return np.cumsum(weights / weights.sum())


def text(number):
    """Number and fourteen words, of which the frequent ones are few and the rare ones many."""
    ranks = np.searchsorted(shares(), np.random.default_rng(number + 10**9).random(14))
    return f"{number} " + " ".join(word(rank) for rank in ranks.tolist())


def question(number):
    """Number and the words of its text that are no stop words (the 50 most frequent), at most six."""
    ranks = np.searchsorted(shares(), np.random.default_rng(number + 10**9).random(14))
    return f"{number} " + " ".join([word(rank) for rank in ranks.tolist() if rank >= 50][:6])


def kind(number):
    """About one in ten, in every namespace."""
    return f"k{number // 1_000 % 10 if number >= 1_000 else number % 10}"


def value(number):
    return {"text": text(number), "kind": kind(number)}


def index(**more):
    return {"embed": _Table(), "dims": DIMS, "fields": ["text"], **more}


class _Ours:
    """FaissStore, words and meaning together."""

    settings: ClassVar[dict[str, object]] = {}

    def __init__(self, home):
        from memory import FaissStore

        self.store = FaissStore.open(home / "store.db", index(**self.settings))

    def fill(self, items):
        self.store.batch([PutOp(space, str(n), value(n)) for space, n in items])

    def put(self, space, n):
        self.store.put(space, str(n), value(n))

    def search(self, space, query, where=None):
        return [item.key for item in self.store.search(space, query=query, filter=where, limit=10)]

    def close(self):
        self.store.close()


class _OursDense(_Ours):
    """FaissStore without words."""

    settings: ClassVar[dict[str, object]] = {"lexical": False}


class _Sqlite(_Ours):
    """LangGraph's SqliteStore as shipped."""

    def __init__(self, home):
        try:
            # Many builds of Python cannot load SQLite's extensions, without which SqliteStore has no vectors.
            sys.modules["sqlite3"] = importlib.import_module("pysqlite3")
            sys.modules["sqlite3.dbapi2"] = sys.modules["sqlite3"]
        except ImportError:
            pass
        from langgraph.store.sqlite import SqliteStore

        self.context = SqliteStore.from_conn_string(
            str(home / "store.db"), index={"embed": _Table(), "dims": DIMS, "text_fields": ["text"]}
        )
        self.store = self.context.__enter__()
        self.store.setup()

    def close(self):
        self.context.__exit__(None, None, None)


class _InMemory(_Ours):
    """LangGraph's InMemoryStore."""

    def __init__(self, _home):
        from langgraph.store.memory import InMemoryStore

        self.store = InMemoryStore(index=index())

    def close(self):
        pass


class _LangchainFaiss:
    """langchain-community's FAISS with save_local after each add."""

    def __init__(self, home):
        from langchain_community.vectorstores import FAISS

        self.home = home / "faiss"
        self.kind = FAISS
        self.store = (
            FAISS.load_local(str(self.home), _Table(), allow_dangerous_deserialization=True)
            if self.home.exists()
            else None
        )

    def fill(self, items):
        pairs = [(text(n), vector(n).tolist()) for _, n in items]
        marks = [{"key": str(n), "kind": kind(n), "space": "/".join(space)} for space, n in items]
        if self.store is None:
            self.store = self.kind.from_embeddings(pairs, _Table(), marks)
        else:
            self.store.add_embeddings(pairs, marks)

    def put(self, space, n):
        self.fill([(space, n)])
        self.store.save_local(str(self.home))

    def search(self, space, query, where=None):
        wanted = {"space": "/".join(space), **(where or {})}
        found = self.store.similarity_search(query, k=10, filter=wanted if where or len(space) > 1 else None)
        return [document.metadata["key"] for document in found]

    def close(self):
        if self.store is not None:
            self.store.save_local(str(self.home))


class _Chroma:
    """_Chroma, persistent."""

    def __init__(self, home):
        import chromadb

        client = chromadb.PersistentClient(str(home / "chroma"), chromadb.Settings(anonymized_telemetry=False))
        self.store = client.get_or_create_collection("bench", metadata={"hnsw:space": "cosine"})

    def fill(self, items):
        self.store.add(
            ids=[f"{'/'.join(space)}:{n}" for space, n in items],
            embeddings=[vector(n).tolist() for _, n in items],
            documents=[text(n) for _, n in items],
            metadatas=[{"kind": kind(n), "space": "/".join(space)} for space, n in items],
        )

    def put(self, space, n):
        self.fill([(space, n)])

    def search(self, space, query, where=None):
        wanted = where or ({"space": "/".join(space)} if len(space) > 1 else None)
        found = self.store.query(query_embeddings=[_Table().embed_query(query)], n_results=10, where=wanted)
        return [key.rsplit(":", 1)[1] for key in found["ids"][0]]

    def close(self):
        pass


class _RawFaiss:
    """IndexFlatIP by itself: what comparing with every vector costs."""

    def __init__(self, home):
        import faiss

        self.faiss, self.file = faiss, home / "raw.faiss"
        self.index = faiss.read_index(str(self.file)) if self.file.exists() else faiss.IndexFlatIP(DIMS)

    def fill(self, items):
        self.index.add(np.stack([vector(n) for _, n in items]))

    def put(self, space, n):
        self.fill([(space, n)])

    def search(self, _space, query, _where=None):
        asked = np.array(_Table().embed_query(query), np.float32)[None, :]
        return [str(place) for place in self.index.search(asked, 10)[1][0]]

    def close(self):
        self.faiss.write_index(self.index, str(self.file))


PEERS = {
    "ours": _Ours,
    "ours-dense": _OursDense,
    "sqlite": _Sqlite,
    "inmemory": _InMemory,
    "langchain-faiss": _LangchainFaiss,
    "chroma": _Chroma,
    "raw-faiss": _RawFaiss,
}
# What takes too long or too much memory to be worth waiting for, and says nothing new.
MOST = {"inmemory": 100_000, "langchain-faiss": 100_000, "chroma": 10_000}


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
    queries = [question(n) for n in range(7, count, max(1, count // 40))] * 2
    _Table().embed_query("1"), text(1)
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
    n_searches = SEARCHES if peer in ("ours", "ours-dense", "raw-faiss") or count <= 100_000 else 8
    overhead = statistics.median(timed(_Table().embed_query, queries[1]) for _ in range(9))
    times = sorted(timed(store.search, space, query) - overhead for query in queries[1 : 1 + n_searches])
    found["search p50 ms"] = statistics.median(times)
    found["search p95 ms"] = times[int(0.95 * len(times))]
    found["search best ms"] = times[0]
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
        store = _InMemory(home)
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


def ratios(results):
    lines = []
    p50, put, first = "search p50 ms", "durable put ms", "first search ms"
    for key in results:
        if key[1] == 1:
            label = f"{key[0]:.0e}".replace("e+0", "e")
            ratio(
                results,
                f"dense search / raw faiss at {label}",
                (key, "ours-dense", p50),
                (key, "raw-faiss", p50),
                lines,
            )
            ratio(
                results,
                f"hybrid / dense search at {label}",
                (key, "ours", p50),
                (key, "ours-dense", p50),
                lines,
            )
            ratio(
                results,
                f"SqliteStore / our dense search at {label}",
                (key, "sqlite", p50),
                (key, "ours-dense", p50),
                lines,
            )
            ratio(
                results,
                f"InMemoryStore / our hybrid search at {label}",
                (key, "inmemory", p50),
                (key, "ours", p50),
                lines,
            )
            ratio(
                results,
                f"durable put / SqliteStore's at {label}",
                (key, "ours", put),
                (key, "sqlite", put),
                lines,
            )
            rss_of = results[key].get("ours-dense", {}).get("rss bytes per item")
            if rss_of and key[0] >= 10_000:
                lines.append(f"memory / vectors at {label}: {rss_of / (DIMS * 4):.2f} x")
        else:
            inside = (key[0] // key[1], 1)
            label = f"{key[1]} namespaces of {key[0] // key[1]}"
            ratio(results, f"one of {label} / alone", (key, "ours", p50), (inside, "ours", p50), lines)
            ratio(
                results,
                f"first search, one of {label} / alone",
                (key, "ours", first),
                (inside, "ours", first),
                lines,
            )
            ratio(
                results,
                f"InMemoryStore / ours, one of {label}",
                (key, "inmemory", p50),
                (key, "ours", p50),
                lines,
            )
            ratio(
                results,
                f"SqliteStore / ours, one of {label}",
                (key, "sqlite", p50),
                (key, "ours", p50),
                lines,
            )
    ratio(results, "durable put at 1e5 / at 1e3", ((100_000, 1), "ours", put), ((1_000, 1), "ours", put), lines)
    print("\n".join(lines), flush=True)


def sentences(count):
    """Real text that every machine has: the sentences of the standard library's docstrings."""
    found = {}
    for file in sorted(Path(sysconfig.get_path("stdlib")).rglob("*.py")):
        try:
            tree = ast.parse(file.read_text(encoding="utf-8"))
        except (SyntaxError, UnicodeDecodeError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module):
                for sentence in (ast.get_docstring(node) or "").replace("\n", " ").split(". "):
                    if 5 <= len(sentence.split()) <= 40:
                        found[" ".join(sentence.split())] = None
        if len(found) > 4 * count:
            break
    return list(found)[:count]


def recall(count, weights):
    """Recall@10 of the approximate index against the exact one; queries are sentences that are not stored."""
    from memory import FaissStore, HashEmbeddings, MiniLMEmbeddings

    embed = MiniLMEmbeddings(weights) if weights else HashEmbeddings(DIMS)
    texts = sentences(count + 200)
    queries, texts = texts[:: len(texts) // 200][:200], texts
    texts = [one for one in texts if one not in set(queries)][:count]
    home = Path(tempfile.mkdtemp(prefix="questbook-bench-"))
    try:
        settings = {"embed": embed, "fields": ["text"], "lexical": False}
        with FaissStore.open(home / "s.db", settings) as store:
            started = time.perf_counter()
            for start in range(0, len(texts), 1_000):
                store.batch(
                    [PutOp(("r",), str(n), {"text": one}) for n, one in enumerate(texts[start : start + 1_000], start)]
                )
            print(
                f"embedding and writing one: {1e3 * (time.perf_counter() - started) / len(texts):.3f} ms",
                flush=True,
            )
        asked = {query: embed.embed_query(query) for query in queries}
        embed.embed_query = asked.__getitem__
        with (
            FaissStore.open(home / "s.db", settings) as exact,
            FaissStore.open(home / "s.db", settings, exact_limit=1_000) as approximate,
        ):
            same, times = 0, {exact: [], approximate: []}
            print(
                f"training and loading the approximate index: {timed(approximate.search, ('r',)):.0f} ms",
                flush=True,
            )
            for query in queries:
                keys = {}
                for store in (exact, approximate):
                    started = time.perf_counter()
                    keys[store] = {item.key for item in store.search(("r",), query=query)}
                    times[store].append(1e3 * (time.perf_counter() - started))
                same += len(keys[exact] & keys[approximate])
            print(f"exact search at {len(texts)}: {statistics.median(times[exact]):.3f} ms", flush=True)
            print(
                f"approximate search at {len(texts)}: {statistics.median(times[approximate]):.3f} ms",
                flush=True,
            )
            print(f"recall@10 at {len(texts)} real sentences: {same / (10 * len(queries)):.4f}", flush=True)
    finally:
        shutil.rmtree(home, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--sizes", type=lambda given: [int(float(n)) for n in given.split(",")])
    parser.add_argument(
        "--spaces", type=lambda given: [tuple(map(int, one.split("x"))) for one in given.split(",") if one]
    )
    parser.add_argument("--peers", type=lambda given: given.split(","), default=list(PEERS))
    parser.add_argument("--recall", type=int, metavar="N")
    parser.add_argument("--weights", help="directory of MiniLM's weights; without it --recall hashes")
    parser.add_argument("--job", type=json.loads, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.job:
        print(json.dumps(run_one(given.job)))
        return
    if given.recall:
        recall(given.recall, given.weights)
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
