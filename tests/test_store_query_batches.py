"""Queries of one batch are compared in one pass, and each finds what it finds alone."""

import random

import faiss
import numpy as np
import pytest
from langgraph.store.base import PutOp, SearchOp
from letters import Letters

from questbook import FaissStore
from questbook.memory.store.vectors import compare_exactly

SPACE = ("campaign", "facts")


@pytest.mark.parametrize("count", [0, 1, 511, 512, 513, 1_700])
def test_several_queries_have_the_cosines_of_each_to_the_last_bit(count):
    numbers = np.random.default_rng(count)
    index = faiss.IndexFlatIP(24)
    if count:
        index.add(numbers.standard_normal((count, 24), dtype=np.float32))
    queries = [numbers.standard_normal(24, dtype=np.float32) for _ in range(3)]
    for query, scores in zip(queries, compare_exactly(index, queries), strict=True):
        assert scores.tolist() == compare_exactly(index, [query])[0].tolist()
        assert len(scores) == count


def test_searches_of_one_batch_find_what_each_finds_alone(tmp_path):
    said = random.Random(2)
    words = ["dragon", "harbour", "lantern", "oath", "ember", "tower", "silver", "wolf"]
    values = [{"text": " ".join(said.choices(words, k=5)), "n": n % 2} for n in range(700)]
    index = {"embed": Letters(), "dims": Letters.dims, "fields": ["text"]}
    with FaissStore.open(tmp_path / "store.db", index) as store:
        store.batch([PutOp((*SPACE, "deep")[: 2 + (n % 5 == 0)], str(n), value) for n, value in enumerate(values)])
        ops = [
            SearchOp(space, query=query, filter=only, limit=15)
            for space in (SPACE, (*SPACE, "deep"), ())
            for query in ("the dragon's oath", "a silver tower", None)
            for only in (None, {"n": 1})
        ]
        found = store.batch([*ops, PutOp(SPACE, "later", {"text": "the dragon's oath"})])[:-1]
        store.delete(SPACE, "later")
        assert found == [store.batch([op])[0] for op in ops]
