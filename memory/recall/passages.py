"""Passages of the candidates: what is ranked, and shown, of records that may be long.

A record stays one thing, with one place on the timeline; its passages are found when it is a candidate. Where two
speak, a passage is one's words alone, unless all that both said is short.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from questbook.memory.recall.candidates import Candidates
from questbook.memory.recall.query import Said, said_in
from questbook.memory.text.passages import Span, cut, is_short

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_PAGE = 3000  # characters
_KEPT = 1024  # long records whose passages are kept: a conversation's candidates are the same ones again and again


class Cut(NamedTuple):
    """The passages of a record: where they stand, what they say, of how many passages in their message.

    `persons` says whether they are the person's; also where all that both said is one passage.
    """

    spans: tuple[Span, ...]
    texts: tuple[str, ...]
    of: tuple[int, ...]
    persons: tuple[bool, ...]


class Passages(NamedTuple):
    """Passages of all candidates, those of one candidate together, in the order in which they were said."""

    texts: list[str]
    spans: list[Span]  # in what their records say (`said_in`)
    records: NDArray[np.intp]  # the numbers of their candidates
    of: NDArray[np.float64]  # how many passages their message has
    persons: NDArray[np.bool_]  # whether they are the person's
    rows: NDArray[np.intp]  # the numbers of the rows of turns that they are in, as `WordTable` takes them
    starts: NDArray[np.intp]  # the first passage of each candidate, by its number

    @classmethod
    def of_candidates(cls, candidates: Candidates) -> Passages:
        """Cut the candidates into passages."""
        import numpy as np

        texts, spans = list[str](), list[Span]()
        numbers, shares, persons, rows = list[int](), list[int](), list[bool](), list[int]()
        starts = np.zeros(len(candidates), np.intp)
        for row, members in enumerate(candidates.rows()):
            for number in members:
                starts[number] = len(texts)
                passages = cut_messages(*said_in(candidates.records[number].stored))
                spans += passages.spans
                texts += passages.texts
                shares += passages.of
                persons += passages.persons
                numbers += [number] * len(passages.spans)
                rows += [row] * len(passages.spans)
        records, of = np.array(numbers, np.intp), np.array(shares, np.float64)
        return cls(texts, spans, records, of, np.array(persons, np.bool_), np.array(rows, np.intp), starts)

    def best_of_each(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the best score of each candidate's passages, by the candidates' numbers; scores: (…, passages)."""
        import numpy as np

        if not len(self.starts):
            return scores[..., :0]
        order = np.argsort(self.starts)
        best = np.empty((*scores.shape[:-1], len(self.starts)), scores.dtype)
        best[..., order] = np.maximum.reduceat(scores, self.starts[order], axis=-1)
        return best


def cut_pages(said: Said) -> list[Span]:
    """Cut what a record says into pages of at most 3,000 characters, between passages; at least one."""
    pages: list[Span] = []
    for span in cut_messages(*said).spans:
        if pages and span.end - pages[-1].start <= _PAGE:
            pages[-1] = pages[-1]._replace(end=span.end)
        else:
            pages.append(span)
    return pages or [Span(0, len(said.text))]


def cut_messages(text: str, reply: int | None) -> Cut:
    """Return the passages of what a record says, whose reply begins at `reply`, if it has one."""
    if is_short(text):
        return Cut((Span(0, len(text)),), (text,), (1,), (True,))
    return _cut_long(text, reply)


@lru_cache(maxsize=_KEPT)
def _cut_long(text: str, reply: int | None) -> Cut:
    messages = [(0, len(text), True)] if reply is None else [(0, reply, True), (reply, len(text), False)]
    spans, of, persons = list[Span](), list[int](), list[bool]()
    for start, end, is_person in messages:
        passages = cut(text[start:end])
        spans += [Span(start + a, start + b) for a, b in passages]
        of += [len(passages)] * len(passages)
        persons += [is_person] * len(passages)
    if not spans:  # nothing but white space
        return Cut((Span(0, 0),), ("",), (1,), (True,))
    return Cut(tuple(spans), tuple(text[a:b] for a, b in spans), tuple(of), tuple(persons))
