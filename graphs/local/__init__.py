"""The engine without a server: graphs run in this process, on SQLite and FAISS, in one data directory.

- `game`: `open_game` opens a campaign as a `Game`, which plays, retries and reads turns. Read this first.
- `run`: one run of a graph, whose upkeep goes on when nobody reads its events.
- `databases`: `open_checkpointer` and `open_store`, the two databases; LangGraph Server uses them too (`server.py`).
- `embedder`: which embedder the memories have, and how to get MiniLM.
- `checkpointer`: `Checkpointer`, LangGraph's saver for SQLite, made cheap; `checkpoint_tables` has its rows.
- `compression`: how values of checkpoints are written.
- `doctor`: compares both, and rebuilds what can be rebuilt of a missing or older one.
- `locks`: who holds a campaign.
- `campaign_file`: a campaign exported to one file, and imported; `campaign_archive` is the file's format.
- `costs`: what a campaign costs: calls, tokens, dollars.
- `home`: `Home`, the data directory and the files in it.
- `saved_game`: `SavedGame`, what a campaign's last checkpoint says, read without a graph; the list of campaigns.
"""
