"""What a `DeltaChannel` needs: the writes of earlier checkpoints.

LangGraph saves such a channel's value only now and then. In between, its value is the last saved one on the way back,
and all writes since, made again. When these checkpoints go, a stub takes their place: a checkpoint that nobody goes to,
with the last saved value and the writes since, in their order. (LangGraph makes such stubs itself if a thread's first
run saves only its end.)
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata, empty_checkpoint
from langgraph.types import Overwrite

from questbook.graphs.pruning.retention import STUB, Tree
from questbook.graphs.pruning.tables import Tables, config_of

_TASK = "00000000-0000-4000-8000-000000000000"  # of a stub's writes; not that of what callers write


async def with_stubs(
    tables: Tables, thread: str, namespace: str, tree: Tree, parents: Mapping[str, str | None]
) -> dict[str, str | None]:
    """Write the stubs that checkpoints need whose parent goes; return the new parents, of which some are stubs."""
    saver = tables.saver
    channels = frozenset[str]().union(*(node.deltas for node in tree.nodes.values()))
    stubbed = dict(parents)
    for checkpoint, parent in parents.items() if channels else ():
        saved = await tables.load(thread, namespace, checkpoint)
        if saved is None:
            continue  # another one prunes this thread, too: the removal will be given up
        missing = channels & saved.checkpoint["channel_versions"].keys() - saved.checkpoint["channel_values"].keys()
        if not missing:
            continue
        history = await saver.aget_delta_channel_history(
            config=config_of(thread, namespace, checkpoint), channels=sorted(missing)
        )
        values, writes = dict[str, Any](), list[tuple[str, Any]]()
        for channel in sorted(missing):
            if "seed" in history[channel]:
                values[channel] = history[channel]["seed"]
            elif history[channel]["writes"]:
                writes.append((channel, Overwrite(None)))  # begins empty, whatever is found further back
            writes += [(channel, value) for _, _, value in history[channel]["writes"]]
        stubbed[checkpoint] = before = _id_before(checkpoint)
        metadata: CheckpointMetadata = {"source": "loop", "step": tree.nodes[checkpoint].step - 1, STUB: True}  # type: ignore[misc]  # savers keep any field
        metadata["parents"] = saved.metadata.get("parents") or {}
        versions: ChannelVersions = {name: saver.get_next_version(None, None) for name in values}
        stub: Checkpoint = {**empty_checkpoint(), "id": before, "channel_values": values, "channel_versions": versions}
        where = await saver.aput(config_of(thread, namespace, parent or ""), stub, metadata, versions)
        await saver.aput_writes(where, writes, _TASK)
    return stubbed


def _id_before(checkpoint: str) -> str:
    """Return an id just before another one: the newest checkpoint of a thread is the one with the greatest id."""
    return str(uuid.UUID(int=uuid.UUID(checkpoint).int - 1))
