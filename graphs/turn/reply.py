"""The reply: one question to the model, streamed, and guarded: it repeats no secret word for word, and no tags."""

import logging
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache, partial
from itertools import islice
from typing import Any, NamedTuple

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.runtime import Runtime

from questbook.graphs.errors import ModelError, PromptTooLongError
from questbook.graphs.models.answer import LENGTH, Check, Guard, Marker, Verdict, ask
from questbook.graphs.models.chat_models import bind_tools, chat_model
from questbook.graphs.settings import Settings
from questbook.graphs.turn.player_view import shown_memories
from questbook.graphs.turn.prompt import INSTRUCTIONS, WORDS, Prompt, fit, fit_refused
from questbook.graphs.turn.state import Notice, TurnState, notice
from questbook.graphs.turn.tool_calls import Call, answer, calls_of, take_out, tool_rounds
from questbook.memory.facts.fact import is_secret_record
from questbook.memory.text.words import plain_words
from questbook.notebooks import render_value
from questbook.types import JSON

RUN = 6  # words of a secret in a row that a reply must not have
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

_log = logging.getLogger(__name__)


class Reply(NamedTuple):
    """The channels to write, and the calls of the silent tools, which are in no message."""

    update: JSON
    silent: list[Call]


async def reply(
    state: TurnState,
    runtime: Runtime[Any],
    prompt: Prompt,
    *,
    node: str,
    tools: list[JSON],
    most_rounds: int,
    silent: Collection[str] = (),
    marker: Marker | None = None,
) -> Reply:
    """Ask the model; a report of the prompt goes out on the stream first.

    Calls beyond `most_rounds` in one turn are dropped. Those of `silent` tools are taken out of the reply and never
    streamed; the model is asked once more only if it says nothing beside them. `marker` marks what is not true.
    """
    context, update = runtime.context, JSON()
    more, said, notices = list[BaseMessage](), list[Call](), list[Notice]()
    for _ in range(2):
        guard = guard_of(state, prompt, context, silent, marker)
        fitted = await ask_fitted(runtime, prompt, node=node, turn=state.turn, guard=guard, tools=tools, more=more)
        whole, window, left_out = fitted
        update, notices = update | ({"window": window} if window else {}), [*notices, *left_out]
        message, calls = take_out(whole, lambda call: call.name in silent)
        said += calls
        if not calls or message.text.strip() or calls_of(message):
            break
        more = [whole, *(answer(call, "Kept. Now answer, in words.") for call in calls)]
    spent = tool_rounds(state) >= most_rounds
    if not message.text.strip() and (spent or not calls_of(message)):
        raise ModelError(f"{context.model} keeps calling tools and tells nothing. Try the turn again.")
    if calls_of(message) and spent:
        message = AIMessage(message.text, id=message.id)  # it said something: the calls beyond the limit are dropped
    notices += guard_notices(guard, context, state.turn, node)
    return Reply(state.reopened | update | {"messages": [message], "notices": notices}, said)


class FittedAnswer(NamedTuple):
    """An answer; the channel `window`, {} if it stays as it is; notices of what was left out of its prompt."""

    message: AIMessage
    window: JSON
    notices: list[Notice]


async def ask_fitted(
    runtime: Runtime[Any],
    prompt: Prompt,
    *,
    node: str,
    turn: int,
    guard: Guard,
    tools: Sequence[JSON],
    tags: Sequence[str] = (),
    more: Sequence[BaseMessage] = (),
) -> FittedAnswer:
    """Ask the settings' model for what a person reads; a prompt that is too long for it is made shorter, once.

    A report of each prompt goes out on the stream before it is sent. `node` asks in this turn; `tags` are those of the
    model's run; the messages `more` come behind the prompt.
    """
    settings: Settings = runtime.context
    loaded = await chat_model(settings)
    model = bind_tools(loaded, tools, settings)
    prompt, window = fit(prompt, getattr(loaded, "profile", None), tools, settings)
    notices: list[Notice] = []
    for attempt in range(2):
        runtime.stream_writer(prompt.report(node, turn))
        try:
            asked, name, timeout = [*prompt.messages, *more], settings.model, settings.model_timeout
            message = await ask(model, asked, model_name=name, tools=tools, tags=tags, timeout=timeout, guard=guard)
            break
        except PromptTooLongError as error:
            shorter, smaller = fit_refused(prompt, settings)
            if attempt or shorter == prompt:
                raise
            _log.warning("Turn %d: the prompt was too long, so older turns are left out: %s", turn, error)
            prompt, window = shorter, smaller
            text = "The conversation was too long for the model, so it was given older turns in short."
            notices.append(notice(turn, node, text, str(error)))
    return FittedAnswer(message, window, notices)


def guard_of(
    state: TurnState, prompt: Prompt, settings: Settings, hidden: Collection[str] = (), marker: Marker | None = None
) -> Guard:
    """Return the guard of a reply, of its length and of pages' secrets; calls of `hidden` tools are not streamed."""
    if not settings.guard_secrets or not any(page.SECRET for page in state.PAGES.values()):
        return Guard(settings.max_reply_chars, hidden=hidden, marker=marker)
    secrets = secret_phrases(secret_texts(state))
    checks: list[Check] = [partial(check_tags, tag=_tag_of(state, prompt))]
    if secrets:
        checks.append(SecretCheck(secrets, lambda: _public_texts(state, prompt)))
    return Guard(settings.max_reply_chars, checks, _ask_again, hidden, marker)


def guard_notices(guard: Guard, settings: Settings, turn: int, node: str) -> list[Notice]:
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
    for text in texts:
        # A reply may be split into pairs of characters from another one on.
        runs = ((run.start() + 1, run.end() - run.start()) for run in _RUN_OF_THEM.finditer(text))
        for start, length in ((0, 2 * len(text)), *runs):  # of the text behind a run, the words that may follow its own
            parts = islice(_WORD.finditer(text, start), length // 2 + RUN)
            words = [word for part in parts for word in _plain(part[0])]
            phrases |= {tuple(words[at : at + RUN]) for at in range(len(words) - RUN + 1)}
    return phrases


def tells_secret(state: TurnState, text: str) -> bool:
    """Whether a text has a run of words of a secret, `RUN` words or more."""
    return not secret_phrases(secret_texts(state)).isdisjoint(secret_phrases([text]))


class SecretCheck:
    """Ends a reply before one of the phrases; holds back words with which one may begin.

    What the player may read anyway is no secret; `public` makes these texts, when a phrase comes up.
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


_plain = lru_cache(maxsize=4096)(plain_words)


def check_tags(text: str, start: int, *, ended: bool, tag: re.Pattern[str]) -> Verdict:
    """End a reply before a tag; hold back what may become one."""
    match = tag.search(text, start)
    if match and (ended or match.end() < len(text)):
        return Verdict(match.start(), MARKUP)
    bracket = text.rfind("<", max(start, len(text) - _LONGEST_TAG))
    unclear = bracket >= 0 and all(c.isalnum() or c.isspace() or c in "</_" for c in text[bracket:])
    return Verdict(bracket if unclear and not ended else len(text))


def _ask_again(problem: str, text: str) -> list[BaseMessage]:
    if not text.strip():
        return [HumanMessage(_AGAIN.format(where="before its first word", problem=problem, go_on="Answer again,"))]
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
