"""What recall shows of long records: the parts that answer, within a budget, and nothing twice."""

import math
import re

import pytest
from langgraph.store.memory import InMemoryStore
from long_talk import NEEDLE, essay

from questbook.memory.recall.choice import choose, shorten
from questbook.memory.recall.intents import is_standing
from questbook.memory.recall.query import Passage, Query, Reason, Recalled, Weights, said_in
from questbook.memory.recall.recall import recall
from questbook.memory.text.passages import Span
from questbook.memory.timeline.records import Stamp

HERE = ("u", "c", "exchanges")
QUESTION = "Where does the spare cellar key hang?"


async def tell(store, turn, player, reply="Good.", **fields):
    value = {"kind": "exchange", "player": player, "reply": reply, "text": f"{player}\n{reply}"}
    if is_standing(player):
        value["standing"] = True
    await store.aput(HERE, f"k{turn:03}", value | Stamp("a", turn).to_json() | fields)


async def ask(store, question, budget=800, **options):
    return await recall(store, HERE, Query(question, budget=budget, **options))


def cost(record):
    return math.ceil(len(record.excerpt) / 4) + 1


@pytest.fixture
def store():
    return InMemoryStore()


@pytest.mark.parametrize("budget", [200, 800, 2000])
async def test_a_budget_is_never_exceeded_and_is_used(store, budget):
    for turn in range(1, 13):
        await tell(
            store, turn, f"Question {turn}: how is a kettle repaired?", essay(25_000, f"Kettles: see book {turn}.")
        )
    found = await ask(store, "How was the kettle repaired with patience?", budget)
    spent = sum(map(cost, found))
    assert spent <= budget
    assert spent >= 0.75 * budget
    assert all(record.shown for record in found)


@pytest.mark.parametrize("budget", [200, 800])
async def test_a_persons_sentence_in_a_long_message_is_shown(store, budget):
    await tell(store, 1, essay(25_000), essay(25_000, "Nothing of this is new."))
    for turn in range(2, 9):
        await tell(store, turn, f"What of house {turn}?", essay(5_000, f"House {turn} is old."))
    found = await ask(store, QUESTION, budget)
    assert NEEDLE in found[0].words[0]
    assert found[0].excerpt.startswith("…" if "Point 0 " not in found[0].excerpt else "Point 0")
    assert found[0].excerpt.endswith("…")


async def test_a_part_of_a_reply_comes_with_the_first_words_of_the_person(store):
    said = "I would like to hear about the house by the lake, in which my uncle lived " + "for many long years " * 60
    await tell(store, 1, said, essay(25_000))
    [found] = await ask(store, QUESTION, 150)
    player, reply = found.words
    assert player == "I would like to hear about the house by the lake, in which my uncle …"
    assert NEEDLE in reply
    assert reply.startswith("… ")
    assert reply.endswith(" …")
    [tight] = await ask(store, QUESTION, math.ceil(len(reply) / 4) + 1)
    assert tight.words == ("", reply), "where they do not fit, the answer comes alone"


async def test_short_exchanges_come_whole(store):
    await tell(store, 1, "The spare cellar key hangs behind the clock.", "I will remember that.")
    await tell(store, 2, "My cat is called Mia.", "Lovely.")
    found = await ask(store, QUESTION)
    assert found[0].words == ("The spare cellar key hangs behind the clock.", "I will remember that.")
    assert "…" not in found[0].excerpt


async def test_nothing_is_shown_twice(store):
    for turn in range(1, 7):
        await tell(
            store,
            turn,
            f"Always be brief, please. Tell me of key {turn}.",
            essay(5_000, f"Key {turn} is the cellar key."),
        )
    await tell(store, 7, "The same again.", essay(5_000))
    await tell(store, 8, "The same again.", essay(5_000))
    for question in (QUESTION, "List the keys in order.", "Summarize what I asked of keys."):
        found = await ask(store, question, 2000)
        assert len({record.key for record in found}) == len(found)
        assert not {"k007", "k008"} <= {record.key for record in found}, "two that say the same are one"
        for record in found:
            told = re.findall(r"Point \d+ ", record.excerpt)
            assert len(set(told)) == len(told)
            assert record.excerpt.count("Always be brief") <= 1


KEYS = "key of the cellar"


async def keys_of_houses(store, turns=10):
    for turn in range(1, turns + 1):
        await tell(
            store,
            turn,
            f"Today I got the {KEYS} of house {turn}. " + "It is long. " * 60,
            essay(5_000, f"The {KEYS} {turn} is old.", 1000 * turn),
        )


async def test_a_question_for_an_order_gets_one_line_a_turn(store):
    await keys_of_houses(store)
    found = await ask(store, f"List in order when I got the {KEYS}", 2000)
    assert len(found) == 10
    assert all(
        reply == "" and f"house {record.value['turn']}" in player
        for record in found
        for player, reply in [record.words]
    )
    assert all(20 <= len(record.words[0].split()) <= 90 for record in found)
    plain = await ask(store, f"When was it that I got the {KEYS}?", 2000)
    assert any(record.words[1] for record in plain), "parts of replies"


async def test_a_question_for_a_summary_gets_words_of_the_reply_too(store):
    await keys_of_houses(store, 4)
    found = await ask(store, f"Summarize what I told you of each {KEYS}.", 1200)
    assert len(found) == 4
    assert all(record.words[1] for record in found)
    assert all(len(record.words[1].split()) <= 30 for record in found), "twenty-two, and the end of a clause"


async def test_standing_instructions_come_whatever_is_asked(store):
    await tell(store, 1, f"{essay(400, 'My lamp is red.')} Always answer in metric units.", essay(5_000, "Fine."))
    for turn in range(2, 9):
        await tell(store, turn, f"What of house {turn}?", essay(5_000, f"House {turn} has a cellar key."))
    found = await ask(store, QUESTION, 400)
    [standing] = [record for record in found if record.key == "k001"]
    assert "Always answer in metric units." in standing.excerpt
    assert [record.excerpt for record in await ask(store, "Zzz?", 400)] == ["… Always answer in metric units. …"]
    assert [record for record in await recall(store, HERE, Query("Zzz?")) if record.key == "k001"] == []


@pytest.mark.parametrize(("budget", "most"), [(500, 100), (3000, 200)])
async def test_standing_instructions_take_a_fifth_of_the_budget_and_two_hundred_tokens(store, budget, most):
    for turn in range(1, 31):
        await tell(store, turn, f"Always write the word number{turn} after each heading of chapter {turn}, please.")
    found = await ask(store, "Zzz?", budget)
    assert most / 2 <= sum(map(cost, found)) <= most


async def test_a_long_instruction_is_shown_as_far_as_forty_words(store):
    await tell(store, 1, f"Always answer with {'very ' * 100}short sentences.")
    [found] = await ask(store, "Zzz?", 2000)
    assert 40 <= len(found.excerpt.split()) <= 46


async def test_preferences_come_first_for_advice_alone(store):
    await tell(store, 1, "I prefer trains to planes for any trip.")
    await tell(store, 2, "The trip by train took nine hours of the day.")

    async def gained(question):
        on, off = [
            {record.key: record.weight for record in await ask(store, question, weights=weights)}
            for weights in (Weights(), Weights().without("prefers"))
        ]
        return {key: round(on[key] - off[key], 6) for key in on}

    assert await gained("Can you suggest a trip by train?") == {"k001": 0.5, "k002": 0}
    assert await gained("Was there a trip by train?") == {"k001": 0, "k002": 0}
    assert await gained("Did I say that I want a trip by train?") == {"k001": 0, "k002": 0}


async def test_of_many_passages_one_fits_by_accident(store):
    await tell(store, 1, "The cellar is cold.", "Yes.")
    await tell(store, 2, "Well?", essay(25_000, "The cellar is cold. Yes."))
    on, off = [
        await ask(store, "Is the cellar cold?", 2000, weights=weights)
        for weights in (Weights(), Weights().without("chances"))
    ]
    assert [record.key for record in on] == ["k001", "k002"]
    assert on[0].weight == pytest.approx(off[0].weight)
    assert off[1].weight - on[1].weight > 0.2


def test_a_turn_that_is_too_long_is_shown_as_it_began_and_as_it_ended():
    reply = essay(5_000, "This is the middle.")
    record = Recalled("k", {"kind": "exchange", "player": "Tell me about the house.", "reply": reply}, None, 0.0)
    shown = shorten(record, 300, cost)
    assert 200 <= cost(shown) <= 300
    assert shown.words[0] == "Tell me about the house."
    assert shown.words[1].startswith("… ")
    assert reply.endswith(shown.words[1][2:])
    assert shorten(record, 8, cost).words == ("Tell me about the house.", "")
    assert shorten(record, 6, cost) is None
    lore = Recalled("k", {"text": reply}, None, 0.0)
    assert shorten(lore, 300, cost).excerpt.startswith("Point 0 says how a kettle")
    assert reply.endswith(shorten(lore, 300, cost).excerpt.rpartition(" … ")[2])


async def test_of_a_turn_the_part_that_has_the_questions_words_comes_before_one_that_stands_beside_it(store):
    hello = "I greet Dagrella and ask what is new."
    await tell(store, 1, hello, f"The Wet Kettle owes the keeper a ring. {essay(1_200, 'It rains.')}")
    [turn] = await ask(store, "Which debts does the Wet Kettle have?", None)
    best, *others = (turn.text[start:end] for (start, end), _ in turn.passages)
    assert best.startswith("The Wet Kettle owes")
    assert any(other.startswith("I greet Dagrella") for other in others)


async def test_of_two_parts_that_answer_the_better_one_comes_first_wherever_it_stands(store):
    await tell(store, 1, "Well?", f"The cellar is cold. {essay(9_000, 'The spare cellar key hangs here.')}")
    [turn] = await ask(store, QUESTION, None)
    assert "hangs here" in turn.text[slice(*turn.passages[0].span)]


async def test_a_late_part_of_what_the_person_said_comes_without_its_first_words(store):
    await tell(store, 1, essay(25_000), "Noted.")
    [found] = await ask(store, QUESTION, 200)
    assert NEEDLE in found.words[0]
    assert found.words[0].startswith("…")
    assert "Point 0 " not in found.words[0]


@pytest.mark.parametrize("weights", [(0.1, 0.2, 0.9), (0.9, 0.5, 0.1), (0.5, 0.1, 0.9)])
def test_the_order_that_a_reranker_gave_stands_whatever_the_records_weigh(weights):
    texts = ["A mill burns.", "A boat sinks.", "A tower falls."]
    records = [Recalled(text, {"text": text}, None, weight) for text, weight in zip(texts, weights, strict=True)]
    assert [record.key for record in choose(records, Query("?", budget=500))] == texts


async def test_a_line_of_a_turn_comes_though_its_passage_would_not_fit(store):
    await tell(store, 1, f"I got the {KEYS}, " + "and afterwards something extraordinary, " * 10)
    [found] = await ask(store, f"List in order when I got the {KEYS}", 70)
    assert len(found.words[0].split()) >= 20
    assert found.words[1] == ""


def test_what_says_the_same_is_folded_though_as_many_as_the_limit_are_kept():
    texts = ["A mill burns.", "A boat sinks.", "A mill burns."]
    [best] = choose([Recalled(f"k{n}", {"text": text}, None, 1.0) for n, text in enumerate(texts)], Query("?", limit=1))
    assert (best.key, best.folded) == ("k0", ("k2",))


def exchange(key, player, reply, weight, *passages, **fields):
    said = f"{player}\n{reply}"
    spans = [Passage(Span(said.index(text), said.index(text) + len(text)), worth) for text, worth in passages]
    value = {"kind": "exchange", "player": player, "reply": reply, "text": said} | fields
    return Recalled(key, value, None, weight, HERE, passages=tuple(spans))


@pytest.mark.parametrize(("words", "shown"), [(24, 24), (25, 20), (60, 30), (100, 50), (400, 80)])
def test_a_line_of_an_order_is_half_of_a_message_from_twenty_to_eighty_words(words, shown):
    player = " ".join(f"w{n}" for n in range(words))
    record = exchange("k", player, "Good.", 1.0, (player, 1.0))
    [best] = choose([record], Query("In which order did it happen?", budget=4000))
    assert (len(best.words[0].replace(" …", "").split()), best.words[1]) == (shown, "")


def test_a_better_record_comes_before_the_lesser_passage_of_the_best_one():
    best = exchange("k1", "The mill burns.", "It is old.", 2.0, ("The mill burns.", 2.0), ("It is old.", 0.1))
    second = exchange("k2", "The boat sinks.", "It is new.", 1.0, ("The boat sinks.", 1.0), ("It is new.", 0.5))
    found = choose([best, second], Query("?", budget=12))
    assert [one.excerpt for one in found] == ["The mill burns. …", "The boat sinks. …"]


@pytest.mark.parametrize("replies", [True, False])
def test_where_replies_are_wanted_a_persons_passage_brings_the_first_words_of_the_reply(replies):
    player, reply = "Where does the key hang?", "Behind the cellar door, " + "as it always did " * 10 + "I think."
    record = exchange("k", player, reply, 1.0, (player, 1.0), (reply, 0.5))
    [found] = choose([record], Query("key", budget=45, replies=replies))
    assert found.words[0] == player
    assert bool(found.words[1]) is replies


def test_only_with_the_first_passage_come_the_persons_first_words():
    player = "I went to the market early and met my brother at the well. " + "It rained. " * 4 + "The key was gone."
    record = exchange("k", player, "Behind the door.", 1.0, ("The key was gone.", 1.0), ("Behind the door.", 0.5))
    [found] = choose([record], Query("key", budget=200))
    assert found.words == ("… The key was gone.", "Behind the door.")


def test_where_no_passage_fits_the_best_record_is_shown_as_it_began():
    text = " ".join(f"w{n}" for n in range(70))
    records = [Recalled(key, {"text": f"{key} {text}"}, None, 1.0) for key in ("first", "second")]
    [found] = choose(records, Query("?", budget=25))
    assert found.key == "first"
    assert found.excerpt == "first " + " ".join(f"w{n}" for n in range(14)) + " …"
    assert choose(records, Query("?", budget=5)) == []


def test_what_was_folded_is_folded_once_however_many_of_its_parts_fit():
    parts = ("The mill burns.", "It is old.")
    same = [exchange(key, *parts, 1.0, (parts[0], 1.0), (parts[1], 0.9)) for key in ("k1", "k2", "k3")]
    [found] = choose(same, Query("?", budget=500))
    assert (found.key, found.folded) == ("k1", ("k2", "k3"))
    assert found.words == parts


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"player": "Hi.", "reply": "Ho.", "text": "x"}, ("Hi.\nHo.", 4)),
        ({"player": "", "reply": "Ho."}, ("\nHo.", 1)),
        ({"player": "", "reply": "", "text": "x"}, ("x", None)), ({"player": "Hi.", "text": "x"}, ("x", None)),
        ({"player": 7, "reply": "Ho.", "text": "x"}, ("x", None)), ({"text": 7}, ("", None)), ({}, ("", None)),
    ],
    ids=repr,
)  # fmt: skip
def test_what_a_record_says(value, said):
    assert said_in(value) == said


def test_the_reason_names_the_parts_that_count():
    assert str(Reason()) == ""
    assert str(Reason(because="fits")) == "fits"
    reason = Reason(1.0, 0.5, 0.9, 0.25, -1.0, 2, 3, True)
    assert str(reason) == (
        "relevance 1.00, words #3, meaning #2, time 0.25, named -1, name word for word, importance 0.9, recency 0.50"
    )


def test_blanks_around_what_is_shown_are_nothing_that_is_cut():
    for text, cut in ((" A lamp. ", False), ("A boat. A lamp. ", True)):
        shown = Span(len(text) - 8, len(text) - 1)
        assert Recalled("k", {"text": text}, shown=(shown,)).is_cut is cut
