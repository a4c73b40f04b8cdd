"""Putting cosines and word scores into one order."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from questbook.memory.store.scored import Allowed, Scored

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ids = NDArray[np.int64]
    Scores = NDArray[np.float32]

_FIRST = 64  # so many are put in order first; most searches look no further
_BLOCK = 128  # scores of which the highest stands for all, where many are looked through for a few


class Part(NamedTuple):
    """What one namespace adds to an order.

    Attributes:
        scored: Cosines of its items that have a vector; each item once.
        worded: Ids of its items with words, ascending, and their word scores; None if words do not count.
        allowed: What a filter allows; None: everything.
    """

    scored: Scored
    worded: "tuple[Ids, Scores] | None"
    allowed: Allowed | None


class Ranking:
    """Items in their fused order: the sum of both scores, each divided by its maximum.

    Maxima are those of the items that the filter allows. The sum found 3 to 4 points more than reciprocal rank fusion
    did (docs/store.md). The order is total: ties go to the older item, so that pages neither repeat nor lose one.

    Args:
        parts: One for each namespace.
        dense: Weight of the cosine.
        lexical: Weight of the word score.
    """

    def __init__(self, parts: Sequence[Part], dense: float, lexical: float) -> None:
        import numpy as np

        merged = [_merged(part) for part in parts]
        items, cosines, words = merged[0] if len(merged) == 1 else (np.concatenate(one) for one in zip(*merged))  # noqa: B905
        self._items: Ids = items
        self._cosines: Scores = cosines
        self._sound = not np.isnan(cosines).any()  # whether each has a cosine
        if lexical and any(part.worded is not None for part in parts):
            meaning = np.float32(dense) * _by_maximum(cosines)
            if not self._sound:
                np.nan_to_num(meaning, copy=False)
            fused = meaning + np.float32(lexical) * _by_maximum(words)
        else:
            fused = cosines if dense else np.zeros_like(cosines)
        self._fused: Scores = fused

    def ordered(self, first: int = _FIRST) -> Iterator[tuple[int, float | None]]:
        """The items, best first, put in order only as far as they are asked for.

        Args:
            first: How many will probably be asked for.

        Yields:
            (item id, cosine), the cosine being None if the item has no vector.
        """
        done, width, total = 0, max(1, first), len(self._items)
        while done < total:
            best = self._best(min(width, total))
            yield from best[done:]
            done, width = len(best), width * 8

    def best(self, count: int) -> list[tuple[int, float | None]]:
        """So many items, best first, with their cosines as `ordered` gives them; fewer if there are no more."""
        return self._best(count)[:count] if count else []

    def _best(self, width: int) -> list[tuple[int, float | None]]:
        """The first `width` and all that tie with the last of them, or pages would differ."""
        import numpy as np

        few = width < len(self._items)
        chosen = (self._fused >= self._limit(width)).nonzero()[0] if few else np.arange(len(self._items))
        items = self._items[chosen]
        order = np.lexsort((items, -self._fused[chosen]))
        cosines = self._cosines[chosen[order]].tolist()
        if not self._sound:
            cosines = [None if cosine != cosine else cosine for cosine in cosines]  # NaN: no vector
        return list(zip(items[order].tolist(), cosines, strict=True))

    def _limit(self, width: int) -> float:
        """A score that at least `width` items reach, and not many more."""
        import numpy as np

        scores = self._fused
        if len(scores) >= 4 * _BLOCK * width:
            whole = len(scores) - len(scores) % _BLOCK
            scores = (
                scores[:whole].reshape(-1, _BLOCK).max(axis=1)
            )  # as many blocks reach it, and so at least as many items
        return float(np.partition(scores, len(scores) - width)[len(scores) - width])


def _merged(part: Part) -> "tuple[Ids, Scores, Scores]":
    """The items of one namespace with their cosine, NaN if they have none, and their word score."""
    import numpy as np

    items, cosines = part.scored.items, part.scored.cosines
    if part.worded is None:
        words = np.zeros(1, np.float32).repeat(0)
    elif len(items) == len(part.worded[0]) and (items == part.worded[0]).all():
        words = part.worded[1]
    else:
        words = np.zeros(len(items), np.float32)
        having = np.flatnonzero(part.worded[1])
        found, scores = part.worded[0][having], part.worded[1][having]
        places, known = _places(items, found)
        words[places[known]] = scores[known]
        alone = ~known
        items = np.concatenate([items, found[alone]])
        cosines = np.concatenate([cosines, np.full(int(alone.sum()), np.nan, np.float32)])
        words = np.concatenate([words, scores[alone]])
    if part.allowed is not None:
        kept = part.allowed.of(items)
        items, cosines, words = items[kept], cosines[kept], words[kept] if len(words) else words
    return items, cosines, words


def _places(ids: "Ids", wanted: "Ids") -> "tuple[NDArray[np.intp], NDArray[np.bool_]]":
    """Where wanted ids stand among ids, and whether they do at all."""
    import numpy as np

    # Ids ascend but for items that were updated; numpy sorts what is nearly sorted in nearly linear time.
    order = np.argsort(ids, kind="stable") if len(ids) > 1 and (np.diff(ids) < 0).any() else None
    at = np.searchsorted(ids, wanted, sorter=order)
    at = np.minimum(at, max(0, len(ids) - 1))
    places = at if order is None else order[at]
    known = ids[places] == wanted if len(ids) else np.zeros(len(wanted), np.bool_)
    return places, known


def _by_maximum(scores: "Scores") -> "Scores":
    import numpy as np

    highest = np.fmax.reduce(scores, initial=0.0)  # passes over NaN
    return scores / highest if highest > 0 else scores.copy()


def added(scored: Scored, more: Scored) -> Scored:
    """Add items that an approximate search did not come across.

    Args:
        scored: What it came across.
        more: Others, some of which may be the same.

    Returns:
        Both, each item once.
    """
    import numpy as np

    items, first = np.unique(np.concatenate([scored.items, more.items]), return_index=True)
    return Scored(items, np.concatenate([scored.cosines, more.cosines])[first])
