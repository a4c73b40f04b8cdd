"""Acts: what needs no dice: looking, going, taking, giving, using, resting."""

from __future__ import annotations

import re
from typing import Any

from graphs.storyteller import checks, combat, opening, tables, talk
from graphs.storyteller.scene import Scene, listed
from graphs.storyteller.tale import match, stems
from graphs.storyteller.words import Intent

JSON = dict[str, Any]


def filled(text: str, **parts: str) -> str:
    """Put parts for {placeholders}; braces that a player wrote stay what they are."""
    return re.sub(r"\{(\w+)\}", lambda found: parts.get(found[1], found[0]), text)


# -- seeing ---------------------------------------------------------------------------------------------------------


def look(scene: Scene, intent: Intent) -> None:
    """Describe the place, or one thing in it."""
    if intent.what and not re.fullmatch(r"(?:around|here|me|room|place|area|surroundings)", intent.what, re.I):
        examine(scene, intent)
        return
    describe(scene)
    offer(scene, apart=True)
    combat.press(scene)


def describe(scene: Scene) -> None:
    """Tell the place; each visit tells it differently."""
    story, here = scene.tale, scene.location()
    if story is None:
        return
    place = story["places"][here]
    visits = _visits(scene, here)
    looks = place["looks"]
    scene.say(looks[0] if visits == 0 else looks[1 + (visits - 1) % (len(looks) - 1)] if len(looks) > 1 else looks[0])
    scene.keep(
        "seen",
        "; ".join(
            [*(s for s in listed(scene.secrets.get("seen")) if s.rsplit(" ", 1)[0] != here), f"{here} {visits + 1}"]
        ),
    )
    if visits or scene.beat % 3 == 1:
        weather(scene)
    for person in scene.people_here():
        known = story.names[person] in (scene.page.get("people") or {})
        line = story["people"][person].get("doing", "is here.")
        scene.say(f"{story.names[person] if known else _stranger(story['people'][person]['role'])} {line}")
        if not known and visits == 0:
            scene.meet(person)
            scene.said[-1] = f"{story.names[person]}, {_article(story['people'][person]['role'])}, {line}"
    for foe in scene.foes_here():
        scene.say(story["foes"][foe]["looks"])
    things = scene.things_here()
    if things:
        scene.say(
            f"{_upper(_series([_article(thing) for thing in things[:4]]))} {'is' if len(things) == 1 else 'are'} "
            "here for whoever wants to take it."
            if len(things) == 1
            else f"{_upper(_series([_article(thing) for thing in things[:4]]))} lie here for the taking."
        )


def examine(scene: Scene, intent: Intent) -> None:
    """Describe one thing, person or foe."""
    story = scene.tale
    if story is None:
        return puzzle(scene, intent)
    if re.fullmatch(r"(?:my ?self|me)", intent.what, re.I):
        return status(scene, intent)
    what, here = intent.what, story["places"][scene.location()]
    person = story.person(what, scene.people_here())
    foe = story.foe(what, scene.foes_here())
    detail = match(what, {key: key for key in here.get("details", {})})
    thing = story.item(what, [*scene.things_here(), *scene.carried()])
    if use_deed(scene, intent.verb, what, "", "read examine study look"):
        return None
    if detail and stems(detail) & stems(what):
        scene.say(here["details"][detail])
        fact = here.get("facts", {}).get(detail)
        if fact:
            scene.learn(fact)
    elif foe:
        combat.size_up(scene, foe)
    elif thing:
        about = story.part("items").get(thing, {}).get("about", f"A plain {thing}, and the better for it.")
        scene.say(about)
    elif person:
        scene.meet(person)
        who = story["people"][person]
        scene.say(f"{story.names[person]}, {_article(who['role'])}, {who['manner']}.")
    elif story.place(what, here["ways"]):
        towards = story.place(what, here["ways"])
        scene.say(f"From here you can see only the beginning of the way to {towards}, {here['ways'][towards]}.")
    else:
        scene.say(
            filled(
                scene.pick(
                    [
                        "You look for “{what}” and see nothing here by that name.",
                        "“{what}”? Your eyes go round once and come back without it.",
                        "If there is any “{what}” here, it keeps itself out of sight.",
                    ],
                    "nothing",
                ),
                what=what[:60],
            )
        )
    offer(scene)
    return combat.press(scene)


def point_out(scene: Scene, intent: Intent) -> bool:
    """Answer "where is …?" and "what is …?" about what can be seen from here."""
    story = scene.tale
    if story is None or not re.match(r"\W*(?:where|how|what|who|which)\b", intent.said, re.I):
        return False
    ways = story["places"][scene.location()]["ways"]
    if re.search(r"\b(?:where (?:is|are|can|do)|how (?:do|can) i (?:get|go|come|reach))\b", intent.said, re.I):
        towards = story.place(intent.what, ways)
        if towards:
            scene.quiet = True
            scene.say(f"{_upper(str(towards))} is {ways[towards]}; that is where the way from {scene.location()} goes.")
            return True
    if re.fullmatch(r"(?:he|she|it|they|this|that|him|her|them)(?: (?:man|woman|person))?", intent.what, re.I):
        shown = [story.names[p] for p in scene.people_here()] or scene.foes_here()
        if shown:
            examine(scene, intent._replace(what=shown[0]))
            return True
    if re.search(
        r"\b(?:who|what) (?:is|are|else is)(?: \w+)? (?:here|around|nearby)\b|\bwhere am i\b", intent.said, re.I
    ):
        describe(scene)
        return True
    return False


def weather(scene: Scene) -> None:
    """Add a sound, a smell, a small event."""
    story = scene.tale
    inside = story is not None and story["places"][scene.location()].get("inside", False)
    scene.say(scene.pick(tables.INSIDE if inside else tables.OUTSIDE, "weather"))


# -- going ----------------------------------------------------------------------------------------------------------


def go(scene: Scene, intent: Intent) -> None:
    """Go to a place, if the way is free."""
    story = scene.tale
    if story is None:
        return puzzle(scene, intent)
    here, said = scene.location(), intent.what or intent.said
    ways: JSON = story["places"][here]["ways"]
    towards = story.place(said, ways) or match(said, dict(ways)) or _onward(intent.said, ways)
    if not towards and re.fullmatch(r"(?:back|out|outside|away|on|onwards?|in|inside|along|there|)", said.casefold()):
        towards = str(scene.secrets.get("from") or "") or next(iter(ways))
        towards = towards if towards in ways else next(iter(ways))
    if not towards:
        far = story.place(said)
        if far == here:
            scene.say(f"You are there already: this is {here}.")
            return offer(scene)
        if far and _known(scene, far):
            towards = _step(scene, far)
        person = story.person(said, scene.people_here())
        if person:
            return talk.talk(scene, intent._replace(verb="talk", whom=said))
        if not towards and checks.obstacle(scene, intent.said):
            return checks.attempt(scene, intent)
        if not towards and use_deed(scene, "use", intent.said, "", "use"):
            return None
        if not towards:
            return lost(scene, said)
    return travel(scene, towards, far=story.place(said))


def _onward(said: str, ways: JSON) -> str | None:
    """Read "go in" and "climb down" against how the ways are described."""
    found = re.search(r"\b(in|out|up|down|back)(?:side|wards?|stairs)?\W*$", said, re.I)
    return next((place for place, way in ways.items() if found and way.startswith(found[1].casefold())), None)


def travel(scene: Scene, towards: str, *, far: str | None = None) -> None:
    """Go one step of the map, or all the way to a known place."""
    story = scene.tale
    if story is None:
        return None
    for _ in range(9):
        here = scene.location()
        if barred := _barred(scene, here, towards):
            scene.say(barred)
            offer(scene)
            return combat.press(scene)
        if not scene.said and scene.secrets.get("fight"):
            scene.say(scene.pick(tables.FLED, "fled"))
            if not combat.parting_blow(scene):
                return None
        scene.keep("from", here)
        scene.note({"location": towards})
        if far is None or far == towards or not _known(scene, far):
            break
        following = _step(scene, far)
        if not following:
            break
        towards = following
    arrive(scene)
    return None


def _known(scene: Scene, place: str) -> bool:
    """Whether the character knows the way: they have been there, or have stood where the way there begins."""
    places = scene.tale["places"] if scene.tale else {}
    been = {s.rsplit(" ", 1)[0] for s in listed(scene.secrets.get("seen"))}
    return place in been or any(place in places[b]["ways"] for b in been if b in places)


def arrive(scene: Scene) -> None:
    """Tell the place one has come to, and who bars the way on."""
    here = scene.location()
    scene.happening = f"{scene.name} has come to {here}; it is {scene.hour()}."
    describe(scene)
    offer(scene, apart=True)


def flee(scene: Scene, intent: Intent) -> None:
    """Get away, back where one came from."""
    go(scene, intent._replace(what="back"))


def lost(scene: Scene, said: str) -> None:
    """Say that there is no way there, and which ways there are."""
    ways = scene.tale["places"][scene.location()]["ways"] if scene.tale else {}
    roads = _series([f"{place} ({way})" for place, way in ways.items()], "or")
    scene.say(
        filled(
            scene.pick(
                [
                    "You know no way to “{said}” from here.",
                    "“{said}” is not where any of these roads goes, as far as you can tell.",
                    "You set out for “{said}”, and are back where you began before you have finished the thought.",
                ],
                "lost",
            ),
            said=said[:60],
        )
    )
    scene.say(f"From {scene.location()} you can go to {roads}.")


def _barred(scene: Scene, here: str, towards: str) -> str:
    story = scene.tale
    for block in (story.part("blocks") or []) if story else []:
        between = (block["from"], block["to"])
        if (here, towards) in (between, between[::-1]) and not scene.done([block["until"]]):
            return str(block["text"])
    return ""


def _step(scene: Scene, far: str) -> str | None:
    """Find the next place on the shortest way, through places that are not barred."""
    places = scene.tale["places"] if scene.tale else {}
    here = scene.location()
    came: dict[str, str] = {here: here}
    line = [here]
    while line:
        at = line.pop(0)
        for way in places[at]["ways"]:
            if way not in came:
                came[way] = at
                line.append(way)
    if far not in came or far == here:
        return None
    while came[far] != here:
        far = came[far]
    return far


# -- having ---------------------------------------------------------------------------------------------------------


def take(scene: Scene, intent: Intent) -> None:
    """Take what lies here."""
    story = scene.tale
    if story is None:
        return puzzle(scene, intent)
    lying = scene.things_here()
    wanted = lying if re.match(r"(?:all|everything|it|them|things?)\b", intent.what, re.I) else None
    thing = story.item(intent.what, lying)
    if wanted is None and thing is None:
        if use_deed(scene, "take", intent.what, intent.whom, "take"):
            return None
        owner = story.person(f"{intent.what} {intent.whom}", scene.people_here())
        if intent.whom and owner:
            return checks.attempt(scene, intent._replace(verb="pick", what=intent.whom))
        held = story.item(intent.what, scene.carried())
        scene.say(
            f"You have the {held} already."
            if held
            else filled(
                scene.pick(
                    [
                        "There is no “{what}” here that you could take.",
                        "Your hand closes on where “{what}” would be, if it were.",
                        "You would take “{what}” gladly, but you would have to find it first.",
                    ],
                    "take",
                ),
                what=intent.what[:60],
            )
        )
        offer(scene)
        return combat.press(scene)
    for item in wanted if wanted is not None else [thing or ""]:
        pick_up(scene, item)
    if not scene.said:
        scene.say("There is nothing here to take, unless you count the dust.")
    offer(scene)
    return combat.press(scene)


def pick_up(scene: Scene, item: str) -> None:
    """Put a thing that lies here among one's own."""
    about = (scene.tale.part("items") if scene.tale else {}).get(item, {})
    left = listed(scene.secrets.get("left"))
    mark = f"{item}@{scene.location()}"
    if mark in left:
        left.remove(mark)
        scene.keep("left", "; ".join(left))
    else:
        scene.mark(f"took {item}", about.get("sets", ""))
    scene.gain(item)
    scene.say(about.get("taken") or f"You take the {item}. It is yours now, until somebody says otherwise.")
    if about.get("fact"):
        scene.learn(about["fact"])
    scene.happening = f"{scene.name} took the {item} at {scene.location()}."


def buy(scene: Scene, intent: Intent) -> None:
    """Buy what a person here sells."""
    story, here = scene.tale, scene.people_here()
    goods: dict[str, JSON] = {}
    if story is not None:
        goods = {name: good for name, good in story.part("goods").items() if good["from"] in here}
    item = match(intent.what, {name: name for name in goods})
    if item is None and _poured(scene, intent.what):
        return offer(scene)
    if item is None:
        scene.say(f"Nobody here sells “{intent.what[:60]}”.")
        if goods:
            offered = [f"{_article(name)} ({good['gold']} gold)" for name, good in goods.items()]
            scene.say(f"What there is to be had is {_series(offered)}.")
        return offer(scene)
    cost, seller = int(goods[item]["gold"]), goods[item]["from"]
    if int(scene.page.get("gold") or 0) < cost:
        scene.say(f"The {item} costs {cost} gold, and your purse says no before you can.")
        return offer(scene)
    scene.pay(-cost)
    scene.gain(item)
    scene.say(f"{cost} gold go one way, the {item} comes the other.")
    scene.say(f"{story.names[seller] if story else 'The seller'} bites one of the coins, as a courtesy.")
    return offer(scene)


def _poured(scene: Scene, what: str) -> bool:
    """Sell a drink or a bowl of something where there are drinks and bowls."""
    story = scene.tale
    served = story is not None and stems(story["places"][scene.location()].get("as", "")) & {"tavern", "inn", "bar"}
    if not served or not re.search(r"\b(?:ale|beer|drink|wine|mead|soup|stew|meal|food|round)\b", what, re.I):
        return False
    if not scene.page.get("gold"):
        scene.say("You are handed a bowl of water, and a look. The water is on the house; so is the look.")
        return True
    scene.pay(-1)
    scene.say(scene.pick(tables.POURED, "poured"))
    return True


def drop(scene: Scene, intent: Intent) -> None:
    """Leave something behind here."""
    item = match(intent.what, {i: i for i in scene.carried()})
    if item is None:
        scene.say(f"You have no “{intent.what[:60]}” to be rid of.")
        return offer(scene)
    scene.gain(item, -1)
    left = [*listed(scene.secrets.get("left")), f"{item}@{scene.location()}"]
    scene.keep("left", "; ".join(left[-8:]))
    scene.say(f"You set down the {item} and feel lighter by exactly one {item}. It stays here, at {scene.location()}.")
    scene.happening = f"{scene.name} left the {item} at {scene.location()}."
    return offer(scene)


def give(scene: Scene, intent: Intent) -> None:
    """Give something to somebody."""
    story = scene.tale
    if story is None:
        return puzzle(scene, intent)
    here = scene.people_here()
    person = story.person(intent.whom, here) or story.person(intent.what, here)
    if person is None and here and intent.whom.casefold() in ("him", "her", "them", "it"):
        person = here[0]
    if use_deed(scene, "give", intent.what, intent.whom, "give"):
        return None
    coins = re.match(r"(\d+|some|a few|all my|a)?\s*(?:gold|coins?|money|gp)\b", intent.what, re.I)
    item = match(intent.what, {i: i for i in scene.carried()})
    if person is None:
        scene.say("You hold it out, and there is nobody here to take it.")
        return offer(scene)
    name = story.names[person]
    if coins:
        amount = int(coins[1]) if (coins[1] or "").isdecimal() else 1
        if amount > int(scene.page.get("gold") or 0) or amount == 0:
            scene.say(f"You count your coins for {name}, and then count again. You have not got that many.")
            return offer(scene)
        scene.pay(-amount)
        scene.meet(person, "friendly")
        scene.say(f"{amount} gold change hands. {name} does not say thank you, but stands a little nearer than before.")
        return offer(scene)
    if item is None:
        scene.say(f"You have no “{intent.what[:60]}” to give. {name} looks at your empty hand with interest.")
        return offer(scene)
    scene.gain(item, -1)
    scene.meet(person, "friendly")
    scene.say(
        f"You give {name} the {item}. “For me?” It is turned over twice, and put away carefully; you have made "
        "something like a friend."
    )
    scene.happening = f"{scene.name} gave the {item} to {name}."
    return offer(scene)


def use(scene: Scene, intent: Intent) -> None:
    """Use something, on something or just so."""
    story = scene.tale
    if story is None:
        return puzzle(scene, intent)
    if use_deed(scene, "use", intent.what, f"{intent.whom} {intent.said}", "use"):
        return None
    if checks.obstacle(scene, intent.said):
        return checks.attempt(scene, intent)
    foe = story.foe(intent.whom, scene.foes_here()) if intent.whom else None
    if foe:
        return combat.attack(scene, intent._replace(what=intent.whom))
    item = match(intent.what, {i: i for i in scene.carried()})
    if item:
        scene.say(
            filled(
                scene.pick(
                    [
                        "You try what the {item} can do here. The {item}, in all modesty, can do nothing here.",
                        "You get out the {item} and consider it from several sides. Not here, you decide.",
                        "The {item} is a fine {item}. What is missing is a reason.",
                    ],
                    "use",
                ),
                item=item,
            )
        )
    else:
        place = story["places"][scene.location()]
        detail = match(intent.what, {d: d for d in place.get("details", {})})
        if detail:
            return examine(scene, intent._replace(what=detail))
        scene.say(f"You have no “{intent.what[:60]}” to hand, and see none here.")
    offer(scene)
    return combat.press(scene)


def use_deed(scene: Scene, verb: str, what: str, whom: str, verbs: str) -> bool:
    """Do what the tale has foreseen for these words here, if anything; the story moves on then."""
    story = scene.tale
    for deed in (story.part("deeds") or []) if story else []:
        if verb not in deed.get("verbs", "use").split() and not set(verbs.split()) & set(
            deed.get("verbs", "use").split()
        ):
            continue
        if scene.done(deed["sets"]) or ("at" in deed and deed["at"] != scene.location()):
            continue
        if deed.get("with") and (deed["with"] not in scene.people_here() or not _meant(scene, deed, f"{what} {whom}")):
            continue
        item = deed.get("item")
        if item and not stems(f"{item} {deed.get('as', '')}") & stems(f"{what} {whom}"):
            continue
        if not item and not stems(deed.get("as", "")) & stems(f"{what} {whom}"):
            continue
        if item and item not in scene.carried() and deed.get("carried", True):
            scene.say(f"You have no {item} to do that with. Not yet.")
            offer(scene)
            return True
        if not scene.done(deed.get("needs")):
            scene.say(deed.get("lacks", "Not yet: something else has to happen first."))
            offer(scene)
            return True
        opening.happen(scene, deed)
        return True
    return False


def _meant(scene: Scene, deed: JSON, said: str) -> bool:
    story = scene.tale
    return story is not None and (
        len(scene.people_here()) == 1 or story.person(said, scene.people_here()) == deed["with"]
    )


# -- being ----------------------------------------------------------------------------------------------------------


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
        scene.say(scene.pick(tables.LONG_REST, "night"))
        scene.happening = f"Dawn of day {scene.day()}; {scene.name} has slept at {scene.location()}."
    else:
        if now < most:
            healed = scene.roll("1d8", "Hit points regained by a short rest")
            now = min(most, now + max(1, int(healed["total"])))
        scene.pass_time()
        scene.note({"condition": {"hp": now}})
        scene.say(
            f"{scene.pick(tables.SHORT_REST, 'rest')} You have {now} of {most} hit points, and it is {scene.hour()}."
        )
        scene.happening = f"{scene.name} has rested a while at {scene.location()}; it is {scene.hour()}."
    scene.say(
        scene.pick(tables.HEARD_WAITING, "then").format(
            objective=_lower(str(scene.page.get("objective") or "")) or "go on"
        ),
        apart=True,
    )
    return offer(scene)


def wait(scene: Scene, _: Intent) -> None:
    """Let time pass."""
    scene.pass_time()
    scene.say(f"{scene.pick(tables.WAITED, 'wait')} It is {scene.hour()} now.")
    scene.say(scene.pick(tables.COMPLICATIONS, "meanwhile"))
    scene.happening = f"{scene.name} waits at {scene.location()}; it is {scene.hour()}."
    offer(scene, apart=True)
    combat.press(scene)


def flavour(scene: Scene, intent: Intent) -> None:
    """Sing, dance, pray, and so on: the world takes note and stays as it is."""
    word = intent.said.casefold()
    if use_deed(scene, "feel", word, "", "feel use"):
        return None
    if checks.obstacle(scene, word):
        return checks.attempt(scene, intent)
    plain = re.match(r"(?:i\s+)?(\w+)", word)
    first = {
        "accept": "yes",
        "agree": "yes",
        "sure": "yes",
        "ok": "yes",
        "okay": "yes",
        "deal": "yes",
        "yeah": "yes",
        "refuse": "no",
        "decline": "no",
        "never": "no",
        "thanks": "thank",
    }.get(plain[1] if plain else "", "")
    kind = first or next((k for k in tables.FLAVOUR if re.search(rf"\b{k}", word)), "nod")
    objective = _lower(str(scene.page.get("objective") or "")) or "find out what is going on"
    scene.say(filled(scene.pick(tables.FLAVOUR[kind], kind), place=scene.location(), objective=objective))
    return offer(scene)


def inventory(scene: Scene, _: Intent) -> None:
    """Say what the character carries."""
    scene.quiet = True
    held = [f"{n} × {item}" if n > 1 else _article(item) for item, n in scene.carried().items()]
    gold = int(scene.page.get("gold") or 0)
    scene.say(f"You carry {_series(held) or 'nothing but your wits'}, and {gold} gold piece{'' if gold == 1 else 's'}.")
    scene.say("All of it seems to be waiting for you to have an idea.")


def status(scene: Scene, _: Intent) -> None:
    """Say how the character is."""
    scene.quiet = True
    now, most = scene.hit_points()
    state = (
        "whole" if now == most else "scratched" if now * 2 > most else "hurt" if now * 4 > most else "on your last legs"
    )
    scene.say(
        f"You are {state}: {now} of {most} hit points. It is {scene.hour()} of day {scene.day()}, and you are in "
        f"{scene.location()}."
    )
    if objective := str(scene.page.get("objective") or ""):
        scene.say(f"What you are about: {_lower(objective)}.")


def suggest(scene: Scene, _: Intent) -> None:
    """Say what one could do now."""
    scene.quiet = True
    if objective := str(scene.page.get("objective") or ""):
        scene.say(f"What you are about is this: {_lower(objective)}.")
    scene.say(f"You could {_series(options(scene)[:4], 'or')}. Or anything else: plain sentences do it.")


def silence(scene: Scene, _: Intent) -> None:
    """Answer nothing with nearly nothing."""
    scene.quiet = True
    scene.say("You say nothing, and for a moment the story holds its breath with you.")
    offer(scene)


def puzzle(scene: Scene, intent: Intent) -> None:
    """React to words that were not understood, and hold out some that would be."""
    story = scene.tale
    if story is not None and not intent.verb:
        if use_deed(scene, "use", intent.said, "", "use give take"):
            return None
        if checks.obstacle(scene, intent.said):
            return checks.attempt(scene, intent)
        ways = story["places"][scene.location()]["ways"]
        if len(intent.said.split()) < 5 and (towards := story.place(intent.said, ways)):
            return travel(scene, towards)
        if scene.people_here() and talk.on_topic(scene, intent.said):
            return talk.question(scene, intent)
    said = " ".join(intent.said.split())[:90].strip(" .!?")
    scene.say(filled(scene.pick(tables.CONFUSED, "confused"), words=said, place=scene.location()))
    scene.say(f"You could {_series(options(scene)[:3], 'or')}.")
    return combat.press(scene)


# -- what next ------------------------------------------------------------------------------------------------------


def options(scene: Scene) -> list[str]:
    """List things to do here and now, in an order that varies with the turn."""
    story, here = scene.tale, scene.location()
    if story is None:
        return ["take the road and see what comes", "rest", "go through what you carry"]
    people = [
        f"ask {story.names[p]} about {talk.topics(scene, p)[0]}" for p in scene.people_here() if talk.topics(scene, p)
    ]
    people += [f"talk to {story.names[p]}" for p in scene.people_here()][:1]
    foes = [f"face the {foe}" for foe in scene.foes_here()]
    things = [f"take the {thing}" for thing in scene.things_here()[:2]]
    ways = [f"go to {place}" for place in story["places"][here]["ways"]]
    details = [f"look at the {detail}" for detail in story["places"][here].get("details", {})]
    found = [
        *people[:1],
        *things[:1],
        "search the place",
        *ways[:1],
        *details[:1],
        *people[1:2],
        *ways[1:],
        *details[1:],
    ]
    turned = scene.beat % max(1, len(found))
    return [*foes, *found[turned:], *found[:turned]]


def offer(scene: Scene, *, apart: bool = False) -> None:
    """End with something to decide."""
    if scene.foes_here() and scene.secrets.get("fight"):
        return
    story = scene.tale
    if story is None:
        scene.say("The road lies open before you. What now?", apart=apart)
        return
    ways: JSON = story["places"][scene.location()]["ways"]
    roads = _series([f"{place} ({way})" for place, way in ways.items()], "or")
    first, second, third = [*options(scene), "wait", "rest", "think it over"][:3]
    scene.say(
        scene.pick(
            [
                f"From here it goes to {roads}.",
                f"Do you {first}, or {second}?",
                f"You could {first} – or {second}, or {third}.",
                f"Ways lead to {roads}. What do you do?",
                f"You might {first}. Then again, you might {second}.",
            ],
            "offer",
        ),
        apart=apart,
    )


def _visits(scene: Scene, here: str) -> int:
    seen = {name: count for name, _, count in (s.rpartition(" ") for s in listed(scene.secrets.get("seen")))}
    return int(seen[here]) if seen.get(here, "").isdecimal() else 0


def _series(parts: list[str], word: str = "and") -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} {word} {parts[-1]}" if parts else ""


def _article(noun: str) -> str:
    if not noun or noun.split()[0].casefold() in ("a", "an", "the", "some", "your", "his", "her"):
        return noun
    if noun.endswith("s") and not noun.endswith("ss"):
        return f"some {noun}"
    return f"{'an' if noun[0].casefold() in 'aeiou' else 'a'} {noun}"


def _stranger(role: str) -> str:
    return _upper(_article(role))


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:].rstrip(".")
