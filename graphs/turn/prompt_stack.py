"""The prompt as a stack of named sections, so that a person can see what the model saw, and say in which order."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from langchain_core.messages import AnyMessage, BaseMessage, SystemMessage
from langchain_core.messages.utils import count_tokens_approximately

from questbook.graphs.errors import SettingsError
from questbook.graphs.settings import Settings
from questbook.memory.buffer.policies import count_verbatim_turns

JSON = dict[str, Any]

INSTRUCTIONS = "instructions"
MESSAGES = "messages"


class Section(NamedTuple):
    """A named part of the system message. The one called "instructions" stands without tags."""

    name: str
    text: str


class Prompt(NamedTuple):
    """What a model is given.

    Attributes:
        sections: The system message, in order.
        conversation: The turns that stand word for word.
        behind: Sections that stand after the conversation, in a system message of their own.
    """

    sections: list[Section]
    conversation: list[AnyMessage]
    behind: list[Section]

    @property
    def messages(self) -> list[BaseMessage]:
        """The messages to send."""
        behind = [system_message(self.behind)] if self.behind else []
        return [system_message(self.sections), *self.conversation, *behind]

    def told(self, node: str, turn: int) -> JSON:
        """Return what the stream tells of it: the sections with their tokens, and the fidelity.

        Fidelity is how many turns before this one stand word for word, of how many there were.
        """
        told = [*weigh(self.sections), _weighed_messages(self.conversation), *weigh(self.behind)]
        return {
            "prompt": told,
            "node": node,
            "fidelity": {"turns": count_verbatim_turns(self.conversation), "of": max(turn - 1, 0)},
        }


def stack(
    sections: Iterable[Section],
    conversation: Sequence[AnyMessage],
    settings: Settings,
    last: Iterable[Section] = (),
) -> Prompt:
    """Put a prompt together in the order that the settings want; sections without text are left out.

    Args:
        sections: What stands before the conversation.
        conversation: The turns that stand word for word.
        settings: Say what else stands where.
        last: What stands behind the conversation, unless the settings want it elsewhere.

    Raises:
        SettingsError: An added section has the name of one that is there.
    """
    own, closing = list(sections), list(last)
    if taken := sorted(settings.prompt_sections.keys() & {MESSAGES, *(section.name for section in own + closing)}):
        raise SettingsError(
            f"Setting prompt_sections: the prompt has a section {taken[0]!r} already; name it otherwise."
        )
    for place, where in (("before", 0), ("after", 1)):
        added = [Section(name, extra.text) for name, extra in settings.prompt_sections.items() if extra.place == place]
        at = next((i for i, section in enumerate(own) if section.name == INSTRUCTIONS), 0) + where
        own[at:at] = added
    known = {section.name: section for section in own + closing}
    wanted = [name for name in dict.fromkeys(settings.prompt_order) if name in known or name == MESSAGES]
    cut = wanted.index(MESSAGES) if MESSAGES in wanted else len(wanted)
    rest = [section.name for section in own if section.name not in wanted]
    behind = [*wanted[cut + 1 :], *(section.name for section in closing if section.name not in wanted)]
    front = [*wanted[:cut], *rest]
    return Prompt(
        [known[name] for name in front if known[name].text],
        list(conversation),
        [known[name] for name in behind if known[name].text],
    )


def system_message(sections: Iterable[Section]) -> SystemMessage:
    """Put sections together; each but the instructions stands between tags of its name."""
    return SystemMessage("\n\n".join(s.text if s.name == INSTRUCTIONS else tagged(s) for s in sections if s.text))


def weigh(sections: Iterable[Section]) -> list[JSON]:
    """Count tokens by section, about four characters each: [{"section", "tokens", "text"}, …]."""
    return [{"section": s.name, "tokens": math.ceil(len(s.text) / 4), "text": s.text} for s in sections]


def tagged(section: Section) -> str:
    """Put a section between tags of its name."""
    return f"<{section.name}>\n{section.text}\n</{section.name}>"


def escaped(text: str) -> str:
    """Write what a model or a person wrote so that no tag can be made of it."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _weighed_messages(conversation: Sequence[AnyMessage]) -> JSON:
    said = "\n".join(f"{message.type}: {message.text}" for message in conversation)
    return {"section": MESSAGES, "tokens": count_tokens_approximately(conversation), "text": said}
