"""Names of several words, and other names: how they are told from other words, and what they bring and move up."""

import json

import pytest
from langchain_core.messages import HumanMessage
from noted_facts import noted
from scripted import sections_of
from stores import stores_of

from questbook import HashEmbeddings
from questbook.memory.recall.names import (
    content_words,
    find_aliases,
    find_names,
    has_name,
    name_words,
    named_in,
    names_of,
    remove_words,
    score_named,
)
from questbook.memory.recall.query import Query, Recalled, Weights
from questbook.memory.recall.recall import recall
from questbook.memory.timeline.records import Record

FACTS = ("u", "c", "facts")


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("What does the Quiet Anvil fear?", ["quiet anvil"]),
        ("the Merry Nail has a dog. Is it the Quiet Anvil's?", ["merry nail", "quiet anvil"]),
        ("Did Zoé Ironfist go?", ["zoe ironfist"]), ("Did Zoe\u0301 Ironfist go?", ["zoe ironfist"]),
        ("What of The Grey Heron?", ["grey heron"]),
        ("Who was Frederick I Barbarossa?", ["frederick i barbarossa"]),
        ("Where is Jean-Luc?", ["jean luc"]), ("Where is Jean‐Luc D’Arc?", ["jean luc d arc"]),
        ("Grey Heron lives where?", ["grey heron"]), ("Tell Oda Stone of it.", ["oda stone"]),
        ("Old Grey Heron\nPale The Moth Queen", ["grey heron", "moth queen"]),
        ("Who sang “A Boat In The Fog”?", ["boat in the fog"]),
        ("Who sang “A Boat In The Grey Fog”?", ["boat in the grey fog"]),
        ("I met the Grey Heron. Red Otter, too; and Old Moth, Pale Owl", ["grey heron", "red otter", "old moth"]),
        ("Where is the Merry Nail\nGardric", ["merry nail"]), ("Goran, Oda: where?", []),
        ("Did Goran go? Oda did.", []), ("Should the Heron I met go?", []), ("Why The Heron?", []),
        ("what does the quiet anvil fear?", []), ("WHAT DOES THE QUIET ANVIL FEAR?", []),
        ("Read “One Hundred Grey Herons Under Ten Bridges”", []), ("静かな鉄床は何を恐れる", []), ("", []),
    ],
)  # fmt: skip
def test_a_name_is_two_capitals_in_a_row_beside_what_begins_a_sentence(question, names):
    assert find_names(question) == names


def test_words_that_name_somebody_are_longer_than_a_letter():
    assert name_words("Did Q tell Goran, or did Al?") == ["goran", "al"]


def test_words_of_those_who_speak_are_no_part_of_a_name():
    assert find_names("What did Melanie Grey Heron say?", ["melanie"]) == ["grey heron"]
    assert find_names("Has Melanie Stone said so?", ["melanie", "stone"]) == []


@pytest.mark.parametrize(
    ("text", "has"),
    [
        ("People call Goran the Quiet Anvil.", True), ("“quiet\nanvil”", True), ("the _Quiet_ Anvil's hound", True),
        ("Quiét-Anvil", True), ("The anvil is quiet; an anvil.", False), ("Disquiet Anvil", False),
        ("Quiet Anvils", False), ("", False),
    ],
)  # fmt: skip
def test_a_text_has_a_name_word_for_word_or_not(text, has):
    assert has_name(text, ["merry nail", "quiet anvil"]) is has


store = stores_of("faiss", "memory", embed=HashEmbeddings())


async def told(store, *texts):
    for number, text in enumerate(texts):
        await store.aput(FACTS, f"{number:03}", {"text": text})


async def texts(store, question, **settings):
    return [one.value["text"] for one in await recall(store, FACTS, Query(question, **settings))]


CALLED = "People call Gardric the Merry Nail."
ALIASES = (("Al", "Broken Nail"), ("Bo", "Merry Thorn"), ("Cy", "Tall Nail"), ("Di", "Merry Owl"))
CRYPTS = [
    f"The amulet of {who}{n}, called the {alias}, lies in the {who} crypt." for n in range(20) for who, alias in ALIASES
]
HOUNDS = [f"{who}{n}, called the {alias}, has a hound." for n in range(40) for who, alias in ALIASES]


@pytest.mark.slow
async def test_a_name_of_common_words_brings_what_has_it_though_hundreds_share_its_words(store):
    await told(store, *CRYPTS, *HOUNDS, CALLED)
    question = "In which crypt does the amulet of the Merry Nail lie?"
    assert (await texts(store, question))[0] == CALLED
    assert CALLED not in await texts(store, question.lower(), limit=1000), "not even a candidate"


async def test_what_has_a_name_word_for_word_comes_before_what_has_its_words_scattered(store):
    whole, scattered = (
        "Ask the Grey Heron, there by the water, of that.",
        "Grey, grey: a heron, grey, by the grey water.",
    )
    await told(store, whole, scattered, "A boat.")
    (best, other) = await recall(store, FACTS, Query("Was the Grey Heron by the grey water?", limit=2))
    assert best.value["text"] == whole
    assert "name word for word" in str(best.reason)
    assert "name" not in str(other.reason)
    assert (await texts(store, "Was the Grey Heron by the grey water?", weights=Weights(phrase=0)))[0] == scattered
    assert (await texts(store, "was the grey heron by the grey water?"))[0] == scattered


async def test_a_name_that_no_record_has_changes_nothing(store):
    await told(store, *CRYPTS, CALLED)
    question = "Does the amulet of the Quiet Anvil or the Pale Nail lie in a crypt?"
    found = await texts(store, question, limit=1000, fitting=False)
    assert found == await texts(store, question.lower(), limit=1000, fitting=False)


async def test_each_of_two_names_brings_what_has_it(store):
    other = "People call Oda the Broken Thorn."
    await told(store, *CRYPTS, *HOUNDS, CALLED, other)
    question = "Whose amulet lies in the crypt, the Merry Nail's or the Broken Thorn's?"
    assert {CALLED, other} <= set(await texts(store, question))
    assert not {CALLED, other} & set(await texts(store, question.lower()))


@pytest.mark.parametrize("before", ["It burnt. ", "It burnt!\n", "", "“"])
def test_the_first_word_of_a_sentence_is_no_part_of_a_longer_name(before):
    assert find_names(f"{before}Poor Quiet Anvil fell.") == ["quiet anvil"]
    assert find_names("It was the Poor Quiet Anvil.") == ["poor quiet anvil"]


def known(subject, attribute, value):
    return Recalled("k", {"subject": subject, "attribute": attribute, "value": value}, None, 1.0)


HERON = known("Goran", "nickname", "the Grey Heron")
RED, KINGS = known("Goran", "alias", "the Red"), [known(name, "title", "King") for name in ("Oswin", "Aldric")]
HAND, EYED = known("Goran", "alias", "red hand"), known("Goran", "nickname", "the one-eyed")
WILL, OLD = known("Goran", "nickname", "Will"), known("Goran", "nickname", "Old and Grey")
CAPTAINS = [known(f"Oda {n}", "title", "captain") for n in range(5)]


@pytest.mark.parametrize(
    ("records", "question", "names"),
    [
        ([HERON], "Where does the Grey Heron live?", ["Goran"]),
        ([HERON], "Where does the grey heron's sister live?", ["Goran"]),
        ([HERON], "Where does Goran live?", ["the Grey Heron"]), ([HERON], "Is Goran the Grey Heron?", []),
        ([HERON], "Where does Grey Heron live?", ["Goran"]),
        ([known("The Grey Heron", "alias", "Goran")], "What of Grey Heron?", ["Goran"]),
        ([known("The Grey Heron", "alias", "Goran")], "Is Goran Grey Heron?", []),
        ([HERON], "Where does the Heron live?", []), ([HERON], "Where do grey herons live?", []), ([HERON], "", []),
        ([known("The Grey Heron", "alias", "Goran")], "What of the Grey Heron?", ["Goran"]),
        ([known("The Grey Heron", "Also known as", "Goran")], "What of the Grey Heron?", ["Goran"]),
        ([known("Goran", "home", "the mill"), known("", "name", "x")], "Who is at the mill?", []),
        (CAPTAINS, "I ask the Captain.", ["Oda 0", "Oda 1", "Oda 2"]),
        ([RED, *KINGS], "Who painted the red door?", []), ([RED, *KINGS], "Red paint: who has it?", []),
        ([RED, *KINGS], "WHO PAINTED THE RED DOOR?", []), ([RED, *KINGS], "What do kings eat?", []),
        ([RED, *KINGS], "Does the king know?", []), ([RED], "By the red door, what does the Red want?", ["Goran"]),
        ([RED], "The Red is here. Who knows him?", ["Goran"]), ([HAND], "Who is the red hand?", ["Goran"]),
        ([HAND], "Who has red paint on his hand?", []), ([EYED], "Where is the one-eyed goat?", []),
        ([WILL], "Will he come?", []), ([WILL], "Is Will here?", ["Goran"]),
        ([OLD], "Where does Old and Grey live?", ["Goran"]), ([OLD], "Where are old and grey geese?", []),
        ([known("Goran", "title", "King of the Marsh")], "Where is the king of the marsh?", ["Goran"]),
        ([known("I", "name", "Mira")], "What do I know?", []),
        ([known("the king", "name", "Aldric")], "Where does the king live?", ["Aldric"]),
        ([known("Zoé", "alias", "La Rouge")], "Où est la rouge?", ["Zoé"]),
    ],
)  # fmt: skip
def test_another_name_counts_where_it_stands_as_a_name_and_three_are_enough(records, question, names):
    assert find_aliases(records, question) == names


async def test_what_is_noted_under_the_name_is_recalled_by_the_other_name(new_game):
    game = new_game(buffer_tokens=300, recall_tokens=200)
    await game.begin()
    await game.walk(6)
    branch = game.values["timeline"][0][0]
    facts = [{"text": "People call Goran the Grey Heron.", "subject": "Goran", "attribute": "nickname"}]
    facts[0]["value"] = "the Grey Heron"
    facts += [{"text": "Goran sleeps below the bridge of Harrow.", "subject": "Goran", "attribute": "home"}]
    facts += [{"text": f"A heron nests in the reeds of pond {n}.", "subject": f"pond {n}"} for n in range(20)]
    for ordinal, fact in enumerate(facts):
        one = noted(fact, branch, 2, ordinal)
        await game.store.aput(("adventurer", "default", "facts"), one.key, one.value)
    await game.app.ainvoke(
        {"messages": [HumanMessage("Where is the home of the Grey Heron?")]}, game.config, context=game.settings
    )
    told = sections_of(game.model.asked("quest")[-1]).split("\n<memories>\n")[1].split("</memories>")[0]
    assert "below the bridge" in str([json.loads(line) for line in told.strip().splitlines()])


def test_the_beginning_of_either_word_of_a_name_names_its_bearer():
    names = ["Melanie Grey", "Caroline Stone"]
    assert named_in("What did Mel say?", names) == {"Melanie Grey": {"mel"}}
    assert named_in("What did Sto say?", names) == {"Caroline Stone": {"sto"}}
    assert named_in("What did Me say of the car?", names) == {}


def test_what_a_question_says_of_the_talk_is_not_looked_up_if_it_says_more():
    assert content_words("Tell me what we discussed about the boat", ()) == ["boat"]
    assert content_words("Tell me the summary", ()) == ["tell", "summary"]
    assert content_words("Did Mel mention the boat?", {"mel"}) == ["boat"]
    assert content_words("Did Mel mention it?", {"mel"}) == ["mention"]
    talk = "ask asked question know told talked discussion conversation chat session message provide list order only"
    assert content_words(f"{talk} clear different throughout course recent evolve nine boat", ()) == ["boat"]


def test_a_question_without_some_words_is_the_question_itself_if_nothing_else_is_left():
    assert remove_words("What did Mel's brother say?", ["mel"]) == "What did brother say?"
    assert remove_words("What did Mel’s brother say to Mel", ["mel"]) == "What did brother say to"
    assert remove_words("Mel?", ["mel"]) == "Mel?"
    assert remove_words("Melanie said", ["mel"]) == "Melanie said"


def test_titles_adjectives_months_and_what_begins_a_sentence_name_nobody():
    assert name_words("Did King Goran the Red, Old Tom or the March Hare go in May to Oslo on Monday?") == [
        "goran",
        "tom",
        "hare",
        "oslo",
    ]
    assert name_words("Goran went. Oda stayed: Tom, too. “Anna” left") == []
    assert name_words("Was it Goran, or was Goran not there?") == ["goran"]
    assert name_words("WAS IT GORAN?") == []
    assert name_words("was it goran in June, on Friday?") == []
    assert name_words("Did Re\u0301mi go?") == ["remi"]
    assert find_aliases([known("Goran", "alias", "the Ré Dame")], "Where is the Re\u0301 Dame?") == ["Goran"]
    assert find_aliases([known("Goran", "alias", "the Réd")], "Where is the Re\u0301d?") == ["Goran"]


def test_a_nickname_is_capitalised_and_the_beginning_of_a_name():
    names = ["Will Stone", "Melanie", "The The"]
    found = named_in("What did will say to Mel and stone?", names)
    assert found == {"Will Stone": {"stone"}, "Melanie": {"mel"}}, "“will” alone is no name"
    assert named_in("What did mel say?", names) == {}
    assert named_in("What did the others say?", names) == {}


@pytest.mark.parametrize(
    ("record", "speakers", "subjects", "score"),
    [
        ({"speaker": "Oda"}, ["Oda"], [], 1.0), ({"speaker": "Goran"}, ["Oda"], [], -1.0),
        ({"speaker": "Goran"}, ["Oda", "Tom"], [], 0.0),
        ({"speaker": "Oda"}, ["Oda", "Tom"], [], 0.0), ({}, ["Oda"], [], 0.0), ({"subject": "Mill"}, [], ["Mill"], 1.0),
        ({"claimed_by": "Oda"}, [], ["Oda"], 1.0), ({"subject": "Mill"}, [], ["Oda"], 0.0),
        ({"speaker": "Goran", "subject": "Mill"}, ["Oda"], ["Mill"], 1.0), ({"speaker": "Oda"}, [], [], 0.0),
    ],
)  # fmt: skip
def test_who_is_named_counts_for_and_another_speaker_against(record, speakers, subjects, score):
    read = Record.from_json(record)
    assert score_named(read, speakers, subjects) == score
    assert names_of(read) == {record.get("subject"), record.get("claimed_by")} - {None}


NAMING = ["name", "full name", "true name", "real name", "nickname", "alias", "aliases", "called", "known as"]
NAMING += ["also known as", "title", "epithet", "byname", "other name", "goes by", "Also Known As"]


@pytest.mark.parametrize("attribute", NAMING)
def test_each_attribute_that_names_somebody_tells_another_name(attribute):
    assert find_aliases([known("Goran", attribute, "the Grey Heron")], "Where is the Grey Heron?") == ["Goran"]
    assert find_aliases([known("Goran", f"{attribute} day", "the Grey Heron")], "Where is the Grey Heron?") == []


@pytest.mark.parametrize(
    ("alias", "question", "named"),
    [
        ("seven", "Where are the seven?", False), ("harmless", "Who is harmless?", False),
        ("grateful", "Who is grateful?", False),
        ("one-eyed", "Where is the one eyed?", False), ("scarhand", "Where is scarhand?", True),
        ("the smith", "Where is the smith?", False),
        ("famous", "Who is famous?", False), ("foolish", "Who is foolish?", False),
        ("likeable", "Who is likeable?", False),
    ],
)  # fmt: skip
def test_what_any_may_be_called_names_nobody_in_small_letters(alias, question, named):
    assert find_aliases([known("Goran", "alias", alias)], question) == (["Goran"] if named else [])
