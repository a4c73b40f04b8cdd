"""Forgetting for good: words, a campaign or a user leave the store and the checkpoints, so that no byte of them stays.

Going back and branching lose nothing, and that is their purpose; forgetting is the opposite. Read `forget` first;
`phrase` finds words however they are spelled, `backends` and `erasure` take them out of databases, `suppression` and
`replay` forget again after a restore.
"""
