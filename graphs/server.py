"""LangGraph Server and Studio: `langgraph.json` names these functions, so that they use the terminal's own databases.

The server loads this file a second time under another module name, so it must hold no class and no global state.
"""

from questbook.graphs.embedded.databases import open_checkpointer, open_store

__all__ = ["open_checkpointer", "open_store"]
