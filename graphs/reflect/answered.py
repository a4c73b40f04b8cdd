"""What a model answers when it is asked to reflect: calls of one tool, or that there is nothing."""

from __future__ import annotations

from typing import Any, NamedTuple

from langchain_core.messages import BaseMessage
from langgraph.constants import TAG_NOSTREAM

from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.errors import ModelError
from questbook.graphs.models.answer import ask
from questbook.graphs.models.chat_models import chat_model
from questbook.graphs.turn.reply import calls_of

_NOTHING = 200  # characters of an answer without a call, up to which it only says that there is nothing


class Answered(NamedTuple):
    """A model's answer.

    Attributes:
        args: Arguments of its calls; none if it said that there is nothing.
        prose: What it wrote, if that is more than that there is nothing.
    """

    args: list[dict[str, Any]]
    prose: str


async def answered(prompt: list[BaseMessage], tool: dict[str, Any], context: Context) -> Answered:
    """Ask the model once, for calls of a tool.

    Raises:
        ModelError: It failed, or no call of it could be read.
    """
    name = tool["function"]["name"]
    model = (await chat_model(context)).bind_tools([tool])
    reply = await ask(model, prompt, model_name=context.model, tags=[TAG_NOSTREAM])
    calls = calls_of(reply)
    args = [call.args for call in calls if call.name == name and not call.problem]
    if calls and not args:
        raise ModelError(f"No call of the tool {name} could be read: {calls[0].problem or f'got {calls[0].name!r}.'}")
    wordy = not args and (len(reply.text) > _NOTHING or "{" in reply.text or "?" in reply.text)
    return Answered(args, reply.text if wordy else "")
