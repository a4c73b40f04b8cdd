"""The checkpointer on PostgreSQL: a message is written once, none is lost, and ids only grow."""

import asyncio
import copy
import math
import random
import uuid
from typing import Any, TypedDict

import pytest
from conftest import MIRA
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command
from postgres import execute, migrated_database
from scripted import call, say
from statements import Statements
from stored_bytes import opened
from test_local_checkpointer import AT, LONG, app_on, go_on_while_it_is_deleted

from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.errors import InputError, UnreadableError
from questbook.graphs.local.game import open_game
from questbook.graphs.local.home import HomeError
from questbook.graphs.local.homes import home_at
from questbook.graphs.local.saved_game import read_saved_game

slow = pytestmark = pytest.mark.slow  # they need a PostgreSQL
TABLES = ("checkpoints", "checkpoint_blobs", "checkpoint_writes")


@pytest.fixture
def home():
    return home_at(migrated_database(), "here")


@pytest.fixture
async def saver(home):
    async with home.open_checkpointer() as saver:
        yield saver


def counts(home):
    return [execute(home.url, f"SELECT count(*) FROM {table}")[0][0] for table in TABLES]


def talk_on(saver):
    def answer(state):
        return {"messages": [AIMessage(f"re {state['messages'][-1].text}")]}

    return StateGraph(MessagesState).add_node(answer).add_edge(START, "answer").compile(checkpointer=saver)


async def talk(app, *words, config=AT):
    for said in words:
        await app.ainvoke({"messages": [HumanMessage(said)]}, config, durability="sync")
    return [message.text for message in (await app.aget_state(AT)).values["messages"]]


def parts(home):
    return [
        bytes(blob)
        for (blob,) in execute(home.url, "SELECT blob FROM checkpoint_blobs WHERE channel = 'messages/part'")
    ]


def stored(home, words):
    """How many values hold words."""
    rows = execute(home.url, "SELECT type, blob FROM checkpoint_blobs WHERE blob IS NOT NULL")
    return sum(words.encode() in opened(kind, bytes(blob)) for kind, blob in rows)


async def test_a_message_is_written_once_and_forks_share_it(home, saver):
    app = talk_on(saver)
    assert await talk(app, "one", "two", "three") == ["one", "re one", "two", "re two", "three", "re three"]
    assert stored(home, "re two") == 1
    states = [state async for state in app.aget_state_history(AT)]
    back = next(state for state in states if len(state.values["messages"]) == 2)
    assert await talk(app, "else", config=back.config) == ["one", "re one", "else", "re else"]
    assert (stored(home, "re one"), len(parts(home))) == (1, 8)
    async with home.open_checkpointer() as other:  # which knows nothing of what was written
        assert await talk(talk_on(other), "and") == ["one", "re one", "else", "re else", "and", "re and"]
    assert len(parts(home)) == 10
    for state in states:
        assert await app.aget_state(state.config) == state


async def test_messages_that_come_twice_and_lists_that_are_emptied_come_back(saver):
    async def twice(state):
        return {"messages": state["messages"] * 2}

    async def none(state):
        return {"messages": []}

    class State(TypedDict):
        messages: list[Any]

    builder = StateGraph(State).add_sequence([twice, none]).add_edge(START, "twice")
    app = builder.compile(checkpointer=saver)
    same = HumanMessage("a", id="1")
    await app.ainvoke({"messages": [same, "a text", {"role": "user"}]}, AT)
    lists = [state.values.get("messages") async for state in app.aget_state_history(AT)]
    assert lists == [[], [same, "a text", {"role": "user"}] * 2, [same, "a text", {"role": "user"}], None]
    await app.ainvoke({"messages": [same]}, AT)
    assert (await app.aget_state(AT)).values["messages"] == []


async def test_a_message_that_is_edited_or_removed_stays_as_it_was_in_earlier_checkpoints(home, saver):
    app = talk_on(saver)
    await talk(app, "one", "two")
    before = await app.aget_state(AT)
    first, *_ = before.values["messages"]
    await app.aupdate_state(AT, {"messages": [HumanMessage("edited", id=first.id)]})
    assert [one.text for one in (await app.aget_state(AT)).values["messages"]] == ["edited", "re one", "two", "re two"]
    await app.aupdate_state(AT, {"messages": [RemoveMessage(id=first.id)]})
    assert [one.text for one in (await app.aget_state(AT)).values["messages"]] == ["re one", "two", "re two"]
    assert await app.aget_state(before.config) == before
    assert len(parts(home)) == 5


ODD: dict[str, Any] = {
    "none": None, "text": "a", "empty": "", "nul": "a\0b", "number": 2**60, "float": 0.1,
    "nan": math.nan, "infinity": math.inf, "true": True, "tuple": (1, (2, "a")),
    "dict": {"a": {"b": [1, None, {"c": "\0"}]}}, "list": [], "bytes": b"\0\xff", "set": {1, 2},
    "long": LONG, "half": "\ud800",
}  # fmt: skip


class Anything(TypedDict, total=False):
    value: Any
    other: Any


def anything_on(saver):
    def keep(state):
        return {"other": 1}

    return StateGraph(Anything).add_node(keep).add_edge(START, "keep").compile(checkpointer=saver)


@pytest.mark.slow
async def test_channels_of_other_types_come_back_equal(home, saver):
    app, serde = anything_on(saver), JsonPlusSerializer()  # which makes a list of a tuple, on SQLite as well
    for name, value in ODD.items():
        for before in (None, "a", {"a": 1}):  # what is short is in the checkpoint itself
            at = {"configurable": {"thread_id": f"{name} {before}"}}
            await app.ainvoke({"value": before}, at)
            try:
                await app.ainvoke({"value": value}, at)
            except (UnicodeEncodeError, HomeError, TypeError, ValueError) as error:
                assert name == "half", (name, before, error)  # noqa: PT017
                continue
            async with home.open_checkpointer() as other:
                read = (await anything_on(other).aget_state(at)).values["value"]
            assert repr(read) == repr(
                value if isinstance(value, float) else serde.loads_typed(serde.dumps_typed(value))
            )
            await app.ainvoke({"value": before}, at)
            assert (await app.aget_state(at)).values["value"] == before


async def test_a_part_that_is_missing_is_said(home, saver):
    await talk(talk_on(saver), "one")
    execute(
        home.url,
        "DELETE FROM checkpoint_blobs WHERE version = (SELECT min(version) FROM checkpoint_blobs WHERE channel = %s)",
        "messages/part",
    )
    with pytest.raises(ValueError, match=r"Messages of the checkpoint are missing in checkpoint_blobs"):
        await saver.aget_tuple(AT)
    with pytest.raises(UnreadableError, match="cannot be read: Messages of the checkpoint are missing"):
        await read_saved_game(saver, "t")
    execute(home.url, "UPDATE checkpoint_blobs SET blob = 'rubbish' WHERE channel = 'messages/part'")
    with pytest.raises((ValueError, UnreadableError)):
        await saver.aget_tuple(AT)


async def test_what_langgraphs_own_saver_wrote_is_played_on_and_it_refuses_ours(home, saver):
    async with AsyncPostgresSaver.from_conn_string(home.url) as old:
        await talk(talk_on(old), "one", "two")
        history = [state async for state in talk_on(old).aget_state_history(AT)]
    app = talk_on(saver)
    assert [state async for state in app.aget_state_history(AT)] == history
    assert await talk(app, "three") == ["one", "re one", "two", "re two", "three", "re three"]
    async with AsyncPostgresSaver.from_conn_string(home.url) as old:
        with pytest.raises((NotImplementedError, ValueError), match="listed"):
            await old.aget_tuple(AT)


async def test_ids_only_grow(saver, monkeypatch):
    app = talk_on(saver)
    await talk(app, "one")
    saved = await saver.aget_tuple(AT)
    later = {**saved.checkpoint, "id": f"2{saved.checkpoint['id'][1:]}"}  # of a clock that went ahead
    await saver.aput(AT, later, {"source": "loop", "step": 9}, {})
    await talk(app, "two")
    ids = [one.checkpoint["id"] async for one in saver.alist(AT)]
    assert ids == sorted(ids, reverse=True)
    assert ids[0] > later["id"]
    earlier = {"configurable": {**AT["configurable"], "checkpoint_id": saved.checkpoint["id"]}}
    await talk(app, "three", config=earlier)
    assert (await app.aget_state(AT)).values["messages"][-1].text == "re three"


async def test_what_one_run_wrote_goes_and_the_thread_stands_where_it_stood(home, saver):
    app = app_on(saver)

    async def run(name):
        return await app.ainvoke({"lines": [name]}, {**AT, "metadata": {"run_id": name}})

    await run("one")
    state, before = await app.aget_state(AT), counts(home)
    await run("two")
    await saver.adelete_for_runs(["two", "x' OR 1=1", uuid.uuid4()])
    after = counts(home)
    assert ((after[0], after[2]), await app.aget_state(AT)) == ((before[0], before[2]), state)
    assert (await run("three"))["lines"] == [*state.values["lines"], "three", f"{LONG}3"]


@pytest.mark.parametrize(("caller", "is_left"), [("bob", True), ("", True), ("ann", False), (None, False)])
async def test_who_logged_in_deletes_no_run_of_a_thread_that_another_began(home, saver, caller, is_left):
    app = app_on(saver)
    saver.log_in = lambda: "ann"
    await app.ainvoke({"lines": ["one"]}, {**AT, "metadata": {"run_id": "one"}})
    saver.log_in = lambda: caller
    await saver.adelete_for_runs(["one"])
    assert [count > 0 for count in (counts(home)[0], counts(home)[2])] == [is_left] * 2


async def test_a_run_from_an_earlier_checkpoint_that_has_ended_is_not_played_again_and_one_that_was_cut_off_is(
    home, saver
):
    app = app_on(saver)

    async def run(name, **place):
        config = {"configurable": {**AT["configurable"], **place}, "metadata": {"run_id": name}}
        return await app.ainvoke({"lines": [name]}, config)

    await run("one")
    earlier = {"checkpoint_id": (await app.aget_state(AT)).config["configurable"]["checkpoint_id"]}
    await run("two")
    fork = await run("three", **earlier)
    await run("four")
    head = await app.aget_state(AT)
    with pytest.raises(InputError, match="Run three has ended"):
        await run("three", **earlier)
    assert await app.aget_state(AT) == head
    execute(home.url, "DELETE FROM checkpoints WHERE metadata->>'run_id' = 'three' AND metadata->>'source' <> 'input'")
    assert (await run("three", **earlier))["lines"] == fork["lines"]


async def test_a_task_s_writes_stay_as_they_were_first_and_its_questions_and_errors_are_replaced(saver):
    here = await saver.aput(AT, empty_checkpoint(), {}, {})
    for writes in (
        [("lines", "a"), ("page", "b")], [("__interrupt__", "c")], [("lines", "d"), ("page", "e")],
        [("__interrupt__", "f")], [("__error__", "g")], [("page", "h"), ("__interrupt__", "i")],
    ):  # fmt: skip
        await saver.aput_writes(here, writes, "task")
    pending = [(channel, value) for _, channel, value in (await saver.aget_tuple(here)).pending_writes]
    assert sorted(pending) == [("__error__", "g"), ("__interrupt__", "f"), ("lines", "a"), ("page", "b")]


def later(checkpoint):
    return empty_checkpoint() | {"id": f"2{checkpoint['id'][1:]}"}


async def test_a_checkpoint_takes_along_what_the_step_before_it_wrote(home):
    statements = Statements(home.url)
    async with home.open_checkpointer() as saver:
        here = await saver.aput(AT, first := empty_checkpoint(), {}, {})
        statements.take()
        writes = [saver.aput_writes(here, [("lines", name)], name) for name in "ab"]
        await asyncio.gather(*writes, saver.aput(here, later(first), {}, {}))
        assert len(statements.take()) == 1, "both are saved, or neither"
        assert (await saver.aget_tuple(here)).pending_writes == [("a", "lines", "a"), ("b", "lines", "b")]
        await saver.aput_writes(here, [("lines", "c")], "c")
        assert len((await saver.aget_tuple(here)).pending_writes) == 3, "without a checkpoint after it"


async def test_what_a_step_wrote_is_saved_though_the_checkpoint_after_it_is_refused(saver):
    here = await saver.aput(AT, first := empty_checkpoint(), {}, {})
    refused = later(first) | {"channel_versions": {"a\0b": "1"}}
    write = saver.aput_writes(here, [("lines", "a")], "task")
    done = await asyncio.gather(write, saver.aput(here, refused, {}, {}), return_exceptions=True)
    assert [type(one) for one in done] == [type(None), HomeError]
    saved = await saver.aget_tuple(AT)
    assert (saved.checkpoint["id"], saved.pending_writes) == (first["id"], [("task", "lines", "a")])


async def test_of_writes_of_one_task_at_once_the_first_counts_and_one_that_is_cancelled_hinders_none(saver):
    here = await saver.aput(AT, first := empty_checkpoint(), {}, {})
    cancelled = asyncio.create_task(saver.aput_writes(here, [("lines", "no")], "task"))
    await asyncio.sleep(0)
    cancelled.cancel()
    writes = [saver.aput_writes(here, [("lines", name)], "task") for name in "abc"]
    async with asyncio.timeout(30):
        await asyncio.gather(*writes, saver.aput(here, later(first), {}, {}))
    assert (await saver.aget_tuple(here)).pending_writes == [("task", "lines", "a")]


async def test_a_question_waits_and_is_answered_in_another_process_s_saver(home, saver):
    await app_on(saver).ainvoke({"lines": ["ask"]}, AT)
    async with home.open_checkpointer() as other:
        done = await app_on(other).ainvoke(Command(resume="yes"), AT)
    assert done["lines"][-1] == "yes"
    assert (await app_on(saver).aget_state(AT)).values == done


async def test_of_many_checkpoints_so_many_are_listed_as_one_asks_for_the_newest_first(saver):
    ids = [f"{number:03}" for number in range(70)]
    for number in ids:
        await saver.aput(AT, empty_checkpoint() | {"id": number}, {"step": int(number) % 2}, {})

    async def listed(**named):
        return [saved.config["configurable"]["checkpoint_id"] async for saved in saver.alist(AT, **named)]

    assert await listed() == ids[::-1]
    for limit in (0, 1, 63, 64, 65):
        assert await listed(limit=limit) == ids[::-1][:limit]
    before = {"configurable": {"thread_id": "t", "checkpoint_id": "050"}}
    assert await listed(before=before, limit=40) == ids[49:9:-1]
    assert await listed(filter={"step": 1}) == ids[::-1][::2]
    async for _ in saver.alist(AT):  # who reads may ask meanwhile, and leave
        assert await asyncio.wait_for(saver.aget_tuple(AT), 30)
        break
    saver.log_in = lambda: "ann"
    assert len([saved async for saved in saver.alist(None)]) == 70


async def test_langgraphs_server_can_prune_threads_and_no_message_is_lost(home, saver):
    app = talk_on(saver)
    await talk(app, "one", "two", "three")
    state, [before, *_] = await app.aget_state(AT), counts(home)
    with pytest.raises(ValueError, match="'keep_latest' or 'delete'"):
        await saver.aprune(["t"], strategy="keep_last")
    await saver.aprune(["t"])
    assert counts(home)[0] < before
    assert (await app.aget_state(AT)).values == state.values
    assert await talk(app, "four") == ["one", "re one", "two", "re two", "three", "re three", "four", "re four"]
    await saver.aprune(["t"], strategy="delete")
    assert counts(home) == [0, 0, 0]


async def test_what_was_deleted_is_written_again_whole(home, saver):
    app = talk_on(saver)
    await talk(app, "one", "two")
    saved = await saver.aget_tuple(AT)
    await saver.adelete_thread("t")
    assert counts(home) == [0, 0, 0]
    versions = saved.checkpoint["channel_versions"]
    await saver.aput(saved.config, {**saved.checkpoint, "id": f"2{saved.checkpoint['id'][1:]}"}, {"step": 9}, versions)
    assert [message.text for message in (await saver.aget(AT))["channel_values"]["messages"]][-1] == "re two"


async def test_a_run_brings_nothing_back_of_a_thread_that_is_deleted_meanwhile(home, saver):
    app = await go_on_while_it_is_deleted(saver)
    assert counts(home) == [0, 0, 0]
    assert (await app.ainvoke({"lines": ["anew"]}, AT))["lines"][0] == "anew"


async def test_threads_are_listed_by_user_the_last_written_first_and_hidden_ones_are_shown(home, saver):
    for number, (thread, user) in enumerate(
        (("a", "ann"), ("b", "bob"), ("c", "ann"), ("d", ""), ("a", "ann"), ("e%", "ann"))
    ):
        notes = {"user": user} if user else {}
        await saver.aput(
            {"configurable": {"thread_id": thread, "checkpoint_ns": ""}},
            empty_checkpoint() | {"id": f"{number}"},
            notes,
            {},
        )
    assert [thread for thread, _ in await saver.newest_of_threads()] == ["e%", "a", "d", "c", "b"]
    assert [thread for thread, _ in await saver.newest_of_threads("ann")] == ["e%", "a", "d", "c"]
    assert [thread for thread, _ in await saver.newest_of_threads("nobody")] == ["d"]
    assert ((await saver.first("a"))[0], await saver.first("x")) == ("0", None)


async def test_hidden_threads_are_shown_all_or_none(saver):
    at = {
        name: {"configurable": {"thread_id": name, "checkpoint_ns": ""}}
        for name in ("hidden", "own", "another", "free")
    }
    versions = {"a": "1", "messages": "1"}
    values = {"channel_values": {"a": LONG, "messages": [HumanMessage("x")]}, "channel_versions": versions}
    await saver.aput(at["hidden"], empty_checkpoint() | {"id": "7"} | values, {"hidden": {"user": "ann"}}, versions)
    await saver.aput(at["hidden"], empty_checkpoint() | {"id": "8"}, {"user": "eve"}, {})
    await saver.show_threads({"hidden": "own"})
    [shown] = [one async for one in saver.alist(at["own"])]
    assert (shown.checkpoint["id"], shown.metadata) == ("7", {"user": "ann"}), "what others planted there is gone"
    assert shown.checkpoint["channel_values"]["a"] == LONG
    assert shown.checkpoint["channel_values"]["messages"][0].text == "x"
    assert [one async for one in saver.alist(at["hidden"])] == []
    for name in ("hidden", "another"):
        await saver.aput(at[name], empty_checkpoint() | {"id": "7"}, {"hidden": {"user": "bob"}}, {})
    with pytest.raises(HomeError, match="duplicate key"):
        await saver.show_threads({"hidden": "free", "another": "own"})
    assert ((await saver.first("hidden"))[0], await saver.first("free")) == ("7", None)


async def test_synchronous_methods_work_from_other_threads(saver):
    app = talk_on(saver)
    await talk(app, "one")

    def read():
        app.invoke({"messages": [HumanMessage("two")]}, AT)
        return app.get_state(AT), list(app.get_state_history(AT))

    state, states = await asyncio.to_thread(read)
    assert states == [state async for state in app.aget_state_history(AT)]
    assert state == states[0]
    assert len(state.values["messages"]) == 4
    await asyncio.to_thread(saver.delete_thread, "t")
    assert await saver.aget_tuple(AT) is None


async def test_a_copy_that_langgraph_makes_of_the_saver_is_answered_beside_it(saver):
    copied = copy.copy(saver)  # as `with_allowlist` does
    assert await asyncio.gather(*(one.aget_tuple(AT) for one in (saver, copied) * 20)) == [None] * 40
    await asyncio.gather(*(
        talk_on(one).ainvoke({"messages": [HumanMessage("a")]}, {"configurable": {"thread_id": f"{number}"}})
        for number, one in enumerate((saver, copied) * 8)
    ))  # fmt: skip
    assert len(await copied.newest_of_threads()) == 16


async def test_two_write_one_thread_at_once_and_both_are_whole(home, saver):
    async with home.open_checkpointer() as other:
        for _ in range(5):
            await asyncio.gather(
                *(talk_on(one).ainvoke({"messages": [HumanMessage("x")]}, AT) for one in (saver, other))
            )
        for one in (saver, other):
            states = [state async for state in talk_on(one).aget_state_history(AT)]
            assert len(states) == len({state.config["configurable"]["checkpoint_id"] for state in states}) == 30


def bytes_in(home):
    """Bytes of the rows of each table, as they are kept."""
    tables = (*TABLES, "store", "store_vectors")
    return {name: int(execute(home.url, f"SELECT sum(pg_column_size(t.*)) FROM {name} t")[0][0]) for name in tables}


@slow
async def test_a_turn_with_a_long_reply_takes_at_most_45_kilobytes(home, model):
    """Bytes of the rows of all five tables, a turn with a reply of 5,000 characters; `-s` prints them."""
    said = random.Random(5)
    words = [f"{said.getrandbits(40):x}"[: said.randint(2, 9)] for _ in range(8000)]
    often = [1 / rank for rank in range(1, 8001)]  # as in a language: half of what is said are a hundred words
    async with open_game(Context.of(None, model="scripted", user="ann", campaign="isle", seed=1), home) as game:
        model.queue("interview", say("", call("CharacterNotebook", **MIRA)))
        model.queue("update", say("", call("StateNotebook", scene="An inn at dusk.", location="The Bent Nail")))
        async for _ in game.send("I'm Mira."):
            pass
        sizes = []
        for turn in range(40):
            reply = " ".join(said.choices(words, often, k=1200))[:5000]
            model.queue("quest", say(reply))
            model.queue("condense", say(f"They walked on to mile {turn}."))
            async for _ in game.send(f"I walk on, mile {turn}."):
                pass
            await game.wait_for_upkeep(30)
            sizes.append(bytes_in(home))
        assert len((await game.saved_game()).last_reply) == 5000
    total = [sum(each.values()) for each in sizes]
    per_turn = [(total[end] - total[end - 10]) / 10_000 for end in (10, 20, 30, 39)]
    tables = {name: round((sizes[39][name] - sizes[29][name]) / 10_000, 1) for name in sizes[0]}
    print(f"\nkB a turn: {per_turn}; in the last ten turns, by table: {tables}")
    assert max(per_turn) <= 45
