"""The prompt as a stack of named sections, so that a person can see what the model saw, and set their order.

What stays the same comes first, then the conversation, which only grows, then what changes every turn: providers charge
less for the beginning that a prompt shares with the one before. The sections that change are in the newest message of
the person, before their words: a second system message is refused by Anthropic and by many local chat templates. The
person's words are escaped in every message, and between tags of their own beside sections, so that they can never
pass for one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from langchain_core.messages import AnyMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.messages.utils import count_tokens_approximately

from questbook.graphs.errors import SettingsError
from questbook.graphs.settings import Settings
from questbook.graphs.turn.state import TurnState
from questbook.memory.buffer.policies import count_verbatim_turns
from questbook.notebooks import PromptPlace, render_value
from questbook.types import JSON

INSTRUCTIONS = "instructions"
MESSAGES = "messages"
WORDS = "message"
"""Tags around the person's newest words, if their message has sections too."""


class Section(NamedTuple):
    """A named part of the prompt. The one called "instructions" has no tags."""

    name: str
    text: str


class Prompt(NamedTuple):
    """What a model is given: the system message, turns word for word, and sections before the person's newest words."""

    sections: list[Section]
    conversation: list[AnyMessage]
    behind: list[Section]

    @property
    def messages(self) -> list[BaseMessage]:
        """The messages to send."""
        messages = [_escape_words(message) for message in self.conversation]
        if self.behind:
            newest = next(
                (n for n, m in reversed([*enumerate(messages)]) if isinstance(m, HumanMessage)), len(messages)
            )
            messages[newest : newest + 1] = [_beside(self.behind, messages[newest : newest + 1])]
        return [system_message(self.sections), *messages]

    def report(self, node: str, turn: int) -> JSON:
        """Return what the stream says of the prompt: the sections with their tokens, and the fidelity.

        Fidelity is how many turns before this one are in the prompt word for word, of how many there were.
        """
        text = "\n".join(f"{message.type}: {message.text}" for message in self.conversation)
        tokens = count_tokens_approximately(self.conversation)
        conversation = {"section": MESSAGES, "tokens": tokens, "text": text}
        return {
            "prompt": [*map(_report, self.sections), conversation, *map(_report, self.behind)],
            "node": node,
            "fidelity": {"turns": count_verbatim_turns(self.conversation), "of": max(turn - 1, 0)},
        }


def stack(
    sections: Iterable[Section], conversation: Sequence[AnyMessage], settings: Settings, last: Iterable[Section] = ()
) -> Prompt:
    """Put a prompt together in the order that the settings name; sections without text are left out.

    `sections` come before the conversation, `last` beside the person's newest words, unless the settings say otherwise.

    Raises:
        SettingsError: An added section has the name of one that is there.
    """
    own, closing = list(sections), list(last)
    if taken := sorted(
        settings.prompt_sections.keys() & {MESSAGES, WORDS, *(section.name for section in own + closing)}
    ):
        raise SettingsError(
            f"Setting prompt_sections: the prompt has a section {taken[0]!r} already; choose another name."
        )
    for place, offset in (("before", 0), ("after", 1)):
        added = [Section(name, extra.text) for name, extra in settings.prompt_sections.items() if extra.place == place]
        at = next((i for i, section in enumerate(own) if section.name == INSTRUCTIONS), 0) + offset
        own[at:at] = added
    known = {section.name: section for section in own + closing}
    order = [name for name in dict.fromkeys(settings.prompt_order) if name in known or name == MESSAGES]
    cut = order.index(MESSAGES) if MESSAGES in order else len(order)
    front = [*order[:cut], *(section.name for section in own if section.name not in order)]
    behind = [*order[cut + 1 :], *(section.name for section in closing if section.name not in order)]
    return Prompt(
        [known[name] for name in front if known[name].text],
        list(conversation),
        [known[name] for name in behind if known[name].text],
    )


def page_sections(state: TurnState, place: PromptPlace | None = None) -> list[Section]:
    """Render the pages of one place in the prompt (None: all), in the order in which the state has them."""
    sections = []
    for channel, page in state.PAGES.items():
        if place in (page.place(), None):
            sections.append(Section(channel, getattr(state, channel).render()))
    return sections


def opening_sections(instructions: str, state: TurnState) -> list[Section]:
    """Return the beginning of a prompt: instructions, with the pages that belong before and after them."""
    return [*page_sections(state, "before"), Section(INSTRUCTIONS, instructions), *page_sections(state, "after")]


def prompt_about_turns(
    sections: Iterable[Section], turns: Iterable[Mapping[str, object]], last: Iterable[Section] = ()
) -> list[BaseMessage]:
    """Make a prompt for work after the reply: turns, as JSON, in the place of a conversation.

    The sections `last`, which change from call to call, are with the turns.
    """
    lines = Section("turns", "\n".join(render_value(turn) for turn in turns))
    return [system_message(sections), HumanMessage(_join([*last, lines]))]


def system_message(sections: Iterable[Section]) -> SystemMessage:
    """Join sections; each but the instructions is between tags of its name."""
    return SystemMessage(_join(sections))


def tag(section: Section) -> str:
    """Put a section between tags of its name."""
    return f"<{section.name}>\n{section.text}\n</{section.name}>"


def escape(text: str) -> str:
    """Escape text that a model or a person wrote, so that it cannot form a tag."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _join(sections: Iterable[Section]) -> str:
    return "\n\n".join(s.text if s.name == INSTRUCTIONS else tag(s) for s in sections if s.text)


def _escape_words(message: BaseMessage) -> BaseMessage:
    """Escape a person's words, in every turn alike, so that an old message stays what it was."""
    if not isinstance(message, HumanMessage):
        return message
    if isinstance(message.content, str):
        return message.model_copy(update={"content": escape(message.content)})
    return message.model_copy(update={"content": [_escape_block(block) for block in message.content]})


def _escape_block(block: str | JSON) -> str | JSON:
    if isinstance(block, str):
        return escape(block)
    return block | {"text": escape(block["text"])} if isinstance(block.get("text"), str) else block


def _beside(sections: Sequence[Section], messages: Sequence[BaseMessage]) -> BaseMessage:
    """Put sections before a person's words; without a message (none: the model speaks first), they stand alone."""
    text = _join(sections)
    if not messages:
        return HumanMessage(text)
    [message] = messages
    if isinstance(message.content, str):
        return message.model_copy(update={"content": f"{text}\n\n{tag(Section(WORDS, message.content))}"})
    before, after = {"type": "text", "text": f"{text}\n\n<{WORDS}>"}, {"type": "text", "text": f"</{WORDS}>"}
    return message.model_copy(update={"content": [before, *message.content, after]})


def _report(section: Section) -> JSON:
    """Return a section with its tokens, about four characters each."""
    return {"section": section.name, "tokens": math.ceil(len(section.text) / 4), "text": section.text}
