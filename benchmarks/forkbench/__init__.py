"""ForkBench: does an agent's memory go back with it? A benchmark that needs no model and no judge.

    python -m benchmarks.forkbench --games 200

Games are played on a LangGraph app with a memory: turns, rewinds, retries, edits, forks, crashes, parallel runs, new
threads. An oracle knows what each checkpoint was told. Each prompt that the app's model gets is compared with it.

- `worlds`: what is told: our own games; `textworld`: games of Microsoft's TextWorld.
- `oracle`: places of a game, what each may and must know, and what is wrong with a prompt. Read this first.
- `bench`: what an adapter gets: a scripted model, a store, a checkpointer that crashes.
- `game`: the moves.
- `adapters`: the memories that are compared. To add yours, see docs/forkbench.md.
- `stores`: the stores that ours are measured on.
- `report`: the run and its table.
"""
