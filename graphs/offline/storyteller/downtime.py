"""Downtime: resting, waiting, singing, and other things that leave the world as it is."""

from __future__ import annotations

import re

from questbook.graphs.offline.storyteller import plot
from questbook.graphs.offline.storyteller.intent import Intent
from questbook.graphs.offline.storyteller.language import fill, load, lower, upper
from questbook.graphs.offline.storyteller.scene import HOURS, Scene

_SITTING = re.compile(r"\W*(?:i\s+)?(?:sit|take a (?:break|short))", re.I)
_SLEEPING = re.compile(r"\b(?:sleep|night|camp|long|bed|dawn)\b", re.I)
_UNTIL = re.compile(rf"\b(?:until|till|for)\b.*?\b({'|'.join(HOURS)}|evening)", re.I)


def rest(scene: Scene, intent: Intent) -> None:
    """Rest an hour or a night."""
    if scene.secrets.get("fight") and scene.foes_here():
        return scene.say("You would like very much to lie down. The one in front of you would like that too.")
    now, most = scene.hit_points()
    dark = scene.hour() in ("dusk", "night") and not _SITTING.match(intent.said)
    if dark or _SLEEPING.search(intent.said):
        scene.pass_time(to_dawn=True)
        scene.note({"condition": {"hp": most, "conditions": {"battered": None}}})
        scene.tell("long_rest")
        scene.happening = f"Dawn of day {scene.day()}; {scene.name} has slept at {scene.location()}."
    else:
        if now < most:
            healed = scene.roll("1d8", "Hit points regained by a short rest")
            now = min(most, now + max(1, int(healed["total"])))
        scene.pass_time()
        scene.note({"condition": {"hp": now}})
        scene.tell("short_rest")
        scene.say(f"You have {now} of {most} hit points, and it is {scene.hour()}.")
        scene.happening = f"{scene.name} has rested a while at {scene.location()}; it is {scene.hour()}."
    return scene.tell("heard_waiting", apart=True, objective=_objective(scene))


def wait(scene: Scene, intent: Intent) -> None:
    """Let time pass, up to the hour that was named if one was."""
    named = _UNTIL.search(intent.said)
    hour = named[1].casefold().replace("evening", "dusk") if named else ""
    scene.pass_time()
    while hour and scene.hour() != hour:
        scene.pass_time()
    scene.tell("waited")
    scene.say(f"It is {scene.hour()} now.")
    scene.tell("complications")
    scene.happening = f"{scene.name} waits at {scene.location()}; it is {scene.hour()}."


def gesture(scene: Scene, intent: Intent) -> None:
    """Sing, dance, nod, and so on: the world takes note and stays as it is."""
    sentence = intent.said.casefold()
    if plot.foreseen(scene, "feel use", sentence) or plot.obstacle(scene, sentence):
        return
    texts, alike = load("tables")["gestures"], load("tables")["gestures_alike"]
    first = re.sub(r"^i\s+", "", sentence).split()[:1]
    kind = next((kind for kind, words in alike.items() if set(first) & set(words.split())), "")
    # The longer of two that fit: a nod is no "no".
    longest = sorted(texts, key=len, reverse=True)
    kind = kind or next((kind for kind in longest if re.search(rf"\b{kind}", sentence)), "nod")
    parts = {"place": scene.location(), "place_c": upper(scene.location()), "objective": _objective(scene)}
    scene.say(fill(texts[kind], parts))


def _objective(scene: Scene) -> str:
    return lower(str(scene.page.get("objective") or "")) or "find out what is going on"
