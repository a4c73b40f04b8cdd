"""An agent of `create_agent` with our middleware that lives through conversations, and is asked about them.

Only what an app has is used: the middleware, the store, a checkpointer. So the same code measures an older version.
"""

from __future__ import annotations

import html
import os
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import Field

from questbook import FaissStore, LastTurns, Recall, TimelineMemoryMiddleware, Weights

WITHOUT = "EVIDENCE_WITHOUT"
"""Variable of the environment, which the processes share: parts of the order that count nothing."""
LAST_TURNS = 2  # in the prompt word for word
_SECTION = re.compile(r"<(?!message>)(\w+)>\n(.*?)\n</\1>", re.DOTALL)


class AskedError(Exception):
    """Ends a run at its model call, so that a question leaves nothing behind."""


class Scripted(BaseChatModel):
    """Answers with the reply that is set; without one it keeps the prompt and ends the run."""

    reply: list[str] = Field(default_factory=list, repr=False)
    prompt: list[BaseMessage] = Field(default_factory=list, repr=False)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, *_: Any, **__: Any) -> Any:
        """Return itself."""
        return self

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        if not self.reply:
            self.prompt[:] = messages
            raise AskedError
        return ChatResult(generations=[ChatGeneration(message=AIMessage(self.reply.pop()))])

    async def _agenerate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        return self._generate(messages)


class Life:
    """What one person's agent lives through, in one thread or in several."""

    def __init__(self, store: FaissStore, budgets: Sequence[int]) -> None:
        """Make the agents.

        Args:
            store: Where it remembers.
            budgets: Tokens for memories with which it can be asked. It lives with none: recall changes nothing kept.
        """
        self._model, saver = Scripted(), InMemorySaver()
        self._ends = dict[str, str]()
        self._agents = {
            tokens: create_agent(
                self._model,
                [],
                middleware=[TimelineMemoryMiddleware(user="ann", recall=_recall(tokens), buffer=LastTurns(LAST_TURNS))],
                checkpointer=saver,
                store=store,
            )
            for tokens in {0, *budgets}
        }

    async def live(self, thread: str, turns: Sequence[tuple[str, str]]) -> None:
        """Play the turns of a thread: what the person says, and the reply.

        Raises:
            RuntimeError: Something was not remembered.
        """
        for said, reply in turns:
            self._model.reply[:] = [reply]
            state = await self._agents[0].ainvoke({"messages": [("user", said)]}, _config(thread))
            if state.get("notices"):
                raise RuntimeError(f"A turn left a notice: {state['notices']}")
        snapshot = await self._agents[0].aget_state(_config(thread))
        self._ends[thread] = snapshot.config["configurable"]["checkpoint_id"]

    async def ask(self, thread: str, question: str, tokens: int) -> Prompt:
        """Ask on a fork of a thread's end, which no other question sees; return what the model would have read.

        A thread that was not lived is new.

        Raises:
            RuntimeError: The model was not asked, or its memories have more tokens than they may.
        """
        self._model.reply.clear()
        config = _config(thread, self._ends.get(thread))
        try:
            await self._agents[tokens].ainvoke({"messages": [("user", question)]}, config)
        except AskedError:
            prompt = Prompt(self._model.prompt, question)
            if prompt.tokens > tokens:
                raise RuntimeError(
                    f"{prompt.tokens} tokens of memories in a budget of {tokens}: {question!r}"
                ) from None
            return prompt
        raise RuntimeError(f"The model was not asked: {question!r}")


class Prompt:
    """What a model was given beside the question.

    Attributes:
        texts: The texts of its messages, without the question's words.
        memories: What came from the store: the sections of the first message, and those beside the question.
    """

    def __init__(self, messages: Sequence[BaseMessage], question: str) -> None:
        escaped = html.escape(question, quote=False)
        self.texts = [message.text.replace(escaped, "…").replace(question, "…") for message in messages]
        sections = [found[2] for text in {self.texts[0], self.texts[-1]} for found in _SECTION.finditer(text)]
        self.memories = "\n".join(sections)

    @property
    def tokens(self) -> int:
        """Tokens of the memories, about four characters each."""
        return -(-len(self.memories) // 4)


@asynccontextmanager
async def opened(home: Path, embed: Embeddings) -> AsyncIterator[FaissStore]:
    """Open a store in a folder."""
    async with FaissStore.open(home / "memories.db", {"embed": embed}) as store:
        yield store


def _config(thread: str, checkpoint: str | None = None) -> Any:
    return {"configurable": {"thread_id": thread} | ({"checkpoint_id": checkpoint} if checkpoint else {})}


def _recall(tokens: int) -> Recall:
    """Return how much is recalled; the parts of the order that EVIDENCE_WITHOUT names count nothing."""
    parts = os.environ.get(WITHOUT, "").split()
    return Recall(tokens=tokens, weights=Weights().without(*parts)) if parts else Recall(tokens=tokens)
