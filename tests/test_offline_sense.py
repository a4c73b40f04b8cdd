"""The models without a language model: lore is used, nonsense is asked about, nothing off the record is quoted."""

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from storyteller_game import Game, tell
from timing import cpu_seconds

from questbook import CharacterNotebook
from questbook.graphs.offline.assistant import OfflineAssistant, read_statements
from questbook.graphs.offline.storyteller.model import facts_of
from questbook.graphs.turn.player_view import PlayerView

GATE = "The sea gate of Gullhaven was walled up after the drowned king's raid."
LORE = {"kind": "lore", "text": GATE, "source": "gazetteer.md", "page": 3}


def test_reasons_that_never_end_are_read_at_once():
    said = "I live in Oslo" + " since a" * 40 + " because of x" * 40
    assert cpu_seconds(lambda: list(read_statements(said)), enough=0.5) < 0.5


@pytest.mark.parametrize(
    "words", ["I ask Maren about the sea gate", "What do I know about the sea gate?", "Who walled up the sea gate?"]
)
def test_lore_that_was_found_is_used(words):
    game = Game(luck=15).start("lamp")
    game.recalled = [LORE]
    reply = game.say(words)
    assert GATE in reply
    assert "gazetteer.md" in reply
    game.recalled = []
    assert "gate of Gullhaven" not in game.say(words)


def test_what_is_off_the_record_is_not_quoted_while_it_is_in_the_buffer():
    game = Game(luck=15).start("lamp")
    game.say("Don't remember this: my brother Tam drowned in the harbour.")
    for _ in range(2):
        game.say("I look around.")
    assert "drowned in the harbour" not in game.say("What did I say about my brother Tam?")


def test_a_role_that_the_name_says_is_no_news_and_others_have_an_article():
    patch = {"people": {"Widow Garrow": {"role": "widow"}, "Maren Holt": {"role": "harbour master"}}}
    assert [fact["text"] for fact in facts_of(patch, {})] == ["Maren Holt is a harbour master."]


def test_what_is_new_on_the_page_becomes_facts_and_the_truth_a_secret():
    page = {"facts": {"A": "old"}, "people": {"Bo": {"role": "cook"}}, "secrets": {"truth": "t"}}
    cy = {"alive": False, "fate": "hit", "role": "smith", "attitude": "bad"}
    bo = {"role": "cook", "attitude": "kind", "last_seen": "the inn"}
    quests = {"Q": {"status": "done"}, "R": {"status": "odd"}, "S": {"status": "failed"}, "T": {"status": "open"}}
    patch = {"facts": {"A": "old", "B": "new", "C": None}, "people": {"Bo": bo, "Cy": cy}, "quests": quests}
    facts = list(facts_of(patch | {"secrets": {"truth": "u", "beat": "2"}, "gold": 3}, page))
    assert [(fact["text"], fact["importance"]) for fact in facts] == [
        ("B: new", 6),
        ("Bo's attitude is kind.", 4),
        ("Cy is dead: hit.", 8),
        ("Cy's attitude is bad.", 4),
        ("The quest “Q” is done.", 7),
        ("The quest “S” has failed.", 7),
        ("The quest “T” is open.", 7),
        ("u", 9),
    ]
    assert [fact["kind"] for fact in facts] == [*["trait"] * 7, "secret"]
    assert [fact.get("subject") for fact in facts] == ["B", "Bo", "Cy", "Cy", "Q", "S", "T", None]
    assert facts[2] | {"attribute": "fate", "value": "hit"} == facts[2]
    assert list(facts_of(page, page)) == []


def test_a_recap_says_place_and_time_once():
    quest = {"scene": "Mira is at Gull Quay, noon.", "location": "Gull Quay", "clock": {"day": 2, "time": "noon"}}
    text = PlayerView.of({"quest": {"version": 1, **quest}}).recap()
    assert (text.count("Gull Quay"), text.count("noon"), text.count("day 2")) == (1, 1, 1)
    quest["scene"] = "An old woman counts boats."
    assert "You are at Gull Quay (day 2, noon)." in PlayerView.of({"quest": {"version": 1, **quest}}).recap()


def test_enough_begin_fills_the_rest_with_sense_and_says_so():
    asked = "What is your class: do you live by blade, spell, prayer or quick fingers?"
    for words in ("Enough, begin!", "that's enough", "Enough questions. Let's start."):
        reply, page = tell(words, {"name": "Mira", "ancestry": "halfling"}, asked)
        assert CharacterNotebook.load(page).complete
        assert page["name"] == "Mira"
        assert all(page[field] in reply.text for field in ("class", "background", "goal"))


@pytest.mark.parametrize("alignment", ["chaotic good", "true neutral"])
def test_an_alignment_is_noted(alignment):
    assert tell(f"I'm Mira, a {alignment} halfling rogue")[1]["alignment"] == alignment
    assert tell("Name: Kara\nAlignment: mostly kind")[1]["alignment"] == "mostly kind"


def answer(*said):
    messages = []
    for words in said[:-1]:
        messages.append((HumanMessage if len(messages) % 2 == 0 else AIMessage)(words))
    tool = {"type": "function", "function": {"name": "CustomerNotebook"}}
    system = "<missing>\nname, device\n</missing>"
    return OfflineAssistant().bind_tools([tool]).invoke([("system", system), *messages, HumanMessage(said[-1])])


def test_the_assistant_asks_again_rather_than_note_nonsense():
    first = answer("hello")
    assert first.text == "Please tell me your name."
    for words in ("Ann. I have the Lumen Arc, L-7.", "Why?", "hello", "What for?\nTell me."):
        again = answer("hello", first.text, words)
        assert not again.tool_calls, words
        assert again.text.endswith("Please tell me your name.")
    for words in ("Ann.", "My name is Ann", "Ann"):
        [call] = answer("hello", again.text, words).tool_calls
        assert call["args"] == {"name": "Ann"}
