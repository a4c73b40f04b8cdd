"""People: whom the player turns to, what they know, and what they are told."""

import json
import re
from collections import Counter

from questbook.graphs.offline.storyteller import language, plot
from questbook.graphs.offline.storyteller.intent import Intent
from questbook.graphs.offline.storyteller.rules import size_up
from questbook.graphs.offline.storyteller.scene import Scene
from questbook.types import JSON

_GREETINGS = {"afraid of you": "greeting_afraid", "hostile": "greeting_hostile"}
_ADDRESSING = frozenset(["talk", "ask", "tell", "give", "persuade", "intimidate", "deceive", "bribe", "plant"])
_NAME = re.compile(r"(?<![\w'’-])[A-ZÀ-ÖØ-Þ][\w'’-]+(?:\s+(?:(?:of|the|von|van|de)\s+)*[A-ZÀ-ÖØ-Þ][\w'’-]+)*")


def talk(scene: Scene, intent: Intent) -> None:
    """Greet somebody; they have something to say."""
    story, here = scene.story, scene.people_here()
    person = story.person(intent.whom, here)
    if person is None and (foe := story.find("foes", intent.whom or intent.said, scene.foes_here())):
        scene.say(f"You speak to the {foe}, and it turns towards your voice.")
        size_up(scene, foe)
        return scene.say("It might be calmed, perhaps. It might not.")
    if person is None and (absent := story.person(intent.whom)):
        return miss(scene, absent)
    person = person or next(iter(here), None)
    if person is None:
        echo = "You speak, and your voice goes round the place once and comes back to you."
        return scene.say(f"{echo} There is nobody here.")
    name, about = story.names[person], story["people"][person]
    attitude = scene.entry(person).get("attitude")
    if attitude in _GREETINGS:
        scene.tell(_GREETINGS[attitude], who=name)
    elif scene.did(f"greeted {person}"):
        scene.tell("greeting_again", who=name, manner=about["manner"])
    else:
        scene.say(about["greeting"])
        scene.mark(f"greeted {person}")
    scene.meet(person)
    if topics := untold(scene, person):
        more = f"plainly there is more to be said about {language.series(topics[:3])}."
        scene.say(f"{name} {about['manner']}; {more}", apart=True)
        scene.offers = False
    scene.happening = f"{scene.name} is talking with {name} at {scene.location()}."
    return None


def ask(scene: Scene, intent: Intent) -> None:
    """Ask somebody about something."""
    here = scene.people_here()
    person = scene.story.person(intent.whom, here)
    named = "" if language.pattern("questions", "them").fullmatch(intent.whom) else intent.whom
    if person is None and (absent := scene.story.person(named)):
        return miss(scene, absent)
    if person := person or who_knows(scene, intent.what) or next(iter(here), None):
        is_foreseen = plot.foreseen(scene, "tell ask", intent.what, intent.whom)
        return None if is_foreseen else answer(scene, person, intent.what)
    scene.unanswered = intent.what
    return scene.say(f"You put the question about “{intent.what[:60]}” to the air, there being nobody else.")


def who_knows(scene: Scene, words: str) -> str | None:
    """Find the person here who has most to say on these words; the id."""
    said, shares = language.stems(words), Counter[str]()
    for person in scene.people_here():
        topics = (topic for topic in scene.story["people"][person]["topics"] if _is_open(scene, person, topic))
        shares[person] = max((len(said & language.stems(topic["on"])) for topic in topics), default=0)
    return next((person for person, share in shares.most_common(1) if share), None)


def answer_aloud(scene: Scene, intent: Intent) -> bool:
    """Let somebody here answer a question that is about their business and not about the past; False if none can."""
    person = None if language.pattern("questions", "past").search(intent.said) else who_knows(scene, intent.what)
    if person:
        answer(scene, person, intent.what)
    return person is not None


def answer(scene: Scene, person: str, words: str) -> None:
    """Let a person answer: what they know on these words, their name, what is the matter, or that they do not know."""
    name, said = scene.story.names[person], language.stems(words)
    on = [topic for topic in scene.story["people"][person]["topics"] if said & language.stems(topic["on"])]
    topic = max(on, key=lambda topic: len(said & language.stems(topic["on"])), default=None)
    scene.meet(person)
    scene.happening = f"{scene.name} is talking with {name} at {scene.location()}."
    if topic is None and language.pattern("questions", "name").search(scene.words):
        return scene.tell("introduced", who=name, role=language.article(scene.story["people"][person]["role"]))
    if topic is None and language.pattern("questions", "matter").search(scene.words):
        topic = next(iter(_open_topics(scene, person)), None)
    scene.mark(f"greeted {person}")
    if topic is None:
        return _no_answer(scene, person, words) if scene.tale else scene.say(scene.story["people"][person]["past"])
    if not _is_open(scene, person, topic):
        scene.happening = f"{name} is keeping something from {scene.name}."
        silence = f"{name} looks away. “That's not a thing I talk about. Not with just anybody.”"
        return scene.say(topic.get("kept") or silence)
    if scene.did(_told(person, topic)):
        return scene.tell("told_all", who=name, gist=topic["say"])
    return _share(scene, person, topic)


def confide(scene: Scene, person: str) -> None:
    """Let a person who has been won over tell what they kept back, if anything."""
    if kept := [topic for topic in _open_topics(scene, person) if topic.get("trust")]:
        _share(scene, person, kept[0])


def untold(scene: Scene, person: str) -> list[str]:
    """List what a person could still be asked about."""
    return [_title(topic) for topic in _open_topics(scene, person)]


def state(scene: Scene, intent: Intent) -> None:
    """Let what the player says of their own life stand, in its own words; or what they tell somebody."""
    told = re.match(r"\W*(?:i\s+)?(?:tell|remind)\b.+\bto\b", intent.said, re.I) if intent.whom else None
    to_do = told is not None and intent.what.startswith("to ")
    fact = intent.what.removeprefix("to " if to_do else "")[:400]
    here, story = scene.people_here(), scene.tale
    person = story.person(intent.whom, here) if story else None
    if story and person is None:
        found = (story.find(part, intent.whom) for part in ("places", "items", "foes"))
        if not (story.person(intent.whom) or any(found)):
            person = next(iter(here), None)  # "the crowd", "them"
    aloud = intent.whom or re.match(r"\W*(?:i\s+)?(?:say|mention|confess)", intent.said, re.I)
    if intent.verb == "carve":
        scene.tell("carved", fact=fact)
        scene.happening = f"{scene.name} is at {scene.location()}."
    elif aloud and intent.whom and person:
        deed = language.spoken(fact)
        scene.meet(person)
        occasion, name = "told_to" if to_do else "planted", scene.story.names[person]
        scene.tell(occasion, listener=name, fact=fact, deed=deed, deed_c=language.upper(deed))
    elif intent.whom:
        scene.say(f"Of {intent.whom[:40]} there is no sign here, so you say it to the quiet: “{fact}”. It will keep.")
    else:
        scene.tell("planted_alone", fact=fact)
        claimed = language.pattern("questions", "of_sheet").match(fact)
        if claimed and not claimed["new"].startswith(scene.name):
            scene.say(language.saying("of_sheet"))
    if intent.verb == "plant":  # what is hidden is shown to nobody
        plot.foreseen(scene, "tell", fact, intent.whom)


def absent(scene: Scene, words: str) -> str | None:
    """Find somebody of the tale whom words call by name, and who is not here; the id."""
    called = {person: name for person, name in scene.story.names.items() if language.calls(words, name)}
    person = language.match(words, called, called)
    return None if person in scene.people_here() else person


def miss(scene: Scene, person: str) -> None:
    """Say that somebody is not here, and when they were seen last."""
    name = scene.story.names[person]
    if not scene.alive(person):
        return scene.tell("dead_and_gone", who=name)
    scene.say(f"{name} is not here.")
    return _last_seen(scene, person)


def stranger(scene: Scene, intent: Intent) -> str:
    """Return the name of whom the player turns to, if nobody in the tale can be meant by it; else ""."""
    whom = intent.whom if intent.verb in _ADDRESSING else intent.what if intent.verb == "attack" else ""
    determined = r"\b(?:the|an?|my|your|his|her|their|this|that)\s+"
    names = [] if scene.words == scene.words.upper() else _NAME.findall(whom)
    names = [name for name in names if not re.search(determined + re.escape(name), intent.said, re.I)]
    name = next(filter(_own_name, names), "")
    return re.sub(r"['’]s$", "", name) if name and not language.stems(_own_name(name)) & _names_of_tale(scene) else ""


def miss_stranger(scene: Scene, name: str) -> None:
    """Say that a name is nobody's here, or known from elsewhere; nothing comes of it."""
    scene.quiet, scene.offers = True, False
    word = language.stems(_own_name(name) or name)
    dead = next((who for who in scene.page.get("fallen", {}) if word & language.stems(who)), "")
    pages = {part: value for part, value in scene.page.items() if part != "secrets"}
    names = language.stems(" ".join(_NAME.findall(json.dumps([pages, scene.character], ensure_ascii=False))))
    if dead:
        return scene.tell("dead_and_gone", who=dead)
    return scene.tell("known_from_before" if word & names else "strangers", called=name)


def _own_name(name: str) -> str:
    nobody = language.vocabulary("nobody") | language.vocabulary("titles")
    words = (word for word in name.split() if word[0].isupper())
    return next((word for word in words if re.sub(r"['’]s$", "", word.casefold()) not in nobody), "")


def _names_of_tale(scene: Scene) -> set[str]:
    """Return the words that name somebody or something in the tale, or the character and what is theirs."""
    story = scene.story
    people = [f"{name} {story['people'][i]['role']}" for i, name in story.names.items()]
    parts = [f"{i} {p.get('as', '')}" for kind in ("foes", "items", "places") for i, p in story.part(kind).items()]
    own = [str(scene.character.get("name")), *scene.carried(), *scene.things_here()]
    return language.stems(" ".join([*people, *parts, *own]))


def _no_answer(scene: Scene, person: str, words: str) -> None:
    name, scene.unanswered = scene.story.names[person], words
    if (missed := absent(scene, words)) and scene.alive(missed):
        scene.tell("not_here", who=name, called=language.short(scene.story.names[missed]))
        return _last_seen(scene, missed)
    others = untold(scene, person) or ["the weather"]
    about = language.as_said(" ".join(words.split()), scene.words)
    about = "that" if not about or len(about) > 50 or language.pattern("questions", "clause").match(about) else about
    other = others[scene.beat % len(others)]
    topic_c, other_c = language.upper(about), language.upper(other)
    return scene.tell("no_topic", who=name, topic=about, topic_c=topic_c, other=other, other_c=other_c)


def _share(scene: Scene, person: str, topic: JSON) -> None:
    scene.mark(_told(person, topic))
    scene.meet(person)
    scene.happening = f"{scene.story.names[person]} has told {scene.name} about {_title(topic)}."
    scene.happen(topic | {"text": topic["say"]})


def _last_seen(scene: Scene, person: str) -> None:
    if seen := scene.entry(person).get("last_seen"):
        scene.say(f"You saw each other last at {seen}.")


def _is_open(scene: Scene, person: str, topic: JSON) -> bool:
    return scene.did_all(topic.get("needs")) and (not topic.get("trust") or scene.did(f"trust {person}"))


def _open_topics(scene: Scene, person: str) -> list[JSON]:
    topics = scene.story["people"][person]["topics"]
    return [topic for topic in topics if _is_open(scene, person, topic) and not scene.did(_told(person, topic))]


def _told(person: str, topic: JSON) -> str:
    return f"heard {person} {_title(topic).split()[-1]}"


def _title(topic: JSON) -> str:
    return str(topic.get("title") or f"the {topic['on'].split()[0]}")
