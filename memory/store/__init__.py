"""FaissStore: a LangGraph store that is durable in SQLite and searched by words and meaning. Read `faiss_store` first.

Other rooms use that, `any_store` (reads and writes on any LangGraph store) and `database_file` (a database without its
store). Inside, a `connection` is in the caller's read transaction, or in its write transaction where a function writes;
a `space` is a namespace as that transaction sees it. From the file up: `database`, `rows`, `deletion`; `index_config`,
`reembedding`; in RAM `filters`, `word_index`, `vectors`, with `snapshots` and `namespace_cache`; `search`.
"""
