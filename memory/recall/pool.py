"""Pool: the records that one recall chooses from, by number, and which are neighbours of each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from questbook.memory.recall.neighbours import OFFSETS, Place, is_exchange

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

NONE = -1
"""Stands where a record has no neighbour."""


class Pool:
    """Records that may be seen, each once, numbered as they come.

    Args:
        one_line: Whether a timeline says which branch each turn is of, so that a turn is enough to find an exchange.
    """

    def __init__(self, *, one_line: bool) -> None:
        self.places: list[Place] = []
        self.values: list[Mapping[str, Any]] = []
        self._one_line = one_line
        self._numbers: dict[Place, int] = {}
        self._exchanges: dict[tuple[tuple[str, ...], str, int], int] = {}

    def __len__(self) -> int:
        return len(self.places)

    def __contains__(self, place: Place) -> bool:
        return place in self._numbers

    def add(self, place: Place, value: Mapping[str, Any]) -> int:
        """Add a record, unless it is there, and return its number."""
        number = self._numbers.setdefault(place, len(self.places))
        if number == len(self.places):
            self.places.append(place)
            self.values.append(value)
            if is_exchange(place, value):
                self._exchanges[place[0], "" if self._one_line else value["branch"], value["turn"]] = number
        return number

    def number(self, place: Place) -> int:
        """Return the number of a record; `NONE` if it is not there."""
        return self._numbers.get(place, NONE)

    def texts(self) -> list[str]:
        """Return the text of each record."""
        return [str(value.get("text", "")) for value in self.values]

    def near(self) -> NDArray[np.intp]:
        """Return the number of each record's neighbours, shape (records, offsets), in the order of `OFFSETS`."""
        import numpy as np

        found = np.full((len(self.places), len(OFFSETS)), NONE, np.intp)
        for (space, branch, turn), number in self._exchanges.items():
            found[number] = [self._exchanges.get((space, branch, turn + offset), NONE) for offset in OFFSETS]
        return found

    def alphabetical(self) -> NDArray[np.intp]:
        """Return each record's rank by its place: ties are settled by it, and so always in the same way."""
        import numpy as np

        ranks = np.empty(len(self.places), np.intp)
        ranks[sorted(range(len(self.places)), key=self.places.__getitem__)] = np.arange(len(self.places))
        return ranks
