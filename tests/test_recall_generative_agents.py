"""What the memory stream of Generative Agents does, feature by feature (A1 to A6 in docs/coverage.md)."""

import math
from datetime import UTC, datetime, timedelta

import pytest
from langchain_core.embeddings import Embeddings
from langgraph.store.memory import InMemoryStore
from reflecting import tell
from scripted import call, say

from questbook.graphs.dungeon_master.context import Context
from questbook.memory.embeddings.embedders import HashEmbeddings
from questbook.memory.facts.reflection import MAX_INSIGHTS, MAX_QUESTIONS
from questbook.memory.recall.query import Query, Weights
from questbook.memory.recall.recall import access_op, last_accesses, recall
from questbook.memory.timeline.namespaces import campaign_namespace
from questbook.memory.timeline.records import Stamp

NOW = datetime(2026, 3, 10, 15, tzinfo=UTC)
HERE, ACCESSES = ("u", "c", "facts"), ("u", "c", "accesses")
STREAM = Weights(scoring="generative_agents")
LINE = [("main", 9)]
WHAT, MORE = ("lamp", "boat", "bell", "coin"), ("crown", "horse", "sword")
FACTS, EXCHANGES, USED = (campaign_namespace("adventurer", "default", n) for n in ("facts", "exchanges", "accesses"))


class Angles(Embeddings):
    """A text that begins with a number points in that direction, in degrees: cosines are known exactly."""

    def embed_documents(self, texts):
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text):
        angle = math.radians(float(text.split()[0]))
        return [math.cos(angle), math.sin(angle)]


@pytest.fixture
async def stream():
    """Three memories: (degrees from the query, importance, hours ago)."""
    store = InMemoryStore(index={"dims": 2, "embed": Angles(), "fields": ["text"]})
    for turn, (angle, importance, hours) in enumerate([(0, 1, 200), (60, 5, 100), (90, 9, 0)], 1):
        value = {"text": f"{angle} degrees", "kind": "event", "importance": importance}
        said_at = (NOW - timedelta(hours=hours)).isoformat()
        await store.aput(HERE, f"at-{angle}", value | {"said_at": said_at} | Stamp("main", turn).to_json())
    return store


async def found(store, timeline=LINE, weights=STREAM):
    hits = await recall(
        store, HERE, Query("0 degrees", timeline=timeline, weights=weights, accesses=ACCESSES, fitting=False)
    )
    return {one.key: one for one in hits}


async def test_a1_a_memory_has_text_times_and_an_importance_that_the_model_gave(new_game):
    game = new_game(buffer_tokens=200, weights={"scoring": "generative_agents"})
    await game.begin()
    await tell(game, "I ask.", {"text": "Goran owes the ferryman forty crowns.", "importance": 7})
    [item] = await game.store.asearch(FACTS)
    assert (item.value["text"], item.value["importance"]) == ("Goran owes the ferryman forty crowns.", 7)
    made = datetime.fromisoformat(item.value["said_at"])
    assert abs((datetime.now(UTC) - made).total_seconds()) < 60
    for n in range(6):
        await tell(game, f"I walk mile {n}.", reply="The road goes on past hedges and ditches. " * 8)
    await tell(game, "What does Goran owe the ferryman?")
    timeline = [tuple(segment) for segment in game.values["timeline"]]
    accessed = await last_accesses(game.store, USED, timeline, game.values["turn"] + 1)
    assert datetime.fromisoformat(accessed[item.key]) >= made, "its last access is known"
    assert await game.store.aget(FACTS, item.key) == item, "and is no change to it"


async def test_a2_recency_importance_and_relevance_each_between_0_and_1_add_up_alike(stream):
    hits = await found(stream)
    decay = {hours: 0.995**hours for hours in (0, 100, 200)}
    middle = (decay[100] - decay[200]) / (1 - decay[200])
    assert {key: one.weight for key, one in hits.items()} == pytest.approx(
        {"at-0": 1 + 0 + 0, "at-60": 0.5 + 0.5 + middle, "at-90": 0 + 1 + 1}
    )
    assert list(hits) == ["at-90", "at-60", "at-0"], "what fits best comes last, which is why this is not the default"
    assert next(iter(await found(stream, weights=Weights()))) == "at-0"


async def test_a3_recency_is_0_995_to_the_hours_since_the_last_access_which_use_refreshes(stream):
    default = await found(stream, weights=Weights())
    assert {key: one.reason.recency for key, one in default.items()} == pytest.approx(
        {"at-0": 0.995**200, "at-60": 0.995**100, "at-90": 1}
    )
    before = await found(stream)
    assert before["at-0"].reason.recency == 0
    used = access_op(ACCESSES, [("main", 4)], 4, {}, ["at-0"], NOW.isoformat())
    await stream.abatch([used])
    after = await found(stream)
    assert after["at-0"].reason.recency == after["at-90"].reason.recency == 1
    assert after["at-60"].reason.recency == 0, "the least of them now"
    assert await found(stream, timeline=[("main", 3)]) == before, "a past that has not used it yet"


async def test_what_is_used_again_was_last_used_then_and_what_is_not_keeps_its_time(stream):
    earlier = {key: (NOW - timedelta(hours=9)).isoformat() for key in ("at-0", "at-60")}
    await stream.abatch([access_op(ACCESSES, [("main", 4)], 4, earlier, ["at-0"], NOW.isoformat())])
    assert await last_accesses(stream, ACCESSES, [("main", 4)], 5) == earlier | {"at-0": NOW.isoformat()}


async def test_a4_relevance_is_the_cosine(stream):
    hits = await found(stream)
    assert {key: one.score for key, one in hits.items()} == pytest.approx({"at-0": 1, "at-60": 0.5, "at-90": 0})
    assert {key: one.reason.relevance for key, one in hits.items()} == pytest.approx(
        {"at-0": 1, "at-60": 0.5, "at-90": 0}
    )


def questions(count):
    return say("", call("Questions", questions=[f"What does man {n} want?" for n in range(count)]))


async def test_a5_at_150_three_questions_and_five_insights_that_cite_and_are_reflected_on_again(new_game):
    game = new_game()
    assert Context.of(game.settings).reflection_importance == 150
    await game.begin()
    men = [{"text": f"Man {n} hid a {what}.", "importance": 10} for n, what in enumerate(WHAT)]
    for day in range(3):
        await tell(game, f"I ask on day {day}.", *({**man, "text": f"{man['text']} It was day {day}."} for man in men))
    more = [{"text": f"Woman {n} saw a {what}.", "importance": 10} for n, what in enumerate(("hawk", "wolf"))]
    await tell(game, "I ask the women.", *more)
    assert not game.model.asked("question"), "140 so far"

    def seven(messages):
        insights = [{"text": f"Everybody wants a {what}.", "cites": [n]} for n, what in enumerate([*WHAT, *MORE], 1)]
        return say("", call("Reflection", insights=insights))

    game.model.queue("question", questions(4))
    game.model.queue("conclude", seven)
    await tell(game, "I ask once more.", {"text": "The king is dead.", "importance": 10})
    told = game.model.asked("conclude")[0][-1].text
    assert told.partition("<questions>")[2].count("What does man") == MAX_QUESTIONS == 3
    first = {i.key: i.value for i in await game.store.asearch(FACTS, limit=99) if i.value["cites"]}
    assert len(first) == MAX_INSIGHTS == 5

    def higher(messages):
        memories = messages[-1].text.partition("</memories>")[0].splitlines()
        number = next(n for n, line in enumerate(memories[1:], 1) if "wants a lamp" in line)
        return say("", call("Reflection", insights=[{"text": "All of it is one plot.", "cites": [number]}]))

    game.model.queue("question", say("", call("Questions", questions=["Who wants a lamp?"])))
    game.model.queue("conclude", higher)
    await tell(game, "And then?", *({"text": f"Guard {n} lost a {n}.", "importance": 10} for n in range(15)))
    [top] = [i.value for i in await game.store.asearch(FACTS, limit=99) if i.value["text"] == "All of it is one plot."]
    assert set(top["cites"]) <= set(first), "a tree of evidence"


async def test_a6_what_is_spread_over_several_messages_is_found_as_an_insight():
    store = InMemoryStore(index={"dims": 512, "embed": HashEmbeddings(), "fields": ["text"]})
    parts = ["The ferryman counts forty crowns at dusk.", "A small boat shows a black sail the way in."]
    others = [f"The harbour watch of night {n} betrayed no fear." for n in range(30)]
    for turn, text in enumerate([*parts, *others], 1):
        await store.aput(HERE, f"f-{turn}", {"kind": "event", "text": text} | Stamp("main", turn).to_json())
    question = "Who betrayed the harbour?"
    alone = [one.value["text"] for one in await recall(store, HERE, Query(question, timeline=[("main", 40)], limit=10))]
    assert not set(parts) & set(alone), "neither is like the question"
    value = {"kind": "insight", "text": "The ferryman betrayed the harbour.", "cites": ["f-1", "f-2"]}
    await store.aput(HERE, "i", value | Stamp("main", 33).to_json())
    [best, *_] = await recall(store, HERE, Query(question, timeline=[("main", 40)], limit=10))
    assert best.value == value | Stamp("main", 33).to_json()
