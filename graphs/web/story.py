"""The story as the page shows it: turn by turn, the last ones from the checkpoint, older ones from memory."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Self

from questbook.graphs.errors import HistoryError
from questbook.graphs.history.tree import PlayedTurn
from questbook.graphs.local.game import Game
from questbook.graphs.local.saved_game import SavedGame
from questbook.memory.timeline.timeline import branch_of, list_visible, read_timeline, record_key
from questbook.types import JSON

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig

    from questbook.graphs.history.history import History

SHOWN_AT_FIRST = 30
"""Turns that a page begins with; those before them come when the reader scrolls up."""
_MOST_TAKES = 200
PARAGRAPHS = re.compile(r"\n\s*\n")


class StoryTurn(NamedTuple):
    """A turn as the page shows it; `rolls` are as `Roll.as_dict` makes them."""

    turn: int
    player: str
    paragraphs: list[str]
    rolls: list[JSON]

    @classmethod
    def make(cls, turn: int, player: str, reply: str, rolls: list[JSON]) -> Self:
        """Make a turn of a reply with its blank lines."""
        return cls(turn, player, [part for part in PARAGRAPHS.split(reply.strip()) if part], rolls)

    @classmethod
    def of(cls, record: JSON) -> Self:
        """Make a turn of its record in the store; records of older versions have no dice."""
        player, reply = str(record.get("player", "")), str(record.get("reply", ""))
        return cls.make(int(record["turn"]), player, reply, record.get("rolls") or [])


def latest_turns(saved: SavedGame, most: int = SHOWN_AT_FIRST) -> list[StoryTurn]:
    """Return the last turns that the checkpoint holds word for word, the earliest first."""
    from questbook.memory.buffer.policies import split_turns, turn_text

    rolls: Sequence[JSON] = saved.values.get("rolls") or []
    turns = split_turns(saved.values.get("messages") or [], saved.turn)[-most:]
    return [
        StoryTurn.make(turn, *turn_text(messages), [roll for roll in rolls if roll.get("turn") == turn])
        for turn, messages in turns
    ]


async def turns_before(game: Game, turn: int) -> list[StoryTurn]:
    """Return some turns before a turn, on the way to where the campaign is, from memory; the earliest first."""
    saved, store = await game.saved_game(), (await game.load()).store
    if saved is None or store is None:
        return []
    timeline, turn = read_timeline(saved.values), min(turn, saved.turn + 1)
    space = game.context.campaign_namespace("exchanges")
    keys = [record_key(branch_of(timeline, n), n, "exchange") for n in range(max(1, turn - SHOWN_AT_FIRST), turn)]
    records = [await store.aget(space, key, refresh_ttl=False) for key in keys]
    return [StoryTurn.of(record.value) for record in records if record is not None]


async def records_of(game: Game) -> list[JSON]:
    """Return the records of all turns on the way to where the campaign is, the earliest first."""
    saved, store = await game.saved_game(), (await game.load()).store
    if saved is None or store is None:
        return []
    space = game.context.campaign_namespace("exchanges")
    return [item.value for item in await list_visible(store, space, read_timeline(saved.values))]


class Undo(NamedTuple):
    """A turn that was taken back; `History.go` finds it on `branch`."""

    turn: int
    player: str
    branch: str


def undo_of(saved: SavedGame) -> Undo | None:
    """Return the last turn of a checkpoint, which is taken back; None if it was not remembered: nothing leads to it."""
    timeline = read_timeline(saved.values)
    last = latest_turns(saved, 1)
    if not last or not timeline or saved.values.get("remembered_through") != saved.turn:
        return None
    return Undo(saved.turn, last[0].player, branch_of(timeline, saved.turn))


class Take(NamedTuple):
    """One of the ways in which the last turn was played: where `History.go` finds it, and whether it counts now."""

    branch: str
    is_here: bool


async def takes_of(game: Game) -> list[Take]:
    """Return all ways in which the last turn was played after the turn before it, in the order of playing."""
    saved = await game.saved_game()
    if saved is None or not game.is_loaded or saved.values.get("remembered_through") != saved.turn:
        return []
    store = (await game.load()).store
    timeline = read_timeline(saved.values)
    space = game.context.campaign_namespace("exchanges")
    items = await store.asearch(space, filter={"turn": saved.turn}, limit=_MOST_TAKES) if store is not None else []
    turns = [PlayedTurn.of(item.value) for item in items]
    here = (branch_of(timeline, saved.turn), saved.turn)
    last = next((turn for turn in turns if turn.key == here), None)
    others = [turn for turn in turns if last is not None and turn.after == last.after]
    return [Take(turn.branch, turn.key == here) for turn in sorted(others, key=lambda turn: turn.age)]


async def rewrite_reply(history: History, text: str) -> RunnableConfig | None:
    """Put a person's words in the place of the last reply; return where to run on, so that the notes are taken again.

    None: nothing has to run, since the turn belongs to the interview.

    Raises:
        HistoryError: There is no reply.
    """
    from langchain_core.messages import AIMessage

    state = await history.current_state()
    reply = next((m for m in reversed(state.values["messages"]) if isinstance(m, AIMessage) and m.text.strip()), None)
    if reply is None:
        raise HistoryError("There is no reply to rewrite.")
    new = reply.model_copy(update={"content": text})
    before, question = await history.before_upkeep(), await history.last_question()
    if before is None or question is None:
        await history.write({"messages": [new]})
        return None
    config = await history.graph.aupdate_state(before.config, {"messages": [new]}, as_node=question.node)
    return {**history.config, "configurable": config["configurable"]}
