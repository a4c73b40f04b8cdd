"""Checkpointer: LangGraph's SQLite saver, which can also take back what single runs wrote."""

from __future__ import annotations

import json
from collections.abc import Sequence

from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

_CHECKPOINTS = (
    "SELECT thread_id, checkpoint_ns, checkpoint_id FROM checkpoints "
    "WHERE json_extract(CAST(metadata AS TEXT), '$.run_id') IN (SELECT value FROM json_each(?))"
)
_TABLES = ("checkpoints", "writes")


class Checkpointer(AsyncSqliteSaver):
    """`AsyncSqliteSaver`, and `adelete_for_runs`.

    Without it, LangGraph's server stops working on all runs as soon as one is rolled back
    (`multitask_strategy="rollback"`).
    """

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete the checkpoints that some runs wrote, with the writes that stand on them.

        What the runs remembered stays in the store: no checkpoint that is left sees it
        (`questbook.memory.timeline.timeline`).

        Args:
            run_ids: As the server numbers its runs.
        """
        await self.setup()
        runs = json.dumps([str(run) for run in run_ids])
        async with self.lock:
            found = await self.conn.execute_fetchall(_CHECKPOINTS, (runs,))
            for table in _TABLES:
                only = "thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?"
                await self.conn.executemany(f"DELETE FROM {table} WHERE {only}", found)  # noqa: S608
            await self.conn.commit()
