"""The running summary: clipped at sentences, extended without a model."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from questbook.memory.buffer.summary import append_extract, clip_summary, extend_summary, extract


def test_a_short_summary_stays():
    assert clip_summary(" One.\nTwo. ", 100) == "One. Two."


def test_a_long_one_ends_with_a_sentence():
    text = "This is a sentence. " * 40
    clipped = clip_summary(text, 50)
    assert clipped.endswith("sentence.")
    assert len(clipped) <= 200


def test_without_a_sentence_it_ends_with_an_ellipsis():
    assert clip_summary("x" * 500, 10) == "x" * 39 + "…"


REPLY = "He tells of the heron. It flew.  More."


def test_extraction_keeps_the_first_sentences_of_a_reply_and_what_was_noted():
    turn = {"player": "I ask Goran. Twice.", "reply": REPLY, "facts": ["The heron is grey."]}
    assert extract(turn, quote=False) == ["He tells of the heron.", "It flew.", "The heron is grey."]
    assert extend_summary("Mira came.", extract(turn, quote=False)[:1], 100) == "Mira came. He tells of the heron."


@pytest.mark.parametrize(
    ("player", "quotation"),
    [
        ("I ask Goran. Twice.", "The person: “I ask Goran.”"),
        ("Who is there?", "The person: “Who is there?”"),
        ('I say "I go"\nand go', "The person: “I say 'I go' and go.”"),
        ("x" * 900, "The person: “" + "x" * 199 + "…”"),
    ],
)
def test_a_person_is_quoted_one_sentence_that_cannot_end_the_quotation(player, quotation):
    said, *reply = extract({"player": player, "reply": REPLY})
    assert said == quotation
    assert reply == ["He tells of the heron.", "It flew."]
    again = extend_summary(extend_summary("", [said, *reply], 1000), ["New."], 1000)
    assert again.startswith(quotation), "a later extract does not cut it"


def test_nothing_is_put_together_of_a_persons_marks():
    turns = [{"player": player, "reply": "Yes."} for player in ("Who?", "I go.", "So!", "", "…")]
    text = extend_summary("", [sentence for turn in turns for sentence in extract(turn)], 1000)
    assert not re.search(r"[.?!…][.]|^ |  ", text), text


def test_a_summary_that_a_model_wrote_stays_before_an_extract():
    summary = "Mira seeks her sister. " * 8 + "She owes Goran ten crowns."
    sentences = [f"Deed {n} is done." for n in range(50)]
    longer = append_extract(summary, sentences, 60)
    assert longer.startswith(summary)
    assert longer.endswith("Deed 49 is done.")
    again = append_extract(longer, ["Last deed."], 60)
    assert again.startswith(summary)
    assert again.endswith("Deed 49 is done. Last deed.")
    assert len(again) <= 2 * 60 * 4 + 1


def test_the_oldest_make_way_for_the_newest():
    passages = [f"Deed {n} is done." for n in range(50)]
    summary = extend_summary("Long ago it began.", passages, 30)
    assert "Deed 49" in summary
    assert "Long ago" not in summary
    assert len(summary) <= 120


@settings(max_examples=15)
@given(st.text(max_size=300), st.lists(st.text(max_size=300), max_size=5), st.integers(5, 100))
def test_it_never_passes_its_budget(old, passages, tokens):
    assert len(extend_summary(old, passages, tokens)) <= tokens * 4
    assert len(clip_summary(old, tokens)) <= tokens * 4
    assert len(append_extract(old, passages, tokens)) <= tokens * 8 + 1
