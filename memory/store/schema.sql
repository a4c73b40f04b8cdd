-- An item's id is `namespace << 32 | counter`, and a vector's likewise. So the rows of one namespace lie next to each
-- other in the file, a range of ids is a namespace, and no id is used twice.
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE namespaces (
    id INTEGER PRIMARY KEY,
    path TEXT NOT NULL UNIQUE,        -- labels joined by ".", which no label may contain
    items INTEGER NOT NULL DEFAULT 0, -- live items
    texts INTEGER NOT NULL DEFAULT 0, -- those of them that are in the word index
    next_item INTEGER NOT NULL DEFAULT 1,
    next_vector INTEGER NOT NULL DEFAULT 1,
    version INTEGER NOT NULL DEFAULT 0, -- counts writes: tells a cache that it is stale
    epoch INTEGER NOT NULL DEFAULT 0    -- counts the times the list of removed vectors was emptied
);
CREATE TABLE items (
    id INTEGER PRIMARY KEY,
    namespace INTEGER NOT NULL,
    key NOT NULL, -- text, or bytes if the key is no valid unicode
    value TEXT NOT NULL, -- JSON
    created_at INTEGER NOT NULL, -- microseconds since 1970, UTC
    updated_at INTEGER NOT NULL,
    ttl_minutes REAL,
    expires_at INTEGER,
    paths TEXT, -- JSON of PutOp.index: what to embed again when the embedder changes
    first_vector INTEGER NOT NULL DEFAULT 0,
    vectors INTEGER NOT NULL DEFAULT 0, -- ids first_vector .. first_vector + vectors - 1
    texts INTEGER NOT NULL DEFAULT 0, -- 1 if the word index has a row of this id
    checksum INTEGER, -- CRC-32 of the value; NULL: version 1 wrote it
    UNIQUE (namespace, key)
);
CREATE INDEX items_by_expiry ON items (expires_at) WHERE expires_at IS NOT NULL;
CREATE TABLE vectors (
    id INTEGER PRIMARY KEY,
    item INTEGER NOT NULL,
    vector BLOB NOT NULL -- little-endian float32, length 1
);
CREATE TABLE removed (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    namespace INTEGER NOT NULL,
    vector INTEGER NOT NULL -- what caches must forget: a vector, or, negative, what they know of an item
);
CREATE INDEX removed_by_namespace ON removed (namespace, id)
