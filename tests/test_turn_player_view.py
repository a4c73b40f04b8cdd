"""What only the dungeon master knows does not reach any door for the player, and no node that renders for them."""

import json
import re
from typing import Any

import pytest
from conftest import MIRA
from langgraph.graph import END, START, StateGraph
from scripted import call, say

from questbook import NotebookError, StateNotebook
from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.dungeon_master.state import DungeonState
from questbook.graphs.local.game import open_game
from questbook.graphs.local.homes import find_home
from questbook.graphs.terminal.play import DUNGEON_MASTER
from questbook.graphs.terminal.screen import Screen
from questbook.graphs.terminal.slash_commands import Terminal, run_command
from questbook.graphs.turn.player_view import PlayerView, is_secret, noted_on, shown_fields, shown_memories
from questbook.graphs.turn.state import TurnInput

SECRET = "the innkeeper murdered the old king"
PAGE = {"scene": "An inn at dusk.", "location": "The Bent Nail", "secrets": {"The innkeeper": SECRET}}
MEMORIES = [
    {"kind": "secret", "turn": 1, "text": "The old king was a wolf."},
    {"kind": "event", "turn": 2, "text": "The lamp went out.", "noted": {"patch": {"secrets": {"x": SECRET}}}},
]


def test_a_view_holds_no_secret_of_page_or_memories():
    view = PlayerView.of({"quest": PAGE, "recalled": MEMORIES, "summary": "They met.", "secrets": SECRET})
    assert "old king" not in view.model_dump_json()
    assert view.quest["scene"] == "An inn at dusk."
    assert [memory["text"] for memory in view.recalled] == ["The lamp went out."]
    assert PlayerView.of(view.model_dump()) == view


def test_there_is_nothing_to_see_before_anything_is_played():
    assert PlayerView.of({}).quest == StateNotebook().player_view()
    assert shown_memories(None) == []


def test_a_page_that_is_none_is_an_error_that_says_so():
    with pytest.raises(NotebookError, match="gold"):
        PlayerView.of({"quest": {"gold": "much"}})


def test_names_of_secrets_are_secret():
    paths = ["people.Oda.role", "secrets.Oda", "secrets.the crown", "gold"]
    assert shown_fields(paths) == ["people.Oda.role", "secrets", "gold"]
    assert is_secret("Secrets.Oda")
    assert is_secret(" secrets .Oda")
    assert not is_secret("people.Oda")


def test_a_memory_comes_without_what_was_noted_with_it_and_who_else_knows():
    memory = {"kind": "event", "turn": 2, "text": "The lamp went out.", "claimed_by": "Oda"}
    internal = {"noted": {}, "sheet": {"name": "Mira"}, "taught": "x", "known_by": ["Oda"], "rolls": [{"total": 3}]}
    assert shown_memories([memory | internal]) == [memory]


@pytest.mark.parametrize(("page", "told"), [
    ({}, " nothing yet: the story is about to begin."),
    ({"clock": {"day": 3}}, " nothing yet: the story is about to begin."),
    ({"scene": "An inn at dusk.", "location": "The Bent Nail", "clock": {"day": 3, "time": "Dusk"}},
     "\n\nNow: An inn at dusk.\n\nYou are at The Bent Nail (day 3)."),  # what the scene says is not said twice
    ({"scene": "Rain in the bent nail on day 3.", "location": "The Bent Nail", "clock": {"day": 3, "time": "dusk"}},
     "\n\nNow: Rain in the bent nail on day 3.\n\nIt is dusk."),
    ({"scene": "Rain.", "clock": {"day": 3, "time": "dusk"}}, "\n\nNow: Rain.\n\nIt is day 3, dusk."),
    ({"location": "the mill", "clock": {"day": 3}}, "\n\nYou are at the mill (day 3)."),
    ({"quests": {"Find Lia": {"notes": "at the mill"}, "Pay Bo": {}, "Old": {"status": "done", "notes": "over"}}},
     "\n\nOpen: Find Lia: at the mill; Pay Bo"),
])  # fmt: skip
def test_a_recap_tells_the_open_quests_and_the_scene_and_where_and_when_it_is_once(page, told):
    quest = StateNotebook().apply(page).page
    assert PlayerView.of({"quest": quest}).recap() == f"**Previously on…**{told}"
    summary = PlayerView.of({"quest": quest, "summary": "They met."}).recap()
    assert summary == f"**Previously on…**\n\nThey met.{told if told.startswith(chr(10)) else ''}"


@pytest.mark.parametrize(("patch", "told"), [
    ({"scene": "A.", "location": "the mill.", "gold": 3}, "Noted: location the mill.; gold 3; scene A."),
    ({"gold": {"$add": 5}, "objective": None}, "Noted: gold +5; no objective any more."),
    ({"Secrets": {"x": "y"}, " secrets ": 1, "gold": 3}, "Noted: gold 3."),
    ({"objective": f"to {'x' * 67}"}, f"Noted: objective to {'x' * 67}."),  # 80 characters
    ({"objective": f"to {'x' * 68}"}, "Noted: objective to…"),
])  # fmt: skip
def test_what_was_noted_is_told_in_a_line_without_secrets(patch, told):
    assert noted_on("update_state", {"quest": patch}) == {"page": "quest", "text": told}
    assert noted_on("remember", {"quest": patch}) == {}


async def test_a_node_that_renders_for_the_player_cannot_read_a_secret():
    """By its input schema: the channel itself is out of reach."""
    read: dict[str, Any] = {}

    async def render(state: PlayerView) -> dict[str, Any]:
        read.update(state.model_dump(mode="json"))
        return {"summary": "rendered"}

    async def play(state: DungeonState) -> dict[str, Any]:
        assert state.quest.secrets
        return {"recalled": MEMORIES}

    builder = StateGraph(DungeonState, input_schema=DungeonState)
    builder.add_node("play", play)
    builder.add_node("render", render)
    builder.add_edge(START, "play")
    builder.add_edge("play", "render")
    builder.add_edge("render", END)
    given = {"quest": PAGE, "character": MIRA, "notices": [], "messages": []}
    after = await builder.compile().ainvoke(given)
    assert after["quest"]["secrets"] == PAGE["secrets"], "what is left out of the view stands in the state"
    assert read["quest"]["location"] == "The Bent Nail"
    assert [memory["text"] for memory in read["recalled"]] == ["The lamp went out."]
    assert "old king" not in json.dumps(read)
    assert set(TurnInput.model_fields) == {"messages"}, "nor can a caller put one in"


@pytest.mark.slow
async def test_no_command_of_the_terminal_but_the_one_that_says_so_shows_a_secret(model, capsys, monkeypatch):
    async def recalled(*_):
        return [{"key": "x", "turn": 1, "age": "just now", "score": 0.5, **memory} for memory in MEMORIES]

    monkeypatch.setattr("questbook.graphs.turn.recall.recall_for_turn", recalled)
    model.queue("interview", say("", call("CharacterNotebook", **MIRA)))
    facts = [{"kind": "secret", "text": SECRET.capitalize() + ".", "importance": 9}]
    model.queue("update", say("", call("StateNotebook", **PAGE, gold=3), call("Facts", facts=facts)))
    async with open_game(Context(model="scripted", seed=7), find_home()) as game:
        terminal = Terminal(game, Screen(live=False), DUNGEON_MASTER)
        for words in ("I'm Mira.", "I sit down.", "I wait."):
            async for event in game.send(words):
                terminal.keep(event)
        stored = await (await game.load()).store.asearch(("adventurer", "default", "facts"), limit=9)
        assert [item.value["kind"] for item in stored] == ["secret"], "else this test shows nothing"
        lines = ["/sheet", "/quest", "/memories", "/recap", "/diff 2 3", "/diff 1", "/branches", "/campaigns", "/help"]
        asked = ("secrets", "secrets.The innkeeper", "gold", "lamp", SECRET, "innkeeper")
        lines += [*(f"/why {what}" for what in asked), "/forget murdered", "/retract 1", "/undo", "/go 1"]
        assert {line.split()[0] for line in lines} | {"/quit", "/prompt", "/edit", "/retry", "/branch"} >= set(
            DUNGEON_MASTER.commands
        )
        for line in lines:
            await run_command(terminal, line)
            shown = "".join(capsys.readouterr()).replace(line.partition(" ")[2] or line, "")
            assert not {"king", "wolf", "murdered", "innkeeper"} & set(re.findall(r"\w+", shown)), line
