"""The checkpointer: each value is written once, compressed; none is lost and none kept too long."""

import asyncio
import copy
import operator
import uuid
from typing import Annotated, Any, TypedDict

import aiosqlite
import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.serde.base import CipherProtocol
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import START, StateGraph
from langgraph.types import interrupt
from stored_bytes import contents
from twin_saver import assert_each_value_is_listed

from questbook.graphs.errors import ForgettingError, InputError, UnreadableError
from questbook.graphs.forgetting.erasure import Erasure
from questbook.graphs.forgetting.phrase import Phrase
from questbook.graphs.local.checkpoint_tables import compressing_serializer, decompress
from questbook.graphs.local.databases import open_checkpointer
from questbook.graphs.local.saved_game import read_saved_game
from questbook.graphs.turn.run_guard import ThreadLostError
from questbook.memory.errors import StoreError

AT: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
LONG = "the road: " + " ".join(f"{mile * 2654435761 % 2**32:x}" for mile in range(40))
"""Long also when it is compressed."""


class State(TypedDict, total=False):
    lines: Annotated[list[str], operator.add]
    page: Annotated[dict[str, str], operator.or_]


def app_on(saver):
    def first(state: State) -> State:
        return {"lines": [f"{LONG}{len(state['lines'])}"]}

    def second(state: State) -> State:
        return {"page": {"text": LONG * 3}} if not state.get("page") else {}

    def third(state: State) -> State:
        return {"lines": [str(interrupt("more?"))]} if state["lines"][-2] == "ask" else {}

    builder = StateGraph(State).add_sequence([first, second, third]).add_edge(START, "first")
    return builder.compile(checkpointer=saver)


@pytest.fixture
async def saver(tmp_path):
    async with open_checkpointer(tmp_path / "checkpoints.db") as saver:
        yield saver


async def rows(saver, query):
    return [tuple(row) for row in await saver.conn.execute_fetchall(query)]


async def test_what_a_cancelled_caller_saves_is_saved_and_another_s_beside_it(saver):
    one, two = (asyncio.ensure_future(saver.aput(AT, empty_checkpoint(), {}, {})) for _ in range(2))
    while len(saver._waiting) < 2:
        await asyncio.sleep(0)
    one.cancel()
    saved = await asyncio.wait_for(two, 5)
    with pytest.raises(asyncio.CancelledError):
        await one
    assert len([found async for found in saver.alist(AT)]) == 2
    assert (await saver.aget_tuple(saved)) is not None


async def test_what_one_run_wrote_goes_and_the_thread_stands_where_it_stood(saver):
    app, tables = app_on(saver), ("checkpoints", "writes", "checkpoint_blobs")

    async def run(name):
        return await app.ainvoke({"lines": [name]}, {**AT, "metadata": {"run_id": name}})

    async def counts():
        return [await rows(saver, f"SELECT COUNT(*) FROM {table}") for table in tables]

    await run("one")
    state, before = await app.aget_state(AT), await counts()
    await run("two")
    assert await counts() > before
    await saver.adelete_for_runs(["two", "x' OR 1=1", uuid.uuid4()])
    assert (await counts(), await app.aget_state(AT)) == (before, state)
    await assert_each_value_is_listed(saver)
    assert (await run("three"))["lines"] == [*state.values["lines"], "three", f"{LONG}3"]


@pytest.mark.parametrize(("caller", "is_left"), [("bob", True), ("", True), ("ann", False), (None, False)])
async def test_who_logged_in_deletes_no_run_of_a_thread_that_another_began(saver, caller, is_left):
    """LangGraph's server in memory asks for it with the id of any run, if the thread in the URL is the caller's own."""
    app = app_on(saver)
    saver.log_in = lambda: "ann"
    await app.ainvoke({"lines": ["one"]}, {**AT, "metadata": {"run_id": "one"}})
    saver.log_in = lambda: caller
    await saver.adelete_for_runs(["one"])
    assert bool((await rows(saver, "SELECT COUNT(*) FROM checkpoints"))[0][0]) is is_left


async def test_a_run_from_an_earlier_checkpoint_that_has_ended_is_not_played_again_and_one_that_was_cut_off_is(saver):
    """LangGraph's queue runs such runs again after a kill -9, at the same checkpoint with the same run id."""
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
    beside = {"configurable": {"thread_id": "t", "checkpoint_ns": "sub"}, "metadata": {"run_id": "three"}}
    await saver.aput(beside, empty_checkpoint(), {"source": "loop"}, {})  # of a graph within the graph
    with pytest.raises(InputError, match="Run three has ended"):
        await run("three", **earlier)
    assert await app.aget_state(AT) == head
    text = "CAST(metadata AS TEXT)"
    end = f"DELETE FROM checkpoints WHERE {text} LIKE '%three%' AND {text} NOT LIKE '%\"input\"%'"
    await saver.conn.execute(end)  # as if it had been killed after its first step
    assert (await run("three", **earlier))["lines"] == fork["lines"]


async def test_a_value_is_written_when_it_changes_and_not_at_other_steps(saver):
    app = app_on(saver)
    for words in ("one", "two", "three"):
        await app.ainvoke({"lines": [words]}, AT)
    assert len([state async for state in app.aget_state_history(AT)]) == 15
    count = "SELECT channel, COUNT(*) FROM checkpoint_blobs GROUP BY 1 ORDER BY 1"
    assert await rows(saver, count) == [("lines", 5), ("page", 1)], "the first line alone is short"
    await assert_each_value_is_listed(saver)


@pytest.mark.parametrize("serde", [None, compressing_serializer()], ids=["LangGraph's", "of version 0.2"])
async def test_a_thread_of_whole_checkpoints_is_played_on_forked_erased_and_deleted(tmp_path, serde):
    file = tmp_path / "checkpoints.db"
    async with aiosqlite.connect(file) as connection:
        old = app_on(AsyncSqliteSaver(connection, serde=serde))
        for words in ("the Silver Heron", "two"):
            await old.ainvoke({"lines": [words]}, AT)
        before = [state async for state in old.aget_state_history(AT)]
    async with open_checkpointer(file) as saver:
        app = app_on(saver)
        assert [state async for state in app.aget_state_history(AT)] == before
        after = await app.ainvoke({"lines": ["three"]}, AT)
        assert after["lines"] == [*before[0].values["lines"], "three", f"{LONG}5"]
        fork = await app.ainvoke({"lines": ["else"]}, before[5].config)
        assert fork["lines"] == [*before[5].values["lines"], "else", f"{LONG}{len(fork['lines']) - 1}"]
        assert await rows(saver, "SELECT COUNT(*) FROM checkpoint_blobs WHERE channel = 'page'") == [(2,)], (
            "of each line"
        )
        await Erasure(saver).cut(["t"], Phrase("silver heron"))
        await Erasure(saver).compact()
        assert b"Heron" not in b"".join(contents(tmp_path).values())
        assert (await app.aget_state(AT)).values["lines"][1:] == fork["lines"][1:]
        await saver.adelete_thread("t")
        for table in ("checkpoints", "writes", "checkpoint_blobs"):
            assert await rows(saver, f"SELECT COUNT(*) FROM {table}") == [(0,)]


async def test_programs_that_know_whole_checkpoints_only_refuse_ours(saver, tmp_path):
    await app_on(saver).ainvoke({"lines": ["one"]}, AT)
    with pytest.raises(NotImplementedError, match=r"msgpack\+blobs\+zlib"):
        await AsyncSqliteSaver(saver.conn).aget_tuple(AT)
    with pytest.raises(ValueError, match="needs the serializer that wrote it"):
        await AsyncSqliteSaver(saver.conn, serde=compressing_serializer()).aget_tuple(AT)
    await AsyncSqliteSaver(saver.conn).adelete_thread("t")
    await Erasure(saver).compact()
    assert LONG.encode() not in b"".join(contents(tmp_path).values()), "values whose checkpoints are gone go too"


async def test_a_checkpoint_comes_with_all_its_values_or_not_at_all(saver, monkeypatch):
    app = app_on(saver)
    await app.ainvoke({"lines": ["one"]}, AT)
    before = await rows(saver, "SELECT id FROM checkpoint_blobs")
    last = await app.aget_state(AT)
    with monkeypatch.context() as patch:

        def put(database, saved):
            assert len(database.execute("SELECT id FROM checkpoint_blobs").fetchall()) > len(before)
            raise OSError("the power goes")

        patch.setattr("questbook.graphs.local.checkpoint_tables.put", put)
        with pytest.raises(OSError, match="the power goes"):
            await app.aupdate_state(AT, {"lines": [LONG * 2]})
    assert await rows(saver, "SELECT id FROM checkpoint_blobs") == before
    assert await app.aget_state(AT) == last
    await app.ainvoke({"lines": ["two"]}, AT)
    await assert_each_value_is_listed(saver)


async def test_a_copy_that_langgraph_makes_of_the_saver_is_answered_beside_it(tmp_path):
    async with open_checkpointer(tmp_path / "c.db") as saver:
        copied = copy.copy(saver)  # as `with_allowlist` does
        config = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
        for one, other in ((saver, copied), (copied, saver)):
            both = asyncio.gather(one.aget_tuple(config), other.aget_tuple(config), one.aget_tuple(config))
            assert await asyncio.wait_for(both, 30) == [None] * 3
            assert await asyncio.wait_for(other.aget_tuple(config), 30) is None


async def test_langgraphs_server_can_prune_threads(saver):
    app = app_on(saver)
    for word in ("one", "two", "three"):
        await app.ainvoke({"lines": [word]}, AT)
    state, count = await app.aget_state(AT), "SELECT count(*) FROM checkpoints"
    [[before]] = await rows(saver, count)
    with pytest.raises(ValueError, match="'keep_latest' or 'delete'"):
        await saver.aprune(["t"], strategy="keep_last")
    await saver.aprune(["t"])
    [[after]] = await rows(saver, count)
    assert after < before
    assert await app.aget_state(AT) == state
    await saver.aprune(["t"], strategy="delete")
    assert await rows(saver, count) == [(0,)]


async def test_langgraphs_server_keeps_the_last_turn_and_does_not_wait_for_a_smaller_file(saver, monkeypatch):
    given = []

    async def prune(*args, **named):
        given.append((args, named))

    monkeypatch.setattr("questbook.graphs.pruning.prune.prune", prune)
    await saver.aprune(["t", "u"])
    assert given == [((saver,), {"threads": ["t", "u"], "keep_turns": 1, "compact": False})]


async def go_on_while_it_is_deleted(saver):
    """Run on a thread that is deleted between two steps."""
    app = app_on(saver)
    await app.ainvoke({"lines": ["one"]}, AT)
    run = app.astream({"lines": ["two"]}, AT, durability="sync")
    await anext(run)
    late = (await saver.aget_tuple(AT)).config
    await saver.adelete_thread("t")
    with pytest.raises(ThreadLostError, match=r"^Thread t was deleted in the middle of a run\."):
        [part async for part in run]
    await saver.aput_writes(late, [("lines", ["late"])], "task")
    return app


async def test_a_run_brings_nothing_back_of_a_thread_that_is_deleted_meanwhile(saver):
    app = await go_on_while_it_is_deleted(saver)
    for table in ("checkpoints", "writes", "checkpoint_blobs"):
        assert await rows(saver, f"SELECT count(*) FROM {table}") == [(0,)], table
    assert (await app.ainvoke({"lines": ["anew"]}, AT))["lines"][0] == "anew"


async def test_a_copy_of_a_thread_may_begin_with_a_checkpoint_whose_parent_is_gone(saver):
    app, copied = app_on(saver), AT
    for word in ("one", "two"):
        await app.ainvoke({"lines": [word]}, AT | {"metadata": {"run_id": word}})
    await saver.adelete_for_runs(["one"])
    state = await app.aget_state(AT)
    for saved in sorted([one async for one in saver.alist(AT)], key=lambda one: one.checkpoint["id"]):
        there = {"configurable": {**(saved.parent_config or AT)["configurable"], "thread_id": "copy"}}
        copied = await saver.aput(there, saved.checkpoint, saved.metadata, saved.checkpoint["channel_versions"])
    assert (await app.aget_state(copied)).values == state.values


async def test_a_task_s_writes_stay_as_they_were_first_and_its_questions_and_errors_are_replaced(saver):
    here = await saver.aput(AT, empty_checkpoint(), {}, {})
    for writes in (
        [("lines", "a"), ("page", "b")], [("__interrupt__", "c")], [("lines", "d"), ("page", "e")],
        [("__interrupt__", "f")], [("__error__", "g")], [("page", "h"), ("__interrupt__", "i")],
    ):  # fmt: skip
        await saver.aput_writes(here, writes, "task")
    pending = [(channel, value) for _, channel, value in (await saver.aget_tuple(here)).pending_writes]
    assert sorted(pending) == [("__error__", "g"), ("__interrupt__", "f"), ("lines", "a"), ("page", "b")]


@pytest.mark.parametrize("fault", [None, StoreError("The disk is full."), ForgettingError("It is locked.")], ids=str)
async def test_what_is_left_to_be_forgotten_is_so_at_the_end_of_a_turn_of_its_thread(
    saver, tmp_path, monkeypatch, caplog, fault
):
    app, forgotten = app_on(saver), []

    async def forget_left(checkpointer, memory, thread):
        forgotten.append((checkpointer, memory, thread, (await app.aget_state(AT)).next))
        if fault:
            raise fault

    monkeypatch.setattr("questbook.graphs.forgetting.forget.forget_left", forget_left)
    await app.ainvoke({"lines": ["one"]}, AT)
    await saver.conn.execute("CREATE TABLE forgetting (thread_id TEXT)")
    await saver.conn.execute("INSERT INTO forgetting VALUES ('another')")
    await app.ainvoke({"lines": ["two"]}, AT)
    assert forgotten == []
    await saver.conn.execute("INSERT INTO forgetting VALUES ('t')")
    await saver.conn.commit()
    await app.ainvoke({"lines": ["three"]}, AT)
    assert forgotten == [(saver, tmp_path / "memory.db", "t", ())], "once, when nothing follows"
    said = f"What was to be forgotten in thread t is left for its next turn: {fault}"
    assert (said in caplog.text) is (fault is not None)


async def test_of_many_checkpoints_so_many_are_listed_as_one_asks_for_the_newest_first(saver):
    ids = [f"{number:03}" for number in range(70)]
    for number in ids:
        await saver.aput(AT, empty_checkpoint() | {"id": number}, {"step": int(number) % 2}, {})

    async def listed(**named):
        return [saved.config["configurable"]["checkpoint_id"] async for saved in saver.alist(AT, **named)]

    assert await listed() == ids[::-1]
    for limit in (0, 1, 32, 33, 64, 65):
        assert await listed(limit=limit) == ids[::-1][:limit]
    before = {"configurable": {"thread_id": "t", "checkpoint_id": "050"}}
    assert await listed(before=before, limit=40) == ids[49:9:-1]
    assert await listed(filter={"step": 1}) == ids[::-1][::2]


async def test_what_goes_together_fails_each_for_itself(tmp_path):
    async with open_checkpointer(tmp_path / "checkpoints.db") as saver:
        works = [lambda database: database.execute("SELECT 1").fetchone(), lambda database: 1 // 0]
        one, other = await asyncio.gather(*map(saver._run, works), return_exceptions=True)
        assert (one, type(other)) == ((1,), ZeroDivisionError)
    with pytest.raises(ValueError, match=r"closed|no active connection"):
        await asyncio.wait_for(saver.aget_tuple(AT), 30)


async def test_two_programs_write_one_thread_and_what_one_deletes_the_other_writes_whole(tmp_path):
    file = tmp_path / "checkpoints.db"
    async with open_checkpointer(file) as saver, open_checkpointer(file) as other:
        await asyncio.gather(*(app_on(one).ainvoke({"lines": ["one"]}, AT) for one in (saver, other)))
        await assert_each_value_is_listed(saver)
        saved = await saver.aget_tuple(AT)
        await other.adelete_thread("t")
        later = {**saved.checkpoint, "id": f"2{saved.checkpoint['id'][1:]}"}
        versions = later["channel_versions"]
        await saver.aput(saved.config, later, {"source": "loop", "step": 9, "parents": {}}, versions)
        assert (await other.aget_tuple(AT)).checkpoint == later
        await assert_each_value_is_listed(other)


@pytest.mark.parametrize("versions", [{"page": "1"}, {}], ids=["versions", "no versions"])
async def test_a_checkpoint_that_is_written_again_leaves_no_value_behind(saver, versions):
    config = AT
    for number, text in (("1", LONG), ("1", LONG[::-1]), ("2", LONG.upper())):
        values: Any = {"id": number, "channel_values": {"page": text}, "channel_versions": versions}
        config = await saver.aput(config, empty_checkpoint() | values, {"source": "loop", "step": 1}, versions)
        assert (await saver.aget(AT))["channel_values"] == {"page": text}
        await assert_each_value_is_listed(saver)
    assert await rows(saver, "SELECT COUNT(*) FROM checkpoint_blobs") == [(2,)]


async def test_what_ends_a_turn_or_waits_for_a_person_is_on_the_disk(saver):
    app, done = app_on(saver), []
    await saver.conn.set_trace_callback(done.append)

    async def commits():
        """Which of the commits waited for the disk, in order."""
        sure, waited = True, []
        for line in done:
            sure = "FULL" in line if "synchronous" in line else sure
            waited += [sure] if line == "COMMIT" else []
        done.clear()
        return waited

    await app.ainvoke({"lines": ["one"]}, AT, durability="sync")
    waited = await commits()
    assert waited[-1]
    assert waited.count(False) >= 7, "steps and their writes"
    await app.ainvoke({"lines": ["ask"]}, AT, durability="sync")
    assert (await commits())[-1], "the question"
    await app.aupdate_state(AT, {"lines": ["edited"]}, as_node="first")
    assert (await commits())[-1]


async def test_synchronous_methods_work_from_other_threads(saver):
    app = app_on(saver)
    await app.ainvoke({"lines": ["one"]}, AT)

    def read():
        app.invoke({"lines": ["two"]}, AT)
        return app.get_state(AT), list(app.get_state_history(AT))

    state, states = await asyncio.to_thread(read)
    assert states == [state async for state in app.aget_state_history(AT)]
    assert state == states[0]
    assert len(state.values["lines"]) == 4
    await asyncio.to_thread(saver.delete_thread, "t")
    assert await rows(saver, "SELECT COUNT(*) FROM checkpoint_blobs") == [(0,)]


SAID = [
    message for n in range(20) for message in (HumanMessage(f"I go on {n}", id=f"h{n}"), AIMessage("Yes.", id=f"a{n}"))
]


def test_values_come_back_and_take_a_fraction():
    serde = compressing_serializer()
    kind, data = serde.dumps_typed(SAID)
    assert kind == "msgpack+zlib"
    assert serde.loads_typed((kind, data)) == SAID
    plain = JsonPlusSerializer().dumps_typed(SAID)
    assert len(data) < len(plain[1]) / 5
    assert serde.loads_typed(plain) == SAID, "as older versions wrote it"
    assert decompress(kind, data) == decompress(*plain) == plain[1]


async def test_a_value_that_is_damaged_or_missing_is_said_to_be_unreadable(saver):
    await app_on(saver).ainvoke({"lines": ["one"]}, AT)
    await saver.conn.execute("UPDATE checkpoints SET checkpoint = ?", (b"x\x9crubbish",))
    await saver.conn.commit()
    with pytest.raises(UnreadableError, match="cannot be read: The value is damaged"):
        await read_saved_game(saver, "t")
    with pytest.raises(ForgettingError, match="A checkpoint cannot be read: The value is damaged"):
        await Erasure(saver).cut(["t"], Phrase("silver heron"))
    await saver.conn.execute("DELETE FROM checkpoint_blobs WHERE channel = 'page'")
    await saver.conn.commit()
    with pytest.raises(UnreadableError, match="Values of the checkpoint are missing"):
        await read_saved_game(saver, "t")


async def test_what_another_cipher_wrote_needs_its_own_serializer():
    class Same(CipherProtocol):
        def encrypt(self, plaintext):
            return "same", plaintext

        def decrypt(self, ciphername, ciphertext):
            return ciphertext

    kind, data = EncryptedSerializer(Same()).dumps_typed(SAID)
    assert decompress(kind, data) is None
    with pytest.raises(ValueError, match="'same', which needs the serializer that wrote it"):
        compressing_serializer().loads_typed((kind, data))


async def test_messages_that_were_written_or_read_last_are_not_decoded_again_and_those_of_another_program_are(tmp_path):
    decoded = []

    class Counting(EncryptedSerializer):
        def loads_typed(self, data):
            value = super().loads_typed(data)
            decoded.extend([1] if isinstance(value, list) and value and isinstance(value[0], HumanMessage) else [])
            return value

    async def write(saver, *texts):
        checkpoint = empty_checkpoint()
        checkpoint["channel_values"] = {"messages": [HumanMessage(f"{text} {LONG}", id=text) for text in texts]}
        checkpoint["channel_versions"] = {"messages": f"{len(texts)}"}
        await saver.aput(AT, checkpoint, {}, checkpoint["channel_versions"])

    async def read(saver):
        saved = await saver.aget_tuple(AT)
        return saved.checkpoint["channel_values"]["messages"]

    path = tmp_path / "checkpoints.db"
    async with open_checkpointer(path) as saver, open_checkpointer(path) as other:
        saver.serde = Counting(compressing_serializer().cipher)
        await write(saver, "one")
        first = await read(saver)
        first.append("no part of the checkpoint")
        assert [message.id for message in await read(saver)] == ["one"]
        assert decoded == []
        await write(other, "one", "two")
        assert [[message.id for message in await read(saver)] for _ in range(2)] == [["one", "two"]] * 2
        assert decoded == [1]
