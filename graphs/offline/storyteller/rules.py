"""Rules of play: modifiers, checks, and combat: a blow, an answer, a decision. Their tables are in rules.toml."""

import re

from questbook.graphs.offline.storyteller.language import fill, load, match, pattern, saying, stem, stems, table
from questbook.graphs.offline.storyteller.scene import Scene
from questbook.types import JSON

_FOE_STATES = ["barely scratched", "hurt", "hurt badly", "all but done"]
_SAVE_DC = 10  # SRD 5.1, "Death Saving Throws": 10 or higher succeeds; one roll stands for the best of five


def modifier(character: JSON, ability: str) -> int:
    """Return an ability's modifier; without a score, the class's own ability counts as 15, others as 10."""
    scores = character.get("abilities")
    score = scores.get(ability) if isinstance(scores, dict) else None
    if not isinstance(score, int):
        score = 15 if ability == _class(character)["ability"] else 10
    return (score - 10) // 2


def d20(bonus: int) -> str:
    """Write a d20 with its modifier."""
    return f"1d20{bonus:+d}" if bonus else "1d20"


def skill_roll(character: JSON, skill: str) -> str:
    """Write the dice of a check: a d20 with the ability's modifier, and the proficiency bonus of the trained."""
    level = character.get("level")
    proficiency = 2 + (level - 1) // 4 if isinstance(level, int) and level > 0 else 2
    bonus = modifier(character, load("rules")["skills"].get(skill, "wisdom"))
    return d20(bonus + proficiency if skill in _class(character)["skills"] else bonus)


def check(scene: Scene, skill: str, dc: int, reason: str) -> bool:
    """Roll a check and say whether it succeeds; one who is battered rolls with disadvantage."""
    conditions = scene.page.get("condition", {}).get("conditions", {})
    advantage = "disadvantage" if "battered" in conditions else None
    return bool(scene.roll(skill_roll(scene.character, skill), f"{skill} {reason}"[:120], dc, advantage)["success"])


def skill_for(verb: str, sentence: str) -> str:
    """Choose the skill for a deed: the one that the sentence names, or one of the ability that it names."""
    said, tables = sentence.casefold(), load("rules")
    named = next((skill for skill in tables["skills"] if skill.casefold() in said), None)
    by_ability = (skill for ability, skill in tables["ability_skills"].items() if re.search(rf"\b{ability}\b", said))
    return str(named or next(by_ability, None) or tables["verb_skills"].get(verb, "Perception"))


def _class(character: JSON) -> JSON:
    """Return the one of the twelve classes that a character's own word comes nearest to; fighter if none."""
    named, classes = stems(str(character.get("class") or "")), load("rules")["classes"]
    near = (about for name, about in classes.items() if named & {name, *about["also"].split()})
    return dict(next(near, classes["fighter"]))


def fight_person(scene: Scene, person: str, with_what: str = "") -> None:
    """Strike at a person, which has consequences."""
    name = scene.story.names[person]
    scene.meet(person, "hostile")
    blows: JSON = fill({"strikes": table("person_strikes"), "misses": table("person_misses")}, {"who": name})
    # `person` marks a person among the foes.
    fight(scene, name, {"hp": 6, "ac": 11, "hit": 2, "harm": 2, "person": person} | blows, with_what)


def opponent(scene: Scene) -> str | None:
    """Return the person here with whom a fight is under way; the id."""
    fight = str(scene.secrets.get("fight") or "")
    return next((p for p in scene.people_here() if fight.startswith(f"{scene.story.names[p]}: ")), None)


def size_up(scene: Scene, foe: str) -> None:
    """Describe a foe, and how it is faring."""
    about = scene.story["foes"][foe]
    scene.say(about["looks"])
    left, most = _hit_points(scene, foe, about)
    if left < most:
        scene.say(f"It is {_state(left, most)}.")


def press(scene: Scene) -> None:
    """In a fight that is under way, let the foe strike at one who does something else."""
    fight = str(scene.secrets.get("fight") or "")
    foe = next((f for f in scene.foes_here() if fight.startswith(f"{f}: ")), None)
    if foe is not None and not scene.struck:
        _strike_back(scene, foe, scene.story["foes"][foe])


def escape(scene: Scene) -> bool:
    """Run from a fight, if there is one: the foe strikes once more. False if the runner falls."""
    if not scene.secrets.get("fight"):
        return True
    if not scene.pieces:
        scene.tell("fled")
    press(scene)
    scene.keep("fight", None)
    return not scene.fallen


def fight(scene: Scene, foe: str, about: JSON, with_what: str = "") -> None:
    """Strike at a foe of the tale, of whom `about` is what the tale says; they strike back."""
    weapon, die, ability = _weapon(scene, with_what)
    bonus = modifier(scene.character, ability)
    left, most = _hit_points(scene, foe, about)
    blow = scene.roll(d20(bonus + 2), f"Attack on {_the(foe, about)}", int(about["ac"]))
    great = blow.get("natural") == 20
    if blow["success"]:
        die = re.sub(r"^\d+", lambda match: str(int(match[0]) * 2), die) if great else die
        harm = max(1, int(scene.roll(f"{die}{bonus:+d}" if bonus else die, f"Damage with your {weapon}")["total"]))
        left -= harm
        points = f"{harm} point{'' if harm == 1 else 's'} of harm"
        _tell_blow(scene, "great_hit" if great else "hits", foe, about, weapon=weapon, harm=points)
    else:
        _tell_blow(scene, "misses", foe, about, weapon=weapon)
    if left <= 0:
        scene.keep("fight", None)
        if "person" in about:
            return _kill(scene, foe, about)
        scene.happen({"text": about["falls"], "sets": about["sets"]} | about.get("spoils", {}))
        scene.happening = f"The {foe} is beaten; {scene.name} stands at {scene.location()}."
        return None
    scene.keep("fight", f"{foe}: {left} of {most}")
    scene.say(f"{_the(foe, about, 'The')} is {_state(left, most)}.")
    scene.happening = f"{scene.name} is fighting {_the(foe, about)} at {scene.location()}."
    return _strike_back(scene, foe, about)


def armour(scene: Scene) -> int:
    """Return the armour class: the class's own if it needs no armour or some is carried, or by Dexterity."""
    own, worn = _class(scene.character), set(load("rules")["armours"].split()) & stems(" ".join(scene.carried()))
    usual = int(own.get("armour", 0)) if worn or own.get("unarmoured") else 0
    return max(11 + modifier(scene.character, "dexterity"), usual)


def _weapon(scene: Scene, named: str) -> tuple[str, str, str]:
    """Return what is struck with, its damage and its ability: what was named, the class's magic, a weapon, a fist."""
    fists = pattern("intent", "fists").fullmatch(named) or pattern("intent", "unarmed").search(scene.words)
    own, carried = _class(scene.character), {} if fists else scene.carried()
    kinds = ((stem(word), die) for die, words in load("rules")["weapons"].items() for word in words.split())
    dice = {item: die for word, die in kinds for item in carried if word in stems(item)}
    plain = own["ability"] if own["ability"] == "dexterity" else "strength"
    kinds_named = (item for item in dice for word in stems(named) if item.endswith(word))  # "staff": quarterstaff
    if item := match(named, carried) or next(kinds_named, None):
        return item, dice.get(item, "1d4"), plain
    if "weapon" in own and (own["weapon"] == "open hand" or not fists):
        return own["weapon"], own["damage"], own["ability"]
    return *next(iter(dice.items()), ("bare fist", "1d2")), plain


def _strike_back(scene: Scene, foe: str, about: JSON) -> None:
    scene.struck, scene.offers = True, False
    reason = f"{_the(foe, about, 'The')} strikes at you"
    blow = scene.roll(d20(int(about["hit"])), reason, armour(scene), foe=True)
    now, most = scene.hit_points()
    if not blow["success"]:
        scene.say(scene.pick(about["misses"], "misses"), apart=True)
        return scene.say("Press on, try something else, or run?")
    harm = int(about["harm"]) * (2 if blow.get("natural") == 20 else 1)
    now -= harm
    scene.say(f"{scene.pick(about['strikes'], 'strikes')} It costs you {harm}.", apart=True)
    if now <= 0:
        return _fall(scene, _the(foe, about))
    scene.note({"condition": {"hp": now}})
    closing = "You cannot take much more of this." if now * 3 <= most else "Do you press on?"
    return scene.say(f"You have {now} of {most} hit points left. {closing}")


def _kill(scene: Scene, name: str, about: JSON) -> None:
    fate = f"killed by {scene.name}, day {scene.day()}"
    scene.note({"people": {name: {"alive": False, "fate": fate, "attitude": None}}})
    scene.say(f"{name} falls, looks more surprised than anything, and does not get up. It is very quiet. You did that.")
    scene.mark(f"killed {about['person']}")
    witnesses = scene.people_here()
    for witness in witnesses:
        scene.meet(witness, "afraid of you")
    scene.happening = f"{scene.name} has killed {name} at {scene.location()}."
    if witnesses:
        scene.say(f"{scene.story.names[witnesses[0]]} backs away from you, both hands up.", apart=True)


def _fall(scene: Scene, by: str) -> None:
    scene.keep("fight", None)
    scene.fallen = True
    if scene.roll("1d20", "Death saving throw", _SAVE_DC)["success"]:
        start, most = str(scene.story["start"]), scene.hit_points()[1]
        scene.pass_time(to_dawn=True)
        scene.pay(-3)
        condition = {"hp": max(1, most // 2), "conditions": {"battered": "until a night's rest"}}
        scene.note({"location": start, "condition": condition})
        scene.tell("downed", start=start)
        scene.say("You are alive. It seems worth building on.")
        scene.happening = f"{scene.name} was beaten senseless and woke at {start}."
        return
    how = f"killed by {by} at {scene.location()}, day {scene.day()}"
    scene.note({"condition": {"hp": 0, "conditions": {"dead": how}}})
    scene.tell("dying", by=by)
    scene.say(fill(saying("died"), {"name": scene.name}), apart=True)
    scene.happening = f"{scene.name} is dead, {how}."


def _hit_points(scene: Scene, foe: str, about: JSON) -> tuple[int, int]:
    most = int(about["hp"])
    match = re.fullmatch(rf"{re.escape(foe)}: (\d+) of \d+", str(scene.secrets.get("fight") or ""))
    return (min(int(match[1]), most) if match else most), most


def _state(left: int, most: int) -> str:
    return _FOE_STATES[min(3, (most - left) * 4 // most)]


def _the(foe: str, about: JSON, article: str = "the") -> str:
    return foe if "person" in about else f"{article} {foe}"


def _tell_blow(scene: Scene, occasion: str, foe: str, about: JSON, **parts: str) -> None:
    """Tell a blow; "the {foe}" loses its article if the foe is a person."""
    text = scene.pick(table(occasion), occasion)
    text = re.sub(r"\b[Tt]he (?=\{foe\})", "", text) if "person" in about else text
    scene.say(fill(text, {"foe": foe} | parts))
