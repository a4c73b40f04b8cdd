"""The engine without a server: graphs run in this process, on SQLite and FAISS in a data directory, or on PostgreSQL.

- `game`: `open_game` opens a campaign as a `Game`, which plays, retries and reads turns; a `Run` is one turn. Read this
  first.
- `home`: `Home`, what a place of games offers; `homes`: which one is meant, also for LangGraph Server (`server.py`).
- `file_home`: `FileHome`, a data directory; `databases`: its two databases, and which embedder memories have.
- `sharing`: what all campaigns of a process open once, such as both databases.
- `checkpointer`: `Checkpointer`, LangGraph's saver for SQLite, made cheap; `checkpoint_tables`: its rows, compression.
- `postgres_home`: `PostgresHome`, a database that several processes use; `postgres_checkpointer`: its checkpoints.
- `copying`: all games of one home brought into another.
- `saved_game`: `SavedGame`, what a campaign's last checkpoint says, read without a graph; the list of campaigns.
- `campaign_file`: a campaign exported to one file, and imported.
- `doctor`: compares both databases, and rebuilds what can be rebuilt of a missing or older one.
- `costs`: what a campaign costs: calls, tokens, dollars.
"""
