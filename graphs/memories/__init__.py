"""The memories of a user or a team, for an app and for the person themselves: list, get, correct, delete, move.

- `memories`: `Memories`, `SyncMemories`, and what they return. Read this first.
- `lines`: memories as JSON lines: which records belong to a memory, and what an import checks.
"""
