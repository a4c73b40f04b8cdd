"""Death: who falls throws once for their life; the dead do nothing more, until the story is taken back."""

from __future__ import annotations

from questbook.graphs.offline.storyteller.phrases import filled
from questbook.graphs.offline.storyteller.scene import Scene
from questbook.graphs.offline.storyteller.tables import saying, table

_SAVE = 10  # SRD 5.1, "Death Saving Throws": 10 or higher succeeds; one throw stands for the best of five


def fall(scene: Scene, by: str) -> None:
    """Fall, and die of it or not."""
    scene.keep("fight", None)
    if scene.roll("1d20", "Death saving throw", _SAVE)["success"]:
        _wake(scene)
    else:
        _die(scene, by)


def fallen(scene: Scene) -> bool:
    """Whether the character has fallen in this turn."""
    conditions = scene.page.get("condition", {}).get("conditions", {})
    return is_dead(scene) or (bool(conditions.get("battered")) and scene.location() == scene.story["start"])


def is_dead(scene: Scene) -> bool:
    """Whether the character is dead."""
    return bool(scene.page.get("condition", {}).get("conditions", {}).get("dead"))


def tell_dead(scene: Scene) -> None:
    """Answer whatever the dead want to do."""
    scene.quiet = True
    how = str(scene.page["condition"]["conditions"]["dead"])
    scene.say(filled(saying("dead"), name=scene.name, how=how))


def _die(scene: Scene, by: str) -> None:
    how = f"killed by {by} at {scene.location()}, day {scene.day()}"
    scene.note({"condition": {"hp": 0, "conditions": {"dead": how}}})
    scene.say(filled(scene.pick(table("dying"), "dying"), by=by))
    scene.say(filled(saying("died"), name=scene.name), apart=True)
    scene.happening = f"{scene.name} is dead, {how}."


def _wake(scene: Scene) -> None:
    start = str(scene.story["start"])
    _, most = scene.hit_points()
    gold = int(scene.page.get("gold") or 0)
    scene.pass_time(to_dawn=True)
    scene.note(
        {
            "location": start,
            "gold": gold - min(gold, 3),
            "condition": {"hp": max(1, most // 2), "conditions": {"battered": "until a night's rest"}},
        }
    )
    scene.say(filled(scene.pick(table("downed"), "down"), start=start))
    scene.say("You are alive. It seems worth building on.")
    scene.happening = f"{scene.name} was beaten senseless and woke at {start}."
