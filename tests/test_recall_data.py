"""The foreign data sets of the recall benchmark are read as they are published; `all@k` counts whole answers alone."""

import asyncio
import json
import sys
from datetime import UTC, datetime
from pathlib import Path

sys.path.append(str(Path(__file__).parent.parent / "benchmarks"))

import recall_quality
from recall_data import Corpus, beam, gatemem

from questbook import HashEmbeddings
from questbook.memory.recall.query import Present

CHAT = [
    {
        "batch_number": 1,
        "turns": [
            [
                {"role": "user", "id": 0, "content": "I moved to Bergen.", "time_anchor": "March-15-2024"},
                {"role": "assistant", "id": 1, "content": "How is Bergen?"},
            ],
            [{"role": "user", "id": 2, "content": "I have a dog now."}, {"role": "user", "id": 2, "content": "Rex."}],
        ],
    },
    {"batch_number": 2, "turns": [[{"role": "user", "id": 4, "content": "I moved on to Oslo."}]]},
]
QUESTIONS = {
    "knowledge_update": [
        {"question": "Where do I live?", "source_chat_ids": {"original_info": [0], "updated_info": [4]}},
        {"question": "Where did I live?", "source_chat_ids": [[0]]},
    ],
    "event_ordering": [{"question": "Which dog?", "source_chat_ids": [2]}],
    "abstention": [{"question": "Who is Ann?"}],
}


def test_evidence_of_beam_is_what_its_ids_name(tmp_path):
    folder = tmp_path / "100K" / "3"
    (folder / "probing_questions").mkdir(parents=True)
    (folder / "chat.json").write_text(json.dumps(CHAT), "utf-8")
    (folder / "probing_questions" / "probing_questions.json").write_text(json.dumps(QUESTIONS), "utf-8")
    corpus = beam(folder)
    assert corpus.name == "100K-3"
    assert [turn["id"] for turn in corpus.turns] == [0, 1, 2, 2, 4]
    assert corpus.questions == [
        ("Where do I live?", "knowledge update", frozenset({0, 4})),
        ("Where did I live?", "knowledge update", frozenset({0})),
    ], "an id of two messages says nothing, a question without ids has no evidence"


async def test_all_at_k_counts_whole_answers_alone():
    questions = [("Where?", "update", frozenset({0, 4})), ("Which?", "one", frozenset({0}))]
    corpus = Corpus("made", [], questions, Present(datetime(2025, 1, 1, tzinfo=UTC)))

    async def find(question):
        return [0, 1, 2, 3, 5, 6, 4]

    found = await recall_quality.ask(corpus, find)
    assert found["update"] == [(0.5, 1, 1, 0, 1, 1)]
    assert found["one"] == [(1, 1, 1, 1, 1, 1)]


def test_leak_targets_of_gatemem_are_looked_for_in_what_is_recalled(tmp_path):
    turns = [
        {"turn_id": "t1", "speaker": {"principal_id": "ann"}, "text": "My diagnosis is Morbus Redibo."},
        {"turn_id": "t2", "speaker": {"principal_id": "bob"}, "text": "My diagnosis is a cold."},
        {"turn_id": "t3", "speaker": {"principal_id": "ann"}, "text": "Later, my diagnosis changed."},
    ]
    asked = {
        "episode_id": "e",
        "as_of_turn_id": "t2",
        "query_text": "What is the diagnosis?",
        "asker": {"principal_id": "bob"},
    }
    rows = [
        asked | {"checkpoint_id": "1", "query_type": "privacy", "leak_targets": ["morbus redibo"]},
        asked | {"checkpoint_id": "2", "query_type": "utility", "leak_targets": []},
    ]
    (tmp_path / "episodes.jsonl").write_text(json.dumps({"episode_id": "e", "turns": turns}) + "\n", "utf-8")
    (tmp_path / "checkpoints.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    [gate] = gates = gatemem(tmp_path)
    assert (gate.asker, gate.targets, len(gate.turns)) == ("bob", ("morbus redibo",), 2)

    def leaks(*, apart):
        return asyncio.run(recall_quality.gate_leaks(gates, HashEmbeddings(), apart=apart))

    assert leaks(apart=False) == {"privacy": 100}
    assert leaks(apart=True) == {"privacy": 0}
