"""The dungeon master: a game whose memory is its state.

Read `state` first (everything that a campaign remembers), then `graph` (the whole machine on one screen), then its
nodes in the order of a turn.

- `interview`: the node `build_character`.
- `quest`: `recall`, with the plan of what is recalled, and `run_quest`; `prompts`: what the model is given.
- `dice`: `roll_dice`, and the rules of a roll; `told_rolls`: rolls that a reply makes up.
- `notes`: `update_state`; `facts`: what the notes teach and what the narrator keeps secret, and `remember`.
- `sheet`: the rules of a character and the starting kit; `why`: where something came from; `retract`: take a turn back.
- `context`: the settings.
"""
