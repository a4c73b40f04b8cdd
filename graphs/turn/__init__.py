"""What every machine's turn is made of; the dungeon master, the companion, `build_agent` and the middleware share it.

Read `state.py` first, then in the order of a turn:

- `state`: the channels and their reducers; `patches` makes the channel of a page; a turn and a notice as JSON.
- `channels`: what all channels have in common: a write that does not fit is left out.
- `node`: `Machine`, a graph of ours; `Node`, a step for async and sync callers; upkeep gives way to the next message.
- `scope`: whose memory a run reads and writes, and with which timeline.
- `clock`: ids of checkpoints only grow, also when the computer's clock goes back.
- `turn`: how a turn begins, and how it is written to the store; private turns.
- `sessions`: how a thread begins, again or for the first time, and goes on from the campaign's head.
- `shared_pages`: pages that all threads of a user share.
- `recall`: what comes back from memory into the prompt, by a plan of each machine; how a prompt shows it.
- `canary`: looks once more whether the run may see each of them.
- `repetition`: what of that the prompt says already.
- `prompt`: the prompt as a stack of named sections; what is left out of one that is too long for the model.
- `buffer`: which turns are in the prompt, and the running summary.
- `reply`: the model's answer; it repeats no secret.
- `tool_calls`: the tools that the model calls, an application's too, and its edits of pages.
- `interview`: ask until a page is complete.
- `notes`: after the reply, patches of pages, which catch up after a failure.
- `facts`: after the reply, facts of a conversation.
- `pages`: what an application's agent remembers, and the pages that it declares.
- `player_view`: what a player may see.
"""
