"""A roll as a record of state: a dictionary that says all of it."""

import json
from random import Random

from hypothesis import given
from hypothesis import strategies as st
from loaded_dice import flat, throw

from questbook.graphs.dungeon_master.rules.dice import DiceError, roll


@given(
    text=flat,
    reason=st.text(),
    dc=st.none() | st.integers(-50, 50),
    advantage=st.sampled_from([None, "advantage", "disadvantage"]),
)
def test_the_dict_is_json(text, reason, dc, advantage):
    try:
        result = roll(text, rng=Random(3), reason=reason, dc=dc, advantage=advantage)
    except DiceError:
        return
    data = result.as_dict()
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
