"""Finding by words, and words and meaning together."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.embeddings import Embeddings
from stores import execute, keys

from questbook import EmbedderChangedError, FaissStore
from questbook.memory.errors import StoreConfigError
from questbook.memory.text import words
from questbook.memory.text.words import query_words, split_words

TOLD = {"ask": [1.0, 0.0, 0.0, 0.0], "near": [0.9, 0.436, 0.0, 0.0], "far": [0.1, 0.995, 0.0, 0.0]}


class Blind(Embeddings):
    """Knows nothing: every text has the same vector, but for those that it was told."""

    dims = 4

    def __init__(self, **told):
        self.told = told

    def embed_documents(self, texts):
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text):
        return next((vector for word, vector in self.told.items() if word in text), [1.0, 0.0, 0.0, 0.0])


def open_store(path, embed=None, **index):
    return FaissStore.open(path, {"embed": embed, "fields": ["text"], **index})


def test_names_numbers_and_rare_words_are_found(path):
    with open_store(path, Blind()) as store:
        for n in range(50):
            store.put(("a",), f"k{n}", {"text": f"They walked on through the forest, day {n + 100}"})
        store.put(("a",), "name", {"text": "Vexathrax guards the bridge"})
        assert keys(store.search(("a",), query="who is Vexathrax?", limit=1)) == ["name"]
        assert keys(store.search(("a",), query="what happened on day 117?", limit=1)) == ["k17"]
        assert keys(store.search(("a",), query="bridges", limit=1)) == ["name"], "stems"
        assert keys(store.search(("a",), query="VEXÁTHRAX", limit=1)) == ["name"], "case and accents"


def test_order_is_the_sum_of_both_and_score_is_the_cosine(path):
    with open_store(path, Blind(**TOLD)) as store:
        store.put(("a",), "both", {"text": "near dragon"})
        store.put(("a",), "meaning", {"text": "near"})
        store.put(("a",), "word", {"text": "far dragon"})
        store.put(("a",), "neither", {"text": "far"})
        found = store.search(("a",), query="ask dragon")
        assert keys(found) == ["both", "word", "meaning", "neither"]
        assert [round(item.score, 2) for item in found] == [0.9, 0.1, 0.9, 0.1]


def test_a_cosine_that_is_a_rounding_error_is_no_meaning(path):
    with open_store(path, Blind(ask=[1.0, 0, 0, 0], noise=[1e-12, 1.0, 0, 0], far=[0, 1.0, 0, 0])) as store:
        store.put(("a",), "noise", {"text": "noise"})
        store.put(("a",), "word", {"text": "far dragon"})
        assert keys(store.search(("a",), query="ask dragon")) == ["word", "noise"]


def test_either_side_can_be_turned_off(tmp_path):
    weighed = [
        ({"dense": 0}, "word"),
        ({"dense": 0.1}, "word"),
        ({"dense": 2}, "meaning"),
        ({"lexical": 0.1}, "meaning"),
    ]
    for weights, first in [({"lexical": 0}, "meaning"), *weighed]:
        with open_store(tmp_path / f"{first}{len(weights)}{weights}.db", Blind(**TOLD), weights=weights) as store:
            store.put(("a",), "meaning", {"text": "near"})
            store.put(("a",), "word", {"text": "far dragon"})
            assert keys(store.search(("a",), query="ask dragon"))[0] == first
            assert {round(item.score, 1) for item in store.search(("a",), query="ask dragon")} == {0.9, 0.1}
    with open_store(tmp_path / "none.db", Blind(**TOLD), lexical=False) as store:
        store.put(("a",), "meaning", {"text": "near"})
        store.put(("a",), "word", {"text": "far dragon"})
        assert keys(store.search(("a",), query="ask dragon")) == ["meaning", "word"]


def test_without_an_embedder_words_carry_the_search(path):
    with open_store(path) as store:
        store.put(("a",), "1", {"text": "the dragon sleeps"})
        store.put(("a",), "2", {"text": "a knight rides"})
        store.put(("a",), "3", {"text": "unsaid"}, index=False)
        found = store.search(("a",), query="where does the knight ride?")
        assert keys(found) == ["2", "1", "3"], "what is not found follows, as in LangGraph's own stores"
        assert [item.score for item in found] == [None] * 3


def test_columns_have_weights(path):
    columns = {"text": 1.0, "before": 0.5, "after": 0.25}
    with open_store(path, lexical=columns) as store:
        store.put(("a",), "after", {"text": "one two", "after": "dragon"})
        store.put(("a",), "before", {"text": "one two", "before": "dragon"})
        store.put(("a",), "text", {"text": "dragon", "before": "one", "after": "two"})
        store.put(("a",), "none", {"text": "one two three"})
        assert keys(store.search(("a",), query="dragon")) == ["text", "before", "after", "none"]


def test_only_fields_are_embedded_and_only_columns_are_words(path):
    seen = []

    class Listening(Blind):
        def embed_documents(self, texts):
            seen.extend(texts)
            return super().embed_documents(texts)

    with open_store(path, Listening(), lexical={"text": 1.0, "before": 0.5}) as store:
        store.put(("a",), "k", {"text": "hello", "before": "goodbye", "secret": "password"})
        assert seen == ["hello"]
        assert "password" not in str(execute(path, "SELECT * FROM texts"))


def test_paths_of_a_single_put_are_indexed(path):
    with open_store(path) as store:
        store.put(("a",), "1", {"text": "dragon", "title": "quilt", "list": [{"x": "gold"}]}, index=["list[*].x"])
        store.put(("a",), "2", {"text": "other"})
        assert keys(store.search(("a",), query="gold", limit=1)) == ["1"]
        assert keys(store.search(("a",), query="dragon"))[0] == "1", "not found by words, so oldest first"
        words = str(execute(path, "SELECT * FROM texts"))
        assert ("gold" in words, "dragon" in words) == (True, False)


def test_updates_and_deletes_leave_no_words_behind(path):
    with open_store(path) as store:
        store.put(("a",), "k", {"text": "the secret password is swordfish"})
        store.put(("a",), "k", {"text": "nothing"})
        store.put(("a",), "gone", {"text": "swordfish"})
        store.delete(("a",), "gone")
        assert keys(store.search(("a",), query="swordfish")) == ["k"]
    assert "swordfish" not in str(execute(path, "SELECT * FROM texts"))
    assert execute(path, "SELECT texts FROM namespaces") == [(1,)]


def test_other_namespaces_change_nothing(tmp_path):
    def filled(path):
        store = open_store(path)
        texts = ["dragon dragon egg", "dragon hill", "egg on a hill", "hill hill hill", "knight"]
        for n, text in enumerate(texts):
            store.put(("mine",), str(n), {"text": text})
        return store

    with filled(tmp_path / "alone.db") as alone, filled(tmp_path / "crowded.db") as crowded:
        for n in range(200):
            crowded.put(("other", str(n % 3)), str(n), {"text": "dragon dragon egg dragon"})
        for query in ("dragon egg", "hill", "knight hill", "egg"):
            assert keys(alone.search(("mine",), query=query)) == keys(crowded.search(("mine",), query=query))
        assert {item.namespace for item in crowded.search(("mine",), query="dragon")} == {("mine",)}


def test_a_prefix_searches_all_below_it_as_one(path):
    with open_store(path) as store:
        for n in range(30):
            store.put(("u", str(n % 3)), str(n), {"text": f"thing {n} common"})
        store.put(("u", "1"), "rare", {"text": "wyvern common"})
        store.put(("v",), "other", {"text": "wyvern"})
        assert keys(store.search(("u",), query="common wyvern", limit=1)) == ["rare"]
        assert len(store.search(("u",), query="common wyvern", limit=100)) == 31


@given(st.text(max_size=200))
def test_words_have_only_letters_and_digits(text):
    assert all(word.isalnum() or not word.isascii() for word in split_words(text))
    assert '"' not in "".join(query_words(text))


def test_stop_words_are_passed_over_unless_there_is_nothing_else():
    assert query_words("Who is the Queen of the North?") == ["queen", "north"]
    assert query_words("What do you all know about her, and what was said after that?") == ["know", "said"]
    assert query_words("who is it") == ["who", "is", "it"]
    assert query_words("") == []


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_accents_do_not_count_however_they_are_written(path, form):
    with open_store(path) as store:
        store.put(("a",), "other", {"text": "Nothing to do with it."})
        store.put(("a",), "k", {"text": unicodedata.normalize(form, "Her résumé lies in Köln, not in İzmir.")})
        for query in ("résumé", "resume", "KÖLN", "koln", "İzmir", "izmir"):
            for written in ("NFC", "NFD"):
                asked = unicodedata.normalize(written, query)
                assert keys(store.search(("a",), query=asked, limit=1)) == ["k"], query


def test_stems_that_make_room_for_others_are_asked_for_again(monkeypatch):
    monkeypatch.setattr(words, "_MOST_KEPT", 1)
    assert words.stem_words(["dragons"]) == ["dragon"]
    assert words.stem_words(["dragons", "wolves"]) == ["dragon", "wolv"]


def test_scripts_without_spaces_are_found_by_their_parts(path):
    assert split_words("龍は山abcで") == ["龍は", "は山", "abc", "で"]
    with open_store(path) as store:
        store.put(("a",), "2", {"text": "騎士が馬に乗る"})
        store.put(("a",), "1", {"text": "赤い龍が山の下で眠る"})
        assert keys(store.search(("a",), query="龍が山"))[0] == "1"


def test_new_columns_are_filled_from_what_is_there(path):
    with open_store(path) as store:
        store.put(("a",), "2", {"text": "x"})
        store.put(("a",), "1", {"text": "x", "note": "wyvern"})
        store.put(("a",), "3", {"text": "x", "note": "wyvern"}, index=False)
        assert keys(store.search(("a",), query="wyvern"))[0] == "2"
    with open_store(path, lexical={"text": 1.0, "note": 0.5}) as store:
        assert keys(store.search(("a",), query="wyvern")) == ["1", "2", "3"]


WRONG = [{"lexical": ["text"]}, {"lexical": {"text": -1}}, {"weights": {"dens": 1}}, {"weights": {"dense": "x"}}]


@pytest.mark.parametrize("index", [*WRONG, {"feilds": []}, {"fields": "text"}, {"fields": {"text": 1.0}}], ids=repr)
def test_settings_that_make_no_sense_are_refused(path, index):
    with pytest.raises(StoreConfigError):
        open_store(path, **index)


def test_without_meaning_the_best_words_come_first_and_equals_as_they_were_put(path):
    with open_store(path, Blind(**TOLD), lexical=False, weights={"dense": 0}) as store:
        for key, text in [("2", "far"), ("1", "near"), ("3", "near")]:
            store.put(("a",), key, {"text": text})
        assert keys(store.search(("a",), query="ask")) == ["2", "1", "3"]
        store.put(("a",), "2", {"text": "far away"})
        assert keys(store.search(("a",), query="ask", limit=2)) == ["2", "1"], "an update keeps its place"


def test_what_has_neither_words_nor_a_vector_follows_as_it_was_put_where_the_filter_allows_it(path):
    with open_store(path, Blind(**TOLD)) as store:
        for key, text, more in [("c", "x", {}), ("a", "near", {}), ("b", "x", {}), ("d", "x", {"kind": "other"})]:
            store.put(("a",), key, {"text": text, "kind": "mine"} | more, index=["text"] if key == "a" else False)
        found = store.search(("a",), query="ask", filter={"kind": "mine"})
        assert [(item.key, item.score is None) for item in found] == [("a", False), ("c", True), ("b", True)]
        assert keys(store.search(("a",), query="ask", filter={"kind": "mine"}, limit=2, offset=1)) == ["c", "b"]


def test_meaning_counts_against_the_best_of_it_and_words_against_theirs(path):
    weak = {"ask": [1.0, 0.0, 0.0, 0.0], "near": [0.3, 0.954, 0.0, 0.0], "far": [0.1, 0.995, 0.0, 0.0]}
    with open_store(path, Blind(**weak), weights={"dense": 2, "lexical": 1}) as store:
        store.put(("a",), "word", {"text": "far dragon"})
        store.put(("a",), "meaning", {"text": "near"})
        assert keys(store.search(("a",), query="ask dragon")) == ["meaning", "word"]
    with open_store(path, Blind(**weak), weights={"dense": 1.2, "lexical": 2}) as store:
        assert keys(store.search(("a",), query="ask dragon")) == ["word", "meaning"]


def test_a_file_with_vectors_is_searched_by_words_alone_where_no_embedder_is_given(path):
    with open_store(path, Blind(**TOLD)) as store:
        for key, text in (("1", "near"), ("2", "far dragon"), ("3", "near")):
            store.put(("a",), key, {"text": text})
    with open_store(path) as store:
        found = store.search(("a",), query="dragon")
        assert [(item.key, item.score) for item in found] == [("2", None), ("1", None), ("3", None)]


def test_columns_have_weights_also_of_what_is_put_after_a_search_and_what_has_no_words_follows(path):
    with open_store(path, lexical={"text": 1.0, "note": 5.0}) as store:
        store.put(("a", "1"), "first", {"text": "dragon"})
        assert keys(store.search(("a",), query="dragon")) == ["first"]
        for place, key, value in (
            ("1", "text", "text"),
            ("1", "note", "note"),
            ("2", "none", ""),
            ("3", "nothing", ""),
        ):
            store.put(("a", place), key, {value: "dragon"}, index=None if value else False)
        assert keys(store.search(("a", "1"), query="dragon"))[0] == "note"
        assert set(keys(store.search(("a",), query="dragon"))) == {"first", "text", "note", "none", "nothing"}


def test_a_text_at_a_path_of_its_own_put_counts_as_much_as_the_heaviest_column(path):
    with open_store(path, lexical={"text": 1.0, "note": 2.0}) as store:
        store.put(("a",), "text", {"text": "dragon"})
        store.put(("a",), "own", {"other": "dragon"}, index=["other"])
        store.put(("a",), "note", {"note": "dragon"})
        assert keys(store.search(("a",), query="dragon")) == ["own", "note", "text"]


@pytest.mark.parametrize(
    ("index", "says"),
    [
        ({"lexical": ["text"]}, r'index\["lexical"\] must give weights by path.*or be False; got \['),
        ({"lexical": {"": 1.0}}, r'index\["lexical"\] must give weights by path'),
        ({"lexical": {"text": -1}}, "the weight of 'text' must be a number, 0 or more; got -1"),
        ({"lexical": {"text": True}}, "the weight of 'text' must be a number"),
        ({"lexical": {"text": float("inf")}}, "the weight of 'text' must be a number"),
        ({"lexical": {"text": float("nan")}}, "the weight of 'text' must be a number"),
        ({"weights": {"dens": 1}}, r'index\["weights"\] may have dense, lexical; got'),
        ({"weights": [1, 1]}, r'index\["weights"\] may have dense, lexical; got'),
        ({"weights": {"dense": "x"}}, "the weight of 'dense' must be a number"),
        ({"weights": {"lexical": -0.1}}, "the weight of 'lexical' must be a number"),
        ({"feilds": []}, r"index has no setting \['feilds'\]; it has embed, dims, fields, lexical, weights"),
        ({"fields": "text"}, r'index\["fields"\] must be a list of paths.*got'),
        ({"fields": {"text": 1.0}}, r'index\["fields"\] must be a list of paths.*got'),
        ({"fields": ["text", ""]}, r'index\["fields"\] must be a list of paths.*got'),
        ({"fields": [7]}, r'index\["fields"\] must be a list of paths.*got'),
        *(({"dims": dims}, r'index\["dims"\] must be a positive number, got') for dims in (0, -1, True, "8", 8.0)),
        ({"embed": Blind(), "dims": 5}, r'index\["dims"\] is 5, but the embedder makes vectors of 4 .*leave dims out'),
    ],
    ids=lambda case: repr(case)[:40].partition("<")[0],
)
def test_a_setting_that_makes_no_sense_is_named_with_what_is_expected(path, index, says):
    with pytest.raises((StoreConfigError, EmbedderChangedError), match=says):
        open_store(path, **index)
    assert not path.exists()
