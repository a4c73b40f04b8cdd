"""How a thread begins: for the first time, again with an id that was used before, or gone back to its beginning.

The state is empty in all three. Only the checkpointer tells them apart. A thread that has gone back has earlier
checkpoints, and what it took back is seen by nobody. A thread whose checkpoints are gone (deleted, or kept in RAM
by a program that has ended) begins again: what the store knows of it stays visible, as if another thread had said it,
and the new one gets branches with a mark of their own (`questbook.memory.timeline.timeline.UserTimeline`).
"""

from __future__ import annotations

import asyncio
import uuid
from typing import Any, NamedTuple

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.config import get_config
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore, GetOp, Item

from questbook.graphs.settings import Settings
from questbook.graphs.turn.scope import run_thread, user_timeline
from questbook.graphs.turn.state import TurnState
from questbook.graphs.turn.turn import failure_notice, notice
from questbook.memory.store.any_store import get_all
from questbook.memory.timeline.records import Stamp
from questbook.memory.timeline.timeline import UserTimeline, branch_name, life_of, read_timeline, record_key
from questbook.types import JSON

BEGUN_AGAIN = (
    "A thread with the id {thread!r} was here before, and its checkpoints are gone. What was remembered of it is still "
    "known to the threads of {user!r}, this one too. docs/forgetting.md says how to remove it."
)
_UNKNOWN = (
    "Whether a thread with the id {thread!r} was here before could not be read. If one was and its checkpoints are "
    "gone, its memories may be hidden from now on."
)
_CHECKPOINTER = "__pregel_checkpointer"  # where LangGraph hands the run's checkpointer on to subgraphs
_MOST = 100  # lives of a thread


class Beginning(NamedTuple):
    """How a thread begins: the name of its first branch, and what a person should know of it."""

    branch: str
    notices: list[JSON]


async def beginning_of(state: TurnState, runtime: Runtime[Any]) -> Beginning:
    """Return how a thread begins whose state is empty."""
    thread, user = run_thread(runtime), runtime.context.user
    branch = branch_name(thread or uuid.uuid4().hex)
    if not thread or runtime.store is None or not (state.SCOPE == "user" or state.pages_of("user")):
        return Beginning(branch, [])
    view = user_timeline((), runtime.context, thread)
    try:
        lives = await _lives_of(runtime.store, view)
        life = await _life_gone_back(runtime.store, runtime.context, thread, lives)
    except Exception as error:  # noqa: BLE001 (any store or checkpointer may be behind this; a reply must not fail)
        return Beginning(branch, [failure_notice(1, "memory", _UNKNOWN.format(thread=thread), error)])
    if life is None and lives:
        info = runtime.execution_info
        mark = branch_name(f"{thread}/{info.checkpoint_id if info else uuid.uuid4().hex}")
        notices = [notice(1, "memory", BEGUN_AGAIN.format(thread=thread, user=user))]
        return Beginning(view.of_life(mark).first_branch, notices)
    return Beginning(view.of_life(life or "").first_branch, [])


async def has_gone_back(thread: str, checkpoint: str) -> bool:
    """Whether a thread whose state is empty had run as far as a checkpoint, and has gone back to before it."""
    return await _is_saved(thread, checkpoint) or await _has_earlier(thread, checkpoint)


async def _lives_of(store: BaseStore, view: UserTimeline) -> list[Item]:
    """Return the heads of all that has begun with a thread's id and has a past, the one that wrote last first."""
    place, key = view.head_place
    heads = [await store.aget(place, key), *await store.asearch(view.of_life("any").head_place[0], limit=_MOST)]
    past = [head for head in heads if head is not None and read_timeline(head.value)]
    return sorted(past, key=lambda head: head.updated_at, reverse=True)


async def _life_gone_back(store: BaseStore, settings: Settings, thread: str, lives: list[Item]) -> str | None:
    """Return the mark of the life whose checkpoints are still there; None if there is none."""
    exchanges = settings.campaign_namespace("exchanges")
    checkpoints: dict[str, str] = {}
    for head in lives:
        timeline = read_timeline(head.value)
        branch, (newest, turn) = timeline[0][0], timeline[-1]
        keys = [record_key(branch, 1, "exchange"), record_key(newest, turn, "exchange")]
        ends = await get_all(store, [GetOp(exchanges, key) for key in keys])
        checkpoints[life_of(branch)] = next((Stamp.from_json(end.value).checkpoint for end in ends if end), "")
    for is_there in (_is_saved, _has_earlier):  # two agents with checkpointers of their own may share the thread's id
        for life, checkpoint in checkpoints.items():
            if await is_there(thread, checkpoint):
                return life
    return None


async def _is_saved(thread: str, checkpoint: str) -> bool:
    """Whether the run's checkpointer has a checkpoint."""
    saver = _saver()
    if saver is None or not checkpoint:
        return False
    config = _config(thread, checkpoint)
    read = asyncio.to_thread(saver.get_tuple, config) if _is_elsewhere(saver) else saver.aget_tuple(config)
    return await read is not None


async def _has_earlier(thread: str, checkpoint: str) -> bool:
    """Whether the run's checkpointer has a checkpoint of the thread from before another one; ids begin with the time.

    If it is not known which, there is one: what was taken back must not be seen.
    """
    saver = _saver()
    if saver is None or not checkpoint:
        return saver is not None
    config, before = _config(thread), _config(thread, checkpoint)
    if _is_elsewhere(saver):
        return bool(await asyncio.to_thread(lambda: list(saver.list(config, before=before, limit=1))))
    return bool([saved async for saved in saver.alist(config, before=before, limit=1)])


def _saver() -> BaseCheckpointSaver[Any] | None:
    saver = get_config().get("configurable", {}).get(_CHECKPOINTER)
    return saver if isinstance(saver, BaseCheckpointSaver) else None


def _is_elsewhere(saver: BaseCheckpointSaver[Any]) -> bool:
    """Whether only a checkpointer's sync methods can be used here: it has no others, or another event loop's."""
    code = getattr(type(saver).aget_tuple, "__code__", None)
    return getattr(saver, "loop", None) not in (None, asyncio.get_running_loop()) or bool(
        code and "NotImplementedError" in code.co_names
    )


def _config(thread: str, checkpoint: str = "") -> RunnableConfig:
    place = {"thread_id": thread, "checkpoint_ns": ""}
    return {"configurable": place | ({"checkpoint_id": checkpoint} if checkpoint else {})}
