"""Databases as the LTM extension leaves them, written by hand after its on-disk format, and what a store has of it."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
from langgraph.store.base import BaseStore

from questbook.memory.ltm.memories import MEMORIES, list_memories
from questbook.memory.timeline.namespaces import character_namespace

CAT = 'My cat is called "Miso", she is nine years old,\nand she sleeps on my keyboard when I want to work.'
ROWS = [
    (0, "Anon", "I grew up by the sea, in a small town where my father repaired boats and my mother taught music.", ""),
    (1, "Chiharu", "That sounds lovely. I once took a boat to the islands, and I was sick for the whole journey!", ""),
    (2, "Anon", CAT, ""),
]


def rows(count=3, start=0):
    made = []
    for number in range(count):
        _, name, text, _ = ROWS[number % 3]
        text = text if number < 3 else f"{text} ({number})"
        made.append((start + number, name, text, f"2023-05-{1 + number % 28:02} 18:30:0{number % 10}"))
    return made


def write_database(folder: Path, table=None, vectors: int | None = None, **zarr) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    table = rows() if table is None else table
    path = folder / "long_term_memory.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            "CREATE TABLE long_term_memory (id INTEGER PRIMARY KEY, name TEXT NOT NULL, message TEXT NOT NULL UNIQUE, "
            "timestamp TEXT NOT NULL)"
        )
        connection.executemany("INSERT INTO long_term_memory VALUES (?, ?, ?, ?)", table)
    write_vectors(folder, len(table) if vectors is None else vectors, **zarr)
    return path


def write_vectors(folder: Path, count: int, *, compressor=None, encode=bytes, chunk=1000, width=768) -> np.ndarray:
    array = folder / "long_term_memory_embeddings.zarr"
    array.mkdir(parents=True, exist_ok=True)
    header = {"chunks": [chunk, width], "shape": [count, width], "compressor": compressor, "filters": None}
    header |= {"dtype": "<f4", "fill_value": 0.0, "order": "C", "zarr_format": 2}
    (array / ".zarray").write_text(json.dumps(header))
    vectors = np.random.default_rng(3).standard_normal((count, width)).astype("<f4")
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True) if count else 1
    for number in range(-(-count // chunk)):
        whole = np.zeros((chunk, width), "<f4")
        part = vectors[number * chunk : (number + 1) * chunk]
        whole[: len(part)] = part
        (array / f"{number}.0").write_bytes(encode(whole.tobytes()))
    return vectors


async def texts(store: BaseStore, character: str, user: str = "ada") -> list[str]:
    """What a store holds of a character, newest first."""
    items = await list_memories(store, character_namespace(character, MEMORIES, user=user))
    return [item.value["text"] for item in items]
