"""Deeds: finding, giving and using things; feats and words whose outcome the dice decide; resting and waiting."""

import re

from questbook.graphs.offline.storyteller import language, people, places, plot, rules
from questbook.graphs.offline.storyteller.intent import Intent
from questbook.graphs.offline.storyteller.rules import check, skill_for, skill_roll
from questbook.graphs.offline.storyteller.scene import HOURS, Scene, listed
from questbook.types import JSON

_ALL = re.compile(r"(?:all|everything|anything|whatever|it|them|things?)\b", re.I)
_COINS = re.compile(r"(\d{1,9}|some|a few|all my|a)?\s*(?:gold|coins?|money|gp)\b", re.I)
_UNTIL = re.compile(rf"\b(?:until|till|for)\b.*?\b({'|'.join(HOURS)}|evening)", re.I)


def search(scene: Scene, intent: Intent) -> None:
    """Search the place; what is hidden shows itself to one who rolls well."""
    story, here, things = scene.story, scene.location(), scene.things_here()
    if thing := story.find("items", intent.what, things):
        return take(scene, intent._replace(what=thing))
    details = story["places"][here].get("details", {})
    if hidden := scene.open_here("finds"):
        if check(scene, "Investigation", int(hidden[0]["dc"]), f"to search {here}"):
            return scene.happen(hidden[0])
        if hidden[0].get("miss"):
            scene.say(hidden[0]["miss"])
        else:
            scene.tell("missed_search")
        scene.happening = f"{scene.name} searched {here} and is not satisfied."
    elif detail := language.match(intent.what, details):
        places.examine(scene, intent._replace(what=detail))
    elif scene.did(f"searched {here} again"):
        scene.tell("searched_out")
    elif scene.did(f"searched {here}"):
        scene.mark(f"searched {here} again")
        scene.say("You have been over this place already, and it has been over you.")
    else:
        scene.roll(skill_roll(scene.character, "Investigation"), f"Investigation to search {here}", 15)
        scene.mark(f"searched {here}")
        scene.tell("empty_handed")
        if details:
            scene.say(f"Only the {' and the '.join(list(details)[:2])} might be worth another look.")
    return None


def take(scene: Scene, intent: Intent) -> None:
    """Take what lies here."""
    story, lying = scene.story, scene.things_here()
    thing = story.find("items", intent.what, lying)
    wanted = lying if _ALL.match(intent.what) else [thing] if thing else []
    for item in wanted:
        about = story.part("items").get(item, {})
        scene.mark(f"took {item}")
        scene.gain(item)
        scene.say(about.get("taken") or f"You take the {item}. It is yours now, until somebody says otherwise.")
        scene.learn(about.get("fact", ""))
        scene.happening = f"{scene.name} took the {item} at {scene.location()}."
    if wanted:
        return
    if _ALL.match(intent.what):
        scene.say("There is nothing here to take, unless you count the dust.")
    elif intent.whom and story.person(f"{intent.what} {intent.whom}", scene.people_here()):
        attempt(scene, intent._replace(verb="pick", what=intent.whom))
    elif held := story.find("items", intent.what, scene.carried()):
        scene.say(f"You have the {held} already.")
    else:
        scene.tell("nothing_to_take", what=intent.what[:60])


def drop(scene: Scene, intent: Intent) -> None:
    """Leave something behind; what the tale needs goes back to where it was."""
    item = language.match(intent.what, scene.carried())
    if item is None:
        return scene.say(f"You have no “{intent.what[:60]}” to be rid of.")
    scene.gain(item, -1)
    scene.keep("deeds", "; ".join(deed for deed in listed(scene.secrets.get("deeds")) if deed != f"took {item}"))
    return scene.say(f"You set down the {item} and feel lighter by exactly one. Somebody will carry it back.")


def buy(scene: Scene, intent: Intent) -> None:
    """Buy what a person here sells."""
    story, here = scene.story, scene.people_here()
    goods: dict[str, JSON] = {name: good for name, good in story.part("goods").items() if good["from"] in here}
    item = language.match(intent.what, goods)
    if item is None:
        scene.say(f"Nobody here sells “{language.as_said(intent.what[:60], scene.words)}”.")
        if lying := story.find("items", intent.what, scene.things_here()):
            scene.say(f"The {lying} is here for whoever takes it.")
        prices = [f"{language.article(name)} ({good['gold']} gold)" for name, good in goods.items()]
        return scene.say(f"What there is to be had is {language.series(prices)}." if prices else "")
    price = int(goods[item]["gold"])
    if scene.gold() < price:
        return scene.say(f"The {item} costs {price} gold, and your purse says no before you can.")
    scene.pay(-price)
    scene.gain(item)
    scene.say(f"{price} gold go one way, the {item} comes the other.")
    return scene.say(f"{story.names[goods[item]['from']]} bites one of the coins, as a courtesy.")


def give(scene: Scene, intent: Intent) -> None:
    """Give something to somebody."""
    story, here = scene.story, scene.people_here()
    if plot.foreseen(scene, "give", intent.what, intent.whom):
        return None
    if missed := people.absent(scene, intent.whom):
        return people.miss(scene, missed)
    person = story.person(intent.whom, here)
    if person is None and here and intent.whom.casefold() in ("him", "her", "them", "it"):
        person = here[0]
    if person is None:
        return scene.say("You hold it out, and there is nobody here to take it.")
    name, item = story.names[person], language.match(intent.what, scene.carried())
    if coins := _COINS.match(intent.what):
        amount = int(coins[1]) if (coins[1] or "").isdecimal() else 1
        if not 0 < amount <= scene.gold():
            return scene.say(f"You count your coins for {name}, and then count again. You have not got that many.")
        scene.pay(-amount)
        scene.meet(person, "friendly")
        scene.say(f"{amount} gold change hands.")
        return scene.say(f"{name} does not say thank you, but stands a little nearer than before.")
    if item is None:
        return scene.say(f"You have no “{intent.what[:60]}” to give. {name} looks at your empty hand with interest.")
    scene.gain(item, -1)
    scene.meet(person, "friendly")
    scene.happening = f"{scene.name} gave the {item} to {name}."
    thanks = "“For me?” It is turned over twice, and put away carefully; you have made something like a friend."
    return scene.say(f"You give {name} the {item}. {thanks}")


def use(scene: Scene, intent: Intent) -> None:
    """Use something, on something or just so."""
    if plot.foreseen(scene, "use", intent.what, f"{intent.whom} {intent.said}") or plot.obstacle(scene, intent.said):
        return None
    if scene.story.find("foes", intent.whom, scene.foes_here()):
        return attack(scene, intent._replace(what=intent.whom, whom=intent.what))
    if item := language.match(intent.what, scene.carried()):
        return scene.tell("no_use", item=item)
    details = scene.story["places"][scene.location()].get("details", {})
    if detail := language.match(intent.what, details):
        return places.examine(scene, intent._replace(what=detail))
    return scene.say(f"You have no “{intent.what[:60]}” to hand, and see none here.")


def attempt(scene: Scene, intent: Intent) -> None:
    """Sneak, climb, force, pick, track, listen, cast: what the tale has foreseen, or else for its own sake."""
    if plot.obstacle(scene, intent.said, intent.verb) or plot.foreseen(scene, "use", intent.said):
        return None
    foe = scene.story.find("foes", intent.said, scene.foes_here())
    harmless = language.pattern("intent", "harmless").search(intent.said)
    if intent.verb == "cast" and (foe or scene.secrets.get("fight")) and not harmless:
        return attack(scene, intent._replace(what=foe or "", whom=""))
    if intent.verb == "listen":
        return _listen(scene)
    if intent.verb == "climb" and (towards := places.way(scene, intent)):
        return places.travel(scene, towards)
    deed = " ".join(intent.said.split())[:70].strip(" .!?")
    won = check(scene, skill_for(intent.verb, intent.said), 12, f"for “{deed}”")
    scene.tell("neutral_win" if won else "neutral_lose")
    owner = next(iter(scene.people_here()), None) if language.pattern("intent", "pocket").search(intent.said) else None
    if won:
        scene.tell("empty_pocket" if owner else "no_matter")
    elif owner:
        scene.meet(owner, "suspicious")
        scene.say(f"{scene.story.names[owner]} catches your wrist. “Lost something?”")
    else:
        scene.tell("complications")
    return None


def attack(scene: Scene, intent: Intent) -> None:
    """Strike at a foe, or at a person."""
    story, foes = scene.story, scene.foes_here()
    missed = people.absent(scene, intent.what)
    person = None if missed else story.person(intent.what, scene.people_here())
    if foe := story.find("foes", f"{intent.what} {intent.whom}", foes) or (foes[0] if foes and not person else None):
        return rules.fight(scene, foe, story["foes"][foe], intent.whom)
    if person is None and re.fullmatch(r"(?:him|her|it|them|back|on|again)?", intent.what, re.I):
        # The one in a fight; "him" may be the only one here, a bare blow means the fight alone.
        only = scene.people_here() if re.fullmatch(r"him|her", intent.what, re.I) else []
        person = rules.opponent(scene) or (only[0] if len(only) == 1 else None)
    if person:
        return rules.fight_person(scene, person, intent.whom)
    if missed:
        return people.miss(scene, missed)
    target = f"“{intent.what[:60]}”" if intent.what else "the empty air"
    return scene.say(f"You square up to {target}. Nobody here answers the challenge, which may be for the best.")


def sway(scene: Scene, intent: Intent) -> None:
    """Persuade, threaten, deceive or bribe somebody, or calm a foe."""
    story, said = scene.story, f"{intent.whom} {intent.what}"
    foe, missed = story.find("foes", said, scene.foes_here()), people.absent(scene, intent.whom)
    if foe is None and missed:
        return people.miss(scene, missed)
    person = None if missed else story.person(said, scene.people_here())
    if foe is None and person is None:
        foe, person = next(iter(scene.foes_here()), None), next(iter(scene.people_here()), None)
    skill = skill_for(intent.verb, "")
    if foe is not None and (person is None or language.stems(foe) & language.stems(said)):
        return _calm(scene, foe, skill)
    if person is None:
        return scene.say("You make your case with real feeling. There is nobody here to be moved by it.")
    name, bribes = story.names[person], intent.verb == "bribe"
    if bribes:
        price = int(gold[0]) if (gold := re.match(r"\d{1,9}", intent.what)) else 3
        if scene.gold() < max(1, price):
            return scene.say(f"You rub thumb and finger together at {name}, and there is nothing between them.")
        scene.pay(-price)
    won = check(scene, skill, 10 if bribes else 13, f"to sway {name}")
    scene.meet(person, "won over" if won else "wary")
    scene.tell("persuaded" if won else "unmoved", who=name)
    scene.happening = f"{scene.name} has {'won over' if won else 'not moved'} {name}."
    if won:
        scene.mark(f"trust {person}")
        people.confide(scene, person)
    return None


def _calm(scene: Scene, foe: str, skill: str) -> None:
    calm = scene.story["foes"][foe].get("calm")
    scene.happening = f"{scene.name} tried to calm the {foe}."
    if not calm:
        check(scene, skill, 25, f"to sway the {foe}")
        scene.say(f"You might as well talk to weather. The {foe} is past all talk, or not yet come to it.")
    elif check(scene, skill, int(calm["dc"]), f"to calm the {foe}"):
        scene.keep("fight", None)
        scene.happen({"text": calm["text"], "sets": f"calmed {foe}"} | calm.get("spoils", {}))
    else:
        scene.say(f"For a moment the {foe} seems to listen. Then the moment is over.")


def _listen(scene: Scene) -> None:
    won = check(scene, "Perception", 10, "to listen")
    places.weather(scene)
    if not won:
        return scene.say("Beyond that there is only your own breath, which is louder than you thought.")
    near = scene.foes_at(*scene.story["places"][scene.location()]["ways"])
    if not near:
        return scene.say("Beyond that, nothing that means you harm. Not nearby.")
    scene.say(f"And under it something else, from the way to {scene.story['foes'][near[0]]['at']}:")
    return scene.say("something is moving there, and it is not trying to be quiet.")


def rest(scene: Scene, intent: Intent) -> None:
    """Rest an hour or a night."""
    if scene.secrets.get("fight") and scene.foes_here():
        return scene.say("You would like very much to lie down. The one in front of you would like that too.")
    now, most = scene.hit_points()
    dark = scene.hour() in ("dusk", "night") and not language.pattern("intent", "sitting").match(intent.said)
    if dark or language.pattern("intent", "sleeping").search(intent.said):
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
    texts, alike = language.load("tables")["gestures"], language.load("tables")["gestures_alike"]
    first = re.sub(r"^i\s+", "", sentence).split()[:1]
    kind = next((kind for kind, words in alike.items() if set(first) & set(words.split())), "")
    # The longer of two that fit: a nod is no "no".
    longest = sorted(texts, key=len, reverse=True)
    kind = kind or next((kind for kind in longest if re.search(rf"\b{kind}", sentence)), "nod")
    parts = {"place": scene.location(), "place_c": language.upper(scene.location()), "objective": _objective(scene)}
    scene.say(language.fill(texts[kind], parts))


def _objective(scene: Scene) -> str:
    return language.lower(str(scene.page.get("objective") or "")) or "find out what is going on"
