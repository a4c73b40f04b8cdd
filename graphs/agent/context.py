"""The settings of an agent."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from questbook.graphs.settings import NotingContext, Settings


class AgentContext(Settings):
    """An agent's settings: those that graphs share, and its own."""

    STAND_IN: ClassVar[Literal["storyteller", "assistant"]] = "assistant"

    max_tool_rounds: int = Field(default=6, ge=1, le=20, description="Times the model may call tools in one turn.")


class FactContext(AgentContext, NotingContext):
    """Settings of an agent that notes facts, and reflects on them."""
