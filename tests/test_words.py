"""Word scores: BM25 over records and their neighbours."""

import pytest

from memory.words import content_words, word_scores

TEXTS = {"x": "the lamp and the door", "y": "the lamp", "z": "the lamp, the lamp, the keeper"}
ALONE = {key: [(key, 1.0)] for key in TEXTS}


def scored(texts, query, near=None):
    near = near or {key: [(key, 1.0)] for key in texts}
    return word_scores(texts, [content_words(query, frozenset())], near)[0]


def test_rare_words_count_more_and_scores_stay_positive():
    scores = scored(TEXTS, "lamp keeper")
    assert scores["z"] > scores["y"] > 0
    assert scores["x"] > 0
    assert scored({}, "lamp") == {}
    assert scored(TEXTS, '"; DROP TABLE t; -- " OR NEAR(') == {"x": 0, "y": 0, "z": 0}


def test_a_word_in_a_neighbour_counts_less_and_more_the_nearer():
    texts = {"asked": "Where is the swordfish?", "answered": "In the cellar.", "later": "Thanks!", "far": "Ahoy."}
    near = {
        "asked": [("asked", 1.0)],
        "answered": [("answered", 1.0), ("asked", 0.6)],
        "later": [("later", 1.0), ("asked", 0.3)],
        "far": [("far", 1.0)],
    }
    scores = scored(texts, "swordfish", near)
    assert scores["asked"] > scores["answered"] > scores["later"] > scores["far"] == 0


def test_stems_diacritics_and_scripts_without_spaces():
    texts = {"a": "She whispered of Zoë’s café", "b": "東京の塔に着いた", "c": "nothing"}
    assert scored(texts, "whispers")["a"] > 0
    assert scored(texts, "zoe cafe")["a"] > 0
    assert scored(texts, "東京")["b"] > scored(texts, "東京")["a"] == 0


def test_several_queries_are_scored_apart():
    first, second = word_scores(TEXTS, [["keeper"], ["door"]], ALONE)
    assert first["z"] > 0 == first["x"]
    assert second["x"] > 0 == second["z"]


@pytest.mark.parametrize(("query", "words"), [("What did Mel say?", ["say"]), ("Mel?", ["mel"])])
def test_names_of_speakers_are_left_out_unless_nothing_else_is_asked(query, words):
    assert content_words(query, frozenset({"mel"})) == words
