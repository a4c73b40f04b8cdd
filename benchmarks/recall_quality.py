"""How much of what answers a question is recalled: evidence recall@k on LoCoMo and on a campaign made here.

    python benchmarks/recall_quality.py                  both data sets, both embedders (ten minutes; hash alone: two)
    python benchmarks/recall_quality.py --embed hash     only the default embedder
    python benchmarks/recall_quality.py --ablate         each part of the score left out in turn
    python benchmarks/recall_quality.py --data DIR       where LoCoMo's conversations lie, one JSON file each
    python benchmarks/recall_quality.py --minilm DIR     where MiniLM's weights lie, if not where the game keeps them
    python benchmarks/recall_quality.py --beam DIR       conversations of BEAM, too: a folder such as chats/100K
    python benchmarks/recall_quality.py --postgres       on PostgreSQL with pgvector, too, in the same run
    python benchmarks/recall_quality.py --gatemem DIR    GateMem's leak targets, too: its folder bench/data/DOMAIN

Recall@k of a question is the share of the turns that hold its answer among the first k recalled; all@k is the share of
questions of which all of them are there. No model is asked.
Peers in the same run, over the same records and, as ours, without speakers' names in the question: the store's vectors
alone, its words alone, reciprocal rank fusion of both (k = 60), its own fused order, and recall scored as in Generative
Agents. LoCoMo (Maharana et al. 2024) is not part of this project; without it, or without the weights, that part is left
out and named. What comes for questions about what was never told is counted in tokens: questions of the other
conversations or campaigns, of which nobody is known here, and questions about invented names. LoCoMo's category 5 asks
what one speaker told as if the other had: its turns were told, so it stands apart. The two nearest within a cosine
distance are what the LTM extension recalls. Each figure is one line `name: value unit`. How much of the evidence an
app's prompt has, within its tokens, is measured by `evidence.py`.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import random
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

sys.path[:0] = [
    str(Path(__file__).parent.parent),
    str(Path(__file__).parent),
    str(Path(__file__).parent.parent / "tests"),
]

import numpy as np  # noqa: E402
from langchain_core.embeddings import Embeddings  # noqa: E402
from langgraph.store.base import BaseStore  # noqa: E402
from planted_campaign import campaign  # noqa: E402
from recall_data import Corpus, Gate, beam, gatemem, locomo  # noqa: E402

from questbook import FaissStore, HashEmbeddings, MiniLMEmbeddings, Recall  # noqa: E402
from questbook.memory.embeddings.minilm import minilm_directory  # noqa: E402
from questbook.memory.recall.names import name_words, named_in, remove_words  # noqa: E402
from questbook.memory.recall.query import Query, Weights  # noqa: E402
from questbook.memory.recall.recall import recall  # noqa: E402
from questbook.memory.text.words import split_words  # noqa: E402
from questbook.memory.timeline.timeline import remember  # noqa: E402

AT = (5, 10, 20)
NEVER, TURNED, UNGATED = "never told", "told by the other speaker", "both kinds, if all that is near came"
BUDGET, MOST = Recall().tokens, Recall().most  # tokens and lines of a turn, as every machine has them by default
LONG, REACHES = 100, (0.6, 0.7, 0.8, 0.9)  # characters of a message that the LTM extension keeps, cosine distances
PARTS = ("nearby", "named", "phrase", "time", "answers", "meaning", "chances", "recency", "importance")
NAMES = ("Zorblax", "Ysmera Thornwick", "Uldric", "the Brass Vulture", "Ophrune", "Old Wendrell")
ABOUT = (
    "What do I know of {}?",
    "Who is {}?",
    "Where does {} live?",
    "What did {} promise me?",
    "What is the password of {}?",
    "When did I last meet {}?",
)
Find = Callable[[str], Awaitable[list[Any]]]


async def ours(store: BaseStore, corpus: Corpus, question: str, weights: Weights) -> list[Any]:
    query = Query(
        question,
        limit=max(AT),
        weights=weights,
        present=corpus.present,
        speakers=corpus.speakers,
        timeline=corpus.timeline,
    )
    found = await recall(store, ("bench", corpus.name), query)
    return [one.value["id"] for one in found]


def never_told(corpora: Sequence[Corpus], corpus: Corpus, each: int = 15) -> dict[str, list[str]]:
    """Return questions about what a corpus does not tell: of the others, about invented names, and turned ones."""
    dice, words = random.Random(corpus.name), {word for turn in corpus.turns for word in split_words(text_of(turn))}
    known = words.union(*map(split_words, corpus.speakers))
    foreign = list[str]()
    for other in corpora:
        asked = [question for question, _, _ in other.questions if other.name != corpus.name]
        strange = [question for question in asked if (names := name_words(question)) and not known & set(names)]
        foreign += dice.sample(strange, min(each, len(strange)))
    names = [question.format(name) for question in ABOUT for name in NAMES]
    return {"of others": foreign, "invented names": names, TURNED: list(corpus.turned)}


def text_of(turn: dict[str, Any]) -> str:
    return str(turn.get("text") or f"{turn['player']} {turn['reply']}")


async def fill(store: BaseStore, corpus: Corpus, question: str, *, fitting: bool = True) -> float:
    """Return the share of the budget that comes for a question, in %; also what does not fit, if not `fitting`."""
    query = Query(
        question,
        limit=MOST,
        budget=BUDGET,
        present=corpus.present,
        speakers=corpus.speakers,
        timeline=corpus.timeline,
        fitting=fitting,
    )
    records = await recall(store, ("bench", corpus.name), query)
    return 100 * sum(math.ceil(len(record.excerpt) / 4) + 1 for record in records) / BUDGET  # as `recall` counts them


async def ask(corpus: Corpus, find: Find) -> dict[str, list[tuple[float, ...]]]:
    """Return the recall at each k of each question, by category, and after these whether all was there at each k."""
    found: dict[str, list[tuple[float, ...]]] = defaultdict(list)
    for question, category, evidence in corpus.questions:
        ids = await find(question)
        recalls = tuple(len(evidence & set(ids[:k])) / len(evidence) for k in AT)
        found[category].append((*recalls, *(float(recall == 1) for recall in recalls)))
    return found


async def gate_leaks(gates: Sequence[Gate], embed: Embeddings, *, apart: bool) -> dict[str, float]:
    """Return by kind of question the share, in %, whose recalled memories hold a word that must not be shown.

    Args:
        gates: The questions.
        embed: The store's embedder.
        apart: Whether each person has memories of their own, as users have; else all share one memory.
    """
    leaks: dict[str, list[bool]] = defaultdict(list)
    with tempfile.TemporaryDirectory(prefix="gatemem") as home:
        async with FaissStore.open(Path(home) / "all.db", {"embed": embed, "fields": ["text"]}) as store:
            for number, gate in enumerate(gates):
                owners = {who: ("bench", str(number), who if apart else "all") for who, _ in gate.turns}
                for owner in dict.fromkeys(owners.values()):
                    said = [{"text": text, "speaker": who} for who, text in gate.turns if owners[who] == owner]
                    await remember(store, owner, said)
                asked = Query(gate.question, limit=MOST, budget=BUDGET, speakers=tuple(owners))
                space = ("bench", str(number), gate.asker if apart else "all")
                shown = "\n".join(record.text for record in await recall(store, space, asked)).casefold()
                leaks[gate.kind].append(any(target.casefold() in shown for target in gate.targets))
    return {kind: 100 * statistics.mean(found) for kind, found in leaks.items()}


def two_nearest(corpora: Sequence[Corpus], embed: Embeddings, title: str) -> list[str]:
    """Return what the LTM extension recalls: of messages of 100 characters or more, the two nearest within reach.

    By distance, of all pairs of a question and such a message that holds its answer: how many are within reach, and how
    many are shown; and how many messages are shown for a question.
    """
    within, shown, counts = (defaultdict[float, list[float]](list) for _ in range(3))
    for corpus in corpora:
        long = [turn for turn in corpus.turns if len(text_of(turn)) >= LONG]
        vectors = np.array(embed.embed_documents([text_of(turn) for turn in long]))
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        for question, _, evidence in corpus.questions:
            answers = [place for place, turn in enumerate(long) if turn["id"] in evidence]
            asked = np.array(embed.embed_query(question))
            distances = 1 - vectors @ (asked / np.linalg.norm(asked))
            nearest = np.argsort(distances, kind="stable")[:2].tolist()
            for reach in REACHES if answers else ():
                among = [place for place in nearest if distances[place] < reach]
                within[reach] += [float(distances[place] < reach) for place in answers]
                shown[reach] += [float(place in among) for place in answers]
                counts[reach].append(len(among))
    lines = [f"{title}, the two nearest, pairs of question and evidence: {len(within[REACHES[0]])} pairs"]
    for reach in REACHES:
        of = f"{title}, the two nearest within {reach:.2f}"
        lines += [
            f"{of}, evidence within reach: {100 * statistics.mean(within[reach]):.0f} %",
            f"{of}, evidence shown: {100 * statistics.mean(shown[reach]):.0f} %",
            f"{of}, messages shown: {statistics.mean(counts[reach]):.1f} for a question",
        ]
    return lines


# Peers, embedders, tables


class Cached(Embeddings):
    """An embedder that is asked each text once, however many stores are filled with it."""

    def __init__(self, inner: Embeddings) -> None:
        self.inner, self.known = inner, dict[str, list[float]]()
        self.fusion_weight = getattr(inner, "fusion_weight", 1.0)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Embed what is new."""
        new = list(dict.fromkeys(text for text in texts if text not in self.known))
        self.known |= dict(zip(new, self.inner.embed_documents(new), strict=True)) if new else {}
        return [self.known[text] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        """Embed a question as a text is."""
        return self.embed_documents([text])[0]


@asynccontextmanager
async def postgres(embed: Embeddings, *, wanted: bool) -> AsyncIterator[dict[str, BaseStore]]:
    """Open our store and LangGraph's on an empty database of PostgreSQL, both searched exactly."""
    if not wanted:
        yield {}
        return
    from langgraph.store.postgres import AsyncPostgresStore
    from postgres import new_database

    from questbook.graphs.local.postgres_home import PostgresHome

    home = PostgresHome(await asyncio.to_thread(new_database), Path())
    index: Any = {"embed": embed, "dims": len(embed.embed_query("a")), "fields": ["text"]}
    await home.migrate(embed)
    async with home.open_store(index=index) as store:
        yield {"recall on PostgreSQL": store, "recall on LangGraph's": AsyncPostgresStore(store.conn, index=index)}


async def run(
    corpora: Sequence[Corpus], embed: Embeddings, *, ablate: bool, on_postgres: bool = False
) -> dict[str, dict[str, Any]]:
    """Return for each pipeline the recalls by category, and the CPU milliseconds of an answer.

    A question is embedded by the pipeline that asks it first, and counts there.
    """
    scores: dict[str, dict[str, Any]] = defaultdict(lambda: defaultdict(list))
    scores[NEVER] = defaultdict(list)
    for corpus in corpora:
        space = ("bench", corpus.name)
        with tempfile.TemporaryDirectory(prefix="recall") as home:
            path = Path(home)
            async with (
                FaissStore.open(path / "all.db", {"embed": embed, "fields": ["text"]}) as store,
                FaissStore.open(path / "v.db", {"embed": embed, "fields": ["text"], "lexical": False}) as dense,
                FaissStore.open(path / "w.db", {"embed": None, "fields": ["text"]}) as words,
                postgres(embed, wanted=on_postgres) as others,
            ):
                for each in (store, dense, words, *list(others.values())[:1]):  # both have the same tables
                    await remember(each, space, corpus.turns, turn=1, timeline=corpus.timeline)
                ways = pipelines(store, dense, words, corpus, ablate=ablate)
                ways |= {name: partial(ours, each, corpus, weights=Weights()) for name, each in others.items()}
                for name, find in ways.items():
                    started = time.process_time()
                    for category, found in (await ask(corpus, find)).items():
                        scores[name][category] += found
                    scores[name]["ms"].append(1000 * (time.process_time() - started) / len(corpus.questions))
                for kind, questions in never_told(corpora, corpus).items():
                    scores[NEVER][kind] += [await fill(store, corpus, question) for question in questions]
                    if kind != TURNED:
                        filled = [await fill(store, corpus, question, fitting=False) for question in questions]
                        scores[NEVER][UNGATED] += filled
        print(f"  {corpus.name}: {len(corpus.turns)} turns, {len(corpus.questions)} questions", file=sys.stderr)
    return scores


def pipelines(store: BaseStore, dense: BaseStore, words: BaseStore, corpus: Corpus, *, ablate: bool) -> dict[str, Find]:
    """Name the ways to find something."""

    def names(question: str) -> set[str]:
        return {word for words in named_in(question, corpus.speakers).values() for word in words}

    async def searched(where: BaseStore, question: str, count: int = max(AT)) -> list[Any]:
        items = await where.asearch(("bench", corpus.name), query=remove_words(question, names(question)), limit=count)
        return [item.value["id"] for item in items]

    async def fused(question: str) -> list[Any]:
        ranks: dict[Any, float] = defaultdict(float)
        for where in (dense, words):
            for rank, found in enumerate(await searched(where, question, 100), 1):
                ranks[found] += 1 / (60 + rank)
        return sorted(ranks, key=lambda one: -ranks[one])[: max(AT)]

    def by(weights: Weights) -> Find:
        return lambda question: ours(store, corpus, question, weights)

    usual = Weights()
    if ablate:
        return {"all parts": by(usual)} | {f"without {part}": by(usual.without(part)) for part in PARTS}
    return {
        "vectors alone": lambda question: searched(dense, question),
        "words alone": lambda question: searched(words, question),
        "rank fusion": fused,
        "the store's order": lambda question: searched(store, question),
        "generative_agents": by(Weights(scoring="generative_agents")),
        "recall": by(usual),
    }


def report(title: str, scores: dict[str, dict[str, Any]]) -> list[str]:
    """Print a table and return its figures."""
    never = scores.pop(NEVER)
    categories = sorted({category for found in scores.values() for category in found} - {"ms"})
    total = sum(len(next(iter(scores.values()))[category]) for category in categories)
    print(f"\n{title}: evidence recall in %, {total} questions")
    heads = "".join(f"{name:>7}" for name in ("R@5", "R@10", "R@20", "all@5", "all@10", "all@20", "ms"))
    print(f"{'':<22}{heads}   R@10 by category: {', '.join(categories)}")
    lines = []
    for name, found in scores.items():
        every = [recalls for category in categories for recalls in found[category]]
        mean = [100 * statistics.mean(recalls[n] for recalls in every) for n in range(2 * len(AT))]
        by = [f"{100 * statistics.mean(recalls[1] for recalls in found[category]):.1f}" for category in categories]
        ms = statistics.mean(found["ms"])
        print(f"{name:<22}" + "".join(f"{value:>7.1f}" for value in mean) + f"{ms:>7.1f}   " + " / ".join(by))
        for measure, values in (("recall", mean[: len(AT)]), ("all", mean[len(AT) :])):
            lines += [f"{title}, {name}, {measure}@{k}: {value:.1f} %" for k, value in zip(AT, values, strict=True)]
    for kind, filled in never.items():
        if filled:
            print(f"never told, {kind}: {statistics.mean(filled):.1f} % of the budget, {len(filled)} questions")
            lines.append(f"{title}, never told, {kind}, budget filled: {statistics.mean(filled):.1f} %")
    told = [share for kind, filled in never.items() if kind not in (TURNED, UNGATED) for share in filled]
    return [*lines, f"{title}, never told, budget filled: {statistics.mean(told):.1f} %"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    beside = Path(__file__).parent.parent.parent
    known = next(
        (path for path in (beside / "shared/data/locomo", beside.parent / "shared/data/locomo") if path.is_dir()), None
    )
    parser.add_argument("--data", type=Path, default=known, help="directory of LoCoMo's conversations")
    parser.add_argument("--minilm", type=Path, default=minilm_directory(), help="directory of MiniLM's weights")
    parser.add_argument("--embed", choices=["hash", "minilm"], action="append", help="only this embedder")
    parser.add_argument("--ablate", action="store_true", help="leave out each part of the score in turn")
    parser.add_argument("--beam", type=Path, help="directory of one of BEAM's tiers")
    parser.add_argument("--gatemem", type=Path, help="directory of one of GateMem's domains")
    parser.add_argument("--turns", type=int, default=600, help="turns of the campaign that is made")
    parser.add_argument("--postgres", action="store_true", help="also on PostgreSQL, which is started for it")
    given = parser.parse_args()
    corpora = {"campaign": [Corpus(*campaign(seed, given.turns)) for seed in range(3)]}
    if files := sorted(given.data.glob("*.json")) if given.data else []:
        corpora = {"LoCoMo": [locomo(path) for path in files]} | corpora
    else:
        print(f"LoCoMo is left out: no conversations in {given.data}; --data says where they are.")
    if given.beam:
        corpora |= {"BEAM": [beam(chat.parent) for chat in sorted(given.beam.glob("*/chat.json"))]}
    gates = gatemem(given.gatemem) if given.gatemem else []
    lines = []
    for name in given.embed or ["hash", "minilm"]:
        if name == "minilm" and not (given.minilm / "model.safetensors").exists():
            print(f"MiniLM is left out: no weights in {given.minilm}; see docs/embeddings.md.")
            continue
        embed = Cached(HashEmbeddings() if name == "hash" else MiniLMEmbeddings(given.minilm))
        for title, several in corpora.items():
            lines += report(
                f"{title}, {name}", asyncio.run(run(several, embed, ablate=given.ablate, on_postgres=given.postgres))
            )
            lines += two_nearest(several, embed, f"{title}, {name}") if title == "LoCoMo" else []
        for apart in (False, True) if gates else ():
            how = "a memory for each person" if apart else "one memory for all"
            for kind, share in asyncio.run(gate_leaks(gates, embed, apart=apart)).items():
                lines.append(f"GateMem, {name}, {how}, {kind}, leak targets shown: {share:.1f} %")
    print()
    print("\n".join(lines))


if __name__ == "__main__":
    main()
