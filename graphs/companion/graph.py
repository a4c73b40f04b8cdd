"""The companion: a personal assistant that answers with a memory of its own, and edits it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from langgraph.graph import END, START
from langgraph.runtime import Runtime

from questbook.graphs.companion.context import CompanionContext, Extras
from questbook.graphs.companion.nodes import prompt_for, recall, recall_plan, remember, respond
from questbook.graphs.companion.state import CompanionState
from questbook.graphs.companion.tools import use_tools
from questbook.graphs.reflect.trigger import reflect
from questbook.graphs.turn.buffer import condense, upkeep_edge
from questbook.graphs.turn.facts import learn
from questbook.graphs.turn.node import ANSWERS, Machine, context_or_none
from questbook.graphs.turn.recall import with_recalled
from questbook.graphs.turn.state import TurnInput
from questbook.graphs.turn.tool_calls import has_calls, has_results
from questbook.memory.recall.query import Reranker
from questbook.notebooks import CoreTool, core_tool
from questbook.types import JSON

_UPKEEP = upkeep_edge(CompanionContext)


def route_remembered(state: CompanionState) -> str:
    """Note facts, unless the settings turn that off; then, or else, look after the buffer."""
    return "learn" if CompanionContext.of(context_or_none()).notes_facts else _UPKEEP(state)


def build_graph(
    *, core_tools: Sequence[CoreTool | Callable[..., str]] = (), rerank: Reranker | None = None
) -> Machine[CompanionState, CompanionContext]:
    """Return the machine, uncompiled: compile it with a checkpointer and a store of your own.

    `core_tools` are more tools that edit core memory, or functions that `questbook.notebooks.core_tool` makes tools of.
    `rerank`, given the message and what may be recalled, best first, returns it in an order of its own.
    """
    extras = Extras(tuple(each if isinstance(each, CoreTool) else core_tool(each) for each in core_tools), rerank)
    own = {"EXTRAS": extras}
    context: Any = type("CompanionContext", (CompanionContext,), own) if any(extras) else CompanionContext
    machine = Machine[CompanionState, CompanionContext]
    builder = machine(CompanionState, context_schema=context, input_schema=TurnInput)

    builder.add_steps(recall)
    builder.add_steps(respond, speaks=ANSWERS)
    builder.add_steps(use_tools)
    builder.add_steps(remember, learn, reflect, condense(), upkeep=True)

    builder.add_edge(START, "recall")
    builder.add_edge("recall", "respond")
    edge = builder.add_conditional_edges
    edge("respond", lambda state: "use_tools" if has_calls(state) else "remember", ["use_tools", "remember"])
    # `use_tools` puts the reply behind the results when the turn is over.
    edge("use_tools", lambda state: "respond" if has_results(state) else "remember", ["respond", "remember"])
    builder.add_conditional_edges("remember", route_remembered, ["learn", "condense", END])
    builder.add_conditional_edges("learn", upkeep_edge(CompanionContext, reflects=True), ["reflect", "condense", END])
    builder.add_conditional_edges("reflect", _UPKEEP, ["condense", END])
    builder.add_edge("condense", END)
    return builder


async def last_prompt(values: Mapping[str, Any], node: str, runtime: Runtime[CompanionContext]) -> JSON:
    """Make the prompt of a turn again from the channels before the node ran, as the dungeon master's `last_prompt`."""
    state = await with_recalled(CompanionState.model_validate(values), runtime, recall_plan)
    return {"recalled": state.recalled, "report": (await prompt_for(state, runtime)).report(node, state.turn)}


graph: Any = build_graph().compile()
"""The machine without checkpointer and store, for LangGraph Server and Studio, which bring their own."""
