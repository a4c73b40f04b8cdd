"""Plot: how tales begin, turn and end."""

from __future__ import annotations

from typing import Any

from questbook.graphs.offline.storyteller import choices
from questbook.graphs.offline.storyteller.scene import Scene, listed
from questbook.graphs.offline.storyteller.tables import saying, table
from questbook.graphs.offline.storyteller.tale import Tale, keys, tale

JSON = dict[str, Any]

_OF_A_TALE = ("tale", "truth", "deeds", "seen", "from", "fight", "moved", "left")


def open_tale(scene: Scene) -> None:
    """Begin the next tale: the place, somebody with a problem, and what it has to do with the character's goal."""
    first = not scene.page.get("scene")
    story = _next(scene)
    if story is None:
        scene.say("The road is empty, and so is the sky.")
        return
    finished = listed(scene.secrets.get("finished"))
    scene.note({"secrets": dict.fromkeys(_OF_A_TALE)})
    scene.note(
        {"secrets": {"tale": f"{story.key} {story.telling}", "truth": story["truth"], "beat": str(scene.beat + 1)}}
    )
    scene.note({"secrets": {"finished": "; ".join(finished) or None, "next": None}})
    if first:
        _outfit(scene)
    else:
        scene.say(scene.pick(table("bridges"), "bridge"))
        if story.telling and not (len(finished) % len(keys())):
            scene.say(saying("again"))
    start = str(story["start"])
    scene.note(
        {
            "location": start,
            "objective": story["objective"],
            "quests": {story.title: {"status": "open", "notes": story["notes"]}},
            "scene": f"{scene.name} has come to {start}.",
            "clock": {"day": scene.day() + (0 if first else 2), "time": scene.hour() if first else "morning"},
        }
    )
    scene.mark("opened")
    scene.say(story["opening"], apart=True)
    for person in scene.people_here():
        scene.meet(person)
    scene.keep("seen", f"{start} 1")
    _strangers_leave(scene, story)


def happen(scene: Scene, event: JSON) -> None:
    """Tell an event of the tale and do what it does: deeds, facts, things, gold, people who move."""
    text = str(event.get("text", ""))
    scene.say(text)
    scene.mark(*([event["sets"]] if isinstance(event.get("sets"), str) else event.get("sets", [])))
    facts = event.get("fact", [])
    for fact in [facts] if isinstance(facts, str) else facts:
        scene.learn(fact)
    gains = event.get("gains", [])
    for item in [gains] if isinstance(gains, str) else gains:
        scene.gain(item)
        scene.mark(f"took {item}")
    if event.get("spends") and event["spends"] in scene.carried():
        scene.gain(event["spends"], -1)
    if event.get("gold"):
        scene.pay(int(event["gold"]))
    if event.get("objective"):
        scene.note({"objective": event["objective"]})
    if event.get("meets") and scene.tale:
        scene.meet(event["meets"])
    if event.get("attitude") and event.get("with"):
        scene.meet(event["with"], event["attitude"])
    if event.get("move"):
        _move(scene, event["move"])
    if not _ending(scene):
        choices.offer(scene, apart=True)


def close_tale(scene: Scene) -> None:
    """End the tale if an ending has come about, and let the next rumour be heard."""
    story, ending = scene.tale, _ending(scene)
    if story is None or ending is None:
        return
    status = ending.get("status", "done")
    scene.say(ending["text"], apart=True)
    scene.note({"quests": {story.title: {"status": status, "notes": ending["notes"]}}})
    for item in ending.get("gains", []):
        scene.gain(item)
    scene.pay(int(ending.get("gold", 0)))
    if ending.get("gold"):
        scene.say(f"You are {ending['gold']} gold the richer.")
    for fact in ending.get("facts", []):
        scene.learn(fact)
    for person in ending.get("thanks", []):
        if scene.alive(person):
            scene.meet(person, "in your debt")
    finished = [*listed(scene.secrets.get("finished")), story.key]
    # The struck tale's foes and turns are over; only which tales were told is worth a line.
    scene.note({"secrets": dict.fromkeys(_OF_A_TALE)})
    scene.keep("finished", "; ".join(finished[-3 * len(keys()) :]))
    scene.keep("told", str(_told(scene) + 1))
    following = _next(scene)
    if following is not None:
        scene.say(following["rumour"], apart=True)
        scene.note(
            {"objective": f"Follow the rumour: {following['objective'][:1].lower()}{following['objective'][1:]}"}
        )
        scene.keep("next", following.key)
    scene.happening = f"“{story.title}” is over ({status}). The road is open."


def _ending(scene: Scene) -> JSON | None:
    story = scene.tale
    if story is None:
        return None
    return next((dict(end) for end in story["endings"] if scene.done(end["needs"])), None)


def _next(scene: Scene) -> Tale | None:
    """Choose the next tale: all of them once in an order of chance, then all of them again with other names."""
    telling, position = divmod(_told(scene), len(keys()))
    order = keys()
    scene_chance = scene.chance(f"order {telling}", fixed=True) if not scene.secrets.get("tale") else None
    if scene_chance is None:
        return None
    last = listed(scene.secrets.get("finished"))[-1:]
    scene_chance.shuffle(order)
    if telling and position == 0 and order[:1] == last:
        order.reverse()
    return tale(order[position], telling)


def _told(scene: Scene) -> int:
    told = str(scene.secrets.get("told", ""))
    return int(told) if told.isdecimal() else 0


def _outfit(scene: Scene) -> None:
    kit = scene.character.get("kit")
    held = scene.carried()
    if not held:
        own = {str(item): n for item, n in kit.items() if isinstance(n, int)} if isinstance(kit, dict) else {}
        scene.note({"inventory": own or {"torch": 2, "waterskin": 1, "rope": 1}})
    if not scene.page.get("gold"):
        scene.note({"gold": 10})
    scene.note({"condition": {"hp": scene.hit_points()[0]}})
    if not (scene.page.get("clock") or {}).get("time"):
        scene.note({"clock": {"day": scene.day(), "time": scene.pick(["morning", "noon", "afternoon"], "hour")}})


def _move(scene: Scene, where: str) -> None:
    """Move a person ("maren@Gull Quay") or the character ("Lamp Room")."""
    person, at, place = where.partition("@")
    if not at:
        scene.note({"location": where})
        return
    kept = [m for m in listed(scene.secrets.get("moved")) if not m.startswith(f"{person}@")]
    scene.keep("moved", "; ".join([*kept, f"{person}@{place}"]))


def _strangers_leave(scene: Scene, story: Tale) -> None:
    """Strike people of tales before the last; the dead go to the page's own list of the fallen."""
    people = scene.page.get("people") or {}
    others = [name for name in people if name not in story.names.values()]
    scene.note({"people": dict.fromkeys(others[:-6])} if len(others) > 6 else {})
