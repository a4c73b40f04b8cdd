"""What moves a record up or down, and what never comes: each rule of recall by itself."""

from datetime import UTC, datetime, timedelta

import pytest
from langgraph.store.memory import InMemoryStore
from stores import opened

from questbook import HashEmbeddings
from questbook.memory.recall.query import Present, Query, WeightedText, Weights
from questbook.memory.recall.recall import access_op, recall
from questbook.memory.timeline.records import Stamp
from questbook.memory.timeline.timeline import record_key, remember

HERE, FACTS, LORE, PLAYER = ("u", "c", "exchanges"), ("u", "c", "facts"), ("u", "c", "lore"), ("u", "player", "facts")
NOW = datetime(2026, 3, 10, 15, tzinfo=UTC)
LINE = [("main", 99)]


class Counting(HashEmbeddings):
    """Counts how often it is called."""

    asked: list[str]

    def embed_query(self, text):
        self.asked.append(text)
        return super().embed_query(text)


@pytest.fixture(params=["faiss", "memory"])
def store(request, tmp_path):
    embed = Counting()
    embed.asked = []
    with opened(request.param, tmp_path, embed) as store:
        yield store


async def fact(store, name, text, turn=1, namespace=FACTS, branch="main", **fields):
    value = {"kind": "event", "text": text} | fields
    await store.aput(namespace, name, value | (Stamp(branch, turn).to_json() if namespace == FACTS else {}))


async def keys(store, query, namespaces=FACTS, **settings):
    return [one.key for one in await recall(store, namespaces, Query(query, **settings))]


async def test_an_answer_is_found_by_the_question_before_it(store):
    said = [
        "Fog.",
        "Still fog.",
        "The rain goes on.",
        "Who stole the swordfish bell?",
        "It was the ferryman.",
        "You shiver.",
    ]
    await remember(store, HERE, [*said, *(f"The road goes on, mile {n}." for n in range(60))])

    async def turns(weights):
        found = await recall(store, HERE, Query("Who has the swordfish bell?", timeline=LINE, limit=3, weights=weights))
        return [one.value["turn"] for one in found]

    assert (await turns(Weights()))[0] == 4
    assert 5 in await turns(Weights())
    assert 5 not in await turns(Weights().without("nearby"))


async def test_a_neighbour_of_another_future_counts_nothing(store):
    await remember(
        store, HERE, ["The rain goes on.", "You shiver.", "It was the ferryman."], turn=1, timeline=[("main", 3)]
    )
    before = await recall(store, HERE, Query("swordfish bell", timeline=[("main", 3)]))
    await remember(store, HERE, ["Who stole the swordfish bell?"], turn=2, timeline=[("main", 1), ("b", 2)])
    assert await recall(store, HERE, Query("swordfish bell", timeline=[("main", 3)])) == before
    (best, *_) = await recall(store, HERE, Query("swordfish bell", timeline=[("main", 1), ("b", 2)]))
    assert best.value["branch"] == "b"


async def test_a_note_that_answers_comes_before_many_turns_that_ask_the_same(store):
    question = "What do you know of Oda's lamp?"
    await remember(store, HERE, [f"{question} The day is {word}." for word in "abcdefghijklmnopqrstuvwxyz"])
    await fact(store, "x", "Oda's lamp: Redibo", subject="Oda")
    await fact(store, "weak", "Goran has a lamp, a horse, a harbour, a motto and nine brothers.", subject="Goran")

    async def noted(namespaces=(HERE, FACTS), **settings):
        found = await recall(store, namespaces, Query(question, timeline=LINE, **settings))
        return {place: one.key for place, one in enumerate(found, 1) if one.namespace == FACTS}

    assert await noted() == {1: "x"}
    assert await noted(max_cosine_distance=1.0, fitting=False) == {1: "x"}
    assert await noted([FACTS]) == {1: "x", 2: "weak"}
    for name, value in zip("abcd", ("gold", "tall", "old", "lit"), strict=True):
        await fact(store, name, f"Oda's lamp is {value}", subject="Oda", importance=ord(name) - 96)
    assert list(await noted()) == [1, 2, 3, 4, 5]


async def test_a_time_in_the_question_moves_up_what_fits_and_loses_nothing_undated(store):
    for day in range(9, 0, -1):
        await fact(store, f"day{day}", f"We camp at the {day} th mill.", said_at=f"2026-03-0{day}T20:00:00+00:00")
    await fact(store, "undated", "We camp at the mill, some time.")
    asked = await recall(store, FACTS, Query("Where did we camp three days ago?", present=Present(NOW), limit=20))
    assert asked[0].key == "day7"
    assert asked[0].reason.time == 1
    assert "undated" in {one.key for one in asked}
    assert (await keys(store, "Where did we camp yesterday?", present=Present(NOW)))[0] == "day9"
    assert (await keys(store, "Where did we camp on 2 March?", present=Present(NOW)))[0] == "day2"


async def test_sessions_story_days_and_events(store):
    told = [
        {"text": "A pedlar sells you a charm.", "session": 1, "day": 1},
        {"text": "You reach the ashen tower. Fires burn behind it.", "session": 2, "day": 2},
        {"text": "A pedlar sells you a ring.", "session": 3, "day": 3},
    ]
    await remember(store, HERE, told)
    present = Present(NOW, 3, 3)

    async def first(query):
        return (await recall(store, HERE, Query(query, present=present, timeline=[("main", 3)])))[0].value["turn"]

    assert await first("What did the pedlar sell me before we reached the ashen tower?") == 1
    assert await first("What did the pedlar sell me after we reached the ashen tower?") == 3
    assert await first("What did the pedlar sell me after the fire?") == 3, "another form of the word"
    assert await first("What did the pedlar sell me before the fire?") == 1
    assert await first("What did the pedlar sell me on day 1?") == 1
    assert await first("What did the pedlar sell me today?") == 3
    assert await first("What did the pedlar sell me two sessions ago?") == 1


async def test_the_order_does_not_depend_on_when_it_is_asked(store):
    for n in range(20):
        await fact(store, f"f{n}", f"The lamp of house {n}.", n + 1, said_at=(NOW - timedelta(hours=n)).isoformat())
    asked = [await recall(store, FACTS, Query("lamp", present=Present(NOW + timedelta(days=d)))) for d in (0, 1, 400)]
    assert asked[0] == asked[1] == asked[2]


@pytest.mark.parametrize(("back", "worth", "total"), [(0, 1, 1), (7, 1, 1), (8, 0.5, 10)])
async def test_accesses_of_the_last_eight_turns_count_the_last_one_among_them(store, back, worth, total):
    stream, accesses, timeline = Weights(scoring="generative_agents"), ("u", "c", "accesses"), [("main", 20)]
    said = [{"text": f"Boat {n}.", "said_at": (NOW - timedelta(hours=200)).isoformat()} for n in range(20)]
    await remember(store, HERE, said, turn=1, timeline=timeline)
    used = record_key("main", 3, "exchange")
    await store.abatch([access_op(accesses, timeline, 20 - back, {}, [used], NOW.isoformat())])
    found = await recall(store, HERE, Query("boat", timeline=timeline, weights=stream, accesses=accesses, limit=20))
    assert {one.value["turn"]: one.reason.recency for one in found}[3] == worth
    assert sum(one.reason.recency for one in found) == total, "all others were used last when they were said"


async def test_a_players_view_never_holds_a_secret(store):
    await fact(store, "told", "Goran is the smith.")
    await fact(store, "secret", "Goran is the murderer.", kind="secret")
    await fact(store, "others", "Goran fears the smith.", known_by=["Oda", "Goran"])
    await fact(store, "ours", "Goran likes the smith.", known_by=["Oda", "Mira"])
    await fact(store, "yours", "Goran hates the smith.", known_by=["the player"])
    assert set(await keys(store, "Who is Goran, the smith?")) == {"told", "yours"}
    assert set(await keys(store, "Who is Goran, the smith?", viewer=["mira"])) == {"told", "yours", "ours"}
    assert len(await keys(store, "Who is Goran, the smith?", visibility="all")) == 5


async def test_a_secret_changes_nothing_in_a_players_view(store):
    await fact(store, "told", "Goran is the smith.")
    await fact(store, "more", "Goran sings.")
    before = await recall(store, FACTS, "Goran the smith")
    await fact(store, "secret", "Goran the smith, the smith, the smith.", kind="secret")
    assert await recall(store, FACTS, "Goran the smith") == before


async def test_what_no_longer_holds_is_dropped_by_whoever_knows(store):
    await fact(store, "then", "The king is old Odo.", 1, slot="king|name")
    await fact(store, "now", "The king is young Ada.", 5, slot="king|name")

    async def latest(found):
        last = {one.value["slot"]: one.value["turn"] for one in sorted(found, key=lambda one: one.value["turn"])}
        return [one for one in found if one.value["turn"] == last[one.value["slot"]]]

    assert await keys(store, "Who is the king?", timeline=LINE, refine=latest) == ["now"]
    assert await keys(store, "Who is the king?", timeline=LINE, refine=latest, before=5) == ["then"]


async def test_many_queries_and_namespaces_are_one_embedding_each(store):
    embed = store.embeddings if isinstance(store, InMemoryStore) else store.index_config["embed"]
    await fact(store, "f", "Oda keeps the lamp.")
    await remember(store, HERE, ["Oda lights the lamp."])
    await fact(store, "l", "The lamp was made by giants.", namespace=LORE, kind="lore")
    await fact(store, "p", "The player likes lamps.", namespace=PLAYER)
    embed.asked.clear()
    hints = [WeightedText("a dark tower", 0.3), WeightedText(" ", 1.0)]
    found = await recall(store, [HERE, FACTS], Query("the lamp", hints=hints, lasting=[LORE, PLAYER], timeline=LINE))
    assert sorted(embed.asked) == ["a dark tower", "the lamp"]
    assert {one.namespace for one in found} == {HERE, FACTS, LORE, PLAYER}
    nothing_yet = await recall(store, [HERE, FACTS], Query("lamp", lasting=[LORE, PLAYER], timeline=[]))
    assert {one.namespace for one in nothing_yet} == {LORE, PLAYER}, "what lasts is seen from anywhere"


async def test_the_reason_says_what_the_order_is_made_of(store):
    await fact(store, "x", "Oda keeps the lamp.", importance=8, subject="Oda", said_at="2026-03-09T12:00:00")
    await fact(store, "y", "A boat.")
    (best, _) = await recall(store, FACTS, Query("What of Oda's lamp yesterday?", present=Present(NOW), fitting=False))
    assert str(best.reason) == (
        "relevance 1.00, words #1, meaning #1, time 1.00, named +1, importance 0.8, recency 1.00"
    )


@pytest.mark.parametrize(
    ("field", "odd"),
    [
        *(("said_at", odd) for odd in ("0001-01-01T00:00:00", "9999-12-31T23:59:59+14:00", "0000-01-01", "", None, 12)),
        *(("importance", odd) for odd in ("very", None, -3, True)),
    ],
)
async def test_odd_times_and_importances_are_no_error(store, field, odd):
    await fact(store, "odd", "The lamp is lit.", **{field: odd})
    await fact(store, "usual", "The lamp is out.", said_at="2026-03-09T12:00:00")
    found = await recall(store, FACTS, Query("lamp yesterday", present=Present(NOW)))
    assert len(found) == 2
    assert all(0 <= one.reason.importance <= 1 for one in found)


def test_the_latest_256_accesses_are_kept():
    later = access_op(("u", "c", "accesses"), [("b", 9)], 9, {f"k{n}": "2026" for n in range(400)}, ["x"], "2027")
    assert (len(later.value["accessed"]), later.index) == (256, False), "nothing is embedded"
    assert "x" in later.value["accessed"]
