"""Taking things out of the files: no byte of what was deleted stays."""

import sqlite3
import uuid
from contextlib import asynccontextmanager, contextmanager

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from stored_bytes import contents, opened

from questbook import FaissStore, StoreUnavailableError
from questbook.graphs.errors import ForgettingError
from questbook.graphs.forgetting import backends
from questbook.graphs.forgetting.erasure import Erasure, files_with
from questbook.graphs.forgetting.phrase import Phrase
from questbook.graphs.interface.forgetting import remove_typed
from questbook.graphs.local.checkpoint_tables import compressing_serializer
from questbook.graphs.local.databases import open_checkpointer
from questbook.graphs.local.homes import home_at
from questbook.graphs.turn.turn import FORGOTTEN

SECRET = "the Silver Heron"
PHRASE = Phrase(SECRET)


def bytes_of(directory):
    return b"".join(contents(directory).values()).lower()


def at(thread):
    return {"configurable": {"thread_id": thread, "checkpoint_ns": ""}}


async def put(saver, thread, text, **metadata):
    values = {"messages": [HumanMessage(text, id="m")], "character": {"name": "Mira"}}
    checkpoint = empty_checkpoint() | {"channel_values": values}
    config = await saver.aput(at(thread), checkpoint, {"source": "loop", "step": 1, **metadata}, {})
    await saver.aput_writes(config, [("messages", [HumanMessage(text, id="n")]), ("quest", {"scene": text})], "task")
    return config


async def test_a_write_that_was_cancelled_before_its_commit_is_neither_lost_nor_in_the_way(tmp_path):
    async with AsyncSqliteSaver.from_conn_string(str(tmp_path / "checkpoints.db")) as saver:
        await put(saver, "mine", f"I saw {SECRET}")
        for number, write in enumerate([False, True]):
            await saver.conn.execute(
                "INSERT INTO checkpoints (thread_id, checkpoint_id) VALUES ('other', ?)", (number,)
            )
            assert await Erasure(saver).cut(["mine"], PHRASE, write=write) == 3
        [(count,)] = await saver.conn.execute_fetchall("SELECT COUNT(*) FROM checkpoints WHERE thread_id = 'other'")
    assert count == 2


@pytest.mark.slow
async def test_words_leave_checkpoints_and_writes_of_the_named_threads_alone(tmp_path):
    file = tmp_path / "checkpoints.db"
    async with open_checkpointer(file) as saver:
        for number in range(450):  # more than are read at once
            config = await put(saver, "mine", f"I saw {SECRET} {number}" if number % 3 else "nothing")
        await put(saver, "theirs", f"We saw {SECRET}")
        everything = sqlite3.connect(file).execute("SELECT * FROM checkpoint_blobs").fetchall()
        untouched = {row for row in everything if b"Heron" not in opened(row[3], row[4])}
        erasure = Erasure(saver)
        assert await erasure.cut(["mine"], PHRASE, write=False) == 300 + 600
        assert await erasure.cut(["mine"], PHRASE) == 900
        assert await erasure.cut(["mine"], PHRASE, write=False) == 0
        assert await erasure.cut(["theirs"], PHRASE, write=False) == 3
        found = await saver.aget_tuple(config)
        assert found.checkpoint["channel_values"]["messages"][0].text == f"I saw {FORGOTTEN} 449"
        assert found.checkpoint["channel_values"]["messages"][0].id == "m"
        assert [value for _, channel, value in found.pending_writes if channel == "quest"] == [
            {"scene": f"I saw {FORGOTTEN} 449"}
        ]
        await saver.adelete_thread("theirs")
        await erasure.compact()
        assert b"heron" not in bytes_of(tmp_path)
        rows = sqlite3.connect(file).execute("SELECT * FROM checkpoint_blobs").fetchall()
        assert len(untouched) == 150
        assert untouched <= set(rows)


async def test_metadata_is_cut_too_and_names_are_found_in_it(tmp_path):
    async with open_checkpointer(tmp_path / "checkpoints.db") as saver:
        await put(saver, "one", "hello", user="ann", campaign="isle", note=f"of {SECRET}")
        await put(saver, "two", "hello", user="ann", campaign="cave")
        await put(saver, "three", "hello", user="bob", campaign="isle")
        erasure = Erasure(saver)
        assert await erasure.threads_of("ann") == {"one": "isle", "two": "cave"}
        assert await erasure.cut(["one"], PHRASE) == 1
        await erasure.compact()
        assert b"heron" not in bytes_of(tmp_path)
        assert (await saver.aget_tuple(at("one"))).metadata["note"] == f"of {FORGOTTEN}"


async def test_words_leave_more_rows_than_are_read_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr("questbook.graphs.forgetting.erasure._ROWS_AT_ONCE", 2)
    async with AsyncSqliteSaver.from_conn_string(str(tmp_path / "checkpoints.db")) as saver:
        for number in range(5):
            await put(saver, "mine", f"I saw {SECRET} {number}")
        erasure = Erasure(saver)
        assert [await erasure.cut(["mine"], PHRASE, write=write) for write in (False, True, True)] == [15, 15, 0]
        await saver.adelete_thread("mine")
        await erasure.compact()
    assert b"heron" not in bytes_of(tmp_path)


async def test_a_reader_that_does_not_go_is_told_of(tmp_path):
    async with open_checkpointer(tmp_path / "checkpoints.db") as saver:
        await put(saver, "mine", SECRET)
        await saver.conn.execute("PRAGMA busy_timeout = 50")
        reader = sqlite3.connect(tmp_path / "checkpoints.db", isolation_level=None)
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM checkpoints").fetchone()
        with pytest.raises(ForgettingError, match=r"Another program|cannot be read or written"):
            await Erasure(saver).compact()
        reader.close()
        await Erasure(saver).compact()


def test_a_compacted_store_holds_no_word_of_what_was_deleted_and_another_store_sees_it(tmp_path):
    with FaissStore.open(tmp_path / "memory.db") as store, FaissStore.open(tmp_path / "memory.db") as other:
        for number in range(60):
            store.put(("ann", "isle"), f"k{number}", {"text": f"{SECRET} number {number}", "n": number})
            store.put(("ann", "cave"), f"k{number}", {"text": f"an ordinary evening {number}"})
        store.put(("ann", "silverheron"), "k", {"text": "gone soon"})
        assert other.search(("ann", "silverheron"), query="gone")[0].key == "k"
        for number in range(0, 60, 2):
            store.delete(("ann", "isle"), f"k{number}")
        for number in range(1, 60, 2):
            store.put(("ann", "isle"), f"k{number}", {"text": "a heronless shore"})
        store.delete(("ann", "silverheron"), "k")
        assert store.search(("ann",), query="shore")
        store.compact()
        assert store.cached_bytes == 0
        assert b"silver" not in bytes_of(tmp_path), "nor in the name of an emptied namespace"
        assert other.search(("ann", "silverheron"), query="gone") == []
        for one in (store, other):
            assert len(one.search(("ann", "isle"), limit=100)) == 30
            assert "k7" in {item.key for item in one.search(("ann",), query="ordinary evening 7", limit=3)}
            assert one.search(("ann", "isle"), query="shore", limit=3)[0].value == {"text": "a heronless shore"}
        other.put(("ann", "silverheron"), "k2", {"text": "back again"})
        assert store.search(("ann",), query="back")[0].key == "k2"


def test_snapshots_are_removed_with_what_they_were_made_of(tmp_path, monkeypatch):
    monkeypatch.setattr("questbook.memory.store.vectors.SNAPSHOT_VECTORS", 10)
    with FaissStore.open(tmp_path / "memory.db") as store:
        for number in range(20):
            store.put(("a",), str(number), {"text": f"{SECRET} {number}"})
        store.search(("a",), query="heron")
    shards = tmp_path / "memory.db.shards"
    assert list(shards.iterdir())
    with FaissStore.open(tmp_path / "memory.db") as store:
        store.search(("a",), query="heron")
        for number in range(19):
            store.delete(("a",), str(number))
        store.put(("a",), "19", {"text": "left"})
        store.compact()
        assert not shards.exists()
        assert [item.key for item in store.search(("a",), query="heron left")] == ["19"]
    assert not shards.exists(), "one vector is not worth a snapshot"


def test_the_prompts_history_loses_whole_entries(tmp_path):
    file = tmp_path / "history"
    assert remove_typed(file, PHRASE.is_in) == 0
    kept = "\n# 2026-01-01 10:00:00\n+look around\n"
    file.write_text(
        f"{kept}\n# 2026-01-01 10:01:00\n+I call\n+The Silver\n+Heron\n\n# 2026-01-01 10:02:00\n+go on\n", "utf-8"
    )
    assert remove_typed(file, PHRASE.is_in) == 1
    assert file.read_text("utf-8") == f"{kept}\n# 2026-01-01 10:02:00\n+go on\n"
    assert file.stat().st_mode & 0o777 == 0o600
    assert remove_typed(file, PHRASE.is_in) == 0


def test_files_are_looked_through_across_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr("questbook.graphs.forgetting.erasure.BLOCK", 64)
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "a").write_bytes(b"x" * 60 + SECRET.upper().encode() + b" " + b"y" * 200)
    (tmp_path / "b").write_bytes(b"nothing" * 40)
    assert files_with(tmp_path, PHRASE) == ["deep/a"]


async def test_words_in_compressed_values_are_found_by_file(tmp_path):
    async with open_checkpointer(tmp_path / "checkpoints.db") as saver:
        config = await put(saver, "one", "of the Silver Heron " * 9)
        await saver.aput_writes(config, [("messages", [HumanMessage("and the Golden Carp " * 9)])], "other")
    assert b"Heron" not in (tmp_path / "checkpoints.db").read_bytes()
    for words in ("silver heron", "golden carp"):
        assert files_with(tmp_path, Phrase(words)) == ["checkpoints.db"]
    assert files_with(tmp_path, Phrase("bronze pike")) == []


def test_letters_in_compressed_bytes_are_no_words(tmp_path):
    serde = compressing_serializer()
    with sqlite3.connect(tmp_path / "noise.db") as database:
        database.execute("CREATE TABLE noise (value)")
        for length in (200, 300, 600, 1_200, 2_500, 5_000, 10_000, 20_000, 40_000):
            _, data = serde.dumps_typed("x" * length)
            database.execute("INSERT INTO noise VALUES (?)", (data[:2] + b" among letters zqxwvk " * 9,))
    assert files_with(tmp_path, Phrase("zqxwvk")) == []


def test_snapshots_that_cannot_be_removed_are_named(as_nobody):
    def check(directory):
        shards = directory / "memory.db.shards"
        with FaissStore.open(directory / "memory.db") as store:
            store.put(("a",), "k", {"text": SECRET})
            shards.mkdir()
            (shards / "1.faiss").write_bytes(b"old vectors")
            shards.chmod(0o500)
            says = r"cannot remove the snapshots in .*memory\.db\.shards: Permission denied; mend that and try again"
            with pytest.raises(StoreUnavailableError, match=says):
                store.compact()
            assert store.get(("a",), "k").value == {"text": SECRET}
            shards.chmod(0o700)
            store.compact()
            assert not shards.exists()

    as_nobody(check)


def test_where_the_snapshots_are_a_link_the_link_alone_is_removed(tmp_path):
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / "file").write_text("not ours")
    (tmp_path / "memory.db.shards").symlink_to(theirs)
    with FaissStore.open(tmp_path / "memory.db") as store:
        store.put(("a",), "k", {"text": "kept"})
        store.compact()
    assert (theirs / "file").read_text() == "not ours"
    assert not (tmp_path / "memory.db.shards").is_symlink()


def test_a_compacted_store_holds_no_word_of_what_has_expired(tmp_path):
    with FaissStore.open(tmp_path / "memory.db") as store:
        store.put(("a",), "gone", {"text": SECRET}, ttl=0)
        store.put(("a",), "later", {"text": "an ordinary evening"}, ttl=60)
        store.compact()
        assert b"silver" not in bytes_of(tmp_path)
        assert [item.key for item in store.search(("a",))] == ["later"]


@pytest.mark.parametrize("kind", [AsyncSqliteSaver, None], ids=["LangGraph's", "ours"])
async def test_a_short_word_leaves_a_value_whose_next_text_begins_right_behind_it(tmp_path, kind):
    file = tmp_path / "checkpoints.db"
    async with AsyncSqliteSaver.from_conn_string(str(file)) if kind else open_checkpointer(file) as saver:
        values = {"notes": ["Lea", "came", "leather"]}
        await saver.aput(at("one"), empty_checkpoint() | {"channel_values": values}, {"source": "loop", "step": 1}, {})
        assert await Erasure(saver).cut(["one"], Phrase("lea")) == 1
        found = await saver.aget_tuple(at("one"))
        assert found.checkpoint["channel_values"]["notes"] == [FORGOTTEN, "came", "leather"]


async def test_what_is_left_to_be_forgotten_is_kept_by_thread_until_it_is_done(tmp_path):
    async with open_checkpointer(tmp_path / "checkpoints.db") as saver:
        erasure, carp = Erasure(saver), Phrase("golden carp")
        await erasure.leave_for_runs([], ["one", "two"], ("ann", "isle"), PHRASE)
        await erasure.leave_for_runs([], ["one"], ("ann", "isle"), carp)
        assert await erasure.left_for("one") == [("ann", "isle", PHRASE.words), ("ann", "isle", carp.words)]
        assert await erasure.left_for("three") == []
        await erasure.leave_for_runs(["one"], [], ("ann", "isle"), PHRASE)
        assert await erasure.left_for("one") == [("ann", "isle", carp.words)]
        assert await erasure.left_for("two") == [("ann", "isle", PHRASE.words)]


class Played(Erasure):
    """Of a saver whose threads are played for a while."""

    def __init__(self, *rounds):
        self.rounds, self.asked = list(rounds), []

    async def find_playing(self, threads):
        self.asked.append(list(threads))
        return self.rounds.pop(0)


async def test_turns_are_waited_for_until_the_last_one_has_ended(monkeypatch):
    monkeypatch.setattr("questbook.graphs.forgetting.erasure._PAUSE", 0)
    played = Played(["a", "b"], ["a", "b"], ["b"], [])
    await played.wait_for_end(["a", "b", "c"])
    assert played.asked == [["a", "b", "c"], ["a", "b"], ["a", "b"], ["b"]]


def test_words_across_two_blocks_are_found_and_a_file_is_named_from_the_directory(tmp_path, monkeypatch):
    monkeypatch.setattr("questbook.graphs.forgetting.erasure.BLOCK", 64)
    (tmp_path / "whole").write_bytes(b"x" * 300)
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "many").write_bytes(b"y" * 250 + SECRET.encode())
    assert files_with(tmp_path, PHRASE) == ["many"]
    assert files_with(tmp_path / "nowhere", PHRASE) == []


class Statements:
    """Stands for a saver or a store in PostgreSQL: it keeps the statements that it is given; its cursor is itself."""

    def __init__(self, *tables):
        self.tables, self.given, self.noting = tables, [], []
        self.connection = self

    def add_notice_handler(self, handler):
        self.noting.append(handler)

    def remove_notice_handler(self, handler):
        self.noting.remove(handler)

    @asynccontextmanager
    async def _cursor(self):
        yield self

    async def execute(self, statement, parameters=()):
        self.given.append((statement, parameters))

    async def fetchall(self):
        return [{"name": table} for table in self.tables] if "to_regclass" in self.given[-1][0] else []


class SyncStatements(Statements):
    """The same for a synchronous store."""

    @contextmanager
    def _cursor(self):
        yield self

    def execute(self, statement, parameters=()):
        self.given.append((statement, parameters))
        return self

    def fetchall(self):
        return [{"name": table} for table in self.tables]


async def test_of_postgresql_every_table_of_the_checkpoints_is_read_and_vacuumed():
    pytest.importorskip("psycopg")
    saver = Statements("checkpoints", "checkpoint_writes")
    erasure = backends.PostgresErasure(saver)
    assert await erasure.cut(["two", "one", "two"], PHRASE) == 0
    read = {statement.split(" FROM ")[1].split()[0]: parameters for statement, parameters in saver.given}
    assert read == dict.fromkeys(("checkpoints", "checkpoint_blobs", "checkpoint_writes"), (["one", "two"],))
    await erasure.compact()
    assert saver.given[-3][1] == (["checkpoints", "checkpoint_blobs", "checkpoint_writes"],)
    assert [statement for statement, _ in saver.given[-2:]] == ["VACUUM checkpoints", "VACUUM checkpoint_writes"]
    assert await erasure.threads_of("a\0b") == {}, "no JSON there holds it"


@pytest.mark.parametrize("kind", ["AsyncPostgresStore", "PostgresStore"])
async def test_a_store_in_postgresql_is_vacuumed_whether_it_is_asynchronous_or_not(kind, monkeypatch):
    postgres = pytest.importorskip("langgraph.store.postgres")
    store = object.__new__(getattr(postgres, kind))
    store._task = None
    statements = (Statements if kind.startswith("Async") else SyncStatements)("store", "store_vectors")
    monkeypatch.setattr(type(store), "_cursor", lambda _: statements._cursor())
    await backends.compact(store, None, None, "Done", cut=True)
    assert [statement for statement, _ in statements.given[1:]] == ["VACUUM store", "VACUUM store_vectors"]
    assert statements.noting == []


async def test_a_database_that_is_not_vacuumed_is_told_of():
    psycopg = pytest.importorskip("psycopg")

    class Refusing(Statements):
        async def execute(self, statement, parameters=()):
            raise psycopg.errors.InsufficientPrivilege("not yours")

    hint = r"not vacuumed: not yours\. VACUUM checkpoints, checkpoint_blobs, checkpoint_writes yourself"
    with pytest.raises(ForgettingError, match=hint):
        await backends.PostgresErasure(Refusing()).compact()


@pytest.mark.slow
async def test_a_role_that_may_not_vacuum_is_told_of():
    pytest.importorskip("psycopg")
    from postgres import PostgresStore, execute, migrated_database

    url = migrated_database()
    clerk = f"clerk_{uuid.uuid4().hex}"
    execute(url, f"CREATE ROLE {clerk} LOGIN")
    execute(url, f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {clerk}")
    theirs = url.replace("://postgres:", f"://{clerk}:")
    assert theirs != url
    says = (
        r"^What was to be forgotten is removed, but the database was not vacuumed: permission denied to vacuum \"{}\""
    )
    home = home_at(theirs, "here")
    async with home.open_checkpointer() as saver, home.open_store("hash") as store:
        with pytest.raises(ForgettingError, match=says.format("checkpoints")):
            await backends.PostgresErasure(saver).compact()
        with pytest.raises(ForgettingError, match=says.format("store")):
            await backends.compact(store, None, None, "Done", cut=False)
    with PostgresStore.from_conn_string(theirs) as store:
        with pytest.raises(ForgettingError, match=says.format("store")):
            await backends.compact(store, None, None, "Done", cut=False)
        assert store.conn._notice_handlers == []
    with PostgresStore.from_conn_string(url) as store:
        await backends.compact(store, None, None, "Done", cut=False)
    execute(url, f"DROP OWNED BY {clerk}")
    execute(url, f"DROP ROLE {clerk}")
