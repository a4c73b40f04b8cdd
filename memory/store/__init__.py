"""FaissStore: a LangGraph store that is durable in SQLite and searched by words and meaning. Read `faiss_store` first.

Other rooms use four modules:

* `faiss_store`: the store.
* `any_store`: typed reads and writes on any LangGraph store.
* `joint_reads`: reads of several callers at once as one batch.
* `database_file`: a database's file created, recognised, asked and read without its store and without losing locks.

Inside, from the file up. A `connection` is in the caller's read transaction, or in its write transaction where a
function writes; a `space` is a namespace as that transaction sees it.

* `database`, `rows`, `writes`, `deletion`: the SQLite file; reading rows; puts and deletes; expiry and compaction.
* `index_config`, `file_index`, `reembedding`: the settings of the index, and keeping the file in step with them.
* `word_index`, `postings`: words in FTS5; postings in RAM and BM25.
* `indexes`, `vectors`, `snapshots`: FAISS; the vectors of one namespace; their copies on disk.
* `filters`, `filter_index`: a filter on one value, and on a whole namespace.
* `namespace_cache`: what is in RAM, within a budget of bytes.
* `operations`, `reader`: one batch of operations, and what it reads.
* `ranking`, `search`: the order; the searches of one batch. `arrays`: names for numpy's arrays.
"""
