"""The running summary: clipped at sentences, extended without a model."""

from hypothesis import given
from hypothesis import strategies as st

from questbook.memory.buffer.summary import clip_summary, extend_summary


def test_a_short_summary_stays():
    assert clip_summary(" One.\nTwo. ", 100) == "One. Two."


def test_a_long_one_ends_with_a_sentence():
    text = "This is a sentence. " * 40
    clipped = clip_summary(text, 50)
    assert clipped.endswith("sentence.")
    assert len(clipped) <= 200


def test_without_a_sentence_it_ends_with_an_ellipsis():
    assert clip_summary("x" * 500, 10) == "x" * 39 + "…"


def test_extraction_keeps_the_first_sentences_of_each_turn():
    summary = extend_summary("Mira came to town.", ["I ask Goran. He tells of the heron. More."], 100)
    assert summary == "Mira came to town. I ask Goran. He tells of the heron."


def test_the_oldest_make_way_for_the_newest():
    passages = [f"Deed {n} is done. And more of it." for n in range(50)]
    summary = extend_summary("Long ago it began.", passages, 30)
    assert "Deed 49" in summary
    assert "Long ago" not in summary
    assert len(summary) <= 120


@given(st.text(max_size=300), st.lists(st.text(max_size=300), max_size=5), st.integers(5, 100))
def test_it_never_passes_its_budget(old, passages, tokens):
    assert len(extend_summary(old, passages, tokens)) <= tokens * 4
    assert len(clip_summary(old, tokens)) <= tokens * 4
