"""FaissStore: a LangGraph store that is durable in SQLite and searched by words and meaning. Read `faiss_store` first.

Other rooms use five modules:

* `faiss_store`: the store.
* `any_store`: typed reads and writes on any LangGraph store.
* `joint_reads`: reads of several callers at once as one batch.
* `glance`: one item of a file, read without the store.
* `database_file`: a database's file created, recognised and read without losing SQLite's locks on it.

Inside, from the file up:

* `database`, `rows`, `writes`, `deletion`: the SQLite file; reading rows; puts and deletes; expiry and compaction.
* `index_config`, `file_index`: the settings of the index, and keeping the file in step with them.
* `word_index`, `postings`: words in FTS5; postings in RAM and BM25.
* `indexes`, `vectors`, `snapshots`: FAISS; the vectors of one namespace; their copies on disk.
* `filters`, `filter_index`: a filter on one value, and on a whole namespace.
* `namespace_cache`: what is in RAM, within a budget of bytes.
* `ranking`, `search`, `operations`: the order; one search; one batch of operations.
"""
