"""An agent of LangChain's with a memory that is rewound with it. It needs no key: the model repeats what it remembers.

python examples/middleware.py
"""

from __future__ import annotations

import re
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from questbook import LastTurns, TimelineMemoryMiddleware


class Repeating(BaseChatModel):
    """Says what it was given to remember. Put your model in its place."""

    @property
    def _llm_type(self) -> str:
        return "repeating"

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        memories = re.findall(r'"user": "(.*?)"', messages[0].text)
        reply = f"I remember: {' '.join(memories)}" if memories else "I remember nothing of that."
        return ChatResult(generations=[ChatGeneration(message=AIMessage(reply))])


# Older turns are not in the prompt, so that all it knows comes from memory.
memory = TimelineMemoryMiddleware(user="ann", buffer=LastTurns(0))
agent: Any = create_agent(
    Repeating(), tools=[], middleware=[memory], checkpointer=InMemorySaver(), store=InMemoryStore()
)


def say(words: str, config: RunnableConfig) -> str:
    """Say something on a thread, or from one of its checkpoints on, and return the reply."""
    reply: str = agent.invoke({"messages": [("user", words)]}, config)["messages"][-1].text
    print(f"> {words}\n{reply}\n")
    return reply


if __name__ == "__main__":
    thread: RunnableConfig = {"configurable": {"thread_id": "1"}}
    say("My lamp is red.", thread)
    before = agent.get_state(thread).config
    say("I have painted my lamp blue.", thread)
    say("Which colour has my lamp?", thread)
    print("Back to before the paint:\n")
    say("Which colour has my lamp?", before)
