"""Pruning: checkpoints that nobody goes back to are deleted, so that a thread does not grow without end.

- `prune`: `prune(checkpointer, ...)` for our checkpointer and LangGraph's for SQLite. Read this first.
- `retention`: the turns of a thread, and which of its checkpoints are kept: plain functions on a tree.

Postgres' savers prune by themselves (`PostgresSaver.prune`), and keep the newest checkpoint alone.
"""
