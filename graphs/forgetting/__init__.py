"""Forgetting for good: words, a campaign or a user leave the store and the checkpoints, so that no byte of them stays.

Going back and branching lose nothing, and that is their purpose; forgetting is the opposite.

- `forget`: `forget(...)` for any app, and `Forgetting`, which can also show beforehand what would go. Read this first.
- `backends`: what can be done to which store and checkpointer; taking things out of PostgreSQL.
- `erasure`: taking things out of the checkpoints that SQLite keeps.
- `suppression`: `SuppressionList`, digests of what was forgotten; `replay`: forgetting it again after a restore.
- `phrase`: `Phrase`, words that are found and cut out of any value, however they are spelled or encoded.
"""
