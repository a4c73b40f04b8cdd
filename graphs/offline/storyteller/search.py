"""Search: looking for what is hidden."""

from __future__ import annotations

from questbook.graphs.offline.storyteller import belongings, choices, combat, deeds, plot, sight
from questbook.graphs.offline.storyteller.abilities import check, d20, skill_bonus
from questbook.graphs.offline.storyteller.scene import Scene
from questbook.graphs.offline.storyteller.tables import table
from questbook.graphs.offline.storyteller.tale import match
from questbook.graphs.offline.storyteller.words import Intent

_SEARCHED = "You have been over this place already, and it has been over you."


def search(scene: Scene, intent: Intent) -> None:
    """Search the place; what is hidden shows itself to the one who rolls well."""
    story = scene.story
    things = scene.things_here()
    if intent.what and things and (thing := story.item(intent.what, things)):
        return belongings.take(scene, intent._replace(what=thing))
    if deeds.play_out(scene, "search", intent.what or intent.said):
        return None
    here = scene.location()
    hidden = [
        f for f in story.part("finds") if f["at"] == here and not scene.done(f["sets"]) and scene.done(f.get("needs"))
    ]
    if not hidden:
        details = story["places"][here].get("details", {})
        detail = match(intent.what, {d: d for d in details}) if intent.what else None
        if detail:
            return sight.examine(scene, intent._replace(what=detail))
        if scene.did(f"searched {here}"):
            scene.say(scene.pick(table("searched_out"), "again") if scene.did(f"searched {here} again") else _SEARCHED)
            scene.mark(f"searched {here} again")
            choices.offer(scene)
            return combat.press(scene)
        scene.roll(d20(skill_bonus(scene.character, "Investigation")), f"Investigation to search {here}", 15)
        scene.mark(f"searched {here}")
        scene.say(scene.pick(table("empty_handed"), "empty"))
        if details:
            scene.say(f"Only the {' and the '.join(list(details)[:2])} might be worth another look.")
        choices.offer(scene, apart=True)
        return combat.press(scene)
    found = hidden[0]
    if check(scene, found.get("skill", "Investigation"), int(found["dc"]), f"to search {here}"):
        plot.happen(scene, {k: v for k, v in found.items() if k != "at"})
    else:
        # A clue must not hang on one roll: each failed search makes the next one easier to believe in.
        scene.say(found.get("miss") or scene.pick(table("missed_search"), "missed"))
        scene.happening = f"{scene.name} searched {here} and is not satisfied."
        choices.offer(scene, apart=True)
    return combat.press(scene)
