"""What the note-taker deletes on its own is a notice, unless the story did it."""

import pytest

from questbook import StateNotebook
from questbook.graphs.dungeon_master.notes import deletion_notice

PAGE = (
    StateNotebook()
    .apply(
        {
            "quests": {"Find Ida": {}, "The rats": {"status": "done"}},
            "people": {"Oda": {"role": "smith"}, "Goran": {"alive": False, "fate": "eaten"}},
            "facts": {"the ledger": "lies under the mill"},
            "inventory": {"torch": 2, "silver key": 1},
            "secrets": {"mayor": "is the thief"},
        }
    )
    .page
)
SAID = [{"turn": 3, "player": "I light a torch.", "reply": "It burns down."}]


def notice(**patch):
    return deletion_notice(PAGE, PAGE.apply(patch).page, SAID)


@pytest.mark.parametrize(
    ("patch", "named", "hint"),
    [
        ({"facts": {"the ledger": None}}, "the fact “the ledger”", "/why facts.the ledger"),
        ({"quests": {"Find Ida": None}}, "the quest “Find Ida”", "/why quests.Find Ida"),
        ({"people": {"Oda": None}}, "the person “Oda”", "/why people.Oda"),
        ({"inventory": {"silver key": 0}}, "the item “silver key”", "/why inventory.silver key"),
    ],
)
def test_an_entry_that_goes_without_a_reason_is_named(patch, named, hint):
    assert named in notice(**patch)
    assert f"{hint} says after which message." in notice(**patch)


@pytest.mark.parametrize(
    "patch",
    [
        {"inventory": {"torch": None}},
        {"quests": {"The rats": None}},
        {"people": {"Goran": None}},
        {"facts": {"the ledger": None, "ledger of the mill": "found"}},
        {"facts": {"the ledger": "is found"}, "gold": 3},
        {"quests": {"Find Ida": {"status": "done"}}},
        {},
    ],
    ids=["spoken of", "over", "dead", "renamed", "changed", "done", "nothing"],
)
def test_what_goes_as_the_story_goes_is_no_notice(patch):
    assert notice(**patch) == ""


@pytest.mark.parametrize(
    ("before", "patch", "reply"),
    [
        ({"inventory": {"iron key": 1}}, {"inventory": {"iron key": None}}, "The key breaks in the lock."),
        ({"inventory": {"silver locket": 1}}, {"inventory": {"silver locket": 0}}, "The locket is gone."),
        ({"inventory": {"Healing Potions": 1}}, {"inventory": {"Healing Potions": 0}}, "The potion is bitter."),
        (
            {"people": {"the innkeeper": {}}},
            {"people": {"the innkeeper": None, "Tansy": {"role": "innkeeper"}}},
            "“Tansy,” she says.",
        ),
    ],
)
def test_a_thing_by_its_last_word_and_a_person_who_gets_a_name_are_no_notice(before, patch, reply):
    page = StateNotebook().apply(before).page
    said = [{"turn": 3, "player": "I go on.", "reply": reply}]
    assert deletion_notice(page, page.apply(patch).page, said) == ""
    assert deletion_notice(page, page.apply(dict.fromkeys(before)).page, SAID)


def test_a_secret_is_no_notice_and_many_entries_are_counted():
    assert notice(secrets={"mayor": None}) == ""
    everything = notice(**dict.fromkeys(("quests", "people", "facts", "inventory", "secrets")))
    assert "1 more" in everything


def test_on_a_page_that_is_nearly_full_the_model_was_asked_to_make_room():
    full = StateNotebook().apply({"facts": {f"stone {n}": "grey and old, " * 30 for n in range(12)}}).page
    assert len(full.render()) > 0.8 * full.LIMIT
    assert deletion_notice(full, full.apply({"facts": {"stone 0": None}}).page, []) == ""
