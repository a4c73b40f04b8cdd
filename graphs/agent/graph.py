"""build_agent: the machine that keeps the notebooks it is given."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from langchain_core.language_models import BaseChatModel
from langchain_core.tools import BaseTool
from langgraph.graph import END, START

from questbook.graphs.agent import nodes, prompts
from questbook.graphs.agent.context import Context, context_of
from questbook.graphs.agent.description import Agent, Mode, listed
from questbook.graphs.agent.edges import (
    route_again,
    route_answer,
    route_answered,
    route_filled,
    route_hook,
    route_learned,
    route_mode,
    route_model,
    route_remembered,
    route_reply,
    route_start,
    route_tools,
    route_upkeep,
)
from questbook.graphs.agent.hooks import HOOKS, Hook, hook_node, nodes_of
from questbook.graphs.agent.state import AgentInput, AgentState, state_of
from questbook.graphs.agent.tools import use_tools
from questbook.graphs.reflect.trigger import reflect
from questbook.graphs.turn.app_tools import tools_from
from questbook.graphs.turn.buffer import condense
from questbook.graphs.turn.machine import Machine
from questbook.graphs.turn.node import ADDS, ANSWERS, ASKS, Node
from questbook.graphs.turn.recall import Recall
from questbook.graphs.turn.turn import route_to
from questbook.memory.buffer.policies import BufferPolicy
from questbook.notebooks import Notebook, Scope

if TYPE_CHECKING:
    from langchain.agents.middleware import AgentMiddleware


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
    facts: bool = False,
    middleware: Sequence[AgentMiddleware[Any, Any]] = (),
) -> Machine[Any, Any]:
    """Return an agent that keeps these notebooks, uncompiled: compile it with a checkpointer and a store of your own.

    Args:
        notebooks: What is tracked. Each class says when its page is written (`UPDATE`), where it is in the prompt
            (`PLACE`) and how long it may be (`LIMIT`).
        name: Keeps the agent's memories apart from those of others; no colon. In a team, its node has this name, too.
        instructions: Instructions to the model in every mode.
        modes: What the agent does when; the first that applies counts. Without any, it interviews for the notebooks
            that are filled once, then answers.
        buffer: Which turns are in the prompt word for word, such as `LastTurns(6)`; None: as the settings say.
        recall: How much of what was said earlier comes back, such as `Recall(tokens=400)`; None: as the settings say.
        model: Default of the setting `model`, such as "openai:gpt-4.1-mini", or a chat model.
        tools: LangChain tools, or functions with a docstring, that the model may call in its replies.
        handoffs: Nodes of a parent graph to hand over to, each with when to do that; see `as_node`.
        shared: Those of the notebooks that other agents of a parent graph write, too.
        scope: Whose what was said is, to be recalled: "user": all threads of a user recall it, a new one too; "thread":
            each only its own; "campaign": a new thread goes on from where the last turn of any thread ended. Each
            notebook says its own `SCOPE`.
        facts: Whether facts are noted after each reply, by one more call of the model, and recalled: a later fact of a
            slot ends the earlier one. The settings `reflection` and `reflection_importance` say when they are reflected
            on.
        middleware: LangChain's middleware, the first outermost: its hooks are around the replies and their tools, its
            channels are in the agent's state, and go back with it.

    Raises:
        DeclarationError: An argument makes no sense; the message says which, and what is allowed.
    """
    agent = Agent(
        name=name,
        instructions=instructions,
        notebooks=listed(notebooks),
        modes=tuple(modes),
        buffer=buffer,
        recall=recall,
        tools=tools_from([*tools, *(tool for each in middleware for tool in getattr(each, "tools", ()))]),
        handoffs=dict(handoffs or {}),
        shared=tuple(shared),
        scope=scope,
        facts=facts,
        middleware=tuple(middleware),
    )
    agent.check(list(AgentState.model_fields))
    context = context_of(name, model, facts=facts)
    return _build(agent, Machine(state_of(agent), context_schema=context, input_schema=AgentInput), context)


def _build(agent: Agent, builder: Machine[Any, Any], context: type[Context]) -> Machine[Any, Any]:
    node = partial(Node[Any], context=context.of)
    upkeep = partial(node, upkeep=True)
    interviews = [mode.name for mode in agent.all_modes() if mode.fills]
    answers = [mode.name for mode in agent.all_modes() if not mode.fills]
    after = ["update_pages", "remember"] if agent.kept else ["remember"]
    hooks = {hook: nodes_of(agent.middleware, hook) for hook in HOOKS}
    # Where a turn goes: to the first node of a hook, if a middleware has it.
    asked = hooks["before_model"][:1]
    replied, waiting = (hooks["after_agent"][:1] or nexts for nexts in (after, [END]))
    tools = ["use_tools"] if agent.has_tools else []
    builder.transformers = [each for one in agent.middleware for each in getattr(one, "transformers", ())]

    builder.add_node("begin", node(nodes.begin))
    for mode in interviews:
        builder.add_node(mode, node(nodes.fill), metadata=ASKS)
    builder.add_node("recall", node(nodes.recall))
    for mode in answers:
        builder.add_node(mode, node(nodes.respond), metadata=ANSWERS)
    if agent.has_tools:
        builder.add_node("use_tools", node(use_tools))
    for each in agent.middleware:
        for hook in HOOKS:
            if f"{each.name}.{hook}" in hooks[hook]:
                builder.add_node(f"{each.name}.{hook}", node(hook_node(each, hook)), metadata=ADDS)
    if agent.kept:
        builder.add_node("update_pages", upkeep(nodes.update_pages))
    builder.add_node("remember", upkeep(nodes.remember))
    if agent.facts:
        builder.add_node("learn", upkeep(nodes.learn))
        builder.add_node("reflect", upkeep(reflect))
    builder.add_node("condense", upkeep(condense(prompts.CONDENSE)))

    builder.add_conditional_edges(START, route_start(context), ["begin"])
    first = hooks["before_agent"][:1]
    builder.add_conditional_edges(
        "begin", route_to(first[0]) if first else route_mode, first or [*(asked or interviews), "recall"]
    )
    for mode in interviews:
        others = asked or [other for other in interviews if other != mode]
        builder.add_conditional_edges(mode, route_filled(mode), [*others, "recall", *waiting])
    builder.add_conditional_edges("recall", route_model, asked or answers)
    for mode in answers:
        builder.add_conditional_edges(mode, route_answer, hooks["after_model"][:1] or [*tools, *replied])
    if agent.has_tools:
        builder.add_conditional_edges("use_tools", route_again, [*(asked or answers), *replied])
    onward: dict[Hook, Callable[[Any], str]] = {
        "before_agent": route_mode,
        "before_model": route_reply,
        "after_model": route_tools,
        "after_agent": route_answered,
    }
    places = {*asked, *interviews, *answers, "recall", *tools, *replied, *waiting, *after}
    for hook, names in hooks.items():
        for name, following in zip_longest(names, names[1:]):
            then = route_hook(onward[hook] if following is None else route_to(following).route)
            builder.add_conditional_edges(name, then, sorted(places | ({following} if following else set())))
    if agent.kept:
        builder.add_conditional_edges("update_pages", route_to("remember"), ["remember"])
    if agent.facts:
        builder.add_conditional_edges("remember", route_remembered, ["learn", "condense", END])
        builder.add_conditional_edges("learn", route_learned(context), ["reflect", "condense", END])
        builder.add_conditional_edges("reflect", route_upkeep, ["condense", END])
    else:
        builder.add_conditional_edges("remember", route_upkeep, ["condense", END])
    builder.add_conditional_edges("condense", route_to(END), [END])
    return builder
