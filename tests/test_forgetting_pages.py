"""Words on pages that threads share are forgotten on every thread: in the patches, the snapshot, the states."""

from contextlib import asynccontextmanager

import pytest
from desk import Desk
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from scripted import call, say
from stored_bytes import files_saying
from test_agent_scopes import ProfileNotebook

from questbook import FaissStore, forget
from questbook.graphs.errors import ForgettingError, ModelError
from questbook.graphs.turn import shared_pages


@asynccontextmanager
async def in_files(directory):
    async with (
        AsyncSqliteSaver.from_conn_string(str(directory / "checkpoints.db")) as saver,
        FaissStore.open(directory / "memory.db", index=None) as store,
    ):
        yield saver, store, lambda: files_saying(directory, "ebracake")


@asynccontextmanager
async def in_postgres(_):
    from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
    from langgraph.store.postgres import AsyncPostgresStore
    from postgres import new_database
    from test_postgres import in_tables

    uri = new_database()
    async with (
        AsyncPostgresSaver.from_conn_string(uri) as saver,
        AsyncPostgresStore.from_conn_string(uri) as store,
    ):
        await saver.setup()
        await store.setup()
        yield saver, store, lambda: in_tables(uri, "ebracake")


class Shop:
    """Threads of one customer whose agent keeps a page that they share."""

    def __init__(self, saver, store):
        self.desk = Desk(ProfileNotebook, saver=saver, store=store)

    async def say(self, thread, words, *, fails=False, **noted):
        if fails:
            self.desk.model.queue("reply", ValueError("the line went dead"))
        if noted:
            self.desk.model.queue("update", say("", call("ProfileNotebook", **noted)))
        config = {"configurable": {"thread_id": thread}}
        values = await self.desk.app.ainvoke({"messages": [("user", words)]}, config, context={"user": "ann"})
        assert values["notices"] == []
        return values["profile"]


@pytest.mark.parametrize("opened", [in_files, pytest.param(in_postgres, marks=pytest.mark.slow)])
async def test_they_leave_the_page_of_every_thread(tmp_path, opened, monkeypatch):
    monkeypatch.setattr(shared_pages, "OLD", 0.0)
    monkeypatch.setattr(shared_pages, "MOST", 1)
    async with opened(tmp_path) as (saver, store, saying):
        shop = Shop(saver, store)
        await shop.say("a", "Hello.", home="12 Zebracake Street", likes={"zebracake": "with cream", "tea": "black"})
        await shop.say("b", "Hello.", likes={"scones": "with zebracake"}, visits={"$add": 1})
        await shop.say("c", "Hello.", likes={"smell of zebracake": "in the morning"})
        before = await shop.say("b", "Hello again.")
        assert before["home"] == "12 Zebracake Street"
        with pytest.raises(ModelError):
            await shop.say("d", "Hello.", fails=True)
        assert saying()
        await forget(store, "ann", words="zebracake", checkpointer=saver)
        assert saying() == []
        after = {
            "version": 1,
            "home": "12 [forgotten] Street",
            "likes": {"tea": "black", "scones": "with [forgotten]", "smell of [forgotten]": "in the morning"},
            "visits": 1,
        }
        for thread in ("a", "b", "c", "d", "new"):
            assert await shop.say(thread, "Good day.") == after
        after["likes"]["jam"] = "red"
        assert await shop.say("a", "Good day.", likes={"jam": "red"}) == after
        assert await shop.say("c", "Good day.") == after
        assert saying() == []


async def test_a_name_of_a_field_is_refused_and_nothing_is_changed(tmp_path):
    async with in_files(tmp_path) as (saver, store, _):
        shop = Shop(saver, store)
        page = await shop.say("a", "Hello.", likes={"visits": "of friends"}, home="Oslo")
        with pytest.raises(ForgettingError, match="part of 'visits', which the game itself is built on"):
            await forget(store, "ann", words="visits", checkpointer=saver)
        assert await shop.say("b", "Hello.") == page
