"""What a `DeltaChannel` needs: the writes of earlier checkpoints.

LangGraph saves such a channel's value only now and then, as a snapshot. In between, its value is the last snapshot on
the way back, and all writes since, made again. So a kept checkpoint also needs each ancestor that wrote to the channel,
back to the snapshot. These ancestors must be readable themselves: what they need is kept, too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from questbook.graphs.pruning.retention import Tree
from questbook.graphs.pruning.steps import Backend, Load, Steps


def delta_channels(tree: Tree) -> frozenset[str]:
    """Return the channels of a namespace that are a `DeltaChannel`, as its checkpoints' metadata say."""
    return frozenset[str]().union(*(node.deltas for node in tree.nodes.values()))


def with_writers(backend: Backend, thread: str, namespace: str, tree: Tree, kept: Collection[str]) -> Steps[set[str]]:
    """Return kept checkpoints, and those whose writes or snapshots their channels are made of."""
    needed, channels = set(kept), delta_channels(tree)
    if not channels:
        return needed
    writes = yield from backend.writers(thread, namespace, channels)
    values: dict[str, frozenset[str]] = {}

    def saved_in(checkpoint: str, names: Iterable[str]) -> Steps[frozenset[str]]:
        # A channel that the metadata count updates of has no snapshot here, so most need not be loaded.
        candidates = frozenset(names) - tree.nodes[checkpoint].deltas
        if candidates and checkpoint not in values:
            saved = yield Load(thread, namespace, checkpoint)
            values[checkpoint] = channels.intersection(saved.checkpoint["channel_values"]) if saved else frozenset()
        return candidates & values.get(checkpoint, frozenset())

    waiting = list(needed)
    while waiting:
        checkpoint = waiting.pop()
        missing = set(channels - (yield from saved_in(checkpoint, channels)))
        for ancestor in tree.ancestors(checkpoint):
            if not missing:
                break
            seeds = yield from saved_in(ancestor, missing)
            if ancestor not in needed and (seeds or missing & writes.get(ancestor, frozenset())):
                needed.add(ancestor)
                waiting.append(ancestor)
            missing -= seeds
    return needed
