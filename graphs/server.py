"""What LangGraph Server and Studio use: the terminal's own checkpoints and memories.

`langgraph.json` names this file for `checkpointer.path` and `store.path`. The server loads it a second time under a
name of its own, so nothing here may be a class, or kept in a global.
"""

from questbook.graphs.embedded.engine import open_checkpointer, open_store

__all__ = ["open_checkpointer", "open_store"]
