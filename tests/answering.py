"""Agents of LangChain's with memory: a chat model that gives the answers of a list, and what they leave in a store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage, SystemMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.store.memory import InMemoryStore
from pydantic import Field

from questbook import Segment, TimelineMemoryMiddleware
from questbook.memory.timeline.namespaces import campaign_namespace
from questbook.memory.timeline.timeline import list_visible

AGENT = "agent:agent"
THREAD: Any = {"configurable": {"thread_id": "1"}}


class Answering(BaseChatModel):
    """Gives its answers in turn, then "ok."; an answer is a message, a text, or an exception to raise."""

    answers: list[Any] = Field(default_factory=list)
    prompts: list[list[BaseMessage]] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "answering"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Any:
        return self

    @property
    def system(self) -> str:
        """System message of the newest prompt; "" if it has none."""
        [first, *_] = self.prompts[-1]
        return first.text if isinstance(first, SystemMessage) else ""

    @property
    def remembered(self) -> str:
        """The memories of the newest prompt."""
        return self.system.partition("<memories>\n")[2].partition("\n</memories>")[0]

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        self.prompts.append(messages)
        answer = self.answers.pop(0) if self.answers else "ok."
        if isinstance(answer, BaseException):
            raise answer
        message = AIMessage(answer) if isinstance(answer, str) else answer.model_copy(update={"id": None})
        return ChatResult(generations=[ChatGeneration(message=message)])


async def visible(store: Any, timeline: Sequence[Segment], kind: str = "exchanges", user: str = "ann") -> list[str]:
    """What a checkpoint sees in the store: what the person said in each turn, or the texts of its facts."""
    items = await list_visible(store, campaign_namespace(user, AGENT, kind), timeline)
    return [item.value.get("player") or item.value["text"] for item in items]


def written(store: Any, kind: str = "exchanges", user: str = "ann") -> list[str]:
    """What all branches together have in the store, sorted."""
    items = store.search(campaign_namespace(user, AGENT, kind), limit=1000)
    return sorted(item.value.get("player") or item.value["text"] for item in items)


class Talk:
    """One thread of an agent with memory; `first` and `middleware` come before the memory and after it."""

    def __init__(
        self, store=None, *, user="ann", saver=None, first=(), middleware=(), own_tools=(), thread=THREAD, **options
    ):
        self.model = Answering()
        self.store = InMemoryStore() if store is None else store
        memory = TimelineMemoryMiddleware(user=user, **options)
        self.agent = create_agent(
            self.model,
            list(own_tools),
            system_prompt="Be brief.",
            middleware=[*first, memory, *middleware],
            checkpointer=saver or InMemorySaver(),
            store=self.store,
        )
        self.thread = thread

    async def say(self, words, config=None, *answers):
        self.model.answers += answers
        return await self.agent.ainvoke({"messages": [HumanMessage(words)]} if words else None, config or self.thread)

    @property
    def state(self):
        return self.agent.get_state(self.thread)

    @property
    def values(self):
        return self.state.values

    def forget_messages(self):
        """Empty the buffer, so that memory alone can tell."""
        self.agent.update_state(self.thread, {"messages": [RemoveMessage(REMOVE_ALL_MESSAGES)]})

    async def sees(self, kind="exchanges"):
        return await visible(self.store, self.values["timeline"], kind)
