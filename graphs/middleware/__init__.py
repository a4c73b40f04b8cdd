"""The same memory for `langchain.agents.create_agent`: a middleware whose memory goes back with the agent's checkpoint.

- `memory`: `TimelineMemoryMiddleware`, its options, its hooks and its prompt. Read this first.
- `state`: the channels that it adds to the agent's state, and the agent's messages as turns.
- `owner`: to whom a thread belongs, and who may resume its runs.
- `tools`: what the model may call, and how its changes reach the store with the turn's place.
"""
