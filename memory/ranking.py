"""Putting cosines and word scores into one order."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from memory.rows import SHIFT
from memory.shards import Scored

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Ids = NDArray[np.int64]
    Scores = NDArray[np.float32]

_FIRST = 64  # so many are put in order first; most searches look no further


class Ranking:
    """Items in their fused order: the sum of both scores, each divided by its maximum.

    The sum found 3 to 4 points more than reciprocal rank fusion did (docs/store.md). The order is total: ties
    go to the older item, so that pages neither repeat nor lose one.

    Args:
        scored: Cosines of the items that have a vector, by namespace id; each item once.
        words: Word scores by item id.
        dense: Weight of the cosine.
        lexical: Weight of the word score.
    """

    def __init__(self, scored: Mapping[int, Scored], words: Mapping[int, float], dense: float, lexical: float) -> None:
        import numpy as np

        by_namespace: dict[int, list[int]] = {}
        for item in words:
            by_namespace.setdefault(item >> SHIFT, []).append(item)
        items, cosines, lexicals = [], [], []
        for namespace in {**scored, **dict.fromkeys(by_namespace)}:
            ids, cosine = scored[namespace][:2] if namespace in scored else _nothing()
            found = np.array(sorted(by_namespace.get(namespace, ())), np.int64)
            score = np.zeros(len(ids), np.float32)
            if len(found):
                places, known = _places(ids, found)
                values = np.array([words[item] for item in found.tolist()], np.float32)
                score[places[known]] = values[known]
                ids = np.concatenate([ids, found[~known]])
                cosine = np.concatenate([cosine, np.full(int((~known).sum()), np.nan, np.float32)])
                score = np.concatenate([score, values[~known]])
            items.append(ids)
            cosines.append(cosine)
            lexicals.append(score)
        self._items: Ids = np.concatenate([np.empty(0, np.int64), *items])
        self._cosines: Scores = np.concatenate([np.empty(0, np.float32), *cosines])
        all_have_one = len(self._items) == sum(len(one.items) for one in scored.values())
        cosine = self._cosines if all_have_one else np.nan_to_num(self._cosines)
        self._fused: Scores = dense * _by_maximum(cosine)
        if words:
            self._fused = self._fused + lexical * _by_maximum(np.concatenate(lexicals))

    def only(self, allowed: "Ids") -> None:
        """Leave out every item that is not among some.

        Args:
            allowed: Item ids.
        """
        import numpy as np

        keep = np.isin(self._items, allowed)
        self._items, self._cosines, self._fused = self._items[keep], self._cosines[keep], self._fused[keep]

    def items(self) -> list[int]:
        """Ids of all items in it, in no particular order."""
        found: list[int] = self._items.tolist()
        return found

    def ordered(self, first: int = _FIRST) -> Iterator[tuple[int, float | None]]:
        """The items, best first, put in order only as far as they are asked for.

        Args:
            first: How many will probably be asked for.

        Yields:
            (item id, cosine), the cosine being None if the item has no vector.
        """
        import numpy as np

        done, width, total = 0, max(1, first), len(self._items)
        while done < total:
            width = min(width, total)
            if width < total:
                limit = np.partition(self._fused, total - width)[total - width]
                chosen = np.flatnonzero(self._fused >= limit)  # all that tie at the limit, or pages would differ
            else:
                chosen = np.arange(total)
            order = chosen[np.lexsort((self._items[chosen], -self._fused[chosen]))]
            for place in order[done:].tolist():
                cosine = float(self._cosines[place])
                yield int(self._items[place]), None if cosine != cosine else cosine  # NaN: no vector
            done, width = len(order), width * 8


def _nothing() -> "tuple[Ids, Scores]":
    import numpy as np

    return np.empty(0, np.int64), np.empty(0, np.float32)


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
    highest = float(scores.max()) if len(scores) else 0.0
    return scores / highest if highest > 0 else scores


def merged(scored: Scored, items: Sequence[int], cosines: Sequence[float]) -> Scored:
    """Add items that an approximate search did not come across.

    Args:
        scored: What it came across.
        items: Others.
        cosines: Their cosines.

    Returns:
        Both, each item once.
    """
    import numpy as np

    best: dict[int, float] = dict(zip(scored.items.tolist(), scored.cosines.tolist(), strict=True))
    for item, cosine in zip(items, cosines, strict=True):
        best[item] = max(cosine, best.get(item, -2.0))
    ids = np.array(sorted(best), np.int64)
    return Scored(ids, np.array([best[item] for item in ids.tolist()], np.float32), scored.complete)
