"""The story as the page shows it: its turns, the last ones from the checkpoint, older ones from memory; its tree."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import count
from typing import TYPE_CHECKING, NamedTuple, Self

from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig

from questbook.graphs.errors import HistoryError
from questbook.graphs.history.tree import PlayedTurn, stretches
from questbook.graphs.interface.text import plain
from questbook.graphs.local.game import Game
from questbook.graphs.local.saved_game import SavedGame
from questbook.memory.buffer.policies import split_turns, turn_text
from questbook.memory.timeline.timeline import branch_of, list_visible, read_timeline, record_key, remembered_timeline
from questbook.types import JSON

if TYPE_CHECKING:
    from questbook.graphs.history.history import History

SHOWN_AT_FIRST = 30  # turns that a page begins with; those before them come when the reader scrolls up
_MOST_TAKES = 200
_TITLE = 48  # characters of a row's words in its title


class StoryTurn(NamedTuple):
    """A turn as the page shows it; `rolls` are as `Roll.as_dict` makes them."""

    turn: int
    player: str
    reply: str  # Markdown
    rolls: list[JSON]

    @classmethod
    def of(cls, record: JSON) -> Self:
        """Make a turn of its record in the store; records of older versions have no dice."""
        player, reply = str(record.get("player", "")), str(record.get("reply", ""))
        return cls(int(record["turn"]), player, reply, record.get("rolls") or [])


def latest_turns(saved: SavedGame, most: int = SHOWN_AT_FIRST) -> list[StoryTurn]:
    """Return the last turns that the checkpoint holds word for word, the earliest first."""
    rolls: Sequence[JSON] = saved.values.get("rolls") or []
    turns = split_turns(saved.values.get("messages") or [], saved.turn)[-most:]
    dice = {turn: [roll for roll in rolls if roll.get("turn") == turn] for turn, _ in turns}
    return [StoryTurn(turn, *turn_text(messages), dice[turn]) for turn, messages in turns]


async def turns_before(game: Game, turn: int) -> list[StoryTurn]:
    """Return some turns before a turn, on the way to where the campaign is, from memory; the earliest first."""
    if (saved := await game.saved_game()) is None:
        return []
    store, timeline = await game.store(), remembered_timeline(saved.values)
    # A turn without a place has the number of one that was given up.
    turn = min(turn, max((through for _, through in timeline), default=0) + 1)
    space = game.context.campaign_namespace("exchanges")
    keys = [record_key(branch_of(timeline, n), n, "exchange") for n in range(max(1, turn - SHOWN_AT_FIRST), turn)]
    records = [await store.aget(space, key, refresh_ttl=False) for key in keys]
    return [StoryTurn.of(record.value) for record in records if record is not None]


async def records_of(game: Game) -> list[JSON]:
    """Return the records of all turns on the way to where the campaign is, the earliest first."""
    if (saved := await game.saved_game()) is None:
        return []
    space = game.context.campaign_namespace("exchanges")
    return [item.value for item in await list_visible(await game.store(), space, remembered_timeline(saved.values))]


class Undo(NamedTuple):
    """A turn that was taken back; `History.go` finds it on `branch`."""

    turn: int
    player: str
    branch: str


def undo_of(saved: SavedGame) -> Undo | None:
    """Return the last turn of a checkpoint, which is taken back; None if it was not remembered: nothing leads to it."""
    timeline, last = read_timeline(saved.values), latest_turns(saved, 1)
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
    store, timeline = await game.store(), read_timeline(saved.values)
    space = game.context.campaign_namespace("exchanges")
    items = await store.asearch(space, filter={"turn": saved.turn}, limit=_MOST_TAKES)
    turns = [PlayedTurn.of(item.value) for item in items]
    here = (branch_of(timeline, saved.turn), saved.turn)
    last = next((turn for turn in turns if turn.key == here), None)
    others = [turn for turn in turns if last is not None and turn.after == last.after]
    return [Take(turn.branch, turn.key == here) for turn in sorted(others, key=lambda turn: turn.age)]


async def rewrite_reply(history: "History", text: str) -> RunnableConfig | None:
    """Put a person's words in the place of the last reply; return where to run on, so that the notes are taken again.

    None: nothing has to run, since nothing came after the reply: so ended turns of an interview in version 0.2.
    """
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


class Row(NamedTuple):
    """A stretch of turns."""

    id: str  # what no other row has, however the tree grows: branch and number of its first turn
    handle: str  # what `History.go` takes
    name: str  # the lines that it was played on, such as "main → the cave"
    is_named: bool  # whether a reader needs the name: it begins the tree, or forks off from another line
    depth: int  # in the tree, from 0
    first: int  # its first turn
    last: int
    says: str  # the player's first words on it; how they were answered, if they were also played another way
    way: int  # of all turns with the number of its last one, which it was in the order of playing, from 1
    here: int  # the turn on it where the campaign is; 0: elsewhere
    on_the_way: bool  # whether it leads to where the campaign is
    dead: bool  # whether the character's hit points were 0 at its end
    parent: int  # number of the row that it forks off from; -1: none

    @property
    def title(self) -> str:
        """What tells it apart in a list of places: its last turn, its lines, and its words."""
        words = self.says if len(self.says) <= _TITLE else f"{self.says[:_TITLE].rsplit(' ', 1)[0]}…"
        return f"turn {self.last}{f' of {self.name}' if self.is_named else ''}: {words}"


async def rows_of(game: Game) -> list[Row]:
    """Return the tree row by row; empty before the first turn is remembered."""
    if (saved := await game.saved_game()) is None:
        return []
    history = await game.history(only_looks=True)
    current, turns = await history.current_turn(), await history.turns()
    if (told := _told(saved)) and told.key not in {turn.key for turn in turns}:
        current, turns = told.key, [*turns, told]
    rows, numbers = list[Row](), defaultdict[int, Iterator[int]](lambda: count(1))
    ways = {turn.key: next(numbers[turn.turn]) for turn in sorted(turns, key=lambda turn: turn.age)}
    played = Counter(_choice(turn) for turn in turns)
    waiting = [(root, 0, -1, "") for root in reversed(stretches(turns, current))]
    while waiting:
        stretch, depth, parent, line = waiting.pop()
        first, last = stretch.turns[0], stretch.turns[-1]
        is_retold = parent >= 0 and played[_choice(first)] > 1
        points = [turn.hp for turn in stretch.turns if turn.hp is not None]
        rows.append(Row(
            f"{first.branch}-{first.turn}", stretch.handle, " → ".join(stretch.lines), list(stretch.lines) != [line],
            depth, first.turn, last.turn, plain(first.reply) if is_retold else first.player, ways[last.key],
            next((turn.turn for turn in stretch.turns if turn.key == current), 0), not rows, points[-1:] == [0], parent,
        ))  # fmt: skip
        for fork in reversed(stretch.forks):
            after = [line for line, begun in stretch.lines.items() if begun < fork.turns[0].turn]
            waiting.append((fork, depth + 1, len(rows) - 1, after[-1]))  # the line of the turn that it comes after
    titles = Counter(row.title for row in rows)
    return [row if titles[row.title] == 1 else row._replace(says=f"way {row.way}: {row.says}") for row in rows]


def _told(saved: SavedGame) -> PlayedTurn | None:
    """Return the last turn if its reply is there and the notes on it are being made, so that no memory has it yet."""
    turn, timeline, last = saved.turn, read_timeline(saved.values), latest_turns(saved, 1)
    if saved.unanswered is not None or not timeline or not last or saved.values.get("remembered_through") == turn:
        return None
    branch, after = branch_of(timeline, turn), branch_of(timeline, turn - 1) if turn > 1 else None
    line = str(saved.values.get("line") or "main")
    return PlayedTurn(branch, turn, after, line, last[0].player, last[0].reply, "", saved.thread_id, "~", "")


def _choice(turn: PlayedTurn) -> tuple[str | None, int, str]:
    """What two turns share that are two ways of playing the same words."""
    return turn.after, turn.turn, turn.player
