"""Sessions: signed, ended by time and by hand, and the same for all processes of a home."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from page_sessions import MemorySessions
from postgres import execute, migrated_database

from questbook.graphs.identity.sessions import Session, Sessions, sign
from questbook.graphs.local.file_home import FileSessions
from questbook.graphs.local.home import HomeError
from questbook.graphs.local.homes import home_at

DOCS = Path(__file__).parent.parent / "docs"
DELETE = "DELETE FROM sessions WHERE person = 'ann@login.example.org'"


class Clock:
    now = 1_000_000.0

    def __call__(self):
        return self.now


@pytest.fixture(params=["file", "memory", pytest.param("postgres", marks=pytest.mark.slow)])
def two(request, tmp_path):
    """The sessions of two processes, and their clock."""
    clock, memory, url = Clock(), MemorySessions(), request.param == "postgres" and migrated_database()
    make = {
        "file": lambda: FileSessions(tmp_path / "sessions.db"),
        "memory": lambda: memory,
        "postgres": lambda: home_at(url, tmp_path).sessions(),
    }[request.param]
    stores = [make() for _ in range(2)]
    return *(Sessions(store, "x" * 32, idle=600, most=3600, clock=clock) for store in stores), clock


async def test_a_session_of_one_process_holds_in_the_other_until_either_ends_it(two):
    one, other, _ = two
    cookie = await one.begin("ann", "issuer")
    key, session = await other.find(cookie)
    assert session == Session("ann", "issuer", Clock.now, Clock.now)
    assert (await one.find(cookie))[0] == key
    await other.end(key)
    assert await one.find(cookie) is None


async def test_all_sessions_of_one_person_end_together_and_no_others(two):
    one, other, _ = two
    first, second, bobs = [await one.begin(person, "issuer") for person in ("ann", "ann", "bob")]
    key, _ = await other.find(first)
    await other.end(key, "ann")
    assert [await one.find(cookie) for cookie in (first, second)] == [None, None]
    assert await one.find(bobs)


async def test_a_session_ends_when_nobody_uses_it_and_a_page_that_waits_is_no_use(two):
    one, other, clock = two
    cookie = await one.begin("ann", "issuer")
    for _ in range(5):
        clock.now += 500
        assert await other.find(cookie), "it is used"
    clock.now += 590
    assert await one.find(cookie, uses=False)
    clock.now += 9
    assert await one.find(cookie, uses=False)
    clock.now += 1
    assert await one.find(cookie) is None


async def test_a_session_of_a_minute_goes_on_while_it_is_used(two):
    one, _, clock = two
    short = Sessions(one._store, "x" * 32, idle=60, most=3600, clock=clock)
    cookie = await short.begin("ann", "issuer")
    for _ in range(30):
        clock.now += 10
        assert await short.find(cookie)
    clock.now += 60
    assert await short.find(cookie) is None


async def test_a_session_ends_after_its_time_however_much_it_is_used(two):
    one, _, clock = two
    cookie = await one.begin("ann", "issuer")
    for _ in range(35):
        clock.now += 100
        assert await one.find(cookie)
    clock.now += 100
    assert await one.find(cookie) is None
    clock.now -= 7200
    assert await one.find(cookie), "a clock that is set back ends nothing"


async def test_a_session_that_was_ended_does_not_come_back_by_a_late_use(two):
    one, other, clock = two
    cookie = await one.begin("ann", "issuer")
    key, _ = await one.find(cookie)
    await other.end(key)
    await one._store.renew(key, clock.now)
    assert await one.find(cookie) is None


async def test_a_cookie_that_is_not_ours_asks_no_store(two):
    one, _, _ = two
    cookie = await one.begin("ann", "issuer")
    name, signature = cookie.split(".")
    another = Sessions(one._store, "y" * 32, idle=600, most=3600)
    assert await another.find(cookie) is None, "another home's"
    one._store = None
    for wrong in (
        "",
        ".",
        name,
        f"{name}.",
        f"{name}.{signature[:-1]}",
        f"{name}x.{signature}",
        f"é.{signature}",
        "\udcff.x",
    ):
        assert await one.find(wrong) is None
    assert sign("x" * 32, "page", name) != signature, "a page's token is no cookie"


async def test_the_file_holds_no_cookie_only_its_owner_reads_it_and_what_has_ended_leaves_it(tmp_path):
    path, clock = tmp_path / "sessions.db", Clock()
    sessions = Sessions(FileSessions(path), "x" * 32, idle=600, most=3600, clock=clock)
    cookies = [await sessions.begin(name, "issuer") for name in ("ann", "bob")]
    assert path.stat().st_mode & 0o777 == 0o600
    for cookie in cookies:
        assert cookie.split(".")[0].encode() not in path.read_bytes()
    clock.now += 601
    ahead = Clock()
    ahead.now += 13 * 3600
    await Sessions(FileSessions(path), "x" * 32, idle=600, most=3600, clock=ahead).begin("eve", "issuer")
    assert len(sqlite3.connect(path).execute("SELECT * FROM sessions").fetchall()) == 3, "a clock ahead ends nobody's"
    clock.now += 8 * 86400
    await sessions.begin("eve", "issuer")
    assert sqlite3.connect(path).execute("SELECT person FROM sessions").fetchall() == [("eve",)]


@pytest.mark.slow
async def test_a_database_holds_no_cookie_and_who_deletes_a_person_s_rows_ends_their_sessions(tmp_path):
    home = home_at(migrated_database(), tmp_path)
    secret = home.secret("page-token")
    sessions = Sessions(home.sessions(), secret, idle=600, most=3600)
    anns, bobs = [await sessions.begin(person, "issuer") for person in ("ann@login.example.org", "bob")]
    rows = str(execute(home.url, "SELECT * FROM sessions"))
    assert [part for cookie in (anns, bobs) for part in cookie.split(".") if part in rows] == []
    assert execute(home.url, "SELECT value FROM questbook_meta WHERE key = 'secret page-token'") == [(secret,)]
    execute(home.url, DELETE)
    assert await sessions.find(anns) is None
    assert (await sessions.find(bobs))[1].person == "bob"
    execute(home.url, "DELETE FROM questbook_meta WHERE key = 'secret page-token'")
    assert home.secret("page-token") != secret
    assert [page for page in ("web.md", "security.md") if DELETE not in (DOCS / page).read_text("utf-8")] == []


async def test_who_removes_the_file_ends_all_sessions_and_the_next_make_it_again(tmp_path):
    path = tmp_path / "sessions.db"
    sessions = Sessions(FileSessions(path), "x" * 32, idle=600, most=3600)
    before = await sessions.begin("ann", "issuer")
    path.unlink()
    assert await sessions.find(before) is None
    after = await sessions.begin("ann", "issuer")
    assert (await sessions.find(after))[1].person == "ann"
    assert path.stat().st_mode & 0o777 == 0o600


async def test_a_file_that_is_locked_is_no_reason_to_remove_it(tmp_path, monkeypatch):
    monkeypatch.setattr("questbook.graphs.local.file_home._LOCK_SECONDS", 0.1)
    path = tmp_path / "sessions.db"
    sessions = Sessions(FileSessions(path), "x" * 32, idle=600, most=3600)
    with closing(sqlite3.connect(path)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(HomeError, match=r"sessions.db: database is locked\. Try again\.$"):
            await sessions.begin("ann", "issuer")
