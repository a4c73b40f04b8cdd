"""Pruning: checkpoints that nobody goes back to are deleted, so that a thread does not grow without end.

- `prune`: `prune(checkpointer, ...)` for any app, and its synchronous twin. Read this first.
- `retention`: the turns of a thread, and which of its checkpoints are kept: plain functions on a tree.
- `delta`: stubs, which keep what a `DeltaChannel` needs of checkpoints that go.
- `tables`, `memory`: what is read and deleted where: SQLite and Postgres, `InMemorySaver`.
- `connection`: a saver's connection, synchronous or not, by one set of methods. `backend`: what each of these can do.
"""
