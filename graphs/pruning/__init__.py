"""Pruning: checkpoints that nobody goes back to are deleted, so that a thread does not grow without end.

Read `prune` first, then `retention`; `tables` asks a saver's tables, in `sqlite_tables` or `postgres_tables`.
"""
