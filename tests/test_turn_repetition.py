"""What a prompt tells already does not come as a memory: told facts, alike exchanges, sentences of replies."""

import pytest

from questbook.graphs.turn.repetition import Told
from questbook.memory.recall.query import Recalled

OLD_BRIDGE = "The old bridge of Brindle burned down."


@pytest.mark.parametrize(("told", "sentence", "has"), [
    ("The old bridge of Brindle burned down.", OLD_BRIDGE, True),
    ("In the night the old wooden bridge of Brindle burned down to the water.", OLD_BRIDGE, True),
    ("Rain fell. The old bridge of Brindle burned down!\nThen it was still.", OLD_BRIDGE, True),
    ("The old bridge of Brindle", OLD_BRIDGE, False),
    ("Brindle burned down the old bridge.", OLD_BRIDGE, False),  # in their order
    ("Rain fell on the old bridge. Brindle burned down.", OLD_BRIDGE, False),  # in one sentence
    ("The old bridge of Brindle never burned down.", OLD_BRIDGE, False),
    ("The old bridge of Brindle burned down.", "The old bridge of Brindle never burned down.", False),
    ("The old bridge of Brindle burned down?", OLD_BRIDGE, False),  # what is asked is not told
    ("If the old bridge of Brindle burned down, we would swim.", OLD_BRIDGE, False),  # nor what is supposed
    ("The bridge burned.", "The bridge burned.", False),  # too little to say that it is the same
    ("The stone bridge burned.", "The stone bridge burned.", True),
    ("", OLD_BRIDGE, False),
])  # fmt: skip
def test_a_sentence_is_told_if_one_sentence_has_its_words_in_their_order_and_means_the_same(told, sentence, has):
    assert Told([told]).has(sentence) is has
    assert Told(["Rain fell.", told]).has(sentence) is has


def kept(told, *records):
    return [record.key for record in told.new([Recalled(str(n), record) for n, record in enumerate(records)])]


@pytest.mark.parametrize(("kind", "more", "stays"), [
    ("event", {}, False), ("trait", {}, False), ("promise", {}, False), ("secret", {}, False), ("rumour", {}, True),
    ("insight", {}, True), ("preference", {}, True), ("lore", {}, True), ("event", {"claimed_by": "Oda"}, True),
    ("event", {"claimed_by": None}, False),
])  # fmt: skip
def test_a_fact_that_is_told_goes_but_for_what_says_whose_word_it_is(kind, more, stays):
    fact = {"kind": kind, "text": OLD_BRIDGE, **more}
    assert kept(Told([OLD_BRIDGE]), fact) == ["0"] * stays
    assert kept(Told(["Rain fell."]), fact) == ["0"]


def exchange(text, day=1):
    return {"text": text, "day": day}


WALK = "I walk to the red mill at the river with Goran and 3 geese."


@pytest.mark.parametrize(("first", "second", "both"), [
    (exchange(WALK), exchange(WALK), False),
    (exchange(WALK), exchange(WALK.replace("red", "old red")), False),
    (exchange(WALK), {**exchange(WALK), "kind": "exchange"}, False),
    (exchange(WALK), exchange(WALK, day=2), True),
    (exchange(WALK, day={"month": 3}), exchange(WALK, day={"month": 3}), False),
    (exchange("👍"), exchange("👍"), False),
    (exchange(WALK), exchange(WALK.replace("3", "5")), True),
    (exchange(WALK), exchange(WALK.replace("Goran", "Oda")), True),
    (exchange(WALK), exchange(WALK.replace(" with Goran", "")), True),  # a name that the other lacks
    (exchange(WALK.replace(" with Goran", "")), exchange(WALK), True),
    (exchange(WALK), exchange(WALK.replace("I walk", "I never walk")), True),
    (exchange(WALK), exchange("I walk to the red mill with Goran and 3 geese, sing songs, and sleep in hay."), True),
])  # fmt: skip
def test_of_exchanges_that_are_nearly_the_same_the_first_comes(first, second, both):
    assert kept(Told(), first, second) == ["0", "1"][: 1 + both]


def test_exchanges_are_compared_across_calls_and_64_of_them_at_most():
    told = Told()
    assert kept(told, exchange(WALK)) == ["0"]
    assert kept(told, exchange(WALK)) == []
    many = [exchange(f"Goose {n} swims past mill {n} at noon.") for n in range(70)]
    assert len(kept(Told(), *many, many[0], many[69])) == 72
    assert len(kept(Told(), *many[:63], many[0])) == 63


def said(key, reply, **more):
    return {"key": key, "kind": "exchange", "player": "Go on.", "reply": reply, **more}


def fact(key, text, **more):
    return {"key": key, "kind": "event", "text": text, **more}


def test_a_reply_that_tells_a_fact_names_it_and_the_fact_goes():
    memories = [
        said("e1", f"{OLD_BRIDGE} It was loud."), said("e2", f"You see it. {OLD_BRIDGE}"), fact("f1", OLD_BRIDGE),
        fact("f2", OLD_BRIDGE, kind="rumour"), fact("f3", OLD_BRIDGE, claimed_by="Oda"),
        fact("f4", "The mill of Brindle turns again."), fact("f5", "It was loud."), said("e3", ""),
    ]  # fmt: skip
    rest = Told().rest_of(memories)
    assert [memory["key"] for memory in rest] == ["e1", "e2", "f2", "f3", "f4", "f5", "e3"]
    assert [memory.get("tells") for memory in rest[:2]] == [["f1"], []], "the first that tells it"
    assert all("tells" not in memory for memory in rest[2:])
    assert rest[0]["reply"] == memories[0]["reply"]


@pytest.mark.parametrize(("reply", "left"), [
    (f"{OLD_BRIDGE} The mayor wept on the stairs.", "… The mayor wept on the stairs."),
    (f"The mayor wept on the stairs. {OLD_BRIDGE} {OLD_BRIDGE} Geese flew over us.",
     "The mayor wept on the stairs. … Geese flew over us."),
    ("The mayor wept on the stairs.", "The mayor wept on the stairs."),
    ("Well…  So be it.", "Well…  So be it."),
    (f"{OLD_BRIDGE} He wept.", ""), (OLD_BRIDGE, ""),
])  # fmt: skip
def test_sentences_of_a_reply_that_the_prompt_tells_are_left_out(reply, left):
    [memory] = Told([OLD_BRIDGE]).rest_of([said("e", reply)])
    assert (memory["reply"], memory["player"], memory["tells"]) == (left, "Go on.", [])
