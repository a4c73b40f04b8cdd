"""Two threads of one campaign in RAM, and threads that are played as a client of LangGraph's server plays them."""

from __future__ import annotations

from typing import Any

from conftest import Game
from langchain_core.messages import HumanMessage
from page_play import turn

from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.dungeon_master.graph import build_graph
from questbook.graphs.history.history import History
from questbook.graphs.local.homes import find_home

MIRA = "I'm Mira, a halfling rogue who grew up on the docks and wants her sister back"


def history(game: Game) -> History:
    return History(game.app, game.config, Context.of(game.settings))


def told(game: Game) -> list[str]:
    return [message.text for message in game.values["messages"] if isinstance(message, HumanMessage)]


def checkpoints(game: Game) -> list[str]:
    return [state.config["configurable"]["checkpoint_id"] for state in game.app.get_state_history(game.config)]


def beside(game: Game) -> Game:
    """Another thread of the same campaign; nothing is played on it yet."""
    other = Game(game.model)
    other.saver = game.saver
    other.keep_in(game.store)
    return other


async def two_threads(game: Game) -> tuple[Game, Game]:
    """A thread that played turns 1 to 3, and one that went on from there to turn 5."""
    await game.begin()
    for number in (2, 3):
        await turn(game, f"Deed {number}", gold=number)
    other = beside(game)
    for number in (4, 5):
        await turn(other, f"Deed {number}", gold=number)
    return game, other


async def run(game: Game, given: Any, config: Any, context: Any = None) -> None:
    await game.app.ainvoke(given, config, context=context or game.settings, durability="sync")


async def play_in_studio(words: list[str], thread: str, campaign: str = "isle") -> dict[str, Any]:
    """Play on a thread of one's own, on the terminal's data."""
    config: Any = {"configurable": {"thread_id": thread}}
    context: Any = {"model": "offline", "campaign": campaign, "seed": 1}
    async with find_home().open_checkpointer() as saver, find_home().open_store() as store:
        graph: Any = build_graph().compile(checkpointer=saver, store=store)
        for said in words:
            given = {"messages": [{"role": "user", "content": said}]}
            await graph.ainvoke(given, config, context=context, durability="sync")
        values: dict[str, Any] = (await graph.aget_state(config)).values
        return values
