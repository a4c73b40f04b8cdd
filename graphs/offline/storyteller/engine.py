"""Engine: what the player's words come to. One pure function tells a turn; noting asks it again and gets the same."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from questbook.graphs.offline.storyteller import answers, deeds, people, places, plot, rules
from questbook.graphs.offline.storyteller.intent import Intent, read
from questbook.graphs.offline.storyteller.language import fill, lower, match, pattern, saying, series, spoken, upper
from questbook.graphs.offline.storyteller.scene import RollWantedError, Scene, compose
from questbook.notebooks import merge_patch
from questbook.types import JSON

_MOST_FACTS, _MOST_PEOPLE, _MOST_QUESTS = 16, 9, 8
_LONG = 120  # characters of a reply from which on choices stand in a paragraph of their own


@dataclass(frozen=True)
class Outcome:
    """What a turn came to."""

    text: str = ""  # the reply; empty while dice are wanted, or memory or the pages have to answer
    patch: JSON = field(default_factory=dict)  # merge patch over the quest's page; empty if nothing changed
    wants_roll: JSON | None = None  # arguments of the `roll_dice` call that must come first
    asks_memory: str | None = None  # what the player wants to remember, for `answers`; nothing changes then
    asks_own: str = ""  # what the player's own words may tell better; nothing changes if they do
    unanswered: str = ""  # what they asked and nobody here knows; lore may


def resolve(
    page: JSON, character: JSON, words: str, rolls: Sequence[JSON] = (), *, seed: int | None = None, dice: bool = True
) -> Outcome:
    """Tell one turn from the pages before it, with the rolls of the turn so far; `dice`: more may be asked for."""
    of_pages = answers.asked(words)
    words = of_pages.pop("", "" if of_pages else words).translate(str.maketrans("{}", "()"))  # no placeholders
    scene = Scene(page=_tidy(page), character=character, words=words, rolls=rolls, seed=seed, dice=dice)
    intent = read(words)
    if not scene.page.get("scene") and not scene.secrets.get("tale"):
        plot.open_tale(scene)
        return Outcome(scene.text(), _shorten(scene))
    try:
        if how := scene.death:
            scene.aside(fill(saying("dead"), {"name": scene.name, "how": how}))
        elif of_pages and not words:
            return Outcome()
        elif intent.verb != "recall" and (scene.tale or intent.verb != "question"):
            scene.quiet = intent.verb in ("injection", "claim")
            onward = intent.verb in ("go", "flee") or pattern("intent", "onward", "deeds").fullmatch(words.strip(" .!"))
            if scene.tale is None and onward and not scene.story.person(intent.what, scene.people_here()):
                plot.open_tale(scene)
            elif name := people.stranger(scene, intent):
                people.miss_stranger(scene, name)
            else:
                _ACTS.get(intent.verb, _guess)(scene, intent)
        elif not (scene.tale and (places.point_out(scene, intent) or people.answer_aloud(scene, intent))):
            return Outcome(asks_memory=intent.what or intent.said)
        _conclude(scene, intent)
    except RollWantedError as wanted:
        return Outcome(wants_roll=wanted.args[0])
    own = intent.verb == "recall" or (intent.verb == "inventory" and not match(intent.what, scene.carried()))
    asks_own = "" if scene.secrets.get("fight") or not own else intent.what
    patch = {} if scene.quiet else _shorten(scene)
    return Outcome(scene.text(), patch, asks_own=asks_own, unanswered=scene.unanswered)


def fold(page: JSON, character: JSON, turns: Sequence[JSON], *, seed: int | None = None) -> JSON:
    """Tell several turns again, in order; return the patch of them all. Replies say which page a turn was told from."""
    now, patch = dict(page), JSON()
    for turn in turns:
        words, reply = str(turn.get("player") or ""), str(turn.get("reply") or "")
        rolls = [roll for roll in turn.get("rolls") or [] if isinstance(roll, dict)]
        outcomes = [resolve(before, character, words, rolls, seed=seed, dice=False) for before in (now, page)]
        outcome = next((o for o in outcomes if o.text and o.text in reply), outcomes[0])
        if not outcome.asks_own or outcome.text in reply:  # else the player's own words have answered
            now, patch = merge_patch(now, outcome.patch), compose(patch, outcome.patch)
    return patch


def _conclude(scene: Scene, intent: Intent) -> None:
    """End the turn: choices, the blow of a foe, the end of a tale, the clock, the page's field `scene`."""
    if scene.offers and not plot.ending(scene):
        _offer(scene)
    if scene.quiet:
        return
    if scene.secrets.get("fight"):
        rules.press(scene)
    plot.close_tale(scene)
    if intent.then and scene.tale and not scene.secrets.get("fight"):
        scene.tell("one_at_a_time", apart=True, then=lower(spoken(intent.then)))
    scene.keep("beat", str(scene.beat + 1))
    if scene.beat % 9 == 0 and intent.verb not in ("rest", "wait"):
        scene.pass_time()
    scene.note({"scene": (scene.happening or f"{scene.name} is at {scene.location()}, {scene.hour()}.")[:240]})


def _question(scene: Scene, intent: Intent) -> None:
    if not (here := scene.people_here()):
        return _shrug(scene, intent.said)
    person = people.who_knows(scene, intent.said) or scene.story.person(intent.said, here) or here[0]
    return people.answer(scene, person, intent.what or intent.said)


def _guess(scene: Scene, intent: Intent) -> None:
    if plot.foreseen(scene, "use give take", intent.said) or plot.obstacle(scene, intent.said):
        return None
    ways = scene.story["places"][scene.location()]["ways"]
    if len(intent.said.split()) < 5 and (towards := scene.story.find("places", intent.said, ways)):
        return places.travel(scene, towards)
    if people.who_knows(scene, intent.said):
        return _question(scene, intent)
    return _shrug(scene, intent.said)


def _refuse_instructions(scene: Scene, _: Intent) -> None:
    here = scene.people_here()
    witness = f"{scene.story.names[here[0]]} pretends not to have heard." if here else "A crow edges away from you."
    scene.tell("odd_words", witness=witness)


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


def _options(scene: Scene) -> list[str]:
    if scene.tale is None:
        return ["take the road for the next tale", "rest", "look around", "go through what you carry"]
    names, place, here = scene.story.names, scene.story["places"][scene.location()], scene.people_here()
    untold = {person: people.untold(scene, person) for person in here}
    company = [f"ask {names[person]} about {topics[0]}" for person, topics in untold.items() if topics]
    company += [f"talk to {names[person]}" for person in here][:1]
    ways = [f"go to {towards}" for towards in place["ways"]]
    details = [f"look at the {detail}" for detail in place.get("details", {})]
    things = [f"take the {thing}" for thing in scene.things_here()[:1]]
    deeds = [*company[:1], *things, "search the place", *ways[:1], *details[:1], *company[1:2], *ways[1:], *details[1:]]
    turned = scene.beat % len(deeds)
    return [*(f"face the {foe}" for foe in scene.foes_here()), *deeds[turned:], *deeds[:turned]]


def _offer(scene: Scene) -> None:
    if scene.foes_here() and scene.secrets.get("fight"):
        return None
    apart = len(scene.text()) > _LONG
    if scene.tale is None:
        return scene.say("The road lies open before you. What now?", apart=apart)
    roads = scene.ways()
    first, second, third = [*_options(scene), "wait", "rest", "think it over"][:3]
    closings = [
        f"From here it goes to {roads}.",
        f"Do you {first}, or {second}?",
        f"You could {first} – or {second}, or {third}.",
        f"Ways lead to {roads}. What do you do?",
        f"You might {first}. Then again, you might {second}.",
    ]
    return scene.say(scene.pick(closings, "offer"), apart=apart)


def _suggest(scene: Scene, _: Intent) -> None:
    if objective := str(scene.page.get("objective") or ""):
        scene.aside(f"What you are about is this: {lower(objective)}.")
    scene.aside(f"You could {series(_options(scene)[:4], 'or')}. Or anything else: plain sentences do it.")


def _shrug(scene: Scene, sentence: str) -> None:
    scene.unanswered = sentence
    scene.tell("confused", words=" ".join(sentence.split())[:90].strip(" .!?"), place_c=upper(scene.location()))
    scene.say(f"You could {series(_options(scene)[:3], 'or')}.")
    scene.offers = False


def _shorten(scene: Scene) -> JSON:
    """Strike from the page the oldest of what there is too much of; return the patch of the whole turn."""
    here, page = set(scene.tale.names.values()) if scene.tale else set(), scene.page
    oldest = {
        "facts": list(page.get("facts", {}))[:-_MOST_FACTS],
        "quests": [title for title, quest in page["quests"].items() if quest.get("status") != "open"][:-_MOST_QUESTS],
        "people": [name for name in page["people"] if name not in here][:-_MOST_PEOPLE],
    }
    for part, names in oldest.items():
        if names:
            scene.note({part: dict.fromkeys(names)})
    return scene.patch


_ACTS: dict[str, Callable[[Scene, Intent], None]] = {
    "self": _be_honest,
    "injection": _refuse_instructions,
    "claim": lambda scene, intent: scene.tell("refused", echo=f"“{intent.what[:80]}”"),
    "silence": lambda scene, _: scene.aside(saying("silence"), offers=True),
    "help": _suggest,
    "inventory": lambda scene, _: scene.aside(answers.things(scene.page)),
    "armour": lambda scene, _: scene.aside(f"Your armour class is {rules.armour(scene)}."),
    "ways": lambda scene, _: scene.aside(f"Ways lead to {scene.ways() or 'wherever the road goes'}."),
    "status": lambda scene, _: places.condition(scene),
    "flee": lambda scene, intent: places.go(scene, intent._replace(what="back")),
    "feel": deeds.gesture,
    "show": deeds.use,
    "tell": people.ask,
    "question": _question,
    # Named as their verbs.
    **{act.__name__: act for act in (places.look, places.go, people.talk, people.ask, deeds.attack, deeds.search)},
    **{act.__name__: act for act in (deeds.take, deeds.buy, deeds.drop, deeds.use, deeds.give, deeds.rest, deeds.wait)},
    **dict.fromkeys(("plant", "carve"), people.state),
    **dict.fromkeys(("sneak", "climb", "force", "pick", "track", "listen", "cast", "roll"), deeds.attempt),
    **dict.fromkeys(("persuade", "intimidate", "deceive", "bribe"), deeds.sway),
}
