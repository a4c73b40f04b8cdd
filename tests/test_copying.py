"""All games are copied from a home to another one, either way, once and not twice, and are the same there."""

import asyncio
import signal
from contextlib import aclosing, nullcontext
from dataclasses import replace

import pytest
from beside import start_beside
from langgraph.graph import START, StateGraph
from langgraph.store.base import PutOp
from langgraph.types import Command, interrupt
from postgres import execute, migrated_database
from program import questbook
from test_local_checkpointer import State

from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.dungeon_master.retract import retract
from questbook.graphs.forgetting.forget import forget
from questbook.graphs.local import copying
from questbook.graphs.local.copying import CopyError, copy_home
from questbook.graphs.local.game import open_game
from questbook.graphs.local.home import CampaignBusyError, hold_campaign
from questbook.graphs.local.homes import home_at
from questbook.graphs.local.saved_game import OWNER, thread_id_of

MIRA = "I'm Mira, a halfling thief who grew up on the docks and wants her sister back."
slow = pytest.mark.slow
WAYS = [pytest.param(("files", "postgres"), id="to a database"), pytest.param(("postgres", "files"), id="back")]


def new_home(kind, path):
    return home_at(str(path) if kind == "files" else migrated_database(), path)


@pytest.fixture(params=[WAYS[0], pytest.param(WAYS[1].values[0], id="back", marks=slow)])
def homes(request, tmp_path):
    return [new_home(kind, tmp_path / name) for kind, name in zip(request.param, ("one", "other"), strict=True)]


def opened(home, campaign="isle"):
    return open_game(Context(model="offline", user="ann", campaign=campaign, seed=6), home)


async def say(game, *words):
    for text in words:
        async for _ in game.send(text):
            pass
    await game.wait_for_upkeep(30)


async def copy(source, target):
    async with aclosing(copy_home(source, target)) as reports:
        [*_, last] = [report async for report in reports]
    return last


async def kept(home):
    """All that is kept: checkpoints with their values and writes by thread, and records."""
    async with home.open_checkpointer() as saver:
        threads = [thread for thread, _ in await saver.newest_of_threads()]
        checkpoints = {
            (thread, one.config["configurable"]["checkpoint_ns"], one.checkpoint["id"]): (
                one.checkpoint["channel_values"], one.checkpoint["channel_versions"], one.checkpoint["versions_seen"],
                one.metadata, one.parent_config, sorted(one.pending_writes, key=str),
            )
            for thread in threads
            async for one in saver.alist({"configurable": {"thread_id": thread}})
        }  # fmt: skip
    async with home.open_store() as store:
        records = {(item.namespace, item.key): item.value for item in await store.asearch((), limit=10_000)}
    return checkpoints, records


async def rows(home):
    """How many rows a database has, or None."""
    if not hasattr(home, "url"):
        return None
    tables = ("checkpoints", "checkpoint_blobs", "checkpoint_writes", "store", "store_vectors")
    return [execute(home.url, f"SELECT count(*) FROM {table}") for table in tables]


@slow
async def test_all_is_the_same_there_and_a_second_time_nothing_is_written(homes):
    one, other = homes
    async with opened(one) as game:
        await say(game, MIRA, "look around", "I sneak past Maren Holt")
        await (await game.history()).undo()
        await say(game, "I look at the boats.")
    async with opened(one, "reef") as game:
        await say(game, MIRA)
    first = await copy(one, other)
    before = await kept(one)
    assert await kept(other) == before
    assert (first.threads, first.of_threads, first.checkpoints) == (2, 2, len(before[0]))
    assert (first.records, first.written) == (len(before[1]), len(before[0]) + len(before[1]))
    counts = await rows(other)
    again = await copy(one, other)
    assert again == replace(first, written=0)
    assert await rows(other) == counts
    async with opened(other) as game:
        await (await game.history()).go("3")
        await say(game, "talk to Maren")
    async with opened(one) as game:
        await (await game.history()).go("3")
        await say(game, "talk to Maren")
        said = await game.saved_game()
    async with opened(other) as game:
        assert (await game.saved_game()).last_reply == said.last_reply
        assert (await game.saved_game()).quest == said.quest


@slow
async def test_what_was_played_on_here_is_brought_and_what_was_played_on_in_both_is_refused(homes):
    one, other = homes
    async with opened(one) as game:
        await say(game, MIRA)
    await copy(one, other)
    async with opened(one) as game:
        await say(game, "look around")
    assert (await copy(one, other)).written > 3
    assert await kept(other) == await kept(one)
    async with opened(other) as game:
        await say(game, "I look at the boats.")
    async with opened(one) as game:
        await say(game, "I sneak past Maren Holt")
    before = await kept(other)
    with pytest.raises(
        CopyError, match=rf"^Thread {thread_id_of('ann', 'isle')} was played on there.*Nothing of it was"
    ):
        await copy(one, other)
    assert await kept(other) == before


async def forget_words(home):
    async with home.open_checkpointer() as saver, home.open_store() as store:
        threads = [thread_id_of("ann", "isle")]
        await forget(store, "ann", "isle", words="Maren Holt", checkpointer=saver, threads=threads)


async def change(home, how):
    if how == "forget":
        return await forget_words(home)
    async with opened(home) as game:
        if how == "retract":
            await retract(await game.load(), game.config, game.context, 2)
        else:
            await (await game.history()).write(CHANGES[how])
    return None


CHANGES = {"wish": {"note": {"text": "slowly", "through": 5}}, "edit": {"character": {"name": "Oda"}}}


@slow
@pytest.mark.parametrize("how", ["wish", "edit", "retract", "forget"])
async def test_what_has_changed_here_is_brought_and_what_has_changed_there_is_refused(homes, how):
    one, other = homes
    async with opened(one) as game:
        await say(game, MIRA, "I sneak past Maren Holt", "look around")
    await copy(one, other)
    await change(one, how)
    assert await kept(one) != await kept(other)
    assert (await copy(one, other)).written
    assert await kept(other) == await kept(one)
    assert (await copy(one, other)).written == 0
    await change(other, "edit" if how == "retract" else how)
    if how == "forget":  # it is gone in both
        assert await kept(other) == await kept(one)
        return
    before = await kept(other)
    with pytest.raises(CopyError, match="was played on there or changed there"):
        await copy(one, other)
    assert await kept(other) == before


@slow
async def test_words_that_were_forgotten_there_alone_do_not_come_back(homes):
    one, other = homes
    async with opened(one) as game:
        await say(game, MIRA, "I sneak past Maren Holt")
    await copy(one, other)
    await forget_words(other)
    before = await kept(other)
    with pytest.raises(CopyError, match=r"was played on there or changed there, or pruned here.*copy again"):
        await copy(one, other)
    assert await kept(other) == before
    assert "Maren Holt" not in str(before)


@slow
async def test_what_a_task_wrote_there_alone_is_refused(homes):
    one, other = homes
    async with opened(one) as game:
        await say(game, MIRA)
    await copy(one, other)
    for home, channel in ((one, "here"), (other, "there")):
        async with home.open_checkpointer() as saver:
            last = await saver.aget_tuple({"configurable": {"thread_id": thread_id_of("ann", "isle")}})
            await saver.aput_writes(last.config, [("note", channel)], channel)
    with pytest.raises(CopyError, match="changed there"):
        await copy(one, other)


@slow
async def test_what_only_the_other_home_has_is_named(homes):
    one, other = homes
    for campaign in ("isle", "reef"):
        async with opened(one, campaign) as game:
            await say(game, MIRA)
    await copy(one, other)
    async with one.open_checkpointer() as saver, one.open_store() as store:
        await forget(store, "ann", "reef", checkpointer=saver, threads=[thread_id_of("ann", "reef")])
        fact = (await store.asearch(("ann", "isle", "exchanges"), limit=1))[0]
        await store.adelete(fact.namespace, fact.key)
    before = await kept(other)
    thread = thread_id_of("ann", "reef")
    with pytest.raises(
        CopyError, match=rf"^Only there, \d+ in all: thread {thread} of 'ann', record .*'ann/reef/.*forget it"
    ):
        await copy(one, other)
    assert await kept(other) == before
    async with other.open_checkpointer() as saver, other.open_store() as store:
        await forget(store, "ann", "reef", checkpointer=saver, threads=[thread])
        await store.aput(("bob", "player", "facts"), "k", {"text": "a heron"})
    last = await copy(one, other)
    assert (last.written, last.others) == (1, ["bob"]), "an earlier copy brought the exchange: it is removed"
    before = await kept(other)
    del before[1][("bob", "player", "facts"), "k"]
    assert before == await kept(one)


@slow
async def test_a_record_that_was_made_there_stays(homes):
    one, other = homes
    for key, home in (("k", one), ("l", other)):
        async with home.open_store() as store:
            await store.aput(("ann", "isle", "facts"), key, {"text": "a heron"})
        with pytest.raises(CopyError) if key == "l" else nullcontext():
            await copy(one, other)
    with pytest.raises(CopyError, match=r"1 in all: record 'l' in 'ann/isle/facts'. Nothing was copied"):
        await copy(one, other)
    async with other.open_store() as store:
        assert {item.key for item in await store.asearch(())} == {"k", "l"}
        await store.adelete(("ann", "isle", "facts"), "l")
        await store.aput(("ann", "isle", "facts"), "k", {"text": "a gull"})
    with pytest.raises(CopyError, match="Record 'k' in 'ann/isle/facts' is not the same there"):
        await copy(one, other)
    async with one.open_store() as store:
        await store.aput(("ann", "isle", "facts"), "k", {"text": "an owl"})
    assert (await copy(one, other)).written == 1


async def test_what_no_database_takes(tmp_path):
    one, other = (new_home(kind, tmp_path / kind) for kind in ("files", "postgres"))
    async with opened(one) as game:
        await say(game, MIRA)
    async with one.open_store() as store:
        await store.aput(("ann", "isle", "facts"), "k", {"text": "a\0 heron", "\ud800": 1})
        await store.aput(("ann", "isle", "facts"), "n", {"text": "a boat", "weights": [1.0, {"x": float("nan")}]})
    with pytest.raises(CopyError, match=r"^Record 'n' in 'ann/isle/facts'.*nan.* as 'weights'.*Nothing was copied"):
        await copy(one, other)
    assert await kept(other) == ({}, {})
    async with one.open_store() as store:
        await store.adelete(("ann", "isle", "facts"), "n")
    await copy(one, other)
    assert await other.read_item(("ann", "isle", "facts"), "k") == {"text": "a heron", "": 1}
    assert (await copy(one, other)).written == 0


@slow
async def test_progress_is_said_within_a_thread(homes):
    one, other = homes
    async with opened(one) as game:
        await say(game, MIRA)
    count = len((await kept(one))[0])
    async with aclosing(copy_home(one, other)) as reports:
        within = [(done.checkpoints, done.written) async for done in reports if done.threads == 0]
    assert {read for read, _ in within} == {written for _, written in within} == {*range(count + 1)}


async def test_a_record_that_says_something_else_is_named_and_stays(homes):
    one, other = homes
    for home, text in ((one, "a heron"), (other, "a gull")):
        async with home.open_store("hash") as store:
            await store.aput(("ann", "isle", "facts"), "k", {"text": text})
            await store.aput(("ann", "isle", "notes"), "n", {"text": "a boat"}, index=False)
    with pytest.raises(CopyError, match=r"^Record 'k' in 'ann/isle/facts' is not the same there as here"):
        await copy(one, other)
    assert await other.read_item(("ann", "isle", "facts"), "k") == {"text": "a gull"}


@pytest.mark.parametrize("how", ["removed", "added"])
async def test_records_that_are_removed_while_others_are_copied_are_told_of(homes, monkeypatch, how):
    one, other = homes
    monkeypatch.setattr(copying, "_BATCH", 3)
    async with one.open_store("hash") as store:
        for number in range(8):
            await store.aput(("ann", "isle", "notes"), f"k{number}", {"text": f"note {number}"})
    write, batches = copying._copy_records, []

    async def meanwhile(to, batch):
        written = await write(to, batch)
        batches.append(batch)
        if len(batches) == 1:
            async with one.open_store("hash") as store:
                for number in (0, 1):
                    key, value = (f"k{number}", None) if how == "removed" else (f"n{number}", {"text": "new"})
                    await store.abatch([PutOp(("ann", "isle", "notes"), key, value)])
        return written

    monkeypatch.setattr(copying, "_copy_records", meanwhile)
    if how == "added":
        await copy(one, other)
    else:
        with pytest.raises(CopyError, match=r"^Records were removed here meanwhile: copy again\.$"):
            await copy(one, other)
        assert len((await kept(other))[1]) == 6, "two of them are gone here, and two were passed over"
    await copy(one, other)
    assert await kept(other) == await kept(one)


@slow
async def test_a_campaign_that_is_played_is_refused_and_the_others_are_there(homes):
    one, other = homes
    for campaign in ("isle", "reef"):
        async with opened(one, campaign) as game:
            await say(game, MIRA)
    busy = rf"^Thread {thread_id_of('ann', 'isle')} is being played: end that"
    async with hold_campaign(one, "ann", "isle"):
        with pytest.raises(CampaignBusyError, match=busy):
            await copy(one, other)
    async with other.open_checkpointer() as saver:
        threads = await saver.newest_of_threads()
    assert [names["campaign"] for _, names in threads] == ["reef"], "the one that was played last comes first"
    assert (await copy(one, other)).threads == 2
    assert await kept(other) == await kept(one)


async def test_nobody_plays_there_what_is_being_written(homes):
    one, other = homes
    async with opened(one) as game:
        await say(game, MIRA)
    async with hold_campaign(other, "ann", "isle"):
        with pytest.raises(CampaignBusyError, match="is being played"):
            await copy(one, other)


async def test_owners_questions_forks_and_parts_of_graphs_come_along(homes):
    one, other = homes

    def build(saver):
        def ask(state):
            return {"lines": [str(interrupt("more?"))]}

        def end(state):
            return {"page": {"end": "x" * 300, "n": 3}}

        inner = StateGraph(State).add_sequence([ask, end]).add_edge(START, "ask").compile(checkpointer=True)
        return StateGraph(State).add_node("inner", inner).add_edge(START, "inner").compile(checkpointer=saver)

    at = {"configurable": {"thread_id": "t"}}
    async with one.open_checkpointer() as saver:
        saver.log_in = lambda: "ann"
        app = build(saver)
        await app.ainvoke({"lines": ["one"]}, at)
        first = await app.aget_state(at)
        await app.ainvoke(Command(resume="yes"), at)
        fork = await app.aupdate_state(first.config, {"lines": ["edited"]}, as_node="__start__")
        await app.ainvoke(None, fork)
        before = await app.aget_state(at, subgraphs=True)
    await copy(one, other)
    assert await kept(other) == await kept(one)
    async with other.open_checkpointer() as saver:
        app = build(saver)
        assert await app.aget_state(at, subgraphs=True) == before
        owners = [saved.metadata.get(OWNER) async for saved in saver.alist(at)]
        assert {*owners} == {"ann"}
        await app.ainvoke(Command(resume="no"), at)
        assert (await app.aget_state(at)).values["lines"][-1] == "no"
        back = await app.ainvoke(Command(resume="back"), first.config)
    async with one.open_checkpointer() as saver:
        await build(saver).ainvoke(Command(resume="no"), at)
        assert await build(saver).ainvoke(Command(resume="back"), first.config) == back


COPY = """
import asyncio, os, signal, sys
from pathlib import Path
from questbook.graphs.local.copying import copy_home
from questbook.graphs.local.checkpointer import Checkpointer
from questbook.graphs.local.homes import home_at
from questbook.graphs.local.postgres_checkpointer import PostgresCheckpointer
source, target, files, left = *sys.argv[1:4], int(sys.argv[4])
written = PostgresCheckpointer if "://" in target else Checkpointer
put = written.aput
async def aput(*given):
    global left
    left -= 1
    if left < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return await put(*given)
written.aput = aput
async def main():
    async for _ in copy_home(*(home_at(place, Path(files)) for place in (source, target))):
        pass
asyncio.run(main())
"""


@slow
async def test_a_copy_that_was_killed_goes_on(homes):
    one, other = homes
    async with opened(one) as game:
        await say(game, MIRA, "look around", "I look at the boats.")
    async with opened(one, "reef") as game:
        await say(game, MIRA)
    places = [getattr(home, "url", str(home.path)) for home in homes]
    for after in (4, 12, 0):
        program = start_beside("-c", COPY, *places, one.path, after, file="-u")
        _, errors = await asyncio.to_thread(program.communicate, timeout=100)
        assert program.returncode == -signal.SIGKILL, errors
    first = await copy(one, other)
    before = await kept(one)
    assert first.checkpoints == len(before[0])
    assert first.written == len(before[0]) + len(before[1]) - 16
    assert await kept(other) == before


@slow
def test_the_command_copies_and_says_how_much_and_refuses_the_same_place(tmp_path):
    home, url = tmp_path / "home", migrated_database()
    played = questbook(home, "play", "--seed", "6", words=f"{MIRA}\nlook around\n", QUESTBOOK_DATABASE="")
    assert played.returncode == 0
    runs = [questbook(home, "copy", "--from", str(home), "--to", url) for _ in range(2)]
    assert [run.returncode for run in runs] == [0, 0], runs[0].stderr
    assert "The same in both: 1 threads with " in runs[0].stdout
    assert "Written now: 0." in runs[1].stdout
    there = questbook(home, "play", words="/sheet\n/branches\n", QUESTBOOK_DATABASE=url)
    assert (there.returncode, "Mira" in there.stdout) == (0, True), there.stdout
    same = questbook(home, "copy", "--from", url, "--to", url)
    assert (same.returncode, "are the same place" in same.stderr) == (2, True)


def test_a_place_without_games_is_named_and_stays_as_it_is(tmp_path):
    (tmp_path / "empty").mkdir()
    for place in ("typo", "empty"):
        run = questbook(tmp_path / "home", "copy", "--from", str(tmp_path / place), "--to", str(tmp_path / "there"))
        assert (run.returncode, run.stderr.count("\n")) == (2, 1)
        assert f"--from: {tmp_path / place} has no games" in run.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["empty"]
    assert not [*(tmp_path / "empty").iterdir()]
