"""Data sets that recall is measured on: conversations, and questions about them with the turns that hold the answer.

None of them is part of this project; each is read as its authors publish it.

- LoCoMo (Maharana et al. 2024): one JSON file for each conversation.
- BEAM (Tavakoli et al. 2025): `chats/TIER/ID/chat.json` and beside it `probing_questions/probing_questions.json`, whose
  `source_chat_ids` name the messages that hold the answer.
- GateMem (arXiv 2606.18829): `bench/data/DOMAIN/episodes.jsonl` and `checkpoints.jsonl`, whose `leak_targets` are words
  that whoever asks must not be shown.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from questbook.memory.recall.query import Present
from questbook.memory.timeline.timeline import Segment

CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop"}


class Corpus(NamedTuple):
    """What was said, and questions about it: (question, category, ids of the turns that hold the answer)."""

    name: str
    turns: list[dict[str, Any]]
    questions: list[tuple[str, str, frozenset[Any]]]
    present: Present
    speakers: tuple[str, ...] = ()
    timeline: list[Segment] | None = None
    turned: tuple[str, ...] = ()
    """Questions about one speaker that only the other has answered."""


def locomo(path: Path) -> Corpus:
    """Read one conversation; questions of category 5 are about what was never said, and left out."""
    read, turns = json.loads(path.read_text("utf-8")), list[dict[str, Any]]()
    for session in read["sessions"]:
        at = datetime.strptime(session["date_time"], "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC).isoformat()
        for turn in session["turns"]:
            text = " ".join(filter(None, (turn["text"], turn.get("blip_caption"))))
            said = {"text": text, "speaker": turn["speaker"], "session": session["session"], "said_at": at}
            turns.append(said | {"id": turn["dia_id"]})
    known, questions = {turn["id"] for turn in turns}, []
    for asked in read["qa"]:
        named = re.findall(r"D:?(\d+):0*(\d+)", " ".join(asked["evidence"]))  # some are malformed: "D:11:26", "D30:05"
        evidence = frozenset(f"D{session}:{turn}" for session, turn in named) & known
        if evidence and asked["category"] in CATEGORIES:
            questions.append((asked["question"], CATEGORIES[asked["category"]], evidence))
    now = Present(datetime.fromisoformat(turns[-1]["said_at"]))
    turned = tuple(asked["question"] for asked in read["qa"] if asked["category"] == 5)
    return Corpus(path.stem, turns, questions, now, (read["speaker_a"], read["speaker_b"]), turned=turned)


def beam(folder: Path) -> Corpus:
    """Read one conversation of BEAM.

    Questions without `source_chat_ids` are left out, and ids that name no message or several.

    Args:
        folder: `chats/TIER/ID`.
    """
    now = Present(datetime(2025, 1, 1, tzinfo=UTC))
    turns, asked = beam_chat(folder)
    questions = [one for one in asked if one[2]]
    return Corpus(f"{folder.parent.name}-{folder.name}", turns, questions, now)


def beam_chat(folder: Path) -> tuple[list[dict[str, Any]], list[tuple[str, str, frozenset[Any]]]]:
    """Return the messages of a conversation of BEAM, and all questions, also those that nothing answers.

    Args:
        folder: `chats/TIER/ID`.
    """
    turns = [
        {"text": message["content"], "speaker": message["role"], "id": message["id"]}
        for message in _messages(json.loads((folder / "chat.json").read_text("utf-8")))
    ]
    counts, questions = Counter(turn["id"] for turn in turns), []
    known = {id_ for id_, count in counts.items() if count == 1}
    asked = json.loads((folder / "probing_questions" / "probing_questions.json").read_text("utf-8"))
    for ability, several in asked.items():
        found = [(one["question"], frozenset(_ids(one.get("source_chat_ids"))) & known) for one in several]
        questions += [(question, ability.replace("_", " "), evidence) for question, evidence in found]
    return turns, questions


def _messages(value: Any) -> Iterator[dict[str, Any]]:
    """Yield the messages of a chat, in whatever batches and plans they lie."""
    if isinstance(value, dict) and {"role", "id", "content"} <= value.keys():
        yield value
    elif isinstance(value, dict | list):
        for child in value.values() if isinstance(value, dict) else value:
            yield from _messages(child)


def _ids(value: Any) -> Iterator[int]:
    """Yield the ids of a list, or of lists by name."""
    if isinstance(value, int) and not isinstance(value, bool):
        yield value
    elif isinstance(value, dict | list):
        for child in value.values() if isinstance(value, dict) else value:
            yield from _ids(child)


class Gate(NamedTuple):
    """A question at a point of an episode, and words that whoever asks must not be shown."""

    episode: str
    turns: list[tuple[str, str]]
    """Who said what until then."""
    asker: str
    question: str
    kind: str
    targets: tuple[str, ...]


def gatemem(folder: Path) -> list[Gate]:
    """Read the questions of one of GateMem's domains that have `leak_targets`.

    Args:
        folder: `bench/data/DOMAIN`.
    """
    episodes = {one["episode_id"]: one["turns"] for one in _lines(folder / "episodes.jsonl")}
    gates = []
    for asked in _lines(folder / "checkpoints.jsonl"):
        turns = episodes[asked["episode_id"]]
        last = next(place for place, turn in enumerate(turns) if turn["turn_id"] == asked["as_of_turn_id"])
        said = [(turn["speaker"]["principal_id"], turn["text"]) for turn in turns[: last + 1]]
        if targets := tuple(target for target in asked.get("leak_targets", []) if isinstance(target, str) and target):
            who = asked["asker"]["principal_id"]
            gates.append(Gate(asked["episode_id"], said, who, asked["query_text"], asked["query_type"], targets))
    return gates


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]
