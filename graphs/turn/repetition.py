"""What a prompt says already: a memory that says the same is left out of it."""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from questbook.graphs.turn.state import Memory
from questbook.memory.facts.reading import sounds_unreal
from questbook.memory.recall.query import Recalled
from questbook.memory.text.words import content_stems, is_negated, names_in, numbers_in, plain_words, strip_ending

_SENTENCE_END = re.compile(r"(?<=[.!?…])\s+|\n+")
_KINDS = frozenset({"event", "trait", "promise", "secret"})  # a rumour, or what somebody claims, says who says so
_SHORTEST = 3  # such words of a sentence that tells something
_ALIKE = 0.75  # share of the words of two exchanges that both have, from which on the second brings nothing
_COMPARED = 64  # exchanges, the best; more are seldom shown
_READ_SENTENCES, _READ_TEXTS = 8192, 1024  # most of what a prompt says stood in the one before


class Told:
    """What a prompt tells beside its memories: entries of pages, the summary, turns word for word."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._texts = [_read_text(text) for text in texts]
        self._words = frozenset[str]().union(*(text.words for text in self._texts))
        self._exchanges: list[tuple[str, object]] = []  # with the day of the story

    def has(self, sentence: str) -> bool:
        """Return whether one of the sentences has the words of this one that carry meaning, in their order."""
        words, negated, _ = _read(sentence)
        if len(words) < _SHORTEST or not self._words.issuperset(words):
            return False
        texts = (text.sentences for text in self._texts if text.words.issuperset(words))
        told = (sentence for sentences in texts for sentence in sentences if sentence.negated == negated)
        return any(_in_order(words, sentence.words) for sentence in told)

    def new(self, records: Iterable[Recalled]) -> list[Recalled]:
        """Return the records that are not told yet; of exchanges that are nearly the same, the first."""
        return [record for record in records if not self._is_told(record)]

    def rest_of(self, memories: Sequence[Memory]) -> list[Memory]:
        """Return memories, replies without the sentences that are told, and no fact that a reply among them `tells`."""
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
        return re.sub(r"…(?: …)+", "…", rest) if len(_read(rest).words) >= _SHORTEST else ""

    def _is_told(self, record: Recalled) -> bool:
        text, today = str(record.value.get("text")), record.value.get("day")
        if record.value.get("kind", "exchange") != "exchange":
            return _may_go(record.value) and self.has(text)
        if len(self._exchanges) >= _COMPARED:
            return False
        self._exchanges.append((text, today))
        return any(_nearly_the_same(text, other) for other, day in self._exchanges[:-1] if day == today)


def _may_go(record: Mapping[str, Any]) -> bool:
    return record.get("kind") in _KINDS and not record.get("claimed_by")


class _Sentence(NamedTuple):
    words: tuple[str, ...]  # stems of those that carry meaning, in their order
    negated: bool
    tells: bool  # what is asked or supposed is not told


@lru_cache(_READ_SENTENCES)
def _read(sentence: str) -> _Sentence:
    stems = content_stems.__wrapped__(sentence)  # kept here: there, it would drive out what candidates say
    words = tuple(stem for word in plain_words(sentence) if (stem := strip_ending(word)) in stems)
    return _Sentence(words, is_negated(sentence), not sounds_unreal(sentence) and not sentence.endswith("?"))


class _Text(NamedTuple):
    sentences: list[_Sentence]
    words: frozenset[str]


@lru_cache(_READ_TEXTS)
def _read_text(text: str) -> _Text:
    sentences = [read for read in map(_read, _SENTENCE_END.split(text)) if read.tells and read.words]
    return _Text(sentences, frozenset(word for sentence in sentences for word in sentence.words))


def _in_order(words: Sequence[str], told: Sequence[str]) -> bool:
    rest = iter(told)
    return all(word in rest for word in words)


def _nearly_the_same(text: str, other: str) -> bool:
    """Whether two texts have most words in common, the same numbers, and no name that the other lacks."""
    stems, others = content_stems(text), content_stems(other)
    if (common := len(stems & others)) < _ALIKE * (len(stems) + len(others) - common):
        return False
    if numbers_in(text) != numbers_in(other) or is_negated(text) != is_negated(other):
        return False
    words = set(plain_words(text)), set(plain_words(other))
    return words[0] >= {*names_in(other)} and words[1] >= {*names_in(text)}
