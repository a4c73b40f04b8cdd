import pytest
from hypothesis import given
from hypothesis import strategies as st

from questbook.graphs.dungeon_master import sheet as rules
from questbook.graphs.dungeon_master.sheet import (
    ABILITIES,
    STANDARD_ARRAY,
    ancestry_of,
    ancestry_said,
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


RULES = {
    "Barbarian": ("15 13 14 8 12 10", 10, "1 greataxe, 2 handaxe, 1 bedroll, 5 ration"),
    "Bard": ("8 14 13 10 12 15", 15, "1 rapier, 1 lute, 1 leather armor, 1 fine clothes"),
    "Cleric": ("13 10 14 8 15 12", 15, "1 mace, 1 shield, 1 holy symbol, 5 candle"),
    "Druid": ("8 13 14 12 15 10", 10, "1 wooden shield, 1 sickle, 1 mistletoe sprig, 5 ration"),
    "Fighter": ("15 13 14 8 12 10", 15, "1 longsword, 1 shield, 1 chain mail, 5 torch"),
    "Monk": ("12 15 13 8 14 10", 5, "1 quarterstaff, 10 dart, 1 bedroll, 5 ration"),
    "Paladin": ("15 10 13 8 12 14", 15, "1 warhammer, 1 shield, 1 chain mail, 1 holy symbol"),
    "Ranger": ("12 15 13 10 14 8", 15, "1 longbow, 20 arrow, 1 shortsword, 1 leather armor"),
    "Rogue": ("8 15 12 14 10 13", 20, "1 shortsword, 2 dagger, 1 thieves' tools, 1 leather armor"),
    "Sorcerer": ("8 13 14 10 12 15", 10, "2 dagger, 1 crystal focus, 5 torch, 5 ration"),
    "Warlock": ("8 13 14 10 12 15", 15, "2 dagger, 1 leather armor, 1 old tome, 1 lantern"),
    "Wizard": ("8 13 14 15 12 10", 15, "1 spellbook, 1 quarterstaff, 1 ink and quill, 5 candle"),
    "baker": ("10 15 14 8 13 12", 10, "1 dagger, 3 torch, 5 ration"),
}


@pytest.mark.parametrize(("name", "abilities", "gold", "kit"), [(name, *of) for name, of in RULES.items()])
def test_each_class_has_its_scores_its_gold_and_its_kit(name, abilities, gold, kit):
    assert fill_abilities({}, name) == scores(abilities)
    assert (rules_of(name).gold, ", ".join(f"{n} {item}" for item, n in rules_of(name).kit.items())) == (gold, kit)


@pytest.mark.parametrize(("name", "expected"), [
    ("Dwarf", "10 15 16 8 13 12"), ("Elf", "10 17 14 8 13 12"), ("Halfling", "10 17 14 8 13 12"),
    ("Human", "11 16 15 9 14 13"), ("Dragonborn", "12 15 14 8 13 13"), ("Gnome", "10 15 14 10 13 12"),
    ("Half-Elf", "10 16 15 8 13 14"), ("Half-Orc", "12 15 15 8 13 12"), ("Tiefling", "10 15 14 9 13 14"),
])  # fmt: skip
def test_each_ancestry_adds_what_the_rules_say(name, expected):
    assert fill_abilities({}, "baker", name) == scores(expected)


@pytest.mark.parametrize(("class_name", "words"), [
    ("Barbarian", "berserker, savage, reaver"),
    ("Bard", "minstrel, troubadour, skald, singer, musician, poet, storyteller, entertainer, jester"),
    ("Cleric", "priest, priestess, acolyte, healer"), ("Druid", "shaman, hedge witch, shapeshifter"),
    ("Fighter", "warrior, soldier, knight, mercenary, sellsword, guard, gladiator, swordsman, veteran"),
    ("Monk", "martial artist, ascetic"), ("Paladin", "crusader, templar, holy warrior, holy knight"),
    ("Ranger", "hunter, huntress, archer, scout, tracker, trapper, bounty hunter, witch hunter"),
    ("Rogue", "thief, thieves, burglar, assassin, pickpocket, smuggler, spy, pirate, treasure hunter"),
    ("Sorcerer", "sorceress, wild mage"), ("Warlock", "cultist, occultist"),
    ("Wizard", "mage, witch, magician, enchanter, enchantress, necromancer, conjurer, illusionist, scholar"),
])  # fmt: skip
def test_everyday_words_for_a_class_are_known(class_name, words):
    assert {word: class_of(f"an old {word}") for word in words.split(", ")} == dict.fromkeys(
        words.split(", "), class_name
    )


@pytest.mark.parametrize(("name", "words"), [
    ("Dwarf", "dwarf, dwarven, dwarvish, dwarves, dwarfs"), ("Elf", "elf, elven, elvish, elves"),
    ("Halfling", "halfling, hobbit, hobbits"), ("Gnome", "gnome, gnomish"),
    ("Half-Elf", "half elf, half-elven, half elvish, half-elves, halfelf, half_elf"),
    ("Half-Orc", "half orc, half-orcish, halforc, orc, orcish, orcs"), ("Tiefling", "tiefling, tieflings"),
])  # fmt: skip
def test_words_for_an_ancestry_are_known(name, words):
    assert {word: ancestry_of(f"an old {word}") for word in words.split(", ")} == dict.fromkeys(words.split(", "), name)


@pytest.mark.parametrize(("level", "bonus"), [(1, 2), (4, 2), (5, 3), (8, 3), (9, 4), (13, 5), (17, 6), (20, 6)])
def test_a_character_adds_its_abilities_and_its_proficiency_to_rolls(level, bonus):
    page = CharacterNotebook.load({"level": level, "abilities": {"strength": 8, "wisdom": 15}})
    assert rules.modifiers(page) == f"STR -1, WIS +2, proficiency +{bonus}"


@pytest.mark.parametrize("before", [
    "about", "against", "by", "find", "for", "from", "hate", "kill", "killed", "like", "no", "not", "of", "to", "with",
])  # fmt: skip
def test_a_dwarf_behind_such_a_word_is_somebody_else(before):
    assert ancestry_said([f"My name is Bo and I know stories {before} a dwarf of the hills"]) is None
    assert ancestry_said(["My name is Bo and I am a dwarf of the hills"]) == "Dwarf"


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
    quest = StateNotebook.load({"gold": 7, "inventory": {"map": 1, "lute": 3}, "clock": {"day": 3, "time": "night"}})
    patches = fill_sheet(page, page, quest)
    assert set(patches["character"]) == {"abilities"}
    assert patches["quest"] == {
        "condition": {"hp": 12, "max_hp": 12},
        "inventory": {"lute": 3, "map": 1},
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


def test_the_maximum_of_hit_points_follows_level_class_and_constitution_until_a_person_sets_it():
    def raised(before, quest, **change):
        page = before.apply(change).page
        patches = fill_sheet(before, page, quest)
        return before.apply(patches["character"]).page, quest.apply(patches.get("quest", {})).page

    page = CharacterNotebook.load(MIRA)
    patches = fill_sheet(page, page, StateNotebook())
    page, quest = page.apply(patches["character"]).page, StateNotebook().apply(patches["quest"]).page
    page, quest = raised(page, quest, level=5)
    assert (quest.condition.hp, quest.condition.max_hp) == (9 + 4 * 6,) * 2, "who is unhurt stays so"
    page, quest = raised(page, quest.apply({"condition": {"hp": 7}}).page, abilities={"constitution": 20})
    assert (quest.condition.hp, quest.condition.max_hp) == (7, 13 + 4 * 10)
    page, quest = raised(page, quest, **{"class": "wizard"})
    assert (page.hit_points, quest.condition.max_hp) == (11 + 4 * 9,) * 2
    page, quest = raised(page, quest, hit_points=99)
    page, quest = raised(page, quest, level=6)
    assert (page.hit_points, quest.condition.max_hp) == (99, 99), "a person said so"
    page, quest = raised(page, quest, hit_points=None)
    assert (page.hit_points, quest.condition.max_hp) == (11 + 5 * 9,) * 2
