"""What can be taken back from a campaign, and how one finds out where something came from.

- `provenance.why`: which message set a field of the quest's page, or left a memory. Read first.
- `retract.retract`: undo what was derived from one turn, and nothing else.
"""
