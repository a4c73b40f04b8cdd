"""The running summary: what left the buffer, in short.

A summarizer folds turns into it: a language model, or `ExtractiveSummarizer`, which needs none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

_SENTENCE_END = re.compile(r"(?<=[.!?…])[\"'”’)]*\s+")
_CHARS_PER_TOKEN = 4


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
    """Takes the first sentences of each turn and drops the oldest: no model, the same result each time."""

    async def fold(self, summary: str, turns: Sequence[Mapping[str, Any]], tokens: int) -> str:
        """Extend the summary by the first two sentences of each turn."""
        return extend_summary(summary, [f"{turn['player']}. {turn['reply']}" for turn in turns], tokens)


def clip_summary(summary: str, tokens: int) -> str:
    """Cut a summary to `tokens` (four characters each), at the end of a sentence if there is one."""
    summary = " ".join(summary.split())
    limit = tokens * _CHARS_PER_TOKEN
    if len(summary) <= limit:
        return summary
    end = max(summary.rfind(mark, limit // 2, limit) for mark in ".!?…")
    return summary[: end + 1] if end > 0 else summary[: limit - 1].rstrip() + "…"


def extend_summary(summary: str, passages: Sequence[str], tokens: int) -> str:
    """Extend a summary by the first two sentences of each passage; the oldest sentences are dropped first.

    Args:
        summary: The summary so far.
        passages: One text for each turn that leaves the buffer, oldest first.
        tokens: Longest new summary, four characters a token.
    """
    sentences = _SENTENCE_END.split(" ".join(summary.split())) if summary.strip() else []
    for passage in passages:
        sentences += _SENTENCE_END.split(" ".join(passage.split()))[:2]
    room, kept = tokens * _CHARS_PER_TOKEN, list[str]()
    for sentence in reversed(sentences):
        room -= len(sentence) + 1
        if room < 0:
            break
        kept.append(sentence)
    return " ".join(reversed(kept)) or clip_summary(sentences[-1] if sentences else "", tokens)
