"""Attempts: deeds whose outcome is open: feats, blows, and words that sway. The dice are asked, and then believed."""

from __future__ import annotations

import re

from questbook.graphs.offline.storyteller import combat, people, places, plot
from questbook.graphs.offline.storyteller.intent import Intent
from questbook.graphs.offline.storyteller.language import stems
from questbook.graphs.offline.storyteller.rules import check, skill_for
from questbook.graphs.offline.storyteller.scene import Scene

_HARMLESS = re.compile(
    r"\b(?:cure|heal\w*|bless\w*|shield|armou?r|light|protection|sanctuary|invisib\w+|detect|on (?:me|myself))\b", re.I
)
"""Spells that do nobody harm."""

_POCKET = re.compile(r"\b(?:pick)?(?:pockets?|purse|steal|rob|take)\b", re.I)


def attempt(scene: Scene, intent: Intent) -> None:
    """Sneak, climb, force, pick, track, listen, cast: what the tale has foreseen, or else for its own sake."""
    if plot.obstacle(scene, intent.said, intent.verb) or plot.foreseen(scene, "use", intent.said):
        return None
    foe = scene.story.foe(intent.said, scene.foes_here())
    if intent.verb == "cast" and (foe or scene.secrets.get("fight")) and not _HARMLESS.search(intent.said):
        return attack(scene, intent._replace(what=foe or "", whom=""))
    if intent.verb == "listen":
        return _listen(scene)
    if intent.verb == "climb" and (towards := places.way(scene, intent)):
        return places.travel(scene, towards)
    deed = " ".join(intent.said.split())[:70].strip(" .!?")
    won = check(scene, skill_for(intent.verb, intent.said), 12, f"for “{deed}”")
    scene.tell("neutral_win" if won else "neutral_lose")
    owner = next(iter(scene.people_here()), None) if _POCKET.search(intent.said) else None
    if won:
        scene.tell("empty_pocket" if owner else "no_matter")
    elif owner:
        scene.meet(owner, "suspicious")
        scene.say(f"{scene.story.names[owner]} catches your wrist. “Lost something?”")
    else:
        scene.tell("complications")
    return None


def attack(scene: Scene, intent: Intent) -> None:
    """Strike at a foe, or at a person."""
    story, foes = scene.story, scene.foes_here()
    missed = people.absent(scene, intent.what)
    person = None if missed else story.person(intent.what, scene.people_here())
    if foe := story.foe(f"{intent.what} {intent.whom}", foes) or (foes[0] if foes and not person else None):
        return combat.fight_foe(scene, foe)
    if person := person or _meant(scene, intent.what):
        return combat.fight_person(scene, person)
    if missed:
        return people.miss(scene, missed)
    target = f"“{intent.what[:60]}”" if intent.what else "the empty air"
    return scene.say(f"You square up to {target}. Nobody here answers the challenge, which may be for the best.")


def _meant(scene: Scene, what: str) -> str | None:
    """Find whom "him" means: the one in a fight, or the only one here; a bare blow means the fight only."""
    if not re.fullmatch(r"(?:him|her|it|them|back|on|again)?", what, re.I):
        return None
    here = scene.people_here()
    only = here[0] if len(here) == 1 and re.fullmatch(r"him|her", what, re.I) else None
    return combat.opponent(scene) or only


def sway(scene: Scene, intent: Intent) -> None:
    """Persuade, threaten, deceive or bribe somebody, or calm a foe."""
    story, said = scene.story, f"{intent.whom} {intent.what}"
    foe = story.foe(said, scene.foes_here())
    missed = people.absent(scene, intent.whom)
    if foe is None and missed:
        return people.miss(scene, missed)
    person = None if missed else story.person(said, scene.people_here())
    if foe is None and person is None:
        foe, person = next(iter(scene.foes_here()), None), next(iter(scene.people_here()), None)
    skill = skill_for(intent.verb, "")
    if foe is not None and (person is None or stems(foe) & stems(said)):
        return _calm(scene, foe, skill)
    if person is None:
        return scene.say("You make your case with real feeling. There is nobody here to be moved by it.")
    name, bribes = story.names[person], intent.verb == "bribe"
    if bribes:
        price = int(gold[0]) if (gold := re.match(r"\d{1,9}", intent.what)) else 3
        if scene.gold() < max(1, price):
            return scene.say(f"You rub thumb and finger together at {name}, and there is nothing between them.")
        scene.pay(-price)
    won = check(scene, skill, 10 if bribes else 13, f"to sway {name}")
    scene.meet(person, "won over" if won else "wary")
    scene.tell("persuaded" if won else "unmoved", who=name)
    scene.happening = f"{scene.name} has {'won over' if won else 'not moved'} {name}."
    if won:
        scene.mark(f"trust {person}")
        people.confide(scene, person)
    return None


def _calm(scene: Scene, foe: str, skill: str) -> None:
    calm = scene.story["foes"][foe].get("calm")
    scene.happening = f"{scene.name} tried to calm the {foe}."
    if not calm or not scene.did_all(calm.get("needs")):
        check(scene, skill, 25, f"to sway the {foe}")
        scene.say(f"You might as well talk to weather. The {foe} is past all talk, or not yet come to it.")
    elif check(scene, skill, int(calm["dc"]), f"to calm the {foe}"):
        scene.keep("fight", None)
        plot.happen(scene, {"text": calm["text"], "sets": f"calmed {foe}"} | calm.get("spoils", {}))
    else:
        scene.say(f"For a moment the {foe} seems to listen. Then the moment is over.")


def _listen(scene: Scene) -> None:
    won = check(scene, "Perception", 10, "to listen")
    places.weather(scene)
    if not won:
        return scene.say("Beyond that there is only your own breath, which is louder than you thought.")
    near = scene.foes_at(*scene.story["places"][scene.location()]["ways"])
    if not near:
        return scene.say("Beyond that, nothing that means you harm. Not nearby.")
    place = scene.story["foes"][near[0]]["at"]
    return scene.say(
        f"And under it something else, from the way to {place}: something is moving there, and it is not trying to be "
        "quiet."
    )
