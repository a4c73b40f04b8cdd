"""The LTM extension's vectors: read as it wrote them, taken over, and never needed."""

import json
import os
import pickle
import shutil
import sqlite3
import tracemalloc
from contextlib import closing, contextmanager

import numcodecs
import numpy as np
import pytest
from langgraph.store.memory import InMemoryStore
from ltm_fixture import rows, write_database, write_vectors

from questbook import FaissStore
from questbook.memory.embeddings.embedders import HashEmbeddings, KnownVectors, identify
from questbook.memory.errors import ImportFailedError
from questbook.memory.ltm.memories import list_characters
from questbook.memory.ltm.migration import count_vectors, import_ltm, read_known_vectors, read_vectors


@pytest.fixture
def store():
    return InMemoryStore()


async def test_vectors_without_rows_and_rows_without_vectors_are_told(bot_memories, store):
    write_database(bot_memories / "more", rows(3), vectors=5)
    write_database(bot_memories / "fewer", rows(3), vectors=1)
    write_vectors(bot_memories / "orphan", 2)
    write_database(bot_memories / "none", rows(3))
    shutil.rmtree(bot_memories / "none" / "long_term_memory_embeddings.zarr")
    brought = {one.character: one for one in await import_ltm(store, bot_memories, user="ada")}
    assert {name: one.added for name, one in brought.items()} == {"more": 3, "fewer": 3, "orphan": 0, "none": 3}
    assert brought["more"].skipped == ("2 of 5 vectors have no message, so there is nothing to remember",)
    assert brought["fewer"].notes == ("2 had no vector there, and have one now",)
    assert "no database" in brought["orphan"].skipped[0]
    assert brought["none"].skipped == brought["none"].notes == ()


def test_vectors_are_read_cropped_and_over_several_chunks(tmp_path):
    made = write_vectors(tmp_path, 25, chunk=10)
    array = tmp_path / "long_term_memory_embeddings.zarr"
    assert count_vectors(array) == 25
    assert np.array_equal(read_vectors(array), made)
    (array / "1.0").unlink()
    read = read_vectors(array)
    assert not read[10:20].any(), "a chunk that is missing is zeros"
    assert np.array_equal(read[20:], made[20:])


def test_blosc_as_the_extension_wrote_it(tmp_path):
    blosc = {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0}
    made = write_vectors(tmp_path, 3, compressor=blosc, encode=numcodecs.get_codec(blosc).encode)
    assert np.array_equal(read_vectors(tmp_path / "long_term_memory_embeddings.zarr"), made)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"zarr_format": 3}, "zarr format 3"),
        ({"shape": [3]}, "two dimensions"),
        ({"order": "F"}, "not in the extension.s layout"),
        ({"chunks": [1000, 100]}, "not in the extension.s layout"),
        ({"chunks": [0, 768]}, "not in the extension.s layout"),
        ({"shape": [3, 700]}, "not in the extension.s layout"),
        ({"dtype": "|O"}, "not in the extension.s layout"),
        ({"dtype": "<i4"}, "not in the extension.s layout"),
        ({"dtype": "V9999999999999"}, "no|not"),
        ({"fill_value": 7.5}, "not in the extension.s layout"),
        ({"fill_value": "NaN"}, "not in the extension.s layout"),
        ({"dimension_separator": "/../../"}, "not in the extension.s layout"),
        ({"shape": [10**9, 768]}, "too large"),
        ({"shape": [10**30, 768]}, "too large"),
        ({"chunks": [10**9, 768]}, "too large"),
        ({"chunks": [1000, 10**9]}, "too large"),
        ({"shape": [-3, 768]}, "no lengths"),
        ({"shape": [3.0, 768]}, "no lengths"),
        ({"shape": ["3", 768]}, "no lengths"),
        ({"shape": "33"}, "no lengths"),
        ({"compressor": {"id": "pickle"}}, "only Blosc"),
        ({"compressor": {"id": "zlib"}}, "only Blosc"),
        ({"compressor": "blosc"}, "only Blosc"),
    ],
)
def test_arrays_of_another_kind_are_refused(tmp_path, change, said):
    write_vectors(tmp_path, 3)
    array = tmp_path / "long_term_memory_embeddings.zarr"
    header = json.loads((array / ".zarray").read_text()) | change
    (array / ".zarray").write_text(json.dumps(header))
    with small_memory(), pytest.raises(ImportFailedError, match=said):
        read_vectors(array)


@contextmanager
def small_memory():
    """Fail if more than 64 MiB are taken."""
    tracemalloc.start()
    yield
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1 << 26


class Trap:
    """Runs code when it is unpickled."""

    def __reduce__(self):
        return (eval, ("__import__('os').environ.update(TRAPPED='1')",))


@pytest.mark.parametrize("codec", ["pickle", "json2", "zlib", None, {"id": "pickle"}])
async def test_no_codec_but_blosc_is_ever_made(bot_memories, store, codec, monkeypatch):
    monkeypatch.delenv("TRAPPED", raising=False)
    monkeypatch.setitem(numcodecs.registry.codec_registry, "pickle", Unpickling)
    made = []
    monkeypatch.setattr(numcodecs, "get_codec", made.append)
    compressor = {"id": codec, "protocol": 5}
    write_database(bot_memories / "chiharu", rows(3), compressor=compressor, encode=lambda _: pickle.dumps(Trap()))
    (one,) = await import_ltm(store, bot_memories, user="ada")
    assert one.added == 3
    assert "only Blosc" in one.notes[0]
    known, problems = read_known_vectors(bot_memories)
    assert known == {}
    assert "only Blosc" in problems[0]
    assert made == []
    assert "TRAPPED" not in os.environ


class Unpickling(numcodecs.abc.Codec):
    """What numcodecs 0.16.1 and earlier did for "pickle"."""

    codec_id = "pickle"

    def decode(self, data, out=None):
        return pickle.loads(data)

    def encode(self, data):
        return pickle.dumps(data)


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda data: data[:4] + (2**31 - 17).to_bytes(4, "little") + data[8:], "header does not say"),
        (lambda data: data[:9], "header does not say"),
        (lambda data: b"", "header does not say"),
        (lambda data: data + b"\0" * 4_000_000, "expected at most"),
        (lambda data: numcodecs.Blosc().encode(b"\0" * (1 << 28)), "header does not say"),
        (lambda data: data[:40] + bytes(len(data) - 40), "cannot be read"),
    ],
)
def test_a_chunk_that_asks_for_more_than_it_has_is_refused(tmp_path, damage, said):
    write_vectors(tmp_path, 3, compressor={"id": "blosc"}, encode=lambda data: damage(numcodecs.Blosc().encode(data)))
    with small_memory(), pytest.raises(ImportFailedError, match=said):
        read_vectors(tmp_path / "long_term_memory_embeddings.zarr")


def test_a_header_as_large_as_a_disk_is_refused(tmp_path):
    write_vectors(tmp_path, 3)
    with (tmp_path / "long_term_memory_embeddings.zarr" / ".zarray").open("ab") as header:
        header.truncate(10**10)
    with small_memory(), pytest.raises(ImportFailedError, match="not a zarr array"):
        count_vectors(tmp_path / "long_term_memory_embeddings.zarr")


ENDLESS = "WITH RECURSIVE n(id) AS (SELECT 0 UNION ALL SELECT id + 1 FROM n)"
COLUMNS = "name TEXT, timestamp TEXT"


@pytest.mark.parametrize(
    "schema",
    [
        f"CREATE VIEW long_term_memory AS {ENDLESS} SELECT id, 'a' AS name, 'b' AS message, '' AS timestamp FROM n",
        f"CREATE TABLE long_term_memory (id INTEGER PRIMARY KEY, {COLUMNS}, message AS (zeroblob(999999999)))",
        f"CREATE VIRTUAL TABLE long_term_memory USING fts5(id, message, {COLUMNS.replace(' TEXT', '')})",
    ],
)
async def test_a_database_whose_messages_are_computed_is_refused(tmp_path, store, schema):
    with closing(sqlite3.connect(tmp_path / "long_term_memory.db")) as connection, connection:
        connection.execute(schema)
        if "CREATE TABLE" in schema:
            connection.execute("INSERT INTO long_term_memory (id, name, timestamp) VALUES (1, 'a', '')")
    with small_memory():
        (one,) = await import_ltm(store, tmp_path, user="ada")
    assert one.added == 0
    assert "no plain table" in one.skipped[0]


async def test_a_broken_array_costs_no_message(bot_memories, store):
    write_database(bot_memories / "chiharu")
    (bot_memories / "chiharu" / "long_term_memory_embeddings.zarr" / ".zarray").write_text("{")
    (one,) = await import_ltm(store, bot_memories, user="ada")
    assert one.added == 3
    assert "do not need it" in one.notes[0]


async def test_known_vectors_are_taken_over_instead_of_made_anew(bot_memories, tmp_path):
    class Mpnet(HashEmbeddings):
        asked = 0

        def embed_documents(self, texts):
            Mpnet.asked += len(texts)
            return super().embed_documents(texts)

    write_database(bot_memories / "chiharu", rows(5), vectors=4)
    known, problems = read_known_vectors(bot_memories)
    assert problems == []
    assert len(known) == 4
    real = Mpnet(768)
    embedder = KnownVectors(real, known)
    assert identify(embedder) == identify(real)
    async with FaissStore.open(tmp_path / "memory.db", {"embed": embedder, "fields": ["text"]}) as store:
        await import_ltm(store, bot_memories, user="ada")
        assert Mpnet.asked <= 2, "the one without a vector, and perhaps a probe of the dimension"
    async with FaissStore.open(tmp_path / "memory.db", {"embed": real, "fields": ["text"]}, reembed=False) as store:
        assert await list_characters(store, "ada") == {"chiharu": 5}, (
            "the same embedder, as far as the file is concerned"
        )
