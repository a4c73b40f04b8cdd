"""Checks: deeds whose outcome is open, alone or with people. The dice are asked first and then believed."""

from __future__ import annotations

import re
from typing import Any

from questbook.graphs.offline.storyteller import (
    choices,
    combat,
    deeds,
    elsewhere,
    obstacles,
    plot,
    sight,
    talk,
    travel,
)
from questbook.graphs.offline.storyteller.abilities import check
from questbook.graphs.offline.storyteller.callings import SKILLS
from questbook.graphs.offline.storyteller.phrases import filled
from questbook.graphs.offline.storyteller.scene import Scene
from questbook.graphs.offline.storyteller.tables import table
from questbook.graphs.offline.storyteller.tale import stems
from questbook.graphs.offline.storyteller.words import Intent

JSON = dict[str, Any]

_VERB_SKILLS = {
    "sneak": "Stealth",
    "climb": "Athletics",
    "force": "Athletics",
    "pick": "Sleight of Hand",
    "track": "Survival",
    "listen": "Perception",
    "cast": "Arcana",
    "persuade": "Persuasion",
    "bribe": "Persuasion",
    "intimidate": "Intimidation",
    "deceive": "Deception",
}

_KIND = re.compile(
    r"\b(?:cure|heal\w*|bless\w*|shield|armou?r|light|protection|sanctuary|invisib\w+|detect|on (?:me|myself))\b",
    re.I,
)
"""Spells that do nobody harm."""


def attempt(scene: Scene, intent: Intent) -> None:
    """Sneak, climb, force, pick, track, listen, cast: what the tale has foreseen, or else for its own sake."""
    if obstacle := obstacles.find(scene, intent.said, intent.verb):
        return obstacles.face(scene, obstacle)
    if deeds.play_out(scene, "use", intent.said):
        return None
    story = scene.story
    foe = story.foe(intent.said, scene.foes_here())
    if intent.verb == "cast" and (foe or scene.secrets.get("fight")) and not _KIND.search(intent.said):
        return combat.attack(scene, intent._replace(what=foe or ""))
    if intent.verb == "listen":
        return _listen(scene)
    if intent.verb == "climb" and (towards := travel.way(scene, intent)):
        return travel.travel(scene, towards)
    skill = _skill(intent)
    deed = " ".join(intent.said.split())[:70].strip(" .!?")
    won = check(scene, skill, 12, f"for “{deed}”")
    scene.say(f"{scene.pick(table('neutral_win' if won else 'neutral_lose'), 'flavour')}.")
    if won and intent.verb == "pick" and scene.people_here():
        scene.say(
            "Your fingers find a pocket, and in it lint, a nutshell, and an honest person's whole fortune: "
            "nothing. You put it back."
        )
    elif won:
        scene.say("It changes nothing much here, but it is good to know that you can.")
    elif intent.verb == "pick" and scene.people_here():
        scene.meet(scene.people_here()[0], "suspicious")
        scene.say(f"{story.names[scene.people_here()[0]]} catches your wrist. “Lost something?”")
    else:
        scene.say(scene.pick(table("complications"), "trouble"))
    choices.offer(scene, apart=True)
    return combat.press(scene)


def sway(scene: Scene, intent: Intent) -> None:
    """Persuade, threaten, deceive or bribe somebody, or calm a foe."""
    story = scene.story
    skill = _VERB_SKILLS[intent.verb]
    said = f"{intent.whom} {intent.what}"
    foe = story.foe(said, scene.foes_here())
    missed = elsewhere.named(scene, intent.whom)
    person = story.person(said, scene.people_here()) if not missed else None
    if foe is None and missed:
        elsewhere.miss(scene, missed)
        return combat.press(scene)
    if foe is None and person is None:
        foe, person = next(iter(scene.foes_here()), None), next(iter(scene.people_here()), None)
    if foe is not None and (person is None or stems(foe) & stems(said)):
        return _calm(scene, foe, skill)
    if person is None:
        scene.say("You make your case with real feeling. There is nobody here to be moved by it.")
        return choices.offer(scene)
    name = story.names[person]
    if intent.verb == "bribe":
        price = int(named[0]) if (named := re.match(r"\d{1,9}", intent.what)) else 3
        if int(scene.page.get("gold") or 0) < max(1, price):
            scene.say(f"You rub thumb and finger together at {name}, and there is nothing between them.")
            return choices.offer(scene)
        scene.pay(-price)
    won = check(scene, skill, 10 if intent.verb == "bribe" else 13, f"to sway {name}")
    scene.meet(person, "won over" if won else "wary")
    scene.say(filled(scene.pick(table("persuaded" if won else "unmoved"), "sway"), who=name))
    scene.happening = f"{scene.name} has {'won over' if won else 'not moved'} {name}."
    if won:
        scene.mark(f"trust {person}")
        if talk.confide(scene, person):
            return None
    choices.offer(scene, apart=True)
    return combat.press(scene)


def _calm(scene: Scene, foe: str, skill: str) -> None:
    calm = scene.story["foes"][foe].get("calm")
    if not calm or not scene.done(calm.get("needs")):
        check(scene, skill, 25, f"to sway the {foe}")
        scene.say(f"You might as well talk to weather. The {foe} is past all talk, or not yet come to it.")
        scene.happening = f"{scene.name} tried to talk to the {foe}."
        return combat.press(scene) if scene.secrets.get("fight") else choices.offer(scene)
    if check(scene, skill, int(calm["dc"]), f"to calm the {foe}"):
        scene.keep("fight", None)
        return plot.happen(scene, {"text": calm["text"], "sets": f"calmed {foe}"} | calm.get("spoils", {}))
    scene.say(f"For a moment the {foe} seems to listen. Then the moment is over.")
    scene.happening = f"{scene.name} tried to calm the {foe}."
    return combat.press(scene) if scene.secrets.get("fight") else choices.offer(scene)


def _listen(scene: Scene) -> None:
    won = check(scene, "Perception", 10, "to listen")
    sight.weather(scene)
    if won:
        story = scene.story
        near = list(story["places"][scene.location()]["ways"])
        foes = [
            f
            for f, about in story.part("foes").items()
            if about["at"] in near and scene.done(about.get("needs")) and not scene.gone(f)
        ]
        scene.say(
            f"And under it something else, from the way to {story['foes'][foes[0]]['at']}: something is moving there, "
            "and it is not trying to be quiet."
            if foes
            else "Beyond that, nothing that means you harm. Not nearby."
        )
    else:
        scene.say("Beyond that there is only your own breath, which is louder than you thought.")
    choices.offer(scene, apart=True)
    combat.press(scene)


def _skill(intent: Intent) -> str:
    said = intent.said.casefold()
    named = next((skill for skill in SKILLS if skill.casefold() in said), None)
    if named:
        return named
    by_ability = {
        "strength": "Athletics",
        "dexterity": "Acrobatics",
        "constitution": "Athletics",
        "intelligence": "Investigation",
        "wisdom": "Perception",
        "charisma": "Persuasion",
    }
    of = next((skill for ability, skill in by_ability.items() if re.search(rf"\b{ability}\b", said)), None)
    return of or _VERB_SKILLS.get(intent.verb, "Perception")
