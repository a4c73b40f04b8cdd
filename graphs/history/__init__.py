"""Going back in a campaign, trying again, and moving between its branches: checkpoints, as a person sees them.

Going back and playing on makes another **branch**; nothing that was played is lost. A **line** is the name that a
person gave to what follows a turn (`main` at first). Turns in a row without a fork are one **stretch**.

- `history`: `History`, which moves about, and `SyncHistory`, the same for sync callers. Read this first.
- `view`: `HistoryView`, its part that changes nothing: which turns there are, what two of them disagree on, and what a
  single state says (`position_of`).
- `tree`: `PlayedTurn` and `Stretch`, the tree of all that was played.
"""
