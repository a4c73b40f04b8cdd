"""Scored: items of one namespace with their cosines, and which of them a filter allows."""

from typing import TYPE_CHECKING, NamedTuple, Self

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from questbook.memory.embeddings.embedding_batch import Vector

    Ids = NDArray[np.int64]


class Scored(NamedTuple):
    """Items of one namespace with their cosine to a query."""

    items: "Ids"
    cosines: "Vector"

    @classmethod
    def nothing(cls) -> Self:
        """No items."""
        import numpy as np

        return cls(np.empty(0, np.int64), np.empty(0, np.float32))


class Allowed(NamedTuple):
    """Items of one namespace that a filter allows.

    Attributes:
        ids: Ids of all its items, ascending.
        mask: Which of them are allowed.
    """

    ids: "Ids"
    mask: "NDArray[np.bool_]"

    def of(self, items: "Ids") -> "NDArray[np.bool_]":
        """Which of some items are allowed."""
        import numpy as np

        if np.array_equal(items, self.ids):
            return self.mask
        if not len(self.ids):
            return np.zeros(len(items), np.bool_)
        places = np.minimum(np.searchsorted(self.ids, items), len(self.ids) - 1)
        inside: NDArray[np.bool_] = self.mask[places] & (self.ids[places] == items)
        return inside

    def chosen(self) -> "Ids":
        """Ids of those that are allowed."""
        return self.ids[self.mask]
