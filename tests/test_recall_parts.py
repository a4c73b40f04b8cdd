"""Each part of recall's order by itself: of two records that are alike in all else, it alone decides which comes first.

The record "b" has what the part looks for; where the part is turned off, "a" comes first, by its key.
"""

import random
from datetime import UTC, datetime

import pytest
from langchain_core.embeddings import Embeddings
from langgraph.store.memory import InMemoryStore

from questbook.memory.recall.choice import choose
from questbook.memory.recall.order import find_spellings
from questbook.memory.recall.query import Present, Query, Recalled, WeightedText, Weights
from questbook.memory.recall.recall import recall
from questbook.memory.text.bm25 import TextWords
from questbook.memory.timeline.records import Stamp
from questbook.memory.timeline.timeline import record_key, remember

FACTS, HERE = ("u", "c", "facts"), ("u", "c", "exchanges")
NOW = datetime(2026, 3, 10, 15, tzinfo=UTC)


class Meaning(Embeddings):
    """A text means what is told of one of its words; all other texts mean the same."""

    def __init__(self, **vectors):
        self.vectors = vectors

    def embed_documents(self, texts):
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text):
        return next((vector for word, vector in self.vectors.items() if word in text), [1.0, 0.0])


def store_with(**vectors):
    return InMemoryStore(index={"dims": 2, "embed": Meaning(**vectors), "fields": ["text"]})


async def keys(store, query, namespace=FACTS, **settings):
    return [found.key for found in await recall(store, namespace, Query(query, present=Present(NOW), **settings))]


PARTS = {
    "words": ("lamp", {"text": "A boat comes in."}, {"text": "The lamp is lit."}),
    "named": ("What of Oda?", {"text": "A mill.", "subject": "Goran"}, {"text": "A boat.", "subject": "Oda"}),
    "phrase": ("The Quiet Anvil?", {"text": "A quiet road, an anvil."}, {"text": "A road, a quiet anvil."}),
    "time": (
        "What was it yesterday?",
        {"text": "A mill.", "said_at": "2026-03-10T12:00:00"},
        {"text": "A boat.", "said_at": "2026-03-09T12:00:00"},
    ),
    "answers": ("lamp", {"text": "Is the lamp lit?", "speaker": "Oda"}, {"text": "A lamp is lit.", "speaker": "Oda"}),
    "importance": ("Well?", {"text": "A mill.", "importance": 8}, {"text": "A boat.", "importance": 9}),
    "recency": (
        "Well?",
        {"text": "A mill.", "said_at": "2026-03-09T12:00:00"},
        {"text": "A boat.", "said_at": "2026-03-09T13:00:00"},
    ),
}


@pytest.mark.parametrize("part", PARTS)
async def test_one_part_of_the_order_decides_where_all_else_is_alike(part):
    question, first, second = PARTS[part]
    store = store_with()
    await store.aput(FACTS, "a", first)
    await store.aput(FACTS, "b", second)
    assert await keys(store, question) == ["b", "a"]
    assert await keys(store, question, weights=Weights().without(part)) == ["a", "b"]
    both = await recall(store, FACTS, Query(question, present=Present(NOW)))
    off = await recall(store, FACTS, Query(question, present=Present(NOW), weights=Weights().without(part)))
    gained = {one.key: one.weight for one in both}["b"] - {one.key: one.weight for one in off}["b"]
    worth = {"importance": 0.09, "answers": 0.0}.get(part, getattr(Weights(), part))
    assert gained == pytest.approx(worth), "the whole weight of the part"


async def test_meaning_alone_decides_where_no_word_is_shared():
    store = store_with(vessel=[0.0, 1.0], boat=[0.1, 0.995], mill=[0.8, 0.6])
    await store.aput(FACTS, "a", {"text": "A mill."})
    await store.aput(FACTS, "b", {"text": "A boat."})
    assert await keys(store, "vessel") == ["b", "a"]
    assert await keys(store, "vessel", weights=Weights(meaning=0)) == ["a", "b"]
    best, second = await recall(store, FACTS, "vessel")
    assert (best.reason.by_meaning, second.reason.by_meaning) == (1, 2)
    assert (best.reason.by_words, second.reason.by_words) == (None, None)
    assert best.weight - second.weight == pytest.approx(1 - second.score / best.score), "the cosine, whole"


async def test_a_word_counts_less_nearby_and_the_less_the_farther():
    store = store_with()
    said = [f"Rain falls on the roof, on the road and on the river {n}." for n in range(1, 22)]
    said[10] = "A swordfish falls on the road."
    await remember(store, HERE, said)
    found = await recall(
        store, HERE, Query("swordfish", timeline=[("main", 21)], limit=30, weights=Weights(meaning=0, recency=0))
    )
    weights = {one.value["turn"]: one.weight for one in found if one.weight > 0}
    assert max(weights, key=weights.__getitem__) == 11
    assert weights[11] > weights[12] > weights[14] > weights[17]
    assert weights[12] > weights[10] > weights[8], "an answer comes after its question"
    assert {1, 20, 21}.isdisjoint(weights), "more than eighty words away"


@pytest.mark.parametrize(("gone", "counts"), [(1, True), (3, False)])
async def test_a_word_is_near_only_in_turns_that_follow_each_other(gone, counts):
    store = store_with()
    await remember(store, HERE, ["A mill.", "A swordfish.", "A road.", "A boat."])
    await store.adelete(HERE, record_key("main", gone, "exchange"))
    found = await recall(store, HERE, Query("swordfish", fitting=False, weights=Weights(meaning=0, recency=0)))
    assert ({one.value["turn"]: one.weight for one in found}[4] > 0) is counts


@pytest.mark.parametrize(("timeline", "counts"), [([("main", 1), ("b", 2)], True), (None, False)])
async def test_turns_of_two_branches_follow_each_other_on_a_timeline_alone(timeline, counts):
    store = store_with()
    await remember(store, HERE, ["A swordfish."])
    await remember(store, HERE, ["A boat."], turn=2, timeline=[("main", 1), ("b", 2)])
    query = Query("swordfish", timeline=timeline, fitting=False, weights=Weights(meaning=0, recency=0))
    assert ({one.value["turn"]: one.weight for one in await recall(store, HERE, query)}[2] > 0) is counts


def test_the_default_weights_are_those_that_were_measured():
    assert Weights().model_dump() == {
        "scoring": "sum", "words": 1.0, "nearby": 0.7, "meaning": None, "chances": 0.8, "prefers": 0.5, "named": 0.3,
        "phrase": 0.3, "time": 1.0, "answers": 0.1, "importance": 0.1, "recency": 0.02,
    }  # fmt: skip
    assert (Weights().of_meaning(0.25), Weights(meaning=0.7).of_meaning(0.25)) == (0.25, 0.7)
    assert Weights.model_validate('{"time": 2}').time == 2


async def test_what_names_a_time_goes_up_only_when_the_question_asks_when():
    store = store_with()
    await store.aput(FACTS, "a", {"text": "The ship left."})
    await store.aput(FACTS, "b", {"text": "The ship yesterday."})
    assert await keys(store, "When did the ship leave?", weights=Weights(words=0)) == ["b", "a"]
    assert await keys(store, "Did the ship leave?", weights=Weights(words=0)) == ["a", "b"]


async def test_another_speaker_alone_counts_against_and_two_named_speakers_count_for_nobody():
    store = store_with()
    await store.aput(FACTS, "a", {"text": "A mill.", "speaker": "Caroline"})
    await store.aput(FACTS, "b", {"text": "A boat.", "speaker": "Melanie"})
    await store.aput(FACTS, "c", {"text": "A tower."})
    assert await keys(store, "What did Mel like?") == ["b", "c", "a"]
    assert await keys(store, "What did Mel and Caroline like?") == ["a", "b", "c"]


async def test_a_hint_counts_as_much_as_its_weight_says():
    store = store_with()
    await store.aput(FACTS, "a", {"text": "The mill is red."})
    await store.aput(FACTS, "b", {"text": "The boat is red."})
    assert await keys(store, "mill", hints=[WeightedText("boat", 0.3)]) == ["a", "b"]
    assert await keys(store, "mill", hints=[WeightedText("boat", 1.3)]) == ["b", "a"]
    assert await keys(store, "red", hints=[WeightedText("boat", 0.3)]) == ["b", "a"]
    assert await keys(store, "  ", hints=[WeightedText("boat", 0.3)]) == ["b", "a"], "the hint is the question"
    assert await keys(store, " ", hints=[WeightedText(" ", 1.0)]) == []


CROWD = 200


@pytest.mark.parametrize(
    ("question", "fields", "others"),
    [
        ("What did we eat in May 2025?", {"month": "202505"}, {"month": "202601"}),
        ("What did we eat on 3 May 2025?", {"date": "20250503"}, {"date": "20260101"}),
        ("What did we eat on day 7?", {"day": 7}, {"day": 8}),
        ("What did we eat in session 2?", {"session": 2}, {"session": 9}),
    ],
)
async def test_records_of_the_time_asked_for_are_proposed_however_many_others_fit_as_well(question, fields, others):
    store = store_with(eat=[0.0, 1.0], bread=[0.1, 0.995])
    for n in range(CROWD):
        await store.aput(FACTS, f"n{n:03}", {"text": f"We eat bread, night {n}."} | others)
    await store.aput(FACTS, "x", {"text": "Some soup, no more."} | fields | _said(fields))
    assert (await keys(store, question, weights=Weights(words=0, meaning=0, recency=0)))[0] == "x"


async def test_what_is_to_be_done_from_now_on_is_proposed_however_many_others_fit():
    store, rule = store_with(), {"player": "Always answer in rhyme.", "reply": "Yes.", "standing": True}
    for n in range(CROWD):
        await store.aput(FACTS, f"n{n:03}", {"text": f"We eat bread, night {n}."})
    await store.aput(FACTS, "x", rule | {"text": "Always answer in rhyme.\nYes."})
    assert "x" in await keys(store, "What did we eat?", budget=800)


async def test_what_has_a_name_word_for_word_comes_though_it_is_far_in_meaning():
    store = store_with(fear=[0.0, 1.0], dread=[0.0, 1.0])
    for key, text in (("a", "Ask the Quiet Anvil."), ("b", "A dread of fire."), ("c", "A quiet day.")):
        await store.aput(FACTS, key, {"text": text})
    assert set(await keys(store, "What does the Quiet Anvil fear?")) == {"a", "b"}


def _said(fields):
    day = fields.get("date") or f"{fields.get('month', '200001')}15"
    return {"said_at": f"{day[:4]}-{day[4:6]}-{day[6:]}T12:00:00"}


async def test_as_many_as_the_limit_and_duplicates_do_not_count():
    store = store_with()
    for n in range(9):
        await store.aput(FACTS, f"k{n}", {"text": f"The lamp number {n // 3} burns in the tower of the town."})
    found = await recall(store, FACTS, Query("lamp", limit=2))
    assert [len(one.folded) for one in found] == [2, 2]
    by_others = [{"text": "The lamp burns.", "speaker": who} for who in ("Oda", "Mira")]
    for n, value in enumerate(by_others):
        await store.aput(("u", "d"), f"k{n}", value)
    assert len(await recall(store, ("u", "d"), "lamp")) == 2, "two who say the same are two"


@pytest.mark.parametrize(("words", "kept"), [(9, 1), (8, 2), (0, 2)])
async def test_two_say_the_same_if_nine_of_ten_words_are_common(words, kept):
    store, all_words = store_with(), [f"w{n}" for n in range(10)]
    await store.aput(FACTS, "a", {"text": " ".join(all_words)})
    await store.aput(FACTS, "b", {"text": " ".join(all_words[:words])})
    assert len(await recall(store, FACTS, " ".join(all_words))) == kept


async def test_a_budget_is_filled_with_what_fits_to_the_last_token():
    store = store_with()
    for key in "abc":
        await store.aput(FACTS, key, {"text": f"The lamp of {key}.", "cost": {"a": 50, "b": 60, "c": 20}[key]})

    async def chosen(budget, **more):
        return await keys(store, "lamp", budget=budget, cost=lambda record: record.value["cost"], **more)

    assert await chosen(130) == ["a", "b", "c"]
    assert await chosen(129) == ["a", "b"]
    assert await chosen(70) == ["a", "c"], "what does not fit is passed over"
    assert await chosen(60) == ["a"]
    assert await chosen(10) == []
    assert await chosen(130, limit=2) == ["a", "b"]


@pytest.mark.parametrize("distance", [-0.1, 2.1])
def test_a_distance_that_no_cosine_has_is_refused(distance):
    with pytest.raises(ValueError, match="from 0 to 2"):
        Query("lamp", max_cosine_distance=distance)
    assert Query("lamp", max_cosine_distance=2).max_cosine_distance == 2


async def test_the_cosine_distance_cuts_where_it_says():
    store = store_with(vessel=[0.0, 1.0], boat=[0.6, 0.8], mill=[0.8, 0.6])
    await store.aput(FACTS, "boat", {"text": "A boat."})
    await store.aput(FACTS, "mill", {"text": "A mill."})
    assert await keys(store, "vessel", max_cosine_distance=0.21) == ["boat"]
    assert set(await keys(store, "vessel", max_cosine_distance=0.41)) == {"boat", "mill"}


async def test_a_search_with_the_other_name_is_made_only_where_it_is_asked_for():
    store = store_with()
    naming = {"text": "People call Goran the Heron.", "subject": "Goran", "attribute": "nickname", "value": "the Heron"}
    await store.aput(FACTS, "a", {"text": "A far away mill."})
    await store.aput(FACTS, "b", naming)
    await store.aput(FACTS, "c", {"text": "Goran mends nets."})
    assert await keys(store, "What does the Heron do?") == ["b", "a", "c"]
    assert await keys(store, "What does the Heron do?", aliases=True) == ["b", "c", "a"]

    async def nothing(records):
        return []

    assert await keys(store, "What does the Heron do?", aliases=True, refine=nothing) == []


async def test_before_leaves_out_its_own_turn_and_later_ones_with_and_without_a_timeline():
    store = store_with()
    for turn in (1, 2, 3):
        await store.aput(FACTS, f"k{turn}", {"text": f"lamp {turn}"} | Stamp("a", turn).to_json())
    assert sorted(await keys(store, "lamp", before=3)) == ["k1", "k2"]
    assert sorted(await keys(store, "lamp", before=3, timeline=[("a", 9)])) == ["k1", "k2"]


async def times_of(question, *said):
    """Return by turn how well each of some exchanges fits the time of a question."""
    store = store_with()
    await remember(store, HERE, said)
    return {one.value["turn"]: one.reason.time for one in await recall(store, HERE, Query(question, fitting=False))}


async def test_an_event_is_found_by_a_record_that_tells_half_of_it():
    question = "Whom did I meet before the river flooded Wendal village?"
    half = await times_of(question, "I met Oda.", "The river flooded.", "I met Mira.")
    assert half[1] > half[2] > half[3] > 0
    question = "Whom did I meet before the river flooded Wendal?"
    assert set((await times_of(question, "I met Oda.", "The river.", "I met Mira.")).values()) == {0.0}, "a third"


@pytest.mark.parametrize(("word", "tells"), [("before", False), ("after", True), ("and then", True)])
async def test_only_a_record_that_says_the_same_before_or_after_is_itself_what_is_asked_for(word, tells):
    times = await times_of("What did I eat before the first snow?", "I ate bread.", f"I ate {word} the first snow.")
    assert (times[1] > 0) is tells


@pytest.mark.parametrize(
    ("event", "said", "tells"),
    [("Oda left", "Oda left", False), ("the first snow", "the very very first snow", False),
     ("the first snow", "the very, very, very first snow", True)],
)  # fmt: skip
async def test_the_event_stands_within_two_words_more_behind_before(event, said, tells):
    times = await times_of(f"What did I eat before {event}?", "I ate bread.", f"I ate soup before {said}.")
    assert (times[1] > 0) is tells


async def test_an_event_may_be_told_in_inflected_words():
    times = await times_of("What did I eat before we reached Wendal?", "I ate bread.", "You reach it.", "I ate soup.")
    assert times[1] > times[2] > times[3] > 0
    assert not any((await times_of("What did I eat before the war?", "I ate bread.", "It is warm.")).values())


async def test_the_record_that_tells_most_of_an_event_counts():
    said = ["The river flooded.", "I met Oda.", "I met Mira.", "I met Goran.", "The river flooded Wendal."]
    times = await times_of("Whom did I meet before the river flooded Wendal?", *said)
    assert max(times, key=times.__getitem__) == 4


def test_all_texts_that_say_the_same_are_folded_whatever_spares_comparisons():
    """As comparing each text with each does it: nine words of ten in common, whether the rest is new or not."""
    dice = random.Random(4)
    vocabulary = [f"word{number}" for number in range(60)]
    folded = 0
    for _ in range(60):
        texts = [dice.sample(vocabulary, dice.randint(0, 25)) for _ in range(4)]
        for words in list(texts):
            texts += [[*words[: -1 - number], *(f"new{n}" for n in range(number))] for number in range(3)]
        dice.shuffle(texts)
        records = [Recalled(str(n), {"text": " ".join(words)}, None, 0.0) for n, words in enumerate(texts)]
        kept: list[set[str]] = []
        for words in map(set, texts):
            if not any(words & other and len(words & other) >= 0.9 * len(words | other) for other in kept):
                kept.append(words)
        best = choose(records, Query("?", limit=len(records)))
        assert [set(record.value["text"].split()) for record in best] == kept
        folded += len(records) - len(kept)
    assert folded > 60


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda: Query("x", hints=["the mill"]), "Query.hints: got 'the mill'"),
        (lambda: WeightedText("the mill", -1), "WeightedText.weight: got -1"),
        (lambda: Weights(words=float("inf")), "words"),
    ],
)
def test_what_makes_no_sense_is_refused_when_it_is_made(wrong, says):
    with pytest.raises(ValueError, match=says):
        wrong()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"text": 7}, "Query.text: got 7; expected the question as a text"),
        ({"limit": -1}, "Query.limit: got -1"), ({"limit": 1.5}, "Query.limit"),
        ({"budget": -1}, "Query.budget: got -1"),
        ({"timeline": "main"}, r"Query.timeline: got 'main'; expected segments, such as \[\('main', 12\)\]"),
        ({"timeline": [("main", "3")]}, "Query.timeline: got"), ({"timeline": ("main", 3)}, "Query.timeline: got"),
        ({"budget": "9"}, "Query.budget"), ({"reranked": -1}, "Query.reranked"),
        ({"visibility": "me"}, "Query.visibility"),
        ({"max_cosine_distance": 2.1}, "Query.max_cosine_distance"),
        ({"max_cosine_distance": -0.1}, "Query.max_cosine"),
        ({"weights": {"words": 1}}, r"Query.weights: got .*expected Weights\("), ({"rerank": 7}, "Query.rerank: got 7"),
        ({"rerank": Query}, "Query.rerank: got"), ({"metadata": {"x": {1}}}, "Query.metadata"),
        ({"lasting": ("ann", "isle", "lore")}, "Query.lasting: namespace 'ann': expected a tuple"),
        ({"before": "2"}, "Query.before: got '2'; expected the number"), ({"present": 7}, "Query.present: got 7"),
        ({"refine": 5}, "Query.refine: got 5; expected a function"), ({"cost": 5}, "Query.cost: got 5"),
        ({"fitting": "no"}, "Query.fitting: got 'no'; expected True or False"), ({"aliases": 1}, "Query.aliases"),
        ({"speakers": "Ann"}, "Query.speakers: got 'Ann'; expected several names"), ({"viewer": "me"}, "Query.viewer"),
    ],
    ids=repr,
)  # fmt: skip
def test_an_argument_of_a_query_that_makes_no_sense_is_named(arguments, says):
    with pytest.raises(ValueError, match=says):
        Query(**({"text": "x"} | arguments))


@pytest.mark.parametrize("name", [name for name in Weights.model_fields if name != "scoring"])
def test_no_weight_is_below_zero(name):
    with pytest.raises(ValueError, match=name):
        Weights(**{name: -0.01})
    for wrong in (float("nan"), float("inf")):
        with pytest.raises(ValueError, match=name):
            Weights(**{name: wrong})
    assert getattr(Weights(**{name: 0}), name) == 0


def test_weights_are_read_from_text_and_those_of_older_versions_are_passed_over_with_a_word(caplog):
    assert Weights.model_validate('{"words": 2, "recency": 0}') == Weights(words=2, recency=0)
    with caplog.at_level("WARNING"):
        assert Weights.model_validate({"neighbours": 1, "spread": 2, "words": 2}) == Weights(words=2)
    assert "weights: neighbours, spread are no longer weighed, and were passed over; see `nearby`." in caplog.text
    for wrong in ({"wrods": 1}, {"nearby": 1.1}, {"scoring": "product"}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            Weights.model_validate(wrong)
    assert (Weights().of_meaning(0.25), Weights(meaning=0).of_meaning(0.25), Weights(meaning=2).of_meaning(0.25)) == (
        0.25,
        0,
        2,
    )


def test_blank_texts_and_hints_that_count_nothing_are_not_searched_for():
    query = Query(" ", hints=[WeightedText("mill", 0.5), WeightedText("", 1), WeightedText("boat", 0)])
    assert query.texts == [WeightedText("mill", 0.5)]


async def test_recency_falls_by_half_a_percent_an_hour_and_importance_counts_from_none_to_ten():
    store = store_with()
    told = [
        ("a", "2026-03-10T12:00:00", 25),
        ("b", "2026-03-06T08:00:00", 7),
        ("c", "", -3),
        ("d", "2026-03-10T14:00:00+02:00", 0),
    ]
    for key, said_at, importance in told:
        await store.aput(FACTS, key, {"text": f"A lamp, {key}.", "said_at": said_at, "importance": importance})
    reasons = {one.key: one.reason for one in await recall(store, FACTS, Query("lamp", present=Present(NOW)))}
    assert {key: (reason.recency, reason.importance) for key, reason in reasons.items()} == {
        "a": (1.0, 1.0), "b": (pytest.approx(0.995**100), 0.7), "c": (0.0, 0.0), "d": (1.0, 0.0),
    }  # fmt: skip


async def test_as_published_words_decide_where_a_store_knows_no_meaning():
    store = InMemoryStore()
    for key, text in (("a", "A boat sinks."), ("b", "The lamp burns."), ("c", "A mill turns.")):
        await store.aput(FACTS, key, {"text": text} | Stamp("x", 1).to_json())
    weights = Weights(scoring="generative_agents")
    found = await recall(store, FACTS, Query("lamp", timeline=[("x", 1)], weights=weights))
    assert (found[0].key, [one.key for one in found[1:]]) == ("b", ["a", "c"])
    assert (found[0].reason.relevance, found[1].reason.relevance) == (1.0, 0.0)


@pytest.mark.parametrize(
    ("word", "texts", "spelt"),
    [
        ("gretta", ["Greta came."], {"gretta": "greta"}), ("gretta", ["the greta"], {}),
        ("gretta", ["Gorana came."], {}),
        ("greta", ["Gretta came."], {"greta": "gretta"}), ("tim", ["Tom came."], {}), ("oswin", ["Aswin came."], {}),
        ("maren", ["Marina came."], {}),
        ("maren", ["Marek came."], {}), ("gretta", ["Is it Greta?"], {"gretta": "greta"}),
        ("lighthouse", ["the lighthose"], {"lighthouse": "lighthose"}),
        ("lighthouse", ["the lighting"], {}), ("книга", ["книгу"], {"книга": "книгу"}),
    ],
)  # fmt: skip
def test_how_texts_spell_a_word_that_none_of_them_has(word, texts, spelt):
    names = [] if word in ("lighthouse", "книга") else [word]
    assert find_spellings([word], names, texts, TextWords(texts)) == spelt


async def test_what_is_exactly_as_far_as_it_may_be_still_comes():
    store = store_with(lamp=[1.0, 0.0], boat=[0.0, 1.0], mill=[-1.0, 0.0])
    for key, text in (("a", "A lamp."), ("b", "A boat."), ("c", "A mill.")):
        await store.aput(FACTS, key, {"text": text})
    for farthest, found in ((1, ["a", "b"]), (0.9, ["a"]), (2, ["a", "b", "c"]), (0, ["a"])):
        assert sorted(await keys(store, "lamp", max_cosine_distance=farthest, fitting=False)) == found


async def test_a_hint_that_counts_more_than_the_question_is_the_one_whose_time_and_names_count():
    store, (_, first, second) = store_with(), PARTS["time"]
    await store.aput(FACTS, "a", first)
    await store.aput(FACTS, "b", second)
    yesterday = "What was it yesterday?"
    assert await keys(store, "Well?", hints=[WeightedText(yesterday, 1.3)]) == ["b", "a"]
    assert await keys(store, "Well?", hints=[WeightedText(yesterday, 0.3)]) == ["a", "b"]


async def test_the_day_of_the_apps_own_calendar_is_that_of_the_present():
    store = store_with()
    for key, day in (("a", 2), ("b", 3)):
        await store.aput(FACTS, key, {"text": "A mill.", "speaker": key, "day": day})
    for question, day, best in (("What was it yesterday?", 3, "a"), ("What was it yesterday?", 4, "b")):
        found = await recall(store, FACTS, Query(question, present=Present(NOW, day=day)))
        assert (found[0].key, found[0].reason.time) == (best, 1)
