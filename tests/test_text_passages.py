"""Texts: how one is cut into passages, what an excerpt shows of it, and what its words weigh."""

import re
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from questbook.memory.recall.names import content_words
from questbook.memory.recall.query import Said
from questbook.memory.text.bm25 import WordTable, divide_by_maximum, heads_of
from questbook.memory.text.passages import (
    LONGEST,
    Span,
    count_words,
    cut,
    cut_messages,
    cut_pages,
    excerpt,
    is_short,
    lead,
)
from questbook.memory.text.words import (
    content_stems,
    count_tokens,
    essence,
    fold_case,
    group_duplicates,
    is_latin,
    is_negated,
    names_in,
    normalize,
    numbers_in,
    plain_words,
    put_similar_last,
    query_words,
    spaced,
    split_words,
    stem_words,
    strip_ending,
)

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


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Hello_World-3 it's", "hello world 3 it s"), ("東京の塔", "東京 京の の塔"), ("abc東京xyz", "abc 東京 xyz"),
        ("東", "東"), ("東京 a", "東京 a"), ("a東b", "a 東 b"), ("ÀÉ ß", "àé ß"), ("カタカナ", "カタ タカ カナ"),
        ("Re\u0301sume\u0301 Ko\u0308ln", "résumé köln"), ("İZMİR", "izmir"), ("q\u0301x", "qx"),
        ("\u0958लम", "\u0958लम"), ("が", "が"),
        ("?!", ""), ("", ""),
    ],
)  # fmt: skip
def test_how_a_text_is_split(text, words):
    assert split_words(text) == words.split()
    assert spaced(text).decode().split() == words.split()


def test_a_query_has_at_most_sixty_four_different_words_and_stop_words_only_if_it_has_no_others():
    assert query_words("what is the") == ["what", "is", "the"]
    assert query_words("What is the lamp, the Lamp?") == ["lamp"]
    assert query_words(" ".join(f"w{n}" for n in range(64))) == [f"w{n}" for n in range(64)]
    many = [*range(80), 40]
    assert query_words(" ".join(f"w{n}" for n in many)) == [f"w{n}" for n in [*range(32), *range(49, 80), 40]], (
        "both ends"
    )


@pytest.mark.parametrize(
    ("word", "plain"),
    [
        ("cities", "city"), ("flies", "fly"), ("ties", "tie"), ("tied", "tied"), ("carried", "carry"),
        ("passes", "pass"),
        ("boxes", "box"), ("cats", "cat"), ("his", "his"), ("bus", "bus"), ("glass", "glass"), ("quickly", "quick"),
        ("fly", "fly"), ("walking", "walk"), ("stopped", "stop"), ("running", "run"), ("telling", "tell"),
        ("missing", "miss"),
        ("buzzing", "buzz"), ("using", "using"), ("promise", "promis"), ("promised", "promis"), ("ice", "ice"),
        ("the", "the"),
        ("seeing", "see"), ("agreed", "agr"), ("virus", "virus"), ("basis", "basis"), ("kindness", "kindness"),
        ("glasses", "glass"),
    ],
)  # fmt: skip
def test_the_plain_ending_of_a_word(word, plain):
    assert strip_ending(word) == plain


DENIES = ["not", "never", "no", "nobody", "nothing", "none", "nowhere", "without", "cannot", "nor", "neither", "isn't"]


@pytest.mark.parametrize("word", [*DENIES, "isn’t", "NOT"])
def test_a_small_word_denies(word):
    assert is_negated(f"It {word} so")
    assert not is_negated("It is knotty, and cant noticed norms")


def test_two_texts_are_compared_by_their_words_numbers_and_names():
    numbers = "two three four five six seven eight nine ten eleven twelve"
    assert plain_words(f"{numbers} one") == [*map(str, range(2, 13)), "one"]
    assert numbers_in("two cats, 7 dogs and a b52") == {"2", "7", "b52"}
    assert normalize("  The É-clair!!  ") == "the e clair"
    assert fold_case("Straße ﬁ É ½ Ａ") == "strasse fi e 1⁄2 a"
    assert names_in("The Oda met Goran. He left; You and I") == ["oda", "goran"]
    assert content_stems("The lamps of Oda") == {"oda", "lamp"}
    assert content_stems("the of") == {"the", "of"}, "of nothing but small words all count"
    assert content_stems("under behind before") == {"under", "behind", "befor"}, "words of place tell facts apart"


def test_what_a_text_says_without_its_filler():
    assert essence("Oh well, the lamp please!") == ("lamp",)
    assert essence("Oh well, hello!") == ("oh", "well", "hello")
    assert essence(" ?! ") == ("?!",)
    assert essence("He is not here") != essence("He is here")


def test_texts_much_like_an_earlier_one_come_last_and_none_is_left_out():
    texts = ["a1 b c d e", "a1 b c d e f", "x y", "X Y!", "a2 b c d e", "a1 b c d"]
    first, later = ["a1 b c d e", "x y", "a2 b c d e"], ["a1 b c d e f", "X Y!", "a1 b c d"]
    assert put_similar_last(texts, str) == first + later
    assert group_duplicates(["x y", "z", "X, y!", "the z"], str) == [["x y", "X, y!"], ["z", "the z"]]


@pytest.mark.parametrize(
    ("text", "latin"), [("abc", True), ("Éŉ “…” 2", True), ("aя", False), ("2Ω", False), ("東", False), ("€ 5 ➜", True)]
)
def test_a_text_is_latin_if_all_of_its_letters_are(text, latin):
    assert is_latin(text) is latin


@pytest.mark.parametrize(("characters", "tokens"), [(0, 4), (1, 5), (4, 5), (5, 6), (40, 14)])
def test_tokens_are_counted_as_langchain_counts_them(characters, tokens):
    assert count_tokens("x" * characters) == tokens


def test_what_a_record_that_says_nothing_is_cut_into():
    blank = " " * 2000
    assert cut_messages(blank, None) == ((Span(0, 0),), ("",), (1,), (True,))
    assert cut_messages("", None) == ((Span(0, 0),), ("",), (1,), (True,))
    assert cut_pages("", None) == [Span(0, 0)]
    assert cut(" \n ") == cut("") == ()


def test_of_two_who_speak_each_has_passages_of_their_own():
    player, reply = "I walk on and on. " * 30, "The road is long. " * 30
    found = cut_messages(f"{player}\n{reply}", len(player) + 1)
    mine = [text for text, person in zip(found.texts, found.persons, strict=True) if person]
    assert all("road" not in text for text in mine)
    assert all("walk" not in text for text, person in zip(found.texts, found.persons, strict=True) if not person)
    assert set(found.of) == {len(mine), len(found.texts) - len(mine)}
    alone = cut_messages(player, None)
    assert set(alone.persons) == {True}
    assert set(alone.of) == {len(alone.texts)}


def test_white_space_before_what_is_shown_is_nothing_left_out():
    assert excerpt("  \n one two", [Span(4, 7)]) == "one …"
    assert excerpt("one two  \n", [Span(4, 7)]) == "… two"
    assert excerpt("one two three", [Span(0, 7), Span(4, 7)]) == "one two …"
    assert excerpt("one two three", [Span(0, 13), Span(4, 7)]) == "one two three"
    assert excerpt("one two", []) == ""


def test_a_passage_begins_with_its_first_letter_however_many_blanks_follow_a_sentence():
    text = ("The road is long and dusty.   " * 40) + "\n\n   The end of it."
    for start, end in cut(text):
        assert not text[start].isspace()
        assert not text[end - 1].isspace()


def test_a_share_of_a_word_nearby_is_half_of_a_words_own_and_no_more_than_all():
    table = WordTable(["the swordfish swims", "in the cellar", "a boat"], [["swordfish"]], np.array([0, 0, 1]))
    shares = table.coverage(0)
    assert shares[0] == 1.0
    assert 0 < shares[1] <= 0.5
    assert shares[2] == 0
    assert table.has("swordfish")
    assert not table.has("boat"), "no query asks for it"
    assert table.has_words(0).tolist() == [True, False, False]


def test_texts_without_words_score_nothing():
    table = WordTable(["?!", ""], [["lamp"]])
    assert (table.scores().tolist(), table.coverage(0).tolist()) == ([[0, 0]], [0, 0])


def test_ignored_words_count_if_a_query_has_no_others():
    table = WordTable(["the lamp is lit", "yesterday"], [["lamp", "yesterday"], ["yesterday"]])
    assert table.coverage(0, ["yesterday"]).tolist() == [1.0, 0.0]
    assert table.coverage(1, ["yesterday"]).tolist() == [0.0, 1.0]
    assert WordTable(["x"], [[]]).coverage(0).tolist() == [0.0]


def test_of_a_long_query_five_words_are_all_that_is_asked():
    words = [f"word{n}" for n in range(40)]
    table = WordTable([" ".join(words[:5]), " ".join(words[:2]), "nothing"], [words])
    five, two, none = table.coverage(0).tolist()
    assert five > 0.7
    assert five > two > 0.25
    assert none == 0


@pytest.mark.parametrize(
    ("scores", "divided"),
    [([1.0, 4.0], [0.25, 1.0]), ([-1.0, 0.0], [-1.0, 0.0]), ([1e-12, 0.0], [1e-12, 0.0]),
    ([np.nan, 2.0], [np.nan, 1.0]), ([], [])],
)  # fmt: skip
def test_scores_are_divided_by_their_maximum_where_there_is_one(scores, divided):
    np.testing.assert_array_equal(divide_by_maximum(np.array(scores)), np.array(divided))
