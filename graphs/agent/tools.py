"""An agent's tools: the pages written on demand, the application's own, and handing over."""

from __future__ import annotations

from typing import Any

from langchain_core.utils.function_calling import convert_to_openai_tool

from questbook.graphs.agent import prompts
from questbook.graphs.agent.description import HAND_OVER, Agent

JSON = dict[str, Any]


def tools_of(agent: Agent, *, silent: bool = False) -> list[JSON]:
    """Return what the model may call in its replies, in the OpenAI function format.

    Args:
        agent: The agent.
        silent: Whether the person asked that the turn not be remembered: then no page is offered.
    """
    pages = [] if silent else [page.tool() for page in agent.on_demand.values()]
    own = [convert_to_openai_tool(tool) for tool in agent.tools]
    return [*pages, *own, *([_hand_over(agent)] if agent.handoffs else [])]


def _hand_over(agent: Agent) -> JSON:
    whom = "; ".join(f"{name}: {when}" for name, when in agent.handoffs.items())
    to = {"type": "string", "enum": list(agent.handoffs), "description": "To whom."}
    function = {
        "name": HAND_OVER,
        "description": prompts.HAND_OVER.format(whom=whom),
        "parameters": {"type": "object", "properties": {"to": to}, "required": ["to"]},
    }
    return {"type": "function", "function": function}
