"""Edits of core memory: of a thread's own sections, of those that several assistants share, and by a person's hand.

A shared section belongs to no thread, so it does not rewind. In the store its edits are a log, in order of keys. The
record that takes the place of old ones names the last of them in its key: of two such records the later one counts.
"""

import hashlib
import time
import uuid
from collections.abc import Sequence

from langchain_core.runnables import RunnableConfig
from langgraph.store.base import BaseStore, PutOp

from questbook.graphs.companion.context import CompanionContext
from questbook.graphs.history.history import History
from questbook.graphs.history.view import Graph
from questbook.graphs.settings import Settings
from questbook.graphs.turn import shared_pages
from questbook.graphs.turn.tool_calls import Call
from questbook.memory.store.any_store import items_under, put_all
from questbook.memory.timeline.namespaces import player_namespace
from questbook.notebooks import CoreNotebook, CoreTool, EditError, Section, edit_core, render_value, sections_of
from questbook.notebooks.core import MAX_LIMIT
from questbook.types import JSON

_BEGINNING = "0"  # sorts before all edits; "0-" and the key of an edit: the value after that edit
_ANY = "any"  # edits are applied whatever their assistant calls the section


async def fetch_shared(page: CoreNotebook, store: BaseStore | None, user: str) -> CoreNotebook:
    """Return the page with its shared sections as the store has them; without a store, as it is."""
    for label, section in page.sections.items():
        if section.shared and store is not None:
            namespace = player_namespace(user, "shared", section.shared)
            log = await _log(store, namespace)
            if not log:  # the first assistant that knows the section gives it its beginning
                await put_all(store, [PutOp(namespace, _BEGINNING, {"value": section.value}, index=False)])
            page = page.with_value(label, _value(log)[0]) if log else page
    return page


async def edit_section(
    page: CoreNotebook, call: Call, store: BaseStore | None, user: str, origin: str, tools: Sequence[CoreTool] = ()
) -> tuple[CoreNotebook, str]:
    """Edit a section of core memory, in the store if it is shared; return the page, and the answer to its writer.

    `origin` is the same if an edit of a shared section is made again. An EditError says that the call does not fit.
    """
    label = call.args.get("label")
    section = page.sections.get(label) if isinstance(label, str) else None
    if isinstance(label, str) and section and section.shared and store is not None:
        return await _edit_shared(page, label, call, store, user, origin, tools)
    edited = edit_core(page, call.name, call.args, tools)
    return edited.page, edited.text


async def core_of(graph: Graph, config: RunnableConfig, context: Settings) -> CoreNotebook:
    """Return core memory of the thread's state (before the first message, of the settings), with shared sections."""
    state = await graph.aget_state(config)
    begins = sections_of(context.core if isinstance(context, CompanionContext) else None)
    page, store = CoreNotebook.load(state.values["core"]) if state.values.get("turn") else begins, graph.store
    return await fetch_shared(page, store if isinstance(store, BaseStore) else None, context.user)


async def edit_by_hand(graph: Graph, config: RunnableConfig, context: Settings, tool: str, args: dict[str, str]) -> str:
    """Edit a section of core memory in the thread's state; return its value.

    The edit is a checkpoint; to go back to before it undoes it, but in a shared section. `tool` is one of
    `notebooks.CORE_TOOLS`, `args` are its arguments, `label` among them; `graph` has a checkpointer. An EditError says
    why it does not fit; then nothing was changed.
    """
    history = History(graph, config, context)
    before = CoreNotebook.load((await history.finished_state()).values.get("core"))
    section, store = before.sections.get(args["label"]), graph.store if isinstance(graph.store, BaseStore) else None
    call = Call(uuid.uuid4().hex, tool, dict(args))
    try:
        page, text = await edit_section(before, call, store, context.user, call.id)
    except EditError as error:
        if section and section.read_only:
            alone = "tools and commands leave it alone. A patch of the state changes it, as in Studio."
            shared = "it is shared, and an assistant for which it is not read-only changes it."
            raise EditError(f"Section {args['label']!r} is read-only: {shared if section.shared else alone}") from error
        if error.__cause__ is None:
            raise
        # The cause says what is wrong; the error itself repeats the page, for a model that has to try again.
        reason = str(error.__cause__)
        for argument in args:
            reason = reason.removeprefix(f"{argument}: ")
        raise EditError(f"{reason} Nothing was changed.") from error
    await history.write({"core": page.patch_from(before)})
    return text


async def _edit_shared(
    page: CoreNotebook, label: str, call: Call, store: BaseStore, user: str, origin: str, tools: Sequence[CoreTool]
) -> tuple[CoreNotebook, str]:
    section = page.sections[label]
    namespace = player_namespace(user, "shared", section.shared)
    mark = hashlib.sha256(origin.encode()).hexdigest()[:16]
    page = await fetch_shared(page, store, user)
    log = await _log(store, namespace)
    if not any(key.endswith(mark) for key, _ in log):  # else the node is run again
        # On its own, so that its limit and flag hold; what others add at the same time may pass the limit.
        single = CoreNotebook.of({label: section.model_copy(update={"shared": "", "value": _value(log)[0]})})
        edited = edit_core(single, call.name, call.args, tools)
        edit: JSON = {"tool": call.name, "args": call.args}
        if any(tool.name == call.name for tool in tools):
            rewritten = {"label": label, "new_content": edited.page.sections[label].text}
            edit = {"tool": "core_memory_rethink", "args": rewritten}
        await put_all(store, [PutOp(namespace, f"1-{time.time_ns():020}-{mark}", edit, index=False)])
        log = await _log(store, namespace)
        await _fold(store, namespace, log)
    value, applied = _value(log)
    page = page.with_value(label, value)
    if mark not in applied:
        now = f"Its value is now: {render_value(value)}"
        raise EditError(f"Another assistant changed section {label!r} at the same time. {now}")
    used = f"{page.sections[label].used:,} of {section.limit:,} characters"
    return page, f"Section {label!r}, which is shared, now uses {used}: {render_value(value)}"


def _value(log: Sequence[tuple[str, JSON]]) -> tuple[str | list[str], set[str]]:
    applied: set[str] = set()
    page, through = CoreNotebook.of({_ANY: Section(limit=MAX_LIMIT)}), ""
    for key, edit in log:
        if key.startswith(_BEGINNING):
            page, through = page.with_value(_ANY, edit["value"]), key.partition("-")[2]
            continue
        if key <= through:
            continue
        try:
            page = edit_core(page, edit["tool"], {**edit["args"], "label": _ANY}).page
        except EditError:
            continue  # it did not fit behind the edits before it, and its writer was told
        applied.add(key.rpartition("-")[2])
    return page.sections[_ANY].value, applied


async def _log(store: BaseStore, namespace: tuple[str, ...]) -> list[tuple[str, JSON]]:
    return sorted({item.key: item.value async for item in items_under(store, namespace)}.items())


async def _fold(store: BaseStore, namespace: tuple[str, ...], log: Sequence[tuple[str, JSON]]) -> None:
    """Put the result of old edits in their place, if they are many, so that reading does not cost more and more."""
    old_until = f"1-{int(shared_pages.old_before() * 10**9):020}"
    old = [(key, edit) for key, edit in log if key < old_until]
    if len(old) > shared_pages.MOST:
        await put_all(store, [PutOp(namespace, f"{_BEGINNING}-{old[-1][0]}", {"value": _value(old)[0]}, index=False)])
        await put_all(store, [PutOp(namespace, key, None) for key, _ in old])  # after it, so that none is missed
