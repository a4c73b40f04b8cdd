"""Texts: how one is cut into passages, what an excerpt shows of it, and what its words weigh."""

import re
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from questbook.memory.recall.names import content_words
from questbook.memory.recall.query import Said
from questbook.memory.text.bm25 import WordTable
from questbook.memory.text.passages import LONGEST, Span, count_words, cut, cut_pages, excerpt, is_short, lead
from questbook.memory.text.words import content_stems, heads_of, stem_words

FILLER = "The old bridge was mended by two men in the spring of that year. "  # 14 words


def passages(text):
    return [text[start:end] for start, end in cut(text)]


PIECES = st.sampled_from(
    [
        "word ",
        "Dr. Who ",
        "\n",
        "\n\n",
        "- item ",
        "`code`",
        "x" * 90,
        "他们说。",
        "!? ",
        "“Yes.” ",
        "1.5 ",
        "z.B. so \t",
    ]
)


@given(st.lists(PIECES, max_size=300).map("".join))
@example("")
@example(" \n ")
@example("x" * 5000)
def test_passages_hold_all_of_a_text_in_order_and_none_is_long(text):
    spans = cut(text)
    assert "".join(re.sub(r"\s", "", part) for part in passages(text)) == re.sub(r"\s", "", text)
    assert all(a.end <= b.start for a, b in pairwise(spans))
    assert all(len(part.split()) <= LONGEST for part in passages(text))
    if len(spans) > 1:
        assert all(part == part.strip() != "" for part in passages(text))
        assert all(len(re.sub(r"\s", "", part)) <= 10 * LONGEST for part in passages(text))


def test_a_text_of_eighty_words_is_one_passage_and_of_eighty_one_is_two():
    assert len(cut(("word. " * 80).strip())) == 1
    assert is_short(("word " * 80).strip())
    assert not is_short(("word " * 81).strip())
    assert [len(part.split()) for part in passages(("Word. " * 91).strip())] == [80, 11]


def test_a_few_words_at_the_end_are_no_passage_by_themselves():
    long = f"Word {'word ' * 38}end. "
    assert [len(part.split()) for part in passages(f"{long * 2}Pell looks at the floor.")] == [40, 45]
    assert passages(f"Word {'word ' * 78}end. Pell goes.")[1:] == ["Pell goes."], "both would be too long"
    assert [len(part.split()) for part in passages(("word " * 100).strip())] == [50, 50], "a long sentence: equal parts"


@pytest.mark.parametrize(
    "sentence",
    [
        "It holds many things, e.g. cats and dogs of all kinds, and costs 3.50 in all.",
        "Wir treffen uns z.B. am Montag um 9.30 Uhr, wie immer.",
        'She asked "is it done?" and left for good.',
        "Version 2.1.0 of the file config.yaml is needed.",
    ],
)
def test_a_sentence_is_not_cut_where_it_does_not_end(sentence):
    for words in range(60, LONGEST):  # wherever the eightieth word falls in it
        text = f"{'Word ' * (words - 1)}word. {sentence} {FILLER * 6}"
        assert any(sentence in part for part in passages(text)), words


def test_code_stays_whole_lines():
    code = "\n".join(f"    total_{n} = add(price[{n}], tax.rate[{n}], 'a b. C d')" for n in range(60))
    lines = [
        line for part in passages(f"Do it so:\n\n```python\n{code}\n```\n\nThat is all.") for line in part.splitlines()
    ]
    assert set(map(str.strip, code.splitlines())) <= set(map(str.strip, lines))
    assert len(passages(code)) > 3


def test_tables_and_lists_stay_whole_rows_and_items():
    rows = [f"| year {n} | the harvest was good | {n} tons of wheat |" for n in range(1900, 1940)]
    items = [f"{n}. Bring a rope and {n} nails to the mill" for n in range(1, 40)]
    for lines in (rows, items):
        text = "\n".join(lines)
        assert len(cut(text)) > 2
        assert [line for part in passages(text) for line in part.splitlines()] == lines


def test_chinese_is_cut_at_its_full_stops():
    sentence = "他们在山上的老房子里住了很多年，每天早晨都去河边打水。"
    parts = passages(sentence * 60)
    assert len(parts) > 1
    assert all(part.startswith("他们") and part.endswith("。") for part in parts)
    assert all(count_words(part) <= LONGEST for part in parts)


def test_an_endless_word_is_cut_into_equal_parts():
    parts = passages("x" * 25_000)
    assert {len(part) for part in parts[:-1]} == {len(parts[0])}
    assert len(parts[0]) <= 10 * LONGEST
    assert "".join(parts) == "x" * 25_000


def first(text, least, most, share=0.0):
    start, end = lead(text, least, most, share)
    return text[start:end]


def test_the_first_words_go_as_far_as_a_clause():
    text = "I have moved to the town, where my sister lives, and I look for a new job that fits me well."
    assert first(text, 4, 4) == "I have moved to the town,", "a clause that ends within five words more"
    assert first(text, 10, 10) == "I have moved to the town, where my sister lives,"
    assert first("one two three four five six seven eight nine ten eleven twelve", 3, 3) == "one two three"
    assert first("one two three four five six seven", 3, 3) == "one two three four five six seven", "four are spared"
    assert first("  \n one two", 3, 3) == "one two"
    assert first("", 3, 3) == first(" \n", 3, 3) == ""


def test_the_first_words_are_a_share_of_the_text_between_the_least_and_the_most():
    text = " ".join(f"w{n}" for n in range(100))
    assert [len(first(text, *options).split()) for options in ((20, 80, 0.5), (20, 80, 0.1), (20, 40, 0.9))] == [
        50,
        20,
        40,
    ]


def test_the_first_words_of_a_text_without_blanks_are_few_characters():
    assert first("x" * 25_000, 15, 15) == "x" * 150
    chinese = "他们在山上的老房子里住了很多年，每天早晨都去河边打水。" * 100
    assert len(first(chinese, 15, 15)) == 150
    assert first(f"Look at {'x' * 9_000}", 15, 15) == f"Look at {'x' * 142}"
    assert first(f"{FILLER}{FILLER}{'x' * 9_000}", 15, 15) == f"{FILLER}{FILLER}".strip()


TEXT = "One is red. Two is blue. Three is green. Four is white."


@pytest.mark.parametrize(
    ("spans", "shown"),
    [
        ([(0, 11)], "One is red. …"), ([(12, 24)], "… Two is blue. …"), ([(41, 55)], "… Four is white."),
        ([(0, 11), (41, 55)], "One is red. … Four is white."), ([(12, 24), (0, 11)], "One is red. Two is blue. …"),
        ([(0, 11), (12, 24), (25, 40), (41, 55)], TEXT),
        ([(0, 24), (4, 10), (12, 40)], "One is red. Two is blue. Three is green. …"), ([], ""),
    ],
)  # fmt: skip
def test_an_excerpt_joins_what_is_beside_each_other_and_says_what_is_left_out(spans, shown):
    assert excerpt(TEXT, [Span(*span) for span in spans]) == shown


def test_pages_hold_all_of_a_record_and_each_is_at_most_three_thousand_characters():
    for text, reply in (
        (FILLER * 400, None),
        (FILLER * 10 + "\n" + FILLER * 300, len(FILLER) * 10 + 1),
        ("x" * 20_000, None),
    ):
        pages = cut_pages(*Said(text, reply))
        assert "".join("".join(text[a:b].split()) for a, b in pages) == "".join(text.split())
        assert all(2_000 <= b - a <= 3_000 for a, b in pages[:-1])
    assert cut_pages(*Said("")) == [Span(0, 0)]
    assert cut_pages(*Said("short\nanswer", 6)) == [Span(0, 12)]


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


def test_words_are_compared_without_their_plain_endings():
    written, plain = "cats cities passes promised walking calmly", "cat city pass promise walk calm"
    assert content_stems(written) == content_stems(plain)
