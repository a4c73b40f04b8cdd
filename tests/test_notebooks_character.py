"""CharacterNotebook: merged as it becomes known; complete only when nothing required is missing."""

import pytest

from questbook import CharacterNotebook, PatchError
from questbook.notebooks.errors import PageFullError, VersionError

MIRA = {"name": "Mira", "ancestry": "halfling", "class": "rogue", "background": "docks", "goal": "find her sister"}


def test_calls_add_up_until_everything_required_is_there_and_null_takes_a_field_back():
    page = CharacterNotebook()
    assert page.missing == ["name", "ancestry", "class", "background", "goal"]
    page = page.apply({"name": "Mira"}).page.apply({"class": "rogue"}).page
    assert (page.name, page.class_name, page.complete) == ("Mira", "rogue", False)
    assert page.missing == ["ancestry", "background", "goal"]
    assert page.apply(MIRA).page.complete
    assert page.apply(MIRA).page.apply({"goal": None}).page.missing == ["goal"]


@pytest.mark.parametrize(
    "nothing",
    [
        "",
        "   ",
        "unknown",
        "N/A",
        "None.",
        "?",
        "TBD",
        "na",
        "null",
        "Undecided!",
        "unspecified",
        "not specified",
    ],
)
def test_a_placeholder_is_not_an_answer(nothing):
    assert CharacterNotebook().apply(MIRA | {"goal": nothing}).page.missing == ["goal"]


def test_a_kit_may_be_counted_in_words():
    assert CharacterNotebook().apply({"Gear": {"rope": "two", "torch": "5x"}}).page.kit == {"rope": 2, "torch": 5}


@pytest.mark.parametrize(("patch", "names"), [
    ({"class": 3}, "class: got 3"), ({"level": 21}, "level: got 21"),
    ({"abilities": {"dexterity": 31}}, "abilities.dexterity: got 31"),
    ({"abilities": {"luck": 10}}, "abilities.luck: there is no such field"),
    ({"kit": {"rope": "much"}}, "kit.rope: got 'much'"), ({"zodiac": "good"}, "zodiac: there is no such field"),
    ("Mira", "got 'Mira'; expected an object"), (["Mira"], "expected an object"), (None, "expected an object"),
])  # fmt: skip
def test_what_does_not_fit_is_named_and_changes_nothing(patch, names):
    page = CharacterNotebook().apply(MIRA).page
    before = page.as_json()
    with pytest.raises(PatchError, match="left as it is") as error:
        page.apply(patch)
    assert names in str(error.value)
    assert page.as_json() == before


def test_hit_points_belong_to_the_rules():
    with pytest.raises(PatchError, match="hit_points: code keeps this field"):
        CharacterNotebook().apply({"hit_points": 900}, by_model=True)
    with pytest.raises(PatchError, match="hit_points: code keeps this field"):
        CharacterNotebook().apply({"Hit Points": 900}, by_model=True)
    assert CharacterNotebook().apply({"hit_points": 9}).page.hit_points == 9, "a person may set them"


def test_a_page_over_its_limit_is_refused_with_how_much_to_shorten():
    kit = {f"thing number {n} of a very long list": 1 for n in range(80)}
    with pytest.raises(PageFullError, match="shorten it by at least") as error:
        CharacterNotebook().apply({"kit": kit})
    assert error.value.used > error.value.limit == CharacterNotebook.LIMIT + CharacterNotebook.RESERVED
    with pytest.raises(PageFullError) as by_model:
        CharacterNotebook().apply({"kit": kit}, by_model=True)
    assert by_model.value.limit == CharacterNotebook.LIMIT
    short_enough = dict(list(kit.items())[: 80 - (error.value.used - error.value.limit) // 30])
    assert CharacterNotebook().apply({"kit": short_enough}).page.kit == short_enough


def test_old_pages_are_upgraded_and_newer_ones_refused():
    class Later(CharacterNotebook):
        VERSION = 2

        @classmethod
        def upgrade(cls, page):
            return {("ancestry" if key == "race" else key): value for key, value in page.items()}

    assert Later.load({"version": 1, "race": "elf"}).ancestry == "elf"
    assert Later.load({"version": 1, "race": "elf"}).as_json()["version"] == 2
    for newer in (2, 99, "1", True, 0):
        with pytest.raises(VersionError, match="reads versions 1 to 1"):
            CharacterNotebook.load({"version": newer, "name": "a secret"})
        with pytest.raises(VersionError):
            CharacterNotebook().apply({"version": newer})


WORDS = {
    "ancestry": "race species lineage heritage people folk kin", "background": "backstory history origin past",
    "class": "job occupation profession role calling vocation character_class class_name archetype",
    "appearance": "looks look description", "personality": "traits personality_traits temperament",
    "alignment": "morals moral_alignment ethics morality",
    "goal": "motivation motive objective aim quest desire",
}  # fmt: skip


@pytest.mark.parametrize("field", WORDS)
def test_each_other_word_for_a_field_of_the_character_means_it(field):
    for word in WORDS[field].split():
        assert CharacterNotebook().apply({word: "x"}).page == CharacterNotebook().apply({field: "x"}).page, word


def test_scores_and_things_may_be_called_otherwise():
    for word in ["ability_scores", "scores", "stats", "attributes"]:
        assert CharacterNotebook().apply({word: {"wisdom": 12}}).page.abilities.wisdom == 12
    for word in ["equipment", "inventory", "items", "gear", "possessions"]:
        assert CharacterNotebook().apply({word: {"rope": 1}}).page.kit == {"rope": 1}


@pytest.mark.parametrize(("patch", "fits"), [
    ({"name": "x" * 80}, True), ({"name": "x" * 81}, False), ({"ancestry": "x" * 81}, False),
    ({"class": "x" * 81}, False), ({"alignment": "x" * 81}, False), ({"background": "x" * 400}, True),
    ({"background": "x" * 401}, False), ({"appearance": "x" * 401}, False), ({"personality": "x" * 401}, False),
    ({"goal": "x" * 401}, False), ({"level": 1}, True), ({"level": 0}, False), ({"level": 20}, True),
    ({"abilities": {"wisdom": 1}}, True), ({"abilities": {"wisdom": 0}}, False), ({"abilities": {"wisdom": 30}}, True),
    ({"hit_points": 0}, False), ({"hit_points": 999}, True), ({"hit_points": 1000}, False),
    ({"kit": {"rope": 0}}, False), ({"kit": {"rope": 9999}}, True), ({"kit": {"rope": 10_000}}, False),
])  # fmt: skip
def test_every_field_has_its_bounds(patch, fits):
    if fits:
        assert CharacterNotebook().apply(patch).page != CharacterNotebook() or patch == {"level": 1}
        return
    with pytest.raises(PatchError):
        CharacterNotebook().apply(patch)
