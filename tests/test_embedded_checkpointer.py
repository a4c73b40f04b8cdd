"""The checkpointer takes back what single runs wrote, and nothing else."""

from conftest import MIRA
from scripted import call, say

from questbook.graphs.dungeon_master.graph import build_graph
from questbook.graphs.embedded.databases import open_checkpointer


async def test_what_one_run_wrote_goes_and_the_thread_stands_where_it_stood(tmp_path, model):
    async with open_checkpointer(tmp_path / "checkpoints.db") as saver:
        app = build_graph().compile(checkpointer=saver)

        async def run(name, words):
            config = {"configurable": {"thread_id": "t"}, "metadata": {"run_id": name}}
            await app.ainvoke({"messages": [("user", words)]}, config, context={"model": "scripted", "seed": 7})

        async def counted():
            tables = ("checkpoints", "writes")
            found = [await (await saver.conn.execute(f"SELECT count(*) FROM {table}")).fetchone() for table in tables]
            return [count for (count,) in found]

        model.queue("interview", say("", call("CharacterNotebook", **MIRA)))
        await run("one", "I am Mira.")
        before = (await app.aget_state({"configurable": {"thread_id": "t"}})).values
        rows = await counted()
        await run("two", "I dig.")
        assert await counted() > rows
        await saver.adelete_for_runs(["two", "x' OR 1=1"])
        assert await counted() == rows
        assert (await app.aget_state({"configurable": {"thread_id": "t"}})).values == before
        await run("three", "I sing.")
        after = (await app.aget_state({"configurable": {"thread_id": "t"}})).values
        assert after["turn"] == before["turn"] + 1
