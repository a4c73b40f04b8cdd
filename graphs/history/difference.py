"""Difference: what two places of a game disagree on, as far as the player may know."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from questbook.graphs.history.places import Place
from questbook.memory.timeline.timeline import Segment, sees
from questbook.notebooks import Notebook, diff_patch

JSON = dict[str, Any]


class Changed(NamedTuple):
    """One entry of a page that differs.

    Attributes:
        page: The channel, as "quest".
        path: Field, then names within it: ("people", "Oda", "attitude").
        before: The value at the first place; None if it has none.
        after: The value at the second place.
    """

    page: str
    path: tuple[str, ...]
    before: Any
    after: Any


class Difference(NamedTuple):
    """What two places disagree on.

    Attributes:
        pages: Entries of pages.
        only_before: Exchanges that only the first place remembers.
        only_after: Exchanges that only the second place remembers.
    """

    pages: list[Changed]
    only_before: list[Place]
    only_after: list[Place]


def difference(
    before: Mapping[str, Any], after: Mapping[str, Any], places: Sequence[Place], pages: Mapping[str, type[Notebook]]
) -> Difference:
    """Compare two states of a campaign.

    Args:
        before: Values of one state.
        after: Values of the other.
        places: All finished turns of the campaign.
        pages: Channels that hold pages.
    """
    one, other = remembered(before), remembered(after)
    return Difference(
        [changed for page, kind in pages.items() for changed in _page(page, kind, before, after)],
        [place for place in places if sees(one, *place.key) and not sees(other, *place.key)],
        [place for place in places if sees(other, *place.key) and not sees(one, *place.key)],
    )


def remembered(values: Mapping[str, Any]) -> list[Segment]:
    """Return a state's timeline as far as it has been remembered.

    A turn under way has a number that another future may have used on the same branch; until it claims its place,
    what stands under that number is not its own.
    """
    through, reached = values.get("remembered_through", 0), 0
    kept: list[Segment] = []
    for branch, turn in values.get("timeline") or []:
        if (last := min(turn, through)) > reached:
            kept.append((branch, last))
            reached = last
    return kept


def _page(page: str, kind: type[Notebook], before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Changed]:
    # The player's view: secrets are left out before anything is compared.
    was, now = kind.load(before.get(page)).player_view(), kind.load(after.get(page)).player_view()
    for path, old, new in _entries(was, now):
        yield Changed(page, path, old, new)


def _entries(was: JSON, now: JSON, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any, Any]]:
    for name in diff_patch(was, now):
        old, new = was.get(name), now.get(name)
        both = isinstance(old, Mapping) and isinstance(new, Mapping)
        if both or (not path and (isinstance(old, Mapping) or isinstance(new, Mapping))):
            yield from _entries(dict(old or {}), dict(new or {}), (*path, name))
        else:
            yield (*path, name), old, new
