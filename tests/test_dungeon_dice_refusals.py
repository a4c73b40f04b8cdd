"""What is no roll, or too much of one, is refused with what was expected, and moves no dice."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from loaded_dice import throw

from questbook.graphs.dungeon_master.rules import dice
from questbook.graphs.dungeon_master.rules.dice import DiceError, roll


@pytest.mark.parametrize("expression", ["2d20kh1", "2d20", "1d6", "1d20kh1", "d%"])
def test_advantage_needs_a_single_d20(expression):
    with pytest.raises(DiceError, match=r"no single d20 for disadvantage\. Write 1d20"):
        throw(expression, advantage="disadvantage")


@pytest.mark.parametrize("advantage", ["", "ADV", True, 1, ["advantage"]])
def test_advantage_has_two_names(advantage):
    with pytest.raises(DiceError, match="Use 'advantage' or 'disadvantage'"):
        throw("1d20", advantage=advantage)


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        ("", "rolls 0 dice"),
        ("   ", "rolls 0 dice"),
        ("20", "'20' rolls 0 dice"),
        ("1d20+", "after '1d20\\+'"),
        ("*1d20", "at the start"),
        ("(1d6", "after '\\(1d6': expected '\\)'"),
        ("1d6)", "after '1d6': expected .* or the end"),
        ("1d6()", "after '1d6': expected .* or the end"),
        ("()+1d6", "after '\\('"),
        ("1d6*", "after '1d6\\*'"),
        ("1d6d6", "after '1d6': expected .* or the end"),
        ("3(1d6)", "after '3': expected .* or the end"),
        ("1d6 6", "'6 6'"),
        ("1 0d6", "'1 0'"),
        ("0d6", "0d6 rolls no dice"),
        ("1d0", "1d0 has 0 sides"),
        ("1d1001", "has 1001 sides"),
        ("d", "'d', which is no part of a roll"),
        ("4d6k3", "'k3', which is no part"),
        ("1d20/2", "'/2'"),
        ("1d20 for luck", "'forluck'"),
        ("__import__('os')", "no part of a roll"),
        ("\ud800", "no part of a roll"),
        ("２d６", "no part of a roll"),
        ("4d6kh0", "Use 1 to 4"),
        ("4d6kh5", "Use 1 to 4"),
        ("101d6", "rolls 101 dice"),
        ("60d6+41d4", "rolls 101 dice"),
        ("1d20+1000001", "1000001 is too large"),
        ("1d6*1000000*1000000", "can pass 1,000,000,000"),
        ("1d6-1000000*1000000", "can pass 1,000,000,000"),
        ("(" * 21 + "1d6" + ")" * 21, "at most 20 levels"),
        ("-+" * 11 + "1d6", "at most 20 levels"),
        ("1d6" + "+1" * 49, "has 101 characters"),
        pytest.param("1d6+" * 100_000, "has 400,000 characters", id="long"),
    ],
)
def test_refuses_and_says_why(expression, says):
    rng = Random(1)
    before = rng.getstate()
    with pytest.raises(DiceError, match=says) as caught:
        roll(expression, rng=rng)
    assert rng.getstate() == before, "a refused roll must not move the dice"
    message = str(caught.value)
    assert "such as" in message
    assert len(message) < 500
    message.encode()


@pytest.mark.parametrize(
    "expression",
    [
        "100d1000",
        "1d20+1000000",
        "1d6" + "+1" * 48 + " ",
        "(" * 20 + "1d6" + ")" * 20,
        "-" * 20 + "1d6",
        "1d1000*1000000",
    ],
)
def test_allows_up_to_the_limit(expression):
    assert abs(roll(expression, rng=Random(1)).total) <= dice.MAX_TOTAL


@pytest.mark.parametrize("dc", [1_000_001, -1_000_001, pytest.param(10**5000, id="huge")])
def test_refuses_a_dc_out_of_range(dc):
    with pytest.raises(DiceError, match="DC"):
        throw("1d20", dc=dc)


def test_a_message_shows_up_to_80_characters_of_what_was_sent_and_marks_what_is_cut():
    with pytest.raises(DiceError) as whole:
        throw("1d20", advantage="x" * 78)
    assert "'" + "x" * 78 + "'. Use" in str(whole.value)
    with pytest.raises(DiceError) as cut:
        throw("1d20", advantage="x" * 79)
    assert "'" + "x" * 78 + "…. Use" in str(cut.value)


def test_one_error_class():
    assert issubclass(DiceError, ValueError)


@given(st.one_of(st.text(), st.text("0123456789d%khpl+-*() ", max_size=40)))
def test_any_text_gives_a_roll_or_a_dice_error(text):
    try:
        result = roll(text, rng=Random(1), dc=10)
    except DiceError as error:
        str(error).encode()
        return
    assert roll(result.expression, rng=Random(1), dc=10) == result, "normalising keeps the meaning"
