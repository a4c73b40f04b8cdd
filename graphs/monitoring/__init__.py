"""What tells an operator how a server does: metrics, health, JSON logs, and a stop that drains.

A server of ours calls `start_logging` and `watch_turns` once, and wraps its app in `Endpoints`. Their libraries are
the extra `ops`; nothing here is imported by a game, a graph or a store.

- `turns`: `TurnWatch` sees every turn of this process by LangChain's callbacks: when it began, spoke, ended, and how.
- `metrics`: what Prometheus reads of that. `endpoints`: /health, /ready, /metrics.
- `logs`: each line as JSON, without anything that people wrote.
- `draining`: `Drain`, how a server ends: no new turns, the replies that are coming end, then it stops.
"""
