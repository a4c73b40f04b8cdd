"""Reading a prompt: its sections, its pages, the player's words and the dice of this turn."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from questbook.notebooks import parse_fields
from questbook.types import JSON

_WORDS = "message"  # tags of the person's newest words, where sections open their message


@dataclass(frozen=True)
class Prompt:
    """What the messages of a prompt say.

    Attributes:
        system: All sections: the system messages, and those that open the person's newest message.
        conversation: Every other message, the person's with their own words alone.
        tools: Names of the tools that may be called.
    """

    system: str
    conversation: Sequence[BaseMessage]
    tools: frozenset[str]

    @classmethod
    def of(cls, messages: Sequence[BaseMessage], tools: frozenset[str], longest: int = 2_000) -> Prompt:
        """Read a list of messages.

        Args:
            messages: The messages.
            tools: Names of the tools that may be called.
            longest: Characters of a person's message that are read; what follows them is cut.
        """
        texts = [text_of(m) for m in messages if isinstance(m, SystemMessage)]
        newest = next((m for m in reversed(messages) if isinstance(m, HumanMessage)), None)
        if newest:
            texts.append(re.split(rf"^<{_WORDS}>\n?", text_of(newest), maxsplit=1, flags=re.MULTILINE)[0])
        conversation = [_in_own_words(m, longest) for m in messages if not isinstance(m, SystemMessage)]
        return cls("\n\n".join(texts), conversation, tools)

    def section(self, name: str) -> str:
        """Return the text between the tags of a section, each on a line of its own; "" if there is none."""
        return section(self.system, name)

    def page(self, name: str) -> JSON:
        """Return the notebook in a section."""
        return parse_fields(self.section(name))

    @property
    def summary(self) -> str:
        """The running summary."""
        return unescape(self.section("summary"))

    @property
    def memories(self) -> list[JSON]:
        """The recalled memories."""
        return _lines(self.section("memories"))

    @property
    def missing(self) -> list[str]:
        """The fields that the interview still has to ask for."""
        return [field.strip() for field in self.section("missing").split(",") if field.strip()]

    @property
    def turns(self) -> list[JSON]:
        """The turns to note or to sum up."""
        return _lines(self.section("turns"))

    @property
    def words(self) -> str:
        """The player's newest words; several messages in a row count as one."""
        return "\n".join(text_of(m) for m in self._turn() if isinstance(m, HumanMessage))

    @property
    def rolls(self) -> list[JSON]:
        """The rolls since the player spoke."""
        results = (_result(m) for m in self._turn() if isinstance(m, ToolMessage))
        return [result for result in results if "total" in result]

    @property
    def failed_roll(self) -> bool:
        """Whether a roll of this turn came back as an error; asking again would not help."""
        answers = [m for m in self._turn() if isinstance(m, ToolMessage) and m.name != "CharacterNotebook"]
        asked = {
            call["id"]
            for m in self._turn()
            if isinstance(m, AIMessage)
            for call in m.tool_calls
            if call["name"] == "roll_dice"
        }
        return any("total" not in _result(m) for m in answers if m.tool_call_id in asked)

    @property
    def asked_last(self) -> str:
        """The model's own last words before the player's."""
        before = self.conversation[: len(self.conversation) - len(self._turn())]
        return next((text_of(m) for m in reversed(before) if isinstance(m, AIMessage) and text_of(m).strip()), "")

    @property
    def last(self) -> BaseMessage | None:
        """The last message."""
        return self.conversation[-1] if self.conversation else None

    def exchanges(self) -> list[tuple[str, str]]:
        """List the conversation before this turn as (player's words, reply)."""
        exchanges: list[tuple[str, str]] = []
        for message in self.conversation[: len(self.conversation) - len(self._turn())]:
            text = text_of(message).strip()
            if isinstance(message, HumanMessage):
                exchanges.append((text, ""))
            elif isinstance(message, AIMessage) and text and exchanges:
                player, reply = exchanges[-1]
                exchanges[-1] = (player, f"{reply}\n{text}".strip())
            elif isinstance(message, AIMessage) and text:
                exchanges.append(("", text))
        return exchanges

    def _turn(self) -> Sequence[BaseMessage]:
        """Return the messages from the player's last words on."""
        start = None
        for index in range(len(self.conversation) - 1, -1, -1):
            if isinstance(self.conversation[index], HumanMessage):
                start = index
            elif start is not None:
                break
        return self.conversation[start:] if start is not None else self.conversation[len(self.conversation) :]


def _result(message: ToolMessage) -> JSON:
    """Return what a tool answered: beside its words, or, in threads of version 0.2 and before, as its words."""
    return message.artifact if isinstance(message.artifact, dict) else read_object(text_of(message))


def _in_own_words(message: BaseMessage, longest: int) -> BaseMessage:
    """Return a person's message with what they wrote, without the sections that open it and without escapes."""
    if not isinstance(message, HumanMessage):
        return message
    text = text_of(message)
    words = section(text, _WORDS) if f"\n<{_WORDS}>\n" in f"\n{text}" else text
    return message.model_copy(update={"content": unescape(words[: 5 * longest])[:longest]})


def section(text: str, name: str) -> str:
    """Return the text between the tags <name> and </name>, each at the start of a line."""
    match = re.search(rf"^<{name}>\n(.*?)^</{name}>", text, re.DOTALL | re.MULTILINE)
    return match[1].strip("\n") if match else ""


def unescape(text: str) -> str:
    """Undo the escapes of a section; a person's own character references stay (and may be of any length)."""
    return re.sub(r"&(amp|lt|gt|quot|#x27);", lambda match: html.unescape(match[0]), text)


def text_of(message: BaseMessage) -> str:
    """Return a message's text, whether its content is a string or a list of blocks."""
    content = message.content
    if isinstance(content, str):
        return content
    parts = (part if isinstance(part, str) else part.get("text", "") for part in content)
    return "".join(part for part in parts if isinstance(part, str))


def _lines(text: str) -> list[JSON]:
    return [record for line in text.splitlines() if (record := read_object(line))]


def read_object(text: str) -> JSON:
    """Read a JSON object; {} if the text is none."""
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
