"""AgentState: the channels of every agent; those of its pages are added when it is built."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import Field, create_model
from pydantic.json_schema import SkipJsonSchema

from questbook.graphs.agent.description import Agent
from questbook.graphs.turn.channels import Last, Own
from questbook.graphs.turn.facts import FACT_CHANNELS, FactState
from questbook.graphs.turn.state import TurnInput, TurnState, patches
from questbook.types import JSON


class AgentInput(TurnInput):
    """What a caller sends: the person's message; a team also sends the agent's conversation, which its state holds."""

    seat: SkipJsonSchema[JSON] = Field(default_factory=dict)  # people need not see it when they send a message


class AgentState(TurnState):
    """State of one thread of an agent: the channels of every conversation, and its own.

    Attributes:
        mode: Mode of the current turn.
        noted: Last turn that each page takes account of, by channel.
        seat: Channels as a team's state holds them, from which the turn goes on; see `as_node`.
        handover: Node of the team to which the turn hands over; "" if to none.
        agreed: Pages of scope "user" as thread and store last agreed on them (`questbook.graphs.turn.shared_pages`).
    """

    AGENT: ClassVar[Agent]
    """What the agent is made of."""
    CARRIED: ClassVar[tuple[str, ...]] = (*TurnState.CARRIED, "noted")

    mode: Annotated[str, Last] = ""
    noted: Annotated[dict[str, int], Last] = Field(default_factory=dict)
    seat: Annotated[JSON, Last] = Field(default_factory=dict)
    handover: Annotated[str, Last] = ""
    agreed: Annotated[JSON, Last] = Field(default_factory=dict)

    @property
    def may_leave(self) -> int:
        """Last turn that every page takes account of and that is in the store, so that it may leave the buffer."""
        return min(self.noted_through, self.remembered_through)

    @property
    def noted_through(self) -> int:
        """Last turn that all pages take account of which are written after replies."""
        return min((self.noted.get(channel, 0) for channel in self.AGENT.kept), default=self.turn)


class FactAgentState(AgentState, FactState):
    """State of an agent that notes facts."""

    CARRIED: ClassVar[tuple[str, ...]] = (*AgentState.CARRIED, *FACT_CHANNELS)


def state_of(agent: Agent) -> type[AgentState]:
    """Make the state's class, with a channel for each page."""
    channels: dict[str, Any] = {
        channel: (Annotated[page, patches(page, bounded=not agent.is_shared(page))], Field(default_factory=page))
        for channel, page in agent.pages.items()
    }
    channels["machine"] = (Annotated[str, Own(f"agent:{agent.name}")], "")
    base: type[AgentState] = FactAgentState if agent.facts else AgentState
    state = create_model("AgentState", __base__=base, __module__=__name__, **channels)
    state.MACHINE = f"agent:{agent.name}"
    state.AGENT, state.PAGES, state.BUFFER, state.SCOPE = agent, agent.pages, agent.buffer, agent.scope
    return state
