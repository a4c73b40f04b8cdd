"""Disclosure: a reply must not repeat a secret word for word, nor the tags of the prompt's sections."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import lru_cache, partial
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from questbook.graphs.models.guardrail import LENGTH, Check, Guard, Verdict
from questbook.graphs.settings import Settings
from questbook.graphs.turn.player_view import shown_memories
from questbook.graphs.turn.prompt import INSTRUCTIONS, WORDS, Prompt
from questbook.graphs.turn.state import TurnState
from questbook.graphs.turn.turn import notice
from questbook.memory.facts.fact import is_secret_record
from questbook.memory.text.words import plain_words
from questbook.notebooks import render_value
from questbook.types import JSON

RUN = 6
"""Words of a secret in a row that a reply must not have."""
VERBATIM = "what only you know, word for word"
MARKUP = "a tag of your prompt's sections"

_LONGEST_TAG = 60  # characters, blanks included, that are held back for what may become a tag
_OFTEN_EMPTY = {"summary", "memories", WORDS}  # sections
_UNSPACED = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"  # scripts without spaces: two characters count as a word
_RUN_OF_THEM = re.compile(f"[{_UNSPACED}]+")
_WORD = re.compile(rf"[{_UNSPACED}]{{1,2}}|[^\W_{_UNSPACED}]+")
_AGAIN = (
    "<table>\nThis comes from the table, not from the player. Your reply was stopped {where}, because what came next "
    "repeated {problem}. The player has not read that. {go_on} in words of your own that tell nothing of it.\n</table>"
)

Words = tuple[str, ...]


def guard_of(state: TurnState, prompt: Prompt, settings: Settings, hidden: Collection[str] = ()) -> Guard:
    """Return the guard of a reply: it limits its length and, where the state has pages with secrets, what it tells.

    Calls of the tools `hidden` are not streamed.
    """
    if not settings.guard_secrets or not any(page.SECRET for page in state.PAGES.values()):
        return Guard(settings.max_reply_chars, hidden=hidden)
    secrets = secret_phrases(secret_texts(state))
    checks: list[Check] = [partial(check_tags, tag=_tag_of(state, prompt))]
    if secrets:
        checks.append(SecretCheck(secrets, lambda: _public_texts(state, prompt)))
    return Guard(settings.max_reply_chars, checks, _ask_again, hidden)


def guard_notices(guard: Guard, settings: Settings, turn: int, node: str) -> list[JSON]:
    """Say why the guard ended a reply, if it did."""
    if not guard.problem:
        return []
    if guard.problem == LENGTH:
        limit = f"{settings.max_reply_chars:,} characters"
        return [notice(turn, node, f"The reply was cut after {limit}.", "Setting QUESTBOOK_MAX_REPLY_CHARS.")]
    text = "The reply was about to tell what the player must not know, twice, so it was cut there."
    return [notice(turn, node, text, f"It repeated {guard.problem}. Setting QUESTBOOK_GUARD_SECRETS.")]


def secret_texts(state: TurnState) -> list[str]:
    """Return the secrets of the pages, and those that were recalled."""
    pages = [(page.SECRET, getattr(state, channel).as_json()) for channel, page in state.PAGES.items()]
    texts = [text for fields, page in pages for field in sorted(fields) for text in _texts(page.get(field))]
    return texts + [str(memory.get("text") or "") for memory in state.recalled or [] if is_secret_record(memory)]


def secret_phrases(texts: Iterable[str]) -> set[Words]:
    """Return the runs of `RUN` words in these texts."""
    phrases: set[Words] = set()
    # A reply may be split into pairs of characters from another one on.
    starts = ((text, [0, *(run.start() + 1 for run in _RUN_OF_THEM.finditer(text))]) for text in texts)
    for words in (_split(text[start:]) for text, places in starts for start in places):
        phrases |= {tuple(words[at : at + RUN]) for at in range(len(words) - RUN + 1)}
    return phrases


def tells_secret(state: TurnState, text: str) -> bool:
    """Whether a text has a run of words of a secret, `RUN` words or more."""
    return not secret_phrases(secret_texts(state)).isdisjoint(secret_phrases([text]))


class SecretCheck:
    """Ends a reply before one of the phrases; holds back words with which one may begin.

    Case, accents, punctuation and white space do not count. What the player may read anyway is no secret; `public`
    makes these texts, when a phrase comes up.
    """

    def __init__(self, phrases: Collection[Words], public: Callable[[], Iterable[str]]) -> None:
        self._phrases, self._public = phrases, public
        self._beginnings = {phrase[:length] for phrase in phrases for length in range(1, RUN)}
        self._known: set[Words] | None = None

    def __call__(self, text: str, start: int, *, ended: bool) -> Verdict:
        """Judge a text that grows, as `Check` says."""
        words = [(word, match.start()) for match in _WORD.finditer(text, start) for word in _plain(match[0])]
        run = tuple(word for word, _ in words)
        for at in range(len(run) - RUN + 1):
            if self._is_secret(run[at : at + RUN]):
                return Verdict(words[at][1], VERBATIM)
        if ended or not words:
            return Verdict(len(text))
        half = text[-1].isalnum()  # the last word may go on
        whole = run[:-1] if half else run
        for at in range(max(0, len(whole) - RUN + 1), len(whole)):
            if whole[at:] in self._beginnings:
                return Verdict(words[at][1])
        return Verdict(words[-1][1] if half else len(text))

    def _is_secret(self, phrase: Words) -> bool:
        if phrase not in self._phrases:
            return False
        if self._known is None:
            self._known = secret_phrases(self._public())
        return phrase not in self._known


def _split(text: str) -> list[str]:
    return [word for part in _WORD.findall(text) for word in _plain(part)]


@lru_cache(maxsize=4096)
def _plain(word: str) -> list[str]:
    return plain_words(word)


def check_tags(text: str, start: int, *, ended: bool, tag: re.Pattern[str]) -> Verdict:
    """End a reply before a tag; hold back what may become one."""
    match = tag.search(text, start)
    if match and (ended or match.end() < len(text)):
        return Verdict(match.start(), MARKUP)
    bracket = text.rfind("<", max(start, len(text) - _LONGEST_TAG))
    unclear = bracket >= 0 and all(c.isalnum() or c.isspace() or c in "</_" for c in text[bracket:])
    return Verdict(bracket if unclear and not ended else len(text))


def _ask_again(problem: str, text: str) -> list[BaseMessage]:
    """Return the messages behind the prompt that ask again for a reply that was stopped after `text`."""
    if not text.strip():
        return [HumanMessage(_AGAIN.format(where="before its first word", problem=problem, go_on="Answer anew,"))]
    where, go_on = "after the words above, which the player has read", "Go on from there with a new sentence,"
    return [AIMessage(text), HumanMessage(_AGAIN.format(where=where, problem=problem, go_on=go_on))]


def _tag_of(state: TurnState, prompt: Prompt) -> re.Pattern[str]:
    """Return the pattern of a tag of the prompt's sections; sections that are empty now are among them."""
    names = {section.name for section in (*prompt.sections, *prompt.behind)} - {INSTRUCTIONS} | _OFTEN_EMPTY
    names |= state.PAGES.keys() | {field for page in state.PAGES.values() for field in page.SECRET}
    return re.compile(rf"<\s*(?:/\s*)?(?:{'|'.join(map(re.escape, sorted(names)))})\b", re.IGNORECASE)


def _public_texts(state: TurnState, prompt: Prompt) -> list[str]:
    pages = [render_value(getattr(state, channel).player_view()) for channel in state.PAGES]
    memories = [render_value(memory) for memory in shown_memories(state.recalled)]
    return [*pages, state.summary, *memories, *(message.text for message in prompt.conversation)]


def _texts(value: Any, name: str = "") -> list[str]:
    """Return the texts in a value, each behind its name: `{"mayor": "is a thief"}` is "mayor is a thief"."""
    if isinstance(value, Mapping):
        return [text for key, entry in value.items() for text in _texts(entry, str(key))]
    if isinstance(value, list | tuple):
        return [text for entry in value for text in _texts(entry, name)]
    return [f"{name} {value}"] if isinstance(value, str) else []
