"""What chat models without a language model share: reading a prompt's sections, pages and dice; streaming; tools."""

import asyncio
import hashlib
import html
import json
import re
import tomllib
from abc import abstractmethod
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, ClassVar, NamedTuple, Self

from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.messages.tool import tool_call, tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable

from questbook.notebooks import parse_fields
from questbook.types import JSON

_WORDS = "message"  # tags of the person's newest words, where sections open their message
_LABEL = "name|class|ancestry|race|background|goal|remember|archive|away|note|important|question|also|ps|yes|no|ok|well"
_SPEAKER = re.compile(rf"^(?!(?i:{_LABEL}): )(?:[\w.@+-]{{1,200}}|(?:[A-Z]\w* ?){{2,3}}): ")
"""Whose words they are, where several play: "bob: I wait." or "Ann Lee: I wait." """


class Call(NamedTuple):
    """A tool that the model calls, and with what."""

    tool: str
    args: JSON


class Answer(NamedTuple):
    """What the model answers: text, tool calls, or both."""

    text: str
    calls: Sequence[Call] = ()


@dataclass(frozen=True)
class Prompt:
    """What the messages of a prompt say; of a person's messages, their own words alone."""

    system: str  # all sections: the system messages, and those that open the person's newest message
    before: Sequence[BaseMessage]  # the conversation up to this turn
    turn: Sequence[BaseMessage]  # the person's newest messages, and what came after them
    tools: frozenset[str]  # names of the tools that may be called

    @classmethod
    def of(cls, messages: Sequence[BaseMessage], tools: frozenset[str], longest: int = 2_000) -> Self:
        """Read messages; of each of a person's, the first `longest` characters."""
        texts: list[str] = [m.text for m in messages if isinstance(m, SystemMessage)]
        others = [m for m in messages if not isinstance(m, SystemMessage)]
        start = next((at for at in range(len(others), 0, -1) if isinstance(others[at - 1], HumanMessage)), 0)
        if start:
            texts.append(re.split(rf"^<{_WORDS}>\n?", others[start - 1].text, maxsplit=1, flags=re.MULTILINE)[0])
        start = start or len(others)
        while start and isinstance(others[start - 1], HumanMessage):
            start -= 1
        conversation = [_in_own_words(m, longest) for m in others]
        return cls("\n\n".join(texts), conversation[:start], conversation[start:], tools)

    def section(self, name: str) -> str:
        """Return the text between the tags of a section, each on a line of its own; "" if there is none."""
        return _section(self.system, name)

    def page(self, name: str) -> JSON:
        """Return the notebook in a section."""
        return parse_fields(self.section(name))

    @property
    def summary(self) -> str:
        """The running summary."""
        return unescape(self.section("summary"))

    def records(self, name: str) -> list[JSON]:
        """Return the JSON objects in a section, such as the memories."""
        return [record for line in self.section(name).splitlines() if (record := _read_object(line))]

    @property
    def missing(self) -> list[str]:
        """The fields that the interview still has to ask for."""
        return [field.strip() for field in self.section("missing").split(",") if field.strip()]

    @property
    def turns(self) -> list[JSON]:
        """The turns to note or to sum up."""
        turns = self.records("turns")
        return [turn | {"player": _without_speaker(turn["player"])} if "player" in turn else turn for turn in turns]

    @property
    def words(self) -> str:
        """The person's newest words; several messages in a row count as one."""
        return "\n".join(m.text for m in self.turn if isinstance(m, HumanMessage))

    @property
    def rolls(self) -> list[JSON]:
        """The rolls since the player spoke."""
        return [roll for m in self.turn if isinstance(m, ToolMessage) and "total" in (roll := _result(m))]

    @property
    def failed_roll(self) -> bool:
        """Whether a roll of this turn came back as an error; asking again would not help."""
        calls = [call for m in self.turn if isinstance(m, AIMessage) for call in m.tool_calls]
        asked = {call["id"] for call in calls if call["name"] == "roll_dice"}
        answers = [m for m in self.turn if isinstance(m, ToolMessage) and m.tool_call_id in asked]
        return any("total" not in _result(m) for m in answers)

    @property
    def asked_last(self) -> str:
        """The model's own last words before the person's."""
        return next((m.text for m in reversed(self.before) if isinstance(m, AIMessage) and m.text.strip()), "")

    @property
    def last(self) -> BaseMessage | None:
        """The last message."""
        return next(reversed([*self.before, *self.turn]), None)

    def exchanges(self) -> list[tuple[str, str]]:
        """List the conversation before this turn as (person's words, reply)."""
        exchanges: list[tuple[str, str]] = []
        for message in self.before:
            text = message.text.strip()
            if isinstance(message, HumanMessage):
                exchanges.append((text, ""))
            elif isinstance(message, AIMessage) and text:
                words, reply = exchanges.pop() if exchanges else ("", "")
                exchanges.append((words, f"{reply}\n{text}".strip()))
        return exchanges


class OfflineModel(BaseChatModel):
    """A chat model without a language model in it: a subclass writes `_reply`.

    The tools bound to it say what it is asked to do. The same seed and the same messages get the same answer.
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

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[LanguageModelInput, AIMessage]:
        """Bind tools; only their names matter here."""
        return self.bind(tools=[{"type": "function", "function": {"name": _name(tool)}} for tool in tools], **kwargs)

    def get_num_tokens(self, text: str) -> int:
        """Count a quarter of the characters."""
        return -(-len(text) // 4)

    def _generate(self, messages: list[BaseMessage], *_: Any, **kwargs: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self._message(messages, kwargs))])

    def _stream(self, messages: list[BaseMessage], *_: Any, **kwargs: Any) -> Iterator[ChatGenerationChunk]:
        yield from _chunks(self._message(messages, kwargs))

    async def _astream(self, messages: list[BaseMessage], *_: Any, **kwargs: Any) -> AsyncIterator[ChatGenerationChunk]:
        for chunk in _chunks(self._message(messages, kwargs)):
            yield chunk
            await asyncio.sleep(0)

    def _message(self, messages: Sequence[BaseMessage], kwargs: JSON) -> AIMessage:
        tools = frozenset(_name(tool) for tool in kwargs.get("tools") or [])
        text, calls = self._reply(Prompt.of(messages, tools, self.longest))
        said = repr([(message.type, message.content) for message in messages]) if calls else ""
        keys = [f"{said}{name}{json.dumps(args, sort_keys=True)}".encode("utf-8", "replace") for name, args in calls]
        ids = [f"call_{hashlib.sha256(key).hexdigest()[:24]}" for key in keys]
        tool_calls = [tool_call(name=one.tool, args=one.args, id=id_) for one, id_ in zip(calls, ids, strict=True)]
        read = sum(self.get_num_tokens(str(message.content)) for message in messages)
        written = self.get_num_tokens(text + "".join(json.dumps(args) for _, args in calls))
        about = {"model_name": "offline", "finish_reason": "tool_calls" if calls else "stop"}
        usage: Any = {"input_tokens": read, "output_tokens": written, "total_tokens": read + written}
        return AIMessage(content=text, tool_calls=tool_calls, response_metadata=about, usage_metadata=usage)


def load_texts(name: str) -> JSON:
    """Read a TOML file below this folder, such as "storyteller/intent"."""
    return tomllib.loads(files("questbook.graphs.offline").joinpath(f"{name}.toml").read_text(encoding="utf-8"))


def compile_text(text: str, parts: Mapping[str, str], flags: int = 0) -> re.Pattern[str]:
    """Compile an expression of a TOML file: without its line breaks, and with the part of that name for <name>."""
    named = re.compile(rf"(?<!\?P)<({'|'.join(parts) or 'nothing'})>")
    while named.search(text):
        text = named.sub(lambda match: f"(?:{parts[match[1]]})", text)
    return re.compile(re.sub(r"\n\s*", "", text), flags)


def _section(text: str, name: str) -> str:
    _, begun, rest = f"\n{text}".partition(f"\n<{name}>\n")
    section, ended, _ = f"\n{rest}".partition(f"\n</{name}>")
    return section.strip("\n") if begun and ended else ""


def unescape(text: str) -> str:
    """Undo the escapes of a section; a person's own character references stay (and may be of any length)."""
    return re.sub(r"&(amp|lt|gt|quot|#x27);", lambda match: html.unescape(match[0]), text)


def _read_object(text: str) -> JSON:
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _result(message: ToolMessage) -> JSON:
    """Return what a tool answered: beside its words, or, in threads of version 0.2 and before, as its words."""
    return message.artifact if isinstance(message.artifact, dict) else _read_object(message.text)


def _in_own_words(message: BaseMessage, longest: int) -> BaseMessage:
    if not isinstance(message, HumanMessage):
        return message
    text = message.text
    words = _section(text, _WORDS) if f"\n<{_WORDS}>\n" in f"\n{text}" else text
    return message.model_copy(update={"content": _without_speaker(unescape(words[: 5 * longest]))[:longest]})


def _without_speaker(text: str) -> str:
    """Return what somebody said without their name, which stands before it where several play."""
    return _SPEAKER.sub("", text)


def _chunks(message: AIMessage) -> Iterator[ChatGenerationChunk]:
    for word in re.findall(r"\s*\S+|\s+$", str(message.content)):
        yield ChatGenerationChunk(message=AIMessageChunk(content=word))
    for index, call in enumerate(message.tool_calls):
        args = json.dumps(call["args"], ensure_ascii=False)
        half = len(args) // 2
        first = tool_call_chunk(name=call["name"], args=args[:half], id=call["id"], index=index)
        rest = tool_call_chunk(name=None, args=args[half:], id=None, index=index)
        yield ChatGenerationChunk(message=AIMessageChunk(content="", tool_call_chunks=[first]))
        yield ChatGenerationChunk(message=AIMessageChunk(content="", tool_call_chunks=[rest]))
    about: JSON = {"usage_metadata": message.usage_metadata, "response_metadata": message.response_metadata}
    yield ChatGenerationChunk(message=AIMessageChunk(content="", chunk_position="last", **about))


def _name(tool: Any) -> str:
    if isinstance(tool, str):
        return tool
    if isinstance(tool, dict):
        function = tool.get("function")
        return str((function if isinstance(function, dict) else tool).get("name") or tool.get("title") or "")
    return str(getattr(tool, "name", None) or getattr(tool, "__name__", ""))
