"""One answer from a model: `ask` streams it, checks it, and says in one line what went wrong.

A `Guard` says how much of an answer may leave while it streams, and closes the model's stream where it must end.
"""

import asyncio
import json
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Sequence
from contextlib import aclosing
from typing import Any, NamedTuple, Protocol, TypeVar, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, message_chunk_to_message
from langchain_core.messages.tool import ToolCallChunk, invalid_tool_call, tool_call_chunk
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable, RunnableConfig, ensure_config
from langgraph.constants import TAG_HIDDEN, TAG_NOSTREAM
from pydantic import Field

from questbook.graphs.errors import ModelError
from questbook.graphs.models.providers import explain
from questbook.graphs.models.text_calls import TextCallReader, check_calls
from questbook.types import JSON, storable

LONGEST = 200_000  # characters that an answer may have which no person reads: notes, a summary
LENGTH = "length"  # why an answer ended that was too long
CUT = "…"  # ends a text that was cut

MessageT = TypeVar("MessageT", bound=BaseMessage)

# The fields of messages that hold words of a model, a tool or a person.
_WORDED = ("content", "name", "tool_calls", "invalid_tool_calls", "additional_kwargs", "response_metadata", "artifact")
_QUOTED = 200  # characters that are kept of the arguments of a call that was cut


class Verdict(NamedTuple):
    """What a check says of a text that grows."""

    safe: int  # characters, counted from the text's beginning, that may leave now
    problem: str = ""  # why the answer must end there; "" if the rest only has to wait for what comes


class Check(Protocol):
    """Judges an answer while it comes."""

    def __call__(self, text: str, start: int, *, ended: bool) -> Verdict:
        """Judge the text so far, of which `start` characters have left; `ended` says that nothing more comes."""


class Marker(Check, Protocol):
    """Marks in an answer, while it comes, what must not pass for true; as a check, it holds back what it may mark."""

    found: bool

    def mark(self, text: str, left: int, *, ended: bool) -> str:
        """Return the text so far with marks, none before the `left` characters that have left."""


class Guard:
    """Guards one answer.

    Args:
        limit: Characters that the answer may have, arguments of tool calls included; a longer one is cut.
        checks: Each may hold text back, or end the answer.
        again: Makes messages to ask again with, once, when a check has ended the answer: given the problem and what has
            left, behind which the new answer goes on.
        hidden: Names of tools whose calls must not be streamed.
        marker: Marks what must not pass for true.
    """

    def __init__(
        self,
        limit: int = LONGEST,
        checks: Sequence[Check] = (),
        again: Callable[[str, str], list[BaseMessage]] = lambda _problem, _text: [],
        hidden: Collection[str] = (),
        marker: Marker | None = None,
    ) -> None:
        self.limit, self.again, self.hidden, self.marker = limit, again, hidden, marker
        self.checks = [*checks, *([marker] if marker else [])]
        self.whole: Any = None  # sum of what the model sent, the second time if it was asked again
        self.text = ""  # what has left; calls that came as text are no part of it
        self.problem = ""  # why the answer was ended; `LENGTH` if it was too long, "" if it ended by itself
        self.offer(())

    def offer(self, tools: Sequence[JSON]) -> None:
        """Say which tools are offered, whose calls may come as text."""
        self._tools, self.text_calls = tools, TextCallReader(tools, self.hidden)

    async def stream(
        self, model: Runnable[Any, Any], messages: Sequence[BaseMessage], config: RunnableConfig
    ) -> AsyncGenerator[str]:
        """Ask the model; yield the text that may leave, "" for a piece that may not."""
        self.text, more = "", list[BaseMessage]()
        for again in (True, False):
            async with aclosing(self._answer(model, [*messages, *more], config)) as texts:
                async for text in texts:
                    yield text
            more = self.again(self.problem, self.text) if again and self.problem not in ("", LENGTH) else []
            if not more:
                break
            self.problem = ""
            if self.text:
                yield self._leave(f"{CUT}\n\n")
        if self.problem and (self.text or self.problem != LENGTH):
            yield self._leave(CUT)

    async def _answer(
        self, model: Runnable[Any, Any], messages: Sequence[BaseMessage], config: RunnableConfig
    ) -> AsyncGenerator[str]:
        text, left, size = "", 0, 0
        received: list[Any] = []
        self.offer(self._tools)
        room = max(0, self.limit - len(self.text))
        try:
            # To close the generator is to close the connection: the model stops writing.
            async with aclosing(cast("AsyncGenerator[Any]", model.astream(list(messages), config=config))) as pieces:
                async for piece in pieces:
                    received.append(piece)
                    if not isinstance(piece, AIMessage):
                        return
                    new = storable(piece.text)
                    text = self._marked(text + self.text_calls.feed(new), left)
                    size += len(new) + sum(len(call.get("args") or "") for call in _call_chunks(piece))
                    verdict = self._judge(text, left, size, room)
                    yield self._leave(text[left : verdict.safe])
                    left, self.problem = verdict
                    if self.problem:
                        return
        finally:
            # At once: one by one would take a fifth of a turn's time.
            self.whole = received[0] + received[1:] if len(received) > 1 else next(iter(received), None)
        text = self._marked(text + self.text_calls.end(), left, ended=True)
        verdict = self._judge(text, left, 0, room, ended=True)
        self.problem = verdict.problem
        if verdict.safe > left:
            yield self._leave(text[left : verdict.safe])

    def _marked(self, text: str, left: int, *, ended: bool = False) -> str:
        return self.marker.mark(text, left, ended=ended) if self.marker else text

    def _judge(self, text: str, left: int, size: int, room: int, *, ended: bool = False) -> Verdict:
        verdicts = [Verdict(len(text)), *(check(text, left, ended=ended) for check in self.checks)]
        if not ended:
            most = room - len(CUT)
            blank = text.rfind(" ", left, most)  # what follows it may be half a word
            cut = len(text) if len(text) <= most else blank if blank > left and size > room else most
            verdicts.append(Verdict(cut, LENGTH if size > room else ""))
        # An answer that must end does so at once: what another check still holds back does not leave.
        safe = min(verdict.safe for verdict in verdicts)
        problems = [verdict.problem for verdict in sorted(verdicts) if verdict.problem]
        return Verdict(min(max(left, safe), len(text)), problems[0] if problems else "")

    def _leave(self, text: str) -> str:
        self.text += text
        return text


class _GuardedModel(BaseChatModel):
    """A chat model: only what may leave reaches LangGraph's stream; it asks `inner` in a run of its own."""

    # LangChain makes the repr at each call.
    inner: Any = Field(repr=False)
    guard: Any = Field(repr=False)

    @property
    def _llm_type(self) -> str:
        return "guarded"

    def _generate(self, *args: Any, **kwargs: Any) -> ChatResult:
        raise NotImplementedError("A guarded model only streams: call astream.")

    async def _astream(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> AsyncIterator[Any]:  # noqa: ARG002
        guard: Guard = self.guard
        async with aclosing(guard.stream(self.inner, messages, {"tags": [TAG_NOSTREAM]})) as texts:
            async for text in texts:
                yield ChatGenerationChunk(message=AIMessageChunk(content=text))
        # Only now is it known that the answer is whole, and which tools it calls.
        calls = [] if guard.problem else _call_chunks(guard.whole)
        shown = [call for call in calls if call["name"] not in guard.hidden]
        yield ChatGenerationChunk(message=AIMessageChunk(content="", tool_call_chunks=shown))


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

    `tools` (in the OpenAI function format) are those that are bound to the model; `model_name` is for error messages.
    `timeout` limits, in seconds, the wait for each piece; None: the model's own does, which counts for each try. An
    answer that the guard has ended has the text that has left, and no calls beside a text; without a guard only the
    length is limited. A ModelError says that the model refused, failed, or said nothing twice.
    """
    guard = guard or Guard()
    guard.offer(tools)
    for _ in range(2):
        answer = storable_message(await _stream(model, list(messages), model_name, list(tags), timeout, guard))
        if answer.text.strip() or answer.tool_calls or answer.invalid_tool_calls:
            return _with_call_ids(answer)
    raise ModelError(f"{model_name[:80]} answered with nothing, twice. Try again.")


def _with_call_ids(answer: AIMessage) -> AIMessage:
    """Return an answer whose calls have an id each: some models leave it out or send one twice; results name it."""
    calls, ids = [*answer.tool_calls, *answer.invalid_tool_calls], set[str | None]([None, ""])
    for call in calls:
        call["id"] = f"call_{uuid.uuid4().hex[:24]}" if call["id"] in ids else call["id"]
        ids.add(call["id"])
    return answer


def storable_message(message: MessageT) -> MessageT:
    """Return a message without NUL and lone surrogates, wherever it has them: in its text, its calls, its metadata."""
    parts = {name: getattr(message, name) for name in _WORDED if getattr(message, name, None)}
    cleaned = {name: clean for name, part in parts.items() if (clean := storable(part)) != part}
    return message.model_copy(update=cleaned) if cleaned else message


async def _stream(
    model: Any, messages: list[Any], name: str, tags: list[str], patience: float | None, guard: Guard
) -> AIMessage:
    pieces: Any  # of text, or messages with it
    callbacks = ensure_config().get("callbacks")  # may stream what the model says; without any, no run is guarded
    if TAG_NOSTREAM in tags or not getattr(callbacks, "handlers", callbacks):
        pieces = guard.stream(model, messages, {"tags": tags})
    else:
        pieces = _GuardedModel(inner=model, guard=guard).astream(messages, config={"tags": [*tags, TAG_HIDDEN]})
    piece: Any = None
    try:
        while True:
            async with asyncio.timeout(patience):
                if (new := await anext(pieces, None)) is None:
                    break
                piece = new
    except Exception as error:  # every provider has its own errors; each is raised again as one line
        raise explain(error, name) from error
    finally:
        await pieces.aclose()
    whole = guard.whole
    if not isinstance(whole, AIMessage):
        raise ModelError(f"{name[:80]} answered with {type(whole).__name__}, not with a message.")
    if isinstance(piece, AIMessage):  # what has been streamed has the id of the guarded run
        whole = whole.model_copy(update={"id": piece.id})
    if guard.problem:
        return _ended(whole, guard)
    metadata = whole.response_metadata
    # A proxy that gives up may close the stream without an error. The protocol says how an answer ends: with a
    # finish_reason, or in the Responses API with a status.
    ended = metadata.get("finish_reason") or metadata.get("status") or not isinstance(whole, AIMessageChunk)
    if metadata.get("model_provider") == "openai" and not ended:
        raise ModelError(f"{name[:80]} broke off in the middle of the reply. Try again.")
    message = _strict(whole) if isinstance(whole, AIMessageChunk) else whole
    message = message if message.text == guard.text else message.model_copy(update={"content": guard.text})
    return _with_text_calls(message, guard.text_calls)


def _ended(whole: AIMessage, guard: Guard) -> AIMessage:
    """Return an answer that the guard has ended: its text, or, where it has none, its calls as broken ones."""
    kept = {"response_metadata": whole.response_metadata, "usage_metadata": whole.usage_metadata}
    broken = [
        invalid_tool_call(name=call["name"], args=(call["args"] or "")[:_QUOTED], id=call["id"], error="too long")
        for call in ([] if guard.text else _call_chunks(whole))
    ]
    return AIMessage(guard.text, id=whole.id, invalid_tool_calls=broken, **kept)


def _with_text_calls(answer: AIMessage, reader: TextCallReader) -> AIMessage:
    """Return the answer with the calls that came as text; a call that was also made properly is not made twice."""
    if not reader.calls:
        return answer
    calls, broken = reader.tool_calls()
    made = [(call["name"], call["args"]) for call in answer.tool_calls]
    calls = [*answer.tool_calls, *(call for call in calls if (call["name"], call["args"]) not in made)]
    broken = [*answer.invalid_tool_calls, *broken]
    update = {"content": answer.text.strip(), "tool_calls": calls, "invalid_tool_calls": broken}
    return answer.model_copy(update=update)


def _strict(whole: AIMessageChunk) -> AIMessage:
    """Return the streamed answer as a message, without LangChain's completion of broken tool arguments.

    LangChain closes what is open: `{"gold": 1`, cut off from `{"gold": 100}`, would be 99 pieces fewer.
    """
    calls, broken = check_calls((call["name"], call["args"], call["id"]) for call in whole.tool_call_chunks)
    message = cast(AIMessage, message_chunk_to_message(whole))
    return message.model_copy(update={"tool_calls": calls, "invalid_tool_calls": broken})


def _call_chunks(message: Any) -> list[ToolCallChunk]:
    if not isinstance(message, AIMessage) or isinstance(message, AIMessageChunk):
        return list(getattr(message, "tool_call_chunks", ()))
    calls = [(call["name"], json.dumps(call["args"]), call["id"]) for call in message.tool_calls]
    calls += [(call["name"] or "", call["args"] or "", call["id"]) for call in message.invalid_tool_calls]
    return [tool_call_chunk(name=n, args=args, id=id_, index=i) for i, (n, args, id_) in enumerate(calls)]
