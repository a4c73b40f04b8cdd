"""Dice: what a roll comes to and how it is printed, as the library d20 has it; and what is refused, and why."""

from collections import Counter
from dataclasses import replace
from random import Random
from types import SimpleNamespace

import d20
import pytest
from hypothesis import given
from hypothesis import strategies as st

from questbook.graphs.dungeon_master import dice
from questbook.graphs.dungeon_master.dice import DiceError, DiceGroup, roll


class Loaded(Random):
    """A random source that rolls the given faces."""

    def __init__(self, *faces):
        super().__init__(0)
        self.faces = list(faces)

    def randint(self, a, b):
        face = self.faces.pop(0)
        assert a <= face <= b
        return face


def throw(expression, *faces, **options):
    """Roll dice that fall as `faces` say."""
    return roll(expression, rng=Loaded(*faces), **options)


def kept(result):
    """For each die of each group: whether it counts."""
    return [[flag for _, flag in group.values] for group in result.dice]


@pytest.mark.parametrize(
    ("expression", "faces", "total", "printed"),
    [
        ("1d20", [12], 12, "1d20 = (12) = 12"), ("D20 + 3", [12], 15, "d20+3 = (12) + 3 = 15"),
        ("2d20kh1+3", [17, 5], 20, "2d20kh1+3 = (17, ~~5~~) + 3 = 20"),
        ("2d20kl1", [17, 5], 5, "2d20kl1 = (~~17~~, 5) = 5"),
        ("4d6kh3", [1, 6, 3, 4], 13, "4d6kh3 = (~~1~~, 6, 3, 4) = 13"),
        ("4d6ph", [1, 6, 3, 4], 8, "4d6ph = (1, ~~6~~, 3, 4) = 8"),
        ("4d6ph1pl1", [1, 6, 3, 4], 7, "4d6ph1pl1 = (~~1~~, ~~6~~, 3, 4) = 7"),
        ("4d6kh1kl1", [1, 6, 3, 4], 7, "4d6kh1kl1 = (1, 6, ~~3~~, ~~4~~) = 7"),
        ("4d6kh3pl1", [1, 6, 3, 4], 10, "4d6kh3pl1 = (~~1~~, 6, ~~3~~, 4) = 10"),
        ("2d6ph2", [3, 4], 0, "2d6ph2 = (~~3~~, ~~4~~) = 0"), ("d%", [100], 100, "d% = (100) = 100"),
        ("1d6+2d4*3", [5, 1, 2], 14, "1d6+2d4*3 = (5) + (1, 2) * 3 = 14"),
        ("(1d6+2)*3", [5], 21, "(1d6+2)*3 = ((5) + 2) * 3 = 21"), ("10-1d4-1", [3], 6, "10-1d4-1 = 10 - (3) - 1 = 6"),
        ("-1d4", [3], -3, "-1d4 = -(3) = -3"), ("--1d4*-2", [3], -6, "--1d4*-2 = --(3) * -2 = -6"),
        (" 2 d 6\tkh 1\n+ 1 ", [2, 4], 5, "2d6kh1+1 = (~~2~~, 4) + 1 = 5"),
        ("1d20 − 2 × 3", [12], 6, "1d20-2*3 = (12) - 2 * 3 = 6"),
    ],
)  # fmt: skip
def test_rolls_and_prints(expression, faces, total, printed):
    result = throw(expression, *faces)
    assert result.total == total
    assert str(result) == printed


@pytest.mark.parametrize(
    ("dc", "success", "ending"),
    [(15, True, "vs DC 15: success"), (20, True, "vs DC 20: success"), (21, False, "vs DC 21: failure")],
)
def test_meeting_the_dc_is_enough(dc, success, ending):
    result = throw("2d20kh1+3", 17, 5, dc=dc)
    assert result.success is success
    assert str(result) == f"2d20kh1+3 = (17, ~~5~~) + 3 = 20 {ending}"


@pytest.mark.parametrize(
    ("reason", "foe", "words"),
    [
        ("Longsword against the hound", False, ("hit", "miss")), ("The pike bites at you", True, ("hit", "miss")),
        ("Stealth along the river", False, ("success", "failure")), ("It smells you", True, ("reached", "not reached")),
        ("Insight: will the hound attack?", False, ("success", "failure")),
    ],
)  # fmt: skip
def test_an_attack_hits_or_misses_and_anything_else_does_not(reason, foe, words):
    told = [str(replace(throw("1d20", 10, dc=dc), reason=reason, foe=foe)) for dc in (10, 11)]
    assert tuple(text.rpartition(": ")[2] for text in told) == words


@pytest.mark.parametrize(
    ("expression", "faces", "natural"),
    [
        ("1d20+5", [20], 20), ("2d20kl1", [20, 1], 1), ("1d20+1d4", [7, 4], 7), ("1d20+1d20", [7, 4], None),
        ("2d20", [7, 4], None), ("1d6", [6], None),
    ],
)  # fmt: skip
def test_natural_is_the_one_kept_d20(expression, faces, natural):
    assert throw(expression, *faces).natural == natural


def test_advantage_rolls_the_single_d20_twice_and_keeps_the_higher():
    result = throw("1d20+3", 5, 17, advantage="advantage", dc=20)
    assert result.dice == (DiceGroup(20, ((5, False), (17, True))),)
    assert (result.total, result.natural, result.success) == (20, 17, True)
    assert result.expression == "1d20+3"
    assert str(result) == "1d20+3 with advantage = (~~5~~, 17) + 3 = 20 vs DC 20: success"


def test_advantage_counts_its_second_die():
    throw("99d6+1d20", *[1] * 100)
    with pytest.raises(DiceError, match="rolls 101 dice"):
        throw("99d6+1d20", advantage="advantage")


# Critical values of chi-square for p = 0.001 and sides - 1 degrees of freedom.
@pytest.mark.parametrize(("sides", "critical"), [("6", 20.52), ("20", 43.82), ("%", 148.23)])
def test_every_face_is_as_likely(sides, critical):
    rng, n = Random(20), 100 if sides == "%" else int(sides)
    faces = Counter(face for _ in range(400) for face, _ in roll(f"100d{sides}", rng=rng).dice[0].values)
    assert set(faces) == set(range(1, n + 1))
    assert sum((count - 40_000 / n) ** 2 * n / 40_000 for count in faces.values()) < critical


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


@pytest.mark.parametrize("advantage", ["advantage", "disadvantage"])
@pytest.mark.parametrize("text", ["1d20", "d20+5", "1d20-1d4", "1d20*2+1d20", "1d20+1d20kh1"])
def test_advantage_agrees_with_d20(text, advantage):
    rng = Random(5)
    for _ in range(50):
        result, crit = assert_as_d20(text, rng, advantage)
        if result.natural is not None:
            assert (result.natural == 20) == (crit == d20.CritType.CRIT)
            assert (result.natural == 1) == (crit == d20.CritType.FAIL)


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
        "foe": False,
    }


@pytest.mark.parametrize("expression", ["2d20kh1", "2d20", "1d6", "1d20kh1", "d%"])
def test_advantage_needs_a_single_d20(expression):
    with pytest.raises(DiceError, match=r"no single d20 for disadvantage\. Write 1d20"):
        throw(expression, advantage="disadvantage")


@pytest.mark.parametrize(("expression", "says"), [
    ("", "rolls 0 dice"), ("20", "'20' rolls 0 dice"), ("1d20+", "after '1d20\\+'"), ("*1d20", "at the start"),
    ("(1d6", "after '\\(1d6': expected '\\)'"), ("1d6)", "after '1d6': expected .* or the end"),
    ("1d6()", "after '1d6': expected .* or the end"), ("1d6d6", "after '1d6': expected .* or the end"),
    ("1d6 6", "'6 6'"), ("1 0d6", "'1 0'"), ("1d0", "1d0 has 0 sides"), ("1d1001", "has 1001 sides"),
    ("d", "'d', which is no part of a roll"), ("4d6k3", "'k3', which is no part"), ("1d20/2", "'/2'"),
    ("1d20 for luck", "'forluck'"), ("__import__('os')", "no part of a roll"), ("\ud800", "no part of a roll"),
    ("２d６", "no part of a roll"), ("4d6kh5", "Use 1 to 4"), ("4d6pl0", "Use 1 to 4"), ("101d6", "rolls 101 dice"),
    ("1d20+1000001", "1000001 is too large"), ("1d6*1000000*1000000", "can pass 1,000,000,000"),
    ("-1d6*1000000*1000000", "can pass 1,000,000,000"),
    ("(" * 21 + "1d6" + ")" * 21, "at most 20 levels"), ("-" * 21 + "1d6", "at most 20 levels"),
    ("(-" * 10 + "(1d6" + ")" * 11, "at most 20 levels"), ("1d6" + "+1" * 49, "has 101 characters"),
    pytest.param("1d6+" * 100_000, "has 400,000 characters", id="long"),
])  # fmt: skip
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


EXAMPLES = "such as 1d20+3, 2d20kh1, 4d6pl1 or d%."


@pytest.mark.parametrize(("expression", "remedy"), [
    ("20", f"Use 1 to 100 in all, {EXAMPLES}"), ("1d20+", f"expected dice, an integer or '('. Write it {EXAMPLES}"),
    ("(1d6", f"expected ')'. Write it {EXAMPLES}"), ("1d6)", f"expected + - * or the end. Write it {EXAMPLES}"),
    ("1d6 6", f"Write + - or * between two numbers, {EXAMPLES}"), ("1d0", f"Use a die with 1 to 1,000, {EXAMPLES}"),
    ("0d6", f"0d6 rolls no dice. Use 1 to 100, {EXAMPLES}"), ("4d6kh5", "does not roll. Use 1 to 4, such as 4d6kh3."),
    ("1d20+1000001", "Use an integer up to 1,000,000, such as 1d20+3."),
    ("1d6*1000000*1000000", f"Use smaller numbers, {EXAMPLES}"),
    ("-" * 21 + "1d6", f"expected at most 20 levels of parentheses and signs. Write it {EXAMPLES}"),
    ("1d6" + "+1" * 49, f"at most 100 are read. Roll it in parts, {EXAMPLES}"),
    ("1d6/2", f"Use dice (with kh, kl, ph or pl), integers, + - * and parentheses, {EXAMPLES}"),
])  # fmt: skip
def test_a_refusal_ends_with_what_to_write_instead(expression, remedy):
    with pytest.raises(DiceError) as refused:
        throw(expression)
    assert str(refused.value).endswith(remedy)


@pytest.mark.parametrize("reason", [
    "attack", "Attacks Bo", "I strike", "bites", "claw", "stab him", "shoot", "a slash", "swing", "lunge", "longsword",
    "shortbow", "handaxe", "dagger", "spear", "crossbow at the wolf", "greatsword!",
])  # fmt: skip
def test_each_word_for_an_attack_is_known(reason):
    assert str(throw("1d20", 10, dc=10, reason=reason)).endswith("vs DC 10: hit")


@pytest.mark.parametrize("reason", ["clawing up the wall", "a spearhead of ice", "a dagger?", ""])
def test_what_only_sounds_like_an_attack_is_none(reason):
    assert str(throw("1d20", 10, dc=10, reason=reason)).endswith("vs DC 10: success")


@pytest.mark.parametrize(
    "expression",
    [
        "100d1000", "1d20+1000000", "1d6" + "+1" * 48 + " ", "(" * 20 + "1d6" + ")" * 20, "-" * 20 + "1d6",
        "1d1000*1000000",
    ],
)  # fmt: skip
def test_allows_up_to_the_limit(expression):
    assert abs(roll(expression, rng=Random(1)).total) <= dice.MAX_TOTAL


@given(st.one_of(st.text(), st.text("0123456789d%khpl+-*() ", max_size=40)))
def test_any_text_gives_a_roll_or_a_dice_error(text):
    try:
        result = roll(text, rng=Random(1), dc=10)
    except DiceError as error:
        str(error).encode()
        return
    assert roll(result.expression, rng=Random(1), dc=10) == result, "normalising keeps the meaning"
