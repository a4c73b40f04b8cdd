"""The companion's tools: core memory, archival memory, and the conversation."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal, NamedTuple

from langgraph.runtime import Runtime
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from questbook.graphs.companion.context import Context
from questbook.graphs.companion.shared import edit_shared
from questbook.graphs.companion.state import CompanionState
from questbook.graphs.turn.tool_calls import Call
from questbook.graphs.turn.withheld import REFUSED, private
from questbook.memory.archive.archival_memory import ArchiveQuery, new_entry, search_archive
from questbook.memory.archive.conversation import ROLES, ConversationQuery, search_conversation
from questbook.memory.archive.results import Days, Page, find_timezone, read_days
from questbook.memory.errors import BadQueryError
from questbook.memory.recall.age import phrase_age
from questbook.memory.timeline.namespaces import campaign_namespace
from questbook.notebooks import CORE_TOOLS, CoreNotebook, EditError, edit_core, render_value
from questbook.notebooks.tool_schema import first_problem, tool_schema

JSON = dict[str, Any]
HEARTBEAT = "request_heartbeat"

_SHOWN = 1500  # characters of one result; a page of results must not fill the window


class _Args(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _Insert(_Args):
    """Put something into archival memory, which has no limit and is found by searching."""

    content: str = Field(description="What is to be kept, in a few sentences that can be understood by themselves.")
    tags: list[str] = Field(default=[], description="Words to find it by.")


class _Search(_Args):
    """Search archival memory by meaning and words; the best fitting entries come first."""

    query: str = Field(description="What to look for; blank: the newest entries.")
    tags: list[str] = Field(default=[], description="Only entries with these tags.")
    match: Literal["any", "all"] = Field(default="any", description="Whether an entry needs one of the tags or all.")
    start: str | None = Field(default=None, description="Only entries from this day on: YYYY-MM-DD.")
    end: str | None = Field(default=None, description="Only entries until this day, the whole of it.")
    page: int = Field(default=1, description="Page of the results, from 1.")


class _Conversation(_Args):
    """Search earlier turns of the conversation by words; the best fitting come first."""

    query: str = Field(description="Words to look for.")
    roles: list[str] = Field(default=list(ROLES), description="Whose words: user, assistant, or both.")
    start: str | None = Field(default=None, description="Only turns from this day on: YYYY-MM-DD.")
    end: str | None = Field(default=None, description="Only turns until this day, the whole of it.")
    page: int = Field(default=1, description="Page of the results, from 1.")


class _ByDate(_Args):
    """List the turns of the conversation between two days, both included, the oldest first."""

    start_date: str = Field(description="First day: YYYY-MM-DD.")
    end_date: str = Field(description="Last day, the whole of it: YYYY-MM-DD.")
    page: int = Field(default=1, description="Page of the results, from 1.")


_ARGUMENTS: dict[str, type[_Args]] = {
    "archival_memory_insert": _Insert,
    "archival_memory_search": _Search,
    "conversation_search": _Conversation,
    "conversation_search_date": _ByDate,
}
SEARCHES = frozenset(name for name in _ARGUMENTS if "search" in name)
"""Tools whose results the model is always asked again with."""
_CORE = frozenset(tool["function"]["name"] for tool in CORE_TOOLS)


def _with_heartbeat(tool: JSON) -> JSON:
    function = tool["function"]
    asked = {"type": "boolean", "description": "Whether you want another go after this one; searches give you one."}
    parameters = function["parameters"] | {"properties": function["parameters"]["properties"] | {HEARTBEAT: asked}}
    return tool | {"function": function | {"parameters": parameters}}


TOOLS: list[JSON] = [
    _with_heartbeat(tool) for tool in [*CORE_TOOLS, *(tool_schema(name, args) for name, args in _ARGUMENTS.items())]
]
"""The companion's tools in the OpenAI function format."""
_NOTING = (_CORE - {"core_memory_remove"}) | {"archival_memory_insert"}


def tools_for(state: CompanionState) -> list[JSON]:
    """Return what the model may call in this turn; in one that is not to be remembered, nothing that notes anything."""
    return [tool for tool in TOOLS if tool["function"]["name"] not in _NOTING] if private(state) else TOOLS


class Used(NamedTuple):
    """What a call came to.

    Attributes:
        text: What the model is told.
        core: Core memory after it.
        archived: An entry for archival memory; None if there is none.
    """

    text: str
    core: CoreNotebook
    archived: JSON | None = None


async def use(call: Call, state: CompanionState, runtime: Runtime[Context]) -> Used:
    """Do what a call asks for. `state` holds what earlier calls of the turn came to.

    Raises:
        EditError: It does not fit core memory; the message is for the model. Nothing was changed.
        BadQueryError: The same of archive and conversation.
    """
    if call.problem:
        raise EditError(f"{call.name}: {call.problem}")
    if call.name in _NOTING and private(state):
        raise EditError(f"{call.name}: {REFUSED}")
    args = {name: value for name, value in call.args.items() if name != HEARTBEAT and value is not None}
    if call.name in _CORE:
        return await _edited(call._replace(args=args), state, runtime)
    if call.name not in _ARGUMENTS:
        raise EditError(f"There is no tool {call.name!r:.60}; there are {', '.join([*sorted(_CORE), *_ARGUMENTS])}.")
    try:
        asked: Any = _ARGUMENTS[call.name].model_validate(args)
    except ValidationError as error:
        raise EditError(f"{call.name}: {first_problem(error, _ARGUMENTS[call.name])}") from error
    if call.name == "archival_memory_insert":
        kept = new_entry(asked.content, asked.tags) | {"turn": state.turn, "said_at": state.opened_at}
        return Used(f"Kept. Archival memory has {state.archive_count + 1} entries.", state.core, kept)
    return Used(await _SEARCH[call.name](asked, state, runtime), state.core)


async def _edited(call: Call, state: CompanionState, runtime: Runtime[Context]) -> Used:
    label = call.args.get("label")
    section = state.core.sections.get(label) if isinstance(label, str) else None
    if isinstance(label, str) and section and section.shared and runtime.store is not None:
        info = runtime.execution_info
        origin = f"{info.thread_id}/{info.checkpoint_id}/{call.id}" if info else call.id
        page, text = await edit_shared(state.core, label, call, runtime.store, runtime.context.user, origin)
        return Used(text, page)
    edited = edit_core(state.core, call.name, call.args)
    return Used(edited.text, edited.page)


async def _search(asked: _Search, state: CompanionState, runtime: Runtime[Context]) -> str:
    found = await search_archive(
        runtime.store,
        campaign_namespace(runtime.context.user, runtime.context.campaign, "archive"),
        ArchiveQuery(
            asked.query,
            tags=asked.tags,
            every_tag=asked.match == "all",
            days=_days(asked.start, asked.end, runtime.context),
            page=asked.page,
            size=runtime.context.search_results,
        ),
        timeline=state.timeline,
        before=state.remembered_through + 1,
        waiting=state.archived,
    )
    return _told(found, ("text", "tags"), runtime.context)


async def _conversation(asked: _Conversation, state: CompanionState, runtime: Runtime[Context]) -> str:
    if not asked.query.strip():
        raise BadQueryError("query: got a blank text; send words, or list days with conversation_search_date.")
    days = _days(asked.start, asked.end, runtime.context)
    query = ConversationQuery(asked.query, asked.roles, days, asked.page, runtime.context.search_results)
    return await _talks(query, state, runtime)


async def _by_date(asked: _ByDate, state: CompanionState, runtime: Runtime[Context]) -> str:
    days = _days(asked.start_date, asked.end_date, runtime.context)
    query = ConversationQuery(days=days, page=asked.page, size=runtime.context.search_results)
    return await _talks(query, state, runtime)


async def _talks(query: ConversationQuery, state: CompanionState, runtime: Runtime[Context]) -> str:
    if runtime.store is None:
        raise BadQueryError("There is no store here: only what stands in the conversation is known.")
    exchanges = campaign_namespace(runtime.context.user, runtime.context.campaign, "exchanges")
    found = await search_conversation(
        runtime.store,
        exchanges,
        query,
        timeline=state.timeline,
        before=min(state.turn, state.remembered_through + 1),
    )
    return _told(found, ("turn", "user", "assistant"), runtime.context)


_SEARCH: dict[str, Any] = {
    "archival_memory_search": _search,
    "conversation_search": _conversation,
    "conversation_search_date": _by_date,
}


def _days(first: str | None, last: str | None, context: Context) -> Days:
    return read_days(first, last, datetime.now(find_timezone(context.timezone)))


def _told(found: Page[JSON], fields: tuple[str, ...], context: Context) -> str:
    return "\n".join([found.heading, *(_line(item, fields, context) for item in found.items)])


def _line(item: Mapping[str, Any], fields: tuple[str, ...], context: Context) -> str:
    now = datetime.now(find_timezone(context.timezone))
    said_at = str(item.get("said_at") or "")
    when = {"said_at": f"{datetime.fromisoformat(said_at).astimezone(now.tzinfo):%Y-%m-%d %H:%M}"} if said_at else {}
    shown = {name: _short(item[name]) for name in fields if item.get(name)}
    return render_value(when | {"age": phrase_age(said_at or None, now)} | shown)


def _short(value: Any) -> Any:
    if not isinstance(value, str) or len(value) <= _SHOWN:
        return value
    return f"{value[:_SHOWN]}… ({len(value) - _SHOWN:,} characters more)"
