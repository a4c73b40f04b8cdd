"""Passages: a long text cut into whole sentences, lines and list items, each short enough to be shown by itself.

A passage is a span of its text, so that excerpts beside each other join. Code and tables stay whole lines. Where two
speak, a passage is one's words alone, unless all that both said is short.
"""

import math
import re
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

LONGEST = 80  # words of a passage at most. Between 60 and 120 recall on long talk is the same (docs/figures.md).

_WIDE = 10  # characters that count as a word: in scripts without blanks, in addresses and the like
# A line ends, or a sentence: its mark, what may close it, white space, and what may open the next one.
# Counts are bounded, so that a text of marks or blanks alone is read as fast as any.
_ENDS = re.compile(r"\n|[.!?…][\"'”’»)\]*_]{0,4}\s{1,4}(?=[\"'“‘„«(\[*_-]{0,4}[^\W_a-zß-öø-ÿ])|[。！？]")
_CLAUSE = re.compile(r"[,.;:?!][\"'”’»)\]*_]*$")
_WORD = re.compile(r"\S+")
_JOINS = 5  # words after which a clause that is shown may still end
_SPARED = 4  # words that are not worth being left out
_TAIL = 10  # words at the end of a text that say too little by themselves
_PAGE = 3000  # characters
_KEPT = 8192  # long records whose passages are kept: a conversation's candidates are the same ones again and again


class Span(NamedTuple):
    """Part of a text: from character `start` to before character `end`."""

    start: int
    end: int


def count_words(text: str) -> int:
    """Return how many words a text has, as passages count them: at least one for every ten characters."""
    return max(len(text.split()), -(-len(text) // _WIDE))


def cut(text: str) -> tuple[Span, ...]:
    """Cut a text into passages of at most 80 words: whole sentences, lines and list items where they are no longer.

    They come in their order, without white space between them; a short text is one passage, a blank one has none.
    """
    if is_short(text):
        return (Span(0, len(text)),) if text and not text.isspace() else ()
    passages: list[list[Span]] = []
    size = 0
    for unit, words in _units(text):
        if not passages or size + words > LONGEST:
            passages.append([])
            size = 0
        passages[-1].append(unit)
        size += words
    if len(passages) > 1 and size < _TAIL and len(passages[-2]) > 1:
        last = passages[-2][-1]
        if size + count_words(text[last.start : last.end]) <= LONGEST:
            passages[-1].insert(0, passages[-2].pop())
    return tuple(Span(units[0].start, units[-1].end) for units in passages)


def is_short(text: str) -> bool:
    """Return whether a text is one passage."""
    most = len(text)  # so many words at most, with the blanks between them
    return most < 2 * LONGEST or (most <= _WIDE * LONGEST and count_words(text) <= LONGEST)


def _units(text: str) -> Iterable[tuple[Span, int]]:
    """Yield sentences and lines with how many words they have; what is longer than a passage in equal parts."""
    start = 0
    for end in (*[match.end() for match in _ENDS.finditer(text)], len(text)):
        kept = text[start:end].strip()
        if kept:
            begin, words = text.index(kept, start), count_words(kept)
            if words > LONGEST:
                yield from _parts(text, begin, begin + len(kept), words)
            else:
                yield Span(begin, begin + len(kept)), words
        start = end


def _parts(text: str, start: int, end: int, words: int) -> Iterable[tuple[Span, int]]:
    """Yield equal parts of a long sentence, cut between words, or within what is too long for a word."""
    parts = math.ceil(words / LONGEST)
    places = [match.start() for match in _WORD.finditer(text, start, end)]
    size = math.ceil(len(places) / parts)
    if (end - start) / max(len(places), 1) > _WIDE:  # few blanks, if any
        size, places = math.ceil((end - start) / parts), list(range(start, end))
    for first in range(0, len(places), size):
        stop = places[first + size] if first + size < len(places) else end
        part = text[places[first] : stop].rstrip()
        yield Span(places[first], places[first] + len(part)), count_words(part)


def lead(text: str, least: int, most: int, share: float = 0.0) -> Span:
    """Return the first words of a text, at least and at most so many, as far as a clause goes.

    The end of a clause may come five words after `most`. Between both, a share of the text's words is wanted.
    """
    words = list(_WORD.finditer(text))
    if not words:
        return Span(0, 0)
    count = count_words(text)
    wanted = min(max(least, math.ceil(count * share)), most)
    if count <= wanted + _SPARED:
        return Span(words[0].start(), words[-1].end())
    if count > len(words):  # few blanks, if any
        first, limit = words[0].start(), words[0].start() + wanted * _WIDE
        last = max((word.end() for word in words if word.end() <= limit), default=first)
        return Span(first, last if 2 * (last - first) > limit - first else limit)
    ends = (word.end() for word in words[wanted - 1 : wanted + _JOINS] if _CLAUSE.search(word[0]))
    return Span(words[0].start(), next(ends, words[wanted - 1].end()))


def excerpt(text: str, spans: Iterable[Span]) -> str:
    """Return what some spans show of a text, in its order, with "…" where something is left out."""
    merged: list[Span] = []
    for span in sorted(spans):
        if merged and not text[merged[-1].end : span.start].strip():
            merged[-1] = Span(merged[-1].start, max(merged[-1].end, span.end))
        else:
            merged.append(span)
    if not merged:
        return ""
    before = "… " if text[: merged[0].start].strip() else ""
    after = " …" if text[merged[-1].end :].strip() else ""
    return before + " … ".join(text[span.start : span.end] for span in merged) + after


class Cut(NamedTuple):
    """The passages of a record: where they stand, what they say, of how many passages in their message.

    `persons` says whether they are the person's; also where all that both said is one passage.
    """

    spans: tuple[Span, ...]
    texts: tuple[str, ...]
    of: tuple[int, ...]
    persons: tuple[bool, ...]


def cut_pages(text: str, reply: int | None) -> list[Span]:
    """Cut what a record says into pages of at most 3,000 characters, between passages; at least one."""
    pages: list[Span] = []
    for span in cut_messages(text, reply).spans:
        fits = pages and span.end - pages[-1].start <= _PAGE
        pages.append(pages.pop()._replace(end=span.end) if fits else span)
    return pages or [Span(0, len(text))]


def cut_messages(text: str, reply: int | None) -> Cut:
    """Return the passages of what a record says, whose reply begins at `reply`, if it has one."""
    if is_short(text):
        return Cut((Span(0, len(text)),), (text,), (1,), (True,))
    spans, of, persons = _cut_long(text, reply)
    return Cut(spans, tuple(text[start:end] for start, end in spans), of, persons)


@lru_cache(maxsize=_KEPT)
def _cut_long(text: str, reply: int | None) -> tuple[tuple[Span, ...], tuple[int, ...], tuple[bool, ...]]:
    messages = [(0, len(text), True)] if reply is None else [(0, reply, True), (reply, len(text), False)]
    spans, of, persons = list[Span](), list[int](), list[bool]()
    for start, end, is_person in messages:
        passages = cut(text[start:end])
        spans += [Span(start + a, start + b) for a, b in passages]
        of += [len(passages)] * len(passages)
        persons += [is_person] * len(passages)
    if not spans:  # nothing but white space
        return (Span(0, 0),), (1,), (True,)
    return tuple(spans), tuple(of), tuple(persons)
