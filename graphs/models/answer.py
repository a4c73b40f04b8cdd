"""One answer from a model: `ask` streams it, checks it, and says in one line what went wrong."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any, TypeVar, cast

from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    InvalidToolCall,
    ToolCall,
    message_chunk_to_message,
)
from langchain_core.messages.tool import invalid_tool_call, tool_call
from langchain_core.runnables import Runnable, ensure_config
from langgraph.constants import TAG_HIDDEN, TAG_NOSTREAM

from questbook.graphs.errors import ModelError
from questbook.graphs.models.guardrail import Guard, GuardedModel, call_chunks
from questbook.graphs.models.providers import explain
from questbook.graphs.models.text_calls import DEEPEST, TextCallReader
from questbook.notebooks.patch import is_deeper
from questbook.types import JSON, storable

MessageT = TypeVar("MessageT", bound=BaseMessage)

# The fields of messages that hold words of a model, a tool or a person.
_WORDED = ("content", "name", "tool_calls", "invalid_tool_calls", "additional_kwargs", "response_metadata", "artifact")
_QUOTED = 200  # characters that are kept of the arguments of a call that was cut


async def ask(
    model: Runnable[Any, Any],
    messages: Sequence[BaseMessage],
    *,
    model_name: str,
    tools: Sequence[JSON] = (),
    tags: Sequence[str] = (),
    timeout: float | None = None,  # noqa: ASYNC109 - it limits the wait for each piece, not the whole call
    guard: Guard | None = None,
) -> AIMessage:
    """Put one question to a model, for a node; its text reaches LangGraph's `messages` stream as the guard lets it.

    If the answer has neither text nor tool call, the question is put once more. Tool arguments that are not JSON, or
    that break off, are never completed by guessing: such calls are in the answer's `invalid_tool_calls`. A call of an
    offered tool that came as text is one of the answer's calls, and not of its text.

    Args:
        model: A chat model, with or without tools bound.
        messages: The prompt.
        model_name: For error messages.
        tools: The tools that are bound, in the OpenAI function format.
        tags: Tags of the run.
        timeout: Seconds to wait for each piece of the answer, the provider's retries included. None: the model's own
            time-out, which counts for each try.
        guard: Judges the answer while it comes, and says afterwards why it ended. None: one that only limits its
            length.

    Returns:
        The whole answer; one that the guard has ended, with the text that has left, and no calls beside a text.

    Raises:
        ModelError: The model refused, failed, or said nothing twice.
    """
    guard = guard or Guard()
    guard.offer(tools, spoken=TAG_NOSTREAM not in tags)
    for _ in range(2):
        answer = storable_message(await _stream(model, list(messages), model_name, list(tags), timeout, guard))
        if answer.text.strip() or answer.tool_calls or answer.invalid_tool_calls:
            return answer
    raise ModelError(f"{model_name[:80]} answered with nothing, twice. Try again.")


def storable_message(message: MessageT) -> MessageT:
    """Return a message without NUL and lone surrogates, wherever it has them: in its text, its calls, its metadata."""
    parts = {name: getattr(message, name) for name in _WORDED if getattr(message, name, None)}
    cleaned = {name: clean for name, part in parts.items() if (clean := storable(part)) != part}
    return message.model_copy(update=cleaned) if cleaned else message


async def _stream(
    model: Runnable[Any, Any],
    messages: list[Any],
    model_name: str,
    tags: list[str],
    timeout: float | None,  # noqa: ASYNC109
    guard: Guard,
) -> AIMessage:
    pieces: Any  # of text, or messages with it
    if TAG_NOSTREAM in tags or not _has_listeners():
        pieces = guard.stream(model, messages, {"tags": tags})
    else:
        pieces = GuardedModel(inner=model, guard=guard).astream(messages, config={"tags": [*tags, TAG_HIDDEN]})
    piece: Any = None
    try:
        while True:
            async with asyncio.timeout(timeout):
                try:
                    piece = await anext(pieces)
                except StopAsyncIteration:
                    break
    except Exception as error:  # every provider has its own errors; each is raised again as one line
        raise explain(error, model_name) from error
    finally:
        await pieces.aclose()
    whole = guard.whole
    if not isinstance(whole, AIMessage):
        raise ModelError(f"{model_name[:80]} answered with {type(whole).__name__}, not with a message.")
    if isinstance(piece, AIMessage):  # what has been streamed has the id of the guarded run
        whole = whole.model_copy(update={"id": piece.id})
    if guard.problem:
        return _ended(whole, guard)
    metadata = whole.response_metadata
    # A proxy that gives up may close the stream without an error. The protocol says how an answer ends: with a
    # finish_reason, or in the Responses API with a status.
    ended = metadata.get("finish_reason") or metadata.get("status") or not isinstance(whole, AIMessageChunk)
    if metadata.get("model_provider") == "openai" and not ended:
        raise ModelError(f"{model_name[:80]} broke off in the middle of the reply. Try again.")
    message = _strict(whole) if isinstance(whole, AIMessageChunk) else whole
    message = message if message.text == guard.text else message.model_copy(update={"content": guard.text})
    return _with_text_calls(message, guard.text_calls)


def _has_listeners() -> bool:
    """Whether the run has callbacks, which may stream what the model says; without any, no run has to be guarded."""
    callbacks = ensure_config().get("callbacks")
    return bool(getattr(callbacks, "handlers", callbacks))


def _ended(whole: AIMessage, guard: Guard) -> AIMessage:
    """Return an answer that the guard has ended: its text, or, where it has none, its calls as broken ones."""
    kept = {"response_metadata": whole.response_metadata, "usage_metadata": whole.usage_metadata}
    if guard.text:
        return AIMessage(guard.text, id=whole.id, **kept)
    broken = [
        invalid_tool_call(name=call["name"], args=(call["args"] or "")[:_QUOTED], id=call["id"], error="too long")
        for call in call_chunks(whole)
    ]
    return AIMessage("", id=whole.id, invalid_tool_calls=broken, **kept)


def _with_text_calls(answer: AIMessage, reader: TextCallReader) -> AIMessage:
    """Return the answer with the calls that came as text; a call that was also made properly is not made twice."""
    if not reader.calls:
        return answer
    calls, broken = reader.tool_calls()
    made = [(call["name"], call["args"]) for call in answer.tool_calls]
    new = [call for call in calls if (call["name"], call["args"]) not in made]
    update = {
        "content": answer.text.strip(),
        "tool_calls": [*answer.tool_calls, *new],
        "invalid_tool_calls": [*answer.invalid_tool_calls, *broken],
    }
    return answer.model_copy(update=update)


def _strict(whole: AIMessageChunk) -> AIMessage:
    """Return the streamed answer as a message, without LangChain's completion of broken tool arguments.

    LangChain closes what is open: `{"gold": 1`, cut off from `{"gold": 100}`, would cost the player 99 pieces.
    """
    calls: list[ToolCall] = []
    broken: list[InvalidToolCall] = []
    for piece in whole.tool_call_chunks:
        try:
            # strict=False: models put bare line breaks into strings; what they mean is clear.
            arguments = json.loads(piece["args"] or "{}", strict=False)
            if not isinstance(arguments, dict):
                raise TypeError(f"expected a JSON object, got {type(arguments).__name__}")
            if is_deeper(arguments, DEEPEST):
                raise ValueError(f"nested more than {DEEPEST} levels deep")
        except (ValueError, TypeError, RecursionError) as error:
            broken.append(invalid_tool_call(name=piece["name"], args=piece["args"], id=piece["id"], error=str(error)))
        else:
            calls.append(tool_call(name=piece["name"] or "", args=arguments, id=piece["id"]))
    message = cast(AIMessage, message_chunk_to_message(whole))
    return message.model_copy(update={"tool_calls": calls, "invalid_tool_calls": broken})
