"""Why a memory came, as a player reads it."""

from questbook.graphs.web.memories import add_reasons
from questbook.memory.recall.query import Reason


def test_a_reason_is_in_plain_words_and_names_the_words_that_are_shared():
    memories = [
        {"player": "I hid the lanterns.", "reply": "Under the reef.", "reason": Reason(1.0, by_words=1, by_meaning=2)},
        {"text": "Maren Holt sails.", "reason": Reason(0.5, by_words=9, time=0.4, named=1, phrase=True)},
        {"text": "A bell.", "reason": Reason(0.1, named=-1, by_meaning=40, recency=0.99)},
        {"text": "It rang.", "reason": Reason(because="the turn after “A bell.”")},
    ]
    memories = [memory | {"reason": memory["reason"]._asdict()} for memory in memories]
    distance = {"text": "A diary.", "why": "distance 0.31"}
    shown = add_reasons([*memories, distance], "Where is the lantern of the reef, Maren?")
    assert [memory["because"] for memory in shown] == [
        "shares the words lantern, reef; close in meaning",
        "shares the word maren; is about what you named; is of the time that you named",
        "fits what was said",
        "the turn after “A bell.”",
        "close in meaning",
    ]
