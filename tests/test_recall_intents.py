"""What a question asks for and what a message asks for good, on talk that nobody wrote for a benchmark."""

import everyday_talk as talk
import pytest

from questbook.memory.recall.intents import (
    asks_for_advice,
    asks_for_order,
    asks_for_summary,
    is_standing,
    prefers,
    standing_span,
)


@pytest.mark.parametrize(
    ("finds", "yes", "no", "least"),
    [
        (is_standing, talk.STANDING, talk.NOT_STANDING, 0.95),
        (prefers, talk.PREFERENCES, talk.NO_PREFERENCES, 0.9),
        (asks_for_advice, talk.ADVICE, talk.NO_ADVICE, 0.9),
        (asks_for_order, talk.ORDER, f"{talk.PLAIN}\n{talk.SUMMARY}", 1.0),
        (asks_for_summary, talk.SUMMARY, f"{talk.PLAIN}\n{talk.ORDER}", 1.0),
    ],
)
def test_patterns_find_what_people_mean(finds, yes, no, least):
    found = [line for line in yes.splitlines() if finds(line)]
    wrong = [line for line in no.splitlines() if finds(line)]
    missed = [line for line in yes.splitlines() if line not in found]
    assert len(found) >= least * len(yes.splitlines()), missed
    assert len(found) >= least * len([*found, *wrong]), wrong


def test_the_span_of_an_instruction_is_its_sentence():
    text = "Hi! I live in Oslo now. From now on please use Celsius. Thanks."
    start, end = standing_span(text)
    assert text[start:end].strip() == "From now on please use Celsius."
    assert standing_span("I live in Oslo.") is None


def test_what_is_pasted_in_the_middle_of_a_long_message_is_no_instruction():
    pasted = "The lamp is on the desk.\n" * 20
    assert not is_standing(f"Look at this manual.\n{pasted}Always unplug the lamp first.\n{pasted}What does it mean?")
    assert is_standing(f"Look at this manual.\n{pasted}Always quote it word for word.")
