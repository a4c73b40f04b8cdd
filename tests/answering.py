"""A chat model for agents of LangChain's that gives the answers of a list, and what such agents leave in a store."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, SystemMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import Field

from questbook import Segment
from questbook.memory.timeline.namespaces import campaign_namespace
from questbook.memory.timeline.timeline import list_visible

AGENT = "agent:agent"


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
