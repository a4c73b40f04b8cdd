"""Choices: what could be done next, held out to the player at the end of a turn."""

from __future__ import annotations

import re

from questbook.graphs.offline.storyteller import people
from questbook.graphs.offline.storyteller.language import lower, series, upper
from questbook.graphs.offline.storyteller.scene import Scene

_OFFERS = re.compile(
    r"(?:From here it goes to|From .+ you can go to|Ways lead to|You could|You might|Then again, you might|Press on)\b|"
    r"(?:Do you|What do you do|What now)\b.*\?$"
)
_LONG = 120
"""Characters of a reply from which on choices stand in a paragraph of their own."""


def options(scene: Scene) -> list[str]:
    """List things to do here and now, in an order that varies with the turn."""
    if scene.tale is None:
        return ["take the road and see what comes", "rest", "go through what you carry"]
    names, place, here = scene.story.names, scene.story["places"][scene.location()], scene.people_here()
    untold = {person: people.untold(scene, person) for person in here}
    company = [f"ask {names[person]} about {topics[0]}" for person, topics in untold.items() if topics]
    company += [f"talk to {names[person]}" for person in here][:1]
    ways = [f"go to {towards}" for towards in place["ways"]]
    details = [f"look at the {detail}" for detail in place.get("details", {})]
    things = [f"take the {thing}" for thing in scene.things_here()[:1]]
    deeds = [*company[:1], *things, "search the place", *ways[:1], *details[:1], *company[1:2], *ways[1:], *details[1:]]
    turned = scene.beat % len(deeds)
    return [*(f"face the {foe}" for foe in scene.foes_here()), *deeds[turned:], *deeds[:turned]]


def offer(scene: Scene) -> None:
    """End with something to decide."""
    if scene.foes_here() and scene.secrets.get("fight"):
        return
    apart = len(scene.text()) > _LONG
    if scene.tale is None:
        scene.say("The road lies open before you. What now?", apart=apart)
        return
    roads = ways(scene)
    first, second, third = [*options(scene), "wait", "rest", "think it over"][:3]
    closings = [
        f"From here it goes to {roads}.",
        f"Do you {first}, or {second}?",
        f"You could {first} – or {second}, or {third}.",
        f"Ways lead to {roads}. What do you do?",
        f"You might {first}. Then again, you might {second}.",
    ]
    scene.say(scene.pick(closings, "offer"), apart=apart)


def ways(scene: Scene) -> str:
    """List the ways from here: "Gull Quay (north, uphill) or the Old Road"."""
    places = scene.story["places"][scene.location()]["ways"]
    return series([f"{place} ({way})" for place, way in places.items()], "or")


def is_offer(sentence: str) -> bool:
    """Whether a sentence of a reply holds out choices, and tells nothing that happened."""
    return _OFFERS.match(sentence) is not None


def suggest(scene: Scene) -> None:
    """Say what one could do now."""
    if objective := str(scene.page.get("objective") or ""):
        scene.aside(f"What you are about is this: {lower(objective)}.")
    scene.aside(f"You could {series(options(scene)[:4], 'or')}. Or anything else: plain sentences do it.")


def shrug(scene: Scene, sentence: str) -> None:
    """Say that nothing comes of some words, and hold out others that something would come of."""
    scene.unanswered = sentence
    shown = " ".join(sentence.split())[:90].strip(" .!?")
    scene.tell("confused", words=shown, place_c=upper(scene.location()))
    scene.say(f"You could {series(options(scene)[:3], 'or')}.")
    scene.offers = False
