"""Two facts are one if their fields and enough of their words agree; each rule at its limit."""

import pytest

from questbook.memory.facts.relations import is_same_fact

KETTLE = "copper kettle whistles"


@pytest.mark.parametrize(
    ("more", "same", "same_with_value"),
    [
        (" morning kitchen", True, True),  # 3 of 5 words in common
        (" morning kitchen stove", False, True),  # 3 of 6
        (" morning kitchen stove garden", False, True),  # 3 of 7
        (" morning kitchen stove garden window", False, False),  # 3 of 8
    ],
)
def test_a_text_that_only_says_more_is_the_same_while_enough_words_are_common(more, same, same_with_value):
    record, other = {"text": KETTLE}, {"text": KETTLE + more}
    assert is_same_fact(record, other) is is_same_fact(other, record) is same
    valued = {"value": "kettle", "subject": "kettle"}
    assert is_same_fact(record | valued, other | valued) is same_with_value


@pytest.mark.parametrize(("cosine", "same"), [(None, True), (0.51, True), (0.5, True), (0.49, False), (-1.0, False)])
def test_a_cosine_can_only_part_two_facts(cosine, same):
    assert is_same_fact({"text": KETTLE}, {"text": f"{KETTLE} loudly"}, cosine) is same
    assert is_same_fact({"text": KETTLE}, {"text": "silver spoon rattles"}, 1.0) is False
    assert is_same_fact({"text": KETTLE}, {"text": KETTLE.upper()}, cosine) is True


def test_words_that_each_side_lacks_part_two_facts_unless_all_fields_agree():
    record = {"text": "Mira gave the ferryman silver coins.", "subject": "Mira", "attribute": "gift", "value": "silver"}
    other = record | {"text": "Mira handed the ferryman silver coins."}
    assert is_same_fact(record, other)
    for field in ("subject", "attribute", "value"):
        assert not is_same_fact(record, other | {field: ""}), field
        assert not is_same_fact(record, other | {field: "river"}), field
    longer = other | {"text": "Mira handed old Wen a purse of silver yesterday evening."}
    assert not is_same_fact(record, longer), "too few words in common"


def test_the_same_words_are_the_same_fact_where_no_slot_says_otherwise():
    record = {"text": KETTLE, "value": "kettle"}
    assert is_same_fact(record, {"text": KETTLE, "value": "spoon"})
    assert is_same_fact(record | {"slot": "kettle|state"}, {"text": KETTLE, "value": "spoon"})


def test_one_slot_has_one_value():
    record = {"text": "The gate is open.", "slot": "gate|state", "value": "open"}
    assert is_same_fact(
        record, {"text": "An open gate, at last, says the guard.", "slot": "gate|state", "value": "Open"}
    )
    assert not is_same_fact(record, {"text": "The gate is open.", "slot": "gate|state", "value": "closed"})
    assert not is_same_fact(record, {"text": "The gate is open now.", "slot": "gate|state", "value": ""})
    assert is_same_fact(record, {"text": "The gate is open.", "slot": "door|state", "value": "closed"}), "word for word"
    assert not is_same_fact(record, {"text": "The gate is open here.", "slot": "door|state", "value": "closed"})


@pytest.mark.parametrize(
    ("field", "value"), [("kind", "secret"), ("kind", "rumour"), ("kind", "insight"), ("claimed_by", "Oda")]
)
def test_another_voice_is_another_fact(field, value):
    record = {"text": KETTLE, "kind": "event", "claimed_by": ""}
    assert not is_same_fact(record, record | {field: value})
    assert is_same_fact(record | {field: value}, record | {field: value})
    assert is_same_fact(record, record | {"kind": "trait"})


def test_a_subject_may_be_named_in_full_but_not_be_another_one():
    record = {"text": "Wen rings the chapel bell.", "subject": "Wen"}
    assert is_same_fact(record, {"text": "Sister Wen rings the chapel bell.", "subject": "Sister Wen"})
    assert not is_same_fact(record, {"text": "Wen rings the chapel bell today.", "subject": "the bell"})


def test_without_subjects_names_come_in_one_order():
    assert not is_same_fact({"text": "Oda hates Goran."}, {"text": "Goran hates Oda."})
    assert is_same_fact({"text": "Oda hates Goran."}, {"text": "Oda still hates old Goran."})
    assert is_same_fact(
        {"text": "Oda hates Goran.", "subject": "Oda"},
        {"text": "Goran is hated by Oda: Oda hates Goran.", "subject": "Oda"},
    )
