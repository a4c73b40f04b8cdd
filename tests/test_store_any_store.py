"""Writes of several records at once: every store takes them, also two of one text."""

import pytest
from fact_play import play, stored
from faulty_stores import Refusing
from langgraph.store.base import PutOp
from langgraph.store.memory import InMemoryStore

from questbook import FaissStore, HashEmbeddings
from questbook.memory.lore.collection import add_lore
from questbook.memory.store.any_store import put_all
from questbook.memory.timeline.namespaces import campaign_namespace
from questbook.memory.timeline.timeline import remember

SPACE = ("u", "c", "facts")
EMBED = HashEmbeddings()
INDEX = {"embed": EMBED, "dims": EMBED.dims, "fields": ["text"]}


class Counting(InMemoryStore):
    batches = 0

    async def abatch(self, ops):
        self.batches += 1
        return await super().abatch(ops)


async def test_two_records_of_one_text_are_both_written_to_a_store_that_refuses_them_together():
    store = Counting(index=INDEX)
    puts = [PutOp(SPACE, str(n), {"text": text}) for n, text in enumerate(["the mill", "the ford", "the mill"])]
    with pytest.raises(ValueError, match="does not match"):
        await store.abatch(puts)
    store.batches = 0
    await put_all(store, [*puts, PutOp(SPACE, "mark", {"text": "the mill"}, index=False)])
    assert store.batches == 2
    assert {item.key for item in await store.asearch(SPACE)} == {"0", "1", "2", "mark"}


async def test_different_texts_are_one_batch_and_a_faiss_store_always_takes_one(tmp_path):
    store = Counting(index=INDEX)
    await put_all(store, [PutOp(SPACE, str(n), {"text": f"the mill {n}"}) for n in range(5)])
    assert store.batches == 1
    async with FaissStore.open(tmp_path / "store.db") as faiss:
        await put_all(faiss, [PutOp(SPACE, str(n), {"text": "the mill"}) for n in range(3)])
        assert len(await faiss.asearch(SPACE, query="mill")) == 3


async def test_turns_with_the_same_words_that_were_late_are_all_remembered():
    store = InMemoryStore(index=INDEX)
    await remember(store, SPACE, ["I wait.\nYou wait."] * 3, turn=1, timeline=[("a", 3)], claims=("u", "c", "claims"))
    assert {item.value["turn"] for item in await store.asearch(SPACE)} == {1, 2, 3}


async def test_a_file_that_says_a_thing_twice_goes_in(tmp_path):
    store = InMemoryStore(index=INDEX)
    (tmp_path / "rumours.csv").write_text("who,what\nOda,the mill grinds bones\nOda,the mill grinds bones\n")
    (done,) = [one async for one in add_lore(store, "u", "c", [tmp_path])]
    assert (done.outcome, done.file.pieces) == ("added", 2)
    assert len(await store.asearch(campaign_namespace("u", "c", "lore"), query="bones")) == 2


async def test_records_keep_their_order_and_what_is_deleted_starts_no_batch():
    store = Counting(index=INDEX)
    await put_all(store, [PutOp(SPACE, "a", {"text": "the mill"})])
    store.batches = 0
    await put_all(store, [PutOp(SPACE, "a", None), PutOp(SPACE, "b", None), PutOp(SPACE, "c", {"text": "the mill"})])
    assert store.batches == 1
    await put_all(
        store,
        [PutOp(SPACE, "c", {"text": "first"}), PutOp(SPACE, "d", {"text": "x"}), PutOp(SPACE, "c", {"text": "x"})],
    )
    assert (await store.aget(SPACE, "c")).value == {"text": "x"}


async def test_what_is_told_twice_between_two_failures_is_written_on_a_store_that_refuses_texts_that_are_alike(game):
    game.keep_in(Refusing(index=INDEX))
    await game.begin()
    ford = {"text": "Goran's home is the ford.", "subject": "Goran", "attribute": "home", "value": "ford"}
    mill = {"text": "Goran's home is the mill.", "subject": "Goran", "attribute": "home", "value": "mill"}
    game.store.refused = "fact"
    await play(game, "I ask.", ford, reply="Goran's home is the ford.")
    await play(game, "I ask Oda.", mill, reply="Goran's home is the mill.")
    game.store.refused = ""
    await play(game, "I ask again.", ford, reply="Goran's home is the ford.")
    assert [value["value"] for value in (await stored(game)).values()] == ["ford", "mill", "ford"]
    assert game.values["facts"] == []
