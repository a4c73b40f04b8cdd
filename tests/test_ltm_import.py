"""Coming over from the LTM extension: its layouts, damage, CSV exports and vectors, and twice is once."""

import csv
import json
import os
import pickle
import shutil
import sqlite3
import tracemalloc
from contextlib import closing, contextmanager
from datetime import UTC, datetime

import numcodecs
import numpy as np
import pytest
from langgraph.store.memory import InMemoryStore
from ltm_fixture import ROWS, rows, texts, write_database, write_vectors

from questbook import FaissStore
from questbook.memory.embeddings.embedders import HashEmbeddings, KnownVectors, identify
from questbook.memory.errors import ImportFailedError
from questbook.memory.ltm.extension_files import find_sources, read_csv, read_database, write_csv
from questbook.memory.ltm.memories import (
    EVERYONE,
    MEMORIES,
    delete_memories,
    edit_memory,
    list_characters,
    list_memories,
    recall_messages,
)
from questbook.memory.ltm.migration import count_vectors, import_ltm, read_known_vectors, read_vectors
from questbook.memory.ltm.prompt import last_talk
from questbook.memory.timeline.namespaces import character_namespace

CHIHARU = character_namespace("chiharu", MEMORIES, user="ada")


@pytest.fixture
def store():
    return InMemoryStore()


def files(directory):
    return {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()}


async def test_each_characters_database_comes_over_and_twice_is_once(bot_memories, store):
    write_database(bot_memories / "chiharu_yamada")
    write_database(bot_memories / "example", rows(40))
    before = files(bot_memories)
    first = await import_ltm(store, bot_memories, user="ada")
    counts = [(one.character, one.added, one.known, one.skipped) for one in first]
    assert counts == [("chiharu_yamada", 3, 0, ()), ("example", 40, 0, ())]
    again = await import_ltm(store, bot_memories.parent.parent, user="ada")
    assert [(one.added, one.known) for one in again] == [(0, 3), (0, 40)]
    assert await list_characters(store, "ada") == {"chiharu_yamada": 3, "example": 40}
    item = (await list_memories(store, character_namespace("Chiharu Yamada", MEMORIES, user="ada")))[-1]
    told = {"kind": "memory", "text": ROWS[0][2], "speaker": "Anon", "by": "ltm"}
    assert item.value == told | {"said_at": "2023-05-01T18:30:00+00:00"}
    assert files(bot_memories) == before, "nothing in the extension's directory is touched"


async def test_what_comes_over_is_found_by_words_and_vectors_in_the_durable_store(bot_memories, tmp_path):
    write_database(bot_memories / "chiharu_yamada")
    async with FaissStore.open(tmp_path / "memory.db") as store:
        await import_ltm(store, bot_memories, user="ada")
        found, *_ = await recall_messages(store, "Chiharu Yamada", "My cat is called Miso, is she not?", user="ada")
        assert found.text == ROWS[2][2]
        assert found.distance < 0.6


async def test_one_folder_one_file_and_a_name_that_is_given(bot_memories, store):
    path = write_database(bot_memories / "chiharu")
    assert (await import_ltm(store, bot_memories / "chiharu", user="ada"))[0].character == "chiharu"
    assert (await import_ltm(store, str(path), user="ada"))[0].known == 3
    assert (await import_ltm(store, path, user="ada", character="Someone Else"))[0].added == 3
    assert await list_characters(store, "ada") == {"chiharu": 3, "someone_else": 3}


async def test_a_legacy_database_is_everyones_unless_it_is_said_whose(bot_memories, store):
    write_database(bot_memories)
    own = (0, "Anon", "Only Chiharu knows that my cat is called Miso and is nine.", "x")
    write_database(bot_memories / "chiharu", [own])
    brought = await import_ltm(store, bot_memories, user="ada")
    assert {one.character: one.added for one in brought} == {EVERYONE: 3, "chiharu": 1}
    assert any("all of the user's characters" in note for one in brought for note in one.notes)
    for anyone in ("chiharu", "Somebody New"):
        found = await recall_messages(store, anyone, "I grew up by the sea in a small town with boats", user="ada")
        assert found[0].text == ROWS[0][2]
    assert (await import_ltm(store, bot_memories / "long_term_memory.db", user="ada", character="Old"))[0].added == 3


async def test_names_that_were_paths_are_names(tmp_path, store):
    bot_memories = tmp_path / "user_data" / "bot_memories"
    write_database(bot_memories / "a" / "b")
    write_database(tmp_path / "user_data" / "evil", [(0, "x", "a character called ../evil left this outside", "")])
    brought = await import_ltm(store, tmp_path, user="ada")
    assert {one.character: one.added for one in brought} == {"a/b": 3, "user_data/evil": 1}
    assert await texts(store, "a/b") == [row[2] for row in reversed(rows())]
    assert all("/" not in label for space in store.list_namespaces() for label in space)


async def test_half_written_rows(bot_memories, store):
    folder = bot_memories / "chiharu"
    folder.mkdir(parents=True)
    with closing(sqlite3.connect(folder / "long_term_memory.db")) as connection, connection:
        connection.execute("CREATE TABLE long_term_memory (id, name, message, timestamp)")
        at = "2023-05-01 10:00:00"
        table = [(3, "Anon", "a gap in the numbers before this one", at), (7, None, "a message of nobody", at)]
        table += [(8, "Anon", None, at), (9, "Anon", "   ", at), (10, "Anon", b"bytes \xff that are no text", at)]
        table += [(11, "Anon", "no time", None), (12, "Anon", "a time with parts of seconds", f"{at}.123456")]
        table += [(None, " Anon\n", "no number", at), (13, "Anon", "its own \ufffd stays", at)]
        connection.executemany("INSERT INTO long_term_memory VALUES (?, ?, ?, ?)", table)
    (one,) = await import_ltm(store, bot_memories, user="ada")
    assert one.added == 7
    said = {value["text"]: value for value in (item.value for item in await list_memories(store, CHIHARU))}
    assert [said[text]["speaker"] for text in ("a message of nobody", "no number")] == ["someone", "Anon"]
    assert said["a time with parts of seconds"]["said_at"] == "2023-05-01T10:00:00+00:00"
    assert one.skipped == ("row 8: the message is empty", "row 9: the message is empty")
    assert [note.split(":")[0] for note in one.notes] == ["row 7", "row 10", "row 11"]


async def test_a_damaged_database_gives_what_can_be_read_and_the_others_go_in(bot_memories, store):
    many = [(n, "Anon", f"message {n} " + "words " * 60, "") for n in range(400)]
    path = write_database(bot_memories / "damaged", many)
    data = bytearray(path.read_bytes())
    middle = len(data) // 2 // 4096 * 4096
    data[middle : middle + 8192] = b"\xff" * 8192
    path.write_bytes(data)
    write_database(bot_memories / "whole")
    (bot_memories / "text").mkdir()
    (bot_memories / "text" / "long_term_memory.db").write_text("no database at all, " * 300)
    (bot_memories / "zero").mkdir()
    (bot_memories / "zero" / "long_term_memory.db").write_bytes(b"")
    brought = {one.character: one for one in await import_ltm(store, bot_memories, user="ada")}
    assert 100 < brought["damaged"].added < 400
    assert any("the file is damaged" in reason for reason in brought["damaged"].skipped)
    kept = await texts(store, "damaged")
    assert any(text.startswith("message 0 ") for text in kept), "what lies before the damage"
    assert any(text.startswith("message 399 ") for text in kept), "and what lies after it"
    assert brought["whole"].added == 3
    assert "cannot be read" in brought["text"].skipped[0]
    assert "no such table" in brought["zero"].skipped[0]


async def test_a_database_that_is_open_elsewhere_with_a_write_ahead_log_is_read_whole(bot_memories, store):
    path = write_database(bot_memories / "chiharu")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("INSERT INTO long_term_memory VALUES (3, 'Anon', 'still in the log', '2023-05-09 10:00:00')")
        connection.commit()
        (one,) = await import_ltm(store, bot_memories, user="ada")
    assert one.added == 4


async def test_what_a_write_left_half_done_in_the_file_is_read_as_it_was_before(bot_memories, tmp_path, store):
    path = write_database(tmp_path / "live", rows(40))
    (bot_memories / "chiharu").mkdir(parents=True)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA cache_size = 1")  # so that the file is written before the end
        connection.execute("UPDATE long_term_memory SET message = message || ' half'")
        for name in (path.name, f"{path.name}-journal"):
            shutil.copy(path.with_name(name), bot_memories / "chiharu" / name)
    assert b" half" in (bot_memories / "chiharu" / path.name).read_bytes()
    (one,) = await import_ltm(store, bot_memories, user="ada")
    assert one.added == 40
    assert not any(text.endswith("half") for text in await texts(store, "chiharu"))


async def test_what_was_changed_by_hand_is_not_brought_back(bot_memories, store):
    write_database(bot_memories / "chiharu")
    await import_ltm(store, bot_memories, user="ada")
    place = character_namespace("chiharu", MEMORIES, user="ada")
    items = await list_memories(store, place)
    await edit_memory(store, place, items[0].key, "My cat is called Mochi.")
    await delete_memories(store, place, [items[1].key])
    (again,) = await import_ltm(store, bot_memories, user="ada")
    assert (again.added, again.known) == (1, 2), "only what was deleted comes back"
    talk = await last_talk(store, "Chiharu", user="ada", session="new")
    assert (talk.said_at, talk.sessions) == ("2023-05-03T18:30:02+00:00", 1), "for the first greeting"
    assert "My cat is called Mochi." in await texts(store, "chiharu")


@pytest.mark.parametrize("what", ["missing", "empty"])
async def test_nothing_to_bring_over_is_said(tmp_path, store, what):
    (tmp_path / "empty").mkdir()
    with pytest.raises(ImportFailedError, match="user_data/bot_memories"):
        await import_ltm(store, tmp_path / what, user="ada")


def test_reading_does_not_depend_on_the_order_in_which_sqlite_finds_rows(tmp_path):
    path = write_database(tmp_path, [(n, "A", f"{9 - n} text", "2023-05-01 10:00:00") for n in range(10)])
    assert [message.number for message in read_database(path).read] == list(range(10))


async def test_csv_exports_bring_the_same_memories_once(tmp_path, bot_memories, store):
    write_database(bot_memories / "chiharu")
    folder = bot_memories.parent / "bot_csv_outputs" / "20230821_101112"
    folder.mkdir(parents=True)
    with (folder / "chiharu.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\r\n").writerows(rows())
    (folder / "empty.csv").write_bytes(b"")
    brought = await import_ltm(store, bot_memories.parent, user="ada")
    counts = [(one.path.name, one.added, one.known) for one in brought]
    assert counts == [("long_term_memory.db", 3, 0), ("chiharu.csv", 0, 3), ("empty.csv", 0, 0)]
    assert brought[2].notes == ("the file is empty",)


async def test_csv_files_of_others_are_left_alone(tmp_path, bot_memories, store):
    write_database(bot_memories / "chiharu")
    for place in (tmp_path, bot_memories, bot_memories / "chiharu"):
        (place / "tags.csv").write_text("0,Anon,four columns by chance,2023-05-01 10:00:00\r\n")
    exports = bot_memories.parent / "bot_csv_outputs" / "20230821_101112"
    exports.mkdir(parents=True)
    (exports / "prices.csv").write_text("item;price\nlamp oil;1\n")
    brought = {one.path.name: one for one in await import_ltm(store, tmp_path, user="ada")}
    assert set(brought) == {"long_term_memory.db", "prices.csv"}
    assert "is no export" in brought["prices.csv"].skipped[0]


def test_of_a_directory_without_a_database_its_own_csv_files_and_those_of_exports_are_taken(tmp_path):
    for place in (".", "deep", "20230821_101112", "other/20230821_1011"):
        (tmp_path / place).mkdir(parents=True, exist_ok=True)
        (tmp_path / place / "chiharu.csv").write_text("0,Anon,hello,2023-05-01 10:00:00\r\n")
    found = [source.path.relative_to(tmp_path).as_posix() for source in find_sources(tmp_path)]
    assert found == ["20230821_101112/chiharu.csv", "chiharu.csv"]


async def test_csv_lines_that_are_none_are_told_and_the_others_go_in(tmp_path, store):
    path = tmp_path / "chiharu.csv"
    long = "x" * 200_000
    path.write_text(
        '\ufeffid,name,message,timestamp\r\n0,Anon,"first, with ""quotes""\nand a line",2023-05-01 10:00:00\r\n'
        f"1,Anon,too few\r\n2,Anon,,2023-05-01 10:00:00\r\n\r\nx,,{long},yesterday\r\n",
        "utf-8",
        newline="",
    )
    (one,) = await import_ltm(store, path, user="ada")
    assert one.added == 2
    assert one.skipped == ("line 4: 3 columns; expected id, name, message, timestamp", "row 2: the message is empty")
    assert "'yesterday' is no time" in one.notes[0]
    assert "'someone' said it" in one.notes[0]
    assert set(await texts(store, "chiharu")) == {'first, with "quotes"\nand a line', long}
    assert csv.field_size_limit() < 200_000, "the limit is put back"


async def test_text_that_is_no_utf8_and_an_open_quote_are_told(tmp_path, store):
    (tmp_path / "latin.csv").write_bytes("0,Zoë,ça va,2023-05-01 10:00:00\r\n".encode("latin-1"))
    (tmp_path / "quote.csv").write_text('0,A,fine,2023-05-01 10:00:00\r\n1,A,"open', "utf-8")
    long = f"{'9' * 9000},A,one,2023-05-01 10:00:00\r\n1,A,two,2023-05-01 10:00:00\r\n"
    (tmp_path / "long.csv").write_text(long)
    latin, long_number, quote = await import_ltm(store, tmp_path, user="ada")
    assert long_number.added == 2, "a number of any length"
    assert "cannot be read" in latin.skipped[0]
    assert quote.added == 1
    assert "not read" in quote.skipped[0]


async def test_export_is_the_extensions_csv_and_goes_back_in(bot_memories, tmp_path, store):
    write_database(bot_memories / "chiharu")
    await import_ltm(store, bot_memories, user="ada")
    values = [item.value for item in await list_memories(store, character_namespace("chiharu", MEMORIES, user="ada"))]
    path = write_csv(tmp_path / "out", "Chiharu", values, datetime(2026, 7, 1, 9, 8, 7, tzinfo=UTC))
    assert path == tmp_path / "out" / "20260701_090807" / "chiharu.csv"
    data = path.read_bytes()
    assert data.startswith(b"0,Anon,")
    assert (data.count(b"\r\n"), data.count(b'""Miso""'), data.count(b"old,\nand")) == (3, 1, 1)
    times = [(number, text, f"2023-05-0{number + 1}T18:30:0{number}+00:00") for number, _, text, _ in ROWS]
    assert [row[:1] + row[2:] for row in read_csv(path).read] == times
    (again,) = await import_ltm(store, path, user="ada")
    assert (again.added, again.known) == (0, 3)


async def test_no_name_leaves_the_directory_of_exports(tmp_path, store):
    for name in ("../evil", "", "a/b", "C:\\x"):
        path = write_csv(tmp_path / "out", name, [{"text": "t", "speaker": "s", "said_at": ""}], datetime.now(UTC))
        assert path.parent.parent == tmp_path / "out"
        (one,) = await import_ltm(store, path, user=None)
        assert one.added == 1
        assert character_namespace(one.character, user=None) == character_namespace(name, user=None)


def test_only_the_user_may_read_an_export_and_it_is_not_written_through_a_link(tmp_path):
    now = datetime(2026, 7, 1, 9, 8, 7, tzinfo=UTC)
    path = write_csv(tmp_path / "out", "chiharu", [{"text": "first", "speaker": "s"}], now)
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    (tmp_path / "foreign").write_text("theirs")
    path.unlink()
    path.symlink_to(tmp_path / "foreign")
    write_csv(tmp_path / "out", "chiharu", [{"text": "second", "speaker": "s"}], now)
    assert (tmp_path / "foreign").read_text() == "theirs"
    assert b"second" in path.read_bytes()
    path.chmod(0o644)
    write_csv(tmp_path / "out", "chiharu", [{"text": "third", "speaker": "s"}], now)
    assert path.stat().st_mode & 0o777 == 0o600


async def test_vectors_without_rows_and_rows_without_vectors_are_told(bot_memories, store):
    write_database(bot_memories / "more", rows(3), vectors=5)
    write_database(bot_memories / "fewer", rows(3), vectors=1)
    write_vectors(bot_memories / "orphan", 2)
    write_database(bot_memories / "none", rows(3))
    shutil.rmtree(bot_memories / "none" / "long_term_memory_embeddings.zarr")
    write_database(bot_memories / "broken")
    (bot_memories / "broken" / "long_term_memory_embeddings.zarr" / ".zarray").write_text("{")
    brought = {one.character: one for one in await import_ltm(store, bot_memories, user="ada")}
    added = {name: one.added for name, one in brought.items()}
    assert added == {"more": 3, "fewer": 3, "orphan": 0, "none": 3, "broken": 3}
    assert "do not need it" in brought["broken"].notes[0]
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
    ("said", "changes"),
    [
        ("zarr format 3", [{"zarr_format": 3}]),
        ("two dimensions", [{"shape": [3]}]),
        ("no|not", [{"dtype": "V9999999999999"}]),
        ("no lengths", [{"shape": shape} for shape in ([-3, 768], [3.0, 768], ["3", 768], "33")]),
        ("too large", [{"shape": [10**9, 768]}, {"shape": [10**30, 768]}]),
        ("too large", [{"chunks": [10**9, 768]}, {"chunks": [1000, 10**9]}]),
        ("only Blosc", [{"compressor": compressor} for compressor in ({"id": "pickle"}, {"id": "zlib"}, "blosc")]),
        ("not in the extension.s layout", [{"order": "F"}, {"shape": [3, 700]}, {"dtype": "|O"}, {"dtype": "<i4"}]),
        ("not in the extension.s layout", [{"chunks": [1000, 100]}, {"chunks": [0, 768]}, {"fill_value": 7.5}]),
        ("not in the extension.s layout", [{"fill_value": "NaN"}, {"dimension_separator": "/../../"}]),
        ("not in the extension.s layout", [{"filters": [{"id": "delta", "dtype": "<f4"}]}]),
    ],
)
def test_arrays_of_another_kind_are_refused(tmp_path, said, changes):
    write_vectors(tmp_path, 3)
    array = tmp_path / "long_term_memory_embeddings.zarr"
    header = json.loads((array / ".zarray").read_text())
    for change in changes:
        (array / ".zarray").write_text(json.dumps(header | change))
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
        assert await list_characters(store, "ada") == {"chiharu": 5}, "for the file it is the same embedder"
