"""What the model may call: `search_memory`, `manage_memory`, and a tool for each page that is written on demand.

A write that went to the store in the middle of a turn would be seen by a fork from before it. So a tool leaves it in
the channel `staged`, and `write_staged` writes it after the turn, on the turn's own place. Records are never changed:
an update is a new record and a judgement that the old one holds no more.
"""

import tomllib
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from functools import wraps
from importlib.resources import files
from typing import Annotated, Any, Literal, NamedTuple

from langchain.tools import ToolRuntime
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore
from langgraph.types import Command, Overwrite
from pydantic import BeforeValidator

from questbook.graphs.settings import NotingContext
from questbook.graphs.turn.pages import PageState
from questbook.graphs.turn.recall import FACTS, FOUND, Recall, assistant_plan, memory_line, open_memory, recall_for_turn
from questbook.graphs.turn.scope import visible_timeline
from questbook.graphs.turn.state import Memory, TurnState, failure_notice
from questbook.graphs.turn.tool_calls import Call, edit_page
from questbook.graphs.turn.turn import PRIVATE_REFUSAL, is_private, origin_of
from questbook.memory.errors import BadQueryError
from questbook.memory.facts.fact import MAX_TEXT
from questbook.memory.facts.validity import turn_position, write_judgements
from questbook.memory.facts.writing import note_facts
from questbook.memory.sync import run_sync
from questbook.memory.timeline.records import Stamp
from questbook.memory.timeline.timeline import branch_name, branch_of, is_visible, read_heads, record_key
from questbook.notebooks import DeclarationError, Notebook, render_value
from questbook.types import JSON

Action = Literal["create", "update", "delete", "end"]
ENDINGS = ("delete", "end")
"""Actions after which a memory holds no more, with none in its place; "delete" is what other libraries call it."""

_AFTER_FACTS = 900  # a judgement's place in its turn


class Staged(NamedTuple):
    """What a turn leaves of its changes."""

    texts: dict[str, str]  # the new memories, by the id that the model knows them by
    ended: dict[str, str]  # keys of records that hold no more, each with the id of the memory in its place, or ""


def read_staged(changes: Sequence[Mapping[str, str]]) -> Staged:
    """Put changes together: {"id", "action", "text", "of"}; `of` is what an update or a deletion is about."""
    texts, ended = dict[str, str](), dict[str, str]()
    for change in changes:
        about, own = change["of"], change["action"] not in ENDINGS
        if about in texts:  # of this turn: it was never written
            del texts[about]
            ended = {key: (change["id"] if own else "") if new == about else new for key, new in ended.items()}
        elif about:
            texts.pop(ended.get(about, ""), None)  # what a change before this one put in its place
            ended[about] = change["id"] if own else ""
        if own:
            texts[change["id"]] = change["text"]
    return Staged(texts, ended)


async def write_staged(state: Any, runtime: Runtime[NotingContext]) -> JSON:
    """Write what tools changed, once the turns have their places; a failure leaves it for the next turn.

    The channel `staged` holds the changes: {"turn", "id", "action", "text", "of"}.
    """
    if not state.staged or runtime.store is None or state.remembered_through < state.turn:
        return {}
    try:
        await _write(state, state.staged, runtime, runtime.store)
    except Exception as error:  # noqa: BLE001 (any store may be behind this; the reply must survive its failure)
        text = "What was to be kept of this turn was not written to memory; the next turn will write it."
        return {"notices": [failure_notice(state.turn, "manage_memory", text, error)]}
    return {"staged": Overwrite([])}


async def _write(state: TurnState, staged: Sequence[JSON], runtime: Runtime[NotingContext], store: BaseStore) -> None:
    facts, view = runtime.context.campaign_namespace(FACTS), visible_timeline(state, runtime)
    for turn in sorted({change["turn"] for change in staged}):
        changes = read_staged([change for change in staged if change["turn"] == turn])
        branch, origin = branch_of(state.timeline, turn), origin_of(runtime)
        texts = [{"text": text, "kind": "trait"} for text in changes.texts.values()]
        await note_facts(store, facts, texts, timeline=view, turn=turn, provenance=origin)
        place = {"at": turn_position(turn, _AFTER_FACTS), "turns": [turn, turn]}
        stamp = Stamp(branch, turn).to_json() | origin | place
        holds = record_key(branch, turn, "exchange")
        await write_judgements(store, facts, [(key, holds) for key in changes.ended], stamp)


Read = Callable[[Any, Runtime[Any], RunnableConfig], Awaitable[tuple[PageState, Runtime[NotingContext]]]]
"""Reads the agent's state and its run as Questbook's own agents have them."""
Key = Annotated[str, BeforeValidator(lambda key: "" if key is None else str(key))]  # or a turn, as a number

TEXTS: JSON = tomllib.loads(files("questbook.graphs.middleware").joinpath("prompts.toml").read_text("utf-8"))
_NOTHING = "Nothing in memory fits."
_OF_LANGCHAIN = frozenset({"self", "runtime", "config", "run_manager"})
_MOST = 20  # memories that a search returns at most


def memory_tools(read: Read, recall: Recall | None) -> list[BaseTool]:
    """Make `search_memory` and `manage_memory`; a later search of the turn finds what is staged."""

    async def search_memory(
        runtime: ToolRuntime, query: str = "", limit: int = 10, key: Key = "", page: int = 1
    ) -> Any:
        state, run = await read(runtime.state, run_of(runtime), runtime.config)
        if run.store is None:
            return "There is no memory: the agent has no store."
        now = read_staged([change for change in runtime.state.get("staged", []) if change["turn"] == state.turn])
        own = {id_: render_value({"key": id_, "text": text}) for id_, text in now.texts.items()}
        if key.strip():
            spaces = [run.context.campaign_namespace(name) for name in ("exchanges", FACTS)]
            try:
                if key in now.ended:
                    raise BadQueryError(f"There is no memory with the id {key!r:.80}: it holds no more.")
                return own.get(key) or await open_memory(state, run, spaces, key, page)
            except BadQueryError as error:
                return ToolMessage(str(error), tool_call_id=runtime.tool_call_id or "", status="error")
        options = recall or Recall.of(run.context)
        options = replace(options, tokens=options.tokens or 800, most=max(1, min(limit, _MOST - len(own))))
        memories = await _search(state, run, query, options)
        lines = [memory_line(memory, FOUND) for memory in memories if memory["key"] not in now.ended]
        return "\n".join([*lines, *own.values()][-_MOST:]) or _NOTHING

    async def manage_memory(runtime: ToolRuntime, action: Action, content: str = "", id: str = "") -> Any:  # noqa: A002
        state, run = await read(runtime.state, run_of(runtime), runtime.config)
        call = runtime.tool_call_id or ""
        if problem := await _problem(state, run, runtime.state, action, content, id):
            return ToolMessage(problem, tool_call_id=call, status="error")
        # Some models give their calls no id, or one that is not unique.
        name = f"note-{branch_name(f'{call}/{content}')}"
        change = {"turn": state.turn, "id": name, "action": action, "text": content.strip(), "of": id}
        done = f"Kept as {name}." if action not in ENDINGS else f"{id} holds no more."
        return Command(update={"staged": [change], "messages": [ToolMessage(done, tool_call_id=call)]})

    return [
        _tool(search_memory, TEXTS["SEARCH"], "search_memory"),
        _tool(manage_memory, TEXTS["MANAGE"], "manage_memory"),
    ]


def page_tool(page: type[Notebook], read: Read) -> BaseTool:
    """Make the tool by which the model patches a page when it answers; what does not fit comes back with the reason."""
    described = page.tool()["function"]
    if taken := _OF_LANGCHAIN & described["parameters"]["properties"].keys():
        raise DeclarationError(f"{page.__name__}.{min(taken)}: tools have an argument of that name; choose another.")

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


async def _problem(state: PageState, run: Runtime[NotingContext], values: Any, action: str, text: str, id_: str) -> str:
    if is_private(state):
        return PRIVATE_REFUSAL
    if action not in ENDINGS and not text.strip():
        return f"{action}: `content` is empty. Send the sentence to keep."
    if action not in ENDINGS and len(text) > MAX_TEXT:
        return f"`content` has {len(text):,} characters; at most {MAX_TEXT:,} can be kept. Send it in parts."
    if action == "create":
        return f"create takes no `id`, got {id_!r}. Use 'update' to change a memory." if id_ else ""
    if id_ in read_staged([change for change in values.get("staged", []) if change["turn"] == state.turn]).texts:
        return ""
    facts, view = run.context.campaign_namespace(FACTS), visible_timeline(state, run)
    item = await run.store.aget(facts, id_) if run.store is not None and id_ else None
    if item is not None and run.store is not None:
        await read_heads(run.store, view, [item.value])
    if item is None or not is_visible(view, item.value, before=state.turn):
        return f"There is no memory with the id {id_!r} that can be changed. Take an id from search_memory."
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
    @wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        return run_sync(function(*args, **kwargs))

    return StructuredTool.from_function(run, coroutine=function, name=name, description=description, args_schema=schema)


async def _search(state: PageState, runtime: Runtime[NotingContext], question: str, options: Recall) -> list[Memory]:
    """Recall what fits a question of the model's, also of turns that are in the prompt."""
    asking = state.model_copy(update={"messages": [HumanMessage(question)]})
    plan = assistant_plan(asking, runtime.context, options, facts=True, voices=FOUND, shown=[])
    return await recall_for_turn(asking, runtime, plan)
