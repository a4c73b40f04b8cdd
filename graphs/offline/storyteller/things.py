"""Things: finding, taking, giving, buying and using them."""

from __future__ import annotations

import re

from questbook.graphs.offline.storyteller import attempts, people, places, plot
from questbook.graphs.offline.storyteller.intent import Intent
from questbook.graphs.offline.storyteller.language import article, as_said, match, series
from questbook.graphs.offline.storyteller.rules import check, skill_roll
from questbook.graphs.offline.storyteller.scene import Scene, listed
from questbook.types import JSON

_ALL = re.compile(r"(?:all|everything|anything|whatever|it|them|things?)\b", re.I)
_COINS = re.compile(r"(\d{1,9}|some|a few|all my|a)?\s*(?:gold|coins?|money|gp)\b", re.I)


def search(scene: Scene, intent: Intent) -> None:
    """Search the place; what is hidden shows itself to one who rolls well."""
    story, here, things = scene.story, scene.location(), scene.things_here()
    if thing := story.item(intent.what, things):
        return take(scene, intent._replace(what=thing))
    if plot.foreseen(scene, "search", intent.what or intent.said):
        return None
    details = story["places"][here].get("details", {})
    if hidden := scene.open_here("finds"):
        _search_for(scene, hidden[0])
    elif detail := match(intent.what, {detail: detail for detail in details}):
        places.examine(scene, intent._replace(what=detail))
    elif scene.did(f"searched {here} again"):
        scene.tell("searched_out")
    elif scene.did(f"searched {here}"):
        scene.mark(f"searched {here} again")
        scene.say("You have been over this place already, and it has been over you.")
    else:
        scene.roll(skill_roll(scene.character, "Investigation"), f"Investigation to search {here}", 15)
        scene.mark(f"searched {here}")
        scene.tell("empty_handed")
        if details:
            scene.say(f"Only the {' and the '.join(list(details)[:2])} might be worth another look.")
    return None


def _search_for(scene: Scene, find: JSON) -> None:
    here = scene.location()
    if check(scene, find.get("skill", "Investigation"), int(find["dc"]), f"to search {here}"):
        plot.happen(scene, {name: part for name, part in find.items() if name != "at"})
        return
    if find.get("miss"):
        scene.say(find["miss"])
    else:
        scene.tell("missed_search")
    scene.happening = f"{scene.name} searched {here} and is not satisfied."


def take(scene: Scene, intent: Intent) -> None:
    """Take what lies here."""
    story, lying = scene.story, scene.things_here()
    thing = story.item(intent.what, lying)
    wanted = lying if _ALL.match(intent.what) else [thing] if thing else []
    for item in wanted:
        _pick_up(scene, item)
    if wanted or plot.foreseen(scene, "take", intent.what, intent.whom):
        return
    if _ALL.match(intent.what):
        scene.say("There is nothing here to take, unless you count the dust.")
    elif intent.whom and story.person(f"{intent.what} {intent.whom}", scene.people_here()):
        attempts.attempt(scene, intent._replace(verb="pick", what=intent.whom))
    elif held := story.item(intent.what, scene.carried()):
        scene.say(f"You have the {held} already.")
    else:
        scene.tell("nothing_to_take", what=intent.what[:60])


def _pick_up(scene: Scene, item: str) -> None:
    """Put a thing that lies here among one's own."""
    about = scene.story.part("items").get(item, {})
    scene.mark(f"took {item}", about.get("sets", ""))
    scene.gain(item)
    scene.say(about.get("taken") or f"You take the {item}. It is yours now, until somebody says otherwise.")
    scene.learn(about.get("fact", ""))
    scene.happening = f"{scene.name} took the {item} at {scene.location()}."


def drop(scene: Scene, intent: Intent) -> None:
    """Leave something behind; what the tale needs goes back to where it was."""
    item = _held(scene, intent.what)
    if item is None:
        return scene.say(f"You have no “{intent.what[:60]}” to be rid of.")
    scene.gain(item, -1)
    scene.keep("deeds", "; ".join(deed for deed in listed(scene.secrets.get("deeds")) if deed != f"took {item}"))
    return scene.say(f"You set down the {item} and feel lighter by exactly one. Somebody will carry it back.")


def buy(scene: Scene, intent: Intent) -> None:
    """Buy what a person here sells."""
    story, here = scene.story, scene.people_here()
    goods: dict[str, JSON] = {name: good for name, good in story.part("goods").items() if good["from"] in here}
    item = match(intent.what, {name: name for name in goods})
    if item is None:
        return _refuse_sale(scene, intent.what, goods)
    price = int(goods[item]["gold"])
    if scene.gold() < price:
        return scene.say(f"The {item} costs {price} gold, and your purse says no before you can.")
    scene.pay(-price)
    scene.gain(item)
    scene.say(f"{price} gold go one way, the {item} comes the other.")
    return scene.say(f"{story.names[goods[item]['from']]} bites one of the coins, as a courtesy.")


def _refuse_sale(scene: Scene, what: str, goods: dict[str, JSON]) -> None:
    scene.say(f"Nobody here sells “{as_said(what[:60], scene.words)}”.")
    if lying := scene.story.item(what, scene.things_here()):
        scene.say(f"The {lying} is here for whoever takes it.")
    if goods:
        prices = [f"{article(name)} ({good['gold']} gold)" for name, good in goods.items()]
        scene.say(f"What there is to be had is {series(prices)}.")


def give(scene: Scene, intent: Intent) -> None:
    """Give something to somebody."""
    story, here = scene.story, scene.people_here()
    missed = people.absent(scene, intent.whom)
    if plot.foreseen(scene, "give", intent.what, intent.whom):
        return None
    if missed:
        return people.miss(scene, missed)
    person = story.person(intent.whom, here) or story.person(intent.what, here)
    if person is None and here and intent.whom.casefold() in ("him", "her", "them", "it"):
        person = here[0]
    if person is None:
        return scene.say("You hold it out, and there is nobody here to take it.")
    name, item = story.names[person], _held(scene, intent.what)
    if coins := _COINS.match(intent.what):
        return _give_gold(scene, person, int(coins[1]) if (coins[1] or "").isdecimal() else 1)
    if item is None:
        return scene.say(f"You have no “{intent.what[:60]}” to give. {name} looks at your empty hand with interest.")
    scene.gain(item, -1)
    scene.meet(person, "friendly")
    scene.happening = f"{scene.name} gave the {item} to {name}."
    return scene.say(
        f"You give {name} the {item}. “For me?” It is turned over twice, and put away carefully; you have made "
        "something like a friend."
    )


def _give_gold(scene: Scene, person: str, amount: int) -> None:
    name = scene.story.names[person]
    if not 0 < amount <= scene.gold():
        return scene.say(f"You count your coins for {name}, and then count again. You have not got that many.")
    scene.pay(-amount)
    scene.meet(person, "friendly")
    return scene.say(
        f"{amount} gold change hands. {name} does not say thank you, but stands a little nearer than before."
    )


def use(scene: Scene, intent: Intent) -> None:
    """Use something, on something or just so."""
    if plot.foreseen(scene, "use", intent.what, f"{intent.whom} {intent.said}") or plot.obstacle(scene, intent.said):
        return None
    if scene.story.foe(intent.whom, scene.foes_here()):
        return attempts.attack(scene, intent._replace(what=intent.whom, whom=""))
    if item := _held(scene, intent.what):
        return scene.tell("no_use", item=item)
    details = scene.story["places"][scene.location()].get("details", {})
    if detail := match(intent.what, {detail: detail for detail in details}):
        return places.examine(scene, intent._replace(what=detail))
    return scene.say(f"You have no “{intent.what[:60]}” to hand, and see none here.")


def inventory(scene: Scene) -> None:
    """Say what the character carries."""
    held = [f"{number} × {item}" if number > 1 else article(item) for item, number in scene.carried().items()]
    gold = scene.gold()
    scene.aside(
        f"You carry {series(held) or 'nothing but your wits'}, and {gold} gold piece{'' if gold == 1 else 's'}."
    )
    scene.aside("All of it seems to be waiting for you to have an idea.")


def _held(scene: Scene, what: str) -> str | None:
    return match(what, {item: item for item in scene.carried()})
