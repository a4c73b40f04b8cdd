"""Pruning: checkpoints that nobody goes back to are deleted, so that a thread does not grow without end.

- `prune`: `prune(checkpointer, ...)` for our checkpointers and LangGraph's. Read this first.
- `retention`: the turns of a thread, and which of its checkpoints are kept: plain functions on a tree.
- `tables`: what is asked of a saver's tables; `sqlite_tables`, `postgres_tables`: of which database.
"""
