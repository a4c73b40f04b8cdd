"""Cosines and word scores in one order: the sum of both, each divided by its maximum."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from questbook.memory.store.arrays import Ids, Mask, Places, Scores
from questbook.memory.store.filter_index import FilterMask
from questbook.memory.store.postings import WordMatches
from questbook.memory.store.vectors import ItemCosines
from questbook.memory.text.bm25 import divide_by_maximum

_FIRST = 64  # so many items are put in order first; most searches look no further
_BLOCK = 128  # scores that are represented by their highest, where a few are sought among many


class Candidates(NamedTuple):
    """The items of one namespace that may be hits."""

    cosines: ItemCosines  # of its items that have a vector
    words: WordMatches | None  # its items that have the query's words; None if words do not count
    allowed: FilterMask | None  # what a filter allows; None: everything
    covers_all: bool = False  # whether every item of the namespace has a vector
    exact: bool = True  # whether every vector was compared
    scores: Scores | None = None  # by words, at the places of `words.ids`; see `score_words`


class Ranking:
    """Items of one or several namespaces in their order.

    The maxima are those of the items that the filter allows. The sum found 3 to 4 points more than reciprocal rank
    fusion did (docs/figures.md). The order is total: of two items with the same score the older comes first, so that
    pages neither repeat nor lose one.

    Args:
        parts: One for each namespace.
        dense: Weight of the cosine.
        lexical: Weight of the word score.
    """

    def __init__(self, parts: Sequence[Candidates], dense: float, lexical: float) -> None:
        merged = [_merge(part) for part in parts]
        items, cosines, words = merged[0] if len(merged) == 1 else map(np.concatenate, zip(*merged, strict=True))
        self._items: Ids = items
        self._cosines: Scores = cosines
        self._all_have_cosines = not np.isnan(cosines).any()
        if lexical and any(part.scores is not None for part in parts):
            meaning = np.float32(dense) * divide_by_maximum(cosines)
            if not self._all_have_cosines:
                np.nan_to_num(meaning, copy=False)
            self._scores: Scores = meaning + np.float32(lexical) * divide_by_maximum(words)
        else:
            self._scores = cosines if dense else np.zeros_like(cosines)

    def ordered(self, first: int = _FIRST) -> Iterator[tuple[int, float | None]]:
        """Yield item ids and cosines (None: no vector), best first; the caller will probably read the `first` ones."""
        done, width, total = 0, max(1, first), len(self._items)
        while done < total:
            best = self._best(min(width, total))
            yield from best[done:]
            done, width = len(best), width * 8

    def _best(self, width: int) -> list[tuple[int, float | None]]:
        """Return the first `width` items and all that have the last one's score, or pages would differ."""
        few = width < len(self._items)
        chosen = (self._scores >= self._limit(width)).nonzero()[0] if few else np.arange(len(self._items))
        items = self._items[chosen]
        order = np.lexsort((items, -self._scores[chosen]))
        cosines = self._cosines[chosen[order]].tolist()
        if not self._all_have_cosines:
            cosines = [None if cosine != cosine else cosine for cosine in cosines]  # NaN: no vector
        return list(zip(items[order].tolist(), cosines, strict=True))

    def _limit(self, width: int) -> float:
        """Return a score that at least `width` items reach, and not many more."""
        scores = self._scores
        if len(scores) >= 4 * _BLOCK * width:
            whole = len(scores) - len(scores) % _BLOCK
            scores = scores[:whole].reshape(-1, _BLOCK).max(axis=1)  # at least as many items as blocks reach a score
        return float(np.partition(scores, len(scores) - width)[len(scores) - width])


def _merge(part: Candidates) -> tuple[Ids, Scores, Scores]:
    """Return the allowed items of one namespace, their cosines (NaN: none) and their word scores (empty: none)."""
    items, cosines = part.cosines
    if part.words is None or part.scores is None:
        words = np.empty(0, np.float32)
    elif len(items) == len(part.words.ids) and (items == part.words.ids).all():
        words = part.scores
    else:
        words = np.zeros(len(items), np.float32)
        having = np.flatnonzero(part.scores)
        ids, scores = part.words.ids[having], part.scores[having]
        places, inside = _find_ids(items, ids)
        words[places[inside]] = scores[inside]
        items = np.concatenate([items, ids[~inside]])
        cosines = np.concatenate([cosines, np.full(int((~inside).sum()), np.nan, np.float32)])
        words = np.concatenate([words, scores[~inside]])
    if part.allowed is not None:
        mask = part.allowed.of(items)
        items, cosines, words = items[mask], cosines[mask], words[mask] if len(words) else words
    return items, cosines, words


def _find_ids(ids: Ids, wanted: Ids) -> tuple[Places, Mask]:
    """Return the places of wanted ids among ids, and which of them are there at all."""
    # Ids ascend, except those of updated items; numpy sorts what is nearly sorted in nearly linear time.
    order = np.argsort(ids, kind="stable") if len(ids) > 1 and (np.diff(ids) < 0).any() else None
    ranks = np.searchsorted(ids, wanted, sorter=order)
    ranks = np.minimum(ranks, max(0, len(ids) - 1))
    places = ranks if order is None else order[ranks]
    inside = ids[places] == wanted if len(ids) else np.zeros(len(wanted), np.bool_)
    return places, inside
