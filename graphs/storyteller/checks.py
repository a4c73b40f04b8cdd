"""Checks: deeds whose outcome is open. The dice are asked first and then believed."""

from __future__ import annotations

import re
from typing import Any

from graphs.storyteller import acts, combat, opening, tables, talk
from graphs.storyteller.scene import Scene
from graphs.storyteller.tale import match, stems
from graphs.storyteller.words import Intent

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


def kind(character: JSON) -> str:
    """Say which of the twelve classes a character's calling comes nearest to; fighter if none."""
    said = stems(str(character.get("class") or ""))
    for name, others in tables.CALLINGS.items():
        if name in said or said & set(others.split()):
            return name
    return "fighter"


def modifier(character: JSON, ability: str) -> int:
    """Return an ability's modifier; without a score, the calling's own ability counts as 15, others as 10."""
    scores = character.get("abilities")
    score = scores.get(ability) if isinstance(scores, dict) else None
    if not isinstance(score, int):
        score = 15 if ability == tables.WEAPONS[kind(character)][0] else 10
    return (score - 10) // 2


def skill_bonus(character: JSON, skill: str) -> int:
    """Return what a character adds to a check of a skill."""
    level = character.get("level")
    proficiency = 2 + (level - 1) // 4 if isinstance(level, int) and level > 0 else 2
    trained = skill in tables.SKILLED[kind(character)]
    return modifier(character, tables.SKILLS.get(skill, "wisdom")) + (proficiency if trained else 0)


def d20(bonus: int) -> str:
    """Write a d20 with its modifier."""
    return f"1d20{bonus:+d}" if bonus else "1d20"


def check(scene: Scene, skill: str, dc: int, what: str) -> bool:
    """Roll a check; whoever is battered rolls with disadvantage."""
    conditions = (scene.page.get("condition") or {}).get("conditions") or {}
    advantage = "disadvantage" if "battered" in conditions else None
    rolled = scene.roll(d20(skill_bonus(scene.character, skill)), f"{skill} {what}"[:120], dc, advantage)
    return bool(rolled["success"])


def obstacle(scene: Scene, said: str, verb: str = "") -> JSON | None:
    """Find the open check of this place that the words are about."""
    story, words = scene.tale, stems(said)
    for found in (story.part("checks") or []) if story else []:
        if found["at"] != scene.location() or scene.done(found["sets"]) or not scene.done(found.get("needs")):
            continue
        if verb in found["verbs"].split() or words & stems(found["verbs"]):
            return dict(found)
    return None


def attempt(scene: Scene, intent: Intent) -> None:
    """Sneak, climb, force, pick, track, listen, cast: what the tale has foreseen, or else for its own sake."""
    found = obstacle(scene, intent.said, intent.verb)
    if found:
        if check(scene, found["skill"], int(found["dc"]), f"to {found['to']}"):
            opening.happen(
                scene,
                {"text": found["win"]} | {k: found[k] for k in ("sets", "fact", "gains", "gold", "move") if k in found},
            )
        else:
            scene.say(found["lose"])
            hurt(scene, int(found.get("harm", 0)))
            scene.happening = f"{scene.name} failed to {found['to']} at {scene.location()}."
            acts.offer(scene, apart=True)
        return combat.press(scene)
    if acts.use_deed(scene, "use", intent.said, "", "use"):
        return None
    story = scene.tale
    foe = story.foe(intent.said, scene.foes_here()) if story else None
    if intent.verb == "cast" and (foe or scene.secrets.get("fight")):
        return combat.attack(scene, intent._replace(what=foe or ""))
    if intent.verb == "listen":
        return _listen(scene)
    if intent.verb in ("climb", "sneak") and story and intent.what:
        towards = story.place(intent.what, story["places"][scene.location()]["ways"])
        if towards and intent.verb == "climb":
            return acts.travel(scene, towards)
    skill = _skill(intent)
    deed = " ".join(intent.said.split())[:70].strip(" .!?")
    won = check(scene, skill, 12, f"for “{deed}”")
    scene.say(f"{scene.pick(tables.NEUTRAL_WIN if won else tables.NEUTRAL_LOSE, 'flavour')}.")
    if won and intent.verb == "pick" and scene.people_here():
        scene.say(
            "Your fingers find a pocket, and in it lint, a nutshell, and an honest person's whole fortune: "
            "nothing. You put it back."
        )
    elif won:
        scene.say("It changes nothing much here, but it is good to know that you can.")
    elif intent.verb == "pick" and scene.people_here():
        scene.meet(scene.people_here()[0], "suspicious")
        scene.say(
            f"{story.names[scene.people_here()[0]] if story else 'Somebody'} catches your wrist. “Lost something?”"
        )
    else:
        scene.say(scene.pick(tables.COMPLICATIONS, "trouble"))
    acts.offer(scene, apart=True)
    return combat.press(scene)


def search(scene: Scene, intent: Intent) -> None:
    """Search the place; what is hidden shows itself to the one who rolls well."""
    story = scene.tale
    if story is None:
        return acts.puzzle(scene, intent)
    things = scene.things_here()
    if intent.what and things and (thing := story.item(intent.what, things)):
        return acts.take(scene, intent._replace(what=thing))
    if acts.use_deed(scene, "search", intent.what or intent.said, "", "search"):
        return None
    here = scene.location()
    hidden = [
        f
        for f in story.part("finds") or []
        if f["at"] == here and not scene.done(f["sets"]) and scene.done(f.get("needs"))
    ]
    if not hidden:
        details = story["places"][here].get("details", {})
        detail = match(intent.what, {d: d for d in details}) if intent.what else None
        if detail:
            return acts.examine(scene, intent._replace(what=detail))
        if scene.did(f"searched {here}"):
            scene.say("You have been over this place already, and it has been over you.")
            acts.offer(scene)
            return combat.press(scene)
        scene.roll(d20(skill_bonus(scene.character, "Investigation")), f"Investigation to search {here}", 15)
        scene.mark(f"searched {here}")
        scene.say(scene.pick(tables.EMPTY_HANDED, "empty"))
        if details:
            scene.say(f"Only the {' and the '.join(list(details)[:2])} might be worth another look.")
        acts.offer(scene, apart=True)
        return combat.press(scene)
    found = hidden[0]
    if check(scene, found.get("skill", "Investigation"), int(found["dc"]), f"to search {here}"):
        opening.happen(scene, {k: v for k, v in found.items() if k != "at"})
    else:
        # A clue must not hang on one roll: each failed search makes the next one easier to believe in.
        scene.say(found.get("miss") or scene.pick(tables.MISSED_SEARCH, "missed"))
        scene.happening = f"{scene.name} searched {here} and is not satisfied."
        acts.offer(scene, apart=True)
    return combat.press(scene)


def sway(scene: Scene, intent: Intent) -> None:
    """Persuade, threaten, deceive or bribe somebody, or calm a foe."""
    story = scene.tale
    if story is None:
        return acts.puzzle(scene, intent)
    skill = _VERB_SKILLS[intent.verb]
    said = f"{intent.whom} {intent.what}"
    foe = story.foe(said, scene.foes_here())
    person = story.person(said, scene.people_here())
    if foe is None and person is None:
        foe, person = next(iter(scene.foes_here()), None), next(iter(scene.people_here()), None)
    if foe is not None and (person is None or stems(foe) & stems(said)):
        return _calm(scene, foe, skill)
    if person is None:
        scene.say("You make your case with real feeling. There is nobody here to be moved by it.")
        return acts.offer(scene)
    name = story.names[person]
    if intent.verb == "bribe":
        if int(scene.page.get("gold") or 0) < 3:
            scene.say(f"You rub thumb and finger together at {name}, and there is nothing between them.")
            return acts.offer(scene)
        scene.pay(-3)
    won = check(scene, skill, 10 if intent.verb == "bribe" else 13, f"to sway {name}")
    scene.meet(person, "won over" if won else "wary")
    scene.say(acts.filled(scene.pick(tables.PERSUADED if won else tables.UNMOVED, "sway"), who=name))
    scene.happening = f"{scene.name} has {'won over' if won else 'not moved'} {name}."
    if won:
        scene.mark(f"trust {person}")
        if talk.confide(scene, person):
            return None
    acts.offer(scene, apart=True)
    return combat.press(scene)


def hurt(scene: Scene, harm: int) -> None:
    """Take harm from something that is not a foe; it never kills."""
    if harm <= 0:
        return
    now, most = scene.hit_points()
    left = max(1, now - harm)
    scene.note({"condition": {"hp": left}})
    scene.say(f"It costs you {now - left}; you have {left} of {most} hit points.")


def _calm(scene: Scene, foe: str, skill: str) -> None:
    story = scene.tale
    calm = story["foes"][foe].get("calm") if story else None
    if not calm or not scene.done(calm.get("needs")):
        check(scene, skill, 25, f"to sway the {foe}")
        scene.say(f"You might as well talk to weather. The {foe} is past all talk, or not yet come to it.")
        scene.happening = f"{scene.name} tried to talk to the {foe}."
        return combat.press(scene) if scene.secrets.get("fight") else acts.offer(scene)
    if check(scene, skill, int(calm["dc"]), f"to calm the {foe}"):
        scene.keep("fight", None)
        return opening.happen(scene, {"text": calm["text"], "sets": f"calmed {foe}"} | calm.get("spoils", {}))
    scene.say(f"For a moment the {foe} seems to listen. Then the moment is over.")
    scene.happening = f"{scene.name} tried to calm the {foe}."
    return combat.press(scene) if scene.secrets.get("fight") else acts.offer(scene)


def _listen(scene: Scene) -> None:
    won = check(scene, "Perception", 10, "to listen")
    acts.weather(scene)
    if won and (story := scene.tale):
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
    elif not won:
        scene.say("Beyond that there is only your own breath, which is louder than you thought.")
    acts.offer(scene, apart=True)
    combat.press(scene)


def _skill(intent: Intent) -> str:
    said = intent.said.casefold()
    named = next((skill for skill in tables.SKILLS if skill.casefold() in said), None)
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
