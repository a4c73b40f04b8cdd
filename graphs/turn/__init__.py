"""What every machine's turn is made of; the dungeon master, the companion and `build_agent` share it.

Read `state.py` first, then in the order of a turn:

- `state`, `shapes`: the channels and their reducers; `patches` makes the channel of a page; a turn as JSON.
- `channels`: what all channels have in common: a write that does not fit is left out.
- `node`: `Machine`, a graph of ours; `Node`, a step for async and sync callers; which nodes speak to the person.
- `spec`, `pages`: what an application's agent remembers, and the pages that it declares.
- `scope`: whose memory a run reads and writes, and with which timeline.
- `clock`: ids of checkpoints only grow, also when the computer's clock goes back.
- `turn`: how a turn begins; notices; private turns.
- `sessions`: how a thread begins, again or for the first time, and goes on from the campaign's head.
- `shared_pages`, `shared_log`: pages that all threads of a user share.
- `recall`, `memories`: what comes back from memory into the prompt, by a plan of each machine.
- `prompt`: the prompt as a stack of named sections, pages among them.
- `context_window`: what is left out of a prompt that is too long for the model.
- `reply_guard`: a reply repeats no secret.
- `interview`: ask until a page is complete.
- `reply`, `tool_calls`: the model's answer, the tools it calls, an application's too, and its edits of pages.
- `notes`: after the reply, patches of pages, which catch up after a failure.
- `exchanges`: write each turn to the store.
- `facts`: after the reply, facts of a conversation.
- `upkeep`: what comes after the reply gives way to the next message.
- `buffer`: which turns are in the prompt, and the running summary.
- `player_view`: what a player may see.
"""
