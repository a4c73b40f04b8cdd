"""Belongings: taking, giving, buying, using."""

from __future__ import annotations

import re
from typing import Any

from questbook.graphs.offline.storyteller import checks, choices, combat, deeds, elsewhere, obstacles, sight
from questbook.graphs.offline.storyteller.phrases import article, as_said, filled, series
from questbook.graphs.offline.storyteller.scene import Scene, listed
from questbook.graphs.offline.storyteller.tables import table
from questbook.graphs.offline.storyteller.tale import match, stems
from questbook.graphs.offline.storyteller.words import Intent

JSON = dict[str, Any]


def take(scene: Scene, intent: Intent) -> None:
    """Take what lies here."""
    story = scene.story
    lying = scene.things_here()
    wanted = lying if re.match(r"(?:all|everything|anything|whatever|it|them|things?)\b", intent.what, re.I) else None
    thing = story.item(intent.what, lying)
    if wanted is None and thing is None:
        if deeds.play_out(scene, "take", intent.what, intent.whom):
            return None
        owner = story.person(f"{intent.what} {intent.whom}", scene.people_here())
        if intent.whom and owner:
            return checks.attempt(scene, intent._replace(verb="pick", what=intent.whom))
        held = story.item(intent.what, scene.carried())
        scene.say(
            f"You have the {held} already."
            if held
            else filled(
                scene.pick(
                    table("nothing_to_take"),
                    "take",
                ),
                what=intent.what[:60],
            )
        )
        choices.offer(scene)
        return combat.press(scene)
    for item in wanted if wanted is not None else [thing or ""]:
        pick_up(scene, item)
    if not scene.said:
        scene.say("There is nothing here to take, unless you count the dust.")
    choices.offer(scene)
    return combat.press(scene)


def pick_up(scene: Scene, item: str) -> None:
    """Put a thing that lies here among one's own."""
    about = scene.story.part("items").get(item, {})
    left = listed(scene.secrets.get("left"))
    mark = f"{item}@{scene.location()}"
    if mark in left:
        left.remove(mark)
        scene.keep("left", "; ".join(left))
    else:
        scene.mark(f"took {item}", about.get("sets", ""))
    scene.gain(item)
    scene.say(about.get("taken") or f"You take the {item}. It is yours now, until somebody says otherwise.")
    if about.get("fact"):
        scene.learn(about["fact"])
    scene.happening = f"{scene.name} took the {item} at {scene.location()}."


def buy(scene: Scene, intent: Intent) -> None:
    """Buy what a person here sells."""
    story, here = scene.story, scene.people_here()
    goods: dict[str, JSON] = {name: good for name, good in story.part("goods").items() if good["from"] in here}
    item = match(intent.what, {name: name for name in goods})
    if item is None and _poured(scene, intent.what):
        return choices.offer(scene)
    if item is None:
        scene.say(f"Nobody here sells “{as_said(intent.what[:60], scene.words)}”.")
        if lying := story.item(intent.what, scene.things_here()):
            scene.say(f"The {lying} is here for whoever takes it.")
        if goods:
            offered = [f"{article(name)} ({good['gold']} gold)" for name, good in goods.items()]
            scene.say(f"What there is to be had is {series(offered)}.")
        return choices.offer(scene)
    cost, seller = int(goods[item]["gold"]), goods[item]["from"]
    if int(scene.page.get("gold") or 0) < cost:
        scene.say(f"The {item} costs {cost} gold, and your purse says no before you can.")
        return choices.offer(scene)
    scene.pay(-cost)
    scene.gain(item)
    scene.say(f"{cost} gold go one way, the {item} comes the other.")
    scene.say(f"{story.names[seller]} bites one of the coins, as a courtesy.")
    return choices.offer(scene)


def _poured(scene: Scene, what: str) -> bool:
    """Sell a drink or a bowl of something where there are drinks and bowls."""
    served = stems(scene.story["places"][scene.location()].get("as", "")) & {"tavern", "inn", "bar"}
    if not served or not re.search(r"\b(?:ale|beer|drink|wine|mead|soup|stew|meal|food|round)\b", what, re.I):
        return False
    if not scene.page.get("gold"):
        scene.say("You are handed a bowl of water, and a look. The water is on the house; so is the look.")
        return True
    scene.pay(-1)
    scene.say(scene.pick(table("poured"), "poured"))
    return True


def drop(scene: Scene, intent: Intent) -> None:
    """Leave something behind here."""
    item = match(intent.what, {i: i for i in scene.carried()})
    if item is None:
        scene.say(f"You have no “{intent.what[:60]}” to be rid of.")
        return choices.offer(scene)
    scene.gain(item, -1)
    left = [*listed(scene.secrets.get("left")), f"{item}@{scene.location()}"]
    scene.keep("left", "; ".join(left[-8:]))
    scene.say(f"You set down the {item} and feel lighter by exactly one {item}. It stays here, at {scene.location()}.")
    scene.happening = f"{scene.name} left the {item} at {scene.location()}."
    return choices.offer(scene)


def give(scene: Scene, intent: Intent) -> None:
    """Give something to somebody."""
    story = scene.story
    here = scene.people_here()
    missed = elsewhere.named(scene, intent.whom)
    person = None if missed else story.person(intent.whom, here) or story.person(intent.what, here)
    if person is None and here and intent.whom.casefold() in ("him", "her", "them", "it"):
        person = here[0]
    if deeds.play_out(scene, "give", intent.what, intent.whom):
        return None
    coins = re.match(r"(\d+|some|a few|all my|a)?\s*(?:gold|coins?|money|gp)\b", intent.what, re.I)
    item = match(intent.what, {i: i for i in scene.carried()})
    if missed:
        return elsewhere.miss(scene, missed)
    if person is None:
        scene.say("You hold it out, and there is nobody here to take it.")
        return choices.offer(scene)
    name = story.names[person]
    if coins:
        amount = int(coins[1]) if (coins[1] or "").isdecimal() else 1
        if amount > int(scene.page.get("gold") or 0) or amount == 0:
            scene.say(f"You count your coins for {name}, and then count again. You have not got that many.")
            return choices.offer(scene)
        scene.pay(-amount)
        scene.meet(person, "friendly")
        scene.say(f"{amount} gold change hands. {name} does not say thank you, but stands a little nearer than before.")
        return choices.offer(scene)
    if item is None:
        scene.say(f"You have no “{intent.what[:60]}” to give. {name} looks at your empty hand with interest.")
        return choices.offer(scene)
    scene.gain(item, -1)
    scene.meet(person, "friendly")
    scene.say(
        f"You give {name} the {item}. “For me?” It is turned over twice, and put away carefully; you have made "
        "something like a friend."
    )
    scene.happening = f"{scene.name} gave the {item} to {name}."
    return choices.offer(scene)


def use(scene: Scene, intent: Intent) -> None:
    """Use something, on something or just so."""
    story = scene.story
    if deeds.play_out(scene, "use", intent.what, f"{intent.whom} {intent.said}"):
        return None
    if obstacle := obstacles.find(scene, intent.said):
        return obstacles.face(scene, obstacle)
    foe = story.foe(intent.whom, scene.foes_here()) if intent.whom else None
    if foe:
        return combat.attack(scene, intent._replace(what=intent.whom))
    item = match(intent.what, {i: i for i in scene.carried()})
    if item:
        scene.say(
            filled(
                scene.pick(
                    table("no_use"),
                    "use",
                ),
                item=item,
            )
        )
    else:
        place = story["places"][scene.location()]
        detail = match(intent.what, {d: d for d in place.get("details", {})})
        if detail:
            return sight.examine(scene, intent._replace(what=detail))
        scene.say(f"You have no “{intent.what[:60]}” to hand, and see none here.")
    choices.offer(scene)
    return combat.press(scene)


def inventory(scene: Scene, _: Intent) -> None:
    """Say what the character carries."""
    scene.quiet = True
    held = [f"{n} × {item}" if n > 1 else article(item) for item, n in scene.carried().items()]
    gold = int(scene.page.get("gold") or 0)
    scene.say(f"You carry {series(held) or 'nothing but your wits'}, and {gold} gold piece{'' if gold == 1 else 's'}.")
    scene.say("All of it seems to be waiting for you to have an idea.")
