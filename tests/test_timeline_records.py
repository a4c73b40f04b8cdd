"""Records as types: what is read of stored JSON, and what is stored of them."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from questbook.memory.timeline.records import Exchange, Record, Stamp, order_of

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


@pytest.mark.parametrize("turn", [True, "3", None, 2.0])
def test_a_turn_that_is_no_whole_number_is_unknown(turn):
    assert Stamp.from_json({"branch": "a", "turn": turn, "session": turn, "day": turn}) == Stamp("a", 0)


def test_a_stamp_without_a_branch_belongs_to_no_timeline():
    assert Stamp(said_at="2026-01-01").to_json() == {"said_at": "2026-01-01"}


def test_the_order_of_turns_as_text_is_their_order_as_numbers():
    turns = [1, 9, 10, 99, 100, 12_345_678]
    assert sorted(map(order_of, turns)) == [order_of(turn) for turn in turns]


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
