"""What every machine's turn is made of; the dungeon master, the companion, `build_agent` and the middleware share it.

Read `state` first (the channels), then in the order of a turn: `sessions` (how a thread begins), `turn` (how a turn
begins, and is written), `recall`, `prompt`, `buffer` (which turns are in it), `reply`, `tool_calls`, `interview`,
`notes` and `facts`, `pages`. Below them are `channels`, `node` (a graph of ours, and its steps), `scope` (whose memory
a run reads and writes) and `run_guard`; `player_view` says what a player may see.
"""
