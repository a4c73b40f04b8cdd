"""The same memory for `langchain.agents.create_agent`: a middleware whose memory goes back with the agent's checkpoint.

Read `memory` first: `TimelineMemoryMiddleware`, its hooks and its prompt.
"""
