"""Timelines: segments, claims, forks, and the records on them as types."""

import asyncio
import json
import random
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.store.base import SearchOp
from langgraph.store.memory import InMemoryStore

from questbook.memory.timeline.records import Exchange, Record, Stamp, check_record, has_metadata, is_hidden
from questbook.memory.timeline.timeline import (
    UserTimeline,
    as_of,
    branch_name,
    branch_of,
    check_timeline,
    claim,
    extend,
    fork,
    is_visible,
    life_of,
    list_visible,
    merge_timelines,
    read_timeline,
    record_key,
    remembered_timeline,
    search_visible,
    sees,
    shown_key,
    visible_filters,
)


def test_the_first_segment_that_reaches_a_turn_owns_it():
    timeline = [("a", 4), ("b", 9)]
    assert [branch_of(timeline, turn) for turn in (1, 4, 5, 9)] == ["a", "a", "b", "b"]


def test_a_key_follows_from_branch_turn_kind_and_ordinal():
    assert record_key("a", 3, "exchange") == record_key("a", 3, "exchange", 0)
    keys = {record_key(b, t, k, o) for b in "ab" for t in (1, 11) for k in ("exchange", "fact") for o in (0, 1)}
    assert len(keys) == 16


def test_visible_is_one_filter_a_segment():
    def segment(branch, through, **since):
        return {"branch": branch, "order": {"$lte": f"{through:08}", **since}}

    timeline, both = [("a", 4), ("b", 9)], [segment("a", 4), segment("b", 9)]
    assert visible_filters(timeline) == both
    beside = segment("beside", 4)  # of a run side by side
    assert visible_filters([("a", 4), ("beside", 4), ("b", 9)]) == [both[0], beside, both[1]]
    assert visible_filters(timeline, before=4) == [segment("a", 3)]
    assert visible_filters([], before=9) == []
    since = {"$gte": "00000003"}
    assert visible_filters(timeline, first=3) == [segment("a", 4, **since), segment("b", 9, **since)]
    assert visible_filters(timeline, 8, first=5) == [segment("b", 7, **{"$gte": "00000005"})]
    through = {"$through": ["branch", "order", {"a": "00000004", "b": "00000009"}]}
    assert visible_filters(timeline, joined=True) == [through]
    assert visible_filters(timeline, first=3, joined=True) == [through | {"order": since}]


def test_the_order_of_turns_is_the_same_for_texts_and_for_numbers():
    turns = [1, 9, 10, 99, 100, 12_345]
    for turn in turns:
        [limit] = (one["order"]["$lte"] for one in visible_filters([("a", turn)]))
        orders = [Stamp("a", other).to_json()["order"] for other in turns]
        assert [order <= limit for order in orders] == [other <= turn for other in turns], "as PostgresStore compares"
        assert [float(order) <= float(limit) for order in orders] == [other <= turn for other in turns], "as others do"


def test_a_fork_ends_the_old_branch_before_its_turn():
    assert fork([("a", 4), ("b", 9)], 9, "c") == [("a", 4), ("b", 8), ("c", 9)]
    assert fork([("a", 4), ("b", 9)], 5, "c") == [("a", 4), ("c", 9)]
    assert fork([("a", 4)], 1, "c") == [("c", 4)]


def test_a_hundred_forks_in_ten_thousand_turns_stay_under_two_kilobytes():
    timeline = [(branch_name("root"), 10_000)]
    for number in range(1, 101):
        timeline = fork(timeline, number * 99, branch_name(f"fork {number}"))
    assert len(timeline) == 101
    assert len(json.dumps(timeline)) < 2048
    assert len({branch for branch, _ in timeline}) == 101


PLACE = ("u", "c", "claims")


async def test_who_comes_second_gets_a_branch_and_keeps_it():
    store = InMemoryStore()
    assert await claim(store, PLACE, [("a", 2)], 2, "first") == [("a", 2)]
    second = await claim(store, PLACE, [("a", 2)], 2, "second")
    assert second == [("a", 1), (branch_name("a/2/second"), 2)]
    assert await claim(store, PLACE, [("a", 2)], 2, "second") == second
    assert await claim(store, PLACE, [("a", 2)], 2, "first") == [("a", 2)], "the first is not driven out"


async def test_sixty_four_at_once_never_share_a_branch():
    class Slow(InMemoryStore):
        async def abatch(self, ops):
            await asyncio.sleep(random.random() / 500)
            result = await super().abatch(ops)
            await asyncio.sleep(random.random() / 500)
            return result

    for _ in range(6):
        store = Slow()
        timelines = await asyncio.gather(*(claim(store, PLACE, [("a", 5)], 5, f"r{n}") for n in range(64)))
        assert len({timeline[-1][0] for timeline in timelines}) == 64


def test_a_timeline_as_of_a_turn_keeps_nothing_of_later_turns():
    timeline = [("a", 4), ("b", 9)]
    expected = {0: [], 1: [("a", 1)], 4: [("a", 4)], 5: [("a", 4), ("b", 5)], 99: timeline}
    assert {turn: as_of(timeline, turn) for turn in expected} == expected


def test_a_timeline_is_extended_on_its_last_branch():
    assert extend([], 3) == [("main", 3)]
    assert extend([], 3, "root") == [("root", 3)]
    assert extend([("a", 4), ("b", 9)], 10) == [("a", 4), ("b", 10)]


def test_a_timeline_sees_its_branches_up_to_their_turns():
    timeline = [("a", 4), ("b", 9)]
    seen = [(branch, turn) for branch in "abc" for turn in (4, 5, 9, 10) if sees(timeline, branch, turn)]
    assert seen == [("a", 4), ("b", 4), ("b", 5), ("b", 9)]


def test_a_record_without_a_turn_was_there_before_the_first_and_one_without_a_branch_is_seen_by_all():
    assert is_visible([("a", 4)], {"text": "lore"}, before=1)
    assert not is_visible([("a", 4)], {"turn": 1}, before=1)
    assert is_visible(None, {"branch": "b", "turn": 9})
    assert is_visible([("a", 4)], {"branch": "a", "turn": 4})
    assert not is_visible([("a", 4)], {"branch": "a", "turn": 5})
    assert not is_visible([("a", 4)], {"branch": "b", "turn": 1})


async def test_all_that_a_timeline_sees_is_listed_by_turn_and_then_by_its_place_in_the_turn():
    store = InMemoryStore()
    for branch, turn, ordinal in [("a", 2, 10), ("a", 2, 9), ("a", 1, 0), ("b", 3, 0), ("b", 2, 0), ("c", 1, 0)]:
        stamp = Stamp(branch, turn)
        await store.aput(PLACE, record_key(branch, turn, "fact", ordinal), {"text": "x"} | stamp.to_json())
    listed = await list_visible(store, PLACE, [("a", 2), ("b", 3)])
    assert [item.key for item in listed] == ["a-1-fact-0", "b-2-fact-0", "a-2-fact-9", "a-2-fact-10", "b-3-fact-0"]
    assert [item.key for item in await list_visible(store, PLACE, [("a", 2), ("b", 3)], before=2)] == ["a-1-fact-0"]


@pytest.mark.parametrize("timeline", [[("a", 2)], UserTimeline([("a", 2)], thread="t", heads=("heads",))])
async def test_what_lies_in_a_deeper_namespace_is_neither_listed_nor_found(timeline):
    store = InMemoryStore()
    for place in (PLACE, (*PLACE, "work")):
        await store.aput(place, "a-1-fact-0", {"text": place[-1]} | Stamp("a", 1).to_json())
    assert [item.namespace for item in await list_visible(store, PLACE, timeline)] == [PLACE]
    [found] = await search_visible(store, [SearchOp(PLACE, limit=2)], timeline)
    assert [item.namespace for item in found.items] == [PLACE]
    assert not found.is_all, "the search was full"


async def test_claims_of_sixty_four_turns_share_a_namespace():
    store = InMemoryStore()
    for turn in (1, 63, 64):
        await claim(store, PLACE, [("a", turn)], turn, "r")
    assert sorted(store.list_namespaces()) == [(*PLACE, "a-0"), (*PLACE, "a-1")]
    kept = await store.aget((*PLACE, "a-0"), "1-r")
    assert kept.value == {"turn": 1, "owner": "r", "kept": True}


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)
STAMP_KEYS = ["branch", "turn", "order", "session", "day", "said_at", "thread"]
RECORD_KEYS = ["text", "kind", "speaker", "subject", "importance", "known_by", "withheld"]
KEYS = st.sampled_from([*STAMP_KEYS, *RECORD_KEYS, "player", "reply", "after", "messages", "of_another_app"])


@given(st.dictionaries(KEYS, JSON_VALUES))
@pytest.mark.parametrize("cls", [Record, Exchange])
def test_what_was_read_is_stored_as_it_was_whoever_wrote_it(cls, value):
    kind = {"kind": "exchange"} if cls is Exchange and "kind" not in value else {}
    assert cls.from_json(value).to_json() == value | kind


def test_an_exchange_is_stored_with_its_stamp_and_without_defaults():
    stamp = Stamp("main", 12, session=2, day=3, said_at="2026-03-10T15:00:00Z", thread="t", checkpoint="c")
    exchange = Exchange(text="Hi!\nHello.", player="Hi!", reply="Hello.", messages=("a", "b"), stamp=stamp)
    assert exchange.to_json() == {
        "kind": "exchange", "text": "Hi!\nHello.", "player": "Hi!", "reply": "Hello.", "messages": ["a", "b"],
        "branch": "main", "turn": 12, "order": "00000012", "session": 2, "day": 3,
        "said_at": "2026-03-10T15:00:00Z", "thread": "t", "checkpoint": "c",
    }  # fmt: skip
    assert Exchange.from_json(exchange.to_json()) == exchange


def test_what_changes_is_written_over_what_was_stored():
    stored = {"text": "old", "importance": 3, "of_another_app": [1], "branch": "a", "turn": 1, "order": "00000001"}
    record = Record.from_json(stored)
    assert replace(record, text="new").to_json() == stored | {"text": "new"}
    assert replace(record, importance=0.0).to_json() == stored | {"importance": 0.0}
    moved = replace(record, stamp=replace(record.stamp, turn=10)).to_json()
    assert moved == stored | {"turn": 10, "order": "00000010"}


@pytest.mark.parametrize(
    ("field", "wrong", "default"),
    [
        ("text", 12, ""), ("speaker", None, ""), ("importance", "very", 0.0), ("importance", True, 0.0),
        ("importance", float("nan"), 0.0), ("known_by", 7, ()), ("known_by", "Oda", ("Oda",)), ("withheld", "", False),
    ],
)  # fmt: skip
def test_a_field_of_the_wrong_type_has_its_default(field, wrong, default):
    assert getattr(Record.from_json({field: wrong}), field) == default


@pytest.mark.parametrize("turn", [True, False, "3", None, 2.0])
def test_a_turn_that_is_no_whole_number_is_unknown(turn):
    assert Stamp.from_json({"branch": "a", "turn": turn, "session": turn, "day": turn}) == Stamp("a", 0)


def test_a_stamp_without_a_branch_belongs_to_no_timeline():
    assert Stamp(said_at="2026-01-01").to_json() == {"said_at": "2026-01-01"}


@pytest.mark.parametrize(
    ("said_at", "time"),
    [
        ("2026-03-10T15:00:00", datetime(2026, 3, 10, 15, tzinfo=UTC)),
        ("2026-03-10T15:00:00+02:00", datetime(2026, 3, 10, 13, tzinfo=UTC)),
        ("2026-03-10", datetime(2026, 3, 10, tzinfo=UTC)),
        ("some day", None),
        ("", None),
    ],
)
def test_a_time_without_an_offset_is_utc_and_what_is_no_time_is_none(said_at, time):
    assert Stamp(said_at=said_at).time == time


@pytest.mark.parametrize(
    ("timeline", "beside", "problem"),
    [
        ([], False, None), ([["a", 1]], False, None), ([("a", 2), ("b", 3)], False, None),
        ([("a", 2), ("b", 2)], False, "('b', 2)"), ([("a", 2), ("b", 2)], True, None),
        ([("a", 2), ("b", 1)], True, "('b', 1)"), ([("a", 0)], False, "('a', 0)"), ([("a", 0)], True, "('a', 0)"),
        ([("a", -1)], False, "('a', -1)"), ([("", 1)], False, "('', 1)"), ([("a", True)], False, "('a', True)"),
        ([("a", "1")], False, "('a', '1')"), ([("a", 1.0)], False, "('a', 1.0)"), ([(1, 1)], False, "(1, 1)"),
        ([("a", 1, 2)], False, "('a', 1, 2)"), (["a"], False, "'a'"), ([None], False, "None"),
    ],
)  # fmt: skip
def test_a_timeline_is_segments_each_of_a_later_turn(timeline, beside, problem):
    if problem is None:
        assert check_timeline(timeline, beside=beside) is timeline
    else:
        with pytest.raises(ValueError, match="each of a later turn than the one before, from 1") as caught:
            check_timeline(timeline, beside=beside)
        assert str(caught.value).endswith(f"got {problem}")


@pytest.mark.parametrize(
    ("key", "shown"),
    [
        ("abcdefgh-12-fact-0", "12-fact-0.trlm"), ("zzzzzzz2+abcdefgh-1-hand.x", "1-hand.x.im5e"),
        ("main-1-fact-0", "main-1-fact-0"), ("abcdefgh-fact", "abcdefgh-fact"),
        ("ABCDEFGH-1-fact-0", "ABCDEFGH-1-fact-0"),
        ("", ""),
    ],
)  # fmt: skip
def test_people_see_a_key_with_four_letters_for_its_branch(key, shown):
    assert shown_key(key) == shown


BESIDE = [("a", 1), ("c", 2), ("b", 2)]  # b and c ran side by side


def test_what_ran_side_by_side_is_seen_together_and_goes_on_by_itself():
    assert merge_timelines([[("a", 1), ("b", 2)], [("a", 1), ("c", 2)]]) == BESIDE
    assert merge_timelines([[("a", 3)], [("a", 3)]]) == [("a", 3)]
    assert merge_timelines([[("a", 1), ("b", 3)], [("a", 2)]]) == [("a", 2), ("b", 3)]
    assert branch_of(BESIDE, 2) == "c"
    [*past, (branch, turn)] = extend(BESIDE, 3)
    assert (past, turn) == (BESIDE, 3)
    assert branch not in "abc"
    assert extend(BESIDE, 3) == extend(BESIDE, 3), "a retry gets the same name"
    assert extend(BESIDE, 2) == BESIDE
    assert extend([], 3) == [("main", 3)]
    assert extend([], 3, "first") == [("first", 3)]


def test_a_fork_of_what_ran_side_by_side_replaces_the_one_that_counts():
    assert fork(BESIDE, 2, "n") == [("a", 1), ("n", 2), ("b", 2)]
    assert fork(BESIDE, 1, "n") == [("n", 2)]
    assert fork([("a", 5)], 3, "n") == [("a", 2), ("n", 5)]
    assert fork([], 3, "n") == [("n", 3)]
    assert [as_of(BESIDE, turn) for turn in (3, 2, 1, 0)] == [BESIDE, BESIDE, [("a", 1)], []]


def test_the_mark_of_a_life_stays_on_all_of_its_branches():
    grown = extend([("x+aaa", 1), ("x+b", 2), ("x+c", 2)], 3)
    assert (life_of("x+aaa"), life_of("aaa"), life_of(grown[-1][0])) == ("x", "", "x")


async def test_a_fork_by_a_claim_keeps_the_mark_of_the_life():
    store = InMemoryStore()
    await claim(store, PLACE, [("x+aaa", 1)], 1, "one")
    [(branch, _)] = await claim(store, PLACE, [("x+aaa", 1)], 1, "two")
    assert life_of(branch) == "x"
    assert branch != "x+aaa"


def test_of_a_states_timeline_only_what_is_remembered_counts():
    values = {"timeline": [["a", 2], ["b", 9]], "remembered_through": 4}
    assert read_timeline(values) == [("a", 2), ("b", 9)]
    assert remembered_timeline(values) == [("a", 2), ("b", 4)]
    assert remembered_timeline({"timeline": [["a", 2]]}) == []
    assert read_timeline({}) == read_timeline({"timeline": None}) == []


def test_a_turn_beyond_the_timeline_is_named_with_what_to_do():
    for timeline, says in (([("a", 4)], r"Turn 5 lies beyond.* turn 4; call extend\(timeline, 5\)"), ([], "is empty")):
        with pytest.raises(ValueError, match=says):
            branch_of(timeline, 5)


@pytest.mark.parametrize(
    ("record", "before", "seen"),
    [
        ({"branch": "a", "turn": 2}, None, True), ({"branch": "a", "turn": 3}, None, False),
        ({"branch": "b", "turn": 3}, None, True), ({"branch": "b", "turn": 3}, 3, False),
        ({"branch": "b", "turn": 3}, 4, True), ({"branch": "c", "turn": 1}, None, False),
        ({"turn": 9}, None, True), ({"turn": 9}, 9, False), ({}, 1, True),
    ],
)  # fmt: skip
def test_what_a_timeline_may_see(record, before, seen):
    assert is_visible([("a", 2), ("b", 9)], record, before) is seen


@pytest.mark.parametrize(
    ("value", "hidden"),
    [
        ({}, False), ({"withheld": True}, True), ({"withheld": False}, False), ({"expires": ""}, False),
        ({"expires": "2020-01-01T00:00:00+00:00"}, True), ({"expires": "9000-01-01T00:00:00"}, False),
        ({"expires": "2020-01-01"}, True), ({"expires": "soon"}, False),
    ],
)  # fmt: skip
def test_what_is_withheld_or_has_expired_is_hidden(value, hidden):
    assert is_hidden(value) is hidden


@pytest.mark.parametrize(
    ("own", "wanted", "has"),
    [
        ({"project": "x", "n": 1}, {"project": "x"}, True), ({"project": "x"}, {"project": "y"}, False),
        ({"project": "x"}, {"project": "x", "n": 1}, False), ({}, {"project": "x"}, False), (None, {"n": 1}, False),
        (None, None, True), ({"a": 1}, {}, True), ({}, {"n": None}, True),
    ],
)  # fmt: skip
def test_metadata_is_all_of_what_is_wanted(own, wanted, has):
    assert has_metadata({"metadata": own}, wanted) is has


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ({"turn": -1}, "turn: got -1. Input should be greater than or equal to 0."),
        ({"turn": True}, "turn: got True."), ({"turn": 1.0}, "turn: got 1.0."), ({"branch": ""}, "branch: got ''."),
        ({"session": -1}, "session: got -1."), ({"session": "1"}, "session: got '1'."), ({"day": 1.5}, "day: got 1.5."),
        ({"importance": "7"}, "importance"), ({"text": 7}, "text: got 7."), ({"known_by": 7}, "known_by"),
        ({"messages": [1]}, "messages.0: got 1."), ({"thread": 7}, "thread: got 7."), ({"withheld": "x"}, "withheld"),
    ],
)  # fmt: skip
def test_a_field_of_a_record_that_comes_in_with_the_wrong_type_is_named(value, says):
    with pytest.raises(ValueError, match="got ") as caught:
        check_record(value)
    assert str(caught.value).startswith(says)
    check_record({"of_another_app": 7, "turn": 0, "session": None, "day": -3, "importance": 7.5, "known_by": "Oda"})
