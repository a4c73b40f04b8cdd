"""A roll as a record of state: a dictionary that says all of it, and is read back only when it is whole."""

import json
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from loaded_dice import flat, throw

from questbook.graphs.dungeon_master.rules.dice import DiceError, Roll, roll


@given(
    text=flat,
    reason=st.text(),
    dc=st.none() | st.integers(-50, 50),
    advantage=st.sampled_from([None, "advantage", "disadvantage"]),
)
def test_dict_round_trip(text, reason, dc, advantage):
    try:
        result = roll(text, rng=Random(3), reason=reason, dc=dc, advantage=advantage)
    except DiceError:
        return
    data = result.as_dict()
    assert Roll.from_dict(data) == result
    assert Roll.from_dict(json.loads(json.dumps(data))) == result
    assert json.loads(json.dumps(data)) == data


def test_the_dict_says_all():
    assert throw("1d20+3", 5, 17, reason="climb", dc=15, advantage="advantage").as_dict() == {
        "expression": "1d20+3",
        "total": 20,
        "breakdown": "(~~5~~, 17) + 3",
        "dice": [{"sides": 20, "values": [[5, False], [17, True]]}],
        "reason": "climb",
        "dc": 15,
        "advantage": "advantage",
        "success": True,
        "natural": 17,
    }


@pytest.mark.parametrize(
    "change",
    [
        {"total": "many"},
        {"total": None},
        {"dice": 3},
        {"dice": [{"sides": 6}]},
        {"dice": [{"sides": 6, "values": [1]}]},
        {"advantage": "both"},
        {"dc": "hard"},
        {"total": float("inf")},
    ],
)
def test_a_damaged_record_is_refused(change):
    with pytest.raises(DiceError, match="not a recorded roll"):
        Roll.from_dict(throw("1d6", 3).as_dict() | change)


@pytest.mark.parametrize("data", [{}, [], None, "1d6", {"total": 3}])
def test_something_else_is_not_a_record(data):
    with pytest.raises(DiceError, match="not a recorded roll"):
        Roll.from_dict(data)
