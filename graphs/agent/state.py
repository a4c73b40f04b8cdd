"""AgentState: the channels of every agent; those of its pages are added when it is built."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

from questbook.graphs.agent.spec import AgentSpec
from questbook.graphs.turn.channels import Last
from questbook.graphs.turn.pages import PageState
from questbook.graphs.turn.state import FACT_CHANNELS, FactState, TurnInput
from questbook.types import JSON


class AgentInput(TurnInput):
    """What a caller sends: the person's message; a team also sends the agent's conversation, which its state holds."""

    seat: SkipJsonSchema[JSON] = Field(default_factory=dict)  # people need not see it when they send a message


class AgentState(PageState):
    """State of one thread of an agent: the channels of a conversation with pages, and its own."""

    SPEC: ClassVar[AgentSpec]

    mode: Annotated[str, Last] = ""
    """Mode of the current turn."""
    seat: Annotated[JSON, Last] = Field(default_factory=dict)
    """Channels as a team's state holds them, from which the turn goes on; see `as_node`."""
    handover: Annotated[str, Last] = ""
    """Node of the team to which the turn hands over; "" if to none."""


class FactAgentState(AgentState, FactState):
    """State of an agent that notes facts."""

    CARRIED: ClassVar[tuple[str, ...]] = (*AgentState.CARRIED, *FACT_CHANNELS)
