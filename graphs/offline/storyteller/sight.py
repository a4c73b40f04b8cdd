"""Sight: what the character sees, at first, again, on looking closely, and in the mirror."""

from __future__ import annotations

import re

from questbook.graphs.offline.storyteller import choices, combat, deeds, elsewhere
from questbook.graphs.offline.storyteller.phrases import article, filled, lower, series, upper
from questbook.graphs.offline.storyteller.scene import Scene, listed
from questbook.graphs.offline.storyteller.tables import table
from questbook.graphs.offline.storyteller.tale import match, stems
from questbook.graphs.offline.storyteller.words import Intent


def look(scene: Scene, intent: Intent) -> None:
    """Describe the place, or one thing in it."""
    if intent.what and not re.fullmatch(
        r"(?:around|here|me|room|place|area|surroundings|everything)(?: \w+ly)?", intent.what, re.I
    ):
        examine(scene, intent)
        return
    describe(scene)
    choices.offer(scene, apart=True)
    combat.press(scene)


def describe(scene: Scene) -> None:
    """Tell the place; each visit tells it differently."""
    story, here = scene.story, scene.location()
    place = story["places"][here]
    visits = _visits(scene, here)
    looks = place["looks"]
    scene.say(looks[0] if visits == 0 else looks[1 + (visits - 1) % (len(looks) - 1)] if len(looks) > 1 else looks[0])
    scene.keep(
        "seen",
        "; ".join(
            [*(s for s in listed(scene.secrets.get("seen")) if s.rsplit(" ", 1)[0] != here), f"{here} {visits + 1}"]
        ),
    )
    if visits or scene.beat % 3 == 1:
        weather(scene)
    for person in scene.people_here():
        known = story.names[person] in (scene.page.get("people") or {})
        line = story["people"][person].get("doing", "is here.")
        scene.say(f"{story.names[person] if known else _stranger(story['people'][person]['role'])} {line}")
        if not known and visits == 0:
            scene.meet(person)
            scene.said[-1] = f"{story.names[person]}, {article(story['people'][person]['role'])}, {line}"
    for foe in scene.foes_here():
        scene.say(story["foes"][foe]["looks"])
    things = scene.things_here()
    if things:
        scene.say(
            f"{upper(series([article(thing) for thing in things[:4]]))} {'is' if len(things) == 1 else 'are'} "
            "here for whoever wants to take it."
            if len(things) == 1
            else f"{upper(series([article(thing) for thing in things[:4]]))} lie here for the taking."
        )


def examine(scene: Scene, intent: Intent) -> None:
    """Describe one thing, person or foe."""
    story = scene.story
    if re.fullmatch(r"(?:my ?self|me)", intent.what, re.I):
        return status(scene, intent)
    what, here = intent.what, story["places"][scene.location()]
    person = story.person(what, scene.people_here())
    foe = story.foe(what, scene.foes_here())
    detail = match(what, {key: key for key in here.get("details", {})})
    thing = story.item(what, [*scene.things_here(), *scene.carried()])
    if deeds.play_out(scene, f"{intent.verb} read examine study look", what):
        return None
    if detail and stems(detail) & stems(what):
        scene.say(here["details"][detail])
        fact = here.get("facts", {}).get(detail)
        if fact:
            scene.learn(fact)
    elif foe:
        combat.size_up(scene, foe)
    elif thing:
        about = story.part("items").get(thing, {}).get("about", f"A plain {thing}, and the better for it.")
        scene.say(about)
    elif person:
        scene.meet(person)
        who = story["people"][person]
        scene.say(f"{story.names[person]}, {article(who['role'])}, {who['manner']}.")
    elif missed := elsewhere.named(scene, what):
        elsewhere.miss(scene, missed)
        return combat.press(scene)
    elif story.place(what, here["ways"]):
        towards = story.place(what, here["ways"])
        scene.say(f"From here you can see only the beginning of the way to {towards}, {here['ways'][towards]}.")
    else:
        scene.say(
            filled(
                scene.pick(
                    table("out_of_sight"),
                    "nothing",
                ),
                what=what[:60],
            )
        )
    choices.offer(scene)
    return combat.press(scene)


def status(scene: Scene, _: Intent) -> None:
    """Say how the character is."""
    scene.quiet = True
    now, most = scene.hit_points()
    state = (
        "whole" if now == most else "scratched" if now * 2 > most else "hurt" if now * 4 > most else "on your last legs"
    )
    scene.say(
        f"You are {state}: {now} of {most} hit points. It is {scene.hour()} of day {scene.day()}, and you are in "
        f"{scene.location()}."
    )
    if objective := str(scene.page.get("objective") or ""):
        scene.say(f"What you are about: {lower(objective)}.")


def point_out(scene: Scene, intent: Intent) -> bool:
    """Answer "where is …?" and "what is …?" about what can be seen from here."""
    story = scene.story
    if not re.match(r"\W*(?:where|how|what|who|which)\b", intent.said, re.I):
        return False
    ways = story["places"][scene.location()]["ways"]
    if re.search(r"\b(?:where (?:is|are|can|do)|how (?:do|can) i (?:get|go|come|reach))\b", intent.said, re.I):
        towards = story.place(intent.what, ways)
        if towards:
            scene.quiet = True
            scene.say(f"{upper(str(towards))} is {ways[towards]}; that is where the way from {scene.location()} goes.")
            return True
    if re.fullmatch(
        r"(?:he|she|it|they|this|that|him|her|them|(?:his|her|their|its) name)(?: (?:man|woman|person))?",
        intent.what,
        re.I,
    ):
        shown = [story.names[p] for p in scene.people_here()] or scene.foes_here()
        if shown:
            examine(scene, intent._replace(what=shown[0]))
            return True
    if re.search(
        r"\b(?:who|what) (?:is|are|else is)(?: \w+)? (?:here|around|nearby)\b|\bwhere am i\b", intent.said, re.I
    ):
        describe(scene)
        return True
    return False


def weather(scene: Scene) -> None:
    """Add a sound, a smell, a small event."""
    inside = scene.story["places"][scene.location()].get("inside", False)
    scene.say(scene.pick(table("inside" if inside else "outside"), "weather"))


def _visits(scene: Scene, here: str) -> int:
    seen = {name: count for name, _, count in (s.rpartition(" ") for s in listed(scene.secrets.get("seen")))}
    return int(seen[here]) if seen.get(here, "").isdecimal() else 0


def _stranger(role: str) -> str:
    return upper(article(role))
