"""The running summary: what left the buffer, in short.

A summarizer folds turns into it: a language model, or `ExtractiveSummarizer`, which needs none.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

# Marks that close a quotation belong to the sentence before them.
_SENTENCE_END = re.compile(r"(?:(?<=[.!?…])|(?<=[.!?…][\"'”’)])|(?<=[.!?…][\"'”’)]{2}))\s+")
_CHARS_PER_TOKEN = 4
_REPLY_SENTENCES = 2
_QUOTED_CHARS = 200
_INNER_QUOTES = str.maketrans('“”"', "‘’'")


class Summarizer(Protocol):
    """Folds turns into a summary."""

    async def fold(self, summary: str, turns: Sequence[Mapping[str, Any]], tokens: int) -> str:
        """Return a summary that also covers these turns.

        Args:
            summary: The summary so far; "" at first.
            turns: The turns, oldest first: {"turn", "player", "reply", …}.
            tokens: Longest new summary, four characters a token.
        """


class ExtractiveSummarizer:
    """Takes sentences of each turn, as `extract` does, and drops the oldest: no model, the same result each time."""

    async def fold(self, summary: str, turns: Sequence[Mapping[str, Any]], tokens: int) -> str:
        """Extend the summary by sentences of each turn."""
        return extend_summary(summary, [sentence for turn in turns for sentence in extract(turn)], tokens)


def extract(turn: Mapping[str, Any], *, quote: bool = True) -> list[str]:
    """Return sentences of a turn: the person's first, as a quotation; the reply's first two; the facts noted of it.

    What a person wrote never stands in a summary as something that happened, since it may be an instruction. A turn is
    {"player", "reply"}, and maybe "facts", a list of sentences.
    """
    said = _SENTENCE_END.split(" ".join(str(turn["player"]).split()))[0].translate(_INNER_QUOTES) if quote else ""
    said = said if len(said) <= _QUOTED_CHARS else said[: _QUOTED_CHARS - 1].rstrip() + "…"
    end = "" if said.rstrip("’'")[-1:] in (".", "!", "?", "…") else "."
    quotation = [f"The person: “{said}{end}”"] if said else []
    reply = [sentence for sentence in _SENTENCE_END.split(" ".join(str(turn["reply"]).split())) if sentence]
    return [*quotation, *reply[:_REPLY_SENTENCES], *map(str, turn.get("facts", ()))]


def clip_summary(summary: str, tokens: int) -> str:
    """Cut a summary to `tokens` (four characters each), at the end of a sentence if there is one."""
    summary, limit = " ".join(summary.split()), tokens * _CHARS_PER_TOKEN
    if len(summary) <= limit:
        return summary
    end = max(summary.rfind(mark, limit // 2, limit) for mark in ".!?…")
    return summary[: end + 1] if end > 0 else summary[: limit - 1].rstrip() + "…"


def append_extract(summary: str, sentences: Sequence[str], tokens: int) -> str:
    """Extend a summary that stays: its first `tokens`, then the newest sentences that fit in as many again.

    For a summary that a model wrote and cannot write again now: what it said is worth more than sentences.
    """
    whole, kept = " ".join(summary.split()), clip_summary(summary, tokens)
    rest = whole[len(kept) :] if whole.startswith(kept) else ""
    return " ".join(filter(None, (kept, extend_summary(rest, sentences, tokens))))


def extend_summary(summary: str, new: Sequence[str], tokens: int) -> str:
    """Extend a summary by sentences, in order, to so many tokens, of four characters; the oldest are dropped first."""
    sentences = _SENTENCE_END.split(" ".join(summary.split())) if summary.strip() else []
    sentences += [" ".join(sentence.split()) for sentence in new if sentence.strip()]
    room, kept = tokens * _CHARS_PER_TOKEN, list[str]()
    for sentence in reversed(sentences):
        room -= len(sentence) + 1
        if room < 0:
            break
        kept.append(sentence)
    return " ".join(reversed(kept)) or clip_summary(sentences[-1] if sentences else "", tokens)
