"""How much of the evidence for a question is in the prompt: an agent with our middleware, beside other memories.

    python benchmarks/evidence.py --beam DIR             conversations of BEAM: a folder such as chats/100K
    python benchmarks/evidence.py --beam DIR --together  they are also lived as threads of one person
    python benchmarks/evidence.py --before DIR           an older version beside ours, from its own checkout
    python benchmarks/evidence.py --processes 2          conversations at a time
    python benchmarks/evidence.py --only 1 --only 26     some conversations of BEAM or LoCoMo
    python benchmarks/evidence.py --skip peers           without the part: beam, locomo, cost, facts, peers
    python benchmarks/evidence.py --without nearby       without a part of the order
    python benchmarks/evidence.py --embed minilm         with MiniLM (--minilm DIR: its weights); left out: both

BEAM: an agent of `create_agent` with `TimelineMemoryMiddleware(user="ann", recall=Recall(tokens=800),
buffer=LastTurns(2))`, FaissStore and a scripted model lives through a conversation turn by turn, then is asked each
question on a fork of the thread's end. The prompt that its model gets is read: what of the question's evidence does it
show (`evidence_measure`)? Peers hold the same messages, have the same last two turns in their prompt, and as many
tokens for the rest. `abstention` and `never told` (20 questions of other conversations each) have no evidence: for
these it prints the share of the tokens that is filled.
Recall@10: each message is a record of its own, with its speaker; the share of the evidence among the first ten that
`recall` brings. For passages a message is where its best passage is.
LoCoMo: each turn is a record with its speaker, as in `recall_quality.py`; what `recall` brings into 800 tokens.
Cost: 1,000 exchanges of made-up words; CPU of a turn up to its model call, less that of one without recall.
Facts: a person tells ten facts, and gets a long reply to each; how many does the prompt of a new thread have?

A figure of evidence is the mean over questions; `--json` prints the value of each question instead. Each figure is one
line `name: value unit`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

# An older version is measured by the same code.
sys.path[:0] = [os.environ.get("EVIDENCE_OF") or str(Path(__file__).parent.parent), str(Path(__file__).parent)]

from evidence_agent import LAST_TURNS, WITHOUT, Life, opened  # noqa: E402
from evidence_cost import LENGTHS, REPLIES, cost_of_recall, facts_found  # noqa: E402
from evidence_measure import Message, Shown  # noqa: E402
from evidence_peers import peers  # noqa: E402
from evidence_report import Row, report  # noqa: E402
from recall_data import beam, beam_chat, locomo  # noqa: E402

from questbook import HashEmbeddings, MiniLMEmbeddings, Query, Recalled, recall, remember  # noqa: E402
from questbook.memory.embeddings.minilm import minilm_directory  # noqa: E402
from questbook.memory.text.words import count_tokens  # noqa: E402

BUDGETS = (800, 2_000)
LOCOMO_BUDGET, LOCOMO_MOST = 800, 24  # tokens and records, as in `recall_quality.py`
FOREIGN = 20  # questions of other conversations, asked of each
PARTS = ("beam", "locomo", "cost", "facts", "peers")
TOGETHER = ", one person's threads"


class Job(NamedTuple):
    """What is measured in every part.

    Attributes:
        name: The name of ours, in this version.
        minilm: Directory of MiniLM's weights; None: embeddings are hashed.
        with_peers: Whether other memories are asked, too.
    """

    name: str
    minilm: Path | None
    with_peers: bool

    def embedder(self) -> MiniLMEmbeddings | HashEmbeddings:
        """Return the embedder of the store; the default one would be MiniLM where its weights are."""
        return MiniLMEmbeddings(self.minilm) if self.minilm else HashEmbeddings()

    def title(self, data: str) -> str:
        """Return the name of a data set as it was measured."""
        return f"{data}, {'minilm' if self.minilm else 'hash'}"


class Talk(NamedTuple):
    """One conversation: its messages, its turns, and questions with their evidence."""

    folder: Path
    messages: list[Message]
    turns: list[tuple[str, str]]
    questions: list[tuple[str, str, list[Message]]]


def read_talk(folder: Path, folders: Sequence[Path]) -> Talk:
    """Read a conversation of BEAM; a person's message and the reply behind it are a turn.

    Messages of one side in a row are one. If a side says nothing, "Go on." and "I see." are said for it.

    Args:
        folder: The conversation's.
        folders: Conversations some of whose questions are asked as well.
    """
    said, asked = beam_chat(folder)
    messages = [Message(one["id"], one["speaker"] == "user", one["text"]) for one in said]
    sides = ["\n\n".join(one.text for one in several) for _, several in groupby(messages, lambda one: one.is_person)]
    sides = [*([] if messages[0].is_person else ["Go on."]), *sides, *(["I see."] if messages[-1].is_person else [])]
    turns = list(zip(sides[::2], sides[1::2], strict=True))
    by_id = {one.id: one for one in messages}
    questions = [(question, kind, [by_id[one] for one in sorted(ids)]) for question, kind, ids in asked]
    others = [one for other in folders if other != folder for one, _, _ in beam_chat(other)[1]]
    strange = random.Random(folder.name).sample(others, min(FOREIGN, len(others)))
    return Talk(folder, messages, turns, questions + [(question, "never told", []) for question in strange])


async def live_and_ask(job: Job, talks: Sequence[Talk]) -> list[Row]:
    """Let one agent live through conversations, and ask it in the thread of each."""
    name, title = job.name + (TOGETHER if len(talks) > 1 else ""), job.title("BEAM")
    rows = list[Row]()
    with tempfile.TemporaryDirectory(prefix="evidence") as home:
        async with opened(Path(home), job.embedder()) as store:
            life, started = Life(store, BUDGETS), time.monotonic()
            for talk in talks:
                await life.live(talk.folder.name, talk.turns)
            lived = time.monotonic()
            for talk in talks:
                for question, kind, evidence in talk.questions:
                    for budget in BUDGETS:
                        prompt = await life.ask(talk.folder.name, question, budget)
                        found = _rows(title, name, budget, kind, prompt.texts, evidence, prompt.tokens)
                        rows += _asked(talk.folder, question, found)
    spent = f"{lived - started:.0f} s lived, {time.monotonic() - lived:.0f} s asked"
    print(f"  {name}: {', '.join(talk.folder.name for talk in talks)}: {spent}", file=sys.stderr)
    return rows


def ask_peers(job: Job, title: str, talk: Talk, budgets: Sequence[int], last_turns: int) -> list[Row]:
    """Ask other memories about a conversation."""
    rows, recent = list[Row](), talk.messages[len(talk.messages) - 2 * last_turns :]
    shown = {one.id for one in recent}
    for name, build in peers().items():
        memory, started = build(talk.messages, job.embedder()), time.monotonic()
        for question, kind, evidence in talk.questions:
            for budget in budgets:
                found = memory.find(question, budget, shown)
                texts = [*found.texts, *(one.text for one in recent)]
                of_budget = _rows(title, name, budget, kind, texts, evidence, found.tokens)
                rows += _asked(talk.folder, question, of_budget)
            if evidence and (order := memory.order(question)):
                row = Row(title, name, "recall@10", kind, _among(order, {one.id for one in evidence}))
                rows += _asked(talk.folder, question, [row])
        print(f"  {name}: {talk.folder.stem}: {time.monotonic() - started:.0f} s", file=sys.stderr)
    return rows


async def recall_messages(job: Job, folder: Path) -> list[Row]:
    """Recall from messages that are records of their own."""
    corpus, rows = beam(folder), list[Row]()
    with tempfile.TemporaryDirectory(prefix="evidence") as home:
        async with opened(Path(home), job.embedder()) as store:
            await remember(store, ("bench", corpus.name), corpus.turns, turn=1)
            for question, kind, evidence in corpus.questions:
                found = await recall(store, ("bench", corpus.name), Query(question, limit=20, present=corpus.present))
                share = _among([one.value["id"] for one in found], evidence)
                rows += _asked(folder, question, [Row(job.title("BEAM"), job.name, "recall@10", kind, share)])
    return rows


def measure_beam(job: Job, folder: Path, folders: Sequence[Path]) -> list[Row]:
    """Measure one conversation of BEAM."""
    talk = read_talk(folder, folders)
    rows = asyncio.run(live_and_ask(job, [talk])) + asyncio.run(recall_messages(job, folder))
    return rows + (ask_peers(job, job.title("BEAM"), talk, BUDGETS, LAST_TURNS) if job.with_peers else [])


def measure_together(job: Job, folders: Sequence[Path]) -> list[Row]:
    """Measure conversations as threads of one person."""
    return asyncio.run(live_and_ask(job, [read_talk(folder, []) for folder in folders]))


def measure_locomo(job: Job, path: Path) -> list[Row]:
    """Measure one conversation of LoCoMo; both speakers are people."""
    return asyncio.run(_measure_locomo(job, path))


async def _measure_locomo(job: Job, path: Path) -> list[Row]:
    corpus, rows, title = locomo(path), list[Row](), job.title("LoCoMo")
    messages = [Message(turn["id"], True, turn["text"]) for turn in corpus.turns]
    by_id = {one.id: one for one in messages}
    questions = [(question, kind, [by_id[one] for one in sorted(ids)]) for question, kind, ids in corpus.questions]
    with tempfile.TemporaryDirectory(prefix="evidence") as home:
        async with opened(Path(home), job.embedder()) as store:
            await remember(store, ("bench", corpus.name), corpus.turns, turn=1)
            for question, kind, evidence in questions:
                query = Query(
                    question,
                    limit=LOCOMO_MOST,
                    budget=LOCOMO_BUDGET,
                    cost=lambda record: count_tokens(printed(record)),
                    present=corpus.present,
                    speakers=corpus.speakers,
                )
                lines = [printed(one) for one in await recall(store, ("bench", corpus.name), query)]
                tokens = sum(map(count_tokens, lines))
                found = _rows(title, job.name, LOCOMO_BUDGET, kind, lines, evidence, tokens)
                rows += _asked(path, question, found)
    if job.with_peers:
        # The names of the speakers belong to what was said.
        named = [Message(turn["id"], True, f"{turn['speaker']}: {turn['text']}") for turn in corpus.turns]
        rows += ask_peers(job, title, Talk(path, named, [], questions), [LOCOMO_BUDGET], 0)
    return rows


def printed(record: Recalled) -> str:
    """Return a turn that was recalled as a line of a prompt."""
    return f"{record.value['speaker']}: {record.text}"


def measure_cost(job: Job, reply_chars: int) -> list[Row]:
    """Measure what a recall and an exchange cost."""
    title = f"1,000 exchanges, replies of {reply_chars:,} characters"
    cost = asyncio.run(cost_of_recall(reply_chars))
    return [Row(title, job.name, measure, "", value) for measure, value in cost.items()]


def measure_facts(job: Job, reply_chars: int) -> list[Row]:
    """Measure how many of ten facts are found."""
    found = asyncio.run(facts_found(reply_chars))
    return [Row("Ten facts told", job.name, f"found, replies of {reply_chars:,} characters", "", sum(found.values()))]


def _rows(
    title: str, name: str, budget: int, kind: str, texts: Sequence[str], evidence: Sequence[Message], tokens: int
) -> list[Row]:
    filled = Row(title, name, f"filled, {budget:,} tokens", "told" if evidence else kind, tokens / budget)
    if not evidence:
        return [filled] if kind in ("abstention", "never told") else []
    return [Row(title, name, f"evidence in {budget:,} tokens", kind, Shown(*texts).share(evidence)), filled]


def _asked(place: Path, question: str, rows: Sequence[Row]) -> list[Row]:
    return [row._replace(asked=f"{place.stem}: {question}") for row in rows]


def _among(order: Sequence[Any], evidence: frozenset[Any] | set[Any]) -> float:
    return len(evidence & set(order[:10])) / len(evidence)


def measure(given: argparse.Namespace, embed: str) -> list[Row]:
    """Measure all parts with one embedder; what does not embed is measured with `hash` alone."""
    job = Job(given.name, given.minilm if embed == "minilm" else None, "peers" not in given.skip)
    found = given.beam.glob("*/chat.json") if given.beam and "beam" not in given.skip else []
    folders = sorted((chat.parent for chat in found), key=lambda one: one.name.zfill(9))
    files = sorted(given.data.glob("*.json")) if given.data and "locomo" not in given.skip else []
    for part, several, option in (("beam", folders, "--beam"), ("locomo", files, "--data")):
        if not several and part not in given.skip:
            print(f"{part} is left out: no conversations were found; {option} says where they are.", file=sys.stderr)
    lived = [one for one in folders if not given.only or one.name in given.only]
    files = [one for one in files if not given.only or one.stem in given.only]
    with ProcessPoolExecutor(given.processes, multiprocessing.get_context("spawn")) as pool:
        waiting = [pool.submit(measure_beam, job, one, folders) for one in lived]
        waiting += [pool.submit(measure_together, job, lived)] if given.together and len(lived) > 1 else []
        waiting += [pool.submit(measure_locomo, job, one) for one in files]
        if embed == "hash" and "facts" not in given.skip:
            waiting += [pool.submit(measure_facts, job, length) for length in LENGTHS]
        rows = [row for one in waiting for row in one.result()]
    if embed == "hash" and "cost" not in given.skip:  # alone on the machine
        rows += [row for length in REPLIES for row in measure_cost(job, length)]
    return rows


def measure_before(tree: Path, name: str) -> list[Row]:
    """Let another checkout be measured by this file, with the options given."""
    command = [sys.executable, str(Path(__file__)), *sys.argv[1:], "--before", "", "--json", "--skip", "peers"]
    environment = os.environ | {"EVIDENCE_OF": str(tree), "PYTHONPATH": str(tree)}
    done = subprocess.run([*command, "--name", name], env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return [Row(*row) for row in json.loads(done.stdout.splitlines()[-1])]


def main() -> None:
    """Print the figures."""
    beside = Path(__file__).parent.parent.parent
    shared = next(
        (place / "shared/data" for place in (beside, beside.parent) if (place / "shared/data").is_dir()), None
    )
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    beam_known, locomo_known = (shared / "beam/100K", shared / "locomo") if shared else (None, None)
    parser.add_argument("--beam", type=Path, default=beam_known, help="directory of one of BEAM's tiers")
    parser.add_argument("--data", type=Path, default=locomo_known, help="directory of LoCoMo's conversations")
    parser.add_argument("--only", action="append", help="only the conversations of these names")
    parser.add_argument("--skip", action="append", choices=PARTS, default=[], help="leave out a part")
    parser.add_argument("--together", action="store_true", help="conversations of BEAM also as one person's threads")
    parser.add_argument("--before", type=Path, help="checkout of an older version")
    parser.add_argument("--without", action="append", default=[], help="a part of the order that counts nothing")
    parser.add_argument("--name", default="ours", help="what this version is called")
    parser.add_argument("--embed", choices=["hash", "minilm"], action="append", help="only this embedder")
    parser.add_argument("--minilm", type=Path, default=minilm_directory(), help="directory of MiniLM's weights")
    parser.add_argument("--processes", type=int, default=1, help="conversations at a time")
    parser.add_argument("--json", action="store_true", help="print the values of single questions as JSON")
    given = parser.parse_args()
    os.environ[WITHOUT] = " ".join(given.without)
    rows = list[Row]()
    for embed in given.embed or ["hash", "minilm"]:
        if embed == "minilm" and not (given.minilm / "model.safetensors").exists():
            print(f"MiniLM is left out: no weights in {given.minilm}; see docs/embeddings.md.")
            continue
        rows += measure(given, embed)
    if given.json:
        print(json.dumps(rows))
        return
    if given.before and given.before != Path():
        rows += measure_before(given.before, "ours before")
    if "peers" not in given.skip and "LangMem's search tool" not in peers():
        print("LangMem is left out: it is not installed (`pip install langmem`).")
    report(rows)


if __name__ == "__main__":
    main()
