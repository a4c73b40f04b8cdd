"""What a prompt says already: a memory that says the same is left out of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from questbook.graphs.turn.state import Memory
from questbook.memory.facts.reading import sounds_unreal
from questbook.memory.recall.query import Recalled
from questbook.memory.text.words import content_stems, is_negated, names_in, numbers_in, plain_words, strip_ending

_SENTENCE_END = re.compile(r"(?<=[.!?…])\s+|\n+")
_KINDS = frozenset({"event", "trait", "promise", "secret"})  # a rumour, or what somebody claims, says who says so
_SHORTEST = 3  # such words of a sentence that tells something
_ALIKE = 0.75  # share of the words of two exchanges that both have, from which on the second brings nothing
_COMPARED = 64  # exchanges, the best; more are seldom shown


class Told:
    """What a prompt tells beside its memories: entries of pages, the summary, turns word for word."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        # What is asked or supposed is not told.
        sentences = [sentence for text in texts for sentence in _SENTENCE_END.split(text) if sentence.strip()]
        told = [s for s in sentences if not sounds_unreal(s) and not s.endswith("?")]
        self._told = [(_content(sentence), is_negated(sentence)) for sentence in told]
        self._with: dict[str, set[int]] = {}  # numbers of the sentences that have a word
        for number, (words, _) in enumerate(self._told):
            for word in words:
                self._with.setdefault(word, set()).add(number)
        self._exchanges: list[tuple[str, object]] = []  # with the day of the story

    def has(self, sentence: str) -> bool:
        """Return whether one of the sentences has the words of this one that carry meaning, in their order."""
        words = _content(sentence)
        if len(words) < _SHORTEST or not (numbers := set.intersection(*(self._with.get(w, set()) for w in words))):
            return False
        negated, told = is_negated(sentence), (self._told[number] for number in numbers)
        return any(negated == denies and _in_order(words, sentence_words) for sentence_words, denies in told)

    def new(self, records: Iterable[Recalled]) -> list[Recalled]:
        """Return the records that are not told yet; of exchanges that are nearly the same, the first."""
        return [record for record in records if not self._is_told(record)]

    def rest_of(self, memories: Sequence[Memory]) -> list[Memory]:
        """Return memories, replies without the sentences that are told, and no fact that a reply among them tells.

        The exchange `tells` it. A reply of which less than a telling sentence is left goes, too.
        """
        replies = [(Told([memory["reply"]]), list[str]()) for memory in memories if memory.get("reply")]
        left = []
        for memory in memories:
            telling = (keys for reply, keys in replies if _may_go(memory) and reply.has(str(memory.get("text"))))
            if (keys := next(telling, None)) is None:
                left.append(memory)
            else:
                keys.append(memory["key"])
        tells = iter(keys for _, keys in replies)
        return [
            {**memory, "reply": self._rest(memory["reply"]), "tells": next(tells)} if memory.get("reply") else memory
            for memory in left
        ]

    def _rest(self, reply: str) -> str:
        kept = ["…" if self.has(sentence) else sentence for sentence in _SENTENCE_END.split(reply)]
        if "…" not in kept:
            return reply
        rest = " ".join(kept)
        return re.sub(r"…(?: …)+", "…", rest) if len(_content(rest)) >= _SHORTEST else ""

    def _is_told(self, record: Recalled) -> bool:
        text = str(record.value.get("text"))
        if record.value.get("kind", "exchange") != "exchange":
            return _may_go(record.value) and self.has(text)
        if len(self._exchanges) >= _COMPARED:
            return False
        self._exchanges.append((text, record.value.get("day")))
        others = [other for other, day in self._exchanges[:-1] if day == record.value.get("day")]
        return any(_nearly_the_same(text, other) for other in others)


def _may_go(record: Mapping[str, Any]) -> bool:
    return record.get("kind") in _KINDS and not record.get("claimed_by")


def _content(text: str) -> list[str]:
    """Return the stems of the words that carry meaning, in their order."""
    stems = content_stems(text)
    return [stem for word in plain_words(text) if (stem := strip_ending(word)) in stems]


def _in_order(words: Sequence[str], told: Sequence[str]) -> bool:
    rest = iter(told)
    return all(word in rest for word in words)


def _nearly_the_same(text: str, other: str) -> bool:
    """Whether two texts have most of their words in common, the same numbers, and no name that the other lacks."""
    one, two = content_stems(text), content_stems(other)
    if len(one & two) < _ALIKE * len(one | two) or numbers_in(text) != numbers_in(other):
        return False
    words = set(plain_words(text)), set(plain_words(other))
    return is_negated(text) == is_negated(other) and words[0] >= {*names_in(other)} and words[1] >= {*names_in(text)}
