"""Which checkpoints of a thread are kept: whole turns, and what leads from one to the next.

A **turn** is a run: a checkpoint with input, and all that follow until the next input. An interrupt and its resume, an
edit and a retry belong to their turn. A turn is kept whole or not at all. Kept are

- every turn at which a branch ends, which includes each interrupt and each run that was stopped,
- every turn after which branches part, and every turn that was copied to another thread,
- the last turns of each line: of the thread as it stands now, and of every line that the channel `line` names,
- turns younger than a given age,

each with the state that it began from. A kept checkpoint's parent is then its nearest kept ancestor.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from typing import NamedTuple

from questbook.graphs.turn.clock import time_of

_CALL = ":"  # in the namespace of a subgraph's single call; without it, its state outlives the calls


class TreeNode(NamedTuple):
    """A checkpoint without its values, as its metadata describe it."""

    id: str
    parent: str | None = None  # the checkpoint that it was made from
    source: str = ""  # "input", "loop", "update" or "fork"
    step: int = 0  # a run that saves only its end leaves steps out
    root: str | None = None  # of a subgraph's: the checkpoint of the root graph that it belongs to
    pending: bool = False  # whether writes are saved on it
    delta: bool = False  # whether a channel's value is not in it alone (`DeltaChannel`)


class Tree:
    """The checkpoints of one namespace of a thread, by id."""

    def __init__(self, nodes: Mapping[str, TreeNode]) -> None:
        self.nodes = nodes
        self._children: dict[str | None, list[str]] = defaultdict(list)
        for node in nodes.values():
            self._children[self.parent(node.id)].append(node.id)
        # Those that a root leads to, parents first. A chain of parents may be a loop if one was written twice.
        self.order, waiting = list[str](), self._children[None].copy()
        while waiting:
            self.order.append(waiting.pop())
            waiting += self._children[self.order[-1]]

    def parent(self, checkpoint: str) -> str | None:
        """Return the checkpoint's parent; None if it has none, or if that is gone."""
        parent = self.nodes[checkpoint].parent
        return parent if parent in self.nodes else None

    def ancestors(self, checkpoint: str) -> Iterator[str]:
        """Go over a checkpoint's ancestors, the nearest first."""
        passed, step = {checkpoint}, self.parent(checkpoint)
        while step is not None and step not in passed:
            yield step
            passed.add(step)
            step = self.parent(step)

    def leaves(self) -> list[str]:
        """Return the checkpoints at which a branch ends.

        Not those that going back has left without anything done there: a copy is one step after what it copies, and has
        the same parent.
        """
        newest = max(self.nodes)
        return [node.id for node in self.nodes.values() if not self._children[node.id] and not self._idle(node, newest)]

    def new_parents(self, kept: Collection[str]) -> dict[str, str | None]:
        """Return the nearest kept ancestor of each kept checkpoint whose parent is not kept."""
        parents: dict[str, str | None] = {}
        for checkpoint in kept:
            parent = self.parent(checkpoint)
            if parent is not None and parent not in kept:
                parents[checkpoint] = next((step for step in self.ancestors(checkpoint) if step in kept), None)
        return parents

    def _idle(self, node: TreeNode, newest: str) -> bool:
        if node.source != "fork" or node.pending or node.id == newest:
            return False
        return node.parent is None or (node.parent in self.nodes and node.step > self.nodes[node.parent].step + 1)


def turn_starts(tree: Tree) -> dict[str, str]:
    """Return the first checkpoint of each checkpoint's turn."""
    starts: dict[str, str] = {}
    for checkpoint in tree.order:
        node, parent = tree.nodes[checkpoint], tree.parent(checkpoint)
        # A run that saves only its end leaves no checkpoint with input.
        skips = node.source == "loop" and parent is not None and node.step > tree.nodes[parent].step + 1
        starts[checkpoint] = checkpoint if parent is None or node.source == "input" or skips else starts[parent]
    return starts


def kept_turns(
    tree: Tree, tips: Collection[str], origins: Collection[str], keep_turns: int, since: datetime | None
) -> set[str]:
    """Return the checkpoints of the turns that are kept, each with the state that it began from.

    `tips` are the last checkpoints of each line, of which the last turns are kept; `origins` were copied to another
    thread. Turns with a checkpoint younger than `since` are kept, too; None: age does not count.
    """
    starts = turn_starts(tree)
    before = {start: starts.get(tree.nodes[start].parent or "") for start in set(starts.values())}
    after: dict[str | None, int] = defaultdict(int)
    for previous in before.values():
        after[previous] += 1
    ends = [checkpoint for checkpoint in (*tree.leaves(), *origins) if checkpoint in starts]
    turns = {starts[end] for end in ends} | {start for start in before if after[start] > 1}
    for tip in tips:
        start = starts.get(tip)
        for _ in range(keep_turns):
            if start is None:
                break
            turns.add(start)
            start = before[start]
    if since is not None:
        # Of an id that says no time, nothing is known.
        turns |= {start for checkpoint, start in starts.items() if (time_of(checkpoint) or since) >= since}
    bases = {base for start in turns if (base := tree.parent(start)) is not None}
    looped = tree.nodes.keys() - starts.keys()
    return {checkpoint for checkpoint, start in starts.items() if start in turns} | bases | looped


def kept_of_subgraph(namespace: str, tree: Tree, roots: Tree, kept_roots: Collection[str]) -> set[str]:
    """Return the checkpoints of a subgraph that are kept: those that belong to a kept one of the root graph."""
    kept = {node.id for node in tree.nodes.values() if node.root in kept_roots or node.root not in roots.nodes}
    if _CALL not in namespace:
        # The state of this subgraph outlives its calls: a run from a root checkpoint finds the last one before it.
        ids = sorted(tree.nodes)
        kept |= {ids[place - 1] for root in kept_roots if (place := bisect_left(ids, root))} | {ids[-1]}
    return kept
