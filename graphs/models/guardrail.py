"""Guardrail: how much of an answer may leave while it streams; the model's stream is closed where it must end."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Sequence
from contextlib import aclosing
from typing import Any, NamedTuple, Protocol, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.tool import ToolCallChunk, tool_call_chunk
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.constants import TAG_NOSTREAM
from pydantic import Field

from questbook.graphs.models.text_calls import TextCallReader
from questbook.types import JSON, storable

LONGEST = 200_000
"""Characters that an answer may have which no person reads: notes, a summary."""
LENGTH = "length"
"""Why an answer ended that was too long."""
CUT = "…"
"""Ends a text that was cut."""


class Verdict(NamedTuple):
    """What a check says of a text that grows.

    Attributes:
        safe: Characters, counted from the text's beginning, that may leave now.
        problem: Why the answer must end there; "" if the rest only has to wait for what comes.
    """

    safe: int
    problem: str = ""


class Check(Protocol):
    """Judges an answer while it comes."""

    def __call__(self, text: str, start: int, *, ended: bool) -> Verdict:
        """Judge the text so far, of which `start` characters have left; `ended` says that nothing more comes."""


class Guard:
    """Guards one answer.

    Args:
        limit: Characters that the answer may have, arguments of tool calls included; a longer one is cut.
        checks: Each may hold text back, or end the answer.
        again: Messages to ask again with, once, when a check has ended the answer: given the problem and what has left.
            The new answer goes on behind that. Without messages, the answer ends there.
        hidden: Names of tools whose calls must not be streamed.

    Attributes:
        whole: Sum of what the model sent, the second time if it was asked again; None before the first piece.
        text: What has left.
        problem: Why the answer was ended; "" if it ended by itself. `LENGTH` if it was too long.
        text_calls: Reads the calls that came as text; they are no part of `text`, and checks do not see them.
    """

    def __init__(
        self,
        limit: int = LONGEST,
        checks: Sequence[Check] = (),
        again: Callable[[str, str], list[BaseMessage]] = lambda _problem, _text: [],
        hidden: Collection[str] = (),
    ) -> None:
        self.limit, self.checks, self.again, self.hidden = limit, checks, again, hidden
        self.whole: Any = None
        self.text = ""
        self.problem = ""
        self._tools: Sequence[JSON] = ()
        self._spoken = True
        self.offer((), spoken=True)

    def offer(self, tools: Sequence[JSON], *, spoken: bool) -> None:
        """Say which tools are offered, whose calls may come as text, and whether a person reads the answer."""
        self._tools, self._spoken = tools, spoken
        self.text_calls = TextCallReader(tools, spoken=spoken, hidden=self.hidden)

    async def stream(
        self, model: Runnable[Any, Any], messages: Sequence[BaseMessage], config: RunnableConfig
    ) -> AsyncGenerator[str]:
        """Ask the model; yield the text that may leave, "" for each piece of which nothing may."""
        self.text = ""
        async with aclosing(self._answer(model, messages, config)) as texts:
            async for text in texts:
                yield text
        if self.problem not in ("", LENGTH) and (more := self.again(self.problem, self.text)):
            self.problem = ""
            if self.text:
                yield self._leave(f"{CUT}\n\n")
            async with aclosing(self._answer(model, [*messages, *more], config)) as texts:
                async for text in texts:
                    yield text
        if self.problem and (self.text or self.problem != LENGTH):
            yield self._leave(CUT)

    async def _answer(
        self, model: Runnable[Any, Any], messages: Sequence[BaseMessage], config: RunnableConfig
    ) -> AsyncGenerator[str]:
        text, left, size = "", 0, 0
        received: list[Any] = []
        self.offer(self._tools, spoken=self._spoken)
        room = max(0, self.limit - len(self.text))
        try:
            # To close the generator is to close the connection: the model stops writing.
            async with aclosing(cast("AsyncGenerator[Any]", model.astream(list(messages), config=config))) as pieces:
                async for piece in pieces:
                    received.append(piece)
                    if not isinstance(piece, AIMessage):
                        return
                    new = storable(piece.text)
                    text += self.text_calls.feed(new)
                    size += len(new) + sum(len(call.get("args") or "") for call in call_chunks(piece))
                    verdict = self._judge(text, left, size, room)
                    yield self._leave(text[left : verdict.safe])
                    left, self.problem = verdict
                    if self.problem:
                        return
        finally:
            self.whole = _sum(received)
        text += self.text_calls.end()
        verdict = self._judge(text, left, 0, room, ended=True)
        self.problem = verdict.problem
        if verdict.safe > left:
            yield self._leave(text[left : verdict.safe])

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


class GuardedModel(BaseChatModel):
    """A chat model whose stream is guarded: only what may leave reaches LangGraph's stream of messages.

    The model that it asks has a run of its own, unseen by that stream. Tokens are counted there alone.
    """

    # Out of its repr, which LangChain makes at each call.
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
        calls = [] if guard.problem else [call for call in call_chunks(guard.whole) if call["name"] not in guard.hidden]
        yield ChatGenerationChunk(message=AIMessageChunk(content="", tool_call_chunks=calls))


def _sum(pieces: list[Any]) -> Any:
    """Add up the pieces of a stream at once: one by one would take a fifth of a turn's time."""
    return None if not pieces else pieces[0] if len(pieces) == 1 else pieces[0] + pieces[1:]


def call_chunks(message: Any) -> list[ToolCallChunk]:
    """Return a message's tool calls as pieces of a stream."""
    if not isinstance(message, AIMessage) or isinstance(message, AIMessageChunk):
        return list(getattr(message, "tool_call_chunks", ()))
    calls = [(call["name"], json.dumps(call["args"]), call["id"]) for call in message.tool_calls]
    calls += [(call["name"] or "", call["args"] or "", call["id"]) for call in message.invalid_tool_calls]
    return [tool_call_chunk(name=n, args=args, id=id_, index=i) for i, (n, args, id_) in enumerate(calls)]
