"""OfflineModel: what chat models without a language model share: streaming, tools, and reading the prompt."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from abc import abstractmethod
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool

from questbook.graphs.offline.offline_prompt import Prompt

JSON = dict[str, Any]
Asked = tuple[str, JSON]
"""A tool's name and its arguments."""


class OfflineModel(BaseChatModel):
    """A chat model without a language model in it.

    It is stateless: everything it knows stands in the messages it is given, and the tools bound to it say what it is
    asked to do. The same seed and the same messages get the same answer. A subclass says what it answers: `_reply`.
    """

    seed: int | None = None
    """Makes one answer otherwise than another."""
    delay: float = 0.0
    """Seconds between words when streaming asynchronously."""

    @abstractmethod
    def _reply(self, prompt: Prompt) -> tuple[str, list[Asked]]:
        """Return what it says, and the tools that it calls."""

    @property
    def _identifying_params(self) -> JSON:
        return {"model": "offline", "seed": self.seed}

    def bind_tools(
        self,
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool],
        *,
        tool_choice: str | None = None,  # noqa: ARG002 (it knows by itself when to call which)
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Bind tools; only their names matter here."""
        known = [{"type": "function", "function": {"name": _name(tool)}} for tool in tools]
        return self.bind(tools=known, **kwargs)

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
        return ChatResult(generations=[ChatGeneration(message=self._answer(messages, kwargs))])

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,  # noqa: ARG002
        **kwargs: Any,
    ) -> ChatResult:
        return self._generate(messages, stop, None, **kwargs)

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,  # noqa: ARG002
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        for chunk in _chunks(self._answer(messages, kwargs)):
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
        for chunk in _chunks(self._answer(messages, kwargs)):
            if run_manager:
                await run_manager.on_llm_new_token(chunk.text, chunk=chunk)
            yield chunk
            await asyncio.sleep(self.delay)

    def _answer(self, messages: Sequence[BaseMessage], kwargs: JSON) -> AIMessage:
        tools = frozenset(_name(tool) for tool in kwargs.get("tools") or [])
        prompt = Prompt.of(messages, tools)
        content, asked = self._reply(prompt)
        calls = [
            {"name": name, "args": args, "id": _call_id(messages, name, args), "type": "tool_call"}
            for name, args in asked
        ]
        read = sum(self.get_num_tokens(str(m.content)) for m in messages)
        said = self.get_num_tokens(content + "".join(json.dumps(args) for _, args in asked))
        return AIMessage(
            content=content,
            tool_calls=calls,
            response_metadata={"model_name": "offline", "finish_reason": "tool_calls" if calls else "stop"},
            usage_metadata={"input_tokens": read, "output_tokens": said, "total_tokens": read + said},
        )


def _chunks(message: AIMessage) -> Iterator[ChatGenerationChunk]:
    """Cut a message into words, then its tool calls, then what came of it."""
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
    told = repr([(message.type, message.content) for message in messages])
    key = f"{told}{name}{json.dumps(args, sort_keys=True)}".encode("utf-8", "replace")
    return f"call_{hashlib.sha256(key).hexdigest()[:24]}"
