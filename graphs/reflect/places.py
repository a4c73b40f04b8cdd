"""Where a campaign keeps what a reflection reads and writes."""

from __future__ import annotations

from typing import NamedTuple

from questbook.graphs.dungeon_master.context import Context
from questbook.memory.timeline.namespaces import campaign_namespace

Namespace = tuple[str, ...]


class Places(NamedTuple):
    """Namespaces of one campaign."""

    facts: Namespace
    exchanges: Namespace
    reflections: Namespace
    head: Namespace


def places_of(context: Context) -> Places:
    """Return the namespaces of the campaign that the settings name."""
    return Places(*(campaign_namespace(context.user, context.campaign, name) for name in Places._fields))
