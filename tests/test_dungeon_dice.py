"""What a roll comes to and how it is printed, with advantage, against a DC, and by chance."""

import random
import re
from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from loaded_dice import bounded, kept, throw

from questbook.graphs.dungeon_master.rules.dice import DiceError, DiceGroup, roll


@pytest.mark.parametrize(
    ("expression", "faces", "total", "printed"),
    [
        ("1d20", [12], 12, "1d20 = (12) = 12"),
        ("d20", [12], 12, "d20 = (12) = 12"),
        ("D20 + 3", [12], 15, "d20+3 = (12) + 3 = 15"),
        ("2d20kh1+3", [17, 5], 20, "2d20kh1+3 = (17, ~~5~~) + 3 = 20"),
        ("2d20kh+3", [5, 17], 20, "2d20kh+3 = (~~5~~, 17) + 3 = 20"),
        ("2d20kl1", [17, 5], 5, "2d20kl1 = (~~17~~, 5) = 5"),
        ("4d6kh3", [1, 6, 3, 4], 13, "4d6kh3 = (~~1~~, 6, 3, 4) = 13"),
        ("4d6pl1", [1, 6, 3, 4], 13, "4d6pl1 = (~~1~~, 6, 3, 4) = 13"),
        ("4d6ph", [1, 6, 3, 4], 8, "4d6ph = (1, ~~6~~, 3, 4) = 8"),
        ("4d6ph1pl1", [1, 6, 3, 4], 7, "4d6ph1pl1 = (~~1~~, ~~6~~, 3, 4) = 7"),
        ("4d6kh1kl1", [1, 6, 3, 4], 7, "4d6kh1kl1 = (1, 6, ~~3~~, ~~4~~) = 7"),
        ("4d6kh3pl1", [1, 6, 3, 4], 10, "4d6kh3pl1 = (~~1~~, 6, ~~3~~, 4) = 10"),
        ("2d6ph2", [3, 4], 0, "2d6ph2 = (~~3~~, ~~4~~) = 0"),
        ("d%", [100], 100, "d% = (100) = 100"),
        ("1d% - 1", [1], 0, "1d%-1 = (1) - 1 = 0"),
        ("2d%kl1", [70, 31], 31, "2d%kl1 = (~~70~~, 31) = 31"),
        ("1d6+2d4*3", [5, 1, 2], 14, "1d6+2d4*3 = (5) + (1, 2) * 3 = 14"),
        ("(1d6+2)*3", [5], 21, "(1d6+2)*3 = ((5) + 2) * 3 = 21"),
        ("10-1d4-1", [3], 6, "10-1d4-1 = 10 - (3) - 1 = 6"),
        ("-1d4", [3], -3, "-1d4 = -(3) = -3"),
        ("+1d4++2", [3], 5, "+1d4++2 = +(3) + +2 = 5"),
        ("--1d4*-2", [3], -6, "--1d4*-2 = --(3) * -2 = -6"),
        (" 2 d 6\tkh 1\n+ 1 ", [2, 4], 5, "2d6kh1+1 = (~~2~~, 4) + 1 = 5"),
        ("1d20 − 2 × 3", [12], 6, "1d20-2*3 = (12) - 2 * 3 = 6"),
        ("1d6+007", [1], 8, "1d6+007 = (1) + 007 = 8"),
    ],
)
def test_rolls_and_prints(expression, faces, total, printed):
    result = throw(expression, *faces)
    assert result.total == total
    assert str(result) == printed


def test_of_equal_faces_the_first_is_kept():
    assert kept(throw("3d6kh1", 4, 4, 4)) == [[True, False, False]]
    assert kept(throw("3d6kl2", 4, 4, 4)) == [[True, True, False]]


@pytest.mark.parametrize(
    ("dc", "success", "ending"),
    [(15, True, "vs DC 15: success"), (20, True, "vs DC 20: success"), (21, False, "vs DC 21: failure")],
)
def test_meeting_the_dc_is_enough(dc, success, ending):
    result = throw("2d20kh1+3", 17, 5, dc=dc)
    assert result.success is success
    assert str(result) == f"2d20kh1+3 = (17, ~~5~~) + 3 = 20 {ending}"


def test_without_a_dc_there_is_no_verdict():
    assert throw("1d20", 20).success is None


@pytest.mark.parametrize(
    ("expression", "faces", "natural"),
    [
        ("1d20+5", [20], 20),
        ("2d20kl1", [20, 1], 1),
        ("1d20+1d4", [7, 4], 7),
        ("1d20+1d20", [7, 4], None),
        ("2d20", [7, 4], None),
        ("1d6", [6], None),
    ],
)
def test_natural_is_the_one_kept_d20(expression, faces, natural):
    assert throw(expression, *faces).natural == natural


def test_advantage_rolls_the_single_d20_twice_and_keeps_the_higher():
    result = throw("1d20+3", 5, 17, advantage="advantage", dc=20)
    assert result.dice == (DiceGroup(20, ((5, False), (17, True))),)
    assert (result.total, result.natural, result.success) == (20, 17, True)
    assert result.expression == "1d20+3"
    assert str(result) == "1d20+3 with advantage = (~~5~~, 17) + 3 = 20 vs DC 20: success"


def test_disadvantage_keeps_the_lower():
    result = throw("d20", 5, 17, advantage="disadvantage")
    assert (result.total, result.natural) == (5, 5)
    assert str(result) == "d20 with disadvantage = (5, ~~17~~) = 5"


def test_advantage_touches_one_d20_only():
    result = throw("1d6+1d20+1d20", 3, 5, 17, 9, advantage="advantage")
    assert kept(result) == [[True], [False, True], [True]]
    assert result.total == 3 + 17 + 9


def test_advantage_counts_its_second_die():
    throw("99d6+1d20", *[1] * 100)
    with pytest.raises(DiceError, match="rolls 101 dice"):
        throw("99d6+1d20", advantage="advantage")


def test_same_seed_same_rolls():
    def game(seed):
        rng = Random(seed)
        return [str(roll("4d6kh3+1d20", rng=rng)) for _ in range(20)]

    assert game(7) == game(7)
    assert game(7) != game(8)


def test_leaves_the_global_random_alone():
    before = random.getstate()
    roll("100d6", rng=Random(1))
    assert random.getstate() == before


# Critical values of chi-square for p = 0.001 and sides - 1 degrees of freedom.
@pytest.mark.parametrize(("sides", "critical"), [("6", 20.52), ("20", 43.82), ("%", 148.23)])
def test_every_face_is_as_likely(sides, critical):
    rng = Random(20)
    faces = Counter(face for _ in range(400) for face, _ in roll(f"100d{sides}", rng=rng).dice[0].values)
    n = 100 if sides == "%" else int(sides)
    assert set(faces) == set(range(1, n + 1))
    expected = 40_000 / n
    assert sum((count - expected) ** 2 / expected for count in faces.values()) < critical


@given(term=bounded, seed=st.integers(0, 2**32))
def test_totals_stay_in_range(term, seed):
    text, low, high = term
    try:
        result = roll(text, rng=Random(seed))
    except DiceError as error:
        assert re.search("rolls 0 dice|can pass|characters", str(error))  # noqa: PT017
        return
    assert low <= result.total <= high
    for group in result.dice:
        assert all(1 <= face <= group.sides for face, _ in group.values)
