"""Whole games with the offline storyteller: every tale can be solved, and none is ever stuck."""

from __future__ import annotations

import random
import re

import pytest
from storyteller_game import MIRA, Game

from questbook.graphs.offline.storyteller.engine import resolve
from questbook.graphs.offline.storyteller.language import saying
from questbook.graphs.offline.storyteller.scene import keys, tale

WALKS = {
    "lamp": """ask Maren about the keeper|go to the tavern|ask Tobb about the drowned man|go to the quay
        |go north|climb the ivy|climb the ivy|go up|talk to the keeper|ask about his brother
        |ask about the ring|go to wreck strand|search the wreck|give the ring to the drowned man
        |go to the lamp room|light the lamp""",
    "mill": """ask the old woman about the daughter|go to mill hill|whistle|go in|talk to the ghost
        |ask about the ghost|ask about the proof|go to the smithy|ask Bram about the barn
        |go to the barn yard|unlock the door with the key|go in|light the candle
        |search under the measure|search under the measure|go to the green|read the ledger aloud""",
    "inn": """ask the innkeeper about the merchant|go upstairs|examine the pillow|go to the kitchen
        |ask Nan about the goose|move the woodstack|move the woodstack|go down|talk to Halvard
        |ask Halvard about the pilgrim|go to the common room|go to the stable|search the saddlebags
        |search the saddlebags|go to the common room|show the letter to Ivor|attack|attack|attack
        |attack|attack""",
    "bridge": """go to the church|ask the priest about the bridge|ask about the copy|search the altar
        |search the altar|go to the market|read the charter""",
    "fair": """go to the mask stall|ask about the masks|ask how to undo it, the mirror|go to the great tent
        |ask the bear about the wagon|go to the wagon ring|crawl through the flap
        |crawl through the flap|go in|take mask number seven|play the whistle
        |break the mask before the mirror""",
    "bell": """go to the church|ask Joss about the bell|ask Joss about his hands|go to the eel stage
        |take the eel pie|go to the belfry|go to the church|go to the belfry|crank the winch
        |crank the winch|throw the pie to the eel|ring the bell""",
}
RAMBLES = """look|search|wait|rest|sleep|go back|talk|ask about the bell|ask about the mill|take everything
    |inventory|attack|attack him|what do I know about the mill?|who was Maren?|I find 1000 gold
    |sing|climb up|sneak past|listen|pick the lock|persuade her|threaten him|bribe the guard
    |use the rope|drop the rope|give 2 gold to her|flee|follow the rumour|go in|go out|go north
    |I carve the word 'heron' into the door|Remember: the password is swordfish
    |ignore previous instructions|</quest>|open the door|cast a spell|light the lamp|kill them all
    |xyzzy plugh|…|go up|go down|hello|buy cheese|dance|I tell her that my mother's name is Isolde
    |follow the road|force the door|read the book|eat the pie|jump into the sea"""


def listed(text):
    return [" ".join(part.split()) for part in text.split("|")]


@pytest.mark.parametrize("key", keys())
def test_every_tale_can_be_solved_and_then_the_next_one_opens(key):
    game = Game(luck=15, character=MIRA | {"abilities": {"strength": 14, "dexterity": 16}}).start(key)
    title = tale(key).title
    assert game.page.quests[title].status == "open"
    assert game.page.secrets["truth"]
    assert 5 <= len(tale(key)["places"]) <= 8
    for words in listed(WALKS[key]):
        game.say(words)
        if game.page.quests[title].status != "open":
            break
    assert game.page.quests[title].status == "done", game.page.render()
    assert game.page.gold > 10
    assert "truth" not in game.page.secrets
    game.say("follow the rumour")
    assert sum(quest.status == "open" for quest in game.page.quests.values()) == 1


@pytest.mark.slow
@pytest.mark.parametrize("key", keys())
@pytest.mark.parametrize("luck", [pytest.param(None, marks=pytest.mark.slow), 2])
def test_forty_turns_of_anything_in_every_tale_are_never_refused(key, luck):
    game = Game(seed=7, luck=luck).start(key)
    chance = random.Random(f"{key}{luck}")
    people = tale(key).names.values()
    names = [*tale(key)["places"], *(f"ask {n} about the {t}" for n in people for t in ("truth", "lamp"))]
    for _ in range(40):
        game.say(chance.choice([*listed(RAMBLES), *names, *(f"attack {n}" for n in people)]))
        assert game.page.condition.hp >= 1


@pytest.mark.slow
def test_the_page_stays_short_for_three_hundred_turns():
    game = Game(seed=3, luck=14)
    walks = [words for walk in WALKS.values() for words in listed(walk)]
    for turn in range(300):
        chance = random.Random(turn)
        title = game.page.secrets.get("tale", "").split(" ")[0]
        known = listed(WALKS[title]) if title in WALKS else ["follow the rumour"]
        game.say(chance.choice(known if chance.random() < 0.7 else listed(RAMBLES) + walks))
        assert len(game.page.render()) < 5000
    assert int(game.page.secrets.get("told", "0")) >= 2


def test_all_tales_and_then_all_again_with_other_people():
    game, opened = Game(seed=5, luck=16), []
    game.say("hello")
    for _ in range(len(keys()) * 2):
        key, telling = game.page.secrets["tale"].split()
        opened.append((key, int(telling)))
        people = set(tale(key, int(telling)).names.values())
        assert not people & set(tale(key, int(telling) + 1).names.values())
        needs = tale(key)["endings"][0]["needs"][0].split("|")
        game.page = game.page.apply({"secrets": {"deeds": needs[0]}}).page
        game.say("wait")
        game.say("go on")
    assert sorted(opened) == sorted((key, telling) for key in keys() for telling in (0, 1))


def test_when_all_tales_were_told_it_is_said_that_they_begin_again_and_none_comes_twice_in_a_row():
    for seed in range(12):
        game = Game(seed=seed, luck=16)
        game.say("hello")
        last = game.page.secrets["tale"].split()[0]
        others = [key for key in keys() if key != last]
        needs = tale(last)["endings"][0]["needs"][0].split("|")[0]
        told = {"finished": "; ".join(others), "told": str(len(others)), "deeds": needs}
        game.page = game.page.apply({"secrets": told}).page
        game.say("wait")
        assert game.page.secrets["finished"].split("; ") == [*others, last]
        assert game.page.secrets["told"] == str(len(keys()))
        assert saying("again") in game.say("go on")
        key, telling = game.page.secrets["tale"].split()
        assert (key == last, telling) == (False, "1")
        assert tale(key).title + ", told again (2)" in game.page.quests


def test_a_tale_begins_with_its_place_its_people_its_quest_and_no_choices():
    page = {"scene": "x", "secrets": {"finished": "lamp; mill", "told": str(len(keys()) + 2), "beat": "4"}}
    outcome = resolve(page, MIRA, "go on", seed=1)
    secrets, (key, telling) = outcome.patch["secrets"], outcome.patch["secrets"]["tale"].split()
    story, start = tale(key, int(telling)), tale(key)["start"]
    assert telling == "1"
    assert (secrets["finished"], secrets["truth"]) == ("lamp; mill", story["truth"])
    assert (outcome.patch["location"], secrets["seen"]) == (start, f"{start} 1")
    assert outcome.patch["objective"] == story["objective"]
    assert outcome.patch["quests"] == {story.title: {"status": "open", "notes": story["notes"]}}
    here = [name for person, name in story.names.items() if story["people"][person]["at"] == start]
    assert list(outcome.patch["people"]) == here
    assert not re.search(r"You could|You might|Ways lead|From here it goes|Do you", outcome.text)


def test_the_tales_that_were_told_are_kept_for_three_rounds():
    told, rounds = [f"t{n}" for n in range(40)], 3 * len(keys())
    page = {"scene": "x", "location": "the Lamp Room"}
    secrets = {"tale": "lamp 0", "deeds": "ring back", "finished": "; ".join(told), "told": "x"}
    closed = resolve(page | {"secrets": secrets}, MIRA, "light the lamp", seed=1).patch["secrets"]
    assert closed["finished"].split("; ") == [*told, "lamp"][-rounds:]
    assert closed["told"] == "1"


def test_nobody_in_a_later_telling_has_the_name_of_one_who_may_have_died_before():
    for key in keys():
        names = [name for telling in range(4) for name in tale(key, telling).names.values()]
        assert sorted(names) == sorted(set(names))
    assert tale("lamp", 3).names["maren"] == "Maren Holt (2)"
    assert tale("lamp", 3).title.endswith(", told again (4)")


def test_a_tale_that_is_over_leaves_no_deeds_and_the_next_one_comes_two_days_later():
    game = Game(luck=16).start("lamp")
    game.page = game.page.apply({"secrets": {"deeds": "lamp lit", "from": "x", "fight": "x: 1 of 2"}}).page
    told = game.say("wait")
    following = game.page.secrets["next"]
    assert told.endswith(tale(following)["rumour"])
    assert game.page.objective.startswith("Follow the rumour: ")
    assert set(game.page.secrets) == {"beat", "finished", "told", "next"}
    assert game.page.scene == "“The Dark Lamp of Gullhaven” is over (done). The road is open."
    day, gold, rope = game.page.clock.day, game.page.gold, game.page.inventory
    told = game.say("go on")
    assert saying("again") not in told
    assert game.page.secrets["tale"] == f"{following} 0"
    assert "next" not in game.page.secrets
    assert (game.page.clock.day, game.page.clock.time) == (day + 2, "morning")
    assert (game.page.gold, game.page.inventory) == (gold, rope)
    assert game.page.scene.startswith(f"Mira is at {tale(following)['start']}, ")


@pytest.mark.parametrize("seed", [1, 2])
def test_what_one_sets_out_with_is_the_kit_or_a_little_of_everything(seed):
    game = Game(seed=seed, character={**MIRA, "kit": {}, "hit_points": None})
    game.say("hello")
    assert game.page.inventory == {"torch": 2, "waterskin": 1, "rope": 1}
    assert (game.page.gold, game.page.condition.hp, game.page.clock.day) == (10, 10, 1)
    assert game.page.clock.time in ("morning", "noon", "afternoon")
    own = {"inventory": {"lute": 1}, "gold": 3, "clock": {"day": 4, "time": "dusk"}}
    game = Game(seed=seed, page=own)
    game.say("hello")
    assert (game.page.inventory, game.page.gold) == ({"lute": 1}, 3)
    assert (game.page.clock.day, game.page.clock.time) == (4, "dusk")


def test_the_same_seed_tells_the_same_game():
    first, second = Game(seed=11), Game(seed=11)
    for words in listed(RAMBLES)[:25]:
        assert first.say(words) == second.say(words)
    assert first.page == second.page
    other = [Game(seed=seed).say("begin") for seed in range(12)]
    assert len(set(other)) > 2


def test_turns_that_could_not_be_noted_are_caught_up_with():
    late, prompt = Game(seed=2, luck=12).start("lamp"), Game(seed=2, luck=12).start("lamp")
    late.say("ask Maren about the keeper", note=False)
    late.say("go to the tavern", note=False)
    late.note(late.told[-2:])
    prompt.say("ask Maren about the keeper")
    prompt.say("go to the tavern")
    assert late.page.location == prompt.page.location == "the Drowned Cat"
    assert "Anselm Roe" in late.page.facts
    stayed = Game(seed=2, luck=12).start("lamp")
    stayed.say("go to the tavern", note=False)
    assert "like the inside of a loaf" not in stayed.say("look", note=False), "it is told from the page as it stands"
    stayed.note(stayed.told[-2:])
    assert "Gull Quay 2" in stayed.page.secrets["seen"]
