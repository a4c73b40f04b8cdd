"""What facts have ended, in core memory and in exchanges; what takes its place; all about somebody."""

import pytest
from langgraph.store.base import PutOp
from noted_facts import FACTS, say
from stores import stores_of

from questbook import note_facts
from questbook.memory.facts.lookup import facts_about, facts_asked_for, is_standing_fact
from questbook.memory.facts.supersession import (
    EndedFact,
    exchange_now,
    find_ended,
    outdated_sections,
    replace_superseded,
    says_all,
)
from questbook.memory.facts.validity import HOLDS, mark_op, write_judgements
from questbook.memory.recall.intents import asks_about
from questbook.memory.recall.query import Passage, Query, Recalled
from questbook.memory.recall.recall import recall
from questbook.memory.text.passages import Span
from questbook.memory.timeline.records import Stamp
from questbook.memory.timeline.timeline import record_key, remember


def user(text, attribute="", value="", **fields):
    return {"text": text, "subject": "the user", "attribute": attribute, "value": value} | fields


OSLO, BERGEN = user("The user lives in Oslo.", "home", "Oslo"), user("The user lives in Bergen.", "city", "Bergen")
MOVED = EndedFact(OSLO, BERGEN | {"said_at": "2026-05-03T10:00:00+00:00"})
store = stores_of()


@pytest.mark.parametrize(
    ("section", "outdated"),
    [
        ("Ann lives in Oslo and likes tea.", True), ("Name: Ann\nHome: Oslo\nLikes: tea", True),
        ("Wohnort: Oslo", True), ("Ann lives in Bergen; before, she lived in Oslo and Bergen.", False),
        ("Home: Bergen", False), ("Ann studied history in Oslo.", False), ("Lives alone with two cats.", False),
        ("", False),
    ],
)  # fmt: skip
def test_a_section_that_tells_what_has_ended_is_found(section, outdated):
    assert outdated_sections({"human": section, "persona": "I am friendly."}, [MOVED]) == (
        {"human": [MOVED]} if outdated else {}
    )


@pytest.mark.parametrize(("one", "other"), [("मीना", "मोना"), ("สิน", "สีน"), ("Meena", "Mona")])
async def test_a_fact_ends_none_of_somebody_whose_name_a_vowel_sign_tells_apart(store, one, other):
    for number, (name, place) in enumerate([(one, "Oslo"), (other, "Rome"), (one, "Bergen")], 1):
        fact = {"text": f"{name} lives in {place}.", "subject": name, "attribute": "home", "value": place}
        written = await note_facts(store, FACTS, [fact], timeline=[("a", number)])
        assert written.superseded == (["a-1-fact-0"] if number == 3 else [])


async def test_a_fact_of_an_older_version_which_cut_words_at_vowel_signs_is_ended_by_a_newer_one(store):
    home = {"subject": "राम", "attribute": "home"}
    await note_facts(store, FACTS, [home | {"text": "राम का घर दिल्ली है।", "value": "दिल्ली"}], timeline=[("a", 1)])
    [item] = await store.asearch(FACTS)
    assert item.value["slot"] == "राम|home"
    [mark] = [each for each in await store.asearch(FACTS[:-1]) if "what" in each.value]
    await store.adelete(mark.namespace, mark.key)
    old = item.value | {"slot": "र म|home"}
    await store.abatch([PutOp(FACTS, item.key, old), mark_op(FACTS, HOLDS, old["slot"], item.key, old)])
    new = home | {"text": "राम का घर मुंबई है।", "value": "मुंबई"}
    written = await note_facts(store, FACTS, [new], timeline=[("a", 2)])
    assert written.superseded == [item.key]


async def test_what_has_ended_is_found_with_what_holds_now_on_its_timeline_alone(store):
    said = {"said_at": "2026-05-03T10:00:00+00:00"}
    await note_facts(store, FACTS, [OSLO, user("The user has a cat.")], timeline=[("a", 1)])
    await note_facts(store, FACTS, [BERGEN], timeline=[("a", 2)], provenance=said)
    [ended] = await find_ended(store, FACTS, timeline=[("a", 2)])
    assert (ended.old["value"], ended.new["value"], ended.until) == ("Oslo", "Bergen", "2026-05-03")
    await write_judgements(store, FACTS, [("a-2-fact-0", "x")], Stamp("a", 3).to_json())
    assert [one.old["value"] for one in await find_ended(store, FACTS, timeline=[("a", 3)])] == ["Oslo"]
    assert await find_ended(store, FACTS, timeline=[("a", 1)]) == []
    assert await find_ended(store, FACTS, timeline=[("a", 1), ("b", 2)]) == []


def test_what_of_an_exchange_facts_have_ended_or_say_can_be_left_out():
    day, wedding = "2026-05-03", "Yesterday my brother's wedding cake fell into the harbour, and everybody laughed."
    ended, taught = {"f1": BERGEN | {"said_at": f"{day}T10:00:00+00:00"}}, {"f1": OSLO}
    assert exchange_now("By the way, I live in Oslo, near the harbour.", taught, ended) == ("", True, day)
    assert exchange_now(f"Hi! I live in Oslo. {wedding}", taught, ended) == (wedding, True, day)
    assert exchange_now("I live in Oslo.", taught, {}) == ("I live in Oslo.", False, ""), "no prompt has its fact"
    assert exchange_now("I live in Oslo.", taught, {}, shown=["f1"]) == ("", False, "")
    assert exchange_now("I live in Oslo.", {}, {}) == ("I live in Oslo.", False, "")
    both = taught | {"f2": user("The user works as a nurse.", "occupation", "nurse")}
    told = "I live in Oslo as a nurse."
    assert exchange_now(told, both, ended) == (told, True, day), "it tells what holds as well"
    assert exchange_now(told, both, ended | {"f2": {"said_at": "2026-06-01"}}).until == "2026-06-01"
    assert exchange_now("Oslo!", taught | {"f2": user("Works in Oslo.", "workplace", "Oslo")}, ended).rest == "Oslo!"
    long = "In Oslo, " + ", ".join(f"the {n}th floor of tower {n} has lamps" for n in range(9))
    assert exchange_now(long, taught, ended).rest == long


def test_facts_say_all_of_a_message_but_for_small_talk():
    job = user("The user works as a nurse.", "occupation", "nurse")
    assert says_all("Hi, just to let you know: I work as a nurse now!", [job])
    assert not says_all("I work as a nurse, and the night shifts in the children's ward wear me out.", [job])
    assert says_all("nurse works copper kettle user", [job]), "three words of five"
    assert not says_all("nurse works copper kettle whistles user", [job]), "three of six"
    assert says_all("Home: Oslo", [{"attribute": "city", "value": "Oslo"}]), "by the one name of the attribute"


@pytest.mark.parametrize(("words", "left"), [(40, 0), (41, 1)])
async def test_an_exchange_that_only_told_its_facts_needs_no_place_unless_its_reply_says_more(store, words, left):
    told = {"player": "I live in Oslo.", "reply": " ".join(["word"] * words)}
    await remember(store, EXCHANGES, told, turn=1, timeline=[("a", 1)])
    await note_facts(store, FACTS, [OSLO], timeline=[("a", 1)])
    recalled = await recall(store, EXCHANGES, Query("Where do I live?", timeline=[("a", 1)], fitting=False))
    shown = [record_key("a", 1, "fact")]
    assert len(await replace_superseded(store, recalled, FACTS, timeline=[("a", 1)], shown=shown)) == left


async def test_an_exchange_without_a_branch_and_a_fact_of_a_turn_are_no_exchange_that_taught_facts(store):
    await note_facts(store, FACTS, [OSLO, BERGEN], timeline=[("a", 1)])
    old = {"kind": "exchange", "turn": 1, "player": "Where?", "reply": "There.", "text": "Where?\nThere."}
    recalled = [Recalled("x", old, None, 1.0, EXCHANGES)]
    assert await replace_superseded(store, recalled, FACTS, timeline=[("a", 1)]) == recalled
    other = await recall(store, FACTS, Query("Bergen", timeline=[("a", 1)], fitting=False, limit=1))
    assert await replace_superseded(store, other, FACTS, timeline=[("a", 1)], shown=["a-9-fact-9"]) == other


@pytest.mark.parametrize("rest", ["", "My brother's cake fell into the harbour."])
async def test_what_holds_now_and_what_else_an_exchange_told_takes_its_place_and_says_until_when_it_was_so(store, rest):
    told = {"player": f"I live in Oslo. {rest}", "reply": "Nice."}
    await remember(store, EXCHANGES, told, turn=1, timeline=[("a", 1)])
    await note_facts(store, FACTS, [OSLO], timeline=[("a", 1)])
    await note_facts(store, FACTS, [BERGEN], timeline=[("a", 2)], provenance={"said_at": "2026-05-03T10:00:00"})
    for turn, held, until in ((2, [BERGEN["text"]], "2026-05-03"), (1, [], None)):
        recalled = await recall(store, EXCHANGES, Query("Where do I live?", timeline=[("a", turn)], fitting=False))
        shown = [record_key("a", 1, "fact")]
        now = await replace_superseded(store, recalled, FACTS, timeline=[("a", turn)], shown=shown)
        left = [(one.value["player"], one.value.get("until")) for one in now[len(held) :]]
        assert ([one.text for one in now[: len(held)]], left) == (held, [(rest, until)] if rest else [])


async def test_a_fact_comes_before_the_exchange_that_says_it_and_what_fits_is_found_in_what_is_left(store):
    cake = "My brother's cake fell into the harbour."
    told = {"player": f"{cake} I live in Oslo.", "reply": "Nice."}
    await remember(store, EXCHANGES, told, turn=1, timeline=[("a", 1)])
    await note_facts(store, FACTS, [OSLO], timeline=[("a", 1)])
    [item] = await store.asearch(EXCHANGES)
    passages = (Passage(Span(0, len(cake)), 2.0), Passage(Span(len(cake) + 1, len(cake) + 16), 1.0))
    exchange = Recalled(item.key, item.value, None, 1.0, EXCHANGES, passages=passages, standing=passages[1].span)
    fact = Recalled("a-1-fact-0", (await store.aget(FACTS, "a-1-fact-0")).value, None, 0.5, FACTS)
    assert await replace_superseded(store, [exchange, fact], FACTS, timeline=[("a", 1)]) == [exchange, fact], "whole"
    first, second = await replace_superseded(store, [exchange, fact], FACTS, timeline=[("a", 1)], shown=())
    assert (first, second.value["player"], second.passages, second.standing) == (fact, cake, passages[:1], None)


@pytest.mark.parametrize(
    ("fact", "standing"),
    [
        (user("Always answer in metric units.", kind="preference"), True),
        (user("The user wants answers in metric units.", kind="preference"), True),
        (user("The user wants to be addressed formally.", kind="preference"), True),
        (user("Metric units.", "instruction about units", "metric"), True),
        (user("Der Benutzer möchte, dass kurz geantwortet wird.", kind="preference"), True),
        (user("The user likes jazz.", kind="preference"), False), (user("The user always forgets the keys."), False),
        (user("Always answer in rhyme.", claimed_by="Tom", kind="rumour"), False),
        (user("The dog wants to be fed.", kind="preference") | {"subject": "Rex"}, False),
        (user("Metric units.", "instruction about units", ends=True), False),
        (user("Metric units.", "instruction about units", claimed_by="Tom"), False),
        (user("Metric units.", "instruction about units", kind="rumour"), False),
        (user("Metric units.", "rule", "metric"), True), (user("Metric units.", "units", "metric"), False),
        (user("Always answer in rhyme.") | {"subject": ""}, True),
        (user("Always answer in rhyme.") | {"subject": "User"}, True),
        (user("Always answer in rhyme.") | {"subject": "the Player"}, False),
        (user("Always answer in rhyme.") | {"subject": "Player"}, True),
        (user("Always answer in rhyme.") | {"subject": "Rex"}, False),
        (user("The user wants answers in metric units.", kind="trait"), False),
        (user("The user prefers you to be brief.", kind="preference"), True),
        (user("The user expects the replies in German.", kind="preference"), True),
        (user("The user would like to be called Ann.", kind="preference"), True),
        (user("The user asks the assistant for more jokes.", kind="preference"), True),
        (user("The user wants tea.", kind="preference"), False),
    ],
)  # fmt: skip
def test_a_standing_instruction_is_told_from_other_facts(fact, standing):
    assert is_standing_fact(fact) is standing


async def test_all_about_a_person_is_what_holds_of_them_and_of_what_is_theirs(store):
    miso = {"text": "Miso is afraid of thunder.", "subject": "Miso", "attribute": "fear", "value": "thunder"}
    sister = {"text": "Anna is the user's sister.", "subject": "Anna", "attribute": "relation to the user"}
    anna = {"text": "Anna lives in Rome.", "subject": "Anna", "attribute": "home", "value": "Rome"}
    paris = {"text": "Paris is the capital of France.", "subject": "Paris", "attribute": "capital of"}
    facts = [OSLO, user("The user's cat is called Miso.", "cat", "Miso"), miso, sister, anna, paris]
    facts.append(user("The user is a spy.", kind="rumour"))
    await note_facts(store, FACTS, facts, timeline=[("a", 1)])
    await note_facts(store, FACTS, [BERGEN], timeline=[("a", 2)])
    await note_facts(store, FACTS, [user("The user lives in Rome.", "city", "Rome")], timeline=[("a", 1), ("b", 9)])
    told = {item.value["text"] for item in await facts_about(store, FACTS, timeline=[("a", 2)])}
    assert told == {
        "The user's cat is called Miso.", "Miso is afraid of thunder.", "Anna is the user's sister.",
        "Anna lives in Rome.", "The user lives in Bergen.",
    }  # fmt: skip
    about = await facts_about(store, FACTS, timeline=[("a", 2)], subject="Miso")
    assert {item.value["text"] for item in about} == {"Miso is afraid of thunder.", "The user's cat is called Miso."}
    asked = {whom: await facts_asked_for(store, FACTS, whom, timeline=[("a", 2)]) for whom in ("", "Miso", "my cat")}
    assert {item.value["text"] for item in asked[""]} == told, "of the person, if nobody is named"
    of_miso = ["The user's cat is called Miso.", "Miso is afraid of thunder."]
    assert [[item.value["text"] for item in asked[whom]] for whom in ("Miso", "my cat")] == [of_miso] * 2


@pytest.mark.parametrize(
    ("question", "whom"),
    [
        ("What do you know about me?", ""), ("Tell me everything you remember about me.", ""), ("Who am I?", ""),
        ("Wer bin ich?", ""),
        ("Was weißt du über mich?", ""), ("Erzähl mir alles über mich.", ""),
        ("What do you know about my cat?", "my cat"), ("Was weißt du von Anna?", "Anna"), ("Where do I live?", None),
        ("What about dinner?", None),
    ],
)  # fmt: skip
def test_a_question_for_all_about_somebody_is_recognised(question, whom):
    assert asks_about(question) == whom


EXCHANGES = ("u", "c", "exchanges")
HOME = {"subject": "Goran", "attribute": "home", "kind": "trait"}


async def tell(store, branch, turn, text, timeline=None, **fields):
    await say(store, {"text": text} | fields, branch, turn, timeline)


async def move(store):
    await tell(store, "a", 1, "Goran, called the Heron, lives at the mill.", value="the mill", **HOME)
    await tell(store, "a", 9, "Goran moved to the tower.", value="the tower", **HOME)


async def found(store, query, timeline, **options):
    async def holding(records):
        return await replace_superseded(store, records, FACTS, timeline=timeline)

    got = await recall(store, [EXCHANGES, FACTS], Query(query, timeline=timeline, refine=holding, **options))
    return [one.value["text"] for one in got]


async def test_an_exchange_that_told_what_has_changed_comes_after_what_holds_now(store):
    told = {"player": "I ask.", "reply": "The Heron? Goran is his name, and he lives at the mill."}
    await remember(store, EXCHANGES, told, turn=1, timeline=[("a", 1)])
    await tell(store, "a", 1, "Goran lives at the mill.", value="the mill", **HOME)
    await tell(store, "a", 9, "Goran moved to the tower.", value="the tower", **HOME)
    texts = await found(store, "Where is the Heron?", [("a", 9)])
    assert texts[0] == "Goran moved to the tower."
    assert "The Heron?" in texts[1]
    short = await found(store, "Where is the Heron?", [("a", 9)], budget=12)
    assert short == ["Goran moved to the tower."], "if one of them fits, it is what holds"


async def test_who_asks_by_a_name_that_only_the_old_fact_has_finds_the_new_one_and_a_fork_what_was(store):
    await move(store)
    assert await found(store, "Where is the Heron?", [("a", 9)]) == ["Goran moved to the tower."]
    fork = [("a", 5), ("b", 8)]
    assert await found(store, "Where is the Heron?", fork) == ["Goran, called the Heron, lives at the mill."]
    await tell(store, "b", 7, "Goran moved to the inn.", fork, value="the inn", **HOME)
    assert await found(store, "Where is the Heron?", fork) == ["Goran moved to the inn."]


@pytest.mark.parametrize(("denied", "until"), [("nurse", "2026-05-03"), ("teacher", None)])
async def test_who_is_no_teacher_may_be_what_they_said(store, denied, until):
    told = {"player": "I work as a nurse. My brother's cake fell into the harbour.", "reply": "Nice."}
    await remember(store, EXCHANGES, told, turn=1, timeline=[("a", 1)])
    await note_facts(store, FACTS, [user("The user is a nurse.", "job", "nurse")], timeline=[("a", 1)])
    denial = user(f"The user is not a {denied}.", "job", f"not a {denied}")
    await note_facts(store, FACTS, [denial], timeline=[("a", 2)], provenance={"said_at": "2026-05-03T10:00:00"})
    recalled = await recall(store, EXCHANGES, Query("What is my job?", timeline=[("a", 2)], fitting=False))
    *_, exchange = await replace_superseded(store, recalled, FACTS, timeline=[("a", 2)], shown=())
    assert exchange.value.get("until") == until


async def test_what_holds_comes_once_and_what_is_in_no_slot_stays(store):
    for turn, where in ((1, "mill"), (4, "inn"), (9, "tower")):
        await tell(store, "a", turn, f"Goran, called the Heron, lives at the {where}.", value=where, **HOME)
    await tell(store, "a", 2, "The Heron sings.", subject="Goran")
    texts = await found(store, "Where is the Heron?", [("a", 9)])
    assert sorted(texts) == ["Goran, called the Heron, lives at the tower.", "The Heron sings."]


async def test_what_holds_now_is_brought_though_it_was_not_recalled(store):
    await move(store)
    recalled = await recall(store, FACTS, Query("Where is the Heron?", timeline=[("a", 9)]))
    [old] = [one for one in recalled if one.value["turn"] == 1]
    [new] = await replace_superseded(store, [old], FACTS, timeline=[("a", 9)])
    assert (new.key, new.text) == (record_key("a", 9, "fact"), "Goran moved to the tower.")
    assert await replace_superseded(store, [old], FACTS, timeline=[("a", 8)]) == [old]
    await store.adelete(FACTS, new.key)
    assert await replace_superseded(store, [old], FACTS, timeline=[("a", 9)]) == [], "what was forgotten is not brought"


@pytest.mark.parametrize(
    ("message", "ended", "left"),
    [
        ("Hi! I live in Oslo. Thanks!", {}, "I live in Oslo."),  # talk tells nothing
        ("Thanks, that is great!", {}, ""),
        ("I like old jazz records.", {"f2"}, ""),  # a fact without a value has ended, too
        (
            "I like old jazz records, above all from the harbour sale.",
            {"f2"},
            "I like old jazz records, above all from the harbour sale.",
        ),
        ("I live in Oslo. I like old jazz records.", {"f2"}, "I live in Oslo."),
    ],
)
def test_talk_and_what_has_ended_is_not_left_of_a_message(message, ended, left):
    taught = {"f1": OSLO, "f2": user("The user likes old jazz records.")}
    assert exchange_now(message, taught, {key: {} for key in ended}) == (left, bool(ended), "")
    assert exchange_now(message, {}, {}).rest == message


def test_without_facts_nothing_is_said():
    assert not says_all("Thanks!", [])
    assert says_all("Thanks!", [OSLO])


def test_a_new_value_that_is_part_of_the_old_one_does_not_excuse_it():
    ended = EndedFact(user("The user's car.", "car", "dark red Volvo"), user("The user's car.", "car", "red Volvo"))
    told = {"a": "Car: dark red Volvo", "b": "Car: red Volvo"}
    assert outdated_sections(told, [ended]) == {"a": [ended]}


async def test_only_facts_about_the_person_are_looked_through_for_what_has_ended(store):
    goran = {"subject": "Goran", "attribute": "home"}
    for turn, where in ((1, "Oslo"), (2, "Bergen")):
        facts = [goran | {"text": f"Goran lives in {where}.", "value": where}, user(f"In {where}.", "home", where)]
        await note_facts(store, FACTS, facts, timeline=[("a", turn)])
    assert [one.old["text"] for one in await find_ended(store, FACTS, timeline=[("a", 2)])] == ["In Oslo."]


async def test_what_has_ended_without_a_successor_is_not_brought_back_by_its_end(store):
    await note_facts(store, FACTS, [user("The user drives a Volvo.", "car", "a Volvo")], timeline=[("a", 1)])
    await note_facts(store, FACTS, [user("The user's car.", "vehicle", ends=True)], timeline=[("a", 2)])
    [old] = [item for item in await store.asearch(FACTS) if item.value["turn"] == 1]
    recalled = [Recalled(old.key, old.value, None, 1.0, FACTS)]
    assert await replace_superseded(store, recalled, FACTS, timeline=[("a", 2)]) == []


def thing(number, value):
    text = f"Thing {number} is {value}."
    return {"text": text, "subject": f"thing {number}", "attribute": "colour", "value": value}


async def test_the_best_24_records_are_replaced_and_what_follows_only_falls_away(store):
    await note_facts(store, FACTS, [thing(n, "red") for n in range(25)], timeline=[("a", 1)])
    await note_facts(store, FACTS, [thing(n, "blue") for n in range(25)], timeline=[("a", 2)])
    old = [(record_key("a", 1, "fact", n), 1.0 - n / 100) for n in range(25)]
    recalled = [Recalled(key, (await store.aget(FACTS, key)).value, None, weight, FACTS) for key, weight in old]
    now = await replace_superseded(store, recalled, FACTS, timeline=[("a", 2)])
    assert [one.text for one in now] == [f"Thing {n} is blue." for n in range(24)]
    assert [one.weight for one in now] == [weight for _, weight in old[:24]], "in the place of the old one"


@pytest.mark.parametrize(("turn", "ordinal", "known"), [(16, 3, True), (16, 4, False), (17, 0, False)])
@pytest.mark.slow
async def test_of_sixteen_exchanges_four_facts_each_are_looked_up(store, turn, ordinal, known):
    for number in range(1, 18):
        await remember(store, EXCHANGES, f"Turn {number}.", turn=number, timeline=[("a", number)])
    await note_facts(store, FACTS, [thing(n, "red") for n in range(5)], timeline=[("a", turn)], turn=turn)
    await note_facts(store, FACTS, [thing(ordinal, "blue")], timeline=[("a", 18)], turn=18)
    keys = [record_key("a", number, "exchange") for number in range(1, 18)]
    recalled = [Recalled(key, (await store.aget(EXCHANGES, key)).value, None, 1.0, EXCHANGES) for key in keys]
    now = await replace_superseded(store, recalled, FACTS, timeline=[("a", 18)])
    assert [one.text for one in now if one.namespace == FACTS] == [f"Thing {ordinal} is blue."] * known


async def test_what_belongs_to_the_person_does_not_bring_all_that_is_known_of_them(store):
    told = [
        {"text": "The user owns Rex.", "subject": "Rex", "attribute": "owner", "value": "the user"},
        {"text": "The user lives in Oslo.", "subject": "the user", "attribute": "home", "value": "Oslo"},
    ]
    await note_facts(store, FACTS, told, timeline=[("a", 1)])
    found = await facts_about(store, FACTS, timeline=[("a", 1)], subject="Rex")
    assert [item.value["text"] for item in found] == ["The user owns Rex."]
