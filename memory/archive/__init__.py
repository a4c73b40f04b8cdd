"""Archive: what an assistant stored on purpose, and the whole conversation, both to be searched by the model.

`archive` has `new_entry`, `entry_writes`, and `search_archive` with an `ArchiveQuery`; `search_conversation` with a
`ConversationQuery`; `Days` and `read_days`, and the `Page` of results that both searches return.
"""
