"""Evidence in the prompt: what counts as being there, and an agent that lives through a conversation and is asked."""

import json
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent.parent / "benchmarks"))

import asyncio
import sys
from datetime import UTC, datetime
from pathlib import Path

import recall_quality
from evidence import Job, live_and_ask, measure_beam, read_talk
from evidence_measure import Message, Shown
from recall_data import Corpus, beam, gatemem

from questbook import HashEmbeddings
from questbook.memory.recall.query import Present

TEXT = "I moved to Bergen in May because my sister Helena works there as a glassblower now"
WORDS = TEXT.split()
LONG = [f"word{n}" for n in range(40)]


def said(words, *, person=True):
    return Message(1, person, " ".join(words))


def test_a_persons_message_counts_if_half_of_it_is_there_in_runs_of_eight_words():
    assert Shown(" ".join(WORDS[:8])).has(said(WORDS))
    assert not Shown(" ".join(WORDS[:7])).has(said(WORDS)), "a run of seven words"
    assert not Shown(" ".join(LONG[:19])).has(said(LONG)), "less than half"
    assert Shown(" ".join(LONG[:10]), " ".join(LONG[20:30])).has(said(LONG)), "half, in two runs"


def test_a_reply_counts_if_a_run_of_twenty_words_is_there():
    assert Shown(" ".join(LONG[5:25])).has(said(LONG, person=False))
    assert not Shown(" ".join(LONG[:19]), " ".join(LONG[20:39])).has(said(LONG, person=False))


def test_a_run_ends_where_something_is_left_out():
    assert not Shown(" ".join(WORDS[:4]) + " … " + " ".join(WORDS[4:8])).has(said(WORDS))
    assert not Shown(" ".join(WORDS[:4]) + "… " + " ".join(WORDS[4:8])).has(said(WORDS))
    assert not Shown(" ".join(WORDS[:4]), " ".join(WORDS[4:8])).has(said(WORDS)), "two texts"


def test_a_message_shorter_than_its_run_counts_if_it_is_there_whole():
    assert Shown("She said: Yes, I do. Then she left.").has(Message(1, True, "yes, i do"))
    assert not Shown("She said: Yes, I did.").has(Message(1, True, "yes, i do"))


def test_case_blanks_and_the_escapes_of_a_prompt_do_not_matter():
    text = 'He said "x < y & z",\n\tthen -> left for   Bergen at once.'
    for shown in (json.dumps(text), text.upper(), text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")):
        assert Shown(shown).has(Message(1, True, text))
    assert Shown(json.dumps(text).replace("<", "\\u003c").replace(">", "\\u003e")).has(Message(1, True, text))


FACT = "By the way, my sister Helena works as a glassblower in Bergen since last May."


@pytest.fixture
def folder(tmp_path):
    """A conversation in which one fact is told, long before its end."""
    texts = [FACT, "A fine craft."]
    for n in range(4):
        texts += [f"What rhymes with number {n}?", f"Many words rhyme with {n}."]
    chat = [{"role": ("user", "assistant")[n % 2], "id": n, "content": text} for n, text in enumerate(texts)]
    asked = {
        "information_extraction": [{"question": "Where does my sister Helena work?", "source_chat_ids": [0]}],
        "abstention": [{"question": "Which bassoon did Uldric buy?"}],
    }
    place = tmp_path / "100K" / "1"
    (place / "probing_questions").mkdir(parents=True)
    (place / "chat.json").write_text(json.dumps(chat), "utf-8")
    (place / "probing_questions" / "probing_questions.json").write_text(json.dumps(asked), "utf-8")
    return place


@pytest.mark.slow
def test_what_the_agent_was_told_is_in_its_prompt_when_it_is_asked(folder):
    rows = measure_beam(Job("ours", None, with_peers=True), folder, [folder])
    found = {(row.system, row.measure): row.value for row in rows if row.kind == "information extraction"}
    assert found["ours", "evidence in 800 tokens"] == 1
    assert found["ours", "recall@10"] == 1
    assert found["passages of 80 words", "evidence in 800 tokens"] == 1
    assert found["LangGraph's search", "evidence in 2,000 tokens"] == 1
    assert found["the history's end", "evidence in 2,000 tokens"] == 1
    unanswered = [row for row in rows if row.kind == "abstention"]
    assert {row.measure for row in unanswered} == {"filled, 800 tokens", "filled, 2,000 tokens"}
    assert {row.value for row in unanswered if row.system == "ours"} == {0}


@pytest.mark.slow
async def test_questions_do_not_see_each_other(folder):
    talk = read_talk(folder, [])
    canoe = "I bought a red canoe in Turku for the summer holidays of my cousin."
    asked = [
        (canoe, "first", []),
        ("What did I buy in Turku?", "second", [Message(99, True, canoe)]),
        ("Where does Helena work?", "third", talk.messages[:1]),
    ]
    rows = await live_and_ask(Job("ours", None, with_peers=False), [talk._replace(questions=asked)])
    shares = [row.value for row in rows if row.measure == "evidence in 800 tokens"]
    assert shares == [0, 1], "the first question is not there, what was told before is"


def test_messages_of_one_side_in_a_row_are_one(folder):
    chat = [
        {"role": role, "id": n, "content": f"{role} {n}"}
        for n, role in enumerate(["assistant", "user", "user", "assistant", "user"])
    ]
    (folder / "chat.json").write_text(json.dumps(chat), "utf-8")
    assert read_talk(folder, []).turns == [
        ("Go on.", "assistant 0"),
        ("user 1\n\nuser 2", "assistant 3"),
        ("user 4", "I see."),
    ]


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
