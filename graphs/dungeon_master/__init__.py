"""The dungeon master: a game whose memory is its state.

Read `state.py` first (everything that a campaign remembers), then `graph.py` (the whole machine on one screen), then
its nodes in the order of a turn.

- `graph.build_graph`, `context.Context`: the machine and its settings.
- `nodes/`: what a turn does; `edges`: where it goes next; `prompts`: what the model is given.
- `facts`: what the notes teach, on its way into the store; `secrets`: what the narrator hands over as secret.
- `deletions`: what the notes deleted and the story did not.
- `last_prompt`: what the model saw in an earlier turn.
- `rules/`: dice and the character sheet.
- `forgetting/`: `retract`, and `why` something is remembered.
"""
