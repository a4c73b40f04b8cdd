"""Message buffer: which turns of a conversation are in the prompt word for word, and what happens to older ones.

Read `policies` first.

- `policies`: `Unbounded`, `LastTurns`, `TokenBudget` and `RunningSummary`; `BufferPolicy` is the protocol for your own.
- `summary`: shorten and extend the running summary; `Summarizer` is the protocol for your own.
"""
