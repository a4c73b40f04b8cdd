"""Who is called otherwise in a question is asked for by their name, too."""

import json

import pytest
from langchain_core.messages import HumanMessage
from noted_facts import noted
from scripted import sections_of

from questbook.memory.recall.names import find_aliases
from questbook.memory.recall.query import Recalled


def known(subject, attribute, value):
    return Recalled("k", {"subject": subject, "attribute": attribute, "value": value}, None, 1.0)


HERON = known("Goran", "nickname", "the Grey Heron")


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("Where does the Grey Heron live?", ["Goran"]),
        ("Where does the grey heron's sister live?", ["Goran"]),
        ("Where does Goran live?", ["the Grey Heron"]),
        ("Is Goran the Grey Heron?", []),
        ("Where does the Heron live?", []),
        ("Where do grey herons live?", []),
        ("", []),
    ],
)
def test_the_other_name_is_returned_unless_the_question_has_it(question, names):
    assert find_aliases([HERON], question) == names


@pytest.mark.parametrize("attribute", ["alias", "Also known as", "true name"])
def test_a_model_may_note_it_either_way_round(attribute):
    assert find_aliases([known("The Grey Heron", attribute, "Goran")], "What of the Grey Heron?") == ["Goran"]


def test_what_is_no_name_is_none_and_three_are_enough():
    assert find_aliases([known("Goran", "home", "the mill"), known("", "name", "x")], "Who is at the mill?") == []
    captains = [known(f"Oda {n}", "title", "captain") for n in range(5)]
    assert find_aliases(captains, "I ask the Captain.") == ["Oda 0", "Oda 1", "Oda 2"]


RED, KINGS = known("Goran", "alias", "the Red"), [known(name, "title", "King") for name in ("Oswin", "Aldric")]


@pytest.mark.parametrize(
    "question",
    [
        "Who painted the red door?",
        "Red paint: who has it?",
        "WHO PAINTED THE RED DOOR?",
        "Is there a king here?",
        "What do kings eat?",
        "Does the king know?",
    ],
)
def test_a_common_word_calls_nobody(question):
    assert find_aliases([RED, *KINGS], question) == []


@pytest.mark.parametrize(
    ("record", "question", "names"),
    [
        (RED, "What does the Red want?", ["Goran"]),
        (RED, "The Red is here. Who knows him?", ["Goran"]),
        (known("Goran", "alias", "red hand"), "Who is the red hand?", ["Goran"]),
        (known("Goran", "alias", "red hand"), "Who has red paint on his hand?", []),
        (known("Goran", "nickname", "the one-eyed"), "Where is the one-eyed goat?", []),
        (known("Goran", "nickname", "Will"), "Will he come?", []),
        (known("Goran", "nickname", "Will"), "Is Will here?", ["Goran"]),
        (known("Goran", "title", "King of the Marsh"), "Where is the king of the marsh?", ["Goran"]),
        (known("I", "name", "Mira"), "What do I know?", []),
        (known("the king", "name", "Aldric"), "Where does the king live?", ["Aldric"]),
        (known("Zoé", "alias", "La Rouge"), "Où est la rouge?", ["Zoé"]),
    ],
)
def test_another_name_counts_where_it_stands_as_a_name(record, question, names):
    assert find_aliases([record], question) == names


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


def test_the_small_words_of_a_name_need_no_capitals():
    old_and_grey = known("Goran", "nickname", "Old and Grey")
    assert find_aliases([old_and_grey], "Where does Old and Grey live?") == ["Goran"]
    assert find_aliases([old_and_grey], "Where are old and grey geese?") == []
