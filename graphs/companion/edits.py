"""Edits of core memory by a person: the same edits as the assistant's, each a checkpoint of its own."""

from __future__ import annotations

import uuid
from collections.abc import Mapping

from langchain_core.runnables import RunnableConfig
from langgraph.store.base import BaseStore

from questbook.graphs.companion.context import CompanionContext
from questbook.graphs.companion.shared_sections import edit_section, fetch_shared
from questbook.graphs.history.history import History
from questbook.graphs.history.view import Graph
from questbook.graphs.settings import Settings
from questbook.graphs.turn.tool_calls import Call
from questbook.notebooks import CoreNotebook, EditError, sections_of


async def core_of(graph: Graph, config: RunnableConfig, context: Settings) -> CoreNotebook:
    """Return core memory of the thread's state, its shared sections as the store has them.

    Before the first message, that is core memory as the settings have it.
    """
    state = await graph.aget_state(config)
    begins = sections_of(context.core if isinstance(context, CompanionContext) else None)
    page, store = CoreNotebook.load(state.values["core"]) if state.values.get("turn") else begins, graph.store
    return await fetch_shared(page, store if isinstance(store, BaseStore) else None, context.user)


async def edit_by_hand(
    graph: Graph, config: RunnableConfig, context: Settings, tool: str, args: Mapping[str, str]
) -> str:
    """Edit a section of core memory in the thread's state; return its value.

    The edit is a checkpoint, which Studio shows; to go back to before it undoes it. A shared section also changes in
    the store, for all that share it, and does not go back.

    Args:
        graph: The companion, compiled with a checkpointer.
        config: Names the thread.
        context: The settings.
        tool: One of `notebooks.CORE_TOOLS`.
        args: Its arguments, `label` among them.

    Raises:
        HistoryError: Nothing has been said yet, or the last turn is not finished.
        EditError: It does not fit: no such section, read-only, over its limit, or the text to replace is not there
            exactly once. Nothing was changed.
    """
    history = History(graph, config, context)
    before = CoreNotebook.load((await history.finished_state()).values.get("core"))
    section, store = before.sections.get(args["label"]), graph.store if isinstance(graph.store, BaseStore) else None
    call = Call(uuid.uuid4().hex, tool, dict(args))
    try:
        page, text = await edit_section(before, call, store, context.user, call.id)
    except EditError as error:
        if section and section.read_only:
            raise EditError(
                f"Section {args['label']!r} is read-only: tools and commands leave it alone. A patch of the state "
                "changes it, as in Studio."
            ) from error
        if error.__cause__ is None:
            raise
        # The cause says what is wrong; the error itself repeats the page, for a model that has to try again.
        reason = str(error.__cause__)
        for argument in args:
            reason = reason.removeprefix(f"{argument}: ")
        raise EditError(f"{reason} Nothing was changed.") from error
    await history.write({"core": page.patch_from(before)})
    return text
