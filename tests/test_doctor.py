"""A data directory whose databases do not belong together: it is said at the start, and mended where it can be."""

import asyncio
import json
import shutil
import sqlite3
import zipfile
from argparse import Namespace
from datetime import timedelta

import pytest
from held import hold_campaign
from postgres import execute, migrated_database
from program import start

from questbook import prune
from questbook.graphs.companion.context import CompanionContext, own_campaign
from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.dungeon_master.retract import retract
from questbook.graphs.local.doctor import mend, problem_of
from questbook.graphs.local.file_home import FileHome
from questbook.graphs.local.game import open_game
from questbook.graphs.local.homes import home_at
from questbook.graphs.local.saved_game import thread_id_of
from questbook.graphs.terminal.homes import doctor
from questbook.memory.store.database_file import list_keys

MIRA = "I'm Mira, a halfling thief who grew up on the docks and wants her sister back."
WORDS = (MIRA, "look around", "I promise Maren Holt to bring back the silver key", "talk to Maren")
CONTEXT = Context(model="offline", user="adventurer", seed=6, campaign="isle")
DATA = ("checkpoints.db", "memory.db")


async def play(home, *words, context=CONTEXT):
    async with open_game(context, home) as game:
        for said in words:
            async for _ in game.send(said):
                pass
        saved = await game.saved_game()
        return saved and saved.values


async def problem(home):
    async with open_game(CONTEXT, home) as game:
        return await problem_of(game)


def memories(home):
    """Everything in the store but what it was used for, and the claims of those who gave way to another."""
    with sqlite3.connect(home.memory) as database:
        rows = database.execute("SELECT path, key, value FROM items JOIN namespaces ON namespaces.id = namespace")
        return {
            (path, key): json.loads(value)
            for path, key, value in rows
            if not ("claims" in path or path.endswith(("accesses", "pasts")))
        }


def lose(home, name):
    for file in home.path.glob(f"{name}*"):
        file.unlink()


def damage_newest(home, campaign, turns_back=0):
    """Damage the values of a campaign's newest checkpoint, or of all until so many turns before."""
    thread = thread_id_of("adventurer", campaign)
    with sqlite3.connect(home.checkpoints) as database:
        rows = database.execute("SELECT checkpoint_id, metadata FROM checkpoints WHERE thread_id = ?", (thread,))
        by_age = sorted(name for name, _ in rows)
        wrong = by_age[-1:] if not turns_back else by_age[len(by_age) // 4 : len(by_age) // 2 + 1]
        for name in wrong:
            change = "UPDATE checkpoints SET checkpoint = ? WHERE checkpoint_id = ?"
            database.execute(change, (b"x\x9crubbish", name))


async def test_a_sound_home_says_nothing(home, capsys):
    assert await problem(home) == ""
    await play(home, *WORDS)
    assert await problem(home) == ""
    assert await doctor(CONTEXT, Namespace(mend=False))
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "Checkpoints and memories agree (1 campaign of adventurer)."
    assert [line for line in said[1:] if "MiniLM" not in line] == []


async def test_on_a_database_no_file_is_spoken_of(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("QUESTBOOK_DATABASE", url := await asyncio.to_thread(migrated_database))
    home = home_at(url, tmp_path)
    await play(home, *WORDS[:2])
    execute(url, "CREATE TABLE known AS SELECT * FROM store")
    told = []
    for lost in ("store", "checkpoints"):
        execute(url, f"DELETE FROM {lost}")
        assert not await doctor(CONTEXT, Namespace(mend=False))
        told.append(capsys.readouterr().out)
        execute(
            url, "INSERT INTO store (prefix, key, value) SELECT prefix, key, value FROM known ON CONFLICT DO NOTHING"
        )
    assert "Memory is missing or from another day" in told[0]
    assert "The checkpoints of this campaign are missing" in told[1]
    for said in told:
        assert ".db" not in said
        assert "file" not in said
        assert "Keep a copy of both before you mend" in said
        assert "start once with" not in said, "a database refuses another embedder"
        assert "then `questbook migrate` a new database with QUESTBOOK_EMBEDDINGS=minilm, then `questbook copy`" in said


@pytest.mark.slow
async def test_lost_memories_are_rebuilt_from_checkpoints(home, capsys, monkeypatch):
    await play(home, *WORDS)
    async with open_game(CONTEXT, home) as game:  # an abandoned future has memories too
        await (await game.history()).undo(2)
    await play(home, "I leave the town", "I go on")
    before = memories(home)
    assert len(before) > 6
    lose(home, "memory.db")
    assert not await doctor(CONTEXT, Namespace(mend=False))
    told = capsys.readouterr().out
    assert told.startswith(f"{home.memory} is missing.\n")
    assert "--mend" in told
    assert "it knows no turn of the 4 of this campaign" in await problem(home)
    listed = []
    monkeypatch.setattr("questbook.memory.store.database_file.list_keys", lambda *a: listed.append(a) or list_keys(*a))
    assert await doctor(CONTEXT, Namespace(mend=True))
    assert len(listed) == 16, "memory is read four times in all, not for each turn"
    told = capsys.readouterr().out
    assert "Turns written to memory again: 6" in told
    assert "lore" in told
    after = memories(home)
    assert after == before
    assert await problem(home) == ""
    assert (await play(home, "And on"))["turn"] == 5


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kept", "known", "lost"),
    [(2, 4, "turns 3 to 4"), (0, 3, "turns 1 to 3")],
    ids=["of another day", "lost before the last turn"],
)
async def test_memories_that_lack_turns_are_completed(home, capsys, kept, known, lost):
    await play(home, *WORDS[:kept])
    old = home.path / "old"
    old.write_bytes(home.memory.read_bytes() if kept else b"")
    await play(home, *WORDS[kept:known])
    before = {place: value for place, value in memories(home).items() if known == 4 or not place[0].endswith("head")}
    lose(home, "memory.db")
    if kept:
        shutil.move(old, home.memory)
    await play(home, *WORDS[known:])
    assert f"it does not know {lost} of the 4" in await problem(home)
    assert await doctor(CONTEXT, Namespace(mend=True))
    assert f"written to memory again: {known - kept}" in capsys.readouterr().out
    after = memories(home)
    assert {place: after.get(place) for place in before} == before
    assert await problem(home) == ""


@pytest.mark.slow
async def test_a_turn_that_was_undone_retried_pruned_retracted_or_deleted_by_hand_is_not_lost(home, capsys):
    await play(home, *WORDS)
    async with open_game(CONTEXT, home) as game:
        await (await game.history()).undo(2)
    await play(home, "I leave the town", "I go on")
    async with open_game(CONTEXT, home) as game:
        async for _ in game.retry():
            pass
        await prune(game.checkpointer, keep_turns=1, idle=timedelta(0))
    assert await doctor(CONTEXT, Namespace(mend=False))
    assert "agree" in capsys.readouterr().out
    async with open_game(CONTEXT, home) as game:
        graph = await game.load()
        await retract(graph, game.config, CONTEXT, 4)
        [exchange] = await graph.store.asearch((CONTEXT.user, "isle", "exchanges"), filter={"turn": 2})
        await graph.store.adelete(exchange.namespace, exchange.key)
    assert await problem(home) == ""


async def test_turns_of_another_thread_of_the_campaign_are_not_lost(home, capsys):
    await play(home, *WORDS[:2])
    async with open_game(CONTEXT, home) as game:
        graph, said = await game.load(), {"messages": [("user", "I leave")]}
        await graph.ainvoke(said, {"configurable": {"thread_id": "in Studio"}}, context=CONTEXT)
    assert await doctor(CONTEXT, Namespace(mend=False))
    assert "agree" in capsys.readouterr().out


@pytest.mark.slow
async def test_lost_checkpoints_are_said_and_the_campaign_goes_on_from_what_memory_knows(home, capsys):
    await play(home, *WORDS)
    lose(home, "checkpoints.db")
    assert "memory knows it to turn 4" in await problem(home)
    assert await doctor(CONTEXT, Namespace(mend=True))
    assert "checkpoints of this campaign are missing" in capsys.readouterr().out
    assert await problem(home) == ""
    values = await play(home, "look around")
    assert (values["turn"], values["character"]["name"]) == (5, "Mira")
    assert await problem(home) == ""


@pytest.mark.slow
async def test_checkpoints_of_another_day_are_said(home, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    await play(home, *WORDS[:2])
    shutil.copy(home.checkpoints, home.path / "old")
    await play(home, *WORDS[2:])
    lose(home, "checkpoints.db")
    shutil.move(home.path / "old", home.checkpoints)
    assert "they end with turn 2, and memory knows turns to 4" in await problem(home)
    assert not await doctor(CONTEXT, Namespace(mend=True))
    assert "written to memory again" not in capsys.readouterr().out, "there is nothing to mend"
    assert (await play(home, "I leave"))["turn"] == 3
    assert await problem(home) == ""
    assert not await doctor(CONTEXT, Namespace(mend=False))
    said = capsys.readouterr().out
    assert "turns that no checkpoint has (3 to 4)" in said
    assert "In a data directory, versions before 0.2.1 lost turns where two programs" in said
    assert start(home.path, "export", "isle.zip", "--campaign", "isle").returncode == 0
    with zipfile.ZipFile("isle.zip") as archive:
        assert WORDS[2] in archive.read("records.jsonl").decode(), "what was said can still be read"


@pytest.mark.parametrize("name", DATA)
async def test_damage_is_said_before_anything_is_compared_or_mended(home, name, capsys):
    await play(home, *WORDS[:2])
    file = home.path / name
    pages = bytearray(file.read_bytes())
    pages[4096 * 3 : 4096 * 5] = bytes(range(256)) * 32
    file.write_bytes(pages)
    assert not await doctor(CONTEXT, Namespace(mend=True))
    said = capsys.readouterr().out
    assert f"{file} is damaged: " in said
    assert "sqlite3 FILE .recover" in said
    assert file.read_bytes() == pages


async def test_where_both_files_are_gone_it_says_so_and_makes_none(home, capsys):
    home.path.mkdir(exist_ok=True)
    assert not await doctor(CONTEXT, Namespace(mend=True))
    assert capsys.readouterr().out == f"{home.checkpoints} is missing.\n{home.memory} is missing.\n"
    assert not home.checkpoints.exists(), "restore puts a copy there"


async def test_a_campaign_that_is_open_or_unreadable_keeps_it_from_no_other_one(home, capsys):
    for name in ("a", "b", "c"):
        await play(home, *WORDS[:2], context=CONTEXT.model_copy(update={"campaign": name}))
    damage_newest(home, "a")
    lose(home, "memory.db")
    with hold_campaign(home, "adventurer", "b"):
        assert not await doctor(CONTEXT, Namespace(mend=True))
    said = capsys.readouterr().out
    assert "Campaign 'b': Campaign 'b' is open in another terminal" in said
    assert "Campaign 'c': Turns written to memory again" in said


async def test_a_checkpoint_that_cannot_be_read_is_said_in_a_sentence_and_its_campaign_can_be_forgotten(home, capsys):
    await play(home, *WORDS)
    damage_newest(home, "isle", turns_back=2)
    start(home.path, "play", "--campaign", "isle", words="/undo 2\n/quest\n")
    run = start(home.path, "play", "--campaign", "isle", words="/undo 2\n/go 2\n/sheet\n")
    told = (run.stdout + run.stderr).decode()
    assert (run.returncode, told.count("cannot be read: "), "Traceback" in told) == (0, 2, False)
    assert "Mira" in told, "the game goes on"
    damage_newest(home, "isle")
    run = start(home.path, "forget", "--campaign", "isle", "--yes")
    assert (run.returncode, b"Forgotten: " in run.stdout) == (0, True)
    with sqlite3.connect(home.checkpoints) as database:
        assert database.execute("SELECT count(*) FROM checkpoints").fetchone() == (0,)


@pytest.mark.slow
def test_the_program_says_it_at_the_start_and_the_doctor_mends_it(tmp_path):
    words = "\n".join(WORDS[:3]) + "\n"
    assert start(tmp_path, "play", "--seed", "6", words=words).returncode == 0
    assert start(tmp_path, "chat", words="My name is Ann and I like tea.\n").returncode == 0
    lose(FileHome(tmp_path), "memory.db")
    run = start(tmp_path, "play", "--seed", "6", words="/quit\n")
    assert "Memory is missing or from another day" in (run.stdout + run.stderr).decode()
    run = start(tmp_path, "doctor", words="")
    assert (run.returncode, run.stdout.decode().count("--mend")) == (2, 2)
    run = start(tmp_path, "doctor", "--mend", words="")
    assert run.returncode == 0, run.stdout + run.stderr
    run = start(tmp_path, "doctor", words="")
    assert "agree (2 campaigns" in run.stdout.decode()


async def forget_turn_2(store):
    """Delete what memory has of turn 2, on all lines; return the keys of all exchanges that there were."""
    exchanges, claims = [
        await store.asearch((CONTEXT.user, "isle", kind), limit=50) for kind in ("exchanges", "claims")
    ]
    for item in exchanges + claims:
        if item.value.get("turn") == 2 or item.key.startswith("2-"):
            await store.adelete(item.namespace, item.key)
    return {item.key for item in exchanges}


@pytest.mark.slow
async def test_a_head_that_is_lost_alone_comes_back_and_nothing_is_written_twice(home):
    await play(home, *WORDS[:2])
    async with open_game(CONTEXT, home) as game:
        store, place = (await game.load()).store, (CONTEXT.user, "isle", "head")
        head = (await store.aget(place, "head")).value
        await store.adelete(place, "head")
        assert (await mend(game)).startswith("Turns written to memory again: 0. Not in checkpoints, so not rebuilt: ")
        assert (await store.aget(place, "head")).value == head
        stamp = (await store.aget(place, "head")).updated_at
        await mend(game)
        assert (await store.aget(place, "head")).updated_at == stamp, "what is there stays as it is"
        async for _ in game.retry():
            pass
        await game.finish()
        before = await forget_turn_2(store)
        await store.aput(place, "head", head | {"turn": 1}, index=False)
        assert "does not know turns 2 of the 2" in await problem_of(game)
        assert (await mend(game)).startswith("Turns written to memory again: 2. "), "of both lines"
        assert {item.key for item in await store.asearch((CONTEXT.user, "isle", "exchanges"))} == before
        assert (await store.aget(place, "head")).value["turn"] == 2
        await (await game.history()).undo()
        assert await forget_turn_2(store) == before
        assert (await mend(game)).startswith("Turns written to memory again: 2. ")
        assert (await store.aget(place, "head")).value["turn"] == 1, "the head is where the campaign is"
        assert await problem_of(game) == ""


@pytest.mark.slow
async def test_turns_whose_states_were_pruned_are_said_to_be_lost(home, capsys):
    await play(home, *WORDS)
    async with open_game(CONTEXT, home) as game:
        await prune(game.checkpointer, keep_turns=1, idle=timedelta(0))
    lose(home, "memory.db")
    assert not await doctor(CONTEXT, Namespace(mend=True))
    said = capsys.readouterr().out
    assert "Lost are turns 1 to 3: no checkpoint has them as they were before they were remembered." in said
    assert "versions before 0.2.1 lost turns" in said
    async with open_game(CONTEXT, home) as game:
        store = (await game.load()).store
        [exchange] = await store.asearch((CONTEXT.user, "isle", "exchanges"))
        await store.aput(exchange.namespace, exchange.key.replace("-4-", "-2-"), exchange.value | {"turn": 2})
    assert "it does not know turns 1, 3 of the 4 of this campaign." in await problem(home)


@pytest.mark.parametrize(("thread", "turn"), [("another", 9), (None, 2)])
async def test_a_head_of_another_thread_or_of_this_turn_says_nothing_of_lost_checkpoints(home, thread, turn):
    await play(home, *WORDS[:2])
    async with open_game(CONTEXT, home) as game:
        store, place = (await game.load()).store, (CONTEXT.user, "isle", "head")
        head = (await store.aget(place, "head")).value
        await store.aput(place, "head", head | {"thread": thread or game.thread_id, "turn": turn}, index=False)
    assert await problem(home) == ""


async def test_companions_are_examined_too_and_other_users_are_not(home, capsys):
    await play(home, *WORDS[:1])
    talk = CompanionContext(model="offline", user="adventurer", campaign=own_campaign("Ada"), seed=1)
    async with open_game(talk, home, "companion") as game:
        async for _ in game.send("My cat is called Soot."):
            pass
        await (await game.load()).store.aput(
            ("adventurer", "deep", "below", "head"), "head", {"quest": {}}, index=False
        )
    await play(home, *WORDS[:1], context=CONTEXT.model_copy(update={"user": "bob"}))
    assert await doctor(CONTEXT, Namespace(mend=False))
    assert capsys.readouterr().out.startswith("Checkpoints and memories agree (2 campaigns of adventurer).")
    lose(home, "checkpoints.db")
    assert not await doctor(CONTEXT, Namespace(mend=False)), "memory knows whose they are"
    said = capsys.readouterr().out
    assert f"{home.checkpoints} is missing." in said
    assert [f"Campaign '{name}': The checkpoints" in said for name in ("isle", "companion:Ada")] == [True, True]
    with hold_campaign(home, "adventurer", "isle"):
        assert not await doctor(CONTEXT, Namespace(mend=True))
    said = capsys.readouterr().out
    assert "Campaign 'isle': Campaign 'isle' is open in another terminal" in said
    assert "Campaign 'companion:Ada': It goes on from what memory knows." in said
