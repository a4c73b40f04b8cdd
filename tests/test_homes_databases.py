"""A database for games: `questbook migrate`, what it refuses, and what is said where one cannot be used."""

import argparse
import asyncio
import os
import re
import socket

import psycopg
import pytest
from langgraph.store.postgres import AsyncPostgresStore
from postgres import execute, migrated_database, new_database
from program import questbook

from questbook import HashEmbeddings
from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.errors import SettingsError
from questbook.graphs.local import postgres_home
from questbook.graphs.local.game import open_game
from questbook.graphs.local.home import HomeError
from questbook.graphs.local.homes import home_at
from questbook.graphs.settings import Settings
from questbook.graphs.terminal.cli import parser
from questbook.graphs.terminal.homes import copy
from questbook.graphs.web.campaign_pool import shared_with
from questbook.memory.errors import EmbedderChangedError

slow = pytest.mark.slow
TABLES = ["checkpoint_blobs", "checkpoint_migrations", "checkpoint_writes", "checkpoints", "questbook_meta", "sessions"]
TABLES += ["store", "store_migrations", "store_vectors", "vector_migrations"]


@pytest.fixture
def database():
    return home_at(migrated_database(), "here")


def tables_in(url):
    rows = execute(url, "SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1")
    return [name for (name,) in rows]


def set_meta(home, **values):
    for key, value in values.items():
        execute(home.url, "UPDATE questbook_meta SET value = %s WHERE key = %s", value, key)


async def opens(home):
    async with open_game(Context(model="offline", user="ann", seed=6), home) as game:
        async for _ in game.send("I'm Mira."):
            pass


@slow
async def test_it_may_be_repeated_and_says_what_it_did_once(database):
    before = execute(database.url, "SELECT * FROM questbook_meta ORDER BY 1")
    assert before == [("embedder", "hash-1:512 with 512 dimensions"), ("oldest_reader", "1"), ("schema", "1")]
    assert await database.migrate() == []
    assert execute(database.url, "SELECT * FROM questbook_meta ORDER BY 1") == before
    await opens(database)
    assert await database.migrate() == []


@slow
async def test_several_at_once_make_one_set_of_tables():
    url = await asyncio.to_thread(new_database)
    done = await asyncio.gather(*(home_at(url, "here").migrate("hash") for _ in range(3)))
    assert sorted(map(len, done)) == [0, 0, 3], "one of them did it"
    assert tables_in(url) == TABLES
    await opens(home_at(url, "here"))


async def test_without_it_nothing_is_opened_and_nothing_made():
    url = await asyncio.to_thread(new_database)
    home = home_at(url, "here")
    for attempt in (home.check, lambda: home.read_item(("a",), "k"), lambda: opens(home)):
        with pytest.raises(HomeError, match=r"has no tables of this version yet: run `questbook migrate`, then again"):
            await attempt()
    assert tables_in(url) == []


@slow
async def test_a_database_of_a_newer_version_is_opened_if_that_says_so(database, tmp_path):
    set_meta(database, schema="7", oldest_reader="1")
    execute(database.url, "ALTER TABLE store DROP COLUMN size")
    assert await database.migrate() == []
    columns = "SELECT column_name FROM information_schema.columns WHERE table_name = 'store'"
    assert ("size",) not in execute(database.url, columns), "what a newer version dropped stays dropped"
    await opens(database)
    assert dict(execute(database.url, "SELECT key, value FROM questbook_meta"))["schema"] == "7", "it stays newer"
    set_meta(database, oldest_reader="2")
    for attempt in (database.migrate, database.check, lambda: opens(database)):
        with pytest.raises(
            HomeError, match=r"A newer Questbook .* version 7 of the tables; this program knows 1\. .*up"
        ):
            await attempt()
    page = questbook(tmp_path, "web", "--port", "0", "--no-browser", "--database", database.url)
    assert (page.returncode, page.stdout, page.stderr.count("\n")) == (2, "", 1), (
        "one sentence, and no address before it"
    )


async def test_one_of_an_older_version_wants_to_be_migrated(database):
    set_meta(database, schema="0")
    with pytest.raises(HomeError, match="run `questbook migrate`"):
        await database.check()
    assert await database.migrate() == ["schema: 1"]
    await database.check()


async def test_who_migrates_says_for_whom_it_waits_and_gives_up(database, monkeypatch):
    monkeypatch.setattr(postgres_home, "_SAYS", 0.1)
    monkeypatch.setattr(postgres_home, "_LONGEST", 1.0)
    said = []
    with psycopg.connect(database.url, autocommit=True, application_name="the other one") as other:
        other.execute("SELECT pg_advisory_lock(hashtextextended('questbook migrate', 0))")
        with pytest.raises(HomeError, match="is being migrated by the other one, for 1 seconds now"):
            await database.migrate(say=said.append)
    assert [line.partition(" is ")[2] for line in said] == ["being migrated by the other one: waiting for its end."]
    assert await database.migrate() == []


async def test_a_table_that_another_has_locked_is_not_waited_for_without_end(database, monkeypatch):
    assert "lock_timeout = '30s'" in postgres_home._SETTINGS
    monkeypatch.setattr(postgres_home, "_SETTINGS", postgres_home._SETTINGS.replace("30s", "300ms"))
    with psycopg.connect(database.url) as other:
        other.execute("LOCK TABLE store IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(HomeError, match="lock timeout"):
            await database.has_begun()


async def test_another_embedder_is_refused_with_what_to_do(database):
    other = {"embed": HashEmbeddings(64), "dims": 64, "fields": ["text"]}
    with pytest.raises(EmbedderChangedError, match=r"hash-1:512.*hash-1:64.*auto.*questbook copy"):
        async with database.open_store(index=other):
            pass
    with pytest.raises(EmbedderChangedError, match=r"hash-1:512.*hash-1:64"):
        await database.migrate(HashEmbeddings(64))


async def test_the_options_of_a_url_hold_for_its_tables_and_for_what_is_kept_in_them():
    url = await asyncio.to_thread(new_database)
    execute(url, "CREATE SCHEMA games")
    home = home_at(f"{url}&options=-csearch_path%3Dgames%2Cpublic", "here")
    assert len(await home.migrate("hash")) == 3
    await opens(home)
    async with home.open_store() as store:
        await store.aput(("ann", "isle", "shelf"), "shelf", {"n": 1})
    assert await home.records("ann", "shelf", "shelf") == {("ann", "isle", "shelf"): {"n": 1}}
    assert tables_in(url) == [], "nothing is beside it"
    assert execute(url, "SELECT count(*) FROM games.store WHERE key = 'shelf'") == [(1,)]
    assert await home._rows("SELECT current_setting('jit') AS jit, current_setting('work_mem') AS memory") == [
        {"jit": "off", "memory": "32MB"}
    ]


async def test_no_option_is_sent_that_a_proxy_refuses(database, monkeypatch):
    sent, connect = [], psycopg.AsyncConnection.connect

    async def note(conninfo="", **options):
        sent.append(options)
        return await connect(conninfo, **options)

    monkeypatch.setattr(psycopg.AsyncConnection, "connect", note)
    await database.has_begun()
    assert len(sent) > 1
    assert not any("options" in options for options in sent)


@pytest.mark.parametrize("dims", [8, 512])
async def test_a_store_that_langgraph_made_for_other_vectors_is_refused_by_migrate(dims):
    url = await asyncio.to_thread(new_database)
    made = {"embed": HashEmbeddings(dims), "dims": dims, "fields": ["text"]}
    async with AsyncPostgresStore.from_conn_string(url, index=made) as store:
        await store.setup()
    index = "SELECT to_regclass('store_vectors_embedding_idx')::text"
    assert execute(url, index) == [("store_vectors_embedding_idx",)]
    home = home_at(url, "here")
    if dims == 512:
        assert len(await home.migrate("hash")) == 3
        await opens(home)
    else:
        for _ in range(2):
            with pytest.raises(
                HomeError, match=r"takes 8 dimensions, and hash-1:512 with 512 dimensions cannot use it\."
            ):
                await home.migrate("hash")
        with pytest.raises(HomeError, match="run `questbook migrate`"):
            await home.check()
    assert execute(url, index) == [(None,)], "no index on vectors"


async def test_all_campaigns_records_are_read_in_one_statement_without_the_rest_of_the_table(database, monkeypatch):
    for last, key in (("exchanges", "'k' || n"), ("shelf", "'shelf'")):
        rows = f"SELECT 'user' || n || '.isle.{last}', {key}, '{{}}' FROM generate_series(1, 3000) AS n"
        execute(database.url, f"INSERT INTO store (prefix, key, value) {rows}")
    asked, rows = [], database._rows

    async def note(statement, *values):
        asked.append((statement, values))
        return await rows(statement, *values)

    monkeypatch.setattr(database, "_rows", note)
    assert await shared_with(database, "bob") == []
    shares = """UPDATE store SET value = '{"guests": ["bob"]}' WHERE prefix = 'user7.isle.shelf'"""
    execute(database.url, shares)
    asked.clear()
    assert await shared_with(database, "bob") == [("user7", "isle")]
    [(statement, values)] = asked
    plan = str(await rows(f"EXPLAIN {statement}", *values))
    assert "store_shelf_idx" in plan
    assert "Seq Scan" not in plan


SECRET = "pa55wordx"


def url_with(url, user=f"nobody:{SECRET}", **more):
    address, _, options = url.partition("?")
    for name, value in more.items():
        options = re.sub(rf"{name}=[^&]*|$", f"&{name}={value}", options, count=1)
    return f"{re.sub('//[^@]*@', f'//{user}@', address)}?{options}"


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def _bad_urls():
    at = "postgresql://bob"
    return {
        "no server": (f"{at}:{SECRET}@127.0.0.1:{free_port()}/x", r"the database x at 127.0.0.1:\d+: .*refused"),
        "no such place": (f"{at}:{SECRET}@/x?host=/no/such/place", r"Cannot use the database x at /no/such/place"),
        "words": (f"host=/x dbname=a1 password={SECRET}", r"QUESTBOOK_DATABASE: got no URL, expected postgresql://USER@H"),
        "no place": ("postgresql:", "QUESTBOOK_DATABASE: got no URL, expected postgresql://USER@HOST/NAME"),
        "another database": (f"mysql://bob:{SECRET}@h/x", r"A database: got 'mysql', expected postgresql://USER@HOST/NAME"),
        "cut off": (f"{at}:{SECRET}@[::1/x", r"The database's URL cannot be read: .*Expected postgresql://USER@HOST/NAME"),
        "per cent": (f"{at}:%{SECRET}@h/x", "cannot be read: invalid percent-encoded token. "),
        "at": (f"{at}:a@{SECRET}@h/x", "cannot be read: one @ too many.*%40"),
        "slash": (f"{at}:12/{SECRET}@h/x", "cannot be read: one @ too many.*%2F"),
        "hash": (f"{at}:a/{SECRET}", "cannot be read: the port is no number"),
        "question": (f"{at}:5?{SECRET}", "cannot be read: .*%3F"),
        "option": (f"{at}:{SECRET}@h/x?nonsense=1", "cannot be read: invalid URI query parameter"),
        "port": (f"{at}:{SECRET}@127.0.0.1:70000/x", "Cannot use the database x at 127.0.0.1:70000: "),
    }  # fmt: skip


@pytest.mark.parametrize("name", sorted(_bad_urls()))
def test_a_url_that_leads_nowhere_is_answered_in_a_sentence_without_the_password(tmp_path, name):
    url, said = _bad_urls()[name]
    run = questbook(tmp_path, "play", "--user", "ann", words="I'm Mira.", QUESTBOOK_DATABASE=url)
    assert run.returncode == 2
    problems = [line for line in run.stderr.splitlines() if line]
    assert len(problems) == 1, problems
    assert re.search(said, problems[0])
    assert SECRET not in run.stdout + run.stderr


def test_a_wrong_password_or_user_is_said_without_it(database, tmp_path):
    for command in ("play", "migrate"):
        url = url_with(database.url)
        run = questbook(tmp_path, command, words="I'm Mira.", QUESTBOOK_DATABASE=url)
        assert run.returncode == 2
        assert re.fullmatch(r'.*Cannot use the database test\w+ at \S+: .*role "nobody" does not exist.*\n', run.stderr)
        assert SECRET not in run.stdout + run.stderr


async def test_a_user_who_may_not_is_told_so(database):
    execute(
        database.url,
        f"DO $$ BEGIN CREATE ROLE guest LOGIN PASSWORD '{SECRET}'; EXCEPTION WHEN duplicate_object THEN END $$",
    )
    guest = home_at(url_with(database.url, f"guest:{SECRET}"), "here")
    for attempt in (guest.migrate, guest.check, lambda: opens(guest)):
        with pytest.raises(
            HomeError, match=r"Cannot use the database test\w+ at \S+: permission denied for"
        ) as refused:
            await attempt()
        assert SECRET not in str(refused.value)
    url = await asyncio.to_thread(new_database)
    new = home_at(url_with(url, f"guest:{SECRET}"), "here")
    with pytest.raises(HomeError, match="permission denied for schema public"):
        await new.migrate("hash")
    assert tables_in(url) == []


@slow
async def test_a_server_without_pgvector_is_named(monkeypatch):
    url = await asyncio.to_thread(new_database)
    home = home_at(url, "here")
    execute_one = psycopg.AsyncCursor.execute

    async def execute(self, query, *values, **named):
        query = query.replace("EXTENSION vector;", "EXTENSION no_vector;") if isinstance(query, str) else query
        return await execute_one(self, query, *values, **named)

    monkeypatch.setattr(psycopg.AsyncCursor, "execute", execute)
    with pytest.raises(HomeError, match=r'Cannot use the database .*extension "no_vector" is not available'):
        await home.migrate("hash")
    with pytest.raises(HomeError, match="run `questbook migrate`"):
        await home.check()
    monkeypatch.undo()
    assert len(await home.migrate("hash")) == 3, "what it began is gone on with"
    await opens(home)


@slow
def test_the_command_makes_a_database_and_says_it(tmp_path):
    url = new_database()
    first, again = (questbook(tmp_path, "migrate", "--database", url, "--embeddings", "hash") for _ in range(2))
    name = r"The database test\w+ at \S+ is ready\."
    assert re.fullmatch(
        name + r"\nembedder: hash-1:512 with 512 dimensions\noldest_reader: 1\nschema: 1\n", first.stdout
    )
    assert re.fullmatch(name + "\n", again.stdout)
    assert "QUESTBOOK_DATABASE" not in os.environ
    refused = questbook(tmp_path, "migrate")
    assert (refused.returncode, "--database postgresql://" in refused.stderr) == (2, True)


@pytest.mark.parametrize("place", ["", "postgresql:", "postgres:x", "dbname=b", f"password={SECRET} dbname=a"])
@pytest.mark.parametrize("flag", ["source", "target"])
async def test_a_copy_from_or_to_what_is_no_place_is_refused(tmp_path, monkeypatch, flag, place):
    monkeypatch.chdir(tmp_path)
    flags = argparse.Namespace(**({"source": migrated_database(), "target": str(tmp_path / "a=b")} | {flag: place}))
    name = {"source": "--from", "target": "--to"}[flag]
    with pytest.raises(SettingsError, match=rf"^{name}: expected a directory, or a .*postgresql://USER@HOST/NAME\.$"):
        await copy(Settings.of(), flags)
    assert [*tmp_path.iterdir()] == [], "nothing was made"


async def test_a_name_with_an_equals_sign_may_be_a_directory(tmp_path):
    await copy(Settings.of(), argparse.Namespace(source=migrated_database(), target=str(tmp_path / "a=b")))
    assert (tmp_path / "a=b").is_dir()


@pytest.mark.parametrize("words", ["memories {} list", "memories list {}", "lore {} list", "lore list {}", "play {}"])
def test_a_database_is_named_before_an_action_or_after_it(words):
    named = words.format("--database postgresql://h/d").split()
    assert parser().parse_args(named).database == "postgresql://h/d"
