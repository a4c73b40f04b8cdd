"""The companion's tools, for core memory, archival memory and the conversation; and the node `use_tools`."""

import math
from datetime import datetime
from typing import Annotated, Any, Literal

from langchain_core.messages import ToolMessage
from langgraph.runtime import Runtime
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from questbook.graphs.companion.context import CompanionContext
from questbook.graphs.companion.core_memory import edit_section
from questbook.graphs.companion.state import CompanionState
from questbook.graphs.turn.recall import FACTS, Recall, open_memory
from questbook.graphs.turn.state import Notice, failure_notice
from questbook.graphs.turn.tool_calls import Call, TurnTools, answer, run_round
from questbook.graphs.turn.turn import is_private
from questbook.memory.archive import archive as archives
from questbook.memory.errors import BadQueryError
from questbook.memory.recall.query import Recalled
from questbook.memory.recall.times import phrase_age
from questbook.notebooks import CORE_TOOLS, EditError, render_value
from questbook.notebooks.schema import argument_problems, tool_schema
from questbook.types import JSON

HEARTBEAT = "request_heartbeat"  # argument by which the model asks for another go

_VOICES = {"user": "player", "assistant": "reply"}
_Key = Annotated[str, BeforeValidator(str)]  # models may send a turn as a number


class _Arguments(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _Insert(_Arguments):
    """Put something into archival memory, which has no limit and is found by searching."""

    content: str = Field(description="What is to be kept, in a few sentences that can be understood by themselves.")
    tags: list[str] = Field(default=[], description="Words to find it by.")


class _Search(_Arguments):
    """Search archival memory by meaning and words; the best fitting entries come first."""

    query: str = Field(default="", description="What to look for; blank: the newest entries.")
    tags: list[str] = Field(default=[], description="Only entries with these tags.")
    match: Literal["any", "all"] = Field(default="any", description="Whether an entry needs one of the tags or all.")
    start: str | None = Field(default=None, description="Only entries from this day on: YYYY-MM-DD.")
    end: str | None = Field(default=None, description="Only entries until this day, the whole of it.")
    key: _Key = Field(default="", description="Key of a result, to read all of it in place of a search.")
    page: int = Field(default=1, description="Page of the results, or of what the key names, from 1.")


class _Conversation(_Arguments):
    """Search earlier turns of the conversation by meaning and words; the best fitting come first."""

    query: str = Field(default="", description="What to look for.")
    roles: list[str] = Field(default=list(archives.ROLES), description="Whose words: user, assistant, or both.")
    start: str | None = Field(default=None, description="Only turns from this day on: YYYY-MM-DD.")
    end: str | None = Field(default=None, description="Only turns until this day, the whole of it.")
    key: _Key = Field(default="", description="`turn` or `key` of a memory, to read all of it in place of a search.")
    page: int = Field(default=1, description="Page of the results, or of what the key names, from 1.")


class _ByDate(_Arguments):
    """List the turns of the conversation between two days, both included, the oldest first."""

    start_date: str = Field(description="First day: YYYY-MM-DD.")
    end_date: str = Field(description="Last day, the whole of it: YYYY-MM-DD.")
    page: int = Field(default=1, description="Page of the results, from 1.")


_ARGUMENTS: dict[str, type[_Arguments]] = {
    "archival_memory_insert": _Insert,
    "archival_memory_search": _Search,
    "conversation_search": _Conversation,
    "conversation_search_date": _ByDate,
}
_CORE = [tool["function"]["name"] for tool in CORE_TOOLS]


def _with_heartbeat(tool: JSON) -> JSON:
    function = tool["function"]
    asked = {"type": "boolean", "description": "Whether you want another go after this one; searches give you one."}
    parameters = function["parameters"] | {"properties": function["parameters"]["properties"] | {HEARTBEAT: asked}}
    return tool | {"function": function | {"parameters": parameters}}


TOOLS: list[JSON] = [
    _with_heartbeat(tool) for tool in [*CORE_TOOLS, *(tool_schema(name, args) for name, args in _ARGUMENTS.items())]
]
_NOTING = {*_CORE, "archival_memory_insert"} - {"core_memory_remove"}


def tools_for(state: CompanionState, context: CompanionContext) -> list[JSON]:
    """Return what the model may call in this turn; in one that is not to be remembered, nothing that notes anything."""
    if is_private(state):
        return [tool for tool in TOOLS if tool["function"]["name"] not in _NOTING]
    return [*TOOLS, *(_with_heartbeat(tool.schema) for tool in context.EXTRAS.core_tools)]


class CompanionTools(TurnTools):
    """Core memory, archival memory and the conversation for one round of calls; `state` has what these changed."""

    def __init__(self, state: CompanionState, runtime: Runtime[CompanionContext]) -> None:
        edits = [*_CORE, *(tool.name for tool in runtime.context.EXTRAS.core_tools)]
        super().__init__([*edits, *_ARGUMENTS], noting={*_NOTING, *edits} - {"core_memory_remove"})
        self.state, self.notices, self._runtime, self._edits = state, list[Notice](), runtime, edits

    async def run(self, call: Call) -> ToolMessage:
        """Run a call; what does not fit changes nothing, nor does what the store refuses."""
        try:
            return answer(call, await self._run(call))
        except (EditError, BadQueryError) as error:
            return answer(call, str(error), ok=False)
        except Exception as error:  # noqa: BLE001 (any store may be behind this; the conversation goes on without)
            text = f"{call.name} could not be done."
            self.notices.append(failure_notice(self.state.turn, "use_tools", text, error))
            return answer(call, f"{call.name} failed, and nothing was changed: {error!s:.1000}", ok=False)

    def asks_again(self, call: Call) -> bool:
        """Whether a call searches, or asks for another go."""
        return (call.name in _ARGUMENTS and "search" in call.name) or call.args.get(HEARTBEAT) is True

    async def _run(self, call: Call) -> str:
        if call.problem:
            raise EditError(f"{call.name}: {call.problem}")
        args = {name: value for name, value in call.args.items() if name != HEARTBEAT and value is not None}
        if call.name in self._edits:
            info, context = self._runtime.execution_info, self._runtime.context
            origin = f"{info.thread_id}/{info.checkpoint_id}/{call.id}" if info else call.id
            edit, page, own = call._replace(args=args), self.state.core, context.EXTRAS.core_tools
            core, text = await edit_section(page, edit, self._runtime.store, context.user, origin, own)
            self.state = self.state.model_copy(update={"core": core})
            return text
        try:
            arguments: Any = _ARGUMENTS[call.name].model_validate(args)
        except ValidationError as error:
            raise EditError(f"{call.name}: {argument_problems(error, _ARGUMENTS[call.name])}") from error
        if call.name != "archival_memory_insert":
            search = _search_archive if isinstance(arguments, _Search) else _search_talk
            return await search(arguments, self.state, self._runtime)
        entry = archives.new_entry(arguments.content, arguments.tags)
        entry |= {"turn": self.state.turn, "said_at": self.state.opened_at}
        archive = {"archived": [*self.state.archived, entry], "archive_count": self.state.archive_count + 1}
        self.state = self.state.model_copy(update=archive)
        return f"Kept. Archival memory has {self.state.archive_count} entries."


async def use_tools(state: CompanionState, runtime: Runtime[CompanionContext]) -> JSON:
    """Answer each call of the last message, in order; one that does not fit changes nothing and is answered why."""
    tools = CompanionTools(state, runtime)
    done = await run_round(state, tools, runtime.context.max_tool_rounds)
    return {
        "messages": done.messages,
        "core": tools.state.core.patch_from(state.core),
        "archived": tools.state.archived,
        "archive_count": tools.state.archive_count,
        "notices": tools.notices,
    }


async def _search_archive(arguments: _Search, state: CompanionState, runtime: Runtime[CompanionContext]) -> str:
    archive = runtime.context.campaign_namespace("archive")
    if arguments.key.strip():
        waiting = archives.waiting_entries(state.archived)
        return await open_memory(state, runtime, [archive], arguments.key, arguments.page, waiting=waiting)
    size, now = runtime.context.search_results, datetime.now(runtime.context.zone)
    days = archives.read_days(arguments.start, arguments.end, now)
    query = archives.ArchiveQuery(
        arguments.query, arguments.tags, every_tag=arguments.match == "all", days=days, page=arguments.page, size=size
    )
    before = state.remembered_through + 1
    results = await archives.search_archive(
        runtime.store, archive, query, timeline=state.timeline, before=before, waiting=state.archived
    )
    return await _page_text(results, arguments.query, state, runtime.context)


async def _search_talk(args: _Conversation | _ByDate, state: CompanionState, runtime: Runtime[CompanionContext]) -> str:
    size, page, now = runtime.context.search_results, args.page, datetime.now(runtime.context.zone)
    if isinstance(args, _ByDate):
        days = archives.read_days(args.start_date, args.end_date, now, ("start_date", "end_date"))
        query = archives.ConversationQuery(days=days, page=page, size=size)
    elif args.key.strip():
        spaces = [runtime.context.campaign_namespace(name) for name in ("exchanges", FACTS)]
        return await open_memory(state, runtime, spaces, args.key, page)
    elif not args.query.strip():
        send = "send words, or a key, or list days with conversation_search_date."
        raise BadQueryError(f"query: got a blank text; {send}")
    else:
        days = archives.read_days(args.start, args.end, now)
        query = archives.ConversationQuery(args.query, args.roles, days, page, size)
    if runtime.store is None:
        raise BadQueryError("There is no store here: only the turns of the conversation above are known.")
    exchanges, before = runtime.context.campaign_namespace("exchanges"), min(state.turn, state.remembered_through + 1)
    talks = await archives.search_conversation(runtime.store, exchanges, query, timeline=state.timeline, before=before)
    return await _page_text(talks, query.text, state, runtime.context)


async def _page_text(results: archives.Page[JSON], query: str, state: CompanionState, context: CompanionContext) -> str:
    """Render a page of results, which together take no more tokens than the prompt's memories."""
    now = datetime.now(context.zone)

    def cost(record: Recalled) -> int:
        return math.ceil((len(_line(record, now)) + 1) / 4)

    items = [item | {_VOICES[name]: item.get(name, "") for name in _VOICES} for item in results.items]
    tokens = state.fit_tokens(context.recall_tokens or Recall.tokens, context.model)
    shown = await archives.fit_excerpts(items, query, tokens, cost)
    return "\n".join([results.heading, *(_line(record, now) for record in shown)])


def _line(record: Recalled, now: datetime) -> str:
    value, (said, reply) = record.value, record.words
    said_at = str(value.get("said_at") or "")
    when = {"said_at": f"{datetime.fromisoformat(said_at).astimezone(now.tzinfo):%Y-%m-%d %H:%M}"} if said_at else {}
    of_talk = "text" not in value
    shown = {"turn": value.get("turn") if of_talk else None, "user" if of_talk else "text": said, "assistant": reply}
    shown |= {"tags": value.get("tags"), "key": value.get("key") if record.is_cut else None}
    age = phrase_age(said_at or None, now)
    return render_value(when | {"age": age} | {name: part for name, part in shown.items() if part})
