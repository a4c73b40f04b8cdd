"""Random sequences of what users do, against a dictionary."""

import shutil
import tempfile
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from questbook import FaissStore, HashEmbeddings
from questbook.memory.store import vectors

NAMESPACES = [("a",), ("a", "b"), ("ab",), ("a", "b", "c"), ("z*",)]
WORDS = ["dragon", "egg", "knight", "hill", "gold", "wyvern", "inn", "sword"]
keys = st.sampled_from(["k0", "k1", "k2", "", "ключ", "a.b", "'; --"])
texts = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join)
spaces = st.sampled_from(NAMESPACES)


class Model(RuleBasedStateMachine):
    """One file, two stores on it as two processes would have, and a dictionary that knows what is right."""

    def __init__(self):
        super().__init__()
        self.home = Path(tempfile.mkdtemp())
        self.truth = {}
        self.dims = 32
        self.worth, vectors.SNAPSHOT_VECTORS = vectors.SNAPSHOT_VECTORS, 3
        self.dead, vectors.FEW_DEAD = vectors.FEW_DEAD, 2
        self.stores = [self.opened(), self.opened()]

    def opened(self):
        index = {"embed": HashEmbeddings(self.dims), "fields": ["text"]}
        return FaissStore.open(self.home / "s.db", index, synchronous="normal", cache_bytes=20_000)

    def teardown(self):
        for store in self.stores:
            store.close()
        vectors.SNAPSHOT_VECTORS, vectors.FEW_DEAD = self.worth, self.dead
        shutil.rmtree(self.home)

    @initialize()
    def begin(self):
        self.stores[0].put(("a",), "k0", {"text": "dragon egg", "n": 0})
        self.truth[("a",), "k0"] = {"text": "dragon egg", "n": 0}

    @rule(who=st.integers(0, 1), space=spaces, key=keys, text=texts, n=st.integers(0, 3))
    def put(self, who, space, key, text, n):
        value = {"text": text, "n": n}
        self.stores[who].put(space, key, value)
        self.truth[space, key] = value

    @rule(who=st.integers(0, 1), space=spaces, key=keys)
    def put_unindexed(self, who, space, key):
        self.stores[who].put(space, key, {"n": 9}, index=False)
        self.truth[space, key] = {"n": 9}

    @rule(who=st.integers(0, 1), space=spaces, key=keys)
    def delete(self, who, space, key):
        self.stores[who].delete(space, key)
        self.truth.pop((space, key), None)

    @rule(who=st.integers(0, 1))
    def reopen(self, who):
        self.stores[who].close()
        self.stores[who] = self.opened()

    @precondition(lambda self: len(self.truth) > 1)
    @rule()
    def change_the_embedder(self):
        for store in self.stores:
            store.close()
        self.dims = 48 if self.dims == 32 else 32
        self.stores = [self.opened(), self.opened()]

    @rule(who=st.integers(0, 1), space=spaces, key=keys)
    def get(self, who, space, key):
        item = self.stores[who].get(space, key)
        assert (item and item.value) == self.truth.get((space, key))

    @rule(who=st.integers(0, 1), prefix=st.sampled_from([*NAMESPACES, ()]), query=texts, n=st.integers(0, 3))
    def search(self, who, prefix, query, n):
        below = {place: value for place, value in self.truth.items() if place[0][: len(prefix)] == prefix}
        found = self.stores[who].search(prefix, query=query, limit=100)
        assert {(item.namespace, item.key): item.value for item in found} == below
        assert len(found) == len(below)
        embed = HashEmbeddings(self.dims)
        asked = embed.embed_query(query)
        for item in found:
            if "text" in item.value:
                cosine = sum(x * y for x, y in zip(asked, embed.embed_query(item.value["text"]), strict=True))
                assert abs(item.score - cosine) < 1e-4
                words = set(query.split()) & set(item.value["text"].split())
                if len(words) == len(set(query.split()) | set(item.value["text"].split())):
                    assert item.score > 0.5
            else:
                assert item.score is None
        pages = [
            self.stores[who].search(prefix, query=query, limit=2, offset=start) for start in range(0, len(found), 2)
        ]
        assert [i.key for page in pages for i in page] == [i.key for i in found]
        kept = self.stores[who].search(prefix, query=query, filter={"n": n}, limit=100)
        # What a filter leaves out weighs nothing, so the order may be another: maxima and rarity are of what is left.
        assert {(i.namespace, i.key): i.score for i in kept} == {
            (i.namespace, i.key): i.score for i in found if i.value["n"] == n
        }

    @invariant()
    def namespaces_are_those_with_items(self):
        for store in self.stores:
            assert store.list_namespaces() == sorted({space for space, _ in self.truth})


def example_settings(examples):
    return settings(
        max_examples=examples, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
    )


TestModel = Model.TestCase
TestModel.settings = example_settings(15)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_long_random_sequences_agree_with_a_dictionary():
    run_state_machine_as_test(Model, settings=example_settings(100))
