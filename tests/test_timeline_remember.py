"""Remembering and recalling without a graph, over any store."""

import pytest
from faulty_stores import Recording
from langgraph.store.memory import InMemoryStore
from stores import stores_of

from questbook import note_facts
from questbook.memory.recall.query import Query
from questbook.memory.recall.recall import recall
from questbook.memory.timeline.namespaces import campaign_namespace
from questbook.memory.timeline.records import Stamp, session_number
from questbook.memory.timeline.timeline import record_key, remember

HERE, CLAIMS = ("u", "c", "exchanges"), ("u", "c", "claims")
store = stores_of("faiss", "memory")


async def written(store):
    return sorted((item.value["turn"], item.value["text"]) for item in await store.asearch(HERE, limit=99))


async def test_a_foreign_conversation_in_three_lines(store):
    await remember(store, HERE, ["The lamp is lit.", {"player": "I wait.", "reply": "Night falls."}, {"text": "Dawn."}])
    assert await written(store) == [(1, "The lamp is lit."), (2, "I wait.\nNight falls."), (3, "Dawn.")]
    assert [one.value["turn"] for one in await recall(store, HERE, Query("What about the lamp?", limit=1))] == [1]


async def test_a_text_is_no_namespace_and_nothing_is_written_or_recalled(store):
    for places in ({"namespace": "ann"}, {"namespace": HERE, "claims": "claims"}):
        with pytest.raises(ValueError, match=r"expected a tuple of texts, such as \('(ann|claims)',\)"):
            await remember(store, exchange="The lamp is lit.", **places)
    with pytest.raises(ValueError, match="expected a tuple of texts"):
        await recall(store, "ann", "Which lamp?")
    assert await store.alist_namespaces() == []


async def test_writing_twice_is_writing_once(store):
    for two in ({"text": "two", "day": 1}, {"day": 1, "text": "two"}):
        line = await remember(store, HERE, ["one", two], turn=1, claims=CLAIMS, timeline=[("a", 2)])
    assert line == [("a", 2)]
    assert await written(store) == [(1, "one"), (2, "two")]


async def test_a_turn_that_is_written_again_before_one_that_stands_changes_no_session(store):
    said = [{"text": "Fog.", "said_at": f"2026-01-0{day}T10:00:00+00:00"} for day in (1, 5, 9)]
    line = await remember(store, HERE, said[:2], claims=CLAIMS)
    await store.adelete(HERE, record_key("main", 1, "exchange"))
    await remember(store, HERE, said, turn=1, timeline=line, claims=CLAIMS)
    sessions = {item.value["turn"]: item.value["session"] for item in await store.asearch(HERE)}
    assert sessions == {1: 1, 2: 2, 3: 3}


async def test_further_writes_go_into_the_same_batch_or_nothing_does(store):
    def fails(line):
        raise RuntimeError(f"no head for {line}")

    with pytest.raises(RuntimeError, match="no head"):
        await remember(store, HERE, "one", also=fails)
    assert await written(store) == []


@pytest.mark.parametrize("wrong", [{}, {"player": "I wait."}, {"text": 7}])
async def test_an_exchange_without_words_is_refused(store, wrong):
    with pytest.raises(ValueError, match="needs a text"):
        await remember(store, HERE, ["fine", wrong])
    assert await written(store) == []


async def test_records_say_when_and_in_which_session(store):
    at = "2026-03-10T23:30:00-05:00"
    await remember(store, HERE, "one", provenance={"thread": "t", "said_at": at})
    (item,) = await store.asearch(HERE)
    assert (item.value["date"], item.value["month"]) == ("20260311", "202603"), "in UTC"
    assert item.value["session"] == 1
    await remember(store, HERE, "two", turn=2, provenance={"thread": "other", "said_at": at})
    await remember(store, HERE, {"text": "three", "session": 7}, turn=3)
    assert [item.value["session"] for item in await store.asearch(HERE)] == [1, 2, 7]


@pytest.mark.parametrize(
    ("said_at", "day"),
    [
        ("0033-04-03T15:00:00", "00330403"),
        ("0001-01-01T00:30:00+14:00", "00010101"),  # of which there is no day in UTC
        ("9999-12-31T23:30:00-05:00", "99991231"),
    ],
)
async def test_a_day_has_eight_digits_also_at_the_ends_of_the_calendar(store, said_at, day):
    await remember(store, HERE, {"text": "one", "said_at": said_at})
    (item,) = await store.asearch(HERE)
    assert (item.value["date"], item.value["month"]) == (day, day[:6])


@pytest.mark.parametrize(
    ("past", "now", "number"),
    [
        (None, {}, 1),
        ({"session": 1, "thread": "t"}, {"thread": "t"}, 1),
        ({"session": -3, "thread": "t"}, {"thread": "t"}, 1),
        ({"session": 4, "thread": "t"}, {"thread": "t"}, 4),
        ({"session": 4, "thread": "t"}, {"thread": "u"}, 5),
        ({"thread": "t"} | Stamp("a", 1).to_json(), {"thread": "t"}, 1),
        ({"session": 4, "said_at": "2026-03-10T12:00:00"}, {"said_at": "2026-03-10T15:00:00+00:00"}, 4),
        ({"session": 4, "said_at": "2026-03-10T12:00:00"}, {"said_at": "2026-03-10T15:00:01+00:00"}, 5),
        ({"session": "many", "said_at": "once"}, {"said_at": "2026-03-10T15:00:01+00:00"}, 1),
    ],
)
def test_a_new_thread_or_a_long_pause_begins_a_session(past, now, number):
    past = None if past is None else Stamp.from_json(past)
    assert session_number(past, Stamp.from_json(now)) == number


async def test_a_timeline_is_carried_on_turn_by_turn_and_a_fork_parts_from_it(store):
    one = await remember(store, HERE, "My lamp is red.", claims=CLAIMS)
    two = await remember(store, HERE, "I painted my lamp blue.", timeline=one, claims=CLAIMS)
    other = await remember(store, HERE, "I sold my lamp.", timeline=one, claims=CLAIMS)
    assert one == [("main", 1)]
    assert two == [("main", 2)]
    assert other[0] == ("main", 1)
    assert other[1][0] != "main"
    texts = [
        {record.text for record in await recall(store, HERE, Query("lamp", timeline=line))} for line in (two, other)
    ]
    assert texts[0] == {"My lamp is red.", "I painted my lamp blue."}
    assert texts[1] == {"My lamp is red.", "I sold my lamp."}


async def test_a_gap_before_the_turn_is_refused(store):
    with pytest.raises(ValueError, match="Turn 3 lies beyond"):
        await remember(store, HERE, "three", turn=3, timeline=[("main", 1)])
    assert await store.asearch(HERE) == []


async def test_a_record_names_the_branch_of_the_turn_before(store):
    for turn, text in enumerate(["one", "two", "three"], 1):
        await remember(store, HERE, text, turn=turn, timeline=[("main", 1), ("b", 3)])
    items = await store.asearch(HERE)
    assert {item.value["turn"]: item.value["after"] for item in items} == {1: None, 2: "main", 3: "b"}


@pytest.mark.parametrize(
    ("field", "other", "killed"),
    [("text", "One.", False), ("taught", "another fact", False), ("messages", ["m2"], False), ("day", 2, True)],
)
async def test_a_killed_write_is_recognised_wherever_the_story_is_but_not_what_another_future_wrote(
    store, field, other, killed
):
    one = {"text": "one", "taught": "a fact", "messages": ["m1"], "day": 1}
    await remember(store, HERE, one, claims=CLAIMS)
    line = await remember(store, HERE, [one | {field: other}, "two"], turn=1, timeline=[("main", 2)], claims=CLAIMS)
    assert (line == [("main", 2)]) is killed
    assert len(await store.asearch(HERE)) == (2 if killed else 3)


async def test_a_claim_is_noted_in_the_same_words_in_every_version(store):
    await remember(store, HERE, "one", claims=CLAIMS)
    (note,) = await store.asearch(CLAIMS)
    assert note.key == "1-ffde0dca5701d0970022585b7e7feeac"
    assert note.value == {"turn": 1, "owner": "ffde0dca5701d0970022585b7e7feeac", "kept": True}


async def test_turns_of_one_batch_count_their_sessions_from_each_other_and_read_nothing_for_it():
    hours, store = ("10:00", "14:00", "14:05"), Recording()
    said = [{"text": hour, "said_at": f"2026-03-10T{hour}:00+00:00", "thread": "t"} for hour in hours]
    await remember(store, HERE, said)
    assert [len(ops) for ops in store.batches] == [1, 1, 1, 3], "whether each is written, then all"
    items = await store.asearch(HERE)
    assert {item.value["text"]: item.value["session"] for item in items} == {"10:00": 1, "14:00": 2, "14:05": 2}


async def test_nothing_is_no_turn_and_a_turn_needs_words_and_a_number(store):
    timeline = await remember(store, ("u",), "I go north.")
    assert await remember(store, ("u",), [], timeline=timeline) == timeline
    assert await remember(store, ("u",), []) == []
    for wrong in ("", " "):
        with pytest.raises(ValueError, match="An exchange needs a text"):
            await remember(store, ("u",), wrong, timeline=timeline)
    for number in (0, -1, True, 1.5):
        with pytest.raises(ValueError, match="turn: got"):
            await remember(store, ("u",), "I go south.", turn=number)
    assert len(await store.asearch(("u",))) == 1


@pytest.mark.parametrize("wrong", ["main", ("main", 1), [("main",)], [("main", "1")], [(5, 1)], {"main": 1}], ids=repr)
async def test_a_timeline_that_is_none_is_refused_and_nothing_is_written(wrong):
    store = InMemoryStore()
    with pytest.raises(ValueError, match=r"timeline: got .*; expected segments, such as \[\('main', 12\)\]"):
        await remember(store, ("ann", "chat"), "Hi.", timeline=wrong, claims=("ann", "claims"))
    assert store.search(()) == []


async def test_facts_before_the_first_turn_are_told_where_a_timeline_comes_from():
    with pytest.raises(ValueError, match=r"The timeline is empty.*: give the one that remember\(\) returned"):
        await note_facts(InMemoryStore(), ("ann", "facts"), [{"text": "x"}], timeline=[])


def test_a_number_in_the_place_of_a_user_is_named():
    with pytest.raises(ValueError, match="name: got 42; expected a text, such as"):
        campaign_namespace(42, "chat")
