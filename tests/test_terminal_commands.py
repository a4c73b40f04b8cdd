"""Slash commands on a real game with a scripted model."""

import asyncio
import io
import os
import signal
import termios
import time
from argparse import Namespace
from contextlib import suppress
from types import SimpleNamespace
from unittest.mock import AsyncMock

import pytest
from conftest import MIRA
from many_threads import copy_campaign
from prompt_toolkit.application import create_app_session
from prompt_toolkit.document import Document
from prompt_toolkit.output import ColorDepth, DummyOutput
from scripted import call, say, words_of

from questbook import CharacterNotebook
from questbook.graphs.companion.context import CompanionContext
from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.dungeon_master.why import MEMORY, Cause
from questbook.graphs.errors import FatalModelError, ForgettingError, ModelError
from questbook.graphs.events import Memories, NodeEnd, NodeStart, PromptReport
from questbook.graphs.history.view import ChangedEntry
from questbook.graphs.local.costs import Cost, Costs
from questbook.graphs.local.file_home import FileHome
from questbook.graphs.local.game import open_game
from questbook.graphs.local.home import HomeError
from questbook.graphs.local.homes import find_home
from questbook.graphs.local.saved_game import SavedGame, list_campaigns, thread_id_of
from questbook.graphs.terminal import play as loop
from questbook.graphs.terminal.chat import COMPANION
from questbook.graphs.terminal.pages import difference_rows, entry_rows, quest_rows, sheet_rows, why_rows
from questbook.graphs.terminal.play import DUNGEON_MASTER, Keyboard
from questbook.graphs.terminal.screen import Screen
from questbook.graphs.terminal.slash_commands import Quit, Terminal, run_command
from questbook.graphs.turn.player_view import PlayerView

PAGE = {
    "scene": "An inn at dusk.", "location": "The Bent Nail", "gold": 7, "clock": {"day": 2, "time": "dusk"},
    "quests": {"The lost bell": {"status": "done", "notes": "It rings again."}}, "inventory": {"rope": 1, "torch": 3},
    "people": {
        "Oda": {"role": "innkeeper", "attitude": "wary", "last_seen": "the bar, day 1"},
        "Pell": {"alive": False, "fate": "fell from the tower"},
    },
    "condition": {"hp": 5, "max_hp": 9, "conditions": {"poisoned": "until dawn"}},
    "facts": {"the bell": "is cursed"}, "secrets": {"Oda": "is the thief"},
}  # fmt: skip


@pytest.fixture
async def terminal(model):
    async with open_game(Context.of(None, model="scripted", campaign="isle")) as game:
        yield Terminal(game, Screen(live=False), DUNGEON_MASTER)


async def play(terminal, words):
    terminal.clear()
    async for event in terminal.game.send(words):
        terminal.keep(event)


async def begin(terminal, model):
    model.queue("interview", say("", call("CharacterNotebook", **MIRA)))
    model.queue("update", say("", call("StateNotebook", scene="An inn.", secrets={"Oda": "is the thief"})))
    await play(terminal, "I'm Mira.")


async def answer(terminal, line, capsys):
    capsys.readouterr()
    then = await run_command(terminal, line)
    out, err = capsys.readouterr()
    return then, out + err


async def test_sheet_and_quest_never_the_secrets(terminal, model, capsys):
    await begin(terminal, model)
    _, sheet = await answer(terminal, "/sheet", capsys)
    assert "halfling" in sheet
    assert "DEX" in sheet
    _, quest = await answer(terminal, "/quest", capsys)
    assert "An inn." in quest
    assert "thief" not in quest


async def test_prompt_shows_sections_a_total_and_texts(terminal, model, capsys):
    await begin(terminal, model)
    _, told = await answer(terminal, "/prompt", capsys)
    assert "run_quest" in told
    assert "instructions" in told
    total = sum(section["tokens"] for section in [p for p in terminal.prompts if p.node == "run_quest"][-1].sections)
    assert f"{total:,}" in told
    assert "schemas of its tools are not in the table" in told
    _, told = await answer(terminal, "/prompt character", capsys)
    assert "Mira" in told
    assert "instructions" not in told
    _, told = await answer(terminal, "/prompt all", capsys)
    assert "dungeon master" in told
    _, told = await answer(terminal, "/prompt charakter", capsys)
    assert told == "The prompt has no section charakter. Did you mean character?\n"


async def test_memories(terminal, capsys):
    terminal.keep(Memories([{"turn": 4, "age": "yesterday", "score": 0.5, "player": "a\nb", "reply": "x" * 500}]))
    _, told = await answer(terminal, "/memories", capsys)
    assert all(part in told for part in ("4", "yesterday", "0.50", "a b"))
    terminal.keep(Memories([]))
    _, told = await answer(terminal, "/memories", capsys)
    assert "Nothing was recalled" in told


async def test_the_greeting_says_where_you_are_once(terminal, model, capsys):
    await begin(terminal, model)
    for scene, shown in [("Dusk at the Old Mill.", "Dusk at the Old Mill."), ("Dusk.", "the old mill – Dusk.")]:
        model.queue("update", say("", call("StateNotebook", scene=scene, location="the old mill")))
        await play(terminal, "I wait.")
        capsys.readouterr()
        DUNGEON_MASTER.greet(await terminal.game.saved_game(), terminal.game.context, terminal.screen)
        assert f"\n{shown}\n" in capsys.readouterr().err


async def test_unknown_commands_name_the_nearest(terminal, capsys):
    assert (await answer(terminal, "/quest now", capsys))[0] is None
    assert (await answer(terminal, "/SHEET", capsys))[1].startswith("No character")
    assert "Did you mean /memories?" in (await answer(terminal, "/memorys", capsys))[1]
    assert "/help lists them" in (await answer(terminal, "/xyzzy", capsys))[1]
    assert (await answer(terminal, "/quit", capsys))[0] == Quit()


async def test_campaigns_are_the_users_own_the_last_played_first_also_those_that_studio_edited(terminal, model, capsys):
    await begin(terminal, model)
    thread = {"configurable": {"thread_id": terminal.game.thread_id}}
    await (await terminal.game.load()).aupdate_state(thread, {"character": {"name": "Mirabel"}}, as_node="remember")
    for user, campaign in (("adventurer", "reef"), ("ada", "isle")):
        async with open_game(Context.of(None, model="scripted", user=user, campaign=campaign)) as other:
            async for _ in other.send("hello"):
                pass
    found = await list_campaigns(terminal.game.checkpointer, "adventurer")
    assert [(saved.campaign, saved.turn) for saved in found] == [("reef", 1), ("isle", 1)]
    assert {saved.thread_id for saved in found} == {thread_id_of("adventurer", name) for name in ("reef", "isle")}
    _, told = await answer(terminal, "/campaigns", capsys)
    assert "Mirabel, rogue" in told
    assert thread_id_of("adventurer", "isle") in told


async def test_of_many_campaigns_those_played_last_are_listed_and_no_others_are_read(
    terminal, model, capsys, monkeypatch
):
    await begin(terminal, model)
    await copy_campaign(terminal.game.checkpointer, "adventurer", "isle", 70)
    reads = []
    read = terminal.game.checkpointer.aget_tuple
    monkeypatch.setattr(terminal.game.checkpointer, "aget_tuple", lambda config: reads.append(config) or read(config))
    _, told = await answer(terminal, "/campaigns", capsys)
    assert len(reads) == 50
    assert "isle-48 " in told
    assert "isle-49 " not in told
    assert "the 50 that you played last" in told
    reads.clear()
    _, told = await answer(terminal, "/campaigns all", capsys)
    assert "isle-69 " in told
    assert "played last" not in told
    reads.clear()
    assert await list_campaigns(terminal.game.checkpointer, "ada") == []
    assert reads == [], "whose a thread is, its metadata says"


def test_the_quest_as_rows():
    rows = dict(quest_rows(PlayerView.of({"quest": PAGE})))
    assert rows["Quests"] == "The lost bell (done): It rings again."
    assert rows["People"] == ("Oda: innkeeper, wary, last seen the bar, day 1\nPell: dead: fell from the tower")
    assert rows["Inventory"] == "rope, torch ×3"
    assert rows["Condition"] == "5/9 hit points\npoisoned: until dawn"
    assert (rows["Clock"], rows["Gold"], rows["Facts"]) == ("day 2, dusk", "7", "the bell: is cursed")
    assert "thief" not in str(rows)


def test_the_sheet_as_rows():
    page = CharacterNotebook.load({"name": "Mira", "abilities": {"dexterity": 15, "strength": 7}, "kit": {"rope": 2}})
    rows = dict(sheet_rows(PlayerView(character=page)))
    assert rows["Abilities"] == "STR 7 (-2)  DEX 15 (+2)"
    assert rows["Kit"] == "rope ×2"
    assert rows["Still missing"] == "ancestry, class, background, goal"
    assert "Still missing" not in dict(sheet_rows(PlayerView.of({"character": MIRA})))


async def test_a_prompt_of_an_update_is_shown_only_if_there_is_no_other(capsys, tmp_path):
    terminal = Terminal(
        SimpleNamespace(home=FileHome(tmp_path), context=Context(user="ann", campaign="isle")),
        Screen(live=False),
        DUNGEON_MASTER,
        prompts=[PromptReport("update_state", [{"section": "s", "tokens": 1, "text": "t"}])],
    )
    assert "update_state" in (await answer(terminal, "/prompt", capsys))[1]


async def test_why_lists_what_the_pages_hold_and_knows_the_sheet_and_hides_names_of_the_machinery(
    terminal, model, capsys
):
    _, told = await answer(terminal, "/why", capsys)
    assert told.startswith("Nothing is noted yet")
    model.queue("interview", say("And?", call("CharacterNotebook", name="Mira", ancestry="halfling")))
    await play(terminal, "I am Mira, a halfling.")
    model.queue("interview", say("", call("CharacterNotebook", **MIRA)))
    model.queue("update", say("", call("StateNotebook", **{k: v for k, v in PAGE.items() if k != "condition"})))
    await play(terminal, "A rogue, and all that.")
    model.queue("update", say("", call("StateNotebook", people={"Pell": None})))
    await play(terminal, "I look around.")
    _, told = await answer(terminal, "/why", capsys)
    for name in ("gold", "people.Oda", "quests.The lost bell", "facts.the bell", "class", "kit.", "condition"):
        assert name in told, name
    for name in ("fallen", "secrets", "max_hp", "version", "hit_points", "thief"):
        assert name not in told, name
    _, told = await answer(terminal, "/why ancestry", capsys)
    assert "I am Mira, a halfling." in told
    assert " 1 " in told
    assert "just now" in told
    assert "T" not in told.split("Mira")[0].replace("Turn", ""), "no time stamp"
    _, told = await answer(terminal, "/why CLASS", capsys)
    assert "A rogue, and all that." in told
    _, told = await answer(terminal, "/why abilities", capsys)
    assert "the rules worked it out" in told
    for unknown in ("/why fallen", "/why version", "/why xyzzy"):
        _, told = await answer(terminal, unknown, capsys)
        assert "is no field" in told
        assert not any(name in told.split("Fields:")[1] for name in ("fallen", "secrets", "version", "hit_points"))


async def test_what_is_no_yes_keeps_it_and_a_command_in_its_place_is_done(terminal, model, capsys):
    await begin(terminal, model)
    for typed, said in (("no", "Nothing was forgotten.\n"), ("/SHEET", "Nothing was forgotten.\nCharacter\n")):
        then, _ = await answer(terminal, "/forget inn", capsys)
        assert await then.answered(typed) is None
        out, err = capsys.readouterr()
        assert (err + out).startswith(said)
    then, _ = await answer(terminal, "/forget inn", capsys)
    assert isinstance(await then.answered("/quit"), Quit)


async def test_a_person_is_asked_before_a_turn_is_retracted_and_a_script_is_not(terminal, model, capsys):
    await begin(terminal, model)
    for number in (2, 3):
        model.queue("quest", say(f"Reply {number}."))
        await play(terminal, f"Deed {number}")
    terminal.screen = Screen(live=True)
    then, told = await answer(terminal, "/retract 2", capsys)
    assert "Turn 2, “Deed 2”: what it noted" in told
    assert "Retract it?" in told
    await then.answered("ok")
    assert "Nothing was retracted." in capsys.readouterr()[0]
    then, _ = await answer(terminal, "/retract 2", capsys)
    await then.answered("yes")
    told = capsys.readouterr()[0]
    assert ("Turn 2 is retracted" in told, "Facts that" in told) == (True, False), "it taught no facts"
    then, told = await answer(terminal, "/retract 2", capsys)
    assert (then, "There is no turn 2 on this line to retract" in told) == (None, True)
    terminal.screen = Screen(live=False)
    then, told = await answer(terminal, "/retract 3", capsys)
    assert (then, "Turn 3 is retracted" in told) == (None, True)


@pytest.mark.parametrize("line", ["/forget pennies", " /forget the pennies", "don't remember this: pennies"])
def test_what_names_words_to_forget_or_is_private_is_not_in_the_prompt_history(tmp_path, line):
    FileHome(tmp_path).prompt_history.parent.mkdir(exist_ok=True)
    with create_app_session(output=DummyOutput()):
        history = Keyboard(FileHome(tmp_path), {})._session.history
    for typed in (line, line.upper().replace("PENNIES", "pennies"), "/why pennies"):
        history.store_string(typed)
    assert FileHome(tmp_path).prompt_history.read_text("utf-8").count("pennies") == 1


GAME = Context.of(None, model="scripted", user="adventurer", campaign="isle", buffer_tokens=300)
TALK = CompanionContext.of(None, model="scripted", user="adventurer", campaign="isle", buffer_tokens=300)


async def answers(game, partner, capsys, *lines, live=()):
    terminal = Terminal(game, Screen(live=False), partner)
    for event in live:
        terminal.keep(event)
    return [(await answer(terminal, line, capsys))[1] for line in lines]


COMMANDS = ("/memories", "/prompt messages", "/prompt instructions", "/prompt memories")


@pytest.mark.slow
@pytest.mark.parametrize(("context", "partner"), [(GAME, DUNGEON_MASTER), (TALK, COMPANION)], ids=["game", "chat"])
async def test_memories_and_prompt_of_the_last_turn_are_known_after_a_restart(model, capsys, context, partner):
    async with open_game(context, machine=partner.machine) as game:
        model.queue("interview", say("", call("CharacterNotebook", **MIRA)))
        for number in range(12):
            reply = say(f"The heron {number} sings. " + "La la la. " * 20)
            model.queue("quest", reply)
            model.queue("companion", reply)
            events = [event async for event in game.send(f"I listen to heron {number}.")]
        model.queue("quest", say("It sang of the sea."))
        model.queue("companion", say("It sang of the sea."))
        events = [event async for event in game.send("What did heron 1 sing?")]
        asked = len(model.calls)
        before = await answers(game, partner, capsys, *COMMANDS, live=events)
    assert "heron 1 " in before[0]
    async with open_game(context, machine=partner.machine) as game:
        after = await answers(game, partner, capsys, *COMMANDS)
        assert len(model.calls) == asked
        assert (await game.saved_game()).turn == 13
    assert after == before


async def test_in_the_interview_too_and_with_the_summary_of_now(model, capsys):
    async with open_game(GAME) as game:
        [event async for event in game.send("I am somebody.")]
    async with open_game(GAME) as game:
        memories, prompt, summary = await answers(
            game, DUNGEON_MASTER, capsys, "/memories", "/prompt messages", "/prompt summary"
        )
    assert "there is none yet" in memories
    assert "I am somebody." in prompt
    assert "Nothing has left the conversation yet." in summary


async def test_what_came_of_the_notes_is_told_before_a_command_answers(model, capsys, monkeypatch):
    lines = iter(["I'm Mira.", "/quest", "/quit"])

    class Typist(loop.Pipe):
        live = True

        def __init__(self, *_):
            pass

        async def line(self, words=""):
            return next(lines)

    monkeypatch.setattr(loop, "Keyboard", Typist)
    model.queue("interview", say("", call("CharacterNotebook", **MIRA)))
    model.queue("update", ModelError("The model is busy."))
    await loop.play(Context.of(None, model="scripted"), Namespace(live=True))
    told = capsys.readouterr().out
    assert told.index("The quest notes were not updated") < told.index("Inventory")


@pytest.mark.slow
async def test_five_thousand_campaigns_are_listed_in_half_a_second_and_begin_as_fast(terminal, model, capsys):
    await begin(terminal, model)
    await copy_campaign(terminal.game.checkpointer, "adventurer", "isle", 5_000)
    listed, begun = [], []
    for number in range(3):
        started = time.process_time()
        assert "isle-48 " in (await answer(terminal, "/campaigns", capsys))[1]
        listed.append(time.process_time() - started)
        async with open_game(Context.of(None, model="scripted", campaign=f"new {number}")) as game:
            started = time.process_time()
            assert not await game.enter()
            begun.append(time.process_time() - started)
    assert (min(listed) < 0.5, min(begun) < 0.5) == (True, True)


def quest_rows_of(**page):
    return quest_rows(PlayerView.of({"quest": page}))


@pytest.mark.parametrize(
    ("page", "rows"),
    [
        ({}, []),
        ({"gold": 0, "objective": ""}, []),
        ({"clock": {"day": 3}}, [("Clock", "day 3")]),
        ({"people": {"Oda": {}, "Pell": {"alive": False}, "Gil": {"last_seen": "here"}}},
         [("People", "Oda\nPell: dead\nGil: last seen here")]),
        ({"quests": {"The key": {}}}, [("Quests", "The key (open)")]),
        ({"condition": {"hp": 0, "conditions": {"dead": ""}}}, [("Condition", "0 hit points\ndead")]),
        ({"condition": {"conditions": {"wet": "till noon"}}}, [("Condition", "wet: till noon")]),
        ({"fallen": {"Pell": "fell"}}, [("The dead", "Pell: fell")]),
        ({"facts": {"a": "b", "c": "d"}, "inventory": {"rope": 1}}, [("Inventory", "rope"), ("Facts", "a: b\nc: d")]),
    ],
)  # fmt: skip
def test_what_is_empty_on_the_quest_s_page_is_left_out(page, rows):
    assert [row for row in quest_rows_of(**page) if row not in (("Gold", "0"), ("Clock", "day 1"))] == rows


def test_what_pages_hold_is_listed_entry_by_entry_by_the_names_that_why_knows():
    character = {"name": "Mira", "abilities": {"strength": 7}, "hit_points": 9, "kit": {"rope": 2}}
    view = PlayerView.of({"character": character, "quest": PAGE | {"scene": "x" * 100}})
    rows = dict(entry_rows(view))
    assert rows["abilities"] == "strength: 7"
    assert (rows["kit.rope"], rows["clock.day"], rows["gold"]) == ("2", "2", "7")
    assert rows["people.Oda"] == "role: innkeeper; attitude: wary; last_seen: the bar, day 1; alive: True"
    assert rows["condition.conditions"] == "poisoned: until dawn"
    assert (len(rows["scene"]), rows["scene"][-1]) == (80, "…")
    assert not {"hit_points", "condition.max_hp", "fallen", "people", "secrets"} & set(rows)


@pytest.mark.parametrize(
    ("path", "before", "after", "row"),
    [
        (("gold",), 4, 9, ("Gold", "4 → 9")),
        (("people", "Oda", "last_seen"), None, "the bar", ("People: Oda: last_seen", "– → the bar")),
        (("class",), "", "rogue", ("Class", "– → rogue")),
        (("clock",), {"day": 1, "time": "dusk"}, None, ("Clock", "day: 1; time: dusk → –")),
        (("gold",), 0, 1, ("Gold", "0 → 1")),
    ],
)
def test_a_difference_is_what_was_and_what_is(path, before, after, row):
    assert difference_rows([ChangedEntry("quest", path, before, after)]) == [row]


CAUSE = Cause("gold", 7, True, (3, 3), 3, "b", "I sell the lamp.", "Sold.", "t", "c", "2026-01-01T10:00:00+00:00")


@pytest.mark.parametrize(
    ("change", "row"),
    [
        ({}, ("3", "gold: 7", "I sell the lamp.")),
        ({"turns": (2, 4)}, ("2–4", "gold: 7", "I sell the lamp.")),
        ({"value": None}, ("3", "gold: deleted by the notes of this turn", "I sell the lamp.")),
        ({"holds": False}, ("3", "gold: 7 (changed since)", "I sell the lamp.")),
        ({"field": MEMORY}, ("3", "memory", "I sell the lamp.")),
        ({"value": "x" * 200, "player": "y" * 200}, ("3", f"gold: {'x' * 93}…", f"{'y' * 99}…")),
    ],
)
async def test_why_tells_turn_by_turn_what_was_noted_and_what_it_was_drawn_from(monkeypatch, change, row):
    async def why(*_):
        return [CAUSE._replace(**change), CAUSE._replace(turn=1, turns=(1, 1), drawn_from=["**Oda** sings."])]

    async def load():
        return None

    monkeypatch.setattr("questbook.graphs.dungeon_master.why.why", why)
    first, _, drawn = await why_rows(SimpleNamespace(load=load, config=None, context=None), "gold")
    assert (first[0], first[2], first[3]) == row
    assert "ago" in first[1]
    assert drawn == ("", "", "drawn from: Oda sings.", "")


async def test_memories_of_each_kind_are_told_apart_and_cut(terminal, capsys):
    lore = {"text": "Gods\nAsh sleeps.", "source": "gods.md", "section": "Gods", "score": None, "why": "named"}
    said = {"speaker": "Oda", "text": "**No** lamp.", "turn": 3, "score": 1}
    long = {"player": "I wait.", "text": "I wait.\nSo.", "reply": "x" * 200}
    terminal.keep(Memories([lore, said, long]))
    screen = terminal.screen = Tables()
    await answer(terminal, "/memories", capsys)
    [(title, columns, rows, right)] = screen.tables
    assert (title, right) == ("Recalled for the last turn", "Score")
    assert columns == ("Turn", "When", "Score", "You said", "Reply", "Why")
    assert rows == [
        ("", "", "–", "[gods.md, Gods] Ash sleeps.", "", "named"),
        ("3", "", "1.00", "Oda: No lamp.", "", ""),
        ("", "", "–", "I wait.", "x" * 159 + "…", ""),
    ]


class Tables:
    """A screen that keeps what it is told to show."""

    live = False

    def __init__(self):
        self.tables, self.said = [], []
        self.answer = self.say = self.complain = lambda text, style="": self.said.append(text)
        self.blank = lambda: None

    def table(self, title, columns, rows, *, right=""):
        self.tables.append((title, columns, [tuple(row) for row in rows], right))


SECTIONS = [
    {"section": "instructions", "tokens": 1200, "text": "You are."}, {"section": "quest", "tokens": 34, "text": "Gold."}
]  # fmt: skip


@pytest.fixture
def asked(tmp_path):
    """A terminal whose last prompts are known, and which shows to nobody."""

    async def saved_game():
        return SavedGame("ann", "isle", "t", "", {"summary": "They met. " * 3})

    game = SimpleNamespace(home=FileHome(tmp_path), context=Context(user="ann", campaign="isle"), saved_game=saved_game)
    first, last = PromptReport("update_state", SECTIONS[:1]), PromptReport("run_quest", SECTIONS, {"turns": 2, "of": 5})
    before = PromptReport("run_quest", SECTIONS[1:])
    return Terminal(game, Tables(), DUNGEON_MASTER, prompts=[before, last, first], speaking={"run_quest"})


@pytest.mark.parametrize(
    ("character", "line", "said"),
    [
        *(({field: "x"}, "/sheet", "") for field in ("name", "class", "ancestry", "goal")),
        ({"background": "x"}, "/sheet", "No character yet: tell the dungeon master who you want to play."),
        ({"name": "Mira"}, "/quest", "No quest yet: it begins when your character is complete."),
        ({"name": "Mira"}, "/recap", "Nothing to tell yet: the story begins when your character is complete."),
        (MIRA, "/quest", ""),
    ],
)
async def test_pages_are_shown_as_soon_as_there_is_something_on_them(asked, character, line, said):
    saved = SavedGame("ann", "isle", "t", "", {"character": character, "quest": {"scene": "An inn."}})

    async def saved_game():
        return saved

    asked.game.saved_game = saved_game
    await run_command(asked, line)
    assert asked.screen.said == ([said] if said else [])
    assert [title for title, *_ in asked.screen.tables] == (
        [] if said else [line[1:].replace("sheet", "character").title()]
    )


async def test_campaigns_come_with_character_turn_and_local_time_and_the_one_that_is_played_is_marked(
    asked, monkeypatch
):
    async def list_campaigns(*_):
        when = "2026-01-31T20:15:00+00:00"
        mira = {"turn": 3, "character": MIRA}
        return [SavedGame("ann", "isle", "own", when, mira), SavedGame("ann", "x" * 70, "other", when, {"turn": 1})]

    asked.game.checkpointer, asked.game.thread_id = None, "own"
    monkeypatch.setattr("questbook.graphs.terminal.slash_commands.list_campaigns", list_campaigns)
    with monkeypatch.context() as there:
        there.setenv("TZ", "Asia/Tokyo")
        time.tzset()
        await run_command(asked, "/campaigns")
    time.tzset()
    [(_, columns, rows, right)] = asked.screen.tables
    assert (columns, right) == (("", "Campaign", "Character", "Turn", "Last played", "Thread"), "Turn")
    assert rows == [
        ("*", "isle", "Mira, rogue", "3", "2026-02-01 05:15", "own"),
        ("", "x" * 59 + "…", "–", "1", "2026-02-01 05:15", "other"),
    ]
    assert asked.screen.said == []


async def test_what_cannot_be_forgotten_is_said(asked, monkeypatch):
    async def find_words(*_):
        raise ForgettingError("The store does not answer.")

    monkeypatch.setattr("questbook.graphs.interface.forgetting.find_words", find_words)
    assert await run_command(asked, "/forget docks") is None
    assert asked.screen.said == ["The store does not answer."]


async def test_what_was_forgotten_or_retracted_is_no_longer_shown_as_what_the_model_saw(asked, monkeypatch):
    async def forget_words(*_, remove_emptied):
        return f"Forgotten: {remove_emptied}."

    async def retract_turn(*_):
        return ["Turn 2 is retracted."]

    async def find_words(*_):
        return SimpleNamespace(lines=["found"], emptied=emptied)

    places = {"forget_words": forget_words, "retract_turn": retract_turn, "find_words": find_words}
    for name, function in places.items():
        monkeypatch.setattr(f"questbook.graphs.interface.forgetting.{name}", function)
    prompts, asked.recalled, emptied = asked.prompts, [], []
    then = await run_command(asked, "/forget docks")
    assert await then.answered("yes") is None
    assert (asked.prompts, asked.recalled, asked.screen.said[-1]) == ([], None, "Forgotten: False.")
    for answer in ("yes", "no"):
        emptied = ["little is left"]
        then = await (await run_command(asked, "/forget docks")).answered("y")
        assert await then.answered(answer) is None
        assert asked.screen.said[-2:] == ["little is left", f"Forgotten: {answer == 'yes'}."]
    asked.prompts = prompts
    assert await run_command(asked, "/retract 2") is None
    assert (asked.prompts, asked.screen.said[-1]) == ([], "Turn 2 is retracted.")


async def test_the_prompt_is_shown_section_by_section_of_the_node_that_spoke(asked):
    asked.speaking = set()
    for node, spoke in (("run_quest", True), ("update_state", False)):
        asked.keep(NodeEnd(node, spoke))
    await run_command(asked, "/prompt")
    [(title, _, rows, right)] = asked.screen.tables
    assert title == "What the model saw last (run_quest); /prompt SECTION or /prompt all shows the text"
    assert (rows, right) == ([("instructions", "1,200"), ("quest", "34"), ("total", "1,234")], "Tokens")
    assert asked.screen.said[-1] == "Word for word: 2 of 5 earlier turns."
    for line, said in [
        ("/prompt quest", ["quest (34 tokens)", "Gold."]),
        ("/prompt all", ["instructions (1,200 tokens)", "You are.", "quest (34 tokens)", "Gold."]),
        ("/prompt summary", ["summary (8 tokens), as it is now", "They met. They met. They met. "]),
        ("/prompt qest", ["The prompt has no section qest. Did you mean quest?"]),
        ("/prompt xyzzy", ["The prompt has no section xyzzy. There are instructions, quest and all."]),
    ]:
        asked.screen.said.clear()
        await run_command(asked, line)
        assert asked.screen.said == said


async def test_what_a_campaign_costs_is_told_once_something_was_paid(asked, monkeypatch):
    costs = Costs(Cost(1, 7, 3, 0.0), Cost(4, 2000, 30, 0.0042))
    monkeypatch.setattr("questbook.graphs.local.costs.costs_of", AsyncMock(return_value=costs))
    await run_command(asked, "/prompt")
    assert asked.screen.said[-1] == (
        "Cost: 1 call, 10 tokens. The campaign: 4 calls, 2,030 tokens, $0.0042, with turns undone or played again."
    )


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("/sheat", "There is no command /sheat. Did you mean /sheet?"),
        ("/xyzzy", "There is no command /xyzzy. /help lists them."),
        ("/" + "x" * 50, f"There is no command /{'x' * 38}…. /help lists them."),
        ("/forget", "Forget what? /forget WORDS forgets them on every branch, and first shows what holds them."),
        ("/undo two", "/undo takes a number of turns, got two."),
        ("/undo " + "1" * 16, "/undo takes a number of turns, got 1111111111111111."),
        ("/retry twice", "/retry plays the last turn again, /retry dice also rolls again; got twice."),
        ("/branch", "/branch NAME gives the line from here on a name."),
        ("/go", "/go NAME goes to the end of a line, a branch or a turn; /branches shows them."),
        ("/retract x", "Which turn? /retract 7 undoes what was noted, remembered and summarised of turn 7."),
    ],
)
async def test_what_a_command_does_not_take_is_refused_with_what_it_takes(terminal, line, said):
    terminal.screen = Tables()
    assert await run_command(terminal, line) is None
    assert terminal.screen.said == [said]


async def test_help_lists_every_command_with_what_may_follow_it(terminal):
    screen = terminal.screen = Tables()
    await run_command(terminal, " /HELP  ")
    [(title, _, rows, _)] = screen.tables
    commands = terminal.partner.commands
    assert title == "Commands"
    assert [name.split()[0] for name, _ in rows] == list(commands)
    assert ("/undo [N]", "go back a turn, or N turns") in rows
    assert ("/sheet", "your character") in rows
    assert screen.said == ["Everything else goes to the dungeon master. Ctrl-C stops a reply, Ctrl-D quits."]
    looks = {name for name, command in commands.items() if command.looks}
    assert looks == {
        "/sheet", "/quest", "/recap", "/campaigns", "/why", "/memories", "/prompt", "/help", "/branches", "/diff",
    }, "what only looks lets the notes go on"  # fmt: skip
    assert commands["/retry"].words == ("dice",)
    assert commands["/prompt"].words == (
        "all", "instructions", "character", "quest", "summary", "memories", "messages"
    )  # fmt: skip


def test_a_companion_has_commands_and_words_of_its_own():
    commands = COMPANION.commands
    assert commands["/core"].words == ("persona", "human", "scratchpad")
    looks = {"/memories", "/prompt", "/help", "/branches", "/diff"}
    assert {name for name, command in commands.items() if command.looks} == looks
    assert not {"/sheet", "/quest", "/recap", "/campaigns", "/retract"} & set(commands)
    assert (COMPANION.machine, COMPANION.name) == ("companion", "the companion")
    assert (COMPANION.blank, COMPANION.goodbye) == ("Say something, or /help.", "Everything is kept. Until next time!")


@pytest.mark.parametrize(("length", "is_too_long"), [(8000, False), (8001, True)])
async def test_a_message_that_is_too_long_is_not_sent_and_the_limit_is_named(terminal, length, is_too_long):
    terminal.screen = Tables()
    assert terminal.is_too_long("x" * length) is is_too_long
    said = (
        "That is 8,001 characters; the dungeon master reads at most 8,000 at once. Nothing was sent; say it in parts."
    )
    assert terminal.screen.said == [said] * is_too_long


@pytest.fixture
def typed(capsys, monkeypatch):
    """A game in which somebody types lines, or presses Ctrl-C or Ctrl-D; returns what the screen says."""
    monkeypatch.setenv("COLUMNS", "250")

    async def types(*lines, **settings):
        left = iter([*lines, EOFError()])

        class Typist(loop.Pipe):
            live = True

            def __init__(self, home, commands):
                assert (home, commands["/retry"]) == (find_home(), ("dice",)), "for completion"

            async def line(self, words=""):
                line = next(left)
                if isinstance(line, BaseException):
                    raise line
                return line

        monkeypatch.setattr(loop, "Keyboard", Typist)
        capsys.readouterr()
        await loop.play(
            Context.of(None, **{"model": "scripted", "embeddings": "hash", **settings}), Namespace(live=True)
        )
        return [line.rstrip() for line in capsys.readouterr().out.splitlines() if line.strip()]

    return types


WHO = "Say it in your own words: a name, a people, a calling, where they come from and what they want."
WELCOME = [
    "Welcome to Questbook. A new campaign begins: default.",
    f"Who do you want to play? {WHO} /help lists the commands.",
]
GOODBYE = "The campaign is kept. Until next time!"
AGAIN = "Ctrl-C again quits, and so do Ctrl-D and /quit; /help lists the commands."
BARE = "The command is {}. To say it in the story, write it with a full stop."


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([], []),
        (["", "  "], ["Say what your character does, or /help."] * 2),
        ([" Undo "], [BARE.format("/undo")]),
        (["  /xyzzy"], ["There is no command /xyzzy. /help lists them."]),
        (["retry", "HELP"], [BARE.format("/retry"), BARE.format("/help")]),
        (["quit", "exit"], [BARE.format("/quit")] * 2),
        (["/quit", "not said"], []),
        ([KeyboardInterrupt(), KeyboardInterrupt(), "not said"], [AGAIN]),
        ([KeyboardInterrupt(), KeyboardInterrupt("I wal"), KeyboardInterrupt(), "not said"], [AGAIN] * 2),
        ([KeyboardInterrupt(), "", KeyboardInterrupt(), "quit"],
         [AGAIN, "Say what your character does, or /help.", AGAIN, BARE.format("/quit")]),
        (["x" * 8001], ["That is 8,001 characters; the dungeon master reads at most 8,000 at once. Nothing was sent; "
                        "say it in parts."]),
    ],
)  # fmt: skip
async def test_at_the_prompt_what_is_no_message_is_answered_and_nothing_is_played(typed, model, lines, said):
    assert await typed(*lines) == [*WELCOME, *said, GOODBYE]
    assert model.calls == []


async def test_what_finds_memories_by_meaning_is_named_before_there_are_any(typed, model):
    assert (await typed(embeddings="auto"))[0].startswith("Memories are found by their words. MiniLM, a small model")
    await typed("I'm Mira.")
    assert "MiniLM" not in str(await typed(embeddings="auto"))


async def test_a_word_with_a_full_stop_is_said_in_the_story(typed, model):
    model.queue("interview", say("Undo what?"))
    assert await typed("undo.") == [*WELCOME, "Undo what?", GOODBYE]


async def test_a_model_that_fails_is_told_and_the_message_is_answered_by_retry_or_the_next_start(typed, model):
    model.queue("interview", ModelError("The model is busy."), say("Hello."))
    shown = await typed("I'm Mira.", "/retry")
    assert shown[2:] == [
        "The model is busy. Your message is kept; /retry answers it.", "Turn 1 goes on.", "Hello.", GOODBYE,
    ]  # fmt: skip
    model.queue("interview", FatalModelError("There is no key."))
    with pytest.raises(FatalModelError, match=r"There is no key\. Your message is kept: the next start answers it."):
        await typed("A rogue " + "x" * 90)
    model.queue("interview", say("A rogue, then."))
    shown = await typed()
    assert shown == [
        "default, turn 1: you are someone without a name yet.", "Hello.",
        f"Your last message has no reply yet: “A rogue {'x' * 71}…”", "A rogue, then.", GOODBYE,
    ]  # fmt: skip


@pytest.mark.parametrize(("name", "said"), [
    ("x" * 70, f"{'x' * 59}…, turn 1: you are Mira."), ("isle", "isle, turn 1: you are Mira."),
])  # fmt: skip
async def test_the_greeting_names_campaign_turn_character_and_place_and_says_the_last_reply(typed, model, name, said):
    model.queue("interview", say("", call("CharacterNotebook", **MIRA)))
    model.queue("update", say("", call("StateNotebook", location="The Bent Nail", scene="Dusk. " * 60)))
    await typed("I'm Mira.", campaign=name)
    shown = await typed(campaign=name)
    assert shown == [
        said, f"The Bent Nail – {('Dusk. ' * 60)[:199].rstrip()}…", "The wind turns. What do you do?", GOODBYE,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("quest", "said"),
    [({}, "The adventure is about to begin."), ({"location": "The quay"}, "The quay"), ({"scene": "Dusk."}, "Dusk.")],
)
def test_before_the_first_reply_the_greeting_says_where_you_are_or_that_it_is_about_to_begin(quest, said):
    saved = SavedGame("ann", "isle", "t", "", {"turn": 2, "character": {"name": "Mira"}, "quest": quest})
    screen = Tables()
    screen.heading = screen.say
    DUNGEON_MASTER.greet(saved, Context(campaign="isle"), screen)
    assert screen.said == ["isle, turn 2: you are Mira.", said]


@pytest.mark.parametrize(("model_name", "is_said"), [(" Offline ", True), ("openai:gpt-4o-mini", False)])
async def test_that_no_language_model_answers_is_said_first(typed, model_name, is_said):
    shown = await typed(model=model_name) if is_said else await typed()
    assert shown[0].startswith("The built-in offline storyteller leads the game. ") is is_said


async def test_ctrl_c_stops_a_reply_and_says_that_the_message_is_kept(typed, model):
    class Slow(type(model)):
        async def _astream(self, *given, **named):
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.sleep(5)
            yield

    quick, model.__class__ = type(model), Slow
    shown = await typed("I'm Mira.")
    stopped = "Stopped. Your message is kept; /retry answers it, or say something else in its place."
    assert shown[2:] == [stopped, GOODBYE]
    model.__class__ = quick
    model.queue("interview", say("Hello."))
    waits = "You stopped it: /retry answers it, or say something else in its place."
    assert (await typed("/retry"))[2:] == [
        "Your last message has no reply yet: “I'm Mira.”", waits, "Turn 1 goes on.", "Hello.", GOODBYE,
    ]  # fmt: skip


@pytest.mark.parametrize(("events", "said"), [
    ([], "Stopped before anything was sent; the up arrow brings your words back."),
    ([NodeStart("recall")], "Stopped. The reply is kept; the notes on it are made with the next turn."),
])  # fmt: skip
async def test_ctrl_c_before_anything_is_sent_says_that_the_words_come_back(typed, model, monkeypatch, events, said):
    async def send(*_):
        for event in events:
            yield event
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.sleep(5)
        yield

    monkeypatch.setattr("questbook.graphs.local.game.Game.send", send)
    shown = await typed("I'm Mira.")
    assert shown[2:] == [said, GOODBYE]
    assert not asyncio.get_running_loop().remove_signal_handler(signal.SIGINT), "after the game Ctrl-C ends programs"


async def test_what_is_wrong_with_the_data_is_said_at_the_start_and_a_person_gets_a_free_line_before_each_reply(
    typed, model, monkeypatch
):
    async def problem_of(_):
        return "memory.db is missing."

    free = []
    monkeypatch.setattr(loop, "problem_of", problem_of)
    monkeypatch.setattr(Screen, "blank", lambda _: free.append("one"))
    assert await typed("I'm Mira.", "/edit", "  ", "/edit", "/undo\tx", "/edit /go") == [
        *WELCOME, "memory.db is missing.", "And what else?", "Your message was not changed.",
        "Your message was not changed.", "/undo takes a number of turns, got x.",
        "/edit NEW WORDS takes your words, not a command.", GOODBYE,
    ]  # fmt: skip
    assert free == ["one"]


async def test_what_is_asked_and_not_answered_is_given_up(typed, model):
    model.queue("interview", say("", call("CharacterNotebook", **MIRA)))
    for end in (EOFError(), KeyboardInterrupt()):
        shown = await typed("I'm Mira.", "/forget docks", end)
        assert "Nothing was forgotten." in shown
        assert shown[-1] == GOODBYE


class Script:
    """Standard input with lines of bytes."""

    def __init__(self, *lines):
        self.buffer = io.BytesIO(b"".join(lines))


async def test_a_script_plays_bare_words_and_is_told_nothing_that_only_a_person_needs(model, capsys, monkeypatch):
    model.queue("interview", say("Undo?"), say("Really?"))
    monkeypatch.setattr("sys.stdin", Script(b"undo\n", b"\n", b" \xffquit\x07\r\n", b"/xyzzy\n"))
    await loop.play(Context.of(None, model="scripted"), Namespace(live=False))
    out, err = capsys.readouterr()
    assert (out, err) == ("Undo?\n\nReally?\n\n", "There is no command /xyzzy. /help lists them.\n")
    assert words_of(model.asked("interview")[-1]) == ["undo", " quit"]
    model.queue("interview", ModelError("The model is busy."))
    monkeypatch.setattr("sys.stdin", Script(b"A rogue.\n", b"not said\n"))
    with pytest.raises(FatalModelError, match=r"The model is busy\. Your message is kept: the next start answers it."):
        await loop.play(Context.of(None, model="scripted"), Namespace(live=False))


@pytest.mark.parametrize(("context", "partner", "told"), [
    (Context, DUNGEON_MASTER, "Nothing to tell yet"), (CompanionContext, COMPANION, ""),
])  # fmt: skip
async def test_what_was_left_on_another_thread_is_told_where_there_is_a_story(
    model, capsys, monkeypatch, context, partner, told
):
    entered = iter((False, True))

    async def enter(_):
        return next(entered)

    monkeypatch.setattr("sys.stdin", Script())
    monkeypatch.setattr("questbook.graphs.local.game.Game.enter", enter)
    for says in ("", told):
        await loop.play(context.of(None, model="scripted"), Namespace(live=False), partner)
        out, err = capsys.readouterr()
        assert (out.partition(":")[0].strip(), err) == (says, "")


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("/re", ["/retry", "/recap", "/retract"]), ("/xyz", []), ("re", []), ("I say /re", []), ("", []),
        ("/retry ", ["dice"]), ("/retry d", ["dice"]), ("/retry dice ", []), ("/undo ", []),
        ("/prompt m", ["memories", "messages"]),
    ],
)  # fmt: skip
def test_a_command_and_the_words_that_may_follow_it_are_completed(tmp_path, typed, offered):
    words = {name: command.words for name, command in DUNGEON_MASTER.commands.items()}
    with create_app_session(output=DummyOutput()):
        completer = Keyboard(FileHome(tmp_path), words)._session.completer
    found = list(completer.get_completions(Document(typed), None))
    assert sorted(each.text for each in found) == sorted(offered)
    assert {each.start_position for each in found} <= {-len(typed.split(" ")[-1])}


async def test_a_person_types_into_a_line_that_may_hold_words_and_sees_no_echo_while_a_reply_is_drawn(
    tmp_path, monkeypatch
):
    asked = []

    async def prompt_async(*given, **named):
        asked.append((given, named))
        return "I wait\x1b[31m."

    for no_color, depth in (("1", ColorDepth.DEPTH_1_BIT), ("", None)):
        monkeypatch.setenv("NO_COLOR", no_color)
        with create_app_session(output=DummyOutput()):
            keyboard = Keyboard(FileHome(tmp_path), {})
        assert keyboard._session.color_depth is depth
    monkeypatch.setattr(keyboard._session, "prompt_async", prompt_async)
    assert await keyboard.line("I go.") == "I wait."
    assert asked == [(("> ",), {"default": "I go.", "handle_sigint": False})], "at the prompt Ctrl-C is a key"
    master, slave = os.openpty()
    with open(slave, "rb", buffering=0) as screen, open(master, "rb", buffering=0):
        monkeypatch.setattr("sys.stdin", screen)
        before = termios.tcgetattr(screen)
        with suppress(ZeroDivisionError), keyboard.silenced():
            silent = termios.tcgetattr(screen)
            raise ZeroDivisionError
        assert (before[3] & termios.ECHO, silent[3]) == (termios.ECHO, before[3] & ~termios.ECHO | termios.NOFLSH)
        assert termios.tcgetattr(screen) == before, "also if the reply fails"


def test_a_prompt_history_is_private_and_one_that_cannot_be_used_is_named(tmp_path):
    home = FileHome(tmp_path)
    with create_app_session(output=DummyOutput()):
        Keyboard(home, {})
        assert home.prompt_history.stat().st_mode & 0o777 == 0o600
        home.prompt_history.unlink()
        home.prompt_history.mkdir()
        with pytest.raises(HomeError, match=r"Cannot use .*history: .*\. Move it away\."):
            Keyboard(home, {})


def test_what_is_typed_is_kept_without_what_cannot_be_written(tmp_path):
    with create_app_session(output=DummyOutput()):
        history = Keyboard(FileHome(tmp_path), {})._session.history
    history.store_string("I wait\ud800 here.\x1b[31m")
    assert FileHome(tmp_path).prompt_history.read_text("utf-8").endswith("+I wait here.\n")
