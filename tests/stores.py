"""The stores that tests of memory run over: ours and LangGraph's, with vectors and without."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from langchain_core.embeddings import Embeddings
from langgraph.store.base import BaseStore, Item
from langgraph.store.memory import InMemoryStore

from questbook import FaissStore, HashEmbeddings

KINDS = ["faiss", "memory", "memory without vectors", "faiss without vectors"]


@contextmanager
def opened(kind: str, directory: Path, embed: Embeddings | None = None) -> Iterator[BaseStore]:
    """Open a store of a kind.

    Args:
        kind: One of KINDS: "faiss" is ours, in a file of `directory`, "memory" is LangGraph's.
        directory: Where the file goes.
        embed: What makes the vectors of a store that has them; its `dims` says how long they are.
    """
    name, _, without = kind.partition(" without ")
    embed = embed or HashEmbeddings()
    index = {"embed": None if without else embed, "fields": ["text"]}
    if name == "faiss":
        with FaissStore.open(directory / "m.db", index) as store:
            yield store
    else:
        yield InMemoryStore() if without else InMemoryStore(index=index | {"dims": embed.dims})


def stores_of(*kinds: str, embed: Embeddings | None = None) -> Any:
    """Return a fixture: a test that takes it runs over a store of each kind, by default of all."""

    @pytest.fixture(params=kinds or KINDS)
    def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BaseStore]:
        with opened(request.param, tmp_path, embed) as made:
            yield made

    return store


def execute(file: Path, statement: str) -> list[Any]:
    """Execute a statement in a database with nothing of ours; return the rows."""
    with closing(sqlite3.connect(file)) as database, database:
        return database.execute(statement).fetchall()


def keys(items: Iterable[Item]) -> list[str]:
    return [item.key for item in items]
