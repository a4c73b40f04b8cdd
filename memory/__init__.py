"""Where memory is kept and found again: a library over any LangGraph store that knows no notebook and no graph.

Apps import from `questbook`. The rooms, in the order in which they build on each other:

* `text`: words, stems, BM25; `embeddings`: texts to vectors; `store`: FaissStore, a LangGraph `BaseStore`
* `timeline`: which records a checkpoint may see, and how they are written
* `recall`: which memories a question finds; `facts`: facts, and which of them still hold
* `buffer`: which messages stay in the prompt; `archive`, `lore`, `ltm`: an assistant's archive, documents, imports
* `sync`: asynchronous work for sync callers
* `errors`: every error of the library; `tracing`: OpenTelemetry spans of recall and SQL

Read `timeline/` first, then `recall/`.
"""
