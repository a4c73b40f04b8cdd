"""Why a memory came, as a player reads it."""

from questbook.graphs.web.reasons import add_reasons


def test_a_reason_is_in_plain_words_and_names_the_words_that_are_shared():
    memories = [
        {"player": "I hid the lanterns.", "reply": "Under the reef.", "why": "relevance 1.00, words #1, meaning #2"},
        {"text": "Maren Holt sails.", "why": "relevance 0.50, words #9, time 0.40, named +1, name word for word"},
        {"text": "A bell.", "why": "relevance 0.10, meaning #40, recency 0.99"},
        {"text": "It rang.", "why": "the turn after “A bell.”"},
        {"text": "A diary.", "why": "distance 0.31"},
        {"text": "A rumour."},
    ]
    reasons = [memory["reason"] for memory in add_reasons(memories, "Where is the lantern of the reef, Maren?")]
    assert reasons == [
        "shares the words lantern, reef; close in meaning",
        "shares the word maren; is about what you named; is of the time that you named",
        "fits what was said",
        "the turn after “A bell.”",
        "close in meaning",
        "",
    ]
