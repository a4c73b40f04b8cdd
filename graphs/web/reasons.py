"""Why a memory came, in plain words: what `Reason` says in ranks is for developers."""

from __future__ import annotations

import re
from collections.abc import Iterable

from questbook.memory.text.stems import stem_words
from questbook.memory.text.words import query_words, split_words
from questbook.types import JSON

_MOST_WORDS = 6
_CLOSE = 5  # rank by meaning up to which a memory is said to be close
_SIGNS = {
    "named +1": "is about what you named",
    ", time ": "is of the time that you named",
}
_MEANING = re.compile(r"meaning #([0-9]{1,6})")


def add_reasons(memories: Iterable[JSON], question: str) -> list[JSON]:
    """Return memories, each with its "reason": why it came to a question, beside "why", which has the ranks."""
    asked = query_words(question)
    stems = dict(zip(asked, stem_words(asked), strict=True))
    return [memory | {"reason": _reason(memory, stems)} for memory in memories]


def _reason(memory: JSON, asked: dict[str, str]) -> str:
    ranks = str(memory.get("why") or "")
    if not ranks.startswith("relevance "):  # an LTM database knows the distance alone; all else is in words
        return "close in meaning" if ranks.startswith("distance ") else ranks
    text = " ".join(str(memory.get(name) or "") for name in ("player", "reply", "text"))
    stems = set(stem_words(split_words(text)))
    shared = [word for word, stem in asked.items() if stem and stem in stems][:_MOST_WORDS]
    parts = [f"shares the word{'' if len(shared) == 1 else 's'} {', '.join(shared)}"] if shared else []
    parts += [phrase for sign, phrase in _SIGNS.items() if sign in ranks]
    rank = _MEANING.search(ranks)
    if rank is not None and int(rank[1]) <= _CLOSE:
        parts.append("close in meaning")
    return "; ".join(parts) or "fits what was said"
