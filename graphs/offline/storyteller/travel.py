"""Travel: going from place to place, as far as the ways are free."""

from __future__ import annotations

import re
from typing import Any

from questbook.graphs.offline.storyteller import choices, combat, deeds, obstacles, sight, talk
from questbook.graphs.offline.storyteller.phrases import as_said, filled, series
from questbook.graphs.offline.storyteller.scene import Scene, listed
from questbook.graphs.offline.storyteller.tables import table
from questbook.graphs.offline.storyteller.tale import match
from questbook.graphs.offline.storyteller.words import Intent

JSON = dict[str, Any]


def go(scene: Scene, intent: Intent) -> None:
    """Go to a place, if the way is free."""
    story = scene.story
    here, said = scene.location(), intent.what or intent.said
    ways: JSON = story["places"][here]["ways"]
    towards = way(scene, intent)
    if not towards and re.fullmatch(r"(?:back|out|outside|away|on|onwards?|in|inside|along|there|)", said.casefold()):
        towards = str(scene.secrets.get("from") or "") or next(iter(ways))
        towards = towards if towards in ways else next(iter(ways))
    if not towards:
        far = story.place(said)
        if far == here:
            scene.say(f"You are there already: this is {here}.")
            return choices.offer(scene)
        if far and _known(scene, far):
            towards = _step(scene, far)
        person = story.person(said, scene.people_here())
        if person:
            return talk.talk(scene, intent._replace(verb="talk", whom=said))
        if not towards and (obstacle := obstacles.find(scene, intent.said)):
            return obstacles.face(scene, obstacle)
        if not towards and deeds.play_out(scene, "use", intent.said):
            return None
        if not towards:
            return lost(scene, said)
    return travel(scene, towards, far=story.place(said))


def way(scene: Scene, intent: Intent) -> str | None:
    """Find the way from here that is meant: by where it goes to, or by what it is like."""
    said, ways = intent.what or intent.said, scene.story["places"][scene.location()]["ways"]
    return scene.story.place(said, ways) or match(said, dict(ways)) or _onward(intent.said, ways)


def _onward(said: str, ways: JSON) -> str | None:
    """Read "go in" and "climb down" against how the ways are described."""
    found = re.search(r"\b(in|out|up|down|back)(?:side|wards?|stairs)?\W*$", said, re.I)
    return next((place for place, way in ways.items() if found and way.startswith(found[1].casefold())), None)


def travel(scene: Scene, towards: str, *, far: str | None = None) -> None:
    """Go one step of the map, or all the way to a known place."""
    for _ in range(9):
        here = scene.location()
        if barred := _barred(scene, here, towards):
            scene.say(barred)
            choices.offer(scene)
            return combat.press(scene)
        if not scene.said and scene.secrets.get("fight"):
            scene.say(scene.pick(table("fled"), "fled"))
            if not combat.parting_blow(scene):
                return None
        scene.keep("from", here)
        scene.note({"location": towards})
        if far is None or far == towards or not _known(scene, far):
            break
        following = _step(scene, far)
        if not following:
            break
        towards = following
    arrive(scene)
    return None


def _known(scene: Scene, place: str) -> bool:
    """Whether the character knows the way: they have been there, or have stood where the way there begins."""
    places = scene.story["places"]
    been = {s.rsplit(" ", 1)[0] for s in listed(scene.secrets.get("seen"))}
    return place in been or any(place in places[b]["ways"] for b in been if b in places)


def arrive(scene: Scene) -> None:
    """Tell the place one has come to, and who bars the way on."""
    here = scene.location()
    scene.happening = f"{scene.name} has come to {here}; it is {scene.hour()}."
    sight.describe(scene)
    choices.offer(scene, apart=True)


def flee(scene: Scene, intent: Intent) -> None:
    """Get away, back where one came from."""
    go(scene, intent._replace(what="back"))


def lost(scene: Scene, said: str) -> None:
    """Say that there is no way there, and which ways there are."""
    ways = scene.story["places"][scene.location()]["ways"]
    roads = series([f"{place} ({way})" for place, way in ways.items()], "or")
    scene.say(
        filled(
            scene.pick(
                table("no_way"),
                "lost",
            ),
            said=as_said(said[:60], scene.words),
        )
    )
    scene.say(f"From {scene.location()} you can go to {roads}.")


def _barred(scene: Scene, here: str, towards: str) -> str:
    for block in scene.story.part("blocks"):
        between = (block["from"], block["to"])
        if (here, towards) in (between, between[::-1]) and not scene.done([block["until"]]):
            return str(block["text"])
    return ""


def _step(scene: Scene, far: str) -> str | None:
    """Find the next place on the shortest way, through places that are not barred."""
    places = scene.story["places"]
    here = scene.location()
    came: dict[str, str] = {here: here}
    line = [here]
    while line:
        at = line.pop(0)
        for way in places[at]["ways"]:
            if way not in came:
                came[way] = at
                line.append(way)
    if far not in came or far == here:
        return None
    while came[far] != here:
        far = came[far]
    return far
