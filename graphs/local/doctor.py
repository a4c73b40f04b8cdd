"""Checkpoints and memories compared: either may be missing, or be of another day than the other.

`problem_of` compares one campaign quickly, at its start; `mend` does what can be done. `unreachable_turns` also looks
at the lines that were undone.
"""

from collections.abc import Sequence
from typing import Any

from questbook.graphs.local.game import Game
from questbook.memory.store.any_store import items_under
from questbook.memory.timeline.timeline import branch_of, read_timeline, record_key
from questbook.types import JSON

_LOST = (
    "Not in checkpoints, so not rebuilt: files of lore (add them again), insights (the next reflection draws new "
    "ones), and memories that were added or imported by hand. What was deleted by hand may be there again."
)


async def problem_of(game: Game) -> str:
    """Compare a campaign's last checkpoint with its memories; return what is wrong and what can be done, or ""."""
    saved, head = await game.saved_game(), await _head_of(game)
    if saved is None:
        # Without a note of how this thread began, it begins with the head, as every new thread does.
        if head is None or await game.home.read_item(_pasts(game), game.thread_id) is None:
            return ""
        problem = f"The checkpoints of this campaign are missing; memory knows it to turn {head['turn']}."
        done = "lets it go on from there, with pages and memories, but nobody can go back before that"
        hint = "Put back a copy of them if you have one."
        return f"{problem} `questbook doctor --mend` {done}. {hint}"
    if missing := _missing_turns(await _known_turns(game), saved.values):
        turns = _last_remembered(saved.values)
        known = "knows no turn" if len(missing) == turns else f"does not know turns {_ranges(missing)}"
        hint = "`questbook doctor --mend` rebuilds what the checkpoints know; or put back a copy of that day."
        return f"Memory is missing or from another day: it {known} of the {turns} of this campaign. {hint}"
    if head is not None and head.get("thread") == game.thread_id and head["turn"] > saved.turn:
        ends = f"they end with turn {saved.turn}, and memory knows turns to {head['turn']}"
        aside = f"The campaign goes on from turn {saved.turn}; the later turns stay aside."
        return f"The checkpoints are from another day: {ends}. {aside} If you have a copy of that day, put it back."
    return ""


async def unreachable_turns(game: Game) -> str:
    """Say which turns memory knows that no checkpoint of the campaign has; "" if there are none."""
    if (saved := await game.saved_game()) is None:
        return ""
    exchanges = items_under(await game.store(), game.context.campaign_namespace("exchanges"), refresh_ttl=False)
    current = set(_keys(saved.values, 0).values())
    turns = {item.key: int(item.value["turn"]) async for item in exchanges if item.key not in current}
    for state in await _states(game) if turns else ():  # mostly they were undone
        for key in _keys(state.values, 0).values():
            turns.pop(key, None)
    if not turns:
        return ""
    return (
        f"Memory also knows turns that no checkpoint has ({_ranges(sorted(set(turns.values())))}): the checkpoints "
        "were lost, or their thread was deleted. They cannot be mended: nobody can go back to them, and no reply "
        "recalls them. What was said then is in records.jsonl of `questbook export FILE.zip`."
    )


async def mend(game: Game) -> str:
    """Do what can be done about the problem of a campaign that nobody plays; return what was done and what is lost."""
    if await game.saved_game() is None:
        await (await game.store()).adelete(_pasts(game), game.thread_id)
        lost = "What was said is lost but for its memories, and so are earlier states."
        return f"It goes on from what memory knows. {lost}"
    turns, missing = await _rebuild(game)
    text = f"Turns written to memory again: {turns}. {_LOST}"
    if missing:
        text += f" Lost are turns {_ranges(missing)}: no checkpoint has them as they were before they were remembered."
    return text


async def _rebuild(game: Game) -> tuple[int, list[int]]:
    """Write to memory again what it lacks of the turns that a campaign's checkpoints know.

    The node `remember` runs again for each of them, with the state that it had: exchanges, facts, archived entries and
    the campaign's head come back under the same keys. What is there stays as it is. Returned are how many turns were
    written, and those of the current timeline that memory still does not know.
    """
    from langgraph.runtime import ExecutionInfo, Runtime

    from questbook.graphs.turn.turn import move_head

    graph = await game.load()
    schema: Any = graph.builder.state_schema
    node: Any = graph.builder.nodes["remember"].runnable
    store: Any = graph.store
    count, known = 0, await _known_turns(game)
    states = sorted(await _states(game), key=lambda state: _id(state.config), reverse=True)
    after = {_id(state.parent_config): state for state in states if state.parent_config}
    for state in reversed(states):
        done = after.get(_id(state.config))
        if done is None or not any(task.name == "remember" for task in state.tasks):
            continue
        if not _missing_turns(known, done.values, _last_remembered(state.values)):
            continue
        values = {**state.values, "timeline": done.values.get("timeline", [])}  # with the places that the turns claimed
        info = ExecutionInfo(_id(state.config), "", "", str(state.config["configurable"]["thread_id"]))
        runtime: Any = Runtime(context=game.context, store=store, execution_info=info)
        update = await node.function(schema(**values), runtime)
        known.update(_keys(values | update, _last_remembered(state.values)).values())
        count += update.get("remembered_through", 0) - _last_remembered(state.values)
    current = await (await game.history()).finished_state()
    if count or await _head_of(game) is None:
        await move_head(schema(**current.values), store, game.context, game.thread_id)
    return count, _missing_turns(await _known_turns(game), current.values)


async def _states(game: Game) -> list[Any]:
    graph = await game.load()
    configs: list[Any] = [{"configurable": {"thread_id": thread}} for thread in await game.threads()]
    return [state for config in configs async for state in graph.aget_state_history(config)]


# The labels are those of `questbook.graphs.turn.sessions`, which would load LangChain before the first prompt.
def _pasts(game: Game) -> tuple[str, ...]:
    return game.context.campaign_namespace("pasts")


async def _head_of(game: Game) -> JSON | None:
    return await game.home.read_item(game.context.campaign_namespace("head"), "head")


async def _known_turns(game: Game) -> set[str]:
    """Return the keys of the exchanges of the turns that memory knows or once knew: those forgotten or retracted, too.

    Of a turn whose exchange was deleted, its claim is left.
    """
    known = set[str]()
    for kind in ("exchanges", "gaps", "retracted", "claims"):
        for space, key in await game.home.list_keys(game.context.campaign_namespace(kind)):
            branch, turn = space[-1].rpartition("-")[0], key.partition("-")[0]
            known.add(record_key(branch, int(turn), "exchange") if kind == "claims" else key)
    return known


def _missing_turns(known: set[str], values: JSON, after: int = 0) -> list[int]:
    """Return the remembered turns of a state after turn `after` whose keys are not known."""
    return [turn for turn, key in _keys(values, after).items() if key not in known]


def _keys(values: JSON, after: int) -> dict[int, str]:
    """Return the keys of the exchanges of a state's remembered turns after turn `after`."""
    timeline, turns = read_timeline(values), range(after + 1, _last_remembered(values) + 1)
    return {turn: record_key(branch_of(timeline, turn), turn, "exchange") for turn in turns}


def _ranges(turns: Sequence[int]) -> str:
    """Write turns as people do: "1 to 4, 7"."""
    known = set(turns)
    starts = (turn for turn in turns if turn - 1 not in known)
    runs = zip(starts, (turn for turn in turns if turn + 1 not in known), strict=True)
    return ", ".join(str(first) if first == last else f"{first} to {last}" for first, last in runs)


def _last_remembered(values: JSON) -> int:
    return int(values.get("remembered_through", 0))


def _id(config: Any) -> str:
    return str(config["configurable"]["checkpoint_id"])
