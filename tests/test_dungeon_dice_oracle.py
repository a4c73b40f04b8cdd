"""The library d20 as the oracle: the same text and the same faces give the same total and the same kept dice."""

import random
from random import Random
from types import SimpleNamespace

import d20
import pytest
from hypothesis import given
from hypothesis import strategies as st
from loaded_dice import flat, kept, throw

from questbook.graphs.dungeon_master.rules import dice
from questbook.graphs.dungeon_master.rules.dice import DiceError, roll


def by_d20(text, faces, advantage=None):
    """What d20 makes of these faces: total and kept flags in the order the dice fell."""
    falling = iter(faces)

    def randrange(sides):
        face = next(falling)
        assert 1 <= face <= sides
        return face - 1  # d20 adds one

    # d%: d20 rolls tens from 0; the comparison is of grammar and arithmetic, so it gets the die that we roll.
    text = text.replace("d%", "d100")
    adv = {None: d20.AdvType.NONE, "advantage": d20.AdvType.ADV, "disadvantage": d20.AdvType.DIS}[advantage]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(d20.expression, "random", SimpleNamespace(randrange=randrange))
        result = d20.Roller().roll(text, advantage=adv)
    assert next(falling, None) is None, "both roll the same number of dice"
    flags = []

    def visit(node):
        if isinstance(node, d20.Dice):
            flags.append([die.kept for die in node.values])
        for child in node.children:
            visit(child)

    visit(result.expr)
    return result.total, flags, result.crit


def assert_as_d20(text, rng, advantage=None):
    result = roll(text, rng=rng, advantage=advantage)
    faces = [face for group in result.dice for face, _ in group.values]
    total, flags, crit = by_d20(result.expression, faces, advantage)
    assert (result.total, kept(result)) == (total, flags), text
    return result, crit


def random_expression(rng, depth=0):
    """A grammatical expression with at least one dice term; spaces and case vary."""

    def dice_term():
        count, sides = rng.randint(1, 6), rng.choice([1, 2, 3, 4, 6, 8, 10, 12, 20, 100, "%"])
        picks = [
            f"{rng.choice(['kh', 'kl', 'ph', 'pl'])}{rng.randint(1, count)}" for _ in range(rng.choice([0, 0, 1, 2, 3]))
        ]
        return f"{count if count > 1 or rng.random() < 0.5 else ''}d{sides}{''.join(picks)}"

    def factor():
        chance = rng.random()
        if chance < 0.2 and depth < 3:
            return f"({random_expression(rng, depth + 1)})"
        if chance < 0.35:
            return f"-{factor()}"
        return dice_term() if chance < 0.7 else str(rng.randint(0, 40))

    parts = [factor() for _ in range(rng.randint(0, 3))]
    parts.insert(rng.randint(0, len(parts)), dice_term())
    text = parts[0]
    for part in parts[1:]:
        text += rng.choice(["+", "-", "*", " + ", " - "]) + part
    return text.upper() if rng.random() < 0.1 else text


def test_totals_and_kept_dice_agree_with_d20():
    rng = Random(2022)
    compared = picked = 0
    while compared < 800:
        text = random_expression(rng)
        if len(text) > dice.MAX_LENGTH:
            continue
        result, _ = assert_as_d20(text, rng)
        compared += 1
        picked += any(not flag for group in kept(result) for flag in group)
    assert picked > 200


@given(text=flat, seed=st.integers(0, 2**32))
def test_precedence_agrees_with_d20(text, seed):
    try:
        roll(text, rng=Random(seed))
    except DiceError as error:
        assert "can pass" in str(error)  # noqa: PT017
        return
    assert_as_d20(text, Random(seed))


@pytest.mark.parametrize("advantage", ["advantage", "disadvantage"])
@pytest.mark.parametrize("text", ["1d20", "d20+5", "1d20-1d4", "1d20*2+1d20", "1d20+1d20kh1"])
def test_advantage_agrees_with_d20(text, advantage):
    rng = Random(5)
    for _ in range(50):
        result, crit = assert_as_d20(text, rng, advantage)
        if result.natural is not None:
            assert (result.natural == 20) == (crit == d20.CritType.CRIT)
            assert (result.natural == 1) == (crit == d20.CritType.FAIL)


def test_percentile_dice_differ_from_d20():
    rng = Random(3)
    ours = {roll("1d%", rng=rng).total for _ in range(3000)}
    random.seed(3)
    theirs = {d20.roll("1d%").total for _ in range(300)}
    assert ours == set(range(1, 101))
    assert theirs == set(range(0, 100, 10))


@pytest.mark.parametrize("text", ["1d20+", "(1d6", "1d6)", "4d6k", "1d", "1d6d6", "0d", "1d6**2", "()*", "d20kh"])
def test_what_d20_cannot_read_is_refused_except_a_bare_pick(text):
    with pytest.raises(d20.RollSyntaxError):
        d20.roll(text)
    if text == "d20kh":  # ours alone: no number means one
        assert throw(text, 4).total == 4
    else:
        with pytest.raises(DiceError):
            throw(text)
