"""Timelines: who owns a turn, and keys that make writing twice writing once."""

import asyncio
import json
import random

import pytest
from langgraph.store.memory import InMemoryStore

from questbook.memory.timeline.records import Stamp
from questbook.memory.timeline.timeline import (
    as_of,
    branch_name,
    branch_of,
    claim,
    extend,
    filter_through,
    fork,
    is_visible,
    list_visible,
    record_key,
    sees,
    visible_filters,
)


def test_the_first_segment_that_reaches_a_turn_owns_it():
    timeline = [("a", 4), ("b", 9)]
    assert [branch_of(timeline, turn) for turn in (1, 4, 5, 9)] == ["a", "a", "b", "b"]


def test_a_turn_beyond_the_timeline_is_an_error_that_says_what_to_do():
    with pytest.raises(ValueError, match="Turn 10 lies beyond"):
        branch_of([("a", 4)], 10)


def test_a_key_follows_from_branch_turn_kind_and_ordinal():
    assert record_key("a", 3, "exchange") == record_key("a", 3, "exchange", 0)
    keys = {record_key(b, t, k, o) for b in "ab" for t in (1, 11) for k in ("exchange", "fact") for o in (0, 1)}
    assert len(keys) == 16


def test_visible_is_one_filter_a_segment():
    timeline = [("a", 4), ("b", 9)]
    assert visible_filters(timeline) == [{"branch": "a"} | filter_through(4), {"branch": "b"} | filter_through(9)]
    assert visible_filters(timeline, before=4) == [{"branch": "a"} | filter_through(3)]
    assert visible_filters([("a", 4), ("b", 4), ("c", 5)]) == [
        {"branch": "a"} | filter_through(4),
        {"branch": "c"} | filter_through(5),
    ]
    assert visible_filters([], before=9) == []


def test_the_order_of_turns_is_the_same_for_texts_and_for_numbers():
    turns = [1, 9, 10, 99, 100, 12_345]
    for turn in turns:
        limit = filter_through(turn)["order"]["$lte"]
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


async def test_a_claim_is_kept_when_it_is_made_again():
    store = InMemoryStore()
    for _ in range(3):
        assert await claim(store, PLACE, [("a", 1)], 1, "reply-1") == [("a", 1)]


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
    assert [as_of(timeline, turn) for turn in (0, 1, 4, 5, 99)] == [
        [],
        [("a", 1)],
        [("a", 4)],
        [("a", 4), ("b", 5)],
        timeline,
    ]


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


async def test_claims_of_sixty_four_turns_share_a_namespace():
    store = InMemoryStore()
    for turn in (1, 63, 64):
        await claim(store, PLACE, [("a", turn)], turn, "r")
    assert sorted(store.list_namespaces()) == [(*PLACE, "a-0"), (*PLACE, "a-1")]
    kept = await store.aget((*PLACE, "a-0"), "1-r")
    assert kept.value == {"turn": 1, "owner": "r", "kept": True}
