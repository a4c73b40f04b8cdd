"""Recall of the approximate index on embeddings of real text: the sentences of the standard library's docstrings.

    python benchmarks/store_recall.py 20000                       with the hashing embedder
    python benchmarks/store_recall.py 8000 --weights DIRECTORY    with MiniLM

Queries are sentences that are not stored.
"""

import argparse
import ast
import shutil
import statistics
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from langgraph.store.base import PutOp
from store_data import DIMS

from questbook import FaissStore, HashEmbeddings, MiniLMEmbeddings


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
            took = 1e3 * (time.perf_counter() - started) / len(texts)
            print(f"embedding and writing one: {took:.3f} ms", flush=True)
        asked = {query: embed.embed_query(query) for query in queries}
        embed.embed_query = asked.__getitem__
        with (
            FaissStore.open(home / "s.db", settings) as exact,
            FaissStore.open(home / "s.db", settings, exact_limit=1_000) as approximate,
        ):
            same, times = 0, {exact: [], approximate: []}
            trained = timed(approximate.search, ("r",), query=queries[0])
            print(f"training and loading the approximate index: {trained:.0f} ms", flush=True)
            for query in queries:
                keys = {}
                for store in (exact, approximate):
                    started = time.perf_counter()
                    keys[store] = {item.key for item in store.search(("r",), query=query)}
                    times[store].append(1e3 * (time.perf_counter() - started))
                same += len(keys[exact] & keys[approximate])
            print(f"exact search at {len(texts)}: {statistics.median(times[exact]):.3f} ms", flush=True)
            print(f"approximate search at {len(texts)}: {statistics.median(times[approximate]):.3f} ms", flush=True)
            print(f"recall@10 at {len(texts)} real sentences: {same / (10 * len(queries)):.4f}", flush=True)
    finally:
        shutil.rmtree(home, ignore_errors=True)


def timed(action, *given, **named):
    started = time.perf_counter()
    action(*given, **named)
    return 1e3 * (time.perf_counter() - started)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("count", type=int, help="sentences")
    parser.add_argument("--weights", help="directory of MiniLM's weights; without it sentences are hashed")
    given = parser.parse_args()
    recall(given.count, given.weights)
