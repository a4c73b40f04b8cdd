"""Pages of scope "user": all threads of a user share them, and each goes back with its own checkpoint.

Such a page is the sum of patches. Each is a record in the store, seen as all records are (`UserTimeline`). So threads
that write at once lose nothing, and what a fork took back is on no thread's page.

A snapshot holds the sum of the old patches, as the heads saw them, once there are more than `MOST` of them; old is what
is certain to have arrived everywhere. Who takes back, or brings back, something older changes the mark `epoch`, and the
snapshot counts no more.
"""

import logging
import time
import uuid
from collections.abc import Iterable
from typing import Any

from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore, PutOp, SearchOp

from questbook.graphs.settings import Settings
from questbook.graphs.turn.scope import thread_or_branch, user_timeline
from questbook.graphs.turn.state import TurnState, failure_notice
from questbook.memory.facts.validity import ALL_MARKS, lasting_position, position_of
from questbook.memory.store.any_store import get_values, put_all, search_all
from questbook.memory.timeline import timeline
from questbook.memory.timeline.records import Stamp
from questbook.notebooks import Notebook, NotebookError
from questbook.types import JSON

OLD = 3600.0  # seconds after which a change has arrived; clocks of two computers differ by less
MOST = 64  # old changes that are added up each time


def old_before() -> float:
    """Return the time, in seconds since 1970, before which changes are old."""
    return time.time() - OLD


PAGES, _LOG = "pages", "patches"
_SNAPSHOT, _EPOCH = "snapshot", "epoch"
_log = logging.getLogger(__name__)


async def read_pages(state: TurnState, runtime: Runtime[Any]) -> JSON:
    """Return the channels with which a turn begins: patches that bring the pages of scope "user" up to date.

    What a person has edited in this thread since its last turn stays on the page, and is published with this turn. If
    the store cannot be read, the pages are as the thread knows them, and a notice says so.
    """
    pages = state.pages_of("user")
    if not pages or runtime.store is None:
        return {}
    update, (agreed, moved) = dict[str, Any](), _agreed(state)
    try:
        # A turn that is not remembered has no place yet: where it would be may lie what another future has noted.
        view = user_timeline(state.timeline, runtime.context, thread_or_branch(runtime, state.timeline))
        view = view.with_segments(timeline.as_of(state.timeline, state.remembered_through))
        for channel, kind in pages.items():
            shared, has_moved = await _read_page(runtime.store, _place(runtime.context, channel), kind, view)
            page: Notebook = getattr(state, channel)
            edited = page.patch_from(kind.load(agreed.get(channel)))
            update |= {channel: (_apply(shared, [edited]) if edited else shared).patch_from(page)}
            agreed[channel] = shared.as_json()
            moved = [*moved, channel] if has_moved else moved
        if view.thread and not view and view.head_place not in await get_values(runtime.store, [view.head_place]):
            await put_all(runtime.store, [view.head_op()])  # forgetting looks in the threads that have a head
    except Exception as error:  # noqa: BLE001 (any store may be behind this; the conversation goes on without)
        text = f"What other threads noted on {', '.join(pages)} could not be read."
        return {"notices": [failure_notice(state.turn, "begin", text, error)]}
    return {**update, "agreed": {"pages": agreed, "moved": sorted({*moved})}}


async def publish_pages(state: TurnState, runtime: Runtime[Any]) -> JSON:
    """Write what this turn, which has its place, changed on pages of scope "user"; return the channels to write.

    To call it twice is to call it once. If the store fails, a notice says so, and the next turn writes it too.
    """
    pages = state.pages_of("user")
    if not pages or runtime.store is None or state.remembered_through < state.turn:
        return {}
    branch, thread = timeline.branch_of(state.timeline, state.turn), thread_or_branch(runtime, state.timeline)
    agreed, moved = _agreed(state)
    stamp = Stamp(branch, state.turn, thread=thread).to_json()
    ops = [user_timeline(state.timeline, runtime.context, thread).head_op()] if state.SCOPE != "user" else []
    for channel, kind in pages.items():
        page: Notebook = getattr(state, channel)
        if patch := page.patch_from(kind.load(agreed.get(channel))):
            value = {"patch": patch, "version": kind.VERSION, "at": lasting_position(time.time()), **stamp}
            key = timeline.record_key(branch, state.turn, "page")
            ops.append(PutOp((*_place(runtime.context, channel), _LOG), key, value, index=False))
            agreed[channel] = page.as_json()
    # Last: a reader between two writes then sees too much once, where a snapshot could be wrong for long.
    ops += [_epoch_op(_place(runtime.context, channel)) for channel in moved]
    try:
        await put_all(runtime.store, ops)
    except Exception as error:  # noqa: BLE001 (any store may be behind this; the reply must survive its failure)
        text = f"Other threads do not see yet what was noted on {', '.join(pages)}; the next turn will tell them."
        return {"notices": [failure_notice(state.turn, "remember", text, error)]}
    return {"agreed": {"pages": agreed, "moved": []}} if ops else {}


async def move_ops(state: TurnState, store: BaseStore, settings: Settings, thread: str) -> list[PutOp]:
    """Make the writes by which a thread's head goes where the thread has gone; none if no thread shares anything."""
    pages = state.pages_of("user")
    if state.SCOPE != "user" and not pages:
        return []
    view = user_timeline(state.timeline, settings, thread)
    head = timeline.read_timeline((await get_values(store, [view.head_place])).get(view.head_place, {}))
    places = [_place(settings, channel) for channel in pages] if _goes_aside(head, view) else []
    return [view.head_op(), *map(_epoch_op, places)]


async def _read_page(
    store: BaseStore, place: tuple[str, ...], kind: type[Notebook], view: timeline.UserTimeline
) -> tuple[Notebook, bool]:
    """Add up the patches of a page that a thread sees; say, too, if it has gone back or aside since it last wrote."""
    own = [view.head_place] if view.thread else []
    values = await get_values(store, [(place, _EPOCH), (place, _SNAPSHOT), *own])
    epoch, snapshot = (dict(values.get((place, key), {})) for key in (_EPOCH, _SNAPSHOT))
    head = timeline.read_timeline(values.get(view.head_place, {}))
    moved = _goes_aside(head, view)
    if moved or snapshot.get("epoch") != epoch.get("id"):
        snapshot = {}
    since = {"at": {"$gt": snapshot["at"]}} if snapshot else None
    [entries] = await search_all(store, [SearchOp((*place, _LOG), filter=since, limit=ALL_MARKS)])
    await timeline.read_heads(store, view, (entry.value for entry in entries))
    visible = [entry.value for entry in entries if timeline.is_visible(view, entry.value)]
    visible.sort(key=lambda value: (position_of(value), value["branch"]))
    old_until = lasting_position(old_before())
    old = [value for value in visible if position_of(value) <= old_until]
    base = _apply(kind.load(snapshot.get("page")), [value["patch"] for value in old])
    if len(old) > MOST and head == list(view):  # as the heads see it, and not only this thread
        new = {"page": base.as_json(), "at": position_of(old[-1]), "epoch": epoch.get("id")}
        await put_all(store, [PutOp(place, _SNAPSHOT, new, index=False)])
    return _apply(base, [value["patch"] for value in visible[len(old) :]]), moved


def _goes_aside(head: timeline.Timeline, other: timeline.Timeline) -> bool:
    """Return whether a timeline does not go on from a head, and lacks something of it."""
    return timeline.as_of(list(other), head[-1][1] if head else 0) != list(head)


def _apply(page: Notebook, patches: Iterable[Any]) -> Notebook:
    """Apply patches in order; one that fits no more, because what it rests on was taken back, is left out."""
    for patch in patches:
        try:
            page = page.apply(patch, bounded=False).page
        except NotebookError as error:
            _log.warning("A patch of %s that fits no more was left out: %s", type(page).__name__, error)
    return page


def _place(settings: Settings, channel: str) -> tuple[str, ...]:
    return settings.campaign_namespace(PAGES, channel)


def _epoch_op(place: tuple[str, ...]) -> PutOp:
    return PutOp(place, _EPOCH, {"id": uuid.uuid4().hex}, index=False)


def _agreed(state: TurnState) -> tuple[JSON, list[str]]:
    agreed = getattr(state, "agreed", {})
    return {**agreed.get("pages", {})}, agreed.get("moved", [])
