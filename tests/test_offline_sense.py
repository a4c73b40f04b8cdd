"""The models without a language model: lore is used, nonsense is asked about, nothing off the record is quoted."""

import json

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from storyteller_game import Game, tell
from timing import cpu_seconds

from questbook import CharacterNotebook
from questbook.graphs.offline.assistant import OfflineAssistant, read_statements
from questbook.graphs.offline.model import Prompt, unescape
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


@pytest.mark.parametrize("speaker", ["bob", "ann@login.example.org", "Ann Lee"])
def test_a_name_before_the_words_is_whose_words_they_are(speaker):
    _, page = tell(f"{speaker}: Tobin Ashdown", {"class": "rogue"}, asked="What is your name?")
    assert page["name"] == "Tobin Ashdown"
    one, other = Game(luck=15).start("lamp"), Game(luck=15).start("lamp")
    for words in ("I look around.", "Who am I?", "I ask Maren about the sea gate", "I take everything."):
        assert other.say(f"{speaker}: {words}") == one.say(words)
    assert other.page.render() == one.page.render(), "and the notes are the same"
    _, page = tell("Class: wizard", {"name": "Mira"}, asked="What is your class?")
    assert page["class"] == "wizard"


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
    [fallen] = facts_of({"people": {"Al": {"alive": False}}}, {})
    assert (fallen["text"], fallen["value"]) == ("Al is dead.", "died")


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


def prompt(*messages, longest=2_000):
    return Prompt.of(messages, frozenset(), longest)


def rolled(content="", artifact=None, call="r1"):
    return ToolMessage(content, tool_call_id=call, name="roll_dice", artifact=artifact)


ROLL_CALL = AIMessage("", tool_calls=[{"name": "roll_dice", "args": {}, "id": "r1", "type": "tool_call"}])


def test_several_messages_in_a_row_are_one_turn_and_what_came_before_is_the_conversation():
    said = [HumanMessage("Hi."), AIMessage(""), AIMessage("Well?"), AIMessage("Yes?"), HumanMessage("I live in Oslo.")]
    told = prompt(SystemMessage("a"), *said, SystemMessage("b"), HumanMessage("I like tea."), AIMessage("Oh."))
    assert told.words == "I live in Oslo.\nI like tea."
    assert [message.text for message in told.turn] == ["I live in Oslo.", "I like tea.", "Oh."]
    assert told.exchanges() == [("Hi.", "Well?\nYes?")]
    assert told.asked_last == "Yes?"
    assert prompt(*said[:3], AIMessage(" "), HumanMessage("Hm.")).asked_last == "Well?"
    assert told.last.text == "Oh."
    assert told.system.split("\n\n")[:2] == ["a", "b"]
    answer = OfflineAssistant().invoke([HumanMessage("I live in Oslo."), HumanMessage("I like tea.")])
    assert answer.text == "I note: You live in Oslo. You like tea."
    core = SystemMessage(CORE.format(limit=900, value='""'))
    without = OfflineAssistant().invoke([core, HumanMessage("I live in Oslo.")])
    assert without.tool_calls == [], "it calls no tool that it was not given"
    assert prompt(AIMessage("Hello.")).words == ""
    assert prompt().last is None


def test_what_a_tool_answered_is_no_part_of_the_reply():
    said = [HumanMessage("I jump."), ROLL_CALL, rolled('{"total": 3}'), AIMessage("You fall."), HumanMessage("I wait.")]
    assert prompt(*said).exchanges() == [("I jump.", "You fall.")]
    assert prompt(rolled('{"total": 3}'), AIMessage("Hello."), HumanMessage("Hi.")).exchanges() == [("", "Hello.")]


def test_of_a_message_the_persons_own_words_are_read_without_escapes_and_up_to_a_length():
    sections = "<missing>\nname\n</missing>\n<message>\nI &lt;am&gt; &amp;copy; B&#x27;o\n</message>"
    told = prompt(HumanMessage(sections))
    assert told.words == "I <am> &copy; B'o"
    assert told.missing == ["name"]
    assert told.section("message") == ""
    assert prompt(HumanMessage("no <message> here")).words == "no <message> here"
    assert len(prompt(HumanMessage("x" * 3_000)).words) == 2_000
    assert prompt(HumanMessage("&lt;" * 3_000), longest=10).words == "<" * 10
    assert unescape("&amp;lt; &quot; &eacute;") == '&lt; " &eacute;'


def test_rolls_are_read_beside_a_tools_words_or_as_them_and_one_that_failed_is_known():
    spoken = HumanMessage("I sneak.")
    assert prompt(spoken, ROLL_CALL, rolled("You roll.", {"total": 7})).rolls == [{"total": 7}]
    assert prompt(spoken, ROLL_CALL, rolled('{"total": 8}')).rolls == [{"total": 8}]
    for words in ("no such dice", "[1]", "{}"):
        told = prompt(spoken, ROLL_CALL, rolled("fine", {"total": 7}), rolled(words))
        assert (told.rolls, told.failed_roll) == ([{"total": 7}], True)
    assert not prompt(spoken, ROLL_CALL, rolled("fine", {"total": 7})).failed_roll
    assert not prompt(spoken, ROLL_CALL, rolled("another tool's", call="x")).failed_roll
    assert prompt(ROLL_CALL, rolled("", {"total": 7}), spoken).rolls == [], "of an earlier turn"


def test_pages_turns_and_memories_are_read_out_of_their_sections():
    text = '<quest>\ngold: 3\n</quest>\n<turns>\n{"turn": 1}\nodd\n[2]\n</turns>\n<summary>\na &lt; b\n</summary>'
    told = prompt(SystemMessage(text), HumanMessage('<memories>\n{"turn": 2}\n</memories>\n<message>\nHi\n</message>'))
    assert (told.page("quest"), told.turns, told.summary) == ({"gold": 3}, [{"turn": 1}], "a < b")
    assert told.records("memories") == [{"turn": 2}]
    assert (told.page("other"), told.missing) == ({}, [])


class Tool:
    name = "of an object"


def plain_function():
    pass


@pytest.mark.parametrize(
    ("tool", "name"),
    [
        ("a name", "a name"), ({"type": "function", "function": {"name": "openai"}}, "openai"), ({"name": "n"}, "n"),
        ({"title": "t", "type": "object"}, "t"), (Tool(), "of an object"), (plain_function, "plain_function"),
        (CharacterNotebook, "CharacterNotebook"), ({}, ""),
    ],
)  # fmt: skip
def test_a_tool_is_known_by_its_name_however_it_is_given(tool, name):
    bound = OfflineAssistant().bind_tools([tool])
    assert bound.kwargs["tools"] == [{"type": "function", "function": {"name": name}}]


def test_an_answer_says_what_it_used_and_comes_in_words():
    model = OfflineAssistant(seed=4).bind_tools(["core_memory_append", "core_memory_remove"])
    core = '<core_memory>\nhuman: {"used": 0, "limit": 99, "value": ""}\n</core_memory>'
    asked = [SystemMessage(core), HumanMessage("I live in Oslo.")]
    whole = model.invoke(asked)
    assert whole.response_metadata == {"model_name": "offline", "finish_reason": "tool_calls"}
    use = whole.usage_metadata
    args = json.dumps(whole.tool_calls[0]["args"])
    assert use["input_tokens"] == sum(-(-len(message.text) // 4) for message in asked)
    assert use["output_tokens"] == -(-len(whole.text + args) // 4)
    assert use["total_tokens"] == use["input_tokens"] + use["output_tokens"]
    assert [(call["name"], call["args"]["content"]) for call in whole.tool_calls] == [
        ("core_memory_append", "The user lives in Oslo.")
    ]
    chunks = list(model.stream(asked))
    assert [chunk.content for chunk in chunks][:3] == ["I", " note:", " You"]
    assert "".join(chunk.content for chunk in chunks) == whole.text
    assert chunks[-1].usage_metadata == use
    assert chunks[-1].response_metadata == whole.response_metadata
    two = model.invoke([SystemMessage(core), HumanMessage("I live in Oslo. I like tea.")]).tool_calls
    assert len({call["id"] for call in two}) == len(two) == 2, "each call has an id of its own"
    assert OfflineAssistant().invoke("Why?").response_metadata["finish_reason"] == "stop"
    again = model.invoke(asked).tool_calls[0]["id"]
    assert again == whole.tool_calls[0]["id"] != model.invoke([*asked, *asked]).tool_calls[0]["id"]


CORE = '<core_memory>\nhuman: {{"used": 9, "limit": {limit}, "value": {value}}}\n</core_memory>'


def noted(words, *lines, limit=900):
    """What the assistant says and does with core memory: calls as (verb, text)."""
    core = SystemMessage(CORE.format(limit=limit, value=json.dumps("\n".join(lines))))
    answer = (
        OfflineAssistant().bind_tools(["core_memory_append", "core_memory_remove"]).invoke([core, HumanMessage(words)])
    )
    return answer.text, [(call["name"].rpartition("_")[2], call["args"]["content"]) for call in answer.tool_calls]


def test_forget_takes_out_the_lines_that_have_all_that_was_meant():
    lines = ["the blue boat is sold", "the blue car is old", "The user lives in Oslo."]
    assert noted("Forget the blue boat.", *lines) == ("I have taken that out.", [("remove", lines[0])])
    said, calls = noted("Forget the green boat.", *lines)
    assert (said[:24], calls) == ("I cannot tell what that ", [])
    said, calls = noted("Forget that I live in Oslo.", *lines)
    assert said.startswith("I take this as over: You live in Oslo.")
    assert calls == [("remove", lines[2])]


def test_what_is_over_takes_out_what_it_ends_and_nothing_else():
    lives, works, dog = "The user lives in Oslo.", "The user works as a nurse.", "Rex is the user's dog."
    assert noted("I quit my job.", lives, works)[1] == [("remove", works)]
    assert noted("I don't live in Paris.", lives)[1] == []
    assert noted("I don't live in Oslo.", lives)[1] == [("remove", lives)]
    assert noted("Forget it.", lives)[1] == []
    married = "The user is married to Tom."
    assert noted("We’ve split up.", lives, married)[1] == [("remove", married)]
    assert noted("My dog Rex died.", dog) == (
        "I note: Rex died. I take this as over: Rex is your dog.",
        [("remove", dog)],
    )


def test_what_is_new_takes_the_place_of_the_line_that_it_ends_and_fits_or_is_left_out():
    assert noted("I live in Bergen.", "The user lives in Oslo.", "odd")[1] == [
        ("remove", "The user lives in Oslo."),
        ("append", "The user lives in Bergen."),
    ]
    assert noted("I live in Oslo.", "The user lives in Oslo.")[1] == []
    assert noted("I live in Bergen.", limit=25)[1] == [("append", "The user lives in Bergen.")]
    assert noted("I live in Bergen.", limit=24)[1] == []
    assert noted("Remember: the sea is green.") == ("I will remember that.", [("append", "the sea is green.")])
    assert noted("Anna lives in Voss.") == ("I note: Anna lives in Voss.", []), "of others it keeps facts alone"


def test_what_it_cannot_read_it_says_it_sees_and_once_what_it_is():
    model = OfflineAssistant()
    first = model.invoke([HumanMessage("Blue, mostly.")]).text
    assert first.startswith("I see. I am only the built-in offline assistant")
    assert model.invoke([HumanMessage("Blue."), AIMessage(first), HumanMessage("Green, mostly.")]).text == "I see."
    assert model.invoke([HumanMessage("Who are you?")]).text.startswith("I am only the built-in offline assistant")
    error = ToolMessage("No such section. It has: a.", tool_call_id="c", name="x", status="error")
    asked = [HumanMessage("Note it."), AIMessage("", tool_calls=[{"name": "x", "args": {}, "id": "c"}])]
    assert model.bind_tools(["x"]).invoke([*asked, error]).text == "That did not work: No such section."
    fine = ToolMessage("Done.", tool_call_id="c", name="x")
    assert model.bind_tools(["x"]).invoke([*asked, fine]).text == "That is done."
    of_interview = [HumanMessage("I live in Oslo."), *asked[1:], fine]
    assert model.bind_tools(["y"]).invoke(of_interview).text == "I note: You live in Oslo."


def test_a_greeting_says_the_name_and_when_one_last_spoke():
    about = SystemMessage('<about>\nearlier_turns: 3\nyou_last_spoke: "two days ago"\n</about>')
    model = OfflineAssistant()
    assert model.invoke([about, HumanMessage("Hello!")]).text == "Hello! We last spoke two days ago."
    new = SystemMessage('<about>\nearlier_turns: 0\nyou_last_spoke: "just now"\n</about>')
    assert model.invoke([new, HumanMessage("Hello!")]).text == "Hello! We have not talked before."
    known = SystemMessage(CORE.format(limit=99, value='"The user\'s name is Ann."'))
    assert model.invoke([known, HumanMessage("Good morning.")]).text.startswith("Hello, Ann! We have not")


READ = {  # what is told, and how it is noted: for others; for the person; what only one at a time is about
    "I live in Oslo.": ["The user lives in Oslo. / You live in Oslo. / the user|home"],
    "I like tea, milk and honey": [
        f"The user likes {it}. / You like {it}. / the user like {it}." for it in ("tea", "milk", "honey")
    ],
    "My sister Anna lives in Bergen and works as a nurse.": [
        "Anna is the user's sister. / Anna is your sister. / anna are the user' sister.",
        "Anna lives in Bergen. / Anna lives in Bergen. / Anna|home",
        "Anna works as a nurse. / Anna works as a nurse. / Anna|occupation",
    ],
    "My cat is called Mia.": ["Mia is the user's cat. / Mia is your cat. / mia are the user' cat."],
    "I have a dog named Rex.": ["Rex is the user's dog. / Rex is your dog. / rex are the user' dog."],
    "I am 31 now.": ["The user is 31 years old. / You are 31 years old. / the user|age"],
    "I don't like tea.": ["not: The user does not like tea. / You do not like tea. / the user like tea."],
    "I no longer work as a nurse": [
        "not: The user does not work as a nurse. / You do not work as a nurse. / the user|occupation"
    ],
    "My car is red; my bike, too.": ["The user's car is red. / Your car is red. / the user|car"],
    "I'm Ann and I study law.": [
        "The user's name is Ann. / Your name is Ann. / the user|name",
        "The user studies law. / You study law. / the user study law.",
    ],
    "Well, actually, I drive a bus.": ["The user drives a bus. / You drive a bus. / the user|car"],
    "Tom and I are married.": ["The user is married to Tom. / You are married to Tom. / the user|partner"],
    "I hate snow": ["not: The user does not like snow. / You do not like snow. / the user like snow."],
    "I live with my sister Anna in Oslo.": [
        "The user lives in Oslo. / You live in Oslo. / the user|home",
        "The user's sister is Anna. / Your sister is Anna. / the user' sister are anna.",
    ],
    "We moved back to Voss.": ["The user lives in Voss. / You live in Voss. / the user|home"],
    "If I live in Rome, I eat.": [],
    "She says I live in Rome.": [],
    "Do I live in Oslo?": [],
    "I live in Oslo?": [],
    "I might live in Oslo.": [],
    "I would live in Oslo.": [],
    "My car is red if it is clean.": [],
    "I like tea when it is hot.": [],
    "They live in Oslo.": [],
    "My wife is called Eva.": ["The user's wife is Eva. / Your wife is Eva. / the user|partner"],
    "I teach physics.": ["The user teaches physics. / You teach physics. / the user teach physics."],
    "Rex barks.": [],
    "I think I like tea.": [],
    **{
        said: []
        for said in (
            "I have a story to tell you about a boat that I built.",
            "I like the boat that I built.",
            "I need you to help me.",
            "My sister likes me.",
            "I own a house we like.",
            "I do not know you.",
            "My car is older than I am.",
        )
    },
    **{
        f"I live in Oslo, {more}.": ["The user lives in Oslo. / You live in Oslo. / the user|home"]
        for more in ("which I love", "and you are a bot", "where it rains")
    },
    "I speak to my kids": [
        "The user speaks to the user's kids. / You speak to your kids. / the user speak to the user' kids."
    ],
    "I work on our farm": [
        "The user works on the user's farm. / You work on your farm. / the user work on the user' farm."
    ],
}


@pytest.mark.parametrize("said", READ)
def test_plain_statements_are_read_and_nothing_else_is(said):
    read = read_statements(said)
    lines = [f"{'not: ' if one.negative else ''}{one.text} / {one.said} / {one.slot}" for one in read]
    assert lines == READ[said]


def of_turn(user, assistant="", **more):
    turn = json.dumps({"turn": 1, "user": user, "assistant": assistant} | more)
    asked = [SystemMessage(f"<turns>\n{turn}\n</turns>"), HumanMessage("Note.")]
    answer = OfflineAssistant().bind_tools(["Facts"]).invoke(asked)
    return answer.tool_calls[0]["args"]["facts"] if answer.tool_calls else answer.text


def test_of_turns_it_notes_what_was_told_and_what_was_over_as_facts():
    own = {"claimed_by": "the user", "kind": "trait", "importance": 6}
    assert of_turn("I live in Oslo. Anna is my sister.", "I note: …") == [
        {"text": "The user lives in Oslo.", "subject": "the user", "attribute": "home", **own},
        {"text": "Anna is the user's sister.", "subject": "Anna", "attribute": "", **own},
    ]
    assert of_turn("I quit my job.", "I take this as over: You work as a nurse.") == [
        {"text": "The user works as a nurse.", "subject": "the user", "attribute": "occupation", **own, "ends": True}
    ]
    assert of_turn("My bike is old.")[0]["subject"] == "the user's bike"
    for words in (
        "hm",
        "I do not live in Oslo.",
        "Don't remember this: I live in Oslo.",
        "Archive this: I live in Oslo.",
        "Forget I live in Oslo.",
    ):
        assert of_turn(words) == "no change"
    turns = SystemMessage('<turns>\n{"turn": 1, "player": "I live in Oslo.", "reply": "Fine."}\n</turns>')
    told = SystemMessage('<turns>\n{"turn": 1, "user": "I live in Oslo.", "assistant": "Fine."}\n</turns>')
    answer = OfflineAssistant().bind_tools(["Questions"]).invoke([told, HumanMessage("Ask.")])
    assert (answer.text, answer.tool_calls) == ("no change", [])
    assert OfflineAssistant().invoke([turns, HumanMessage("Sum up.")]).text == "The person: “I live in Oslo.” Fine."
    before = SystemMessage("<summary>\nThe person: “I am Ann.”\n</summary>")
    longer = OfflineAssistant().invoke([before, turns, HumanMessage("Sum up.")]).text
    assert longer == "The person: “I am Ann.” The person: “I live in Oslo.” Fine."
    blank = SystemMessage('<turns>\n{"turn": 1, "player": "", "reply": ""}\n</turns>')
    assert OfflineAssistant().invoke([blank, HumanMessage("Sum up.")]).text == "Nothing was said."


def told_of(question, *memories):
    lines = "\n".join(json.dumps({"turn": turn} | memory) for turn, memory in enumerate(memories, 1))
    return OfflineAssistant().invoke([SystemMessage(f"<memories>\n{lines}\n</memories>"), HumanMessage(question)]).text


IN_OSLO, IN_BERGEN = {"fact": "The user lives in Oslo."}, {"fact": "The user lives in Bergen."}
IN_VOSS, TEA = {"fact": "Anna lives in Voss."}, {"fact": "The user likes tea."}
NO_MILK = {"fact": "The user does not like milk."}
LAMP = "The blue lamp shade is torn."
BAROMETER, FILLER = "The password of the shed is barometer.", " ".join(["The apples of the valley are red."] * 12)


@pytest.mark.parametrize(
    ("question", "memories", "answer"),
    [
        ("Where do I live?", [IN_OSLO, IN_BERGEN], "You live in Bergen."),
        ("Where do I live?", [IN_BERGEN | {"turn": 9}, IN_OSLO], "You live in Bergen."),
        *(("Where do I live?", [IN_OSLO, IN_BERGEN | {mark: "x"}], "You live in Oslo.")
          for mark in ("until", "rumour", "claimed_by")),
        ("Do I live in Oslo?", [IN_OSLO], "Yes. You live in Oslo."),
        ("Where do I live? Where do I live?", [IN_OSLO], "You live in Oslo."),
        ("What is my dog called?", [{"fact": "Rex is the user's dog."}], "Rex is your dog."),
        ("What is my dog's name?", [{"fact": "Rex is the user's dog."}], "Rex is your dog."),
        ("Do I live in Rome?", [IN_OSLO], "I do not know."),
        ("Do I like tea?", [{"fact": "The user does not like tea."}], "No. You do not like tea."),
        ("Do I not like tea?", [{"fact": "The user does not like tea."}], "Yes. You do not like tea."),
        ("What about the blue lamp shade?", [{"user": LAMP}], f"I remember this: “{LAMP}”"),
        ("What about the blue chair?", [{"user": LAMP}], "I do not know."),
        ("What about the lamp?", [{"user": LAMP}], "I do not know."),
        ("What about the blue lamp shade?", [{"user": f"Don't remember this: {LAMP}"}], "I do not know."),
        ("What about the blue lamp shade?", [{"user": f"Off the record: {LAMP}"}], "I do not know."),
        ("What about the blue lamp shade?", [{"user": "Forget the blue lamp shade."}], "I do not know."),
        ("Where does my sister live?", [{"fact": "Anna is the user's sister."}, IN_VOSS], "Anna lives in Voss."),
        ("Where do I live?", [IN_VOSS], "I do not know."),
        ("Who lives in Voss?", [{"fact": "The user lives in Voss."}, IN_VOSS], "Anna lives in Voss."),
        ("What do I like?", [TEA, NO_MILK], "You like tea."),
        ("What do I not like?", [TEA, NO_MILK], "You do not like milk."),
        ("What about the blue lamp shade?", [{"user": "What is the blue lamp shade?"}], "I do not know."),
        ("What about the blue lamp shade?", [{"user": f"{LAMP} {n}"} for n in range(5)],
         f"I remember this: “{LAMP} 2”; “{LAMP} 3”; “{LAMP} 4”"),
        *(("What is the password of the shed?", [{"user": said}], f"I remember this: “{quoted}”") for said, quoted in [
            (f"{FILLER} {BAROMETER}", f"… {BAROMETER}"),
            (f"{FILLER} {BAROMETER} {FILLER}", f"… {BAROMETER} …"),
            (f"Behind us is a shed. {FILLER} Its password is “barometer.” {FILLER}",
             "Behind us is a shed. … Its password is “barometer.” …"),
            (f"Do you hear? {BAROMETER}", f"… {BAROMETER}"),
            (f"I like tea. {BAROMETER}", f"… {BAROMETER}"),
            (f"{'word ' * 120}so the password of the shed", "… so the password of the shed"),
            (f"{BAROMETER[:-1]}{'x' * 999}", "The password of the shed is …"),
        ]),
    ],
)  # fmt: skip
def test_a_question_is_answered_by_what_holds_and_else_by_what_has_most_of_its_words(question, memories, answer):
    assert told_of(question, *memories) == answer


def talk(*said, system=""):
    """What the assistant says to the last of these words of a person and its own in turn."""
    kinds = (HumanMessage, AIMessage)
    asked = [SystemMessage(system)] if system else []
    return OfflineAssistant().invoke([*asked, *(kinds[n % 2](words) for n, words in enumerate(said))]).text


def core_of(line):
    return CORE.format(limit=900, value=json.dumps(line))


OF_A_CHARACTER = f"""<character_memories>
Al's memory log:
3 days ago, Ann said:
"{LAMP}"
While Al talks
</character_memories>"""
BOTH = core_of("The user lives in Oslo.") + f"\n<memories>\n{json.dumps({'turn': 1} | IN_BERGEN)}\n</memories>"
OLD_STORY = {"turn": 1, "fact": "The user has a story to tell you about a boat that I built."}
OVER, CAR = "I take this as over: ", "Your blue car is torn."


@pytest.mark.parametrize(
    ("said", "system", "answer"),
    [
        (["What about the blue lamp shade?"], OF_A_CHARACTER, f"I remember this: “{LAMP}”"),
        (["What about the blue boat?"], core_of("the blue boat is sold"), "I remember this: “the blue boat is sold”"),
        ([LAMP, "I see.", "What about the blue lamp shade?"], "", f"I remember this: “{LAMP}”"),
        (["My blue car is torn.", "Oh.", "Forget my blue car.", f"{OVER}{CAR}", "What about my blue car?"], "",
         "I do not know."),
        (["I live in Oslo.", "Oh.", "I moved away.", f"{OVER}You live in Oslo.", "Where do I live?"], "",
         "I do not know."),
        *(([f"{opening} The sea. I live in Oslo.", "Fine.", "Where do I live?"], "", "I do not know.")
          for opening in ("Don't remember this:", "Off the record:", "Archive this:", "Forget the boat.")),
        (["I have a story to tell you about a boat that I built.", "I see.", "What do I have?"],
         f"<memories>\n{json.dumps(OLD_STORY)}\n</memories>", "I do not know."),
        (["Where do I live?"], BOTH, "You live in Oslo."),
        (["Where do I live?"], f"{BOTH}\n<outdated>\nhome\n</outdated>", "You live in Bergen."),
    ],
)  # fmt: skip
def test_what_stands_in_the_prompt_is_known_but_not_what_has_ended_or_is_off_the_record(said, system, answer):
    assert talk(*said, system=system) == answer


def test_what_is_private_is_not_kept_and_what_is_for_the_archive_goes_there():
    private = told_of("Don't remember this: I live in Oslo.")
    assert private.startswith("Of this message I keep nothing: not in my core memory")
    assert told_of("Don't remember this: I live in Oslo. Where do I live?") == "I do not know."
    model = OfflineAssistant().bind_tools(["core_memory_append", "archival_memory_insert"])
    kept = model.invoke([HumanMessage("Archive this: the long tale of the sea ")])
    assert kept.text == "I have put that into archival memory."
    assert kept.tool_calls[0]["args"] == {"content": "the long tale of the sea"}
    long = model.invoke([HumanMessage(f"Archive this: {'the long tale ' * 700}")])
    assert long.tool_calls[0]["args"] == {"content": ("the long tale " * 700).strip()}
    assert told_of("I live in Oslo. Where do I live?") == "You live in Oslo. I note: You live in Oslo."


ONE_THING = "One thing at a time: I note what you say as it is."


@pytest.mark.parametrize(
    ("missing", "said", "reply", "noted"),
    [
        ("name, device_kind", ["hi"], "Please tell me your name.", None),
        ("name, device_kind", ["hi", "Please tell me your name.", "My name is Ann."],
         "Please tell me your device kind.", {"name": "Ann"}),
        ("device_kind", ["hi", "Please tell me your device kind.", "The device kind is L."], "Thank you.",
         {"device_kind": "L"}),
        ("device_kind", ["hi", "Please tell me your device kind.", "L. Old."],
         f"{ONE_THING} Please tell me your device kind.", None),
        ("device_kind", ["hi", f"{ONE_THING} Please tell me your device kind.", "L. Old."], "Thank you.",
         {"device_kind": "L. Old"}),
    ],
)  # fmt: skip
def test_the_interview_asks_for_one_field_after_the_other(missing, said, reply, noted):
    kinds = (HumanMessage, AIMessage)
    asked = [SystemMessage(f"<missing>\n{missing}\n</missing>"), *(kinds[n % 2](words) for n, words in enumerate(said))]
    answer = OfflineAssistant().bind_tools(["CustomerNotebook"]).invoke(asked)
    assert (answer.text, [call["args"] for call in answer.tool_calls]) == (reply, [noted] if noted else [])
    problem = ToolMessage("name: got 3. Send a text.", tool_call_id="c", status="error")
    asked += [AIMessage("", tool_calls=[{"name": "CustomerNotebook", "args": {}, "id": "c"}]), problem]
    first = missing.partition(",")[0].replace("_", " ")
    assert OfflineAssistant().bind_tools(["CustomerNotebook"]).invoke(asked).text == (
        f"Send a text. Please tell me your {first}."
    )
