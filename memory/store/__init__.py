"""FaissStore: a LangGraph store that is durable in SQLite and searched by words and meaning. Read `faiss_store` first.

Other rooms use three modules:

* `faiss_store`: the store, and what one batch of operations does.
* `any_store`: typed reads and writes on any LangGraph store, joint reads, stores that have sync methods alone.
* `database_file`: a database's file created, recognised, asked and read without its store and without losing locks.

Inside, from the file up. A `connection` is in the caller's read transaction, or in its write transaction where a
function writes; a `space` is a namespace as that transaction sees it.

* `database`, `rows`: the SQLite file, its locks and transactions; reading and writing items, vectors and words.
* `deletion`: expiry (time to live) and its sweeper; compaction.
* `index_config`, `reembedding`: what is indexed, and the file kept in step with it.
* `filters`, `word_index`, `vectors`: in RAM a namespace's values under keys, its words (BM25), its vectors (FAISS).
* `snapshots`, `namespace_cache`: vectors on disk for a faster start; what is in RAM, within a budget of bytes.
* `search`: the searches of one batch, their order and pages. `arrays`: names for numpy's arrays.
"""
