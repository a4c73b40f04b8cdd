"""What one caller asks for, cancels or gets wrong is nobody else's matter, in reads, embeddings and notes."""

import asyncio
import math
import os
import signal
import time

import pytest
from answering import Answering
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.embeddings import Embeddings
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.base import GetOp, PutOp
from langgraph.store.memory import InMemoryStore
from timing import cpu_seconds

from questbook import FactNotes, FaissStore, Query, TimelineMemoryMiddleware, recall
from questbook.memory.facts.supersession import replace_superseded
from questbook.memory.facts.writing import note_facts
from questbook.memory.recall.recall import _Question, recall_sync
from questbook.memory.store.any_store import JointReads, items_under
from questbook.memory.timeline.timeline import remember_sync

INDEX = {"embed": "hash", "fields": ["text"]}
LINE = [("main", 3)]


class Numbers(Embeddings):
    identity = "numbers"

    def embed_documents(self, texts):
        return [[math.nan if "bad" in text else 1.0 + len(text), 2.0] for text in texts]

    def embed_query(self, text):
        return self.embed_documents([text])[0]


async def test_a_vector_that_is_none_fails_its_own_writer_alone():
    async with FaissStore(":memory:", index={"embed": Numbers(), "fields": ["text"]}) as store:
        writes = (store.aput((user,), "k", {"text": text}) for user, text in (("ann", "good"), ("bob", "bad")))
        ann, bob = await asyncio.gather(*writes, return_exceptions=True)
        assert ann is None
        assert isinstance(bob, Exception)
        assert await store.aget(("ann",), "k")


async def test_after_a_cancelled_write_others_write_on():
    async with FaissStore(":memory:", index={"embed": Numbers(), "fields": ["text"]}) as store:
        first = asyncio.create_task(store.aput(("a",), "1", {"text": "one"}))
        await asyncio.sleep(0)
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
        await asyncio.gather(first, return_exceptions=True)
        await asyncio.wait_for(store.aput(("a",), "2", {"text": "two"}), 5)
        assert await store.aget(("a",), "2")


async def test_a_joined_read_that_is_cancelled_keeps_nobody_waiting():
    class Cancelled(InMemoryStore):
        async def abatch(self, ops):
            raise asyncio.CancelledError

    reads = JointReads(Cancelled())
    for _ in range(2):
        reading = asyncio.ensure_future(reads.abatch([GetOp(("a",), "b")]))
        done, _ = await asyncio.wait([reading], timeout=5)
        assert done
    reads.store = InMemoryStore()
    assert await asyncio.wait_for(reads.abatch([GetOp(("a",), "b")]), 5) == [None]


async def test_recall_leaves_times_to_live_as_the_store_is_set(tmp_path):
    for refreshes in (False, True):
        ttl = {"default_ttl": 60, "refresh_on_read": refreshes}
        async with FaissStore(tmp_path / f"{refreshes}.db", index=INDEX, ttl=ttl) as store:
            await store.aput(("u",), "k", {"text": "The harbour is blue."})
            expiry = await expiry_of(store)
            await asyncio.sleep(0.05)
            assert await recall(store, ("u",), "Where is the harbour?")
            assert (await expiry_of(store) != expiry) is refreshes


async def expiry_of(store):
    with store._database.reading() as connection:
        return connection.execute("SELECT expires_at FROM items").fetchone()


async def test_many_items_are_listed_in_pages_that_grow():
    class Paged(InMemoryStore):
        read = 0

        async def asearch(self, *args, limit=10, offset=0, **kwargs):
            self.read += offset + limit
            return await super().asearch(*args, limit=limit, offset=offset, **kwargs)

    store = Paged()
    await store.abatch([PutOp(("a",), str(number), {"n": number}) for number in range(20_000)])
    assert len([item async for item in items_under(store, ("a",))]) == 20_000
    assert store.read < 10 * 20_000, "else it reads what lies before each page again"


def test_a_namespace_of_many_items_and_few_vectors_is_searched():
    for vectors in (0, 5):
        with FaissStore.open(":memory:", {"embed": Numbers(), "fields": ["text"]}, exact_limit=100) as store:
            for n in range(300):
                store.put(("u", "log"), str(n), {"text": f"entry {n}"}, index=None if n < vectors else False)
            store.put(("u", "notes"), "k", {"text": "the harbour"})
            assert "k" in [item.key for item in store.search(("u",), query="the harbour")]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_sync_calls_work_in_a_forked_child():
    store = InMemoryStore()
    remember_sync(store, ("u",), "The harbour is blue.")
    child = os.fork()
    if not child:
        os._exit(0 if recall_sync(store, ("u",), "harbour") else 1)
    for _ in range(100):
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            break
        time.sleep(0.1)
    else:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert done
    assert status == 0


def test_a_sweeper_that_was_cancelled_starts_again_and_a_second_one_is_the_first(tmp_path):
    with FaissStore.open(tmp_path / "store.db") as store:
        first = store.start_ttl_sweeper(60)
        assert store.start_ttl_sweeper(60) is first
        first.cancel()
        again = store.start_ttl_sweeper(60)
        assert store._sweeper._thread.is_alive()
        assert store.stop_ttl_sweeper(30)
        assert again.done()


async def test_what_takes_a_records_place_is_shown_to_those_alone_who_may_see_it():
    store = InMemoryStore()
    at_home = {"subject": "Goran", "attribute": "home"}
    await note_facts(
        store, ("f",), [at_home | {"text": "Goran lives at the mill.", "value": "the mill"}], timeline=[("main", 1)]
    )
    hidden = {"text": "Goran hides in the cave.", "value": "the cave", "known_by": ["Oda"]}
    await note_facts(store, ("f",), [at_home | hidden], timeline=[("main", 2)])

    async def refine(records):
        return await replace_superseded(store, records, ("f",), timeline=LINE)

    asked = Query("Where does Goran live?", timeline=LINE, refine=refine)
    assert [record.text for record in await recall(store, ("f",), asked)] == []
    assert [
        r.text for r in await recall(store, ("f",), Query(asked.text, timeline=LINE, refine=refine, viewer=["Oda"]))
    ]


def test_the_end_of_time_and_long_blanks_are_asked_for_in_no_time():
    store = InMemoryStore()
    remember_sync(store, ("u",), "The harbour is blue.")
    assert recall_sync(store, ("u",), "What will happen in the harbour on 1 December 9999?")
    asked = _Question.of(Query("We walked a long way. " * 200 + "What did we talk about yesterday?"))
    assert asked.time.start is not None, "a question stands at the end"
    question = "On 3 May" + " " * 20_000 + "x, haben wir " * 2000
    assert cpu_seconds(lambda: recall_sync(InMemoryStore(), ("u",), question), enough=1.0) < 1.0


async def test_the_model_that_answered_a_thread_notes_it_whatever_ids_messages_have():
    models, bob_is_answered = {"ann": Answering(), "bob": Answering()}, asyncio.Event()

    class OneEach(AgentMiddleware):
        async def awrap_model_call(self, request, handler):
            user = request.runtime.context["user"]
            response = await handler(request.override(model=models[user]))
            await bob_is_answered.wait() if user == "ann" else bob_is_answered.set()
            return response

    memory = TimelineMemoryMiddleware(facts=FactNotes())
    saver, store = InMemorySaver(), InMemoryStore()
    agent = create_agent(
        models["ann"], [], middleware=[OneEach(), memory], checkpointer=saver, store=store, context_schema=dict
    )

    def say(user, text):
        thread = {"configurable": {"thread_id": user}}
        return agent.ainvoke({"messages": [HumanMessage(text, id="1")]}, thread, context={"user": user})

    await asyncio.gather(say("ann", "My PIN is 4711."), say("bob", "Hello."))
    assert "4711" not in str(models["bob"].prompts)
    assert "4711" in str(models["ann"].prompts[1:])
