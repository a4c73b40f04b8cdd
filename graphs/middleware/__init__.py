"""The same memory for `langchain.agents.create_agent`: a middleware whose memory goes back with the agent's checkpoint.

    agent = create_agent(model, tools, middleware=[TimelineMemoryMiddleware(user="ann")], checkpointer=…, store=…)

- `memory`: `TimelineMemoryMiddleware`, its options and hooks. Read this first.
- `channels`: the channels that it adds to the agent's state.
- `conversation`: the agent's messages as turns, whatever other middleware has done to them.
- `recollection`: what the prompt gets from memory.
- `tools`: what the model may call: `search_memory`, `manage_memory`, and the pages that are written on demand.
- `staging`: what tools change in mid-turn, until the turn has its place in the store.
"""
