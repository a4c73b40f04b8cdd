"""Writes and reads that work on every store: two records of one text, the order of writes, short pages."""

import asyncio

import pytest
from faulty_stores import Broken, Recording
from langgraph.store.base import PutOp
from langgraph.store.memory import InMemoryStore

from questbook import FaissStore, HashEmbeddings, remember
from questbook.memory.errors import StoreConfigError, StoreUnavailableError
from questbook.memory.store.any_store import (
    JointReads,
    get_all,
    get_values,
    items_under,
    newest_items,
    put_all,
    search_all,
    timed,
)

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


async def test_fields_that_say_the_same_in_one_record_or_in_several_are_all_remembered():
    index = INDEX | {"fields": ["player", "reply"]}
    store = Recording(index=index)
    said = [("Hello!", "Hello!"), ("Go on.", "The sun rises."), ("Go on.", "Hello!"), ("Wait.", "Hello!")]
    await put_all(
        store, [PutOp(SPACE, str(n), dict(zip(index["fields"], each, strict=True))) for n, each in enumerate(said)]
    )
    assert [len(batch) for batch in store.batches] == [2, 1, 1]
    for query, keys in [("Hello!", {"0", "2", "3"}), ("Go on.", {"1", "2"}), ("The sun rises.", {"1"})]:
        found = await store.asearch(SPACE, query=query)
        assert {item.key for item in found if item.score > 0.99} == keys


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


async def test_what_another_store_gives_in_short_pages_is_gone_through_to_the_end():
    class Short(InMemoryStore):
        async def abatch(self, ops):
            return await super().abatch([op._replace(limit=min(op.limit, 100)) for op in ops])

    store = Short()
    store.batch([PutOp(SPACE, str(number), {"n": number}) for number in range(250)])
    assert len([item async for item in items_under(store, SPACE)]) == 250


@pytest.mark.parametrize(("items", "pages"), [(0, 1), (499, 1), (500, 2), (1_200, 3)])
async def test_a_short_page_of_our_store_is_the_last(path, items, pages):
    asked = []

    class Asked(FaissStore):
        async def abatch(self, ops):
            asked.append(ops := list(ops))
            return await super().abatch(ops)

    async with Asked.open(path) as store:
        store.batch([PutOp(SPACE, str(number), {"n": number}) for number in range(items)])
        assert len([item async for item in items_under(store, SPACE)]) == items
        assert len(asked) == pages


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


async def test_a_batch_begins_only_where_a_text_comes_again():
    store = Recording(index=INDEX)
    await put_all(store, puts("a", "b", "a", "b", "c"))
    assert [[op.value["text"] for op in batch] for batch in store.batches] == [["a", "b"], ["a", "b", "c"]]
    store.batches.clear()
    await put_all(store, [])
    assert store.batches == []


async def test_what_no_database_takes_is_left_out_of_the_values():
    store = Recording()
    await put_all(
        store, [PutOp(SPACE, "k", {"text": "a\0b\ud800c", "deep": [{"x": "\0"}]}), PutOp(SPACE, "gone", None)]
    )
    assert (await store.aget(SPACE, "k")).value == {"text": "abc", "deep": [{"x": ""}]}


class Indexed(Recording):
    """A store that says what it indexes, and does not."""

    def __init__(self, config, filters_any=False):
        super().__init__()
        self.index_config, self.filters_any = config, filters_any


@pytest.mark.parametrize(
    ("config", "ours", "indexes"),
    [
        ({"fields": ["$"]}, False, ["text"]), ({}, False, ["text"]), (None, False, ["text"]),
        ({"fields": None}, True, ["text"]),
        ({"fields": ["$"]}, True, ["text"]), ({"fields": ["text"]}, False, ["text"]),
        ({"fields": ["text"]}, True, None),
        ({"fields": ["text", "note"]}, False, None), ({"fields": ["note"]}, True, None),
    ],
)  # fmt: skip
async def test_where_whole_values_are_indexed_of_a_record_only_its_text_is(config, ours, indexes):
    store = Indexed(config, ours)
    others = [PutOp(SPACE, "own", {"text": "y"}, index=["note"]), PutOp(SPACE, "none", {"text": "z"}, index=False)]
    await put_all(
        store, [PutOp(SPACE, "k", {"text": "x"}), *others, PutOp(SPACE, "n", {"n": 1}), PutOp(SPACE, "t", {"text": 7})]
    )
    assert [op.index for op in store.batches[0]] == [indexes, ["note"], False, None, None]


async def test_the_newest_records_come_oldest_first_each_once():
    store = InMemoryStore()
    told = [
        ("d", {"order": "2", "at": "1"}),
        ("a", {"order": "3"}),
        ("c", {"order": "1"}),
        ("b", {"order": "2", "at": "2"}),
        ("e", {}),
    ]
    for key, value in told:
        await store.aput(SPACE, key, value | {"kind": "x" if key in "ac" else "y"})
    assert [item.key for item in await newest_items(store, SPACE, [{}])] == ["e", "c", "d", "b", "a"]
    assert [item.key for item in await newest_items(store, SPACE, [{}], 2)] == ["b", "a"]
    assert [item.key for item in await newest_items(store, SPACE, [{"kind": "x"}])] == ["c", "a"]
    both = await newest_items(store, SPACE, [{"kind": "x"}, {"kind": "y"}, {}])
    assert [item.key for item in both] == ["e", "c", "d", "b", "a"]
    await store.aput((*SPACE, "deeper"), "f", {"order": "4"})
    assert [item.key for item in await newest_items(store, SPACE, [{}], 1)] == ["a"], "of the namespace itself"


async def test_reading_all_and_reading_records_starts_no_time_to_live_again():
    store = Recording()
    await store.aput(SPACE, "a", {"text": "x"})
    store.batches.clear()
    await get_values(store, [(SPACE, "a"), (SPACE, "b")])
    await newest_items(store, SPACE, [{}])
    [item async for item in items_under(store, SPACE, {"text": "x"}, refresh_ttl=True)]
    [item async for item in items_under(store, SPACE)]
    kept = [(op.refresh_ttl, getattr(op, "filter", None)) for batch in store.batches for op in batch]
    assert kept[:2] == [(False, None)] * 2
    assert kept[2:4] == [(False, None)] * 2, "a page, and an empty one"
    assert kept[4:6] == [(True, {"text": "x"})] * 2
    assert await get_values(store, [(SPACE, "a"), (SPACE, "b")]) == {(SPACE, "a"): {"text": "x"}}
    store.batches.clear()
    assert (await get_all(store, []), await search_all(store, []), await get_values(store, [])) == ([], [], {})
    assert store.batches == []


async def test_reads_of_one_moment_are_one_batch_and_those_that_come_later_another():
    store = Recording(index=INDEX)
    await store.aput(SPACE, "a", {"text": "the mill"})
    store.batches.clear()
    reads = JointReads.of(store)

    async def twice(key):
        return [await reads.aget(SPACE, key), await reads.aget(SPACE, key)]

    first, second, found = await asyncio.gather(twice("a"), twice("b"), reads.asearch(SPACE))
    assert [item and item.key for item in (*first, *second)] == ["a", "a", None, None]
    assert [item.key for item in found] == ["a"]
    assert [len(batch) for batch in store.batches] == [3, 2]
    assert reads.index_config is store.index_config
    assert reads.get(SPACE, "a").key == "a"


class Slow(InMemoryStore):
    """Never answers an async call, or fails as it is told."""

    error = None

    async def abatch(self, ops):
        if self.error is not None:
            raise self.error
        await asyncio.sleep(60)


async def test_a_store_that_does_not_answer_in_time_is_named():
    store = Slow()
    limited = timed(store, 0.01)
    says = (
        r"^Slow did not answer within 0\.01 seconds \(store_timeout\)\. Its database does not answer, or needs longer"
    )
    with pytest.raises(StoreUnavailableError, match=says):
        await limited.aget(SPACE, "a")
    store.error = TimeoutError("its own")
    with pytest.raises(TimeoutError, match="its own"):
        await limited.aget(SPACE, "a")
    limited.put(SPACE, "a", {"text": "x"})
    assert (limited.get(SPACE, "a").value, limited.supports_ttl) == ({"text": "x"}, store.supports_ttl)


async def test_a_store_with_a_time_limit_keeps_its_time_to_live(path):
    with FaissStore.open(path, None, ttl={"default_ttl": 0, "omit_expired": True, "refresh_on_read": False}) as store:
        await timed(store, 9).aput(SPACE, "a", {"text": "x"})
        assert await timed(store, 9).aget(SPACE, "a") is None


def test_what_is_no_store_is_refused():
    assert timed(None, 1) is None
    with pytest.raises(
        StoreConfigError, match=r"^store: got 7; expected a store, such as InMemoryStore\(\), or None\.$"
    ):
        timed(7, 1)
