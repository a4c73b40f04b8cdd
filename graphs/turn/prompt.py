"""The prompt as a stack of named sections, so that a person can see what the model saw, and set their order.

What stays the same comes first, since providers charge less for a beginning that a prompt shares with the one before.
The sections that change are in the person's newest message, before their words: a second system message is refused by
Anthropic and by many local chat templates. The person's words are escaped, so that they never pass for a section.

Of a prompt that is too long, by the model's profile or the provider's refusal, the oldest turns leave, and the channel
`window` keeps how much of the conversation fits, and of memories as much, for the prompts that follow and the buffer.
"""

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from langchain_core.messages import AnyMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.messages.utils import count_tokens_approximately

from questbook.graphs.errors import SettingsError
from questbook.graphs.settings import Settings
from questbook.graphs.turn.state import TurnState
from questbook.memory.buffer.policies import latest_messages, split_turns, turn_text
from questbook.memory.buffer.summary import extend_summary, extract
from questbook.memory.recall.intents import off_record
from questbook.memory.text.words import count_tokens
from questbook.notebooks import PromptPlace, render_value
from questbook.types import JSON

INSTRUCTIONS = "instructions"
MESSAGES = "messages"
WORDS = "message"  # tags around the person's newest words, if their message has sections too
MARKDOWN = """
- Of Markdown use *emphasis*, **strong**, lists, > quotes and --- alone: no headings, tables, links, images or code."""
"""A rule of the prompts of replies: what page and terminal show of it."""
_FILLED = 0.9  # of a window; tokens are only estimated, at four characters each
_OF_THE_PAST = ("summary", "memories", "character_memories")  # sections that grow as turns leave the conversation


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
            places = [place for place, message in enumerate(messages) if isinstance(message, HumanMessage)]
            newest = places[-1] if places else len(messages)
            messages[newest : newest + 1] = [_beside(self.behind, messages[newest : newest + 1])]
        return [SystemMessage(_join(self.sections)), *messages]

    def report(self, node: str, turn: int) -> JSON:
        """Return what the stream says of the prompt: sections with their tokens; turns word for word, of how many."""
        text = "\n".join(f"{message.type}: {message.text}" for message in self.conversation)
        tokens = count_tokens_approximately(self.conversation)
        turns = max(0, len(split_turns(self.conversation, 0)) - 1)
        conversation = {"section": MESSAGES, "tokens": tokens, "text": text}
        return {
            "prompt": [*map(_report, self.sections), conversation, *map(_report, self.behind)],
            "node": node,
            "fidelity": {"turns": turns, "of": max(turn - 1, 0)},
        }


def stack(
    sections: Iterable[Section], conversation: Sequence[AnyMessage], settings: Settings, last: Iterable[Section] = ()
) -> Prompt:
    """Put a prompt together in the order that the settings name; sections without text are left out.

    `sections` come before the conversation, `last` beside the person's newest words, unless the settings say otherwise.
    A section that the settings add must have a name of its own: else a SettingsError says so.
    """
    own, closing = list(sections), list(last)
    names = {MESSAGES, WORDS, *(section.name for section in own + closing)}
    if taken := sorted(settings.prompt_sections.keys() & names):
        problem = f"the prompt has a section {taken[0]!r} already; choose another name."
        raise SettingsError(f"Setting prompt_sections: {problem}")
    for place, offset in (("before", 0), ("after", 1)):
        added = [Section(name, extra.text) for name, extra in settings.prompt_sections.items() if extra.place == place]
        at = next((i for i, section in enumerate(own) if section.name == INSTRUCTIONS), 0) + offset
        own[at:at] = added
    known = {section.name: section for section in own + closing}
    order = [name for name in dict.fromkeys(settings.prompt_order) if name in known or name == MESSAGES]
    cut = order.index(MESSAGES) if MESSAGES in order else len(order)
    front = [*order[:cut], *(section.name for section in own if section.name not in order)]
    behind = [*order[cut + 1 :], *(section.name for section in closing if section.name not in order)]
    first, beside = ([known[name] for name in part if known[name].text] for part in (front, behind))
    return Prompt(first, list(conversation), beside)


def page_sections(state: TurnState, place: PromptPlace | None = None) -> list[Section]:
    """Render the pages of one place in the prompt (None: all), in the order in which the state has them."""
    channels = [channel for channel, page in state.PAGES.items() if place in (page.place(), None)]
    return [Section(channel, getattr(state, channel).render()) for channel in channels]


def opening_sections(instructions: str, state: TurnState) -> list[Section]:
    """Return the beginning of a prompt: instructions, with the pages that belong before and after them."""
    return [*page_sections(state, "before"), Section(INSTRUCTIONS, instructions), *page_sections(state, "after")]


def prompt_about_turns(
    sections: Iterable[Section], turns: Iterable[Mapping[str, object]], last: Iterable[Section] = ()
) -> list[BaseMessage]:
    """Make a prompt for work after the reply: `last`, which changes from call to call, and turns, as JSON."""
    lines = Section("turns", "\n".join(render_value(turn) for turn in turns))
    return [SystemMessage(_join(sections)), HumanMessage(_join([*last, lines]))]


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
    content = message.content
    escaped = _escaped(content) if isinstance(content, str) else [_escaped(block) for block in content]
    return message.model_copy(update={"content": escaped})


def _escaped(block: str | JSON) -> str | JSON:
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
    return {"section": section.name, "tokens": math.ceil(len(section.text) / 4), "text": section.text}


def shorten(prompt: Prompt, tokens: int, settings: Settings) -> Prompt:
    """Return a prompt with the latest turns that fit in so many tokens, at least the last.

    Of each turn that leaves, the summary gets the first sentences of the reply, as far as it has room.
    """
    kept = latest_messages(prompt.conversation, tokens)
    turns = split_turns(prompt.conversation, 0)
    gone = [turn_text(turn.messages) for turn in turns[: len(turns) - len(split_turns(kept, 0))]]
    if not gone:
        return prompt
    public = [text._asdict() for text in gone if not off_record(text.player)]
    said = [escape(sentence) for text in public for sentence in extract(text, quote=False)]
    before = next((section.text for section in [*prompt.sections, *prompt.behind] if section.name == "summary"), "")
    summary = Section("summary", extend_summary(before, said, settings.summary_tokens))
    if not before:
        return Prompt([*prompt.sections, *([summary] if summary.text else [])], kept, prompt.behind)
    return _replace_sections(prompt._replace(conversation=kept), lambda section: section.name == "summary", [summary])


def _replace_sections(prompt: Prompt, wanted: Callable[[Section], bool], new: list[Section]) -> Prompt:
    places = (prompt.sections, prompt.behind)
    sections, behind = ([s for section in place for s in (new if wanted(section) else [section])] for place in places)
    return Prompt(sections, prompt.conversation, behind)


def fit(prompt: Prompt, profile: Any, tools: Sequence[JSON], settings: Settings) -> tuple[Prompt, JSON]:
    """Shorten a prompt that is too long by the model's profile, if there is one; return the channel `window`, too."""
    most = (profile or {}).get("max_input_tokens")
    if not isinstance(most, int) or most <= 0:
        return prompt, {}
    used = count_tokens_approximately(prompt.messages) + len(json.dumps(list(tools))) // 4
    if used <= (room := int(most * _FILLED)):
        return prompt, {}
    fixed = used - count_tokens_approximately(prompt.conversation) - _tokens_of_the_past(prompt)
    tokens = max(0, (room - fixed - settings.summary_tokens) // 2)  # the other half is for memories
    return shorten(prompt, tokens, settings), {"model": settings.model, "tokens": tokens}


def fit_refused(prompt: Prompt, settings: Settings) -> tuple[Prompt, JSON]:
    """Shorten a prompt that the provider refused: the last turn alone is left, without memories.

    Later prompts may have half of the tokens that conversation and memories have now: a short conversation with long
    memories leaves them half together, so that a later prompt has memories again.
    """
    shorter = _replace_sections(shorten(prompt, 0, settings), lambda s: s.name in _OF_THE_PAST[1:], [])
    conversation, past = count_tokens_approximately(prompt.conversation), _tokens_of_the_past(prompt)
    return shorter, {"model": settings.model, "tokens": max(conversation // 2, (conversation + past) // 4)}


def _tokens_of_the_past(prompt: Prompt) -> int:
    parts = [*prompt.sections, *prompt.behind]
    return sum(count_tokens(section.text) for section in parts if section.name in _OF_THE_PAST)
