"""`HybridPostgresStore`: the filters of `FaissStore`, words beside vectors, and texts that no one expects."""

import asyncio
import math
import random
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.embeddings import Embeddings
from langgraph.store.base import GetOp, ListNamespacesOp, PutOp, SearchOp
from postgres import end_sessions, execute, migrated_database
from statements import Statements
from stores import keys
from test_store_filters import WRONG

from questbook import FaissStore, HashEmbeddings
from questbook.graphs.local import postgres_home
from questbook.graphs.local.homes import home_at
from questbook.memory.errors import BadQueryError, StoreError, StoreUnavailableError
from questbook.memory.store.filters import check_filter, matches

slow = pytestmark = pytest.mark.slow  # they need a PostgreSQL
EMBED = HashEmbeddings()
INDEX = {"embed": EMBED, "dims": EMBED.dims, "fields": ["text"]}


@pytest.fixture
def home():
    return home_at(migrated_database(), "here")


@pytest.fixture
async def store(home):
    async with home.open_store("hash") as store:
        yield store


async def put(store, *values, space=("ann", "isle")):
    await store.abatch([PutOp(space, f"k{number:03}", value) for number, value in enumerate(values)])


async def found(store, query=None, space=("ann", "isle"), **named):
    return keys(await store.asearch(space, query=query, **{"limit": 200, **named}))


# Filters: what `matches` says of each value.

SCALARS = ["", "a", "ab", "b", "é", "日本", "10", "9", "1e1", " 9", "nan", "-0", 9, 10, 9.5, -1, 0, 2**60, 2**60 + 1]
SCALARS += [None]
ANYTHING = [*SCALARS, [], [1, "a"], ["a"], {}, {"x": 1}, {"x": {"y": "a"}}, {"x": None}, {"x": [1]}]
KEYS = ["p", "q", "p.x", "p.x.y", "branch", "turn", "no", "q.x", "'", '"', "%s", "a b", "{}"]
OPERATORS = ["$eq", "$ne", "$gt", "$gte", "$lt", "$lte"]


def _conditions():
    operators = st.dictionaries(st.sampled_from(OPERATORS), st.sampled_from(ANYTHING), min_size=1, max_size=2)
    operators |= st.sampled_from([{"$gt": -math.inf}, {"$lte": math.inf}, {"$gt": math.nan}, {"$lt": True}])
    inner = st.dictionaries(st.sampled_from(["x", "y", "x.y"]), st.sampled_from(SCALARS) | operators, max_size=2)
    return st.sampled_from(ANYTHING) | operators | inner


def _filters():
    plain = st.dictionaries(st.sampled_from(KEYS), _conditions(), max_size=3)
    several = st.builds(
        lambda join, filters: {join: filters}, st.sampled_from(["$or", "$and"]), st.lists(plain, max_size=3)
    )
    texts = st.dictionaries(
        st.sampled_from(["a", "9", "1e1", "no"]), st.sampled_from(["", "a", "b", "日本"]), max_size=3
    )
    several |= st.builds(
        lambda name, order, last: {"$through": [name, order, last]}, *[st.sampled_from(KEYS)] * 2, texts
    )
    joined = several | st.lists(several, max_size=2).map(lambda filters: {"$and": filters})
    return plain | st.builds(lambda one, other: one | other, plain, joined)


def _values(count=120):
    said = random.Random(1)
    return [
        {name: said.choice(ANYTHING) for name in KEYS if said.random() < 0.4} | {"text": said.choice("abc")}
        for _ in range(count)
    ]


@pytest.mark.slow
async def test_a_filter_allows_what_matches_says(home):
    values = _values()
    async with home.open_store("hash") as store:
        await put(store, *values)
        named = {f"k{number:03}": value for number, value in enumerate(values)}
        asked = []

        @settings(max_examples=150)
        @given(_filters())
        def collect(wanted):
            check_filter(wanted)
            asked.append(wanted)

        await asyncio.to_thread(collect)
        assert len(asked) > 100
        answers = await store.abatch([SearchOp(("ann", "isle"), wanted, 200) for wanted in asked])
        for wanted, answer in zip(asked, answers, strict=True):
            expected = [key for key, value in named.items() if matches(value, wanted)]
            assert sorted(keys(answer)) == expected, wanted
        for wanted in asked[::10]:
            assert await found(store, "a", filter=wanted) != [] or not any(matches(v, wanted) for v in values), wanted


async def test_a_filter_that_is_none_is_refused(store):
    for wrong in WRONG:
        for query in (None, "a"):
            with pytest.raises(BadQueryError):
                await store.asearch(("ann", "isle"), query=query, filter=wrong)


# Words and vectors.


async def test_words_count_beside_vectors(store):
    texts = ["The heron stands in the reeds.", "A gull cries.", "Herons, herons, herons.", "The lamp is dark.", "x"]
    await put(store, *({"text": text} for text in texts))
    assert (await found(store, "Where did the heron stand?"))[:2] in (["k000", "k002"], ["k002", "k000"])
    assert (await found(store, "gulls"))[0] == "k001", "a form of the word"
    assert len(await found(store, "nothing of this kind")) == 5, "what has no word of it comes after"


async def test_it_ranks_as_ours_does(store, tmp_path):
    said = random.Random(3)
    words = ["heron", "gull", "lamp", "reef", "storm", "boat", "gate", "keeper", "moon", "oil", "rope", "tide"]
    values = [{"text": " ".join(said.choices(words, k=said.randint(3, 25)))} for _ in range(80)]
    await put(store, *values)
    with FaissStore.open(tmp_path / "m.db", INDEX) as ours:
        ours.batch([PutOp(("ann", "isle"), f"k{number:03}", value) for number, value in enumerate(values)])
        common = 0
        for _ in range(20):
            query = " ".join(said.choices(words, k=3))
            there = await found(store, query, limit=10)
            common += len({*there} & {*keys(ours.search(("ann", "isle"), query=query, limit=10))})
        assert common > 160, "of 200"


class Odd(Embeddings):
    """Vectors that are zero, or of whole numbers."""

    dims = 512

    def embed_documents(self, texts):
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text):
        return [int(text != "nothing"), *[0] * 511]


async def test_vectors_of_zeros_and_whole_numbers_are_written_and_found(home, monkeypatch):
    monkeypatch.setattr(postgres_home.PostgresHome, "_check_embedder", lambda *_: None)
    async with home.open_store(index={"embed": Odd(), "dims": 512, "fields": ["text"]}) as store:
        await put(store, {"text": "nothing"}, {"text": "heron"}, {"text": "nothing heron"})
        assert await found(store, "heron") == ["k001", "k002", "k000"]
        assert sorted(await found(store, "nothing")) == ["k000", "k001", "k002"]
        assert (await found(store, "nothing"))[-1] == "k001"
        for item in await store.asearch(("ann",), query="nothing"):
            assert item.score is None or not math.isnan(item.score)


QUESTIONS = [
    "'",
    "''",
    '"',
    "a & b | !c",
    "heron:*",
    "heron <-> gull",
    "\\",
    "\\'",
    "%s %(x)s {}",
    "(((",
    ":",
    "!",
    "?",
]
QUESTIONS += [
    "",
    " ",
    "the of and",
    "a\0b",
    "日本 🐉",
    "x" * 5000,
    "heron " * 20_000,
    "'; DROP TABLE store; --",
    "\ud800",
]


async def test_whatever_is_asked_finds_something(store):
    await put(store, {"text": "The heron stands."}, {"text": "Ein Kahn, d'accord: l'eau & <b>x</b>"})
    for question in QUESTIONS:
        try:
            assert len(await found(store, question)) == 2, question[:20]
        except StoreError as error:
            assert question == "\ud800", (question[:20], error)  # noqa: PT017
    assert execute(store_url(store), "SELECT count(*) FROM store") == [(2,)]


def store_url(store):
    return store.conn.conninfo


LONG = {
    "a megabyte": "heron " * 180_000,
    "a megabyte of words": " ".join(f"w{number * 2654435761 % 2**32:x}" for number in range(110_000)),
    "one long word": "x" * 1_000_000,
    "of eight bytes a word": "日本語 " * 100_000,
}


@slow
@pytest.mark.parametrize("name", LONG)
async def test_a_text_of_a_megabyte_is_kept_and_found(store, name):
    text = LONG[name]
    await put(store, {"text": text}, {"text": "a gull"})
    assert (await store.aget(("ann", "isle"), "k000")).value == {"text": text}
    assert len(await found(store, "heron")) == 2
    assert (await found(store, "gull"))[0] == "k001"
    assert sorted(await found(store, text[:3000])) == ["k000", "k001"]


@pytest.mark.parametrize("text", ["a\0b", {"deep": ["a\0b"]}, "\ud800"], ids=ascii)
async def test_what_postgresql_cannot_hold_is_refused_and_what_comes_with_it_is_not_written(store, text):
    with pytest.raises(StoreError):
        await put(store, {"text": "before"}, {"text": text} if isinstance(text, str) else text)
    assert await found(store) == []
    await put(store, {"text": "after"})
    assert await found(store) == ["k000"]


async def test_texts_that_are_none_and_items_without_vectors(store):
    await put(store, {"text": None}, {"text": 5}, {"text": ["a", "heron"]}, {"text": ""}, {"n": 1}, {"text": "heron"})
    await store.aput(("ann", "isle"), "without", {"text": "heron"}, index=False)
    assert len(await found(store)) == 7
    of_words = await found(store, "heron")
    assert of_words[0] in ("k002", "k005")
    assert "without" not in of_words


# Order, pages, times.


async def test_what_was_written_before_is_found_no_more_by_its_old_vector(store, home):
    await put(store, {"text": "the dragon sleeps"}, {"text": ["a heron", "a dragon"]}, {"text": "the dragon wakes"})
    await put(store, {"note": 1}, {"text": ["a heron"]}, {"text": "a mill"})
    await store.aput(("ann", "isle"), "k002", {"text": "the mill"}, index=False)
    assert await found(store, "dragon", limit=1) == ["k001"], "the others have no vector at all"
    assert await home._rows("SELECT key, count(*) AS n FROM store_vectors GROUP BY key") == [{"key": "k001", "n": 1}]


async def test_order_and_pages_hold(store):
    await put(store, *({"text": "heron" if number % 3 else "gull", "n": number} for number in range(30)))
    for query in (None, "heron"):
        whole = await found(store, query)
        assert len(whole) == 30
        pages = [await found(store, query, limit=7, offset=start) for start in range(0, 35, 7)]
        assert [key for page in pages for key in page] == whole
        assert await found(store, query, limit=0) == []
    assert await found(store) == [f"k{number:03}" for number in range(30)], "in the order in which they came"
    assert (await found(store, "heron"))[:20] == [f"k{number:03}" for number in range(30) if number % 3]
    await store.aput(("ann", "isle"), "k000", {"text": "gull", "n": 99})
    assert (await found(store))[0] == "k000", "what is written again stays where it was"


async def test_a_search_sees_its_place_alone(store):
    for space in (
        ("ann", "isle"),
        ("ann", "isle", "facts"),
        ("ann", "isle2"),
        ("ann", "is_e"),
        ("annie", "isle"),
        ("ann",),
    ):
        await store.aput(space, "/".join(space), {"text": "heron"})
    for query in (None, "heron"):
        assert sorted(await found(store, query)) == ["ann/isle", "ann/isle/facts"]
        assert sorted(await found(store, query, space=("ann",))) == [
            "ann", "ann/is_e", "ann/isle", "ann/isle/facts", "ann/isle2",
        ]  # fmt: skip
        assert await found(store, query, space=("ann", "is_e")) == ["ann/is_e"]
        assert len(await found(store, query, space=())) == 6


async def test_what_has_expired_is_not_found_and_what_is_read_lives_longer(home):
    ttl = {"default_ttl": None, "refresh_on_read": True, "omit_expired": True}
    async with home.open_store("hash", ttl=ttl) as store:
        for key, minutes in (("short", 0.001), ("long", 60.0), ("ever", None)):
            await store.aput(("a",), key, {"text": "heron"}, ttl=minutes)
        ends = "SELECT key, expires_at FROM store ORDER BY key"
        first = dict(execute(home.url, ends))
        await asyncio.sleep(0.2)
        for query in (None, "heron"):
            assert sorted(await found(store, query, space=("a",), refresh_ttl=False)) == ["ever", "long"]
        assert dict(execute(home.url, ends)) == first, "it was only looked at"
        for query in (None, "heron"):
            before = dict(execute(home.url, ends))["long"]
            assert sorted(await found(store, query, space=("a",), refresh_ttl=True)) == ["ever", "long"]
            after = dict(execute(home.url, ends))
            assert after["ever"] is None
            assert timedelta(0) < after["long"] - before < timedelta(minutes=1)
        assert await store.sweep_ttl() == 1
        assert sorted(dict(execute(home.url, ends))) == ["ever", "long"]


@pytest.mark.parametrize("ttl", [None, {"default_ttl": 60.0, "refresh_on_read": True}])
async def test_documents_are_embedded_as_documents_and_questions_as_questions(home, ttl):
    asked = []

    class TwoFaced(HashEmbeddings):
        async def aembed_query(self, text):
            asked.append(text)
            return [1.0] + [0.0] * (self.dims - 1)

        async def aembed_documents(self, texts):
            return [[0.0] * (self.dims - 1) + [1.0] for _ in texts]

    async with home.open_store("hash", ttl=ttl) as store:
        store.embeddings = TwoFaced()
        await put(store, {"text": "same"})
        for hits in await store.abatch([SearchOp(("ann", "isle"), query="same")] * 2):
            assert [item.score for item in hits] == [pytest.approx(0.0)]
    assert asked == ["same"]


async def test_operations_of_all_kinds_go_together(store):
    await put(store, {"text": "heron"}, {"text": "gull"})
    space = ("ann", "isle")
    done = await store.abatch([
        GetOp(space, "k000"), PutOp(space, "k000", None), SearchOp(space, None, 10),
        PutOp(space, "k2", {"text": "lamp"}), SearchOp(space, {"text": "gull"}, 10, 0, "gull"),
        ListNamespacesOp(None, None, 10, 0), GetOp(space, "no"),
    ])  # fmt: skip
    assert done[0].value == {"text": "heron"}
    assert (keys(done[2]), keys(done[4]), done[5], done[6]) == (["k000", "k001"], ["k001"], [space], None)
    assert await found(store) == ["k001", "k2"]
    assert execute(store_url(store), "SELECT count(*) FROM store_vectors") == [(2,)]


async def test_a_batch_is_one_statement_that_reads_and_one_that_writes(home):
    statements, spaces = Statements(home.url), [("ann", "isle"), ("bob",)]
    async with home.open_store("hash") as store:
        statements.take()
        await store.abatch([PutOp(space, "k", {"text": f"heron of {space[0]}"}) for space in spaces])
        assert len(statements.take()) == 1, "items and vectors"
        ops = [GetOp(spaces[0], "k"), SearchOp(("ann",)), GetOp(spaces[1], "k"), SearchOp(("bob",), query="heron")]
        done = await store.abatch([*ops, PutOp(spaces[0], "k", None), PutOp(spaces[1], "new", {"text": "gull"})])
        assert [one.value["text"] for one in (done[0], *done[1], done[2], *done[3])] == [
            "heron of ann", "heron of ann", "heron of bob", "heron of bob",
        ]  # fmt: skip
        assert len(statements.take()) == 2
        assert [await found(store, space=space) for space in spaces] == [[], ["k", "new"]]


@pytest.mark.parametrize("last", [{"text": "heron"}, {"text": "a\0b"}])
async def test_more_than_one_statement_can_take_is_written_as_a_whole(store, last):
    ops = [PutOp(("ann", "isle"), f"k{number}", {"text": "heron"}) for number in range(9_000)]
    try:
        await store.abatch([*ops, PutOp(("ann", "isle"), "last", last)])
    except StoreUnavailableError:
        assert execute(store_url(store), "SELECT count(*) FROM store") == [(0,)]
    else:
        assert execute(store_url(store), "SELECT count(*) FROM store_vectors") == [(9_001,)]


# Errors.


@pytest.mark.slow
async def test_every_error_of_the_database_is_said_in_a_sentence(home, monkeypatch):
    monkeypatch.setattr(postgres_home, "_PATIENCE", 20.0)
    async with home.open_store("hash") as store:
        await put(store, {"text": "heron"})
        execute(home.url, "ALTER TABLE store RENAME TO away")
        with pytest.raises(
            StoreUnavailableError, match=r"^The memories in PostgreSQL cannot be read: relation \"store\""
        ):
            await found(store, "heron")
        with pytest.raises(StoreUnavailableError, match="cannot be written: "):
            await store.aput(("a",), "k", {"text": "x"})
        with pytest.raises(StoreUnavailableError, match="cannot be read: "):
            await store.aget(("a",), "k")
        with pytest.raises(StoreUnavailableError, match="cannot be read: "):
            await store.alist_namespaces()
        execute(home.url, "ALTER TABLE away RENAME TO store")
        end_sessions(home.url)
        assert await found(store, "heron") == ["k000"]
    with pytest.raises(StoreUnavailableError, match=r"cannot be read: .*(closed|open)"):
        await found(store)


@slow
async def test_a_store_that_is_closed_leaves_no_task_and_what_was_asked_is_done(home):
    async with home.open_store() as store:
        writing = asyncio.create_task(store.aput(("ann", "isle"), "1", {"text": "A lamp."}))
        await asyncio.sleep(0)
    assert store._task.done()
    await writing
    with pytest.raises(StoreUnavailableError):
        await asyncio.wait_for(store.aget(("ann", "isle"), "1"), 5)


async def test_many_at_once_write_and_read(home):
    async with home.open_store("hash") as store:

        async def work(name):
            for number in range(10):
                await store.aput((name,), f"k{number}", {"text": f"heron {number} of {name}"})
                assert f"k{number}" in await found(store, f"heron {number}", space=(name,))
            return await found(store, space=(name,))

        done = await asyncio.gather(*(work(f"u{number}") for number in range(30)))
        assert done == [[f"k{number}" for number in range(10)]] * 30
