"""Forgetting for good: words, a campaign or a user leave the store and the checkpoints, so that no byte of them stays.

Going back and branching lose nothing, and that is their purpose; forgetting is the opposite.

- `forget`: `forget(...)` for any app, and `Forgetting`, which can also show beforehand what would go. Read this first.
- `matches`: what holds some words, and what was removed.
- `erasure`: taking things out of the checkpoints that SQLite keeps; `postgres`: out of those in PostgreSQL.
- `compaction`: the databases are written again, so that no deleted byte stays in a file.
- `running`: turns that are played meanwhile.
- `leftovers`: what another program writes again meanwhile goes when its turn ends.
- `phrase`: `Phrase`, words that are found and cut out of any value, however they are spelled or encoded.
"""
