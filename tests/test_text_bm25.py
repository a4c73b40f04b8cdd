"""Word scores: BM25 over texts and the words nearby."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from questbook.memory.recall.names import content_words
from questbook.memory.text.bm25 import WordTable
from questbook.memory.text.stems import heads_of, stem_words

TEXTS = {"x": "the lamp and the door", "y": "the lamp", "z": "the lamp, the lamp, the keeper"}


def scored(texts, query, rows=None):
    table = WordTable(
        list(texts.values()), [content_words(query, frozenset())], None if rows is None else np.array(rows, np.intp)
    )
    return dict(zip(texts, table.scores()[0], strict=True))


def test_rare_words_count_more_and_scores_stay_positive():
    scores = scored(TEXTS, "lamp keeper")
    assert scores["z"] > scores["y"] > 0
    assert scores["x"] > 0
    assert scored({}, "lamp") == {}
    assert scored(TEXTS, '"; DROP TABLE t; -- " OR NEAR(') == {"x": 0, "y": 0, "z": 0}


def test_a_word_nearby_counts_less_and_more_the_nearer():
    texts = {"asked": "Where is the swordfish?", "answered": "In the cellar. " * 14, "later": "Thanks! " * 40}
    texts |= {"far": "Ahoy.", "elsewhere": "Thanks!"}
    scores = scored(texts, "swordfish", [0, 0, 0, 0, 1])
    assert scores["asked"] > scores["answered"] > scores["later"] > scores["far"] == scores["elsewhere"] == 0
    assert scored(texts, "swordfish")["answered"] == 0, "texts without rows stand alone"


def test_stems_diacritics_and_scripts_without_spaces():
    texts = {"a": "She whispered of Zoë’s café", "b": "東京の塔に着いた", "c": "nothing"}
    assert scored(texts, "whispers")["a"] > 0
    assert scored(texts, "zoe cafe")["a"] > 0
    assert scored(texts, "東京")["b"] > scored(texts, "東京")["a"] == 0


def test_several_queries_are_scored_apart():
    first, second = WordTable(list(TEXTS.values()), [["keeper"], ["door"]]).scores()
    assert first[2] > 0 == first[0]
    assert second[0] > 0 == second[2]


@pytest.mark.parametrize(("query", "words"), [("What did Mel say?", ["say"]), ("Mel?", ["mel"])])
def test_names_of_speakers_are_left_out_unless_nothing_else_is_asked(query, words):
    assert content_words(query, frozenset({"mel"})) == words


@given(st.text("aeiouybdgnst", min_size=1, max_size=7), st.sampled_from(["", "s", "ies", "ed", "ing", "ation", "y"]))
def test_stemming_leaves_the_head_of_a_word(word, ending):
    """What is passed over before it is stemmed could not have the stem."""
    (stem,) = stem_words([word + ending])
    assert any((word + ending).startswith(head) for head in heads_of([stem]))
