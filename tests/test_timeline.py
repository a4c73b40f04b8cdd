"""Timelines: who owns a turn, and keys that make writing twice writing once."""

import pytest

from memory.timeline import branch_of, record_key


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
