"""How a thread begins: a new one goes on from the campaign's head; one whose id was used before begins again.

The head is what the last finished turn left: pages, summary, timeline. The state is also empty where a thread has gone
back to its beginning, and where its checkpoints are gone; only the checkpointer tells these apart. What the first took
back is seen by nobody; what the store knows of the second stays visible, as if another thread had said it.
"""

import asyncio
import uuid
from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, TypeVar

from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import var_child_runnable_config
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.config import get_config
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore, GetOp, Item, PutOp

from questbook.graphs.errors import PastUnknownError, SettingsError
from questbook.graphs.settings import Settings
from questbook.graphs.turn.api_server import CHECKPOINTER
from questbook.graphs.turn.scope import SettingsT, check_owner, run_thread, user_timeline
from questbook.graphs.turn.shared_pages import read_pages
from questbook.graphs.turn.state import Notice, StateT, TurnState, failure_notice, notice
from questbook.graphs.turn.turn import head_key, head_of, open_turn
from questbook.memory.buffer.policies import ASIDE
from questbook.memory.store.any_store import get_all, put_all
from questbook.memory.timeline.records import Stamp
from questbook.memory.timeline.timeline import UserTimeline, branch_name, life_of, read_timeline, record_key
from questbook.types import JSON

AnswerT = TypeVar("AnswerT")

PASTS = "pasts"  # last label of the namespace that keeps what each thread took over when it began, by the thread's id


async def past_of(store: BaseStore, settings: Settings, thread: str) -> JSON | None:
    """Return the head that a thread took over when it began; None if it took over none."""
    past = await store.aget(settings.campaign_namespace(PASTS), thread)
    head: JSON | None = past.value["head"] if past else None
    return head


class Begun(NamedTuple, Generic[StateT]):
    """How a turn begins."""

    state: StateT  # the state from which it goes on, without messages that open the thread
    update: JSON  # the channels to write
    past: JSON  # what a new thread has taken over from the campaign's head; {}: nothing


async def begin(
    state: StateT,
    runtime: Runtime[Any],
    *,
    recap: Callable[[JSON], str] | None = None,
    numbered: Mapping[str, Any] = MappingProxyType({}),
) -> Begun[StateT]:
    """Open a turn: take over the campaign's past, find the thread's branch, number the turn, read shared pages.

    `state` is as the person's message finds it; `recap` makes a text of the head that opens a new thread (`join`);
    `numbered` are channels with the turn's number, of a caller that numbers its turns: else it is the next one.
    """
    if not state.turn and (owner := await owner_before(run_thread(runtime))):
        check_owner([*owner, runtime.context.campaign][:2], runtime.context)
    past = await join(state, runtime, recap)
    pages = {name: page.load(past[name]) for name, page in state.PAGES.items() if name in past}
    now = state.model_copy(update={**past, **pages, **numbered, "messages": state.messages})
    notices: list[Notice] = []
    if not now.timeline:
        branch, notices = await _beginning_of(now, runtime)
        now = now.model_copy(update={"timeline": [(branch, 0)]})
    opened = open_turn(now, runtime)
    now = now.model_copy(update={name: opened[name] for name in ("turn", "opened_by", "timeline")})
    shared = await read_pages(now, runtime)
    pages = {name: getattr(now, name).apply(shared[name], bounded=False).page for name in now.PAGES if name in shared}
    now = now.model_copy(update=pages)
    patches = {name: getattr(now, name).patch_from(getattr(state, name)) for name in state.PAGES}
    update = {
        **past,
        **opened,
        **{name: value for name, value in shared.items() if name == "agreed"},
        **{name: patch for name, patch in patches.items() if patch or not state.turn},  # JSON from the first turn on
        "notices": [*notices, *opened["notices"], *shared.get("notices", [])],
    }
    return Begun(now, update, past)


async def join(state: TurnState, runtime: Runtime[SettingsT], recap: Callable[[JSON], str] | None = None) -> JSON:
    """Return the channels with which a new thread takes over the campaign's past; {} if there is none.

    The past of a thread is decided once: gone back to its first message, it must not take over the head that its own
    abandoned future has left. `recap` makes a text of the head that opens the thread; "": none. A PastUnknownError says
    that the store cannot tell whether there is a past, a SettingsError that the campaign is another machine's.
    """
    if state.turn or state.timeline or runtime.store is None or not head_key(state):
        return {}
    try:
        past = await _past(state, runtime.store, runtime)
    except Exception as error:  # any store may be behind this; to start a new story instead would split the campaign
        unknown = f"Whether campaign {runtime.context.campaign!r} has a past cannot be read from the store: {error}"
        raise PastUnknownError(f"{unknown} The message is kept; mend the store and run the turn again.") from error
    if past is None:
        return {}
    if (owner := past.get("machine", state.MACHINE)) != state.MACHINE:
        wrong = f"Campaign {runtime.context.campaign!r} belongs to {owner}, and {state.MACHINE} cannot go on with it."
        raise SettingsError(f"{wrong} Nothing was changed; name another campaign.")
    if state.SCOPE != "campaign":
        return {name: past[name] for name in state.pages_of("campaign") if name in past}
    text = recap(past) if recap else ""
    return {
        "turn": past["turn"],
        "timeline": past["timeline"],
        "remembered_through": past["turn"],
        **{name: past[name] for name in (*state.CARRIED, *state.pages_of("campaign")) if name in past},
        **({"messages": [AIMessage(text, name=ASIDE)]} if text else {}),
    }


async def _past(state: TurnState, store: BaseStore, runtime: Runtime[SettingsT]) -> JSON | None:
    pasts, thread = runtime.context.campaign_namespace(PASTS), run_thread(runtime)
    kept = await store.aget(pasts, thread) if thread else None
    if thread and kept is not None:
        checkpoint = kept.value.get("checkpoint")
        # Else its checkpoints are gone: it begins again.
        if not checkpoint or await _is_saved(thread, checkpoint) or await _has_earlier(thread, checkpoint):
            past: JSON | None = kept.value["head"]
            return past
    head = await head_of(store, runtime.context, head_key(state))
    if thread:
        info = runtime.execution_info
        began = {"head": head, "checkpoint": info.checkpoint_id if info else ""}
        await put_all(store, [PutOp(pasts, thread, began, index=False)])
    return head


BEGUN_AGAIN = (
    "A thread with the id {thread!r} was here before, and its checkpoints are gone. What was remembered of it is still "
    "known to the threads of {user!r}, this one too. docs/forgetting.md says how to remove it."
)
_UNKNOWN = (
    "Whether a thread with the id {thread!r} was here before could not be read. If one was and its checkpoints are "
    "gone, its memories may be hidden from now on."
)
_MOST = 100  # lives of a thread
_PAGE = 10  # checkpoints that are read at once


async def _beginning_of(state: TurnState, runtime: Runtime[Any]) -> tuple[str, list[Notice]]:
    """Return how a thread begins whose state is empty: its first branch, and what a person should know of it."""
    thread, user = run_thread(runtime), runtime.context.user
    branch = branch_name(thread or uuid.uuid4().hex)
    if not thread or runtime.store is None or not (state.SCOPE == "user" or state.pages_of("user")):
        return branch, []
    view = user_timeline((), runtime.context, thread)
    try:
        lives = await _lives_of(runtime.store, view)
        life = await _life_gone_back(runtime.store, runtime.context, thread, lives)
    except Exception as error:  # noqa: BLE001 (any store or checkpointer may be behind this; a reply must not fail)
        return branch, [failure_notice(1, "memory", _UNKNOWN.format(thread=thread), error)]
    if life is None and lives:
        info = runtime.execution_info
        mark = branch_name(f"{thread}/{info.checkpoint_id if info else uuid.uuid4().hex}")
        notices = [notice(1, "memory", BEGUN_AGAIN.format(thread=thread, user=user))]
        return view.with_segments((), mark).first_branch, notices
    return view.with_segments((), life or "").first_branch, []


async def _lives_of(store: BaseStore, view: UserTimeline) -> list[Item]:
    """Return the heads of all that has begun with a thread's id and has a past, the one that wrote last first."""
    place, key = view.head_place
    others = await store.asearch(view.with_segments((), "any").head_place[0], limit=_MOST)
    heads = [await store.aget(place, key), *others]
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
    saver, config = _saver(), _config(thread, checkpoint)
    if saver is None or not checkpoint:
        return False
    return await _ask(saver, lambda: saver.get_tuple(config), lambda: saver.aget_tuple(config)) is not None


async def _has_earlier(thread: str, checkpoint: str) -> bool:
    """Whether the run's checkpointer has one from before another; if it is not known which, yes: nothing may leak."""
    earlier = _config(thread, checkpoint)
    return _saver() is not None and (not checkpoint or bool(await _saved(thread, before=earlier, limit=1)))


async def owner_before(thread: str | None) -> list[str]:
    """Return user and campaign of the newest checkpoint of the run's thread that names them, or the user alone.

    A state of before the first turn names nobody, and a run can go on from there. Nothing: no checkpoint names one.
    """
    before: RunnableConfig | None = None
    while page := await _saved(thread, before=before, limit=_PAGE):
        values = [saved.checkpoint["channel_values"] for saved in page]
        for one in values:  # before the first turn only a run's command can have written a campaign
            if owner := one.get("thread_owner") or (one.get("machine") and one.get("campaign")):
                return [owner] if isinstance(owner, str) else list(owner)
        before = page[-1].config
    return []


async def messages_before(thread: str | None) -> list[Any] | None:
    """Return a thread's messages from before the input of the run whose first step this is; None if that is unknown."""
    page, step = await _saved(thread, limit=_PAGE), get_config()["metadata"].get("langgraph_step", 0)
    # What is saved in the background, or when the run ends, may not be there yet.
    if not page or (page[0].metadata.get("source") != "input" and page[0].metadata.get("step") != step - 1):
        return None
    inputs = (saved.checkpoint["channel_values"] for saved in page if saved.metadata.get("source") == "input")
    return next((list(values.get("messages", [])) for values in inputs), None)


async def _saved(thread: str | None, *, limit: int, before: RunnableConfig | None = None) -> list[CheckpointTuple]:
    """Return checkpoints of a thread of the run's checkpointer, the newest first."""
    if (saver := _saver()) is None or not thread:
        return []

    async def read() -> list[CheckpointTuple]:
        return [saved async for saved in saver.alist(_config(thread), before=before, limit=limit)]

    try:
        return await _ask(saver, lambda: list(saver.list(_config(thread), before=before, limit=limit)), read)
    except NotImplementedError:  # it lists none: what came before is not known
        return []


def _saver() -> BaseCheckpointSaver[Any] | None:
    saver = (var_child_runnable_config.get() or {}).get("configurable", {}).get(CHECKPOINTER)
    return saver if isinstance(saver, BaseCheckpointSaver) else None


async def _ask(
    saver: BaseCheckpointSaver[Any], ask: Callable[[], AnswerT], ask_here: Callable[[], Awaitable[AnswerT]]
) -> AnswerT:
    """Ask a checkpointer by its async methods; by the sync ones, in a thread, where it has no others for this loop."""
    if getattr(saver, "loop", None) in (None, asyncio.get_running_loop()):
        try:
            return await ask_here()
        except NotImplementedError:  # such as SqliteSaver's
            pass
    return await asyncio.to_thread(ask)


def _config(thread: str, checkpoint: str = "") -> RunnableConfig:
    place = {"thread_id": thread, "checkpoint_ns": ""}
    return {"configurable": place | ({"checkpoint_id": checkpoint} if checkpoint else {})}
