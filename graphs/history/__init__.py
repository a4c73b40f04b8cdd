"""Going back in a campaign, trying again, and moving between its branches: checkpoints, as a person sees them.

Going back and playing on makes another **branch**; nothing that was played is lost. A **line** is the name that a
person gave to what follows a turn (`main` at first). Turns in a row without a fork are one **stretch**.

Read `history` first: `History` moves about. `view` is its part that changes nothing; `tree` arranges what was played.
"""
