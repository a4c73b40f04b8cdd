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
from questbook.graphs.local.home import Home
from questbook.graphs.terminal.play import DUNGEON_MASTER
from questbook.graphs.terminal.screen import Screen
from questbook.graphs.terminal.slash_commands import Terminal, run_command
from questbook.graphs.turn.player_view import PlayerView, is_secret, shown_fields, shown_memories
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
    assert not is_secret("people.Oda")


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


async def test_no_command_of_the_terminal_but_the_one_that_says_so_shows_a_secret(model, capsys, monkeypatch):
    async def recalled(*_):
        return [{"key": "x", "turn": 1, "age": "just now", "score": 0.5, **memory} for memory in MEMORIES]

    monkeypatch.setattr("questbook.graphs.turn.recall.recall_for_turn", recalled)
    model.queue("interview", say("", call("CharacterNotebook", **MIRA)))
    facts = [{"kind": "secret", "text": SECRET.capitalize() + ".", "importance": 9}]
    model.queue("update", say("", call("StateNotebook", **PAGE, gold=3), call("Facts", facts=facts)))
    async with open_game(Context(model="scripted", seed=7), Home.find()) as game:
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
