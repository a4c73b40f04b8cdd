"""The LTM extension's CSV exports: read, with what is none of it told, and written as it wrote them."""

import csv
from datetime import UTC, datetime

import pytest
from langgraph.store.memory import InMemoryStore
from ltm_fixture import ROWS, rows, texts, write_database

from questbook.memory.ltm.curation import list_memories
from questbook.memory.ltm.extension_files import read_csv, write_csv
from questbook.memory.ltm.memories import MEMORIES
from questbook.memory.ltm.migration import import_ltm
from questbook.memory.timeline.namespaces import character_namespace


@pytest.fixture
def store():
    return InMemoryStore()


async def test_csv_exports_bring_the_same_memories_once(tmp_path, bot_memories, store):
    write_database(bot_memories / "chiharu")
    folder = bot_memories.parent / "bot_csv_outputs" / "20230821_101112"
    folder.mkdir(parents=True)
    with (folder / "chiharu.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\r\n").writerows(rows())
    (folder / "empty.csv").write_bytes(b"")
    brought = await import_ltm(store, bot_memories.parent, user="ada")
    assert [(one.path.name, one.added, one.known) for one in brought] == [
        ("long_term_memory.db", 3, 0),
        ("chiharu.csv", 0, 3),
        ("empty.csv", 0, 0),
    ]
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
    latin, quote = await import_ltm(store, tmp_path, user="ada")
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
    assert data.count(b"\r\n") == 3
    assert b'""Miso""' in data
    assert b"old,\nand" in data
    assert [row[:1] + row[2:] for row in read_csv(path).read] == [
        (number, text, f"2023-05-0{number + 1}T18:30:0{number}+00:00") for number, _, text, _ in ROWS
    ]
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


async def test_a_number_of_any_length_is_none_too_long(tmp_path, store):
    (tmp_path / "a.csv").write_text(f"{'9' * 9000},A,one,2023-05-01 10:00:00\r\n1,A,two,2023-05-01 10:00:00\r\n")
    (one,) = await import_ltm(store, tmp_path / "a.csv", user="ada")
    assert one.added == 2
