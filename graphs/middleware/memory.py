"""TimelineMemoryMiddleware: long-term memory for an agent of LangChain's, which goes back with the agent's checkpoint.

Its steps are those of `questbook.graphs.turn`, which it gives the agent's state as they know it (`_read`).
"""

import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from langchain.agents.middleware import (
    AgentMiddleware,
    AgentState,
    ExtendedModelResponse,
    ModelRequest,
    ModelResponse,
    ToolCallRequest,
    hook_config,
)
from langchain.agents.structured_output import ToolStrategy
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import RemoveMessage, SystemMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.runtime import Runtime
from langgraph.types import Command
from pydantic import Field, create_model

from questbook.graphs.errors import InputError
from questbook.graphs.middleware.owner import UNKNOWN, Resumers, Runs, User, added_messages, owner_of, refusal
from questbook.graphs.middleware.state import CHANNELS, open_turns, read_turns, result_of, state_schema, with_words
from questbook.graphs.middleware.tools import TEXTS, memory_tools, page_tool, run_of, write_staged
from questbook.graphs.reflect.trigger import learn, reflect
from questbook.graphs.settings import Metadata, NotingContext, Team
from questbook.graphs.turn import recall as turn_recall
from questbook.graphs.turn.buffer import condense, conversation
from questbook.graphs.turn.facts import FactNotes, rules_of
from questbook.graphs.turn.pages import MADE, PageState, Spec, declare, expect, listed, remember, state_of, update_pages
from questbook.graphs.turn.prompt import Section, escape, page_sections, tag
from questbook.graphs.turn.scope import run_thread
from questbook.graphs.turn.sessions import begin, messages_before
from questbook.graphs.turn.state import FactState, Memory, Notice, notice
from questbook.graphs.turn.tool_calls import fitting, page_channels_in
from questbook.memory.buffer.policies import BufferPolicy
from questbook.memory.store.any_store import SyncStore
from questbook.memory.sync import run_sync
from questbook.notebooks import DeclarationError, Notebook
from questbook.types import JSON, check_choice

_INSIDE = (
    "This agent runs inside another graph, whose checkpoints do not hold its memory: nothing is recalled or remembered "
    "here. The outer agent remembers the exchange; for agents that are nodes of one graph see `shared`."
)
_MOST_UNDER_WAY = 1_024  # turns whose model is kept
_log = logging.getLogger(__name__)
Step = Callable[[Any, Runtime[Any]], Awaitable[JSON]]
"""Something that is done after a reply: returns the channels to write."""


class TimelineMemoryMiddleware(AgentMiddleware[Any, Any, Any]):
    """Long-term memory that follows the checkpoint: rewind, retry, edit or fork a thread, and its memory is as it was.

        agent = create_agent(model, tools, middleware=[TimelineMemoryMiddleware(user="ann")], checkpointer=…, store=…)

    A DeclarationError refuses an argument that makes no sense.

    Args:
        user: Whose memory it is: a name, or a function of the run (`lambda runtime: runtime.context.user_id`); None:
            who logged in to LangGraph Server, or `user` of the context or of `configurable`. A run for which these
            name nobody, or two that differ, is refused.
        agent_name: Keeps what this agent remembers apart from the user's other agents; no colon.
        recall: How much of what was said comes back into the prompt, and how it is chosen; None: as the settings say.
        notebooks: Typed pages in the agent's state. Each is in the prompt, and is written after replies or by a tool,
            as its `UPDATE` says.
        facts: Whether facts are noted after replies, and reflected on; None: they are not.
        tools: Whether the model has the tools `search_memory` and `manage_memory`.
        buffer: Which turns are in the prompt word for word, such as `LastTurns(6)`; None: all that `messages` holds,
            which `SummarizationMiddleware` may shorten.
        model: Takes the notes after a reply: a chat model or its name; None: the agent's own.
        scope: Who sees exchanges and facts: "user", all threads of the user, each what the other ones know now; or
            "thread", the thread alone. Either way nobody sees what a thread took back.
        shared: Whether a parent graph holds the memory of its agents, in a state derived from `MemoryState`.
        team: Whose facts are recalled beside the user's own: a team's name, or a function of the run; None: nobody's.
            They are what `Memories(store, team=…)` has; nothing that the user says is written there.
        metadata: What is written with each exchange and fact, to filter by: a JSON object, or a function of the run.
        remember_tools: Names of the agent's tools whose results are remembered with the reply: what a search found, or
            a subagent. The result of a run (`response_format`) always is.
        resumed_by: Who else may resume a run that waits for an answer (`Command(resume=…)`): names of users, or a
            function of the run that says whether its user may; None: nobody. It is still the memory of the user with
            whom the thread began: all other runs of others are refused with an InputError.
    """

    def __init__(
        self,
        *,
        user: User | None = None,
        agent_name: str = "agent",
        recall: turn_recall.Recall | None = None,
        notebooks: Sequence[type[Notebook]] = (),
        facts: FactNotes | None = None,
        tools: bool = False,
        buffer: BufferPolicy | None = None,
        model: str | BaseChatModel | None = None,
        scope: Literal["thread", "user"] = "user",
        shared: bool = False,
        team: Team | None = None,
        metadata: Metadata | None = None,
        remember_tools: Collection[str] = (),
        resumed_by: Resumers | None = None,
    ) -> None:
        super().__init__()
        expect(isinstance(facts, FactNotes | None), "facts", facts, "FactNotes(), or None for no facts")
        own = "whether the model has search_memory and manage_memory. Tools of your own go to create_agent(tools=[…])"
        expect(tools is True or tools is False, "tools", tools, f"True or False: {own}")
        is_user = bool(user.strip()) if isinstance(user, str) else user is None or callable(user)
        expect(is_user, "user", user, "a name, a function of the run, or None")
        declare(check_choice, "shared", shared, True, False)
        spec = Spec(
            name=agent_name,
            notebooks=listed(notebooks),
            recall=recall,
            buffer=buffer,
            scope=scope,
            app=rules_of(facts, team, metadata),
            remember_tools=remember_tools,
        )
        spec.check([*CHANNELS, *AgentState.__annotations__, "recalled", "refused"], model, ("user", "thread"))
        for page in spec.interviewed.values():
            instead = "Take every_turn, every(n) or on_demand, or build the agent with build_agent."
            wrong = f"{page.__name__}.UPDATE: got once; an agent of LangChain's holds no interview."
            raise DeclarationError(f"{wrong} {instead}")
        self.user, self.recall, self.facts, self.model, self.shared = user, recall, facts, model, shared
        self.state_schema = state_schema(spec, shared=shared)
        self.tools = [
            *(memory_tools(self._tool_view, recall) if tools else []),
            *(page_tool(page, self._tool_view) for page in spec.on_demand.values()),
        ]
        self._spec = spec
        self._voices = turn_recall.OPENING if tools else turn_recall.ASSISTANT
        self._has_facts = bool(tools or facts or team)
        self._state_class: Any = create_model(
            "MemoryAgentState",
            __base__=(state_of(spec, PageState), FactState),
            __cls_kwargs__=MADE,
            staged=(list[JSON], Field(default_factory=list)),
        )
        self._defaults: JSON = dict(self._state_class().__dict__)
        del self._defaults["messages"]
        self._runs = Runs(spec, user, resumed_by, model, facts.settings() if facts else {"reflection": "off"})
        self._models = dict[tuple[str | None, str], BaseChatModel]()  # of turns under way, by thread and first message
        self._formats = set[str]()  # names of the tools that LangChain makes of `response_format`
        self._warned = False

    @hook_config(can_jump_to=["end"])
    def before_agent(self, state: Any, runtime: Runtime[Any]) -> JSON | None:
        """Open the turn: number it, and keep the person's words until it is in the store.

        On the thread of another user the message is taken out again, and `after_agent` refuses the run.
        """
        return run_sync(self.abefore_agent(state, _for_sync(runtime)))

    @hook_config(can_jump_to=["end"])
    async def abefore_agent(self, state: Any, runtime: Runtime[Any]) -> JSON | None:
        """As `before_agent`."""
        run = self._runs.of_caller(runtime)
        if self._is_inside(runtime):
            if not self._warned:
                _log.warning(_INSIDE)
            self._warned = True
            return None if state.get("notices") else {"notices": [notice(0, "memory", _INSIDE)]}
        owner, user = await owner_of(state, run), run.context.user
        if owner not in (None, user):
            update = _without_newest(state) | {"refused": refusal(str(owner), user)}
            if (before := await messages_before(run_thread(run))) is not None:  # also what it has changed or removed
                update["messages"] = [RemoveMessage(REMOVE_ALL_MESSAGES), *before]
            return update
        opened = await self._open(state, run)
        if opened is None:
            return None
        if owner is None:
            unknown = notice(opened["turn"], "memory", UNKNOWN.format(user=user))
            opened["notices"] = [*opened.get("notices", []), unknown]
        return opened | {"thread_owner": user}

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ExtendedModelResponse[Any]:
        """Put what this checkpoint remembers into the system message."""
        request, command = run_sync(self._remind(request, _for_sync(request.runtime)))
        return ExtendedModelResponse(handler(request), command)

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ExtendedModelResponse[Any]:
        """As `wrap_model_call`."""
        request, command = await self._remind(request, request.runtime)
        return ExtendedModelResponse(await handler(request), command)

    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], ToolMessage | Command[Any]]
    ) -> ToolMessage | Command[Any]:
        """Call a tool, unless the run is another user's; what it commands of a page has to fit."""
        run_sync(self._check_tool_call(request))
        return self._fitting(request, handler(request))

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]]
    ) -> ToolMessage | Command[Any]:
        """As `wrap_tool_call`."""
        await self._check_tool_call(request)
        return self._fitting(request, await handler(request))

    @hook_config(can_jump_to=["end"])  # an edge that reads the state: it refuses an edit that does not fit
    def after_agent(self, state: Any, runtime: Runtime[Any]) -> JSON | None:
        """Remember the turn, and do what else comes after a reply."""
        return run_sync(self.aafter_agent(state, _for_sync(runtime)))

    @hook_config(can_jump_to=["end"])
    async def aafter_agent(self, state: Any, runtime: Runtime[Any]) -> JSON | None:
        """As `after_agent`."""
        if state.get("refused"):
            raise InputError(state["refused"])
        # Nothing is due where other middleware has ended the run before it began here: the next turn opens this one.
        if self._is_inside(runtime) or not state.get("due"):
            return None
        answering = self._models.get((run_thread(runtime), state["opened_by"]))
        run = await self._runs.of_owner(state, runtime, model=answering)
        if result := result_of(state["messages"], self._formats):
            *past, current = state["due"]
            state = {**state, "due": [*past, current | {"result": result}]}
        now = self._read(state)
        first = min(entry["turn"] for entry in state["due"])
        now = now.model_copy(update={"remembered_through": min(now.remembered_through, first - 1)})
        update, notices = dict[str, Any](), list[Notice]()
        for step in self._upkeep():
            channels = await step(now, run)
            notices += channels.pop("notices", [])
            update |= channels
            now = now.after(channels)
        done = now.remembered_through >= now.turn
        update["due"] = [] if done else with_words(state["messages"], state["due"], self._spec.remember_tools)
        if removals := update.pop("messages", []):
            ids = {message.id for message in state["messages"]}
            update["messages"] = [removal for removal in removals if removal.id in ids]
        return {**update, "thread_owner": run.context.user} | ({"notices": notices} if notices else {})

    async def _open(self, state: Any, run: Runtime[NotingContext]) -> JSON | None:
        now, due = self._read(state), state.get("due", [])
        now.check_turns(state)
        turn, opened_by, due = open_turns(
            state["messages"], now.turn, state.get("opened_by", ""), due, self._spec.remember_tools
        )
        numbered: JSON = {"turn": turn, "opened_by": opened_by}
        if run_thread(run) is None:  # the caller keeps the conversation, and sends all of it each time
            due, numbered["remembered_through"] = due[-1:], turn - 1
        now = now.model_copy(update={"messages": read_turns(state["messages"], due)})
        if not turn or not now.messages:
            return None
        if now.is_repeated and not self.shared:  # a parent graph may call its agents several times in a run
            return _without_newest(state)
        *past, current = due
        due = [*past, current | {"newest": state["messages"][-1].id or ""}]
        begun = await begin(now, run, numbered=numbered)
        pages = {name: patch for name, patch in begun.update.items() if name in self._spec.pages}
        channels = {name: begun.update[name] for name in CHANNELS if begun.update.get(name) not in (None, "", [], {})}
        return {**channels, **numbered, **pages, "due": due}

    def _upkeep(self) -> list[Step]:
        return [
            *([self._noting(update_pages)] if self._spec.kept else []),
            remember,
            write_staged,
            *([self._noting(learn), self._noting(_reflect)] if self.facts else []),
            *([self._noting(condense())] if self._spec.buffer else []),
        ]

    def _noting(self, step: Step) -> Step:
        """Make a step that asks the model that answered the person: none is known if the run was resumed here."""

        async def note(state: Any, runtime: Runtime[Any]) -> JSON:
            known = self.model or (run_thread(runtime), state.opened_by) in self._models
            return await step(state, runtime) if known else {}

        return note

    async def _remind(
        self, request: ModelRequest[Any], runtime: Runtime[Any]
    ) -> tuple[ModelRequest[Any], Command[Any] | None]:
        """Return the request with what is remembered, and the command that keeps it for the turn's further calls."""
        values, schema = request.state, getattr(request.response_format, "schema", None)
        if schema is not None:
            self._formats |= {one.name for one in ToolStrategy(schema).schema_specs}
        self._keep_model((run_thread(runtime), str(values.get("opened_by", ""))), request.model)
        if self._is_inside(runtime) or not values.get("turn"):
            return request, None
        run = await self._runs.of_owner(values, runtime)
        now = self._read(values)
        if self._spec.buffer:
            request = request.override(messages=conversation(now, run.context))
        recalled = now.recalled
        command: Command[Any] | None = None
        if recalled is None:
            seen = read_turns(request.messages, [])  # `SummarizationMiddleware` may have shortened it

            async def plan_of(now: PageState, run: Runtime[NotingContext]) -> turn_recall.RecallPlan:
                facts, voices = self._has_facts, self._voices
                return turn_recall.assistant_plan(now, run.context, self.recall, facts=facts, voices=voices, shown=seen)

            found = await turn_recall.recall_or_notice(now, run, plan_of)
            recalled = found["recalled"]
            command = Command(update={name: value for name, value in found.items() if value or name == "recalled"})
        system = with_memory(request.system_message, now, recalled or [], self._voices)
        return request.override(system_message=system), command

    def _read(self, values: Mapping[str, Any]) -> PageState:
        """Return the agent's state as Questbook's own agents have it."""
        own: JSON = {name: values[name] for name in (*CHANNELS, "recalled") if values.get(name) is not None}
        pages = {channel: page.load(values.get(channel)) for channel, page in self._spec.pages.items()}
        messages = read_turns(values["messages"], values.get("due", []))
        # pydantic looks at the signature of each default factory again, which takes a millisecond and more
        state: PageState = self._state_class.model_construct(**self._defaults | own | pages, messages=messages)
        return state

    def _keep_model(self, turn: tuple[str | None, str], model: BaseChatModel) -> None:
        """Keep the model that answers in a turn, for its notes: runs side by side may have models of their own."""
        self._models.pop(turn, None)
        self._models[turn] = model
        if len(self._models) > _MOST_UNDER_WAY:  # runs that were interrupted and left
            del self._models[next(iter(self._models))]

    def _fitting(self, request: ToolCallRequest, result: ToolMessage | Command[Any]) -> ToolMessage | Command[Any]:
        if not isinstance(result, Command) or not isinstance(result.update, dict) or result.graph is not None:
            return result
        return replace(result, update=fitting(result.update, page_channels_in(self._read(request.state))))

    async def _check_tool_call(self, request: ToolCallRequest) -> None:
        run = run_of(request.runtime)
        if not self._is_inside(run) and request.state.get("turn"):
            await self._runs.of_owner(request.state, _for_sync(run), request.runtime.config)

    async def _tool_view(
        self, values: Any, runtime: Runtime[Any], config: RunnableConfig
    ) -> tuple[PageState, Runtime[NotingContext]]:
        return self._read(values), await self._runs.of_owner(values, runtime, config)

    def _is_inside(self, runtime: Runtime[Any]) -> bool:
        """Whether the agent runs inside another graph that does not hold its memory: as a subagent, or as a node."""
        info = runtime.execution_info
        return not self.shared and info is not None and "|" in (info.checkpoint_ns or "")


def _without_newest(state: Any) -> JSON:
    added = added_messages(state["messages"], state.get("opened_by", ""), state.get("due", []))
    return {"messages": [RemoveMessage(message) for message in added], "jump_to": "end"}


def _for_sync(runtime: Runtime[Any]) -> Runtime[Any]:
    """Return a run for work in the loop of sync callers: a store of another loop is used by its sync methods."""
    store = runtime.store
    return runtime.override(store=SyncStore(store)) if getattr(store, "_loop", None) is not None and store else runtime


async def _reflect(state: Any, runtime: Runtime[Any]) -> JSON:
    return await reflect(state, runtime) if runtime.context.reflects_at(state.unreflected) else {}


def with_memory(
    system: SystemMessage | None, state: PageState, memories: Sequence[Memory], voices: dict[str, str]
) -> SystemMessage | None:
    """Return the agent's system message with what it remembers; unchanged if that is nothing."""
    lines = Section("memories", turn_recall.memory_lines(memories, voices))
    sections = [*page_sections(state), Section("summary", escape(state.summary)), lines]
    filled = [tag(section) for section in sections if section.text]
    if not filled:
        return system
    text = "\n\n".join([TEXTS["RULES"], *filled])
    if system is None:
        return SystemMessage(text)
    if isinstance(system.content, str):
        return system.model_copy(update={"content": f"{system.content}\n\n{text}"})
    return system.model_copy(update={"content": [*system.content, {"type": "text", "text": f"\n\n{text}"}]})
