"""The running summary: what left the buffer, in short."""

from __future__ import annotations

import re
from collections.abc import Sequence

_SENTENCE = re.compile(r"(?<=[.!?…])[\"'”’)]*\s+")


def clip(summary: str, tokens: int) -> str:
    """Cut a summary to `tokens` (four characters each), at the end of a sentence where there is one."""
    summary = " ".join(summary.split())
    most = tokens * 4
    if len(summary) <= most:
        return summary
    end = max(summary.rfind(mark, most // 2, most) for mark in ".!?…")
    return summary[: end + 1] if end > 0 else summary[: most - 1].rstrip() + "…"


def extract(summary: str, passages: Sequence[str], tokens: int) -> str:
    """Extend a summary without a model: the first two sentences of each passage; the oldest make way for the newest.

    Args:
        summary: The summary so far.
        passages: One text for each turn that leaves the buffer, oldest first.
        tokens: What the new summary may have, four characters a token.
    """
    sentences = _SENTENCE.split(" ".join(summary.split())) if summary.strip() else []
    for passage in passages:
        sentences += _SENTENCE.split(" ".join(passage.split()))[:2]
    room, kept = tokens * 4, list[str]()
    for sentence in reversed(sentences):
        room -= len(sentence) + 1
        if room < 0:
            break
        kept.append(sentence)
    return " ".join(reversed(kept)) or clip(sentences[-1] if sentences else "", tokens)
