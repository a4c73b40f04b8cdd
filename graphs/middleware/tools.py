"""What the model may call: `search_memory`, `manage_memory`, and a tool for each page that is written on demand."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import replace
from functools import wraps
from typing import Annotated, Any

from langchain.tools import ToolRuntime
from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.runtime import Runtime
from langgraph.types import Command
from pydantic import BeforeValidator

from questbook.graphs.middleware.recollection import FOUND, facts_namespace, search
from questbook.graphs.middleware.staging import ENDINGS, Action, read_staged
from questbook.graphs.settings import NotingContext
from questbook.graphs.turn.pages import PageState
from questbook.graphs.turn.recall import Recall, memory_line, open_memory
from questbook.graphs.turn.scope import visible_timeline
from questbook.graphs.turn.tool_calls import Call, edit_page
from questbook.graphs.turn.turn import PRIVATE_REFUSAL, is_private
from questbook.memory.errors import BadQueryError
from questbook.memory.facts.fact import MAX_TEXT
from questbook.memory.sync import run_sync
from questbook.memory.timeline.timeline import branch_name, is_visible, read_heads
from questbook.notebooks import Notebook, render_value
from questbook.types import JSON

Read = Callable[[Any, Runtime[Any], RunnableConfig], Awaitable[tuple[PageState, Runtime[NotingContext]]]]
"""Reads the agent's state and its run as Questbook's own agents have them."""
Key = Annotated[str, BeforeValidator(str)]
"""A key, or a turn, which models may send as a number."""

_SEARCH = (
    "Search long-term memory for what was said or noted in earlier conversations, and in this one. Returns one memory "
    'a line, each with its key, which is the id that manage_memory takes. "…" stands for words left out: to read all '
    "of a memory, send its key, or the turn that its line names, as `key` in place of a query; a long one has pages."
)
_MANAGE = (
    "Change long-term memory. action 'create' keeps `content`, one sentence that can be understood by itself; 'update' "
    "puts `content` in the place of the memory `id`; 'end' says that the memory `id` holds no more, as when the person "
    "asks to forget it. Ids are keys of search_memory."
)
_NOTHING = "Nothing in memory fits."
_MOST = 20  # memories that a search returns at most


def memory_tools(read: Read, recall: Recall | None) -> list[BaseTool]:
    """Make `search_memory` and `manage_memory`.

    What `manage_memory` changes is staged in state, where a later search of the turn finds it, and reaches the store
    with the turn's place on the timeline.
    """

    async def search_memory(
        runtime: ToolRuntime, query: str = "", limit: int = 10, key: Key = "", page: int = 1
    ) -> Any:
        state, run = await read(runtime.state, run_of(runtime), runtime.config)
        if run.store is None:
            return "There is no memory: the agent has no store."
        now = read_staged([change for change in runtime.state.get("staged", []) if change["turn"] == state.turn])
        own = {id_: render_value({"key": id_, "text": text}) for id_, text in now.texts.items()}
        if key.strip():
            spaces = [run.context.campaign_namespace("exchanges"), facts_namespace(run.context)]
            try:
                if key in now.ended:
                    raise BadQueryError(f"There is no memory with the id {key!r:.80}: it holds no more.")
                return own.get(key) or await open_memory(state, run, spaces, key, page)
            except BadQueryError as error:
                return ToolMessage(str(error), tool_call_id=runtime.tool_call_id or "", status="error")
        options = recall or Recall.of(run.context)
        options = replace(options, tokens=options.tokens or 800, most=max(1, min(limit, _MOST)))
        memories = await search(state, run, query, options)
        lines = [memory_line(memory, FOUND) for memory in memories if memory["key"] not in now.ended]
        return "\n".join([*lines, *own.values()]) or _NOTHING

    async def manage_memory(
        runtime: ToolRuntime,
        action: Action,
        content: str = "",
        id: str = "",  # noqa: A002 (the model's word for it)
    ) -> Any:
        state, run = await read(runtime.state, run_of(runtime), runtime.config)
        call = runtime.tool_call_id or ""
        problem = (
            PRIVATE_REFUSAL if is_private(state) else await _problem(state, run, runtime.state, action, content, id)
        )
        if problem:
            return ToolMessage(problem, tool_call_id=call, status="error")
        name = (
            f"note-{branch_name(f'{call}/{content}')}"  # some models give their calls no id, or one that is not unique
        )
        change = {"turn": state.turn, "id": name, "action": action, "text": content.strip(), "of": id}
        done = f"Kept as {name}." if action not in ENDINGS else f"{id} holds no more."
        return Command(update={"staged": [change], "messages": [ToolMessage(done, tool_call_id=call)]})

    return [_tool(search_memory, _SEARCH, "search_memory"), _tool(manage_memory, _MANAGE, "manage_memory")]


def page_tool(page: type[Notebook], read: Read) -> BaseTool:
    """Make the tool by which the model patches a page when it answers; what does not fit comes back with the reason."""
    described = page.tool()["function"]

    async def write_page(runtime: ToolRuntime, **patch: Any) -> Any:
        state, _ = await read(runtime.state, run_of(runtime), runtime.config)
        call = Call(runtime.tool_call_id or "", page.__name__, patch)
        if is_private(state):
            return ToolMessage(PRIVATE_REFUSAL, tool_call_id=call.id, status="error")
        before: Notebook = getattr(state, page.channel())
        edit = edit_page(before, call)
        change = edit.page.patch_from(before)
        return Command(update={"messages": [edit.result], **({page.channel(): change} if change else {})})

    return _tool(write_page, described["description"], page.__name__, described["parameters"])


async def _problem(
    state: PageState, run: Runtime[NotingContext], values: Any, action: str, content: str, about: str
) -> str:
    """Say why a change cannot be made; "" if it can."""
    if action not in ENDINGS and not content.strip():
        return f"{action}: `content` is empty. Send the sentence to keep."
    if action not in ENDINGS and len(content) > MAX_TEXT:
        return f"`content` has {len(content):,} characters; at most {MAX_TEXT:,} can be kept. Send it in parts."
    if action == "create":
        return f"create takes no `id`, got {about!r}. Use 'update' to change a memory." if about else ""
    if about in read_staged([change for change in values.get("staged", []) if change["turn"] == state.turn]).texts:
        return ""
    item = await run.store.aget(facts_namespace(run.context), about) if run.store is not None and about else None
    view = visible_timeline(state, run)
    if item is not None and run.store is not None:
        await read_heads(run.store, view, [item.value])
    if item is None or not is_visible(view, item.value, before=state.turn):
        return f"There is no memory with the id {about!r} that can be changed. Take an id from search_memory."
    return ""


def run_of(runtime: ToolRuntime) -> Runtime[Any]:
    """Return the run in which a tool is called."""
    return Runtime(
        context=runtime.context,
        store=runtime.store,
        stream_writer=runtime.stream_writer,
        execution_info=runtime.execution_info,
        server_info=runtime.server_info,
    )


def _tool(
    function: Callable[..., Coroutine[Any, Any, Any]], description: str, name: str, schema: JSON | None = None
) -> BaseTool:
    """Make a tool for sync and async agents of an async function."""

    @wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        return run_sync(function(*args, **kwargs))

    return StructuredTool.from_function(run, coroutine=function, name=name, description=description, args_schema=schema)
