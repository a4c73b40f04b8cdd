"""Engine: what the player's words come to. One pure function tells a turn; noting asks it again and gets the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from questbook.graphs.offline.storyteller import (
    attempts,
    choices,
    combat,
    downtime,
    pages,
    people,
    places,
    plot,
    things,
)
from questbook.graphs.offline.storyteller.digest import shorten
from questbook.graphs.offline.storyteller.intent import Intent, read
from questbook.graphs.offline.storyteller.language import lower, saying, spoken
from questbook.graphs.offline.storyteller.scene import RollWantedError, Scene, compose
from questbook.notebooks import merge_patch
from questbook.types import JSON


@dataclass(frozen=True)
class Outcome:
    """What a turn came to."""

    text: str = ""
    """The reply; empty while dice are wanted or memory has to answer."""
    patch: JSON = field(default_factory=dict)
    """Merge patch over the quest's page; empty if nothing changed."""
    wants_roll: JSON | None = None
    """Arguments of the `roll_dice` call that must come first."""
    asks_memory: str | None = None
    """What the player wants to remember, for `pages` or `past` to answer; nothing changes then."""
    unanswered: str = ""
    """What they asked and nobody here knows; lore may."""


def resolve(
    page: JSON,
    character: JSON,
    words: str,
    rolls: Sequence[JSON] = (),
    *,
    seed: int | None = None,
    dice: bool = True,
) -> Outcome:
    """Tell one turn from the pages before it, with the rolls of the turn so far; `dice`: more may be asked for."""
    scene = Scene(page=_tidy(page), character=character, words=words, rolls=rolls, seed=seed, dice=dice)
    intent = read(words)
    if not scene.page.get("scene") and not scene.secrets.get("tale"):
        plot.open_tale(scene)
        return Outcome(scene.text(), shorten(scene))
    try:
        if combat.is_dead(scene):
            combat.answer_dead(scene)
        elif pages.asked(words):
            return Outcome(asks_memory=words)
        elif intent.verb != "recall":
            _act(scene, intent)
        elif not _answer_here(scene, intent):
            return Outcome(asks_memory=intent.what or intent.said)
        _conclude(scene, intent)
    except RollWantedError as wanted:
        return Outcome(wants_roll=wanted.call)
    return Outcome(scene.text(), {} if scene.quiet else shorten(scene), unanswered=scene.unanswered)


def fold(page: JSON, character: JSON, turns: Sequence[JSON], *, seed: int | None = None) -> JSON:
    """Tell several turns again, in order; return the patch of them all.

    The reply says which page a turn was told from: if noting had failed before, it was the page as it stands.
    """
    now = dict(page)
    patch: JSON = {}
    for turn in turns:
        words, reply = str(turn.get("player") or ""), str(turn.get("reply") or "")
        rolls = [roll for roll in turn.get("rolls") or [] if isinstance(roll, dict)]
        outcomes = [resolve(before, character, words, rolls, seed=seed, dice=False) for before in (now, page)]
        outcome = next((o for o in outcomes if o.text and o.text in reply), outcomes[0])
        now = merge_patch(now, outcome.patch)
        patch = compose(patch, outcome.patch)
    return patch


def _act(scene: Scene, intent: Intent) -> None:
    """Do what the player wants to do."""
    if scene.tale is None and intent.verb not in _WITHOUT_TALE:
        plot.open_tale(scene)
    elif scene.tale is not None and (name := people.stranger(scene, intent)):
        people.miss_stranger(scene, name)
    else:
        _ACTS.get(intent.verb, _guess)(scene, intent)


def _conclude(scene: Scene, intent: Intent) -> None:
    """End the turn: choices, the blow of a foe, the end of a tale, the clock, the page's field `scene`."""
    if scene.offers and not plot.ending(scene):
        choices.offer(scene)
    if scene.quiet:
        return
    combat.press(scene)
    plot.close_tale(scene)
    if intent.then and scene.tale and not scene.secrets.get("fight"):
        scene.tell("one_at_a_time", apart=True, then=lower(spoken(intent.then)))
    scene.keep("beat", str(scene.beat + 1))
    if scene.beat % 9 == 0 and intent.verb not in ("rest", "wait"):
        scene.pass_time()
    scene.note({"scene": (scene.happening or f"{scene.name} is at {scene.location()}, {scene.hour()}.")[:240]})


def _answer_here(scene: Scene, intent: Intent) -> bool:
    """Answer a question from what is here to be seen and asked; False if memory has to answer it."""
    return scene.tale is not None and (places.point_out(scene, intent) or people.answer_aloud(scene, intent))


def _question(scene: Scene, intent: Intent) -> None:
    """Take a loose question to one who may know."""
    here = scene.people_here()
    if not here:
        return choices.shrug(scene, intent.said)
    person = people.who_knows(scene, intent.said) or scene.story.person(intent.said, here) or here[0]
    return people.answer(scene, person, intent.what or intent.said)


def _guess(scene: Scene, intent: Intent) -> None:
    """Guess what words that were not understood mean here, or hold out some that would be understood."""
    if plot.foreseen(scene, "use give take", intent.said) or plot.obstacle(scene, intent.said):
        return None
    ways = scene.story["places"][scene.location()]["ways"]
    if len(intent.said.split()) < 5 and (towards := scene.story.place(intent.said, ways)):
        return places.travel(scene, towards)
    if people.who_knows(scene, intent.said):
        return _question(scene, intent)
    return choices.shrug(scene, intent.said)


def _be_silent(scene: Scene, _: Intent) -> None:
    scene.aside("You say nothing, and for a moment the story holds its breath with you.", offers=True)


def _refuse_instructions(scene: Scene, _: Intent) -> None:
    here = scene.people_here()
    scene.quiet = True
    witness = f"{scene.story.names[here[0]]} pretends not to have heard." if here else "A crow edges away from you."
    scene.tell("odd_words", witness=witness)


def _refuse_claim(scene: Scene, intent: Intent) -> None:
    scene.quiet = True
    scene.tell("refused", echo=f"“{intent.what.strip()[:80] or 'that'}”")


def _be_honest(scene: Scene, _: Intent) -> None:
    scene.aside(saying("honest"))
    scene.say(f"And you, {scene.name}, are in {scene.location()}, with a decision to make.", apart=True)


def _tidy(page: JSON) -> JSON:
    """Read a page generously: what has not the shape that it should have counts as empty."""
    objects = ("quests", "people", "inventory", "condition", "clock", "facts", "secrets", "fallen")
    tidy = {name: value for name, value in page.items() if isinstance(value, dict) or name not in objects}
    for name in ("people", "quests"):
        tidy[name] = {key: entry for key, entry in tidy.get(name, {}).items() if isinstance(entry, dict)}
    return tidy


_ACTS: dict[str, Callable[[Scene, Intent], None]] = {
    "self": _be_honest,
    "injection": _refuse_instructions,
    "claim": _refuse_claim,
    "silence": _be_silent,
    "plant": people.state,
    "carve": people.state,
    "help": lambda scene, _: choices.suggest(scene),
    "inventory": lambda scene, _: things.inventory(scene),
    "status": lambda scene, _: places.condition(scene),
    "look": places.look,
    "go": places.go,
    "flee": places.flee,
    "take": things.take,
    "buy": things.buy,
    "drop": things.drop,
    "use": things.use,
    "show": things.use,
    "give": things.give,
    "search": things.search,
    "rest": downtime.rest,
    "wait": downtime.wait,
    "feel": downtime.gesture,
    "talk": people.talk,
    "ask": people.ask,
    "tell": people.ask,
    "question": _question,
    "attack": attempts.attack,
    **dict.fromkeys(("sneak", "climb", "force", "pick", "track", "listen", "cast", "roll"), attempts.attempt),
    **dict.fromkeys(("persuade", "intimidate", "deceive", "bribe"), attempts.sway),
}
_WITHOUT_TALE = frozenset(["self", "injection", "claim", "plant", "carve", "inventory", "status", "silence"])
