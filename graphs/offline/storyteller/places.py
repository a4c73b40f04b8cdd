"""Places: what the character sees there, and the ways between them."""

import re

from questbook.graphs.offline.storyteller import people, plot, rules
from questbook.graphs.offline.storyteller.intent import Intent
from questbook.graphs.offline.storyteller.language import article, as_said, lower, match, pattern, series, upper
from questbook.graphs.offline.storyteller.scene import Scene, listed

_PLACE = re.compile(r"(?:around|here|me|room|place|area|surroundings|everything)(?: \w+ly)?", re.I)
_ONWARD = re.compile(r"(?:back|out|outside|away|on|onwards?|in|inside|along|there|)", re.I)


def look(scene: Scene, intent: Intent) -> None:
    """Describe the place, or one thing in it."""
    if intent.what and not _PLACE.fullmatch(intent.what):
        examine(scene, intent)
    else:
        if re.match(r"where am i\b", intent.said, re.I):
            scene.say(f"This is {scene.location()}.")
        describe(scene)


def describe(scene: Scene) -> None:
    """Tell the place; each visit tells it differently."""
    story, here = scene.story, scene.location()
    visits, (first, *later) = _visits(scene), story["places"][here]["looks"]
    number = visits.get(here, 0)
    scene.say(later[(number - 1) % len(later)] if number and later else first)
    counts = {name: count for name, count in visits.items() if name != here} | {here: number + 1}
    scene.keep("seen", "; ".join(f"{name} {count}" for name, count in counts.items()))
    if number or scene.beat % 3 == 1:
        weather(scene)
    for person in scene.people_here():
        about, name = story["people"][person], story.names[person]
        role, doing = article(about["role"]), about["doing"]
        if scene.entry(person):
            scene.say(f"{name} {doing}")
        elif number:
            scene.say(f"{upper(role)} {doing}")
        else:
            scene.meet(person)
            scene.say(f"{name}, {role}, {doing}")
    for foe in scene.foes_here():
        scene.say(story["foes"][foe]["looks"])
    if things := scene.things_here()[:4]:
        lie = "is here for whoever wants to take it" if len(things) == 1 else "lie here for the taking"
        scene.say(f"{upper(series([article(thing) for thing in things]))} {lie}.")


def examine(scene: Scene, intent: Intent) -> None:
    """Describe one thing, person or foe."""
    story, what, here = scene.story, intent.what, scene.story["places"][scene.location()]
    if re.fullmatch(r"(?:my ?self|me)", what, re.I):
        return condition(scene)
    if plot.foreseen(scene, f"{intent.verb} read examine study look", what):
        return None
    if detail := match(what, here.get("details", {})):
        scene.say(here["details"][detail])
        scene.learn(here.get("facts", {}).get(detail, ""))
    elif foe := story.find("foes", what, scene.foes_here()):
        rules.size_up(scene, foe)
    elif thing := story.find("items", what, [*scene.things_here(), *scene.carried()]):
        scene.say(story.part("items").get(thing, {}).get("about", f"A plain {thing}, and the better for it."))
    elif person := story.person(what, scene.people_here()):
        scene.meet(person)
        about = story["people"][person]
        scene.say(f"{story.names[person]}, {article(about['role'])}, {about['manner']}.")
    elif missed := people.absent(scene, what):
        people.miss(scene, missed)
    elif towards := story.find("places", what, here["ways"]):
        scene.say(f"From here you can see only the beginning of the way to {towards}, {here['ways'][towards]}.")
    else:
        scene.tell("out_of_sight", what=what[:60])
    return None


def condition(scene: Scene) -> None:
    """Say how the character is, where, and what they are about."""
    now, most = scene.hit_points()
    states = [(most, "whole"), (most / 2, "scratched"), (most / 4, "hurt")]
    state = next((word for least, word in states if now >= least), "on your last legs")
    time = f"It is {scene.hour()} of day {scene.day()}, and you are in {scene.location()}."
    objective = lower(str(scene.page.get("objective") or ""))
    about = f" What you are about: {objective}." if objective else ""
    scene.aside(f"You are {state}: {now} of {most} hit points. {time}{about}")


def point_out(scene: Scene, intent: Intent) -> bool:
    """Answer "where is …?" and "what is …?" about what can be seen from here; False if it cannot."""
    story = scene.story
    if not re.match(r"\W*(?:where|how|what|who|which)\b", intent.said, re.I):
        return False
    roads = story["places"][scene.location()]["ways"]
    shown = [story.names[person] for person in scene.people_here()] or scene.foes_here()
    if pattern("questions", "where").search(intent.said) and (towards := story.find("places", intent.what, roads)):
        scene.aside(f"{upper(towards)} is {roads[towards]}; that is where the way from {scene.location()} goes.")
    elif shown and pattern("questions", "this").fullmatch(intent.what):
        examine(scene, intent._replace(what=shown[0]))
    elif pattern("questions", "here").search(intent.said):
        describe(scene)
    else:
        return False
    return True


def weather(scene: Scene) -> None:
    """Add a sound, a smell, a small event."""
    inside = scene.story["places"][scene.location()].get("inside", False)
    scene.tell("inside" if inside else "outside" if scene.tale else "anywhere")


def go(scene: Scene, intent: Intent) -> None:
    """Go to a place, if the way is free; or over to a person; or past an obstacle."""
    story, here, said = scene.story, scene.location(), intent.what or intent.said
    roads, far = story["places"][here]["ways"], story.find("places", said)
    towards = way(scene, intent)
    if not towards and _ONWARD.fullmatch(said):
        origin = str(scene.secrets.get("from") or "")
        towards = origin if origin in roads else next(iter(roads))
    if not towards and far == here:
        return scene.say(f"You are there already: this is {here}.")
    if not towards and story.person(said, scene.people_here()):
        return people.talk(scene, intent._replace(verb="talk", whom=said))
    if not towards and far and _is_known(scene, far):
        towards = _step(scene, far)
    if towards:
        return travel(scene, towards, far=far)
    if plot.obstacle(scene, intent.said) or plot.foreseen(scene, "use", intent.said):
        return None
    scene.tell("no_way", said=as_said(said[:60], scene.words))
    scene.say(f"From {here} you can go to {scene.ways()}.")
    scene.offers = False
    return None


def way(scene: Scene, intent: Intent) -> str | None:
    """Find the way from here that is meant: by where it goes to, or by what it is like."""
    said, roads = intent.what or intent.said, scene.story["places"][scene.location()]["ways"]
    if towards := scene.story.find("places", said, roads) or match(said, roads, roads):
        return towards
    # "Go in" and "climb down" are read against how the ways are described.
    direction = re.search(r"\b(in|out|up|down|back)(?:side|wards?|stairs)?\W*$", intent.said, re.I)
    return next((p for p, road in roads.items() if direction and road.startswith(direction[1].casefold())), None)


def travel(scene: Scene, towards: str, *, far: str | None = None) -> None:
    """Go one step of the map, or all the way to a place that the character knows the way to."""
    for _ in range(9):
        here = scene.location()
        for block in scene.story.part("blocks"):
            if {here, towards} == {block["from"], block["to"]} and not scene.did_all(block["until"]):
                return scene.say(block["text"])
        if not rules.escape(scene):
            return None
        scene.keep("from", here)
        scene.note({"location": towards})
        following = _step(scene, far) if far and far != towards and _is_known(scene, far) else None
        if not following:
            break
        towards = following
    scene.happening = f"{scene.name} has come to {scene.location()}; it is {scene.hour()}."
    return describe(scene)


def _visits(scene: Scene) -> dict[str, int]:
    seen = (entry.rpartition(" ") for entry in listed(scene.secrets.get("seen")))
    return {place: int(count) for place, _, count in seen if count.isdecimal()}


def _is_known(scene: Scene, place: str) -> bool:
    """Whether the character knows the way: they have been there, or have stood where the way there begins."""
    places, visits = scene.story["places"], _visits(scene)
    return place in visits or any(place in places[visited]["ways"] for visited in visits if visited in places)


def _step(scene: Scene, far: str) -> str | None:
    places, here = scene.story["places"], scene.location()
    origins, queue = {here: here}, [here]
    for place in queue:  # grows meanwhile
        for towards in places[place]["ways"]:
            if towards not in origins:
                origins[towards] = place
                queue.append(towards)
    if far not in origins or far == here:
        return None
    while origins[far] != here:
        far = origins[far]
    return far
