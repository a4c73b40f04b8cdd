"""Graphs inside another graph: its state holds their conversations and shared notebooks, and goes back with all."""

from collections.abc import Mapping
from copy import copy
from operator import or_
from typing import Annotated, Any

from langchain_core.messages import AnyMessage, HumanMessage
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langgraph.channels import EphemeralValue, UntrackedValue
from langgraph.runtime import get_runtime
from langgraph.types import Command
from typing_extensions import TypedDict

from questbook.graphs.agent.spec import AgentSpec, AgentState
from questbook.graphs.errors import InputError
from questbook.graphs.turn.channels import Checked, Names
from questbook.graphs.turn.state import TurnState, reduce_messages
from questbook.notebooks import DeclarationError, Notebook
from questbook.types import JSON

_OF_THE_TURN = frozenset({"mode", "handover"})


class TeamState(TypedDict):
    """State of a parent graph; add a channel for each notebook that its agents share.

    Attributes:
        messages: What the person and the agents said.
        seats: State of the conversation of each graph inside, by the name of its node.
    """

    messages: Annotated[list[AnyMessage], Checked(list, reduce_messages, list)]
    seats: Annotated[dict[str, JSON], Checked(dict, or_, dict)]  # each agent writes its own entry


def as_node(graph: Any) -> RunnableLambda[Any, Any]:
    """Make one of Questbook's graphs a node of a parent graph, which is rewound and forked with it.

    It may be the dungeon master, the companion, or what `build_agent` makes, compiled without a checkpointer:
    `builder.add_node("dungeon_master", as_node(build_graph().compile()))`. The parent's state is a `TeamState`. The
    node is given the person's newest message, and returns what the graph said.

    An agent of `build_agent` can share notebooks: the parent has a channel for each that is in the agent's `shared`, by
    its channel's name: `ticket: Annotated[TicketNotebook, patches(TicketNotebook, bounded=False)]`. The agent is given
    the shared pages as they are, and the node returns of each the patch that the agent made: what others have written
    meanwhile, or write in the same step, is kept, and counts add up. Its node has the agent's name. An agent that hands
    over ends its own turn first, with its notes taken; then the parent goes on at the other's node. It may run many
    times in one step (`Send`); its own conversation is then what the last of them left.

    A DeclarationError refuses what is none of Questbook's graphs of turns, or has a checkpointer of its own, which
    would not go back with the parent; and when the node runs, a node that does not have the agent's name.
    """
    schema = getattr(getattr(graph, "builder", None), "state_schema", None)
    if not isinstance(schema, type) or not issubclass(schema, TurnState) or not schema.MACHINE:
        raise DeclarationError(
            f"as_node: got {graph!r:.80}; expected a compiled graph of Questbook's: the dungeon master's or the "
            "companion's build_graph().compile(), or build_agent(…).compile(). An agent of create_agent is a node as "
            "it is, with TimelineMemoryMiddleware(shared=True)."
        )
    if graph.checkpointer is not None:
        wrong = f"{schema.MACHINE!r} has a checkpointer of its own, which does not go back with the parent."
        remedy = "Compile it without a checkpointer: the parent's state holds its conversation."
        raise DeclarationError(f"as_node: {wrong} {remedy}")
    builder = copy(graph.builder)
    builder.input_schema = schema  # a caller of its own sends messages alone
    return _node(builder.compile(name=graph.name), schema)


def _node(machine: Any, schema: type[TurnState]) -> RunnableLambda[Any, Any]:
    """Make a node of a graph whose whole state goes in and comes out; an agent may share pages and hand over."""
    spec = schema.SPEC if issubclass(schema, AgentState) else None
    shared = {page.channel(): page for page in spec.shared} if spec else {}
    passing = (UntrackedValue, EphemeralValue)  # what no checkpoint holds
    held = [name for name, channel in machine.builder.channels.items() if not isinstance(channel, passing)]
    kept = [name for name in held if name not in {*shared, *_OF_THE_TURN}]
    name = spec.name if spec else schema.MACHINE

    def given(state: Any, config: RunnableConfig) -> JSON:
        seat = dict(_seats(state).get(_seat_name(spec, name, config), {}))
        owner = {"campaign": Names(seat["campaign"])} if "campaign" in seat else {}  # as a turn of the seat wrote it
        held = seat | {channel: _of(state, channel) for channel in shared}
        # As patches: a whole page would bring back the entries of an empty one that were deleted.
        pages = {name: page.load(held[name]).patch_from(page()) for name, page in schema.PAGES.items() if name in held}
        return {**seat, **owner, **pages, "messages": [*seat.get("messages", []), _newest(_of(state, "messages"))]}

    def returned(state: Any, after: Mapping[str, Any], config: RunnableConfig) -> Any:
        last = after["messages"][-1]
        held = {channel: after[channel] for channel in kept if channel in after}
        seat = {name: value.as_json() if isinstance(value, Notebook) else value for name, value in held.items()}
        said = [last] if last.type == "ai" else []
        update: JSON = {"messages": said, "seats": {_seat_name(spec, name, config): seat}}
        for channel, page in shared.items():
            patch = page.load(after[channel]).patch_from(page.load(_of(state, channel)))
            if patch or not isinstance(_of(state, channel), Mapping):  # it becomes JSON
                update[channel] = patch
        handover = after.get("handover")
        return Command(update=update, goto=handover) if handover else update

    def run(state: Any, config: RunnableConfig) -> Any:
        return returned(state, machine.invoke(given(state, config), config), config)

    async def arun(state: Any, config: RunnableConfig) -> Any:
        return returned(state, await machine.ainvoke(given(state, config), config), config)

    return RunnableLambda(run, arun, name=name)


def _seat_name(spec: AgentSpec | None, otherwise: str, config: RunnableConfig) -> str:
    """Return the name under which a node's conversation is kept: the node's, which of an agent is the agent's, too."""
    node = str(config.get("metadata", {}).get("langgraph_node", otherwise))
    if spec and node != spec.name:
        raise DeclarationError(
            f"Agent {spec.name!r} is the node {node!r}: expected one name for both, since an agent's conversation and "
            f"memories are kept by its name. Build it with build_agent(…, name={node!r}), or rename the node."
        )
    return node


def _seats(state: Any) -> JSON:
    seats: JSON | None = _of(state, "seats")
    if seats is None:
        raise InputError("The parent's state has no `seats`: derive it from TeamState; a Send brings {} for it.")
    return seats


def _newest(messages: Any) -> HumanMessage:
    """Return the person's newest message, under an id that is the same if the node is run again, and only then."""
    newest = next((message for message in reversed(messages or []) if isinstance(message, HumanMessage)), None)
    if newest is None:
        raise InputError("There is no message of role 'user' to answer. Send one.")
    info = get_runtime().execution_info
    message_id = f"{newest.id}@{info.checkpoint_id}" if info and info.checkpoint_id else None
    return newest.model_copy(update={"id": message_id})


def _of(state: Any, channel: str) -> Any:
    return state.get(channel) if isinstance(state, Mapping) else getattr(state, channel, None)
