"""The dungeon master: a game whose memory is its state.

Read `state` first (everything that a campaign remembers), then `graph` (the whole machine on one screen), then its
nodes in the order of a turn: `interview`, `quest`, `dice`, `notes`, `facts`. Beside them are `sheet`, the rules of a
character, and for the person at any time `why`, where something came from, and `retract`, which takes a turn back.
"""
