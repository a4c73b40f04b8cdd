"""The engine without a server: graphs run in this process, on SQLite and FAISS, in one data directory.

- `game`: `open_game` opens a campaign as a `Game`, which plays, retries and reads turns; a `Run` is one turn. Read this
  first.
- `databases`: `open_checkpointer` and `open_store`, the two databases, and which embedder the memories have; LangGraph
  Server uses them too (`server.py`).
- `checkpointer`: `Checkpointer`, LangGraph's saver for SQLite, made cheap; `checkpoint_tables`: its rows, compression.
- `saved_game`: `SavedGame`, what a campaign's last checkpoint says, read without a graph; the list of campaigns.
- `home`: `Home`, the data directory and the files in it; `locks`: who holds a campaign.
- `campaign_file`: a campaign exported to one file, and imported.
- `doctor`: compares both databases, and rebuilds what can be rebuilt of a missing or older one.
- `costs`: what a campaign costs: calls, tokens, dollars.
"""
