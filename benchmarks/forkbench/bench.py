"""The bench: what an adapter is given for one game, and what is done with each prompt that its model gets.

The model is a script that makes no mistakes: an adapter tells it when to search, write or reply, and `facts_in` and
`asked_in` read messages for it. Each prompt that is answered by `reply` is judged.
"""

from __future__ import annotations

import itertools
import re
import uuid
from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.base import BaseStore, Op, PutOp, Result
from pydantic import Field

from benchmarks.forkbench.worlds import ASKED, Event, tokens

Answer = Callable[[list[BaseMessage], tuple[str, ...]], AIMessage]
"""Given a prompt and the names of the tools that the model may call, what it answers."""
Judge = Callable[[Sequence[BaseMessage]], None]
JUDGE: ContextVar[Judge] = ContextVar("JUDGE", default=lambda _: None)
"""Judges the prompts of the run that is going on."""
WINDOW = 2  # turns of the conversation that stay in a prompt, besides the one that is being answered


class CrashError(BaseException):
    """The process is dead: caught by nothing that catches errors."""


class Fuse:
    """Kills the process at one of its writes, to the checkpointer or to the store; a dead process writes no more."""

    def __init__(self) -> None:
        self.count = 0
        """Writes of this run."""
        self.at: int | None = None
        self.dead = False

    def tick(self) -> None:
        """Count a write.

        Raises:
            CrashError: It is the one, or the process is dead already.
        """
        self.count += 1
        self.dead = self.dead or self.count == self.at
        if self.dead:
            raise CrashError

    def reset(self, at: int | None = None) -> None:
        """Begin a run, which is to die at a write, or not."""
        self.count, self.at, self.dead = 0, at, False


class Saver(InMemorySaver):
    """A checkpointer on a fuse: what is not written when it blows never will be."""

    fuse = Fuse()

    async def aput(self, *args: Any, **kwargs: Any) -> Any:
        """Save a checkpoint."""
        self.fuse.tick()
        return await super().aput(*args, **kwargs)

    async def aput_writes(self, *args: Any, **kwargs: Any) -> None:
        """Save what a node has returned."""
        self.fuse.tick()
        await super().aput_writes(*args, **kwargs)


class FusedStore(BaseStore):
    """A store on a fuse: the process dies right after a batch is written."""

    supports_ttl = True

    def __init__(self, inner: BaseStore, fuse: Fuse) -> None:
        self.inner, self.fuse = inner, fuse
        self.index_config = getattr(inner, "index_config", None)

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Read and write."""
        ops = list(ops)
        results = self.inner.batch(ops)
        if any(isinstance(op, PutOp) for op in ops):
            self.fuse.tick()
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Read and write."""
        ops = list(ops)
        results = await self.inner.abatch(ops)
        if any(isinstance(op, PutOp) for op in ops):
            self.fuse.tick()
        return results


class ScriptedChat(BaseChatModel):
    """A chat model that answers by a function."""

    answer: Answer = Field(repr=False)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **_: Any) -> Runnable[Any, Any]:
        """Return the model with tools that it may call."""
        return self.bind(tools=[convert_to_openai_tool(tool)["function"]["name"] for tool in tools])

    def _generate(self, messages: Any, *_: Any, tools: Sequence[str] = (), **__: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self.answer(messages, tuple(tools)))])


@dataclass
class Bench:
    """What an adapter gets.

    Args:
        store: Where it may write; other games write to it too, under other users.
        user: Whose game it is.
        seed: Of the game.
    """

    store: BaseStore
    user: str
    seed: int = 0
    saver: Saver = field(default_factory=Saver)
    events: dict[str, Event] = field(default_factory=dict)
    """All that was ever said in this game, by token."""
    heard: set[str] = field(default_factory=set)
    """Tokens of the model's replies."""

    def __post_init__(self) -> None:
        self.saver.fuse = self.fuse = Fuse()
        self.store = FusedStore(self.store, self.fuse)
        self.words, self._ids = tokens(self.seed), itertools.count(1)

    def model(self, answer: Answer) -> ScriptedChat:
        """Return a chat model that answers by a function."""
        return ScriptedChat(answer=answer)

    def facts_in(self, text: str) -> list[Event]:
        """Return what a text tells, oldest first."""
        return [event for event in self.events.values() if event.said in text]

    def asked_in(self, text: str) -> str:
        """Return the last question of a text, as a query; "" if it asks nothing."""
        asked = re.findall(re.escape(ASKED).replace(r"\{\}", "(.+?)"), text)
        return asked[-1] if asked else ""

    def call(self, name: str, /, **args: Any) -> dict[str, Any]:
        """Return a call of a tool, as a model's answer carries it."""
        return {"name": name, "args": args, "id": f"call_{next(self._ids)}", "type": "tool_call"}

    def reply(self, messages: Sequence[BaseMessage]) -> AIMessage:
        """Judge a prompt, and answer it: what was told is repeated, and there is something new in each reply."""
        JUDGE.get()(messages)
        token = next(self.words)
        self.heard.add(token)
        told = " ".join(event.token for event in self.facts_in(unanswered(messages)))
        return AIMessage(f"I see: {told}. The day is {token}.", id=str(uuid.UUID(int=next(self._ids) + 2**100)))


def window(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Return the last turns of a conversation: what an app that trims its prompts sends."""
    humans = [place for place, message in enumerate(messages) if isinstance(message, HumanMessage)]
    return list(messages[humans[-WINDOW - 1] :] if len(humans) > WINDOW else messages)


def results(messages: Sequence[BaseMessage]) -> list[ToolMessage]:
    """Return the results of tools since the person's last message."""
    last = max((place for place, one in enumerate(messages) if isinstance(one, HumanMessage)), default=0)
    return [one for one in messages[last:] if isinstance(one, ToolMessage)]


def latest(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Return the messages since the last reply."""
    replies = [n for n, one in enumerate(messages) if isinstance(one, AIMessage) and not one.tool_calls]
    return list(messages[replies[-1] + 1 :] if replies else messages)


def unanswered(messages: Sequence[BaseMessage]) -> str:
    """Return the words to which nobody has replied yet; after a crash, these may be two messages."""
    return "\n".join(own_words(message) for message in latest(messages) if isinstance(message, HumanMessage))


def own_words(message: BaseMessage) -> str:
    """Return a message without what a memory has put before it (`<message>` is Questbook's mark)."""
    return message.text.rpartition("<message>\n")[2]
