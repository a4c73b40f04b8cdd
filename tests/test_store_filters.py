"""A search with a filter ranks as if nothing else were there; filters are applied to a whole namespace at once."""

import random
from concurrent.futures import ThreadPoolExecutor

import pytest
from langgraph.store.base import PutOp

from questbook import FaissStore, HashEmbeddings
from questbook.memory.errors import BadQueryError
from questbook.memory.store import rows
from questbook.memory.store.filters import check_filter, matches

WORDS = ("dragon", "tower", "sword", "silver", "river", "knight", "old", "bridge", "goblin", "king", "tavern", "storm")
EMBED = HashEmbeddings(dims=32)
INDEX = {"embed": EMBED, "dims": EMBED.dims, "fields": ["text"]}


@pytest.fixture
def store(tmp_path):
    with FaissStore.open(tmp_path / "store.db", INDEX) as opened:
        yield opened


def sentence(said):
    return " ".join(said.choices(WORDS, k=said.randint(3, 9)))


def ranked(store, space, query, **more):
    return [(item.key, round(item.score, 5)) for item in store.search((space,), query=query, limit=20, **more)]


SLOW = pytest.mark.slow


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=SLOW) for seed in range(2, 6))])
def test_what_a_filter_leaves_out_weighs_nothing(store, seed):
    said, mine = random.Random(seed), {}
    for step in range(120):
        key, branch = f"k{said.randrange(60)}", said.choice("ab")
        if said.random() < 0.2:
            store.delete(("mixed",), key)
            mine.pop(key, None)
        else:
            value = {"text": sentence(said), "branch": branch}
            store.put(("mixed",), key, value)
            mine.pop(key, None)
            if branch == "a":
                mine[key] = value
        if step % 20 == 19:
            space = f"alone{step}"
            store.batch([PutOp((space,), key, value) for key, value in mine.items()])
            for _ in range(5):
                query = sentence(said)
                found = ranked(store, "mixed", query, filter={"branch": "a"})
                assert sorted(found) == sorted(ranked(store, space, query))
                assert [score for _, score in found] == [score for _, score in ranked(store, space, query)]


def test_another_process_sees_changes_under_a_filter_and_by_words(tmp_path, store):
    with FaissStore.open(tmp_path / "store.db", INDEX) as other:
        for n in range(30):
            store.put(("a",), f"k{n}", {"text": f"dragon {n}", "n": n})
        assert [key for key, _ in ranked(other, "a", "dragon", filter={"n": {"$gte": 29}})] == ["k29"]
        store.put(("a",), "k3", {"text": "unicorn", "n": 99})
        store.delete(("a",), "k29")
        assert [key for key, _ in ranked(other, "a", "unicorn", filter={"n": {"$gte": 28}})] == ["k3", "k28"]
        store.put(("a",), "k30", {"text": "unicorn unicorn", "n": 30})
        assert {key for key, _ in ranked(other, "a", "unicorn")[:2]} == {"k3", "k30"}


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=SLOW) for seed in range(2, 8))])
def test_a_filter_on_all_at_once_is_a_filter_on_each(store, seed):
    said = random.Random(seed)
    scalars = ["", "a", "b", "a\0", "ab", "é", "10", "9", 9, 10, 9.5, -1, True, False, None, 2**60, 2**60 + 1]
    anything = [*scalars, [1, "a"], {"x": 1}, {"x": {"y": "a"}}, []]
    values = {
        f"k{n}": {name: said.choice(anything) for name in ("p", "q", "p.x") if said.random() < 0.8}
        | {"order": f"{said.randrange(200):08d}", "label": said.choice("abcde")}
        for n in range(150)
    }
    store.batch([PutOp(("v",), key, value) for key, value in values.items()])

    def condition():
        kind = said.random()
        if kind < 0.4:
            return said.choice(anything)
        return {said.choice(["$eq", "$ne", "$gt", "$gte", "$lt", "$lte"]): said.choice(scalars)}

    def one():
        if said.random() < 0.3:
            return {"label": said.choice("abcdef"), "order": {"$lte": f"{said.randrange(200):08d}"}}
        return {said.choice(["p", "q", "p.x", "p.x.y", "order", "no"]): condition() for _ in range(said.randint(0, 2))}

    for _ in range(60):
        wanted = one()
        if said.random() < 0.4:
            wanted = wanted | {said.choice(["$or", "$and"]): [one() for _ in range(said.randint(0, 4))]}
        if said.random() < 0.3:
            last = {name: f"{said.randrange(200):08d}" for name in said.choices("abcdf", k=said.randint(0, 6))}
            wanted = wanted | {"$through": [said.choice(["label", "p", "p.x"]), "order", last]}
        check_filter(wanted)
        found = {item.key for item in store.search(("v",), filter=wanted, limit=1000)}
        assert found == {key for key, value in values.items() if matches(value, wanted)}, wanted


def nested(levels, wrap):
    condition = 1
    for _ in range(levels):
        condition = wrap(condition)
    return condition


WRONG = ["text", 7, [], [{"n": 1}], {1: 2}, {"a": {1: 2}}, {"$or": [{1: 2}]}, {"n": {"$in": [1]}}, {"$or": {"a": 1}}]
WRONG += [
    {"$or": "x"},
    {"$or": [1]},
    *(
        {"$through": one}
        for one in ("abc", {"a": "1"}, ["a", "b"], ["a", 1, {"x": "1"}], ["a", "b", {"x": 1}], [1, 2, {}])
    ),
    {"$and": {"a": 1}},
    {"$and": [{"a": {"$in": 1}}]},
    {"$or": [{"a": {"$in": 1}}]},
    {"a": nested(600, lambda inner: [inner])},
]
WRONG += [nested(levels, lambda inner: {"a": inner}) for levels in (600, 100_000)]
WRONG += [{"a": {"$eq": nested(600, lambda inner: {"a": inner})}}]
WRONG += [nested(600, lambda inner: {"$or": [{"n": 1}, inner if isinstance(inner, dict) else {}]})]


@pytest.mark.parametrize("wanted", WRONG, ids=range(len(WRONG)))
async def test_a_filter_that_is_none_is_refused(store, wanted):
    store.put(("a",), "k", {"text": "dragon", "n": 1})
    for query in (None, "dragon"):
        with pytest.raises(BadQueryError):
            store.search(("a",), query=query, filter=wanted)
        with pytest.raises(BadQueryError):
            await store.asearch(("a",), query=query, filter=wanted)
        assert [item.key for item in store.search(("a",), query=query, filter={"n": 1})] == ["k"]


def test_a_filter_as_deep_as_any_that_makes_sense_is_none_too_deep(store):
    store.put(("a",), "k", {"text": "dragon", "n": 1})
    assert store.search(("a",), filter=nested(40, lambda inner: {"a": inner})) == []
    alternatives = nested(20, lambda inner: {"$or": [{"n": 2}, inner if inner != 1 else {"n": 1}]})
    assert [item.key for item in store.search(("a",), filter=alternatives)] == ["k"]


def test_dots_in_keys_lead_into_values_and_numbers_may_be_texts(store):
    values = [("nested", {"user": {"access-level": "nested"}}), ("flat", {"user.access-level": "flat"})]
    values += [(k, {"v": v}) for k, v in [("number", 5), ("text", "5"), ("word", "five"), ("none", None), ("l", [5])]]
    store.batch([PutOp(("a",), key, value) for key, value in values])
    for level in ("nested", "flat"):
        assert [item.key for item in store.search(("a",), filter={"user.access-level": level})] == [level]
    for order in ({"$gte": 5}, {"$lt": "6"}, {"$lt": 6}):
        assert [item.key for item in store.search(("a",), filter={"v": order})] == ["number", "text"]


@pytest.mark.parametrize("key", ["a') OR 1=1 --", "$.x", '"', "x'; DROP TABLE items; --", "$", "", "a.b.c", "é ü"])
def test_filter_keys_cannot_inject(store, key):
    store.put(("a",), "1", {"text": "x", key: "y"})
    store.put(("a",), "2", {"text": "x"})
    for query in (None, "x"):
        assert [i.key for i in store.search(("a",), query=query, filter={key: "y"})] == ["1"]
        assert store.search(("a",), query=query, filter={key: "' OR '1'='1"}) == []


def test_a_filter_that_has_seen_a_later_write_returns_nothing_that_it_does_not_allow(path, monkeypatch):
    """A search reads the rows as they were when it began, and the filter's cache as another search has left it."""
    with FaissStore.open(path) as store, ThreadPoolExecutor(1) as beside:
        store.put(("a",), "k", {"text": "a dragon", "kind": "old"})
        store.search(("a",), filter={"kind": "new"})
        read, later = rows.namespaces_under, []

        def then_write(*given):
            found = read(*given)
            if not later:
                later.append(True)
                beside.submit(store.put, ("a",), "k", {"text": "a dragon", "kind": "new"}).result()
                later.extend(beside.submit(store.search, ("a",), filter={"kind": "new"}).result())
            return found

        monkeypatch.setattr(rows, "namespaces_under", then_write)
        assert [item.value["kind"] for item in store.search(("a",), filter={"kind": "new"})] == []
        assert [item.value["kind"] for item in later[1:]] == ["new"]


LONG = "a text that is longer than what is compared all at once"
# Among so many different texts those that are ordered are compared all at once.
TEXTS = {
    **{f"{n:03}": {"order": f"{n:03}"} for n in range(70)},
    "nul": {"order": "000\0"},
    "number": {"order": 7},
    "missing": {"other": "x"},
    "long": {"order": LONG},
}


@pytest.mark.parametrize(
    ("condition", "fits"),
    [
        ({"$lte": "000"}, ["000"]),
        ({"$lt": "000\0"}, ["000"]),
        ({"$gt": "000", "$lt": "001"}, ["nul"]),
        ({"$gte": "068", "$lt": "a"}, ["068", "069"]),
        ({"$gt": "069"}, ["long"]),
        ({"$gte": LONG}, ["long"]),
        ({"$gt": LONG}, []),
        ({"$gte": 69}, ["069"]),
        ({}, []),  # an object, which no text is
    ],
    ids=repr,
)
@pytest.mark.parametrize("odd", [[], ["nul"], ["nul", "number", "missing", "long"]], ids=len)
def test_many_texts_are_ordered_as_a_few(store, condition, fits, odd):
    values = {key: value for key, value in TEXTS.items() if key.isdecimal() or key in odd}
    store.batch([PutOp(("v",), key, value) for key, value in values.items()])
    found = [item.key for item in store.search(("v",), filter={"order": condition}, limit=100)]
    assert found == [key for key in fits if key in values]
    assert found == [key for key, value in values.items() if matches(value, {"order": condition})]


@pytest.mark.parametrize(
    ("value", "wanted", "fits"),
    [
        ({"a.b": None, "a": {"b": 1}}, {"a.b": 1}, False),  # a key as it is written comes first
        ({"a": [{"b": None}]}, {"a.b.c": None}, True),  # dots lead through objects alone
        ({"a": "text"}, {"a.b": None}, True),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 1, "c": 3}}, False),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 1}}, True),
        ({"a": 1}, {"a": {"b": None}}, False),
        ({"a": {}}, {"a": {"b": None}}, True),
        ({"a": [1, 2]}, {"a": [1]}, False),
        ({"a": [1, 2]}, {"a": (1, 2)}, True),
        ({"a": [1, 2]}, {"a": {"$eq": (1, 2)}}, True),
        ({"a": [1, 2]}, {"a": {"$ne": (1, 2)}}, False),
        ({"a": [{"b": 1, "c": 2}]}, {"a": [{"b": 1}]}, True),
        ({"a": "10"}, {"a": {"$gt": "9"}}, False),  # texts are compared as texts
        ({"a": "10"}, {"a": {"$gt": 9}}, True),
        ({"a": "ten"}, {"a": {"$gt": 9}}, False),
        ({"a": None}, {"a": {"$lte": 0}}, False),
        ({"a": [5]}, {"a": {"$gte": 0}}, False),
        ({"a": 1}, {"a": {"$gte": 1, "$lt": 1}}, False),
        ({"a": 1, "b": 2}, {"a": 1, "$or": [{"b": 3}, {"b": 2}]}, True),
        ({"a": 1, "b": 2}, {"a": 2, "$or": [{"b": 3}, {"b": 2}]}, False),
        ({"a": 1}, {"$or": []}, False),
        ({"a": 1, "b": 2}, {"$and": [{"$or": [{"a": 3}, {"a": 1}]}, {"$or": [{"b": 3}, {"b": 2}]}]}, True),
        ({"a": 1, "b": 2}, {"a": 1, "$and": [{"a": 1}, {"b": 3}]}, False),
        ({"a": 1}, {"$and": []}, True),
        ({"a": 1}, {}, True),
    ],
    ids=repr,
)
def test_what_a_filter_means(store, value, wanted, fits):
    check_filter(wanted)
    assert matches(value, wanted) is fits
    store.put(("v",), "k", value)
    assert [item.key for item in store.search(("v",), filter=wanted)] == ["k"] * fits


@pytest.mark.parametrize(
    ("wanted", "says"),
    [
        ("text", r"a filter is a mapping, for example \{\"kind\": \"fact\"\}; got 'text'"),
        ({"n": {"$in": [1]}}, r"Unsupported operator: \$in; expected one of \$eq, \$gt, \$gte, \$lt, \$lte, \$ne"),
        ({"n": {"$gt": 1, "m": 2}}, "Unsupported operator: m"),
        ({"n": {"m": {"o": {"$in": 1}}}}, r"Unsupported operator: \$in"),
        ({"a": {1: 2}}, "the keys of a filter are texts, as those of stored values; got 1"),
        ({"$or": [{"a": 1}, "b"]}, r"\$or takes a list of filters, got \[\{'a': 1\}, 'b'\]"),
        ({"$and": {"a": 1}}, r"\$and takes a list of filters, got \{'a': 1\}"),
        (nested(51, lambda inner: {"a": inner}), "a filter may be nested 50 levels deep; this one is deeper: "),
    ],
    ids=range(8),
)
def test_a_filter_that_is_none_is_answered_with_what_is_expected(store, wanted, says):
    with pytest.raises(BadQueryError, match=says):
        store.search(("a",), filter=wanted)


def test_a_filter_may_be_nested_fifty_levels_deep(store):
    assert store.search(("a",), filter=nested(49, lambda inner: {"a": inner})) == []
    assert store.search(("a",), filter=nested(50, lambda inner: {"$gt" if inner == 1 else "a": inner})) == []
    with pytest.raises(BadQueryError, match="50 levels"):
        store.search(("a",), filter=nested(51, lambda inner: {"$gt" if inner == 1 else "a": inner}))


def test_filters_that_look_alike_are_told_apart(store):
    for n in range(40):
        store.put(("a",), str(n), {"n": n, "text": str(n), "flag": n == 1})
    for wanted, found in [({"n": 1}, ["1"]), ({"text": "1"}, ["1"]), ({"n": "1"}, []), ({"flag": True}, ["1"])]:
        assert [item.key for item in store.search(("a",), filter=wanted)] == found
    for n in [*range(40), 0]:  # more answers than are kept
        assert [item.key for item in store.search(("a",), filter={"n": n})] == [str(n)]
    wide = {f"key {n}": None for n in range(30)}  # more keys than are kept
    for wanted in (wide | {"n": 7}, {"n": 7}, wide | {"key 3": 1}):
        assert [item.key for item in store.search(("a",), filter=wanted)] == ["7"] * (
            "key 3" not in wanted or not wanted["key 3"]
        )
    store.put(("a",), "3", {"n": 7})
    store.put(("a",), "50", {"n": 7})
    store.delete(("a",), "7")
    assert [item.key for item in store.search(("a",), filter={"n": 7})] == ["3", "50"]


@pytest.mark.parametrize("segments", [0, 1, 3, 50])
def test_the_segments_of_a_timeline_with_forks_are_found_as_each_by_itself(store, segments):
    draw = random.Random(segments)
    branches, kept = [*(f"b{n}" for n in range(60)), None, 3, ["b1"]], {}
    for number in range(260):
        if number < 150:  # turn by turn, then of turns that are played again, then in no order, then what is no text
            order = f"{number // 3 * 2:08}"
        elif number < 200:
            order = f"{2 * draw.randrange(50):08}"
        else:
            order = draw.choice([f"{n:08}" for n in range(100)] if number < 230 else [None, 7, "00000050\0", "x" * 40])
        value = {"text": f"{number}", "branch": draw.choice(branches), "order": order}
        kept[f"{number}"] = value | {"standing": draw.random() < 0.5}
        if number in (149, 199, 229, 259):
            store.batch([PutOp(("facts",), key, kept[key]) for key in kept])
            for ends in ("", "\0"):
                last = {name: f"{draw.randint(0, 99):08}{ends}" for name in draw.sample(branches[:60], segments)}
                through = {"$through": ["branch", "order", last]}
                either = {"$or": [{"branch": name, "order": {"$lte": order}} for name, order in last.items()]}
                for only in ({}, {"standing": True}, {"order": {"$gte": f"{20:08}"}}, {"$or": [{"standing": True}]}):
                    found, expected = (
                        [item.key for item in store.search(("facts",), filter=only | wanted, limit=1_000)]
                        for wanted in (through, {"$and": [either]})
                    )
                    assert found == expected
                    assert found == [key for key, value in kept.items() if matches(value, only | through)]
                    assert found or segments < 50
