"""What an agent's model is sent of the conversation: the last turns, as LangChain's guide to memory has it."""

from __future__ import annotations

from typing import Any

from langchain.agents.middleware import wrap_model_call

from benchmarks.forkbench.bench import window


@wrap_model_call
async def trim(request: Any, handler: Any) -> Any:
    """Send the last turns."""
    return await handler(request.override(messages=window(request.messages)))
