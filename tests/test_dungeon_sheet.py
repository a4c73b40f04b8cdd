import pytest
from hypothesis import given
from hypothesis import strategies as st

from questbook.graphs.dungeon_master import sheet as rules
from questbook.graphs.dungeon_master.sheet import (
    ABILITIES,
    STANDARD_ARRAY,
    ancestry_of,
    class_of,
    fill_abilities,
    fill_sheet,
    hit_points,
    modifier,
    rules_of,
)
from questbook.notebooks import CharacterNotebook, StateNotebook

DICE = {
    12: ["Barbarian"],
    10: ["Fighter", "Paladin", "Ranger"],
    8: ["Bard", "Cleric", "Druid", "Monk", "Rogue", "Warlock"],
    6: ["Sorcerer", "Wizard"],
}
CLASSES = {name: die for die, names in DICE.items() for name in names}
ANCESTRIES = ["Dwarf", "Elf", "Halfling", "Human", "Dragonborn", "Gnome", "Half-Elf", "Half-Orc", "Tiefling"]


@pytest.mark.parametrize(
    ("score", "expected"), [(1, -5), (3, -4), (8, -1), (9, -1), (10, 0), (11, 0), (15, 2), (20, 5), (30, 10)]
)
def test_modifier(score, expected):
    assert modifier(score) == expected


@pytest.mark.parametrize(("name", "die"), CLASSES.items())
def test_every_class_is_whole(name, die):
    assert class_of(name) == class_of(f"a {name.upper()}s' child") == name
    assert rules_of(name).hit_die == die
    assert sorted(rules_of(name).abilities) == sorted(ABILITIES)
    assert 5 <= rules_of(name).gold <= 20
    assert len(rules_of(name).kit) >= 3
    assert all(number > 0 for number in rules_of(name).kit.values())


WORDS = {
    "Rogue": "halfling thief, BURGLAR, a band of thieves, treasure hunter",
    "Druid": "hedge-witch",
    "Wizard": "witch, a battle mage, ex-soldier turned wizard",
    "Ranger": "witch hunter, archer, hunter",
    "Fighter": "Knight of the Rose, old soldiers",
    "Paladin": "holy\nknight",
    "Cleric": "priestess",
    "Bard": "wandering minstrel",
    None: "baker, , image maker, bombardier, skyscouting, midnight",
}


@pytest.mark.parametrize(("name", "texts"), WORDS.items())
def test_class_of_everyday_words(name, texts):
    assert {text: class_of(text) for text in texts.split(", ")} == dict.fromkeys(texts.split(", "), name)


def test_no_word_names_two_classes():
    words = [word for listed in rules.CLASS_WORDS.values() for word in listed.split(", ")]
    assert len(words) == len(set(words))
    assert set(rules.CLASS_WORDS) == set(CLASSES)
    for name, listed in rules.CLASS_WORDS.items():
        assert {class_of(word) for word in listed.split(", ")} == {name}
        assert rules_of(name).kit != rules_of("baker").kit


KIN = {
    "Halfling": "halfling thief, hobbit",
    "Half-Elf": "half elf, HALF-ELVEN bard",
    "Elf": "an elven scout, wood elves, elf raised by half-orcs",
    "Dwarf": "dwarvish smith",
    "Half-Orc": "orc, half orc",
    None: "myself, force, talking cat",
}


@pytest.mark.parametrize(("name", "texts"), [*((name, name) for name in ANCESTRIES), *KIN.items()])
def test_ancestry_of(name, texts):
    assert {ancestry_of(text) for text in texts.split(", ")} == {name}


def scores(text):
    return dict(zip(ABILITIES, map(int, text.split()), strict=True))


@pytest.mark.parametrize(
    ("chosen", "class_name", "ancestry", "expected"),
    [
        ({}, "Rogue", "", "8 15 12 14 10 13"),
        ({}, "Wizard", "", "8 13 14 15 12 10"),
        ({}, "thief", "halfling", "8 17 12 14 10 13"),
        ({}, "baker", "talking cat", "10 15 14 8 13 12"),
        ({}, "Fighter", "human", "16 14 15 9 13 11"),
        ({}, "Rogue", "half-elf", "8 16 12 15 10 15"),
        ({}, "Sorcerer", "half-elf", "8 14 15 10 12 17"),
        ({}, "Barbarian", "half-orc", "17 13 15 8 12 10"),
        # A chosen score stays and uses up its place in the array ...
        ({"charisma": 15}, "Rogue", "", "8 14 12 13 10 15"),
        ({"dexterity": 8, "strength": None}, "Rogue", "", "10 8 13 15 12 14"),
        ({"strength": 15, "wisdom": 15}, "Rogue", "", "15 14 10 13 15 12"),
        # ... a score from outside the array uses up nothing ...
        ({"strength": 18}, "Rogue", "", "18 15 12 14 10 13"),
        # ... and the ancestry does not change it.
        ({"dexterity": 14}, "Rogue", "halfling", "8 14 12 15 10 13"),
        ({"charisma": 8, "dexterity": 15}, "Rogue", "half-elf", "10 15 14 15 12 8"),
    ],
)
def test_fill_abilities(chosen, class_name, ancestry, expected):
    assert fill_abilities(chosen, class_name, ancestry) == scores(expected)


@given(
    chosen=st.dictionaries(st.sampled_from(ABILITIES), st.none() | st.integers(1, 30)),
    class_name=st.sampled_from([*CLASSES, "baker", ""]),
    ancestry=st.sampled_from([*ANCESTRIES, ""]),
)
def test_filling_keeps_what_was_chosen(chosen, class_name, ancestry):
    before = dict(chosen)
    filled = fill_abilities(chosen, class_name, ancestry)
    assert chosen == before
    assert tuple(filled) == ABILITIES
    for ability, score in filled.items():
        if chosen.get(ability) is not None:
            assert score == chosen[ability]
        else:
            assert 8 <= score <= 17
    plain = fill_abilities(chosen, class_name)
    open_ones = [ability for ability in ABILITIES if chosen.get(ability) is None]
    values = [plain[ability] for ability in rules_of(class_name).abilities if ability in open_ones]
    assert values == sorted(values, reverse=True)
    assert set(values) <= set(STANDARD_ARRAY)


@pytest.mark.parametrize(
    ("class_name", "level", "constitution", "expected"),
    [
        ("Rogue", 1, 12, 9), ("Rogue", 3, 12, 9 + 2 * 6), ("Barbarian", 1, 16, 15), ("Barbarian", 20, 20, 17 + 19 * 12),
        ("Wizard", 1, 10, 6), ("Wizard", 5, 8, 5 + 4 * 3), ("Wizard", 3, 1, 1 + 2 * 1),
        ("retired knight", 2, 14, 12 + 8), ("baker", 1, 10, 8),
    ],
)  # fmt: skip
def test_hit_points(class_name, level, constitution, expected):
    assert hit_points(class_name, level, constitution) == expected


MIRA = {"name": "Mira", "ancestry": "halfling", "class": "rogue", "background": "docks", "goal": "find her sister"}


def test_who_enters_the_quest_is_unhurt_with_a_kit_and_a_little_gold_on_the_first_morning():
    page = CharacterNotebook.load(MIRA)
    patches = fill_sheet(page, page, StateNotebook())
    assert patches["character"]["hit_points"] == 9
    assert patches["character"]["kit"] == rules_of("Rogue").kit
    assert patches["quest"] == {
        "condition": {"hp": 9, "max_hp": 9},
        "inventory": rules_of("Rogue").kit,
        "gold": rules_of("Rogue").gold,
        "clock": {"day": 1, "time": "morning"},
    }


def test_who_enters_the_quest_keeps_what_its_page_says_already():
    page = CharacterNotebook.load(MIRA | {"kit": {"lute": 1}, "hit_points": 12})
    quest = StateNotebook.load({"gold": 7, "inventory": {"map": 1}, "clock": {"day": 3, "time": "night"}})
    patches = fill_sheet(page, page, quest)
    assert set(patches["character"]) == {"abilities"}
    assert patches["quest"] == {
        "condition": {"hp": 12, "max_hp": 12},
        "inventory": {"lute": 1, "map": 1},
        "gold": 7,
        "clock": {"day": 3, "time": "night"},
    }


def test_in_the_quest_only_the_maximum_of_hit_points_follows_the_page():
    page = CharacterNotebook.load(MIRA)
    quest = StateNotebook.load({"gold": 0, "condition": {"hp": 2, "max_hp": 9}})
    ready = page.apply(fill_sheet(page, page, quest)["character"]).page
    assert ready.kit == {}, "who has lost everything gets no second kit"
    assert fill_sheet(ready, ready, quest) == {}
    trained = ready.apply({"hit_points": 40}).page
    assert fill_sheet(ready, trained, quest)["quest"] == {"condition": {"max_hp": 40}}
