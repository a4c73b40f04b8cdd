"""build_agent: the machine that keeps the notebooks it is given."""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from langchain_core.language_models import BaseChatModel
from langchain_core.tools import BaseTool
from langgraph.graph import END, START

from questbook.graphs.agent import nodes
from questbook.graphs.agent.spec import AgentContext, AgentSpec, AgentState, FactAgentState, FactContext, Mode
from questbook.graphs.reflect.trigger import learn, reflect
from questbook.graphs.settings import Metadata, Team
from questbook.graphs.turn.buffer import condense, upkeep_edge
from questbook.graphs.turn.facts import FactNotes, rules_of
from questbook.graphs.turn.node import ANSWERS, ASKS, Machine, Node
from questbook.graphs.turn.pages import due_pages, listed, remember, state_of, update_pages
from questbook.graphs.turn.recall import Recall
from questbook.graphs.turn.state import TurnInput
from questbook.graphs.turn.tool_calls import has_calls, has_results, tools_from
from questbook.memory.buffer.policies import BufferPolicy
from questbook.notebooks import Notebook, Scope

StateT = TypeVar("StateT", bound=AgentState)
"""The state of one agent. An edge must not name AgentState: LangGraph would read that, which has no pages."""


def route_mode(state: StateT) -> str:
    """Go into the turn's mode: an interview, or an answer with what is recalled for it."""
    return state.mode if state.SPEC.named(state.mode).fills else "recall"


def route_tools(state: StateT) -> str:
    """Run the tools that the model called; a reply without such a call ends the person's wait."""
    return "use_tools" if has_calls(state) else route_answered(state)


def route_again(state: StateT) -> str:
    """Ask the model again while results come last, unless the person is handed over."""
    return state.mode if has_results(state) and not state.handover else route_answered(state)


def route_answered(state: StateT) -> str:
    """Bring the pages up to date that are due after this turn."""
    return "update_pages" if due_pages(state) else "remember"


def build_agent(
    notebooks: Sequence[type[Notebook]],
    *,
    name: str = "agent",
    instructions: str = "",
    modes: Sequence[Mode] = (),
    buffer: BufferPolicy | None = None,
    recall: Recall | None = None,
    model: str | BaseChatModel | None = None,
    tools: Sequence[BaseTool | Callable[..., Any]] = (),
    handoffs: Mapping[str, str] | None = None,
    shared: Sequence[type[Notebook]] = (),
    scope: Scope = "user",
    facts: bool | FactNotes = False,
    team: Team | None = None,
    metadata: Metadata | None = None,
    remember_tools: Collection[str] = (),
) -> Machine[Any, Any]:
    """Return an agent that keeps these notebooks, uncompiled: compile it with a checkpointer and a store of your own.

    A DeclarationError refuses an argument that makes no sense.

    Args:
        notebooks: What is tracked. Each class says when and where (`UPDATE`, `PLACE`), and how long it is (`LIMIT`).
        name: Keeps the agent's memories apart from those of others; no colon. In a team, its node has this name, too.
        instructions: Instructions to the model in every mode.
        modes: What it does when; the first that applies counts. None: interview for pages filled once, then answer.
        buffer: Which turns are in the prompt word for word, such as `LastTurns(6)`; None: as the settings say.
        recall: How much of what was said earlier comes back; None: as the settings say.
        model: Default of the setting `model`, or a chat model.
        tools: LangChain tools, or functions with a docstring, that the model may call in its replies.
        handoffs: Nodes of a parent graph to hand over to, each with when to do that; see `as_node`.
        shared: Those of the notebooks that others of a parent graph write, too.
        scope: Who recalls what was said: "user": all threads of a user; "thread": each its own; "campaign": a new one
            goes on from where the last turn of any thread ended. Each notebook says its own `SCOPE`.
        facts: Whether facts are noted after replies, recalled and reflected on; `FactNotes(…)`: how.
        team: Whose facts are recalled beside the user's own, as in `TimelineMemoryMiddleware`.
        metadata: What is written with each exchange and fact, as there.
        remember_tools: Names of `tools` whose results are remembered with the reply, such as what a search found.
    """
    spec = AgentSpec(
        name=name,
        instructions=instructions,
        notebooks=listed(notebooks),
        modes=listed(modes),
        buffer=buffer,
        recall=recall,
        tools=tools_from(tools),
        handoffs=handoffs or {},
        shared=listed(shared),
        scope=scope,
        facts=isinstance(facts, FactNotes) or facts,
        app=rules_of(facts, team, metadata),
        remember_tools=remember_tools,
    )
    return _build(spec, model, facts)


def _build(spec: AgentSpec, model: str | BaseChatModel | None, facts: bool | FactNotes) -> Machine[Any, Any]:
    spec.check(list(AgentState.model_fields), model)
    defaults = facts.settings() if isinstance(facts, FactNotes) else {}
    context = spec.settings(FactContext if spec.facts else AgentContext, model, defaults)
    state = state_of(spec, FactAgentState if spec.facts else AgentState)
    builder: Machine[Any, Any] = Machine(state, context_schema=context, input_schema=TurnInput)
    builder.add_steps(nodes.begin)
    for mode in spec.all_modes():
        action, metadata = (nodes.fill, ASKS) if mode.fills else (nodes.respond, ANSWERS)
        builder.add_node(mode.name, Node(action, context.of), metadata=metadata)
    builder.add_steps(nodes.recall, *([nodes.use_tools] if spec.has_tools else []))
    noting: list[Any] = [learn, reflect] if spec.facts else []
    builder.add_steps(*([update_pages] if spec.kept else []), remember, *noting, condense(), upkeep=True)
    _add_edges(builder, spec, context)
    return builder


def _add_edges(builder: Machine[Any, Any], spec: AgentSpec, context: type[AgentContext]) -> None:
    edge = builder.add_conditional_edges
    interviews = [mode.name for mode in spec.all_modes() if mode.fills]
    answers = [mode.name for mode in spec.all_modes() if not mode.fills]
    after = ["update_pages", "remember"] if spec.kept else ["remember"]

    builder.add_edge(START, "begin")
    edge("begin", route_mode, [*interviews, "recall"])
    for mode in interviews:  # one that is over has set the next mode
        others = [other for other in interviews if other != mode]
        ends = partial(lambda mode, state: "remember" if state.mode == mode else route_mode(state), mode)
        edge(mode, ends, [*others, "recall", "remember"])
    edge("recall", lambda state: state.mode, answers)
    for mode in answers:
        edge(mode, route_tools if spec.has_tools else route_answered, [*(["use_tools"] * spec.has_tools), *after])
    if spec.has_tools:
        edge("use_tools", route_again, [*answers, *after])
    if spec.kept:
        builder.add_edge("update_pages", "remember")
    if spec.facts:
        builder.add_edge("remember", "learn")
        edge("learn", upkeep_edge(context, reflects=True), ["reflect", "condense", END])
        edge("reflect", upkeep_edge(context), ["condense", END])
    else:
        edge("remember", upkeep_edge(context), ["condense", END])
    builder.add_edge("condense", END)
