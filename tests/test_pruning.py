"""Checkpoints that nobody goes back to are deleted; what is kept can be read, gone to and played on from as before."""

import asyncio
import json
import operator
import sqlite3
from argparse import Namespace
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Annotated
from unittest.mock import Mock

import pytest
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt
from typing_extensions import TypedDict

from questbook import prune
from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.errors import PruningError
from questbook.graphs.local import checkpointer
from questbook.graphs.pruning import prune as pruning
from questbook.graphs.pruning.retention import Tree, TreeNode, kept_of_subgraph, kept_turns
from questbook.graphs.terminal.homes import prune as command

THREAD = {"configurable": {"thread_id": "t"}}


class State(TypedDict, total=False):
    said: Annotated[list[str], operator.add]
    last: str
    line: str


def graph_of(saver, ask=False, inner=None):
    """A graph of two nodes: an answer, and a question to the person or a subgraph if that is wished."""

    def answer(state):
        return {"said": [f"re {state['last']}"]}

    def close(state):
        return {"said": [interrupt("sure?") if ask and "ask" in state["last"] else "ok"]}

    builder = StateGraph(State)
    builder.add_node("answer", answer)
    builder.add_node("close", inner or close)
    builder.add_edge(START, "answer")
    builder.add_edge("answer", "close")
    return builder.compile(checkpointer=saver)


def say(word):
    return {"said": [word], "last": word}


def play(graph, *words, config=THREAD, **options):
    for word in words:
        graph.invoke(say(word), config, **options)


def numbers(first, last):
    return [f"{number}" for number in range(first, last + 1)]


def states(graph, thread="t"):
    history = graph.get_state_history({"configurable": {"thread_id": thread}})
    return {state.config["configurable"]["checkpoint_id"]: state for state in history}


def ends(graph, thread="t"):
    """The last words of each finished state, the newest first."""
    return [state.values["last"] for state in states(graph, thread).values() if not state.next and state.values]


def end_of(graph, word):
    return next(state.config for state in states(graph).values() if not state.next and state.values["last"] == word)


def reads(graph, thread="t"):
    return {name: (state.values, state.next) for name, state in states(graph, thread).items()}


async def pruned_beside(saver, **options):
    """What an app with a `SqliteSaver` does: it opens the file once more, asynchronously."""
    [(_, _, file)] = saver.conn.execute("PRAGMA database_list")
    async with AsyncSqliteSaver.from_conn_string(file) as asynchronous:
        return await prune(asynchronous, **options)


def pruned(saver, **options):
    return asyncio.run(pruned_beside(saver, **options))


@pytest.fixture
def saver(tmp_path):
    with SqliteSaver.from_conn_string(str(tmp_path / "c.db")) as opened:
        opened.conn.execute("PRAGMA synchronous=OFF")
        yield opened


@pytest.fixture
def forked(saver):
    """Twelve turns; after the fourth another eight; after the eighth a single one with which nobody goes on."""
    graph = graph_of(saver)
    play(graph, *numbers(1, 12))
    play(graph, "9b", config=end_of(graph, "8"))
    play(graph, "5b", config=end_of(graph, "4"))
    play(graph, *(f"{number}b" for number in range(6, 13)))
    return graph


def test_the_last_turns_each_branch_end_and_each_fork_are_kept(saver, forked):
    before = reads(forked)
    result = pruned(saver, keep_turns=3)
    kept = ["12b", "11b", "10b", "9b", "9b", "12", "11", "8", "7", "4", "3"]
    assert sorted(ends(forked)) == sorted(kept)
    after = reads(forked)
    assert after == {name: before[name] for name in after}
    assert (result.checkpoints, result.kept) == (len(before) - len(after), len(after))
    assert not result.skipped


def test_a_kept_checkpoint_leads_to_its_nearest_kept_ancestor(saver, forked):
    pruned(saver, keep_turns=3)

    def way(config):
        words = []
        while config:
            state = forked.get_state(config)
            words += [state.values["last"]] if not state.next and state.values else []
            config = state.parent_config
        return words

    assert way(THREAD) == ["12b", "11b", "10b", "9b", "4", "3"]
    assert way(end_of(forked, "12")) == ["12", "11", "8", "7", "4", "3"]


def test_it_can_be_played_on_from_everything_that_is_kept(saver, forked):
    pruned(saver, keep_turns=3)
    play(forked, "13b")
    assert forked.get_state(THREAD).values["said"][-3:] == ["13b", "re 13b", "ok"]
    play(forked, "other", config=end_of(forked, "4"))
    assert forked.get_state(THREAD).values["said"] == [
        word for number in [*numbers(1, 4), "other"] for word in (number, f"re {number}", "ok")
    ]


def test_pruning_again_deletes_nothing_and_later_what_has_grown_old(saver, forked):
    pruned(saver, keep_turns=3)
    again = pruned(saver, keep_turns=3)
    assert (again.checkpoints, again.bytes) == (0, 0)
    play(forked, "13b", "14b")
    assert pruned(saver, keep_turns=3).checkpoints == 8
    assert "11b" in ends(forked)
    assert "10b" not in ends(forked)


def stored_bytes(saver):
    rows = "LENGTH(checkpoint) + LENGTH(CAST(metadata AS BLOB)) AS size FROM checkpoints"
    [(size,)] = saver.conn.execute(f"SELECT SUM(size) FROM (SELECT {rows} UNION ALL SELECT LENGTH(value) FROM writes)")
    return size


def test_a_dry_run_counts_what_pruning_deletes_and_deletes_nothing(saver, forked):
    before, size = reads(forked), stored_bytes(saver)
    would = pruned(saver, keep_turns=3, dry_run=True)
    assert reads(forked) == before
    done = pruned(saver, keep_turns=3)
    assert would._replace(compacted=None) == done._replace(compacted=None)
    assert done.bytes == size - stored_bytes(saver) > 10_000


def test_an_interrupt_is_never_cut(saver):
    graph = graph_of(saver, ask=True)
    play(graph, *numbers(1, 3), "ask", *numbers(4, 9))  # the question was left without an answer
    asked = next(state.config for state in states(graph).values() if state.interrupts)
    play(graph, "ask again")
    assert not pruned(saver, keep_turns=2).skipped
    graph.invoke(Command(resume="yes"), THREAD)
    assert graph.get_state(THREAD).values["said"][-1] == "yes"
    # The first question has been passed over on this branch, so it is no end of one: it goes.
    assert graph.get_state(asked).values == {}


def test_an_interrupt_at_the_end_of_a_branch_can_be_answered_after_it(saver):
    graph = graph_of(saver, ask=True)
    play(graph, *numbers(1, 3), "ask")
    asked = graph.get_state(THREAD).config
    play(graph, "4", config=end_of(graph, "3"))
    play(graph, *numbers(5, 9))
    pruned(saver, keep_turns=2)
    graph.invoke(Command(resume="yes"), asked)
    assert graph.get_state(THREAD).values["said"][-2:] == ["re ask", "yes"]


def test_a_run_in_progress_is_skipped_and_a_stopped_one_is_kept(saver):
    graph = graph_of(saver)
    play(graph, *numbers(1, 8))
    stopped = graph.stream(say("9"), THREAD, durability="sync")
    next(stopped)
    stopped.close()
    [reason] = pruned(saver, keep_turns=2).skipped.values()
    assert "in progress" in reason
    assert pruned(saver, keep_turns=2, idle=timedelta(0)).checkpoints == 27
    graph.invoke(None, THREAD)
    assert graph.get_state(THREAD).values["said"][-3:] == ["9", "re 9", "ok"]


def test_going_back_without_doing_anything_there_keeps_nothing(saver):
    graph = graph_of(saver)
    play(graph, *numbers(1, 8))
    last = graph.get_state(THREAD).config
    for place in (end_of(graph, "3"), last):
        graph.update_state(place, None, as_node="__copy__")
    play(graph, "9")
    pruned(saver, keep_turns=2)
    assert set(ends(graph)) == {"9", "8", "7"}


def test_a_copy_on_which_a_run_was_stopped_is_kept():
    steps = [TreeNode("1", None, "input", -1), TreeNode("2", "1", "loop", 0), TreeNode("3", "2", "loop", 1)]
    steps += [TreeNode("9", "3", "input", 2)]
    copies = [TreeNode("4", "1", "fork", 1, pending=True), TreeNode("5", "1", "fork", 1), TreeNode("6", "2", "fork", 1)]
    tree = Tree({node.id: node for node in [*steps, *copies]})
    assert sorted(tree.leaves()) == ["4", "6", "9"]  # 6 was made by a run that plays 2 again
    moved = [TreeNode("7", None, "fork", 1), TreeNode("99", "2", "fork", 2)]  # a copy of a beginning; where one stands
    assert sorted(Tree({node.id: node for node in [*steps, *copies, *moved]}).leaves()) == ["4", "6", "9", "99"]


def test_a_subgraph_s_checkpoint_is_kept_as_long_as_its_root_is_and_where_that_is_unknown():
    roots = Tree({name: TreeNode(name, None, "input") for name in ("20", "40", "60")})
    inner = [("10", "20"), ("30", "40"), ("35", "gone"), ("50", "60"), ("70", "60")]
    tree = Tree({name: TreeNode(name, None, root=root) for name, root in inner})
    assert kept_of_subgraph("close:1", tree, roots, {"40"}) == {"30", "35"}
    # Of one that keeps its state: what a run from the kept root finds, and its newest one.
    assert kept_of_subgraph("close", tree, roots, {"40"}) == {"30", "35", "70"}
    assert kept_of_subgraph("close", tree, roots, {"60"}) == {"35", "50", "70"}
    assert kept_of_subgraph("close", tree, roots, {"20"}) == {"10", "35", "70"}


@pytest.mark.parametrize("metadata", ["{", "[1]", None])
def test_a_checkpoint_whose_metadata_are_damaged_or_whose_parent_is_gone_stops_nothing(saver, metadata):
    graph = graph_of(saver)
    play(graph, *numbers(1, 6))
    third, fourth = (end_of(graph, number)["configurable"]["checkpoint_id"] for number in "34")
    saver.conn.execute("UPDATE checkpoints SET metadata = ? WHERE checkpoint_id = ?", (metadata, third))
    saver.conn.execute("DELETE FROM checkpoints WHERE checkpoint_id = ?", (fourth,))
    saver.conn.commit()
    result = pruned(saver, keep_turns=1)
    assert not result.skipped
    assert result.checkpoints > 0
    assert graph.get_state(THREAD).values["last"] == "6"


def test_a_chain_that_is_a_loop_is_left_alone():
    nodes = [TreeNode("1", None, "input"), *(TreeNode(*pair, "loop") for pair in ("21", "34", "43"))]
    tree = Tree({node.id: node for node in nodes})
    assert kept_turns(tree, {"4"}, (), 1, None) == {"1", "2", "3", "4"}
    assert list(tree.ancestors("3")) == ["4"]


def test_turns_younger_than_a_given_age_are_kept(saver):
    graph = graph_of(saver)
    play(graph, *numbers(1, 6))
    assert pruned(saver, keep_turns=2, older_than=timedelta(days=1)).checkpoints == 0
    assert pruned(saver, keep_turns=2, older_than=timedelta(0)).checkpoints == 15


def test_only_the_named_threads_are_pruned(saver):
    graph = graph_of(saver)
    other = {"configurable": {"thread_id": "u"}}
    play(graph, *numbers(1, 10))
    play(graph, *numbers(1, 10), config=other)
    result = pruned(saver, threads=["u", "v", "u"], keep_turns=2)
    assert (result.threads, list(result.skipped)) == (2, ["v"])
    assert "no checkpoints" in result.skipped["v"]
    assert (len(ends(graph)), len(ends(graph, "u"))) == (10, 3)


def test_unless_told_otherwise_the_last_fifty_turns_are_kept(saver):
    graph = graph_of(saver)
    play(graph, *numbers(1, 53), durability="exit")
    assert pruned(saver).checkpoints == 2
    assert ends(graph) == numbers(3, 53)[::-1]  # and the state that the first of them began from


def test_a_turn_that_was_copied_to_another_thread_is_kept(saver):
    graph = graph_of(saver)
    play(graph, *numbers(1, 10))
    place = end_of(graph, "5")["configurable"]
    play(graph, "5", config={"configurable": {"thread_id": "u"}}, durability="exit")
    copied = {"copied_from": {"thread_id": "t", "checkpoint_id": place["checkpoint_id"]}, "source": "input"}
    saver.conn.execute("UPDATE checkpoints SET metadata = ? WHERE thread_id = 'u'", (json.dumps(copied),))
    saver.conn.commit()
    pruned(saver, keep_turns=1)
    assert ends(graph) == ["10", "9", "5", "4"]


def test_a_damaged_thread_is_left_as_it_is_and_the_others_are_pruned(saver):
    graph = graph_of(saver)
    for thread in ("t", "u"):
        play(graph, *numbers(1, 5), config={"configurable": {"thread_id": thread}})
    saver.conn.execute("UPDATE checkpoints SET checkpoint = X'C1' WHERE thread_id = 't'")
    saver.conn.commit()
    result = pruned(saver, keep_turns=1)
    assert list(result.skipped) == ["t"]
    assert "The newest checkpoint of thread t cannot be read" in result.skipped["t"]
    assert (len(ends(graph, "u")), result.checkpoints) == (2, 15)


def test_of_each_line_that_the_state_names_the_last_turns_are_kept(saver):
    """A line is named when it begins; a thread that names none is on its first one, "main"."""
    graph = graph_of(saver)
    play(graph, *numbers(1, 4))
    for line in ("dark", "main"):
        graph.update_state(end_of(graph, "4"), {"line": line}, as_node="close")
        play(graph, *(f"{line} {number}" for number in range(1, 6)))
    play(graph, "dark 3b", config=end_of(graph, "dark 2"))
    play(graph, *(f"dark {number}b" for number in range(4, 7)))
    graph.update_state(end_of(graph, "main 5"), {"line": "light"}, as_node="close")
    play(graph, *(f"light {number}" for number in range(1, 6)))
    pruned(saver, keep_turns=2)
    last = [f"main {number}" for number in (5, 5, 4, 3)] + [f"light {number}" for number in (5, 4, 3)]
    last += [f"dark {number}b" for number in (6, 5, 4)]
    forks = ["dark 5", "dark 4", "dark 2", "dark 1", "4", "4", "4", "3"]  # and an end, each with the turn before it
    assert sorted(ends(graph)) == sorted([*last, *forks])


def test_a_run_that_saves_only_its_end_is_a_turn(saver):
    graph = graph_of(saver)
    play(graph, *numbers(1, 10), durability="exit")
    before = reads(graph)
    pruned(saver, keep_turns=2)
    assert ends(graph) == ["10", "9", "8"]
    assert reads(graph) == {name: before[name] for name in reads(graph)}


def test_a_thread_with_a_delta_channel_is_skipped(saver):
    def append(value, writes):
        return [*value, *(entry for write in writes for entry in write)]

    builder = StateGraph(TypedDict("Words", {"words": Annotated[list[str], DeltaChannel(append)]}))
    builder.add_node("answer", lambda _: {"words": ["ok"]})
    builder.add_edge(START, "answer")
    graph = builder.compile(checkpointer=saver)
    for number in numbers(1, 9):
        graph.invoke({"words": [number]}, THREAD)
    of_js = {"configurable": {"thread_id": "js"}, "metadata": {"delta_writes_versioned": 0}}  # LangGraph.js's mark
    play(graph_of(saver), *numbers(1, 5), config=of_js)
    skipped = pruned(saver, keep_turns=1).skipped
    assert all("DeltaChannel" in skipped[thread] for thread in ("t", "js"))
    assert graph.get_state(THREAD).values["words"] == [word for number in numbers(1, 9) for word in (number, "ok")]


class Inner(TypedDict, total=False):
    last: str
    heard: Annotated[list[str], operator.add]


def inner_graph(*, keeps_state):
    """A subgraph that asks, or one that keeps what it has heard from call to call."""

    def hear(state):
        return {"heard": [state["last"]]}

    def close(state):
        return {"heard": [str(interrupt("sure?"))]} if not keeps_state else {"last": f"heard {len(state['heard'])}"}

    builder = StateGraph(Inner)
    builder.add_node("hear", hear)
    builder.add_node("close", close)
    builder.add_edge(START, "hear")
    builder.add_edge("hear", "close")
    return builder.compile(checkpointer=keeps_state)


def inner_checkpoints(saver):
    """Id of each checkpoint of subgraphs, with that of the root graph's that it belongs to, and what it holds."""
    return {
        saved.config["configurable"]["checkpoint_id"]: (saved.metadata["parents"][""], saved.checkpoint)
        for saved in saver.list(THREAD)
        if saved.config["configurable"]["checkpoint_ns"]
    }


def test_a_subgraph_s_checkpoints_follow_those_of_the_root_graph(saver):
    graph = graph_of(saver, inner=inner_graph(keeps_state=None))
    for number in numbers(1, 9):
        play(graph, number)
        graph.invoke(Command(resume="yes"), THREAD)
    play(graph, "10")
    before, roots = inner_checkpoints(saver), reads(graph)
    pruned(saver, keep_turns=2)
    assert reads(graph) == {name: roots[name] for name in reads(graph)}
    after = inner_checkpoints(saver)
    assert {root for root, _ in after.values()} <= set(reads(graph))
    assert after == {name: before[name] for name in after}
    assert 0 < len(after) < len(before) / 3
    graph.invoke(Command(resume="yes"), THREAD)
    assert not graph.get_state(THREAD).next


def test_a_subgraph_that_keeps_its_state_has_it_at_every_kept_checkpoint(saver):
    graph = graph_of(saver, inner=inner_graph(keeps_state=True))
    play(graph, *numbers(1, 8))
    play(graph, "4b", config=end_of(graph, "heard 3"))
    play(graph, *numbers(5, 9))
    before = inner_checkpoints(saver)
    pruned(saver, keep_turns=2)
    assert 0 < len(inner_checkpoints(saver)) < len(before) / 2
    heard = len(inner_checkpoints(saver)[max(before)][1]["channel_values"]["heard"])
    play(graph, "on")
    assert graph.get_state(THREAD).values["last"] == f"heard {heard + 1}"
    # Back to where the branches part: what the subgraph had heard then, it has still.
    asking = next(s for s in states(graph).values() if s.next == ("close",) and s.values["said"][-1] == "re 3")
    graph.invoke(None, asking.config)
    assert graph.get_state(THREAD).values["last"] == "heard 3"


def test_a_fork_that_somebody_makes_meanwhile_stops_the_removal(saver, monkeypatch):
    graph = graph_of(saver)
    play(graph, *numbers(1, 12))
    old, plans, forks = end_of(graph, "4"), pruning._plans, []

    async def plan_and_fork(*arguments):
        planned = await plans(*arguments)
        if len(forks) < 2:
            forks.append(play(graph, f"4{len(forks)}", config=old))
        return planned

    monkeypatch.setattr(pruning, "_plans", plan_and_fork)
    result = pruned(saver, keep_turns=2)
    assert not result.skipped
    assert {"40", "41", "4"} <= set(ends(graph))
    play(graph, "on", config=end_of(graph, "40"))
    assert graph.get_state(THREAD).values["said"][-3:] == ["on", "re on", "ok"]


def test_two_that_prune_the_same_thread_leave_a_way_back(saver, monkeypatch):
    graph = graph_of(saver)
    play(graph, *numbers(1, 8))
    plans, others = pruning._plans, []

    async def plan_while_another_prunes(*arguments):
        planned = await plans(*arguments)
        if not others:
            monkeypatch.setattr(pruning, "_plans", plans)
            others.append(await pruned_beside(saver, keep_turns=1))
        return planned

    monkeypatch.setattr(pruning, "_plans", plan_while_another_prunes)
    assert pruned(saver, keep_turns=4).checkpoints == 0
    state = graph.get_state(THREAD)
    while state.parent_config:
        state = graph.get_state(state.parent_config)
        assert state.created_at


@pytest.mark.slow
def test_the_file_shrinks(tmp_path):
    file = tmp_path / "c.db"
    with SqliteSaver.from_conn_string(str(file)) as saver:
        graph = graph_of(saver)
        play(graph, *(f"{number} {'word ' * 200}" for number in range(20)))
        saver.conn.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        size = file.stat().st_size
        assert pruned(saver, keep_turns=1).compacted
        assert file.stat().st_size < size / 3


@pytest.mark.parametrize(
    ("kind", "advice"),
    [
        ("memory.InMemorySaver", "only AsyncSqliteSaver"),
        ("sqlite.SqliteSaver", "open its database with AsyncSqliteSaver"),
        ("postgres.PostgresSaver", "open its database with AsyncPostgresSaver"),
    ],
)
async def test_other_checkpointers_are_refused_with_what_to_do(kind, advice):
    module, _, name = kind.rpartition(".")
    saver = object.__new__(getattr(pytest.importorskip(f"langgraph.checkpoint.{module}"), name))
    with pytest.raises(PruningError, match=f"^{name} cannot be pruned here: .*{advice}"):
        await prune(saver)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"keep_turns": 0}, "from 1, got 0"),
        ({"keep_turns": "5"}, "from 1, got '5'"),
        ({"older_than": 30}, "timedeltas, got 30"),
        ({"idle": 5}, "timedeltas, got None and 5"),
        ({"older_than": timedelta(days=900_000)}, "900,000 days ago"),
        ({"threads": "t"}, "Threads are a list of ids, got the text 't'"),
    ],
)
def test_arguments_that_cannot_be_used_are_refused(saver, options, says):
    with pytest.raises(PruningError, match=says):
        pruned(saver, **options)


def test_a_database_that_cannot_be_read_is_said(saver):
    play(graph_of(saver), "1")
    saver.conn.execute("DROP TABLE writes")
    saver.conn.execute("CREATE VIEW writes AS SELECT 1 AS thread_id")
    with pytest.raises(PruningError, match=r"cannot be read or written: Cannot add a column.* pruned before stay so"):
        pruned(saver)


def test_a_checkpoint_whose_id_says_no_time_counts_as_young():
    ids = ["a", "b", "c"]
    tree = Tree({one: TreeNode(one, before, "input") for one, before in zip(ids, [None, *ids], strict=False)})
    assert kept_turns(tree, {"c"}, (), 1, None) == {"b", "c"}
    assert kept_turns(tree, {"c"}, (), 1, datetime.now(UTC)) == {"a", "b", "c"}


def test_of_a_thread_with_several_beginnings_each_tree_is_pruned():
    """As History makes them: a copy from another thread has no parent."""
    nodes = [TreeNode(f"{root}{n}", f"{root}{n - 1}" if n else None, "input") for root in "ab" for n in range(5)]
    tree = Tree({node.id: node for node in nodes})
    assert sorted(tree.order) == sorted(tree.nodes)
    assert kept_turns(tree, {"b4"}, (), 1, None) == {"a4", "a3", "b4", "b3"}
    assert tree.new_parents({"a4", "a1", "a0", "b4"}) == {"a4": "a1", "b4": None}


def test_a_run_without_a_step_for_five_minutes_counts_as_stopped(saver, monkeypatch):
    graph = graph_of(saver)
    play(graph, *numbers(1, 8))
    stopped = graph.stream({"said": ["9"]}, THREAD)
    next(stopped)
    stopped.close()
    for minutes, running in ((4, True), (6, False)):
        later = datetime.now(UTC) + timedelta(minutes=minutes)
        with monkeypatch.context() as patch:
            patch.setattr(
                checkpointer,
                "datetime",
                Mock(wraps=datetime, now=lambda _, later=later: later, fromisoformat=datetime.fromisoformat),
            )
            assert bool(pruned(saver, keep_turns=2).skipped) == running


def test_a_dry_run_leaves_the_file_as_it_is(saver):
    graph = graph_of(saver)
    play(graph, *numbers(1, 30))
    before = saver.conn.execute("PRAGMA page_count").fetchone()
    assert pruned(saver, keep_turns=2, compact=False).compacted is None
    assert saver.conn.execute("PRAGMA page_count").fetchone() == before
    assert pruned(saver, keep_turns=1, dry_run=True).compacted is None
    assert saver.conn.execute("PRAGMA page_count").fetchone() == before
    assert pruned(saver, keep_turns=1).compacted
    assert saver.conn.execute("PRAGMA page_count").fetchone() < before
    assert pruned(saver, keep_turns=1).compacted is None  # nothing of it is free


async def test_a_file_that_is_read_meanwhile_is_not_said_to_be_smaller(saver, tmp_path):
    play(graph_of(saver), *numbers(1, 9))
    with closing(sqlite3.connect(tmp_path / "c.db")) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM checkpoints").fetchone()
        async with AsyncSqliteSaver.from_conn_string(str(tmp_path / "c.db")) as asynchronous:
            await asynchronous.conn.execute("PRAGMA busy_timeout = 0")
            result = await prune(asynchronous, keep_turns=1)
    assert (result.compacted, result.checkpoints > 0) == (False, True)


async def test_a_file_that_another_program_holds_is_said_to_be_as_large_as_before(tmp_path, monkeypatch, capsys):
    locked = Mock(side_effect=sqlite3.OperationalError("database is locked"))
    monkeypatch.setattr("questbook.graphs.pruning.sqlite_tables.write_again", locked)
    monkeypatch.setattr("questbook.graphs.pruning.sqlite_tables._FREE", 0.0)
    with SqliteSaver.from_conn_string(str(tmp_path / "checkpoints.db")) as saver:
        play(graph_of(saver), *numbers(1, 9))
        done = await pruned_beside(saver, keep_turns=5)
        assert (done.compacted, done.checkpoints > 0) == (False, True)
    monkeypatch.setenv("QUESTBOOK_HOME", str(tmp_path))
    flags = Namespace(user=None, keep_turns=2, older_than=None, campaign=None, dry_run=False, yes=True)
    assert await command(Context(), flags)
    assert "The file could not be made smaller now" in capsys.readouterr().out
