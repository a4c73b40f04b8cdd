"""Combat: short and tense. A blow, an answer, and a decision."""

from __future__ import annotations

import math
import re
from typing import Any

from questbook.graphs.offline.storyteller import callings, choices, elsewhere, plot
from questbook.graphs.offline.storyteller.abilities import armour, d20, modifier
from questbook.graphs.offline.storyteller.death import fall, fallen
from questbook.graphs.offline.storyteller.phrases import filled
from questbook.graphs.offline.storyteller.scene import Scene
from questbook.graphs.offline.storyteller.tables import table
from questbook.graphs.offline.storyteller.words import Intent

JSON = dict[str, Any]

_FOE_STATE = ["barely scratched", "hurt", "hurt badly", "all but done"]


def attack(scene: Scene, intent: Intent) -> None:
    """Strike at a foe, or at a person, which has consequences."""
    story = scene.story
    foes = scene.foes_here()
    said = f"{intent.what} {intent.whom}".strip()
    missed = elsewhere.named(scene, intent.what)
    person = story.person(intent.what, scene.people_here()) if intent.what and not missed else None
    foe = story.foe(said, foes) or (foes[0] if foes and not person else None)
    if foe is None and person is None:
        person = _at_hand(scene, intent.what)
    if foe is not None:
        _exchange(scene, foe, story["foes"][foe])
    elif person is not None:
        name = story.names[person]
        who = {
            "hp": 6,
            "ac": 11,
            "hit": 2,
            "harm": 2,
            "strikes": [f"{name} hits back, wildly, with the nearest thing."],
            "misses": [f"{name} swings at you and hits the furniture of the world."],
            "person": person,
        }
        scene.meet(person, "hostile")
        _exchange(scene, name, who)
    elif missed:
        elsewhere.miss(scene, missed)
    else:
        what = f"“{intent.what[:60]}”" if intent.what else "the empty air"
        scene.say(f"You square up to {what}. Nobody here answers the challenge, which may be for the best.")
        choices.offer(scene)


def _at_hand(scene: Scene, what: str) -> str | None:
    """Whom "him" means: the one whom the character fights, or the only one here; a bare blow means the fight only."""
    if not re.fullmatch(r"(?:him|her|it|them|back|on|again)?", what, re.I):
        return None
    here = scene.people_here()
    fight = str(scene.secrets.get("fight") or "")
    fought = next((person for person in here if fight.startswith(f"{scene.story.names[person]}: ")), None)
    return fought or (here[0] if len(here) == 1 and re.fullmatch(r"him|her", what, re.I) else None)


def size_up(scene: Scene, foe: str) -> None:
    """Describe a foe, and how it is faring."""
    about = scene.story["foes"][foe]
    scene.say(about["looks"])
    left, most = _left(scene, foe, about)
    if left < most:
        scene.say(f"It is {_state(left, most)}.")


def press(scene: Scene) -> None:
    """In a fight that is under way, whatever else one does, the foe strikes."""
    story, fight = scene.tale, str(scene.secrets.get("fight") or "")
    foe = next((f for f in scene.foes_here() if fight.startswith(f"{f}: ")), None)
    if story is not None and foe is not None:
        _strike(scene, foe, story["foes"][foe])


def parting_blow(scene: Scene) -> bool:
    """Let the foe strike at one who runs; False if the runner falls."""
    press(scene)
    scene.keep("fight", None)
    return not fallen(scene)


def _exchange(scene: Scene, foe: str, about: JSON) -> None:
    ability, die, weapon = callings.WEAPONS.get(callings.kind(scene.character), ("strength", "1d6", "blade"))
    bonus = modifier(scene.character, ability)
    left, most = _left(scene, foe, about)
    blow = scene.roll(d20(bonus + 2), f"Attack on {_the(foe, about)}", int(about["ac"]))
    great = blow.get("natural") == 20
    if blow["success"]:
        doubled = re.sub(r"^(\d+)", lambda n: str(int(n[1]) * 2), die) if great else die
        damage = scene.roll(_plus(doubled, bonus), f"Damage with your {weapon}")
        harm = max(1, int(damage["total"]))
        left -= harm
        blows = table("great_hit" if great else "hits")
        points = f"{harm} point{'' if harm == 1 else 's'} of harm"
        scene.say(_blow(scene.pick(blows, "hit"), foe, about, weapon=weapon, harm=points))
    else:
        scene.say(_blow(scene.pick(table("misses"), "miss"), foe, about, weapon=weapon))
    if left <= 0:
        _fall(scene, foe, about)
        return
    scene.keep("fight", f"{foe}: {left} of {most}")
    scene.say(f"{_the(foe, about, upper=True)} is {_state(left, most)}.")
    scene.happening = f"{scene.name} is fighting {_the(foe, about)} at {scene.location()}."
    _strike(scene, foe, about)


def _strike(scene: Scene, foe: str, about: JSON) -> None:
    blow = scene.roll(d20(int(about["hit"])), f"{_the(foe, about, upper=True)} strikes at you", armour(scene.character))
    now, most = scene.hit_points()
    if not blow["success"]:
        scene.say(scene.pick(about["misses"], "misses"), apart=True)
        scene.say("Press on, try something else, or run?")
        return
    harm = int(about["harm"]) * (2 if blow.get("natural") == 20 else 1)
    now -= harm
    scene.say(f"{scene.pick(about['strikes'], 'strikes')} It costs you {harm}.", apart=True)
    if now <= 0:
        fall(scene, _the(foe, about))
        return
    scene.note({"condition": {"hp": now}})
    scene.say(
        f"You have {now} of {most} hit points left. "
        + ("You cannot take much more of this." if now * 3 <= most else "Do you press on?")
    )


def _fall(scene: Scene, foe: str, about: JSON) -> None:
    scene.keep("fight", None)
    if "person" in about:
        scene.meet(about["person"], "dead")
        fate = f"killed by {scene.name}, day {scene.day()}"
        scene.note({"people": {foe: {"alive": False, "fate": fate, "attitude": None}}})
        scene.say(
            f"{foe} falls, looks more surprised than anything, and does not get up. It is very quiet. You did that."
        )
        scene.mark(f"killed {about['person']}")
        for witness in scene.people_here():
            scene.meet(witness, "afraid of you")
        scene.happening = f"{scene.name} has killed {foe} at {scene.location()}."
        if not scene.people_here():
            choices.offer(scene, apart=True)
        else:
            scene.say(f"{scene.story.names[scene.people_here()[0]]} backs away from you, both hands up.", apart=True)
        return
    plot.happen(scene, {"text": about["falls"], "sets": about.get("sets", f"beat {foe}")} | about.get("spoils", {}))
    scene.happening = f"The {foe} is beaten; {scene.name} stands at {scene.location()}."


def _left(scene: Scene, foe: str, about: JSON) -> tuple[int, int]:
    most = int(about["hp"])
    found = re.fullmatch(rf"{re.escape(foe)}: (\d+) of \d+", str(scene.secrets.get("fight") or ""))
    return (min(int(found[1]), most) if found else most), most


def _state(left: int, most: int) -> str:
    return _FOE_STATE[min(3, math.floor((most - left) * 4 / most))]


def _the(foe: str, about: JSON, *, upper: bool = False) -> str:
    if "person" in about:
        return foe
    return f"{'The' if upper else 'the'} {foe}"


def _blow(text: str, foe: str, about: JSON, **parts: str) -> str:
    """Fill in a sentence about "the {foe}"; people have no article."""
    named = re.sub(r"\b[Tt]he (?=\{foe\})", "", text) if "person" in about else text
    return filled(named, foe=foe, **parts)


def _plus(die: str, bonus: int) -> str:
    return f"{die}{bonus:+d}" if bonus else die
