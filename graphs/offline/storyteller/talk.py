"""Talk: people, what they know, and what they are told."""

from __future__ import annotations

import re
from typing import Any

from questbook.graphs.offline.storyteller import choices, combat, deeds, elsewhere, plot, topics
from questbook.graphs.offline.storyteller.phrases import article, as_said, filled, spoken, upper
from questbook.graphs.offline.storyteller.scene import Scene
from questbook.graphs.offline.storyteller.tables import table
from questbook.graphs.offline.storyteller.tale import match, short, stems
from questbook.graphs.offline.storyteller.words import Intent

JSON = dict[str, Any]

_NAME = re.compile(
    r"\b(?:your (?:\w+ )?name|ask\w* .*\b(?:his|her|its|their) name|who (?:are you|you are|(?:he|she|it) is))\b",
    re.IGNORECASE,
)
_MATTER = re.compile(r"\b(?:going on|happen(?:ed|ing)|do you want)(?: here| (?:from|of) (?:me|us))?\W*$", re.IGNORECASE)
_CLAUSE = re.compile(
    r"\W*(?:who|what|where|when|why|how|which|whose|whom|if|whether|is|are|was|were|do|does|did|can|could|will|would|"
    r"have|has|had|should|may|might)\b",
    re.IGNORECASE,
)


def talk(scene: Scene, intent: Intent) -> None:
    """Greet somebody; they have something to say."""
    story = scene.story
    here = scene.people_here()
    person = story.person(intent.whom, here) if intent.whom else None
    if person is None and (foe := story.foe(intent.whom or intent.said, scene.foes_here())):
        scene.say(f"You speak to the {foe}, and it turns towards your voice.")
        combat.size_up(scene, foe)
        scene.say("It might be calmed, perhaps. It might not.")
        return combat.press(scene)
    if person is None and intent.whom and (absent := story.person(intent.whom)):
        return elsewhere.miss(scene, absent)
    person = person or (here[0] if here else None)
    if person is None:
        scene.say("You speak, and your voice goes round the place once and comes back to you. There is nobody here.")
        return choices.offer(scene)
    name, who = story.names[person], story["people"][person]
    attitude = ((scene.page.get("people") or {}).get(name) or {}).get("attitude")
    if attitude == "afraid of you":
        scene.say(f"{name} looks at your hands, not at your face. “Please. Whatever you want. Just – please.”")
    elif attitude == "hostile":
        scene.say(f"{name} keeps out of your reach. “You raised your hand against me. Say it from over there.”")
    elif scene.did(f"greeted {person}"):
        scene.say(
            scene.pick(
                [
                    f"{name} looks up. “You again. Well?”",
                    f"“Back, are you?” {name} {who['manner']}.",
                    f"{name} makes room for you without being asked. “Go on, then.”",
                    f"“I was just thinking of you”, says {name}. “Nothing bad. Mostly.”",
                ],
                f"again {person}",
            )
        )
    else:
        scene.say(who["greeting"])
        scene.mark(f"greeted {person}")
    scene.meet(person)
    known = topics.untold(scene, person)
    if known:
        scene.say(f"{name} {who['manner']}; plainly there is more to be said about {_or(known[:3])}.", apart=True)
    scene.happening = f"{scene.name} is talking with {name} at {scene.location()}."
    return combat.press(scene)


def ask(scene: Scene, intent: Intent) -> None:
    """Ask somebody about something."""
    story = scene.story
    here = scene.people_here()
    person = story.person(intent.whom, here) if intent.whom else None
    if (
        person is None
        and intent.whom
        and not re.fullmatch(r"(?:him|her|them|it|everyone|everybody|people|around)", intent.whom, re.I)
    ):
        absent = story.person(intent.whom)
        if absent is not None and absent not in here:
            return elsewhere.miss(scene, absent)
    if person is None:
        on = topics.best(scene, intent.what)
        person = on[0] if on else (here[0] if here else None)
    if person is None:
        scene.say(f"You put the question about “{intent.what[:60]}” to the air, there being nobody else.")
        return choices.offer(scene)
    if deeds.play_out(scene, "tell ask", intent.what, intent.whom):
        return None
    return _answer(scene, person, intent.what)


def question(scene: Scene, intent: Intent) -> None:
    """Take a loose question to whoever here may know."""
    here = scene.people_here()
    if not here:
        choices.shrug(scene, intent.said)
        return combat.press(scene)
    on = topics.best(scene, intent.said)
    person = on[0] if on else scene.story.person(intent.said, here) or here[0]
    return _answer(scene, person, intent.what or intent.said)


def answer_aloud(scene: Scene, intent: Intent) -> bool:
    """Let somebody present answer a question that is about their business and not about the past."""
    past = r"\b(?:was|were|did|had|remember|recall|remind|know|my|our|i|me)\b"
    if re.search(past, intent.said, re.I) or not scene.people_here():
        return False
    on = topics.best(scene, intent.what)
    if not on:
        return False
    _answer(scene, on[0], intent.what)
    return True


def confide(scene: Scene, person: str) -> bool:
    """Let a person who has been won over tell what they kept back."""
    for topic in scene.story["people"][person]["topics"]:
        if topic.get("trust") and scene.done(topic.get("needs")) and not scene.did(topics.heard(person, topic)):
            _tell(scene, person, topic)
            return True
    return False


def plant(scene: Scene, intent: Intent) -> None:
    """Let what the player says of their own life stand, in its own words."""
    story = scene.tale
    wish = bool(intent.whom and re.match(r"\W*(?:i\s+)?(?:tell|remind)\b.+\bto\b", intent.said, re.I))
    wish = wish and intent.what.startswith("to ")
    fact = intent.what.removeprefix("to " if wish else "")[:400]
    here = scene.people_here()
    person = story.person(intent.whom, here) if story and intent.whom else None
    told = intent.verb == "plant" and (
        intent.whom or re.match(r"\W*(?:i\s+)?(?:say|mention|confess)", intent.said, re.I)
    )
    parts: JSON = {"fact": fact}
    if intent.verb == "carve":
        scene.say(filled(scene.pick(table("carved"), "carve"), **parts))
        scene.happening = f"{scene.name} is at {scene.location()}."
    elif told and person and story:
        topic = topics.best(scene, fact)
        if (
            topic
            and topic[0] == person
            and len(stems(fact) & stems(topic[1]["on"])) > 0
            and re.match(r"(?:about|of)\b", fact, re.I)
        ):
            return _answer(scene, person, fact)
        scene.meet(person)
        _hear_out(scene, person, parts, wish=wish)
    elif told and intent.whom and here and story and not (_no_person(scene, intent.whom) or story.person(intent.whom)):
        _hear_out(scene, here[0], parts, wish=wish)
    elif told and intent.whom:
        scene.say(f"Of {intent.whom[:40]} there is no sign here, so you say it to the quiet: “{fact}”. It will keep.")
    else:
        scene.say(filled(scene.pick(table("planted_alone"), "plant"), **parts))
    if story is not None:
        deeds.play_out(scene, "tell", fact, intent.whom)
    choices.offer(scene)
    return combat.press(scene)


def _hear_out(scene: Scene, person: str, parts: JSON, *, wish: bool) -> None:
    """Let somebody take in what they are told; what they are told to do they leave undone."""
    deed = spoken(parts["fact"])
    told = scene.pick(table("told_to" if wish else "planted"), "plant")
    scene.say(filled(told, listener=scene.story.names[person], deed=deed, deed_c=upper(deed), **parts))


def _answer(scene: Scene, person: str, words: str) -> None:
    story = scene.story
    name, said = story.names[person], stems(words)
    known = story["people"][person]["topics"]
    ranked = sorted(known, key=lambda t: -len(said & stems(t["on"])))
    topic = ranked[0] if ranked and said & stems(ranked[0]["on"]) else None
    if topic is None and _NAME.search(scene.words):
        return _introduce(scene, person)
    if topic is None and (
        said & stems("news rumour wrong matter happen trouble problem quest job work help everything all")
        or _MATTER.search(scene.words)
    ):
        topic = next(
            (t for t in known if topics.is_open(scene, person, t) and not scene.did(topics.heard(person, t))), None
        )
    scene.meet(person)
    scene.mark(f"greeted {person}")
    if topic is not None and not topics.is_open(scene, person, topic):
        kept = topic.get("kept") or f"{name} looks away. “That's not a thing I talk about. Not with just anybody.”"
        scene.say(kept)
        scene.happening = f"{name} is keeping something from {scene.name}."
    elif topic is not None and scene.did(topics.heard(person, topic)):
        scene.say(filled(scene.pick(table("told_all"), "told"), who=name, gist=topic["say"]))
    elif topic is not None:
        _tell(scene, person, topic)
        return combat.press(scene)
    elif (missed := elsewhere.named(scene, words)) and scene.alive(missed):
        called = short(story.names[missed])
        scene.say(filled(scene.pick(table("not_here"), f"not here {person}"), who=name, called=called))
        elsewhere.remind(scene, missed)
    else:
        others = topics.untold(scene, person) or ["the weather"]
        about = as_said(" ".join(words.split()), scene.words)
        if not about or len(about) > 50 or _CLAUSE.match(about):
            about = "that"
        other = others[scene.beat % len(others)]
        scene.say(
            filled(
                scene.pick(table("no_topic"), f"no {person}"),
                who=name,
                topic=about,
                topic_c=about[:1].upper() + about[1:],
                other=other,
                other_c=other[:1].upper() + other[1:],
            )
        )
        scene.happening = f"{scene.name} is talking with {name} at {scene.location()}."
    choices.offer(scene, apart=True)
    return combat.press(scene)


def _introduce(scene: Scene, person: str) -> None:
    name, role = scene.story.names[person], scene.story["people"][person]["role"]
    scene.meet(person)
    scene.say(filled(scene.pick(table("introduced"), f"name {person}"), who=name, role=article(role)))
    scene.happening = f"{scene.name} is talking with {name} at {scene.location()}."
    choices.offer(scene, apart=True)
    return combat.press(scene)


def _tell(scene: Scene, person: str, topic: JSON) -> None:
    scene.mark(topics.heard(person, topic))
    scene.meet(person)
    scene.happening = f"{scene.story.names[person]} has told {scene.name} about {topics.title(topic)}."
    plot.happen(
        scene, {"text": topic["say"]} | {k: v for k, v in topic.items() if k not in ("say", "on", "needs", "trust")}
    )


def _no_person(scene: Scene, words: str) -> bool:
    """Whether words name a place, a thing or a foe of the tale, and nobody."""
    story = scene.story
    others = {
        i: f"{i} {part.get('as', '')}" for kind in ("places", "items", "foes") for i, part in story.part(kind).items()
    }
    return story.person(words) is None and match(words, others) is not None


def _or(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
