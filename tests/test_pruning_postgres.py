"""The same on Postgres, with every saver that LangGraph has for it: values that nobody needs any more go, too."""

import asyncio

import pytest
from test_pruning import THREAD, end_of, graph_of, numbers, play, reads, say

from questbook import prune
from questbook.graphs.errors import PruningError
from questbook.graphs.pruning.prune import prune_sync

pytestmark = pytest.mark.slow
savers = pytest.importorskip("langgraph.checkpoint.postgres")
TABLES = ("checkpoints", "checkpoint_blobs", "checkpoint_writes")


@pytest.fixture
def uri():
    from postgres import new_database

    uri = new_database()
    with savers.PostgresSaver.from_conn_string(uri) as saver:
        saver.setup()
    return uri


def fork(graph, delta=False):
    """Twelve turns; after the fourth another eight."""
    play(graph, *numbers(1, 12), delta=delta)
    play(graph, "5b", config=end_of(graph, "4"), delta=delta)
    play(graph, *(f"{number}b" for number in range(6, 13)), delta=delta)


def count(uri, table):
    from psycopg import connect

    with connect(uri) as connection:
        return connection.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0]


def unneeded_blobs(uri):
    from psycopg import connect

    with connect(uri) as connection:
        return connection.execute(
            "SELECT COUNT(*) FROM checkpoint_blobs b WHERE NOT EXISTS (SELECT 1 FROM checkpoints c WHERE "
            "c.checkpoint -> 'channel_versions' ->> b.channel = b.version)"
        ).fetchone()[0]


@pytest.mark.parametrize("delta", [False, True])
@pytest.mark.parametrize("kind", ["connection", "pipeline", "pool"])
def test_what_is_kept_reads_as_before_and_can_be_played_on_from(uri, kind, delta):
    from psycopg.rows import dict_row
    from psycopg_pool import ConnectionPool

    options = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
    opened = (
        ConnectionPool(uri, kwargs=options, min_size=1, max_size=2)
        if kind == "pool"
        else savers.PostgresSaver.from_conn_string(uri, pipeline=kind == "pipeline")
    )
    with opened as resource:
        saver = savers.PostgresSaver(resource) if kind == "pool" else resource
        graph = graph_of(saver, delta=delta)
        fork(graph, delta)
        before, rows = reads(graph), {table: count(uri, table) for table in TABLES}
        would = prune_sync(saver, keep_turns=2, dry_run=True)
        assert reads(graph) == before
        assert prune_sync(saver, keep_turns=2) == would
        after = reads(graph)
        assert after == {name: before[name] for name in after}
        assert unneeded_blobs(uri) == 0
        if not delta:  # else stubs take the place of some
            gone = [rows[table] - count(uri, table) for table in TABLES]
            assert gone == [would.checkpoints, would.blobs, would.writes]
        assert would.checkpoints > len(before) / 2
        play(graph, "on", config=end_of(graph, "4"), delta=delta)
        said = [word for number in [*numbers(1, 4), "on"] for word in (number, f"re {number}", "ok")]
        assert graph.get_state(THREAD).values["said"] == said
        if delta:
            assert graph.get_state(THREAD).values["words"] == [word for word in said if word != "ok"]
        assert prune_sync(saver, keep_turns=2).skipped == {}


@pytest.mark.parametrize("kind", ["connection", "pool"])
async def test_the_asynchronous_savers_are_pruned_while_others_play(uri, kind):
    from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
    from psycopg.rows import dict_row
    from psycopg_pool import AsyncConnectionPool

    options = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
    opened = (
        AsyncConnectionPool(uri, kwargs=options, min_size=1, max_size=2, open=False)
        if kind == "pool"
        else AsyncPostgresSaver.from_conn_string(uri)
    )
    async with opened as resource, AsyncPostgresSaver.from_conn_string(uri) as elsewhere:
        saver = AsyncPostgresSaver(resource) if kind == "pool" else resource
        graph, beside = graph_of(saver), graph_of(elsewhere)
        for word in numbers(1, 12):
            await graph.ainvoke(say(word), THREAD)

        async def go_on():
            for word in numbers(13, 20):
                await beside.ainvoke(say(word), THREAD)

        results = []
        playing = asyncio.create_task(go_on())
        while not playing.done():  # now and then it finds the run in progress, and skips the thread
            results.append(await prune(saver, keep_turns=2))
            await asyncio.sleep(0.01)
        await playing
        results.append(await prune(saver, keep_turns=2))
        assert sum(result.checkpoints for result in results) > 50
        said = [word for number in numbers(1, 20) for word in (number, f"re {number}", "ok")]
        assert (await graph.aget_state(THREAD)).values["said"] == said
        assert unneeded_blobs(uri) == 0


def test_tables_that_are_missing_are_said(uri):
    from psycopg import connect

    with connect(uri, autocommit=True) as connection:
        connection.execute("DROP TABLE checkpoint_writes")
    with (
        savers.PostgresSaver.from_conn_string(uri) as saver,
        pytest.raises(PruningError, match="checkpoint_writes"),
    ):
        prune_sync(saver, threads=["t"])
