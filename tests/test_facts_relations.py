"""When two facts are one, each rule at its limit; and hearsay, which is judged by what was shown later."""

import pytest
from fact_play import known, play, stored
from stores import stores_of

from questbook import keep_valid, note_facts
from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.dungeon_master.retract import retract
from questbook.graphs.dungeon_master.why import why
from questbook.memory.facts.relations import is_same_fact, settles
from questbook.memory.facts.supersession import replace_superseded
from questbook.memory.recall.query import Query
from questbook.memory.recall.recall import recall
from questbook.memory.timeline.timeline import visible_filters

KETTLE = "copper kettle whistles"


@pytest.mark.parametrize(
    ("more", "same", "same_with_value"),
    [
        (" morning kitchen", True, True),  # 3 of 5 words in common
        (" morning kitchen stove", False, True),  # 3 of 6
        (" morning kitchen stove garden", False, True),  # 3 of 7
        (" morning kitchen stove garden window", False, False),  # 3 of 8
    ],
)
def test_a_text_that_only_says_more_is_the_same_while_enough_words_are_common(more, same, same_with_value):
    record, other = {"text": KETTLE}, {"text": KETTLE + more}
    assert is_same_fact(record, other) is is_same_fact(other, record) is same
    valued = {"value": "kettle", "subject": "kettle"}
    assert is_same_fact(record | valued, other | valued) is same_with_value
    assert is_same_fact({"text": "copper kettle"} | valued, {"text": "copper kettle garden window cup"} | valued)
    assert not is_same_fact({"text": "?"}, {"text": "!!"}), "no word is common"


@pytest.mark.parametrize(("cosine", "same"), [(None, True), (0.51, True), (0.5, True), (0.49, False), (-1.0, False)])
def test_a_cosine_can_only_part_two_facts(cosine, same):
    assert is_same_fact({"text": KETTLE}, {"text": f"{KETTLE} loudly"}, cosine) is same
    assert is_same_fact({"text": KETTLE}, {"text": "silver spoon rattles"}, 1.0) is False
    assert is_same_fact({"text": KETTLE}, {"text": KETTLE.upper()}, cosine) is True


def test_words_that_each_side_lacks_part_two_facts_unless_all_fields_agree():
    record = {"text": "Mira gave the ferryman silver coins.", "subject": "Mira", "attribute": "gift", "value": "silver"}
    other = record | {"text": "Mira handed the ferryman silver coins."}
    assert is_same_fact(record, other)
    for field in ("subject", "attribute", "value"):
        assert not is_same_fact(record, other | {field: ""}), field
        assert not is_same_fact(record, other | {field: "river"}), field
    longer = other | {"text": "Mira handed old Wen a purse of silver yesterday evening."}
    assert not is_same_fact(record, longer), "too few words in common"


def test_the_same_words_are_the_same_fact_where_no_slot_says_otherwise():
    record = {"text": KETTLE, "value": "kettle"}
    assert is_same_fact(record, {"text": KETTLE, "value": "spoon"})
    assert is_same_fact(record | {"slot": "kettle|state"}, {"text": KETTLE, "value": "spoon"})


def test_one_slot_has_one_value():
    record = {"text": "The gate is open.", "slot": "gate|state", "value": "open"}
    for text, slot, value, same in (
        ("An open gate, at last, says the old guard of the tower.", "gate|state", "Open", True),
        ("The gate is open.", "gate|state", "closed", False),
        ("The gate is open now.", "gate|state", "", False),
        ("The gate is open.", "door|state", "closed", True),  # word for word
        ("The gate is open here.", "door|state", "closed", False),
    ):
        assert is_same_fact(record, {"text": text, "slot": slot, "value": value}) is same, text


@pytest.mark.parametrize(
    ("field", "value"), [("kind", "secret"), ("kind", "rumour"), ("kind", "insight"), ("claimed_by", "Oda")]
)
def test_another_voice_is_another_fact(field, value):
    record = {"text": KETTLE, "kind": "event", "claimed_by": ""}
    assert not is_same_fact(record, record | {field: value})
    assert is_same_fact(record | {field: value}, record | {field: value})
    assert is_same_fact(record, record | {"kind": "trait"})


def test_a_subject_may_be_named_in_full_but_not_be_another_one():
    record = {"text": "Wen rings the chapel bell.", "subject": "Wen"}
    assert is_same_fact(record, {"text": "Sister Wen rings the chapel bell.", "subject": "Sister Wen"})
    assert not is_same_fact(record, {"text": "Wen rings the chapel bell today.", "subject": "the bell"})


def test_without_subjects_names_come_in_one_order():
    assert not is_same_fact({"text": "Oda hates Goran."}, {"text": "Goran hates Oda."})
    assert is_same_fact({"text": "Oda hates Goran."}, {"text": "Oda still hates old Goran."})
    assert is_same_fact(
        {"text": "Oda hates Goran.", "subject": "Oda"},
        {"text": "Goran is hated by Oda: Oda hates Goran.", "subject": "Oda"},
    )


FACTS = ("ann", "isle", "facts")
WELL = {"text": "Greta poisoned the well.", "subject": "the well", "attribute": "poisoner", "value": "Greta"}
ODA = {"text": "Oda poisoned the well.", "subject": "the well", "attribute": "poisoner", "value": "Oda"}
CONFESSION = WELL | {"text": "Greta says that she poisoned the well.", "claimed_by": "Greta", "kind": "rumour"}
MILL = {"text": "Hilda keeps the mill.", "subject": "Hilda", "kind": "trait"}
store = stores_of()


async def note(store, turn, *facts, timeline=None):
    return await note_facts(store, FACTS, facts, timeline=timeline or [("a", turn)], turn=turn)


async def valid(store, timeline, before=None):
    filters = visible_filters(timeline, before)
    items = [item for only in filters for item in await store.asearch(FACTS, filter=only, limit=99)]
    return sorted(item.value["text"] for item in await keep_valid(store, items, timeline=timeline, before=before))


@pytest.mark.parametrize("truth", [WELL, ODA], ids=["borne out", "refuted"])
async def test_a_confession_is_judged_by_what_is_shown_later(store, truth):
    await note(store, 1, CONFESSION)
    assert await valid(store, [("a", 1)]) == [CONFESSION["text"]]
    changes = await note(store, 3, truth)
    assert changes.superseded == ["a-1-fact-0"]
    assert await valid(store, [("a", 3)]) == [truth["text"]]
    assert await valid(store, [("a", 3)], before=3) == [CONFESSION["text"]], "what was believed then"
    assert await valid(store, [("a", 2), ("b", 4)]) == [CONFESSION["text"]], "another branch has seen nothing"


async def test_a_rumour_that_comes_true_is_a_fact_and_no_echo_of_the_rumour(store):
    song = MILL | {"text": "Hilda of the mill sings.", "kind": "rumour"}
    await note(store, 1, MILL | {"kind": "rumour", "claimed_by": "Mira"}, song)
    await note(store, 2, MILL)
    assert await valid(store, [("a", 2)]) == [MILL["text"], song["text"]]
    items = await store.asearch(FACTS, limit=99)
    _, holds = sorted(await keep_valid(store, items, timeline=[("a", 2)]), key=lambda item: item.value["turn"])
    assert (holds.value["kind"], holds.value["claimed_by"]) == ("trait", "")


async def test_a_rumour_in_words_of_its_own_is_settled_though_many_facts_sound_more_like_the_truth(store):
    rumour = ODA | {"text": "They whisper about an old woman.", "kind": "rumour"}
    await note(store, 1, rumour, *({"text": f"Greta poisoned the well of farm {n}."} for n in range(33)))
    changes = await note(store, 2, WELL)
    assert changes.superseded == ["a-1-fact-0"]
    assert rumour["text"] not in await valid(store, [("a", 2)])


async def test_a_secret_that_comes_out_is_one_no_more_and_one_that_does_not_stays(store):
    await note(store, 1, WELL | {"kind": "secret"})
    await note(store, 2, ODA)
    assert await valid(store, [("a", 2)]) == [WELL["text"], ODA["text"]], "what people believe ends no secret"
    await note(store, 3, WELL)
    items = await store.asearch(FACTS, limit=99)
    [holds] = await keep_valid(store, items, timeline=[("a", 3)])
    assert (holds.value["kind"], holds.value["turn"]) == ("event", 3)


async def test_a_lie_about_what_is_known_lasts_until_the_truth_is_said_again(store):
    await note(store, 1, ODA)
    await note(store, 2, CONFESSION)
    assert await valid(store, [("a", 2)]) == [CONFESSION["text"], ODA["text"]]
    again = await note(store, 3, ODA)
    assert again.repetitions == {"a-3-fact-0": "a-1-fact-0"}
    assert await valid(store, [("a", 3)]) == [ODA["text"]]
    fork = [("a", 2), ("b", 3)]
    await note(store, 3, ODA, timeline=fork)
    for line in (fork, [("a", 3)]):
        assert await valid(store, line) == [ODA["text"]], "each branch has heard it for itself"


async def test_hearsay_ends_no_fact_and_no_hearsay_of_others(store):
    claims = [CONFESSION, ODA | {"claimed_by": "Ben"}, ODA | {"kind": "rumour"}]
    for turn, claim in enumerate(claims, 1):
        await note(store, turn, claim)
    assert len(await valid(store, [("a", 3)])) == 3
    assert not any(settles(claim, other) for claim in claims for other in claims)


async def test_hearsay_and_truth_of_one_turn_or_without_a_timeline(store):
    await note(store, 1, CONFESSION, ODA)
    assert await valid(store, [("a", 1)]) == [ODA["text"]]
    lasting = ("ann", "player", "facts")
    for fact in (CONFESSION, ODA):
        await note_facts(store, lasting, [fact])
    items = await store.asearch(lasting, limit=99)
    assert [item.value["text"] for item in await keep_valid(store, items)] == [ODA["text"]]


async def test_the_fact_comes_in_the_place_of_the_rumour_that_a_question_finds(store):
    await note(store, 1, CONFESSION)
    await note(store, 2, ODA)
    timeline = [("a", 2)]
    found = await recall(store, [FACTS], Query("What did Greta say?", timeline=timeline, limit=1))
    held = await replace_superseded(store, found, FACTS, timeline=timeline)
    assert [record.value["text"] for record in held] == [ODA["text"]]


# In a game


async def test_what_the_player_only_claimed_becomes_a_fact_when_the_reply_shows_it(game):
    await game.begin()
    await play(game, "Hilda keeps the mill, as I know.", MILL, reply="You nod to yourself.")
    [claimed] = (await stored(game)).values()
    assert (claimed["kind"], claimed["claimed_by"]) == ("rumour", "Mira")
    await play(game, "I look for Hilda and the mill.", MILL, reply="Among the sacks: Hilda, who keeps the mill.")
    records = sorted((await stored(game)).values(), key=lambda record: record["turn"])
    assert [(record["kind"], record["claimed_by"]) for record in records] == [("rumour", "Mira"), ("trait", "")]
    assert await known(game) == [MILL["text"]]
    context = Context.of(game.settings)
    causes = [cause for cause in await why(game.app, game.config, context, "keeps the mill") if cause.field == "fact"]
    assert [(cause.turn, cause.holds) for cause in causes] == [(3, True), (2, False)]
    await retract(game.app, game.config, context, 3)
    assert [record["kind"] for record in (await stored(game)).values()] == ["rumour"]
    assert await known(game) == [MILL["text"]], "what settled the rumour is gone, so it holds again"


async def test_a_confession_is_no_longer_told_once_the_truth_is_out(game):
    await game.begin()
    await play(game, "I ask Greta.", CONFESSION, reply="Greta sobs that she poisoned the well.")
    await play(game, "I search Oda's room.", ODA, reply="The vial is Oda's: it was Oda who poisoned the well.")
    await play(game, "Who poisoned the well?")
    told = [memory["text"] for memory in game.values.get("recalled") or [] if memory.get("kind") != "exchange"]
    assert CONFESSION["text"] not in told
    assert await known(game) == [ODA["text"]]
