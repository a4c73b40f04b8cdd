"""What chat models without a language model share: streaming, tools, and reading the prompt."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from abc import abstractmethod
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any, ClassVar, NamedTuple

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool

from questbook.graphs.offline.prompt import Prompt
from questbook.types import JSON


class Call(NamedTuple):
    """A tool that the model calls, and with what."""

    tool: str
    args: JSON


class Answer(NamedTuple):
    """What the model answers: text, tool calls, or both."""

    text: str
    calls: Sequence[Call] = ()


class OfflineModel(BaseChatModel):
    """A chat model without a language model in it.

    It keeps no state: it knows what is in the messages, and the tools bound to it say what it is asked to do. The
    same seed and the same messages get the same answer. A subclass writes `_reply`.
    """

    longest: ClassVar[int] = 2_000
    """Characters of a person's message that it reads."""
    seed: int | None = None
    """Chooses among answers that fit equally well."""

    @abstractmethod
    def _reply(self, prompt: Prompt) -> Answer:
        """Answer a prompt."""

    @property
    def _identifying_params(self) -> JSON:
        return {"model": "offline", "seed": self.seed}

    def bind_tools(
        self,
        tools: Sequence[JSON | type | Callable[..., Any] | BaseTool],
        *,
        tool_choice: str | None = None,  # noqa: ARG002 (it knows by itself when to call which)
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Bind tools; only their names matter here."""
        named = [{"type": "function", "function": {"name": _name(tool)}} for tool in tools]
        return self.bind(tools=named, **kwargs)

    def get_num_tokens(self, text: str) -> int:
        """Count tokens as a quarter of the characters; no tokenizer is needed."""
        return -(-len(text) // 4)

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,  # noqa: ARG002
        run_manager: CallbackManagerForLLMRun | None = None,  # noqa: ARG002
        **kwargs: Any,
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self._message(messages, kwargs))])

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,  # noqa: ARG002
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        for chunk in _chunks(self._message(messages, kwargs)):
            if run_manager:
                run_manager.on_llm_new_token(chunk.text, chunk=chunk)
            yield chunk

    async def _astream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,  # noqa: ARG002
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[ChatGenerationChunk]:
        for chunk in _chunks(self._message(messages, kwargs)):
            if run_manager:
                await run_manager.on_llm_new_token(chunk.text, chunk=chunk)
            yield chunk
            await asyncio.sleep(0)

    def _message(self, messages: Sequence[BaseMessage], kwargs: JSON) -> AIMessage:
        tools = frozenset(_name(tool) for tool in kwargs.get("tools") or [])
        text, calls = self._reply(Prompt.of(messages, tools, self.longest))
        tool_calls = [
            {"name": name, "args": args, "id": _call_id(messages, name, args), "type": "tool_call"}
            for name, args in calls
        ]
        read = sum(self.get_num_tokens(str(message.content)) for message in messages)
        written = self.get_num_tokens(text + "".join(json.dumps(args) for _, args in calls))
        return AIMessage(
            content=text,
            tool_calls=tool_calls,
            response_metadata={"model_name": "offline", "finish_reason": "tool_calls" if calls else "stop"},
            usage_metadata={"input_tokens": read, "output_tokens": written, "total_tokens": read + written},
        )


def _chunks(message: AIMessage) -> Iterator[ChatGenerationChunk]:
    """Cut a message into chunks: its words, its tool calls, its metadata."""
    for word in re.findall(r"\s*\S+|\s+$", str(message.content)):
        yield ChatGenerationChunk(message=AIMessageChunk(content=word))
    for index, call in enumerate(message.tool_calls):
        args = json.dumps(call["args"], ensure_ascii=False)
        half = len(args) // 2
        first = tool_call_chunk(name=call["name"], args=args[:half], id=call["id"], index=index)
        rest = tool_call_chunk(name=None, args=args[half:], id=None, index=index)
        yield ChatGenerationChunk(message=AIMessageChunk(content="", tool_call_chunks=[first]))
        yield ChatGenerationChunk(message=AIMessageChunk(content="", tool_call_chunks=[rest]))
    yield ChatGenerationChunk(
        message=AIMessageChunk(
            content="",
            usage_metadata=message.usage_metadata,
            response_metadata=message.response_metadata,
            chunk_position="last",
        )
    )


def _name(tool: Any) -> str:
    if isinstance(tool, str):
        return tool
    if isinstance(tool, dict):
        function = tool.get("function")
        return str((function if isinstance(function, dict) else tool).get("name") or tool.get("title") or "")
    return str(getattr(tool, "name", None) or getattr(tool, "__name__", ""))


def _call_id(messages: Sequence[BaseMessage], name: str, args: JSON) -> str:
    conversation = repr([(message.type, message.content) for message in messages])
    key = f"{conversation}{name}{json.dumps(args, sort_keys=True)}".encode("utf-8", "replace")
    return f"call_{hashlib.sha256(key).hexdigest()[:24]}"
