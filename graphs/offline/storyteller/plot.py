"""Plot: how tales begin, turn and end, and what they foresee that somebody might do."""

from questbook.graphs.offline.storyteller.language import lower, saying, stems
from questbook.graphs.offline.storyteller.rules import check
from questbook.graphs.offline.storyteller.scene import Scene, Tale, keys, listed, tale, whole
from questbook.types import JSON

_OF_A_TALE = ("tale", "truth", "deeds", "seen", "from", "fight")


def open_tale(scene: Scene) -> None:
    """Begin the next tale: the place, a person with a problem, and what it has to do with the character's goal."""
    first, story = not scene.page.get("scene"), _next(scene)
    scene.offers = False
    finished = listed(scene.secrets.get("finished"))
    scene.note({"secrets": dict.fromkeys(_OF_A_TALE)})
    told = {"tale": f"{story.key} {story.telling}", "truth": story["truth"], "beat": str(scene.beat + 1), "next": None}
    scene.note({"secrets": told | {"finished": "; ".join(finished) or None}})
    if first:
        _outfit(scene)
    else:
        scene.tell("bridges")
        now, most = scene.hit_points()
        scene.say(saying("mended") if now < most else "")
        scene.note({"condition": {"hp": most, "conditions": {"battered": None}}})
        if story.telling and not (len(finished) % len(keys())):
            scene.say(saying("again"))
    start, quest = str(story["start"]), {story.title: {"status": "open", "notes": story["notes"]}}
    clock = {"day": scene.day() + (0 if first else 2), "time": scene.hour() if first else "morning"}
    begun = {"location": start, "objective": story["objective"], "quests": quest}
    scene.note(begun | {"scene": f"{scene.name} has come to {start}.", "clock": clock})
    scene.say(story["opening"], apart=True)
    for person in scene.people_here():
        scene.meet(person)
    scene.keep("seen", f"{start} 1")


def foreseen(scene: Scene, verbs: str, what: str, whom: str = "") -> bool:
    """Do what the tale has foreseen for these verbs and words here; False if it has foreseen nothing."""
    here, said = scene.people_here(), f"{what} {whom}"
    for deed in scene.story.part("deeds"):
        if not set(verbs.split()) & set(deed["verbs"].split()):
            continue
        if scene.did_all(deed["sets"]) or deed["at"] != scene.location():
            continue
        person, item = deed.get("with"), deed.get("item")
        if person and (person not in here or (len(here) > 1 and scene.story.person(said, here) != person)):
            continue
        if not stems(f"{item or ''} {deed.get('as', '')}") & stems(said):
            continue
        if item and item not in scene.carried():
            if "tell" in verbs.split():  # of what they have not got, they only speak
                continue
            scene.say("You have nothing to do that with. Not yet.")  # the tale itself names its things
        elif not scene.did_all(deed.get("needs")):
            scene.say(deed["lacks"])
        else:
            scene.happen(deed)
        return True
    return False


def obstacle(scene: Scene, sentence: str, verb: str = "") -> bool:
    """Try an obstacle of this place by a check, if the sentence is about one; False if it is about none."""
    words = stems(sentence)
    entries = (e for e in scene.open_here("checks") if verb in e["verbs"].split() or words & stems(e["verbs"]))
    if (entry := next(entries, None)) is None:
        return False
    if check(scene, entry["skill"], int(entry["dc"]), f"to {entry['to']}"):
        scene.happen(entry | {"text": entry["win"]})
    else:
        scene.say(entry["lose"])
        if harm := int(entry.get("harm", 0)):  # it never kills
            now, most = scene.hit_points()
            left = max(1, now - harm)
            scene.note({"condition": {"hp": left}})
            scene.say(f"It costs you {now - left}; you have {left} of {most} hit points.")
        scene.happening = f"{scene.name} failed to {entry['to']} at {scene.location()}."
    return True


def ending(scene: Scene) -> JSON | None:
    """Return the ending of the tale that has come about, if any."""
    return next((dict(end) for end in scene.story["endings"] if scene.did_all(end["needs"])), None)


def close_tale(scene: Scene) -> None:
    """End the tale if an ending has come about, and let the next rumour be heard."""
    if (end := ending(scene)) is None:
        return
    story, status = scene.story, end.get("status", "done")
    scene.say(end["text"], apart=True)
    scene.note({"quests": {story.title: {"status": status, "notes": end["notes"]}}})
    rich = f"You are {end['gold']} gold the richer." if end.get("gold") else ""
    scene.happen({"text": rich, "gains": end.get("gains"), "gold": end.get("gold"), "fact": end.get("facts")})
    for person in end.get("thanks", []):
        if scene.alive(person):
            scene.meet(person, "in your debt")
    finished = [*listed(scene.secrets.get("finished")), story.key]
    # The foes and deeds of this tale are over; which tales were told is all that stays.
    scene.note({"secrets": dict.fromkeys(_OF_A_TALE)})
    scene.keep("finished", "; ".join(finished[-3 * len(keys()) :]))
    scene.keep("told", str(whole(scene.secrets.get("told")) + 1))
    following = _next(scene)
    scene.say(following["rumour"], apart=True)
    scene.note({"objective": f"Follow the rumour: {lower(following['objective'])}"})
    scene.keep("next", following.key)
    scene.happening = f"“{story.title}” is over ({status}). The road is open."


def _next(scene: Scene) -> Tale:
    """Choose the next tale: all of them once in an order of chance, then all of them again with other names."""
    order = list(keys())
    telling, position = divmod(max(0, whole(scene.secrets.get("told"))), len(order))
    scene.chance(f"order {telling}", fixed=True).shuffle(order)
    if telling and position == 0 and order[:1] == listed(scene.secrets.get("finished"))[-1:]:
        order.reverse()
    return tale(order[position], telling)


def _outfit(scene: Scene) -> None:
    kit = scene.character.get("kit")
    if not scene.carried():
        own = {str(item): n for item, n in kit.items() if isinstance(n, int)} if isinstance(kit, dict) else {}
        scene.note({"inventory": own or {"torch": 2, "waterskin": 1, "rope": 1}})
    scene.note({"gold": scene.page.get("gold") or 10, "condition": {"hp": scene.hit_points()[0]}})
    if not scene.page.get("clock", {}).get("time"):
        scene.note({"clock": {"day": scene.day(), "time": scene.pick(["morning", "noon", "afternoon"], "hour")}})
