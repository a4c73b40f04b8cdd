"""Engine: what the player's words come to. One pure function tells a turn; noting asks it again and gets the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from questbook.graphs.offline.storyteller import (
    acts,
    belongings,
    checks,
    choices,
    combat,
    plot,
    search,
    sight,
    strangers,
    talk,
    travel,
)
from questbook.graphs.offline.storyteller.death import is_dead, tell_dead
from questbook.graphs.offline.storyteller.phrases import filled, lower, spoken
from questbook.graphs.offline.storyteller.prune import prune
from questbook.graphs.offline.storyteller.puzzle import puzzle
from questbook.graphs.offline.storyteller.scene import RollWantedError, Scene, compose
from questbook.graphs.offline.storyteller.tables import saying, table
from questbook.graphs.offline.storyteller.words import Intent, read
from questbook.notebooks import merge_patch

JSON = dict[str, Any]


@dataclass(frozen=True)
class Outcome:
    """What a turn came to.

    Attributes:
        text: The reply; empty while dice are wanted or memory has to answer.
        patch: Merge patch over the quest's page; empty if nothing changed.
        wants_roll: Arguments of the `roll_dice` call that must come first.
        asks_memory: What the player wants to remember, for `recollection` to answer; nothing changes then.
    """

    text: str = ""
    patch: JSON = field(default_factory=dict)
    wants_roll: JSON | None = None
    asks_memory: str | None = None


def resolve(
    page: JSON,
    character: JSON,
    words: str,
    rolls: Sequence[JSON] = (),
    *,
    seed: int | None = None,
    dice: bool = True,
) -> Outcome:
    """Tell one turn.

    Args:
        page: The quest's page before the turn.
        character: The character's page.
        words: What the player wrote.
        rolls: What the dice have said in this turn so far.
        seed: The storyteller's seed.
        dice: Whether more dice may be asked for.
    """
    scene = Scene(page=_tidy(page), character=character, words=words, rolls=rolls, seed=seed, dice=dice)
    intent = read(words)
    fresh = not scene.page.get("scene") and not scene.secrets.get("tale")
    if fresh:
        plot.open_tale(scene)
        return Outcome(scene.text(), prune(scene))
    if is_dead(scene):
        tell_dead(scene)
    elif intent.verb == "recall":
        if not _answered_here(scene, intent):
            return Outcome(asks_memory=intent.what or intent.said)
    else:
        try:
            _tell(scene, intent)
        except RollWantedError as wanted:
            return Outcome(wants_roll=wanted.call)
    if scene.quiet:
        return Outcome(scene.text())
    plot.close_tale(scene)
    _remind(scene, intent)
    _pass(scene, intent)
    return Outcome(scene.text(), prune(scene))


def fold(
    page: JSON, character: JSON, turns: Sequence[JSON], *, seed: int | None = None
) -> tuple[JSON, list[tuple[JSON, Outcome]]]:
    """Tell several turns again, in order; return the page after them and each turn's outcome.

    The reply says which page a turn was told from: if noting had failed before, it was the page as it stands.
    """
    now, outcomes = dict(page), []
    total: JSON = {}
    for turn in turns:
        said, reply = str(turn.get("player") or ""), str(turn.get("reply") or "")
        rolls = [roll for roll in turn.get("rolls") or [] if isinstance(roll, dict)]
        told = [resolve(before, character, said, rolls, seed=seed, dice=False) for before in (now, page)]
        outcome = next((o for o in told if o.text and o.text in reply), told[0])
        now = merge_patch(now, outcome.patch)
        total = compose(total, outcome.patch)
        outcomes.append((turn, outcome))
    return total, outcomes


def _tell(scene: Scene, intent: Intent) -> None:
    if scene.tale is None and intent.verb not in _WITHOUT_TALE:
        plot.open_tale(scene)
        return None
    if scene.tale is not None and (called := strangers.called_for(scene, intent)):
        return strangers.miss(scene, called)
    return _ACTS.get(intent.verb, puzzle)(scene, intent)


def _answered_here(scene: Scene, intent: Intent) -> bool:
    """Answer a question from what stands before the character's eyes, if it is about that."""
    return scene.tale is not None and (sight.point_out(scene, intent) or talk.answer_aloud(scene, intent))


def _remind(scene: Scene, intent: Intent) -> None:
    """Come back to the second of two things that the player wanted to do, if the first has left room for it."""
    if intent.then and scene.tale and not scene.secrets.get("fight"):
        scene.say(filled(scene.pick(table("one_at_a_time"), "then"), then=lower(spoken(intent.then))), apart=True)


def _pass(scene: Scene, intent: Intent) -> None:
    """Let the beat and the clock go on, and say on the page what is happening."""
    scene.keep("beat", str(scene.beat + 1))
    if scene.beat % 9 == 0 and intent.verb not in ("rest", "wait"):
        scene.pass_time()
    here = scene.location()
    scene.note({"scene": (scene.happening or f"{scene.name} is at {here}, {scene.hour()}.")[:240]})


def _tidy(page: JSON) -> JSON:
    """Read a page generously: what is not the shape that it should be counts as empty."""
    tables_of = ("quests", "people", "inventory", "condition", "clock", "facts", "secrets", "fallen")
    tidy = {name: value for name, value in page.items() if isinstance(value, dict) or name not in tables_of}
    for name in ("people", "quests"):
        tidy[name] = {key: entry for key, entry in tidy.get(name, {}).items() if isinstance(entry, dict)}
    return tidy


def _odd_words(scene: Scene, _: Intent) -> None:
    scene.quiet = True
    here = [scene.tale.names[person] for person in scene.people_here()] if scene.tale else []
    witness = f"{here[0]} pretends not to have heard." if here else "A crow edges away from you."
    scene.say(scene.pick(table("odd_words"), "odd").format(witness=witness))
    choices.offer(scene)


def _claim(scene: Scene, intent: Intent) -> None:
    scene.quiet = True
    echo = intent.what.strip()[:80] or "that"
    scene.say(filled(scene.pick(table("refused"), "claim"), echo=f"“{echo}”"))
    choices.offer(scene)


def _honest(scene: Scene, _: Intent) -> None:
    scene.quiet = True
    scene.say(saying("honest"))
    scene.say(f"And you, {scene.name}, are in {scene.location()}, with a decision to make.", apart=True)


_ACTS: dict[str, Callable[[Scene, Intent], None]] = {
    "self": _honest,
    "injection": _odd_words,
    "claim": _claim,
    "plant": talk.plant,
    "carve": talk.plant,
    "silence": choices.silence,
    "help": choices.suggest,
    "inventory": belongings.inventory,
    "status": sight.status,
    "look": sight.look,
    "go": travel.go,
    "flee": travel.flee,
    "take": belongings.take,
    "buy": belongings.buy,
    "drop": belongings.drop,
    "use": belongings.use,
    "show": belongings.use,
    "give": belongings.give,
    "rest": acts.rest,
    "wait": acts.wait,
    "feel": acts.flavour,
    "talk": talk.talk,
    "ask": talk.ask,
    "tell": talk.ask,
    "question": talk.question,
    "attack": combat.attack,
    "search": search.search,
    "sneak": checks.attempt,
    "climb": checks.attempt,
    "force": checks.attempt,
    "pick": checks.attempt,
    "track": checks.attempt,
    "listen": checks.attempt,
    "cast": checks.attempt,
    "roll": checks.attempt,
    "persuade": checks.sway,
    "intimidate": checks.sway,
    "deceive": checks.sway,
    "bribe": checks.sway,
}
_WITHOUT_TALE = {"self", "injection", "claim", "plant", "carve", "inventory", "status", "silence"}
