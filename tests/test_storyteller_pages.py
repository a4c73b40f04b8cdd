"""Questions that the two notebooks answer, after five turns, and what is remembered: what was said and done alone."""

import random
import re

import pytest
from program import questbook
from storyteller_game import MIRA, Game

from questbook.graphs.offline.storyteller.answers import Past, cite, remember
from questbook.graphs.offline.storyteller.answers import asked as asked_of
from questbook.graphs.offline.storyteller.answers import tell as answer_of
from questbook.graphs.offline.storyteller.engine import resolve
from questbook.graphs.offline.storyteller.language import saying, table
from questbook.graphs.offline.storyteller.scene import tale

PLAYED = ("I look around.", "I talk to Osric Fenn.", "I ask Osric about the ghost", "I search the place.", "I wait")
ANSWERS = {  # what answers which questions
    "You are Mira Holt.": "What is my name? | What is my name, again?",
    "You are a rogue.": "what's my class? | my class? | Hello! Remind me of my trade",
    "You are a halfling.": "So, what is my ancestry",
    "Mira Holt, a halfling rogue": "Who am I?",
    "You grew up on the docks.": "Where did I grow up?",
    "red hair": "What do I look like?",
    "get your sister back": "What is my goal?",
    "“The Mill That Ground at Midnight”": "What is my quest?",
    "find out who grinds at the empty mill": "What was I doing? | Remind me of my quest",
    "from Osric Fenn, a reeve": "Who gave me the quest? | Who gave it? | Who gave it to me? | Who sent me here?"
    " | From whom did I get the quest?",
    "(open)": "Which quests do I have?",
    "Osric Fenn (reeve)": "What have we done so far?",
    "You have learnt: ": "Tell me what happened so far",
    "This is Appledown Green.": "Where am I?",
    "2 × dagger": "What do I carry? | whats in my bag | What is in my inventory? | What do I own? | what is my gear?",
    "Your level, as your page has it: 1.": "What level am I? | what's my level now",
    "Your armour class is 14.": "What is my armor class? | my AC",
    "Ways lead to": "Where can I go? | which ways are there?",
    "10 gold": "How much gold do I have?",
    "30 of 30 hit points": "How am I? | Am I hurt? | how many hit points do I have?",
    "You have met Osric Fenn (reeve)": "recap please",
    "day 1": "What day is it?",
    "Hesper Dray: old woman at the well": "Who have I met?",
}
QUESTIONS = {question: answer for answer, questions in ANSWERS.items() for question in questions.split(" | ")}
HERO = MIRA | {"name": "Mira Holt", "goal": "want to get my sister back", "appearance": "red hair"}


@pytest.fixture(scope="module")
def played():
    game = Game(luck=15, character=HERO).start("mill")
    for words in PLAYED:
        game.say(words)
    return game


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_pages_answer_and_nothing_happens(played, question):
    before = played.page
    assert QUESTIONS[question] in played.say(question)
    assert played.page.model_dump(exclude={"secrets", "scene"}) == before.model_dump(exclude={"secrets", "scene"})


def test_several_questions_in_one_message_are_each_answered_in_their_order(played):
    asked = "What is my name? my class? my quest? who gave it? where did I grow up? what have we done so far?"
    parts = ["You are Mira Holt.", "You are a rogue.", "Your quest is", "came to you", "You grew up", "You have met"]
    more = "My name, class and quest, and who gave it? And where did I grow up? Recap, please! What do I carry?"
    for words, answers in ((asked, parts), (more, [*parts, "2 × dagger"])):
        told = played.say(words).split("\n\n")
        assert [part for part, answer in zip(answers, told, strict=True) if part not in answer] == [], told


@pytest.mark.parametrize(
    "asked", ["What is my name? Where am I?", "Where am I? What is my name?", "What is my name? Who is here?"]
)
def test_of_several_questions_the_pages_answer_theirs_and_the_story_the_others(played, asked):
    told = played.say(asked)
    place = "This is Appledown Green." if "Where" in asked else "Osric Fenn"
    assert told.startswith("You are Mira Holt.\n\n")
    assert place in told
    assert "You are" not in played.say("What is my name? I look around.")


def test_a_recap_tells_deeds_and_facts_and_no_questions(played):
    told = played.say("What have we done so far?")
    assert "You have learnt: " in told
    assert "?" not in told


def test_what_the_pages_do_not_say_is_not_known():
    game = Game(character={"name": "Bo", "ancestry": "elf", "class": "bard", "background": "London", "goal": "rest"})
    game.start("mill")
    assert game.say("Where am I from?") == "Where you come from: London."
    game.character = game.character.model_copy(update={"background": "from the salt mines"})
    assert game.say("Where do I come from?") == "You come from the salt mines."
    assert "You could ask around" in game.say("What do I look like?")
    assert re.search(r"You could \w[^.]*, \w[^.]* or \w[^.]*\. Or anything else", game.say("What can I do?"))
    game.page = game.page.apply({"quests": {tale("mill").title: {"status": "done"}}}).page
    assert game.say("Who gave it?") == "You have no quest at the moment."


@pytest.mark.slow
def test_a_game_through_a_pipe_answers_too(tmp_path):
    hero = "I'm Mira, a halfling rogue who grew up on the docks and wants her sister back."
    asked = [questions.split(" | ")[0] for questions in list(ANSWERS.values())[:10]]
    words = "\n".join([hero, "I look around.", "I wait", "I rest", "I search the place.", *asked])
    run = questbook(tmp_path, "play", "--seed", "3", words=f"{words}\n")
    assert run.returncode == 0, run.stderr
    for told in (
        "You are Mira.",
        "You are a rogue.",
        "You grew up on the docks.",
        "Your quest is “",
        "came to you from ",
    ):
        assert told in run.stdout, told
    assert "has not come up" not in run.stdout


def recalled(subject, question, said, reply):
    """What is remembered where nothing was said and told but this."""
    return remember(subject, question, Past(exchanges=[(said, reply)]), random.Random(1))


@pytest.mark.parametrize("said", ["I attack Rolf Tanner!", "I attack Rolf Tanner."])
def test_a_quotation_keeps_the_mark_at_its_end(said):
    assert f"“{said}”" in recalled("Rolf Tanner", "What did I do to Rolf Tanner?", said, "He steps aside.")


@pytest.mark.parametrize(
    ("said", "reply"),
    [
        ("I wait", "Nothing. You could look at the people, ask Rolf Tanner about the ringmaster or wait."),
        ("I wait", "You wait.\n\nDo you ask Rolf Tanner about the ringmaster, or go to the Mask Stall?"),
        ("ask Rolf the ringmaster", "You hold it up to the light: “ask Rolf the ringmaster”. Not a plan."),
    ],
)
def test_choices_held_out_and_words_handed_back_are_no_memories(said, reply):
    told = recalled("Rolf say about the ringmaster", "What had Rolf to do with the ringmaster?", f"{said}?", reply)
    assert "You could ask around, or go and look." in told


def test_who_said_nothing_of_it_is_not_quoted():
    game = Game(luck=15).start("fair")
    told = game.say("What did the baker say about the bread?")
    assert "what did the baker say about the bread" in told.casefold()
    assert not any(told.startswith(opening) for opening in table("remembered"))


@pytest.mark.parametrize(
    ("question", "shown"),
    [
        ("What do I know about Barnabas Quill?", "Barnabas Quill"), ("Who is Barnabas Quill?", "Barnabas Quill"),
        ("Where are My Boots?", "your Boots"), ("Is the troll asleep?", "is the troll asleep"),
    ],
)  # fmt: skip
def test_a_name_that_one_does_not_know_keeps_its_capitals(question, shown):
    outcome = resolve({"scene": "x"}, {}, question)
    told = remember(outcome.asks_memory, question, Past(), random.Random(1))
    assert f"“{shown}”" in told, told


NAMED = ("My dog is called Biscuit.", "My dog has a sore paw.", "My dog hates cats.", "My dog is old.")


@pytest.mark.parametrize("question", ["What is my dog called?", "What is the name of my dog?"])
def test_who_asks_for_a_name_hears_the_sentence_that_says_it(question):
    past = Past(exchanges=[(said, "You nod.") for said in NAMED])
    told = remember("my dog", question, past, random.Random(1))
    assert told.endswith("You said (4 turns ago): “My dog is called Biscuit.”"), told
    assert "old" in remember("my dog", "What about my dog?", past, random.Random(1))


def test_who_asks_what_somebody_is_like_does_not_ask_about_likeness():
    said, reply = "My sister has a scar.", "The tent is like a dream."
    told = recalled("my sister like", "What is my sister like?", said, reply)
    assert ("scar" in told, "dream" in told) == (True, False), told
    liked = recalled("I like", "What do I like?", "I like honey.", "You nod.")
    assert "honey" in liked


def test_what_the_storyteller_says_of_itself_is_no_memory():
    told = recalled("a dungeon master", "What is a dungeon master?", "who are you?", saying("honest"))
    assert "You could ask around, or go and look." in told


def test_a_placeholder_that_a_player_types_is_not_filled_in():
    game = Game().start("fair")
    assert "Mira" not in game.say("abc {0} {name}")


def test_a_sentence_out_of_a_speech_keeps_its_quotation_marks():
    told = recalled("Ines", "What do I know about Ines?", "I wait", "“We came by ship. Ines sailed in autumn.”")
    assert told.endswith("It went like this (just now): “Ines sailed in autumn.”")


def test_what_was_asked_before_is_no_memory_and_a_quotation_is_closed():
    told = remember(
        "my secret word",
        "What is my secret word?",
        Past(summary="Turn 2: “What is my secret word?” It should be known. “My secret word is heron.” You say it."),
        random.Random(1),
    )
    assert "heron" in told
    assert "What is my secret word" not in told
    assert told.count("“") == told.count("”")


HERO_PAGE = {"name": "Mira", "ancestry": "elf", "class": "rogue", "background": "grew up on my farm"}
TOLD_QUESTS = {"A": {"status": "open", "notes": "find it"}, "B": {"status": "done", "notes": "was lost"}}
OFFERED = {"quests": {"A": {"status": "open", "notes": "The harbour-master and old Tobb pay."}}}


@pytest.mark.parametrize(
    ("about", "page", "told"),
    [
        ("name", {"name": "Mira."}, "You are Mira."),
        ("ancestry", HERO_PAGE, "You are an elf."),
        ("class", HERO_PAGE, "You are a rogue."),
        ("background", HERO_PAGE, "You grew up on your farm."),
        ("background", {"background": "from my docks"}, "You come from your docks."),
        ("background", {"background": "my docks"}, "Where you come from: your docks."),
        ("goal", {"goal": "I want my ring."}, "What you want is this: your ring."),
        ("appearance", {"appearance": "my red hair."}, "Your appearance, as your page has it: your red hair."),
        ("personality", HERO_PAGE, ""),
        ("self", {"class": "rogue"}, "You are a rogue."),
        ("self", {}, ""),
        (
            "self",
            HERO_PAGE | {"goal": "rest", "personality": "shy", "appearance": "tall"},
            "You are Mira, an elf rogue. You grew up on your farm. Your appearance, as your page has it: tall. "
            "Your personality, as your page has it: shy. What you want is this: rest.",
        ),
        ("quest", {}, "You have no quest at the moment."),
        ("quest", {"objective": "Find it."}, "What you are about: find it."),
        (
            "quest",
            {"objective": "Go on.", "quests": TOLD_QUESTS},
            "Your quest is “A”: find it What you are about: go on.",
        ),
        ("quests", {"quests": TOLD_QUESTS}, "“A” (open): find it “B” (done): was lost"),
        ("day", {}, "It is daytime of day 1."),
        ("day", {"clock": {"day": 3, "time": "noon"}}, "It is noon of day 3."),
        ("things", {}, ""),
        ("things", {"gold": 1}, "You carry nothing but your wits, and 1 gold piece."),
        (
            "things",
            {"inventory": {"axe": 1, "cup": 2, "nut": 0, "x": "y"}},
            "You carry an axe and 2 × cup, and 0 gold pieces.",
        ),
        ("giver", {}, ""),
        ("giver", {"quests": {"B": TOLD_QUESTS["B"]}}, "You have no quest at the moment."),
        ("giver", OFFERED, "“A”: The harbour-master and old Tobb pay."),
        ("giver", OFFERED | {"people": {"Ada": {"role": "cook"}}}, "“A”: The harbour-master and old Tobb pay."),
        ("giver", OFFERED | {"people": {"Tobb": {}}}, "“A” came to you from Tobb."),
        (
            "giver",
            OFFERED | {"people": {"Ada": {"role": "cook"}, "Maren": {"role": "harbour master"}}},
            "“A” came to you from Maren, a harbour master.",
        ),
    ],
)
def test_a_page_answers_in_whole_sentences(about, page, told):
    said = answer_of(about, Past(page=page, character=page))
    assert said.removesuffix(" All of it seems to be waiting for you to have an idea.") == told


def test_a_recap_tells_the_last_of_everything():
    people = {f"P{n}": {"role": f"r{n}"} for n in range(7)} | {"P7": {}}
    page = {"people": people, "facts": {f"F{n}": f"f{n}" for n in range(6)}, "quests": TOLD_QUESTS, "scene": "The end."}
    said = [(f"I do {n}.", "So you do.") for n in range(6)] + [("Who is that?", "Ada."), ("recap please", "…")]
    assert answer_of("recap", Past(page=page, exchanges=said)) == (
        "“A” (open): find it “B” (done): was lost You have met P2 (r2), P3 (r3), P4 (r4), P5 (r5), P6 (r6) and P7. "
        "You have learnt: F2: f2; F3: f3; F4: f4; F5: f5. Of late you said: “I do 4”, “I do 5”. The end."
    )
    assert answer_of("recap", Past()) == ""


BELL, OF_BELL = "the bell", "What do I know about the bell?"
UNKNOWN = " You could ask around, or go and look."
CRACK = "The bell rings! And so on. The bell has a crack. The bell is green. The bell smells of the sea."
TALK = [("I ask Ada", "“The bell is lost.” Ada looks away.\n\n“Eat.” says Bo."), ("I wait", "“I saw a cat.” says Bo.")]
KNOWN = {"page": {"people": {"Ada": {"role": "cook"}, "Bo": {"role": "smith"}}}}
BELLS = "The bell rings. The bell is old. The bell sways. The bell hums."
TWO = [
    {"turn": 9, "player": "The bell is bronze", "reply": ""},
    {"turn": 3, "player": "The bell is bronze", "reply": "A"},
]


def of_memory(**parts):
    return {"memories": [{"turn": 3, "age": 2} | parts]}


@pytest.mark.parametrize(
    ("question", "past", "told"),
    [
        (OF_BELL, of_memory(player="The bell is bronze", age=1),
         "You said (turn 3, 1 turn ago): “The bell is bronze.”"),
        (OF_BELL, of_memory(player="The bell is bronze?", reply="It is."), None),
        (OF_BELL, of_memory(player="I wait", reply="Rain. The bell rings."),
         "like this (turn 3, 2 turns ago): The bell rings."),
        *[(OF_BELL, of_memory(**{kind: "The bell fell."}, age="then"), "like this (turn 3, then): The bell fell.")
          for kind in ("event", "trait", "promise", "preference", "insight")],
        *[(OF_BELL, of_memory(**{kind: "The bell fell."}), None) for kind in ("rumour", "secret", "claim", "text")],
        (OF_BELL, of_memory(text="The bell fell.", source="a.md"), "You have read of it (a.md): “The bell fell.”"),
        (OF_BELL, {"memories": TWO}, "You said (turn 9): “The bell is bronze.”"),
        (OF_BELL, {"page": {"facts": {"The bell": "gone"}}}, "The bell: gone."),
        (OF_BELL, {"page": {"people": {"Bell": {"role": "cook", "attitude": "kind"}}}},
         "Bell: cook; kind towards you."),
        (OF_BELL, {"page": {"people": {"Bell": {"role": "cook", "alive": False, "attitude": "kind",
         "last_seen": "sea"}}}},
         "Bell: cook; dead: no one says how, last seen at sea."),
        (OF_BELL, {"page": {"people": {"Bell": "a cook"}}}, "Bell."),
        (OF_BELL, {"page": {"fallen": {"Bell": "drowned"}}}, "Bell is dead: drowned."),
        (OF_BELL, {"page": {"quests": {"The bell": {"notes": "Ring it"}, "B": "odd"}}}, "“The bell” (open): Ring it."),
        (OF_BELL, {"character": {"goal": "ring the bell"}}, "Your goal: ring the bell."),
        (OF_BELL, {"summary": "The bell fell.\nIs the bell here?"}, "The bell fell."),
        (OF_BELL, {"exchanges": [("The bell is old", "Yes."), ("I wait", CRACK)]},
         "You said (2 turns ago): “The bell is old.” It went like this (just now): The bell smells of the sea. "
         "It went like this (just now): The bell is green."),
        (OF_BELL, {"exchanges": [("I wait", "The bell is green. The bell is green and old.")]},
         "like this (just now): The bell is green and old."),
        (OF_BELL, {"exchanges": [("I wait", f"The bell is {'very ' * 60}old.")]},
         f"like this (just now): The bell is {'very ' * 48}very …"),
        ("What do I know?", {"exchanges": [("I wait", "It rained.\n\nIt rained more.")]},
         "You think back over the last hours. It rained. It rained more."),
        ("Did I ring the bell?", {"exchanges": [("I ring the bell", "You do.")]},
         "You said (just now): “I ring the bell.”"),
        ("Did I ring the bell?", {"exchanges": [("I take the bell", "You do.")]}, None),
        ("What did I eat?", {"exchanges": [("I wait", "The cook eats the pie. You eat the pie.")]},
         "like this (just now): You eat the pie."),
        ("Who did I meet?", KNOWN, "Ada: cook. Bo: smith."),
        ("What did Ada say about the bell?", KNOWN | {"exchanges": TALK},
         "like this (2 turns ago): “The bell is lost.” Ada looks away."),
        ("What did Ada say about the bell?", KNOWN | {"exchanges": [*TALK, ("I wait", "“The bell is mine.” says Bo.")]},
         "like this (3 turns ago): “The bell is lost.” Ada looks away."),
        ("What did the smith say?", KNOWN | {"exchanges": TALK},
         "like this (just now): “I saw a cat.” says Bo. It went like this (2 turns ago): “Eat.” says Bo."),
        ("What did they say about the bell?", KNOWN | {"exchanges": TALK},
         "like this (2 turns ago): “The bell is lost.” Ada looks away."),
        ("What did Ada say?", KNOWN | {"exchanges": [("I wait", "“Ada is lost.” says Bo.")]},
         "Ada: cook. It went like this (just now): “Ada is lost.” says Bo."),
        ("What did Ada say?",
         KNOWN | {"exchanges": [("I wait", "\n\n".join(f"“{said}.” says Ada." for said in ("One", "Two", "Three")))]},
         "like this (just now): “One.” says Ada. It went like this (just now): “Two.” says Ada."),
        ("What do I know about the crack of the bell?", {"exchanges": [("I wait", f"The crack is deep. {BELLS}")]},
         "like this (just now): The crack is deep."),
        ("What do I know about the green bell?",
         {"exchanges": [("I wait", "The bell is green. The bell rings. The rope is long. The door is shut.")]},
         "like this (just now): The bell is green."),
        ("What do I know about the green bell of the tall tower?", {"exchanges": [("I wait", "The bell rings")]}, None),
        ("Did I ring the green bell?", {"exchanges": [("I ring the bell", "You do.")]}, None),
        (OF_BELL, {"exchanges": [("I wait", BELLS)]}, " ".join(f"It went like this (just now): The bell {does}."
         for does in ("hums", "sways", "is old")).removeprefix("It went ")),
        (OF_BELL, {"page": {"facts": {"The bell": "gone"}}, "exchanges": [("The bell is gone", "So.")]},
         "The bell: gone."),
        (OF_BELL, {"exchanges": [("The bell is gone", "The bell is lost.")]},
         "You said (just now): “The bell is gone.” It went like this (just now): The bell is lost."),
        (OF_BELL, {"summary": "The bell is lost.", "exchanges": [("I wait", "The bell is gone.")]},
         "like this (just now): The bell is gone. The bell is lost."),
        (OF_BELL, of_memory(player="I wait", reply="Nothing. You could look at the bell."), None),
        (OF_BELL, {"exchanges": [("I wait", f"{table('remembered')[0]} The bell is green.")]}, None),
        (OF_BELL, {"exchanges": [("I wait", f"The bell is green.{UNKNOWN}")]}, None),
        *[(OF_BELL, {"character": {field: "of the bell"}}, f"Your {field}: of the bell.")
          for field in ("background", "appearance", "personality")],
        (OF_BELL, {"page": {"people": {"Bell": {"role": "cook", "alive": False, "fate": "drowned"}}}},
         "Bell: cook; dead: drowned."),
    ],
)  # fmt: skip
def test_of_the_past_is_told_what_was_said_and_when_and_nothing_that_is_not_known_to_be_true(question, past, told):
    subject = BELL if question == OF_BELL else question.removesuffix("?").split()[-1]
    subject = "" if question == "What do I know?" else subject
    said = remember(subject, question, Past(**past), random.Random(1))
    if told is None:
        assert said.endswith(UNKNOWN)
        return
    assert said.endswith(told)
    assert said.removesuffix(told).removesuffix("It went ") in {"", *(f"{opening} " for opening in table("remembered"))}


def test_of_lore_one_sentence_is_quoted_that_fits_and_none_for_no_words():
    lore = [{"text": "The bell fell. The bell is old. It rains.", "source": "a.md"}, {"text": "The bell hums."}]
    assert cite("the bell", lore) == "You have read of it (a.md): “The bell is old.”"
    assert (cite("the boat", lore), cite("", lore)) == ("", "")


def test_what_the_pages_are_asked_is_told_from_the_rest():
    assert asked_of("What is my name? Where am I? Who is here?") == {
        "name": "What is my name?",
        "": "Where am I? Who is here?",
    }
    assert asked_of("What is my name? I look.") == asked_of("look around") == asked_of("Where am I?") == {}


def test_what_is_not_known_is_said_in_the_words_of_the_question():
    for subject, question, quoted in (
        ("my mother's ring", "What about my mother's ring?", "“your mother's ring”"),
        ("say of it", "What did the baker say of it?", "“say of it”"),
        ("the baker say of it", "What did the baker say of it?", "“what did the baker say of it”"),
        ("", "What am I?", "“what are you”"),
        ("", "How old was I?", "“how old were you”"),
        ("", "Who am I afraid of?", "“who are you afraid of”"),
        ("", "What did you give me?", "“what did you give me”"),
    ):
        assert quoted in remember(subject, question, Past(), random.Random(1)), question
    for question in ("Did I see it?", "What did I take?", "Have I met Ada?"):
        told = remember("it", question, Past(), random.Random(1))
        assert told == f"You think it over, and remember nothing of the kind.{UNKNOWN}"
