"""Acts: resting, waiting, singing, and other things that leave the world as it is."""

from __future__ import annotations

import re

from questbook.graphs.offline.storyteller import choices, combat, deeds, obstacles
from questbook.graphs.offline.storyteller.phrases import filled, lower, upper
from questbook.graphs.offline.storyteller.scene import HOURS, Scene
from questbook.graphs.offline.storyteller.tables import flavours, table
from questbook.graphs.offline.storyteller.words import Intent


def rest(scene: Scene, intent: Intent) -> None:
    """Rest an hour or a night."""
    if scene.secrets.get("fight") and scene.foes_here():
        scene.say("You would like very much to lie down. The one in front of you would like that too.")
        return combat.press(scene)
    now, most = scene.hit_points()
    sitting = re.match(r"\W*(?:i\s+)?(?:sit|take a (?:break|short))", intent.said, re.I)
    slept = re.search(r"\b(?:sleep|night|camp|long|bed|dawn)\b", intent.said, re.I)
    long = slept or (scene.hour() in ("dusk", "night") and not sitting)
    if long:
        scene.pass_time(to_dawn=True)
        scene.note({"condition": {"hp": most, "conditions": {"battered": None}}})
        scene.say(scene.pick(table("long_rest"), "night"))
        scene.happening = f"Dawn of day {scene.day()}; {scene.name} has slept at {scene.location()}."
    else:
        if now < most:
            healed = scene.roll("1d8", "Hit points regained by a short rest")
            now = min(most, now + max(1, int(healed["total"])))
        scene.pass_time()
        scene.note({"condition": {"hp": now}})
        scene.say(
            f"{scene.pick(table('short_rest'), 'rest')} You have {now} of {most} hit points, and it is {scene.hour()}."
        )
        scene.happening = f"{scene.name} has rested a while at {scene.location()}; it is {scene.hour()}."
    scene.say(
        scene.pick(table("heard_waiting"), "then").format(
            objective=lower(str(scene.page.get("objective") or "")) or "go on"
        ),
        apart=True,
    )
    return choices.offer(scene)


def wait(scene: Scene, intent: Intent) -> None:
    """Let time pass, up to the hour that was named if one was."""
    named = re.search(rf"\b(?:until|till|for)\b.*?\b({'|'.join(HOURS)}|evening)", intent.said, re.I)
    hour = {"evening": "dusk"}.get(named[1].casefold(), named[1].casefold()) if named else ""
    scene.pass_time()
    while hour and scene.hour() != hour:
        scene.pass_time()
    scene.say(f"{scene.pick(table('waited'), 'wait')} It is {scene.hour()} now.")
    scene.say(scene.pick(table("complications"), "meanwhile"))
    scene.happening = f"{scene.name} waits at {scene.location()}; it is {scene.hour()}."
    choices.offer(scene, apart=True)
    combat.press(scene)


def flavour(scene: Scene, intent: Intent) -> None:
    """Sing, dance, pray, and so on: the world takes note and stays as it is."""
    word = intent.said.casefold()
    if deeds.play_out(scene, "feel use", word):
        return None
    if obstacle := obstacles.find(scene, word):
        return obstacles.face(scene, obstacle)
    plain = re.match(r"(?:i\s+)?(\w+)", word)
    first = {
        "accept": "yes",
        "agree": "yes",
        "sure": "yes",
        "ok": "yes",
        "okay": "yes",
        "deal": "yes",
        "yeah": "yes",
        "nod": "yes",
        "refuse": "no",
        "decline": "no",
        "never": "no",
        "thanks": "thank",
        "hum": "sing",
        "mock": "insult",
        "taunt": "insult",
        "shut": "insult",
        "apologise": "sorry",
        "apologize": "sorry",
    }.get(plain[1] if plain else "", "")
    # The longer of two that fit: a nod is no "no".
    kind = first or next((k for k in sorted(flavours(), key=len, reverse=True) if re.search(rf"\b{k}", word)), "nod")
    objective = lower(str(scene.page.get("objective") or "")) or "find out what is going on"
    scene.say(
        filled(
            scene.pick(flavours()[kind], kind),
            place=scene.location(),
            place_c=upper(scene.location()),
            objective=objective,
        )
    )
    return choices.offer(scene)
