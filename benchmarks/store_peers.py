"""The stores that `store.py` measures, behind one interface: fill, put, search, close."""

import importlib
import json
import sqlite3
import sys
from typing import ClassVar

import numpy as np
from langgraph.store.base import Item, PutOp
from store_data import DIMS, Table, index, kind, text, value, vector


class _Ours:
    """FaissStore, words and meaning together."""

    settings: ClassVar[dict[str, object]] = {}

    def __init__(self, home):
        from questbook import FaissStore

        self.store = FaissStore.open(home / "store.db", index(**self.settings))

    def fill(self, items):
        self.store.batch([PutOp(space, str(n), value(n)) for space, n in items])

    def put(self, space, n):
        self.store.put(space, str(n), value(n))

    def search(self, space, query, where=None):
        return [item.key for item in self.store.search(space, query=query, filter=where, limit=10)]

    def close(self):
        self.store.close()


class _OursDense(_Ours):
    """FaissStore without words."""

    settings: ClassVar[dict[str, object]] = {"lexical": False}


class _Sqlite(_Ours):
    """LangGraph's SqliteStore as shipped."""

    def __init__(self, home):
        try:
            # Many builds of Python cannot load SQLite's extensions, without which SqliteStore has no vectors.
            sys.modules["sqlite3"] = importlib.import_module("pysqlite3")
            sys.modules["sqlite3.dbapi2"] = sys.modules["sqlite3"]
        except ImportError:
            pass
        from langgraph.store.sqlite import SqliteStore

        self.context = SqliteStore.from_conn_string(
            str(home / "store.db"), index={"embed": Table(), "dims": DIMS, "text_fields": ["text"]}
        )
        self.store = self.context.__enter__()
        self.store.setup()

    def close(self):
        self.context.__exit__(None, None, None)


class _InMemory(_Ours):
    """LangGraph's InMemoryStore."""

    def __init__(self, _home):
        from langgraph.store.memory import InMemoryStore

        self.store = InMemoryStore(index=index())

    def close(self):
        pass


class _LangchainFaiss:
    """langchain-community's FAISS with save_local after each add."""

    def __init__(self, home):
        from langchain_community.vectorstores import FAISS

        self.home = home / "faiss"
        self.kind = FAISS
        self.store = (
            FAISS.load_local(str(self.home), Table(), allow_dangerous_deserialization=True)
            if self.home.exists()
            else None
        )

    def fill(self, items):
        pairs = [(text(n), vector(n).tolist()) for _, n in items]
        marks = [{"key": str(n), "kind": kind(n), "space": "/".join(space)} for space, n in items]
        if self.store is None:
            self.store = self.kind.from_embeddings(pairs, Table(), marks)
        else:
            self.store.add_embeddings(pairs, marks)

    def put(self, space, n):
        self.fill([(space, n)])
        self.store.save_local(str(self.home))

    def search(self, space, query, where=None):
        wanted = {"space": "/".join(space), **(where or {})}
        found = self.store.similarity_search(query, k=10, filter=wanted if where or len(space) > 1 else None)
        return [document.metadata["key"] for document in found]

    def close(self):
        if self.store is not None:
            self.store.save_local(str(self.home))


class _Chroma:
    """_Chroma, persistent."""

    def __init__(self, home):
        import chromadb

        client = chromadb.PersistentClient(str(home / "chroma"), chromadb.Settings(anonymized_telemetry=False))
        self.store = client.get_or_create_collection("bench", metadata={"hnsw:space": "cosine"})

    def fill(self, items):
        self.store.add(
            ids=[f"{'/'.join(space)}:{n}" for space, n in items],
            embeddings=[vector(n).tolist() for _, n in items],
            documents=[text(n) for _, n in items],
            metadatas=[{"kind": kind(n), "space": "/".join(space)} for space, n in items],
        )

    def put(self, space, n):
        self.fill([(space, n)])

    def search(self, space, query, where=None):
        wanted = where or ({"space": "/".join(space)} if len(space) > 1 else None)
        found = self.store.query(query_embeddings=[Table().embed_query(query)], n_results=10, where=wanted)
        return [key.rsplit(":", 1)[1] for key in found["ids"][0]]

    def close(self):
        pass


class _RawFaiss:
    """IndexFlatIP by itself: what comparing with every vector costs."""

    def __init__(self, home):
        import faiss

        self.faiss, self.file = faiss, home / "raw.faiss"
        self.index = faiss.read_index(str(self.file)) if self.file.exists() else faiss.IndexFlatIP(DIMS)

    def fill(self, items):
        self.index.add(np.stack([vector(n) for _, n in items]))

    def put(self, space, n):
        self.fill([(space, n)])

    def search(self, _space, query, _where=None):
        asked = np.array(Table().embed_query(query), np.float32)[None, :]
        return [str(place) for place in self.index.search(asked, 10)[1][0]]

    def close(self):
        self.faiss.write_index(self.index, str(self.file))


class _RawFaissWithRows(_RawFaiss):
    """IndexFlatIP, and the ten items read from SQLite: what a store must at least do that keeps them on disk."""

    def __init__(self, home):
        super().__init__(home)
        self.rows = sqlite3.connect(home / "rows.db", isolation_level=None)
        self.rows.execute("PRAGMA journal_mode = WAL")
        self.rows.execute("CREATE TABLE IF NOT EXISTS items (id INTEGER PRIMARY KEY, key TEXT, value TEXT, at TEXT)")

    def fill(self, items):
        first = self.index.ntotal
        super().fill(items)
        rows = [
            (first + n, str(one), json.dumps(value(one)), "2026-01-01T00:00:00+00:00")
            for n, (_, one) in enumerate(items)
        ]
        self.rows.execute("BEGIN")
        self.rows.executemany("INSERT INTO items VALUES (?, ?, ?, ?)", rows)
        self.rows.execute("COMMIT")

    def search(self, space, query, _where=None):
        asked = np.array(Table().embed_query(query), np.float32)[None, :]
        places = self.index.search(asked, 10)[1][0].tolist()
        marks = ", ".join("?" * len(places))
        found = self.rows.execute(f"SELECT id, key, value, at FROM items WHERE id IN ({marks})", places)
        rows = {
            place: Item(value=json.loads(kept), key=key, namespace=space, created_at=at, updated_at=at)
            for place, key, kept, at in found
        }
        return [rows[place].key for place in places]

    def close(self):
        super().close()
        self.rows.close()


PEERS = {
    "ours": _Ours,
    "ours-dense": _OursDense,
    "sqlite": _Sqlite,
    "inmemory": _InMemory,
    "langchain-faiss": _LangchainFaiss,
    "chroma": _Chroma,
    "raw-faiss": _RawFaiss,
    "raw-faiss-rows": _RawFaissWithRows,
}
