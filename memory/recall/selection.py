"""Selected: what of an order is shown: nothing twice, no more than fits, no answer without its question."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from questbook.memory.recall.neighbours import OFFSETS
from questbook.memory.recall.pool import NONE, Pool
from questbook.memory.recall.query import Recalled

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_SAME = 0.9  # share of the words of two texts that both have, from which they say the same


def folded(found: Iterable[Recalled], limit: int) -> list[Recalled]:
    """Fold records that say the same into the best of them; only as far down as is asked for, and a little more."""
    kept: list[Recalled] = []
    said: list[tuple[frozenset[str], object]] = []
    for one in found:
        words = frozenset(str(one.value.get("text", "")).casefold().split())
        who = one.value.get("speaker")
        same = next((n for n, (other, by) in enumerate(said) if by == who and _alike(words, other)), None)
        if same is not None:
            kept[same] = kept[same]._replace(folded=(*kept[same].folded, one.key))
        elif len(kept) >= 2 * limit:
            break
        else:
            kept.append(one)
            said.append((words, who))
    return kept


def _alike(one: frozenset[str], other: frozenset[str]) -> bool:
    least, most = (len(one), len(other)) if len(one) <= len(other) else (len(other), len(one))
    if not least or least < _SAME * most:
        return False
    both = len(one & other)
    return both >= _SAME * (least + most - both)


def fitting(
    found: Sequence[Recalled], limit: int, budget: int | None, cost: Callable[[Recalled], int]
) -> list[Recalled]:
    """Take the first few, or those of them that fit into a budget: what does not is passed over for less that does."""
    if budget is None:
        return list(found[:limit])
    kept: list[Recalled] = []
    for one in found:
        if len(kept) < limit and (tokens := cost(one)) <= budget:
            kept.append(one)
            budget -= tokens
    return kept


def with_questions(found: Sequence[Recalled], pool: Pool, near: NDArray[np.intp]) -> list[Recalled]:
    """Give each answer the question that it belongs to, unless that is recalled itself."""
    shown = {pool.number((one.namespace, one.key)) for one in found}
    kept = []
    for one in found:
        number = pool.number((one.namespace, one.key))
        before = int(near[number, OFFSETS.index(-1)]) if number != NONE else NONE
        asks = before != NONE and before not in shown and str(pool.values[before].get("text", "")).rstrip()[-1:] == "?"
        kept.append(one._replace(question=dict(pool.values[before])) if asks else one)
    return kept
