"""Prompt: what a list of messages asks the storyteller to do, and what it tells it."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from questbook.notebooks import parse_fields

JSON = dict[str, Any]


@dataclass(frozen=True)
class Prompt:
    """A prompt, read.

    Attributes:
        system: All system messages together.
        conversation: Every other message.
        tools: Names of the tools that may be called.
    """

    system: str
    conversation: Sequence[BaseMessage]
    tools: frozenset[str]

    @classmethod
    def of(cls, messages: Sequence[BaseMessage], tools: frozenset[str]) -> Prompt:
        """Read a list of messages."""
        system = "\n\n".join(text_of(m) for m in messages if isinstance(m, SystemMessage))
        return cls(system, [m for m in messages if not isinstance(m, SystemMessage)], tools)

    def section(self, name: str) -> str:
        """Return the text between the tags of a section, each on a line of its own; "" if there is none."""
        return section(self.system, name)

    def page(self, name: str) -> JSON:
        """Return a notebook that stands in a section."""
        return parse_fields(self.section(name))

    @property
    def summary(self) -> str:
        """The running summary."""
        return html.unescape(self.section("summary"))

    @property
    def memories(self) -> list[JSON]:
        """The recalled memories."""
        return _lines(self.section("memories"))

    @property
    def missing(self) -> list[str]:
        """What the interview has still to find out."""
        return [field.strip() for field in self.section("missing").split(",") if field.strip()]

    @property
    def turns(self) -> list[JSON]:
        """The turns to note or to sum up."""
        newest = next((m for m in reversed(self.conversation) if isinstance(m, HumanMessage)), None)
        return _lines(section(text_of(newest), "turns")) if newest else []

    @property
    def words(self) -> str:
        """What the player said last: several messages in a row are said together."""
        return "\n".join(text_of(m) for m in self._turn() if isinstance(m, HumanMessage))

    @property
    def rolls(self) -> list[JSON]:
        """What the dice have said since the player spoke."""
        found = (object_of(text_of(m)) for m in self._turn() if isinstance(m, ToolMessage))
        return [roll for roll in found if "total" in roll]

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
        return any("total" not in object_of(text_of(m)) for m in answers if m.tool_call_id in asked)

    @property
    def asked_last(self) -> str:
        """What the storyteller itself said last before the player's words."""
        before = self.conversation[: len(self.conversation) - len(self._turn())]
        return next((text_of(m) for m in reversed(before) if isinstance(m, AIMessage) and text_of(m).strip()), "")

    @property
    def last(self) -> BaseMessage | None:
        """The last message."""
        return self.conversation[-1] if self.conversation else None

    def exchanges(self) -> list[tuple[str, str]]:
        """List the conversation before this turn as (player's words, reply)."""
        told: list[tuple[str, str]] = []
        for message in self.conversation[: len(self.conversation) - len(self._turn())]:
            text = text_of(message).strip()
            if isinstance(message, HumanMessage):
                told.append((text, ""))
            elif isinstance(message, AIMessage) and text and told:
                told[-1] = (told[-1][0], f"{told[-1][1]}\n{text}".strip())
            elif isinstance(message, AIMessage) and text:
                told.append(("", text))
        return told

    def _turn(self) -> Sequence[BaseMessage]:
        """Return the messages from the player's last words on."""
        start = None
        for index in range(len(self.conversation) - 1, -1, -1):
            if isinstance(self.conversation[index], HumanMessage):
                start = index
            elif start is not None:
                break
        return self.conversation[start:] if start is not None else self.conversation[len(self.conversation) :]


def section(text: str, name: str) -> str:
    """Return what stands between the tags <name> and </name>, each at the start of a line."""
    found = re.search(rf"^<{name}>\n(.*?)^</{name}>", text, re.DOTALL | re.MULTILINE)
    return found[1].strip("\n") if found else ""


def text_of(message: BaseMessage) -> str:
    """Return a message's text, whether its content is a string or a list of blocks."""
    content = message.content
    if isinstance(content, str):
        return content
    parts = (part if isinstance(part, str) else part.get("text", "") for part in content)
    return "".join(part for part in parts if isinstance(part, str))


def _lines(text: str) -> list[JSON]:
    return [found for line in text.splitlines() if (found := object_of(line))]


def object_of(text: str) -> JSON:
    """Read a JSON object; {} if the text is none."""
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
