"""What every machine's turn is made of; the dungeon master, the companion and `build_agent` share it.

Read `state.py` first, then in the order of a turn:

- `state`: the channels and their reducers; `patches` makes the channel of a page.
- `channels`: what all channels have in common: a write that does not fit is left out.
- `node`: `Node`, an async function as a step for async and sync callers; which nodes speak to the person.
- `machine`: a graph of ours before it is compiled; it gives its runs their name.
- `scope`: whose memory a run reads and writes, and with which timeline.
- `clock`: ids of checkpoints only grow, also when the computer's clock goes back.
- `turn`: how a turn begins; notices; private turns.
- `sessions`: a new thread goes on from the campaign's head.
- `spec`: what an application says of an agent of its own.
- `pages`: pages that it declares: the state that holds them, and their notes.
- `shared_log`: a log that many write.
- `shared_pages`: pages that all threads of a user share.
- `prompt`: the prompt as a stack of named sections, pages among them.
- `window`: what is left out of a prompt that is too long for the model.
- `disclosure`: a reply repeats no secret.
- `interview`: ask until a page is complete.
- `reply`: the model's answer, the tools it calls, and its edits of pages.
- `tool_calls`: what the model calls is answered.
- `own_tools`: tools of an application beside the machine's own.
- `notes`: after the reply, patches of pages.
- `facts`: after the reply, facts of a conversation.
- `upkeep`: what comes after the reply gives way to the next message.
- `exchanges`: write each turn to the store, recall those that help.
- `retriever`: recall as a retriever's run.
- `buffer`: which turns are in the prompt, and the running summary.
- `player_view`: what a player may see.
"""
