"""Strangers: names that are called out and belong to nobody in the tale."""

from __future__ import annotations

import json
import re
from typing import Any

from questbook.graphs.offline.storyteller.phrases import filled
from questbook.graphs.offline.storyteller.scene import Scene
from questbook.graphs.offline.storyteller.tables import table
from questbook.graphs.offline.storyteller.tale import TITLES, stems
from questbook.graphs.offline.storyteller.words import Intent

JSON = dict[str, Any]

_WHOM = {"talk", "ask", "tell", "give", "persuade", "intimidate", "deceive", "bribe", "plant"}
_WHAT = {"attack"}
_NAME = re.compile(r"(?<![\w'’-])[A-ZÀ-ÖØ-Þ][\w'’-]+(?:\s+(?:(?:of|the|von|van|de)\s+)*[A-ZÀ-ÖØ-Þ][\w'’-]+)*")
_NOBODYS_WORDS = (
    "i him her them it everyone everybody anyone anybody somebody someone all there people folk crowd you me "
    "my us the a an sir madam ma'am mister mr mrs miss ms dr doctor saint st friend friends stranger traveller "
    "traveler god gods goddess king queen prince princess duke duchess baron baroness count countess earl "
    "knight today tonight now please again and or but then that if about to for with yes no ok okay "
)
_NOBODYS = set(_NOBODYS_WORDS.split()) | TITLES


def called_for(scene: Scene, intent: Intent) -> str:
    """Return the name of whom the player turns to, if nobody in the tale can be meant by it; else ""."""
    whom = intent.whom if intent.verb in _WHOM else intent.what if intent.verb in _WHAT else ""
    if not whom or scene.words == scene.words.upper():
        return ""
    for found in _NAME.finditer(whom):
        name = found[0]
        if re.search(rf"\b(?:the|an?|my|your|his|her|their|this|that)\s+{re.escape(name)}", intent.said, re.I):
            continue
        given = [word for word in name.split() if word[0].isupper() and _bare(word) not in _NOBODYS]
        if not given:
            continue
        return re.sub(r"['’]s$", "", name) if not _meant(scene, given[0]) else ""
    return ""


def miss(scene: Scene, name: str) -> None:
    """Say that somebody is nobody here, or known from elsewhere and not here; nothing comes of it."""
    scene.quiet = True
    word = next((word for word in name.split() if _bare(word) not in _NOBODYS), name)
    dead = next((one for one in scene.page.get("fallen") or {} if stems(word) & stems(one)), "")
    if dead:
        scene.say(f"{dead} is dead, and the dead are poor company. You stand a moment with the thought.")
    else:
        texts = table("known_from_before") if stems(word) & _told(scene) else table("strangers")
        scene.say(filled(scene.pick(texts, f"stranger {name}"), called=name))


def _meant(scene: Scene, word: str) -> bool:
    """Whether a name is that of somebody or something in the tale, or the character's own."""
    story = scene.story
    people = [f"{name} {story['people'][i]['role']}" for i, name in story.names.items()]
    other = [
        f"{i} {part.get('as', '')}" for kind in ("foes", "items", "places") for i, part in story.part(kind).items()
    ]
    held = [str(scene.character.get("name") or ""), *scene.carried(), *scene.things_here()]
    return bool(stems(word) & stems(" ".join([*people, *other, *held])))


def _told(scene: Scene) -> set[str]:
    """Return the names that the two pages hold, apart from what only the storyteller knows."""
    page = {part: value for part, value in scene.page.items() if part != "secrets"}
    return stems(" ".join(_NAME.findall(json.dumps([page, scene.character], ensure_ascii=False))))


def _bare(word: str) -> str:
    return re.sub(r"['’]s$", "", word.casefold())
