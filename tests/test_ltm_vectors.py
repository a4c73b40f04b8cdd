"""The LTM extension's vectors: read as it wrote them, taken over, and never needed."""

import json
import shutil

import numcodecs
import numpy as np
import pytest
from langgraph.store.memory import InMemoryStore
from ltm_fixture import rows, write_database, write_vectors

from questbook import FaissStore
from questbook.memory.embeddings.embedders import HashEmbeddings, identify
from questbook.memory.errors import ImportFailedError
from questbook.memory.ltm.curation import list_characters
from questbook.memory.ltm.migration import KnownVectors, count_vectors, import_ltm, read_known_vectors, read_vectors


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
    assert not read[10:20].any(), "a chunk that is missing is the fill value"
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
    ],
)
def test_arrays_of_another_kind_are_refused(tmp_path, change, said):
    write_vectors(tmp_path, 3)
    array = tmp_path / "long_term_memory_embeddings.zarr"
    header = json.loads((array / ".zarray").read_text()) | change
    (array / ".zarray").write_text(json.dumps(header))
    with pytest.raises(ImportFailedError, match=said):
        read_vectors(array)


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
