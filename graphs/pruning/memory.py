"""What pruning reads and deletes in an `InMemorySaver`."""

from __future__ import annotations

from collections.abc import Mapping

from langgraph.checkpoint.memory import InMemorySaver

from questbook.graphs.pruning.backend import Plan, Volume
from questbook.graphs.pruning.retention import Node
from questbook.graphs.pruning.tables import node_of


class Memory:
    """The dictionaries of an `InMemorySaver`.

    Args:
        saver: The checkpointer.
    """

    def __init__(self, saver: InMemorySaver) -> None:
        self._saver = saver

    async def open(self) -> None:
        """See `Backend.open`."""

    async def threads(self) -> list[str]:
        """See `Backend.threads`."""
        return sorted(self._saver.storage)

    async def origins(self) -> set[tuple[str, str]]:
        """See `Backend.origins`."""
        metadata = [
            self._saver.serde.loads_typed(saved[1])
            for namespaces in self._saver.storage.values()
            for checkpoints in namespaces.values()
            for saved in checkpoints.values()
        ]
        origins = [one["copied_from"] for one in metadata if one.get("copied_from")]
        return {(str(one["thread_id"]), str(one["checkpoint_id"])) for one in origins}

    async def survey(self, thread: str) -> dict[str, dict[str, Node]]:
        """See `Backend.survey`."""
        return {
            namespace: {
                checkpoint: node_of(
                    checkpoint,
                    parent,
                    self._saver.serde.loads_typed(metadata),
                    pending=bool(self._saver.writes.get((thread, namespace, checkpoint))),
                )
                for checkpoint, (_, metadata, parent) in checkpoints.items()
            }
            for namespace, checkpoints in self._saver.storage.get(thread, {}).items()
            if checkpoints
        }

    async def remove(self, thread: str, plans: Mapping[str, Plan], *, dry_run: bool) -> Volume | None:
        """See `Backend.remove`. Between survey and removal nobody else ran: nothing was awaited."""
        volume = Volume()
        for namespace, plan in plans.items():
            volume = volume.plus(self._remove(thread, namespace, plan, dry_run=dry_run))
        return volume

    async def compact(self) -> bool | None:
        """See `Backend.compact`."""
        return None

    def _remove(self, thread: str, namespace: str, plan: Plan, *, dry_run: bool) -> Volume:
        saver, checkpoints = self._saver, self._saver.storage[thread][namespace]
        keys = [(thread, namespace, checkpoint) for checkpoint in plan.removed]
        needed = {
            place
            for checkpoint in checkpoints.keys() - plan.removed
            for place in self._blobs(thread, namespace, checkpoint)
        }
        blobs = {place for _, _, checkpoint in keys for place in self._blobs(thread, namespace, checkpoint)} - needed
        writes = [write for key in keys for write in saver.writes.get(key, {}).values()]
        size = sum(len(saver.blobs[place][1]) for place in blobs) + sum(len(value[1]) for _, _, value, _ in writes)
        size += sum(len(value[1]) for *_, checkpoint in keys for value in checkpoints[checkpoint][:2])
        if not dry_run:
            for key in keys:
                saver.writes.pop(key, None)
                del checkpoints[key[2]]
            for place in blobs:
                del saver.blobs[place]
            for checkpoint, parent in plan.parents.items():
                checkpoints[checkpoint] = (*checkpoints[checkpoint][:2], parent)
        return Volume(len(keys), len(writes), len(blobs), size)

    def _blobs(self, thread: str, namespace: str, checkpoint: str) -> set[tuple[str, str, str, str | int | float]]:
        saved = self._saver.serde.loads_typed(self._saver.storage[thread][namespace][checkpoint][0])
        places = {(thread, namespace, channel, version) for channel, version in saved["channel_versions"].items()}
        return places & self._saver.blobs.keys()
