"""Dice that fall as a test says, and expressions of them as hypothesis makes them up."""

from random import Random

from hypothesis import strategies as st

from questbook.graphs.dungeon_master.rules.dice import roll


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


# Expressions, as (text, lowest total, highest total).


@st.composite
def dice_terms(draw):
    count, sides = draw(st.integers(1, 6)), draw(st.sampled_from([1, 2, 4, 6, 8, 10, 12, 20, 100, 1000]))
    picks = draw(st.lists(st.tuples(st.sampled_from(["kh", "kl", "ph", "pl"]), st.integers(1, count)), max_size=3))
    text = f"{'' if count == 1 and draw(st.booleans()) else count}d{sides}"
    return text + "".join(f"{pick}{number}" for pick, number in picks), 0 if picks else count, count * sides


def combine(operator, left, right):
    (a, a_low, a_high), (b, b_low, b_high) = left, right
    if operator == "*":
        corners = [x * y for x in (a_low, a_high) for y in (b_low, b_high)]
    elif operator == "+":
        corners = [a_low + b_low, a_high + b_high]
    else:
        corners = [a_low - b_high, a_high - b_low]
    return f"({a}){operator}({b})", min(corners), max(corners)


def negate(term):
    text, low, high = term
    return f"-({text})", -high, -low


leaves = st.one_of(dice_terms(), st.integers(0, 30).map(lambda n: (str(n), n, n)))
bounded = st.recursive(
    leaves,
    lambda terms: st.one_of(st.builds(combine, st.sampled_from("+-*"), terms, terms), terms.map(negate)),
    max_leaves=4,
)
# Texts alone, and without parentheses around each part, so that precedence and association are tried.
flat = st.tuples(
    dice_terms(), st.lists(st.tuples(st.sampled_from(["+", "-", "*", "+-", "*-", "++"]), leaves), max_size=4)
).map(lambda chain: chain[0][0] + "".join(operator + term[0] for operator, term in chain[1]))
