"""Writes and reads that work on every store: two records of one text, the order of writes, short pages."""

import asyncio

import pytest
from faulty_stores import Broken, Recording
from langgraph.store.base import PutOp
from langgraph.store.memory import InMemoryStore

from questbook import FaissStore, HashEmbeddings, remember
from questbook.memory.store.any_store import JointReads, items_under, put_all

SPACE = ("u", "c", "facts")
EMBED = HashEmbeddings()
INDEX = {"embed": EMBED, "dims": EMBED.dims, "fields": ["text"]}


def puts(*texts):
    return [PutOp(SPACE, str(n), {"text": text}) for n, text in enumerate(texts)]


async def test_two_records_of_one_text_are_two_batches_where_a_store_refuses_them_together(path):
    store = Recording(index=INDEX)
    with pytest.raises(ValueError, match="does not match"):
        await store.abatch(puts("the mill", "the ford", "the mill"))
    mark = PutOp(SPACE, "mark", {"text": "the mill"}, index=False)
    for texts, batches in [(["the mill", "the ford", "the mill"], 2), (["a mill", "a ford", "a lake"], 1)]:
        store.batches.clear()
        await put_all(store, [*puts(*texts), mark])
        assert len(store.batches) == batches
        assert {item.key for item in await store.asearch(SPACE)} == {"0", "1", "2", "mark"}
    async with FaissStore.open(path) as faiss:
        await put_all(faiss, puts("the mill", "the mill", "the mill"))
        assert len(await faiss.asearch(SPACE, query="mill")) == 3


async def test_turns_with_the_same_words_that_were_late_are_all_remembered():
    store = InMemoryStore(index=INDEX)
    await remember(store, SPACE, ["I wait.\nYou wait."] * 3, turn=1, timeline=[("a", 3)], claims=("u", "c", "claims"))
    assert {item.value["turn"] for item in await store.asearch(SPACE)} == {1, 2, 3}


async def test_records_keep_their_order_and_what_is_deleted_starts_no_batch():
    store = Recording(index=INDEX)
    await put_all(store, [PutOp(SPACE, "a", None), PutOp(SPACE, "b", None), PutOp(SPACE, "c", {"text": "the mill"})])
    assert len(store.batches) == 1
    await put_all(store, [PutOp(SPACE, key, {"text": text}) for key, text in [("c", "first"), ("d", "x"), ("c", "x")]])
    assert (await store.aget(SPACE, "c")).value == {"text": "x"}


async def test_what_a_store_gives_in_short_pages_is_gone_through_to_the_end(path):
    class Short(FaissStore):
        async def abatch(self, ops):
            return await super().abatch([op._replace(limit=min(op.limit, 100)) for op in ops])

    async with Short.open(path) as store:
        store.batch([PutOp(SPACE, str(number), {"n": number}) for number in range(250)])
        assert len([item async for item in items_under(store, SPACE)]) == 250


@pytest.mark.parametrize("error", [None, ConnectionError("the line went dead")])
async def test_of_reads_made_together_one_that_was_cancelled_leaves_the_others_their_answer(error):
    store = Broken()
    await store.aput(SPACE, "a", {"text": "the mill"})
    store.error = error
    reads = JointReads(store)
    cancelled, other = (asyncio.create_task(reads.aget(SPACE, "a")) for _ in range(2))
    await asyncio.sleep(0)
    cancelled.cancel()
    [answer] = await asyncio.wait_for(asyncio.gather(other, return_exceptions=True), 5)
    assert answer is error if error else answer.value == {"text": "the mill"}
