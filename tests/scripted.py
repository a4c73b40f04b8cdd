"""A chat model that says what a test tells it to, by the job it is asked to do."""

from __future__ import annotations

import html
import itertools
import json
import re
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage
from langchain_core.messages.tool import invalid_tool_call, tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from pydantic import Field, PrivateAttr

_ids = itertools.count(1)


def call(tool: str, /, **args: Any) -> dict[str, Any]:
    return {"name": tool, "args": args, "id": f"call_{next(_ids)}", "type": "tool_call"}


def say(text: str = "", *calls: dict[str, Any]) -> AIMessage:
    return AIMessage(text, tool_calls=list(calls))


def malformed(tool: str, arguments: str, text: str = "") -> AIMessage:
    broken = invalid_tool_call(name=tool, args=arguments, id=f"call_{next(_ids)}", error="not JSON")
    return AIMessage(text, invalid_tool_calls=[broken])


def sections_of(messages: Sequence[BaseMessage]) -> str:
    """All sections of a prompt: the system message, and what opens the person's newest message."""
    newest = [message.text for message in messages if isinstance(message, HumanMessage)][-1:]
    return "\n\n".join([messages[0].text, *(text.partition("<message>\n")[0] for text in newest)])


def words_of(messages: Sequence[BaseMessage]) -> list[str]:
    """The person's own words in each of their messages, without sections and escapes."""
    texts = (message.text for message in messages if isinstance(message, HumanMessage))
    return [html.unescape(text.rpartition("<message>\n")[2].removesuffix("\n</message>")) for text in texts]


class ScriptedModel(BaseChatModel):
    """Answers from a queue for each job, else with a stock answer.

    Jobs are "interview", "quest", "update", "condense", "companion", "facts", "question" and "conclude".

    An entry is a message, an exception to raise, or a function of the messages that returns either.
    """

    # Out of its repr, which LangChain makes at each call.
    script: dict[str, deque[Any]] = Field(default_factory=lambda: defaultdict(deque), repr=False)
    calls: list[tuple[str, list[BaseMessage]]] = Field(default_factory=list, repr=False)
    _stock: dict[str, Any] = PrivateAttr(
        default_factory=lambda: {
            "interview": say("And what else?"),
            "quest": say("The wind turns. What do you do?"),
            "update": say("no change"),
            "condense": say("They walked on."),
            "companion": say("I see."),
            "facts": say("no change"),
            "question": say("nothing"),
            "conclude": say("nothing"),
        }
    )
    job: str = "condense"

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def queue(self, job: str, *answers: Any) -> ScriptedModel:
        self.script[job].extend(answers)
        return self

    def asked(self, job: str) -> list[list[BaseMessage]]:
        return [messages for done, messages in self.calls if done == job]

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[Any, Any]:
        jobs = {
            "CharacterNotebook": "interview",
            "roll_dice": "quest",
            "StateNotebook": "update",
            "core_memory_append": "companion",
            "core_memory_remove": "companion",
            "Facts": "facts",
            "Questions": "question",
            "Reflection": "conclude",
        }
        bound = self.model_copy(update={"job": jobs[tools[0]["function"]["name"]]})
        bound.script, bound.calls, bound._stock = self.script, self.calls, self._stock
        return bound

    def _answer(self, messages: list[BaseMessage]) -> AIMessage:
        self.calls.append((self.job, messages))
        answer = self.script[self.job].popleft() if self.script[self.job] else self._stock[self.job]
        if isinstance(answer, Callable) and not isinstance(answer, BaseException):
            answer = answer(messages)
        if isinstance(answer, BaseException):
            raise answer
        return answer.model_copy(update={"id": None})

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self._answer(messages))])

    def _stream(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> Iterator[ChatGenerationChunk]:
        answer = self._answer(messages)
        words = re.findall(r" ?[^ ]*", answer.text)[:-1]
        step = 1 + len(words) // 99  # a long answer comes in longer pieces: each costs as much time as a sentence
        for start in range(0, len(words), step):
            yield self._chunk(AIMessageChunk("".join(words[start : start + step])), run_manager)
        for index, made in enumerate([*answer.tool_calls, *answer.invalid_tool_calls]):
            arguments = made["args"] if isinstance(made["args"], str) else json.dumps(made["args"])
            piece = tool_call_chunk(name=made["name"], args=arguments, id=made["id"], index=index)
            yield self._chunk(AIMessageChunk("", tool_call_chunks=[piece]), run_manager)
        if not words and not answer.tool_calls and not answer.invalid_tool_calls:
            yield self._chunk(AIMessageChunk(""), run_manager)
        if answer.usage_metadata:
            yield self._chunk(AIMessageChunk("", usage_metadata=answer.usage_metadata), run_manager)

    @staticmethod
    def _chunk(message: AIMessageChunk, run_manager: Any) -> ChatGenerationChunk:
        chunk = ChatGenerationChunk(message=message)
        if run_manager:
            run_manager.on_llm_new_token(message.text, chunk=chunk)
        return chunk
