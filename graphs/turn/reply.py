"""The reply of a turn: one question to the model, streamed, with tools that may be called a bounded number of times."""

from __future__ import annotations

from typing import Any, TypeVar

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage
from langgraph.runtime import Runtime

from questbook.graphs.errors import ModelError
from questbook.graphs.models.answer import ask
from questbook.graphs.models.chat_models import bind_tools, chat_model
from questbook.graphs.settings import Settings
from questbook.graphs.turn.prompt_stack import Prompt
from questbook.graphs.turn.tool_calls import calls_of
from questbook.graphs.turn.turn_state import TurnState
from questbook.memory.buffer.turns import split_turns

SettingsT = TypeVar("SettingsT", bound=Settings)


async def reply(
    state: TurnState,
    runtime: Runtime[SettingsT],
    prompt: Prompt,
    *,
    node: str,
    tools: list[dict[str, Any]],
    most_rounds: int,
) -> AIMessage:
    """Ask the model; what it saw goes out on the stream first.

    Args:
        state: The thread's state.
        runtime: The run's.
        prompt: What the model is given.
        node: Whose reply it is.
        tools: What it may call.
        most_rounds: Times that it may call tools in one turn; calls beyond are dropped.

    Raises:
        ModelError: The model failed or said nothing. The player's message stands in the checkpoint; run the thread
            again without input to retry the turn.
    """
    context = runtime.context
    runtime.stream_writer(prompt.told(node, state.turn))
    model = bind_tools(await chat_model(context), tools, context)
    told = await ask(model, prompt.messages, model_name=context.model, timeout=context.model_timeout)
    if calls_of(told) and rounds_of(state) >= most_rounds:
        if not told.text.strip():
            raise ModelError(f"{context.model} keeps calling tools and tells nothing. Try the turn again.")
        told = AIMessage(told.text, id=told.id)  # told something: the calls beyond the limit are dropped
    return told


def tools_answered(message: AIMessage, results: list[ToolMessage], *, again: bool, spent: bool) -> list[AnyMessage]:
    """Put a turn's messages in order after a round of tools.

    Args:
        message: What the model said and called.
        results: What came of the calls; none if a tool hands over to another agent at once.
        again: Whether the model is asked again.
        spent: Whether it may call no more tools in this turn; it is told so.

    Returns:
        Messages to add; without another question, what was said to the person stands last: the turn ends with it.
    """
    if not again:
        silent = message.model_copy(update={"content": ""})
        return [silent, *results, AIMessage(message.text, id=f"{message.id}-said")]
    if spent and results:
        told = f"{results[-1].text}\nNo more tools in this turn: answer now."
        return [*results[:-1], results[-1].model_copy(update={"content": told})]
    return [*results]


def rounds_of(state: TurnState) -> int:
    """Count how often the model has called tools in this turn."""
    _, turn = split_turns(state.messages, state.turn)[-1]
    return sum(1 for message in turn if isinstance(message, AIMessage) and calls_of(message))
