"""Called: whom a question means, that names them as others call them.

“People call Goran the Heron” is found by the words of the question, but what else is known of Goran need not say so.
Not every word by which somebody is called is a name wherever it stands: “the red door” means no Goran the Red.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from questbook.memory.store.any_store import AnyItem
from questbook.memory.text.wording import normalize
from questbook.memory.text.words import STOP_WORDS

# Attributes under which a model notes another name of somebody.
_NAMING = frozenset(
    {
        "name",
        "full name",
        "true name",
        "real name",
        "nickname",
        "alias",
        "aliases",
        "called",
        "known as",
        "also known as",
    }
    | {"title", "epithet", "byname", "other name", "goes by"}
)
_MOST = 3  # names that are added to one question
_WORD = re.compile(r"[^\W_]+")
_OPENS = frozenset('.!?:;…"“”„«»')  # what follows is capitalised whatever it is
# What many bear, and what things are as well as people: alone and in small letters they call nobody by name.
_TITLES = frozenset(
    _WORD.findall(
        """
        king queen prince princess emperor empress regent duke duchess earl count countess baron baroness
        lord lady sir dame knight squire captain commander general admiral marshal sergeant lieutenant
        soldier guard guardian watchman warden chief chieftain leader boss mayor sheriff judge chancellor
        minister steward keeper master mistress elder bishop abbot abbess prior priest priestess monk nun
        saint father mother brother sister son daughter uncle aunt doctor professor teacher scholar healer
        wizard witch mage sorcerer sorceress druid bard hunter thief rogue merchant smith blacksmith
        innkeeper miller baker butcher fisher farmer cook servant stranger boy girl man woman child
        """
    )
)
_ADJECTIVES = frozenset(
    _WORD.findall(
        """
        red black white grey gray green blue brown yellow purple golden gold silver dark bright pale fair
        old young ancient new elder younger older big small little great grand huge tall short long fat thin
        stout strong weak brave bold wise clever kind gentle cruel mad angry merry happy sad quick swift
        slow silent quiet loud blind deaf mute lame lost last first second third good bad evil wicked holy
        true false just honest wild cold hot warm dead undead broken crooked bent cursed damned burned
        scarred drowned tired hidden secret unknown nameless rich poor proud humble pretty ugly beautiful
        bald bearded drunk sick mighty noble royal lucky unlucky dirty clean high low deep soft hard sharp
        sweet bitter eternal immortal terrible one
        """
    )
)
_LIKE_ADJECTIVES = re.compile(r"(?:less|ful|ous|ish|able|eyed|haired|handed|legged|footed|toothed)$")


def also_called(found: Iterable[AnyItem], question: str) -> list[str]:
    """Return the names, not in the question, of those whom it calls otherwise, the best known first; at most three.

    Another name counts if the question has all of it, together, and as a name: capitalised, or with a word that is
    neither a title nor an adjective. A title as the record's subject is one person's: "the king" whose name is noted.

    Args:
        found: What was recalled for the question: records of facts with `subject`, `attribute` and `value`.
        question: The question.
    """
    asked, names = f" {normalize(question)} ", dict[str, str]()
    for one in found:
        if normalize(str(one.value.get("attribute", ""))) not in _NAMING:
            continue
        subject, value = (str(one.value.get(field, "")) for field in ("subject", "value"))
        for said, name in ((value, subject), (subject, value)):
            if not _within(said, asked) or not normalize(name) or _within(name, asked):
                continue
            if _tells(said, titles=said == subject) or _capitalised(said, question):
                names.setdefault(normalize(name), name)
    return list(names.values())[:_MOST]


def _within(name: str, asked: str) -> bool:
    words = normalize(name).removeprefix("the ")
    return bool(words) and f" {words} " in asked


def _tells(name: str, *, titles: bool) -> bool:
    """Whether a name has a word that is one in small letters too."""
    common = STOP_WORDS | _ADJECTIVES | (frozenset() if titles else _TITLES)
    return any(
        not (word in common or word.isdecimal() or _LIKE_ADJECTIVES.search(word)) for word in normalize(name).split()
    )


def _capitalised(name: str, question: str) -> bool:
    """Whether a question has a name in capitals that are its own, not those of a sentence's beginning."""
    if question.isupper():
        return False
    question = unicodedata.normalize("NFC", question)
    found = list(_WORD.finditer(question))
    asked, words = [normalize(word[0]) for word in found], normalize(name).removeprefix("the ").split()
    for start in range(len(asked) - len(words) + 1):
        if asked[start : start + len(words)] != words:
            continue
        here = [
            word
            for word in found[start : start + len(words)]
            if len(words) == 1 or normalize(word[0]) not in STOP_WORDS
        ]
        own = [word for word in here if word[0] != "I" and _before(question, word.start()) not in _OPENS]
        if own and all(word[0][0].isupper() for word in here):
            return True
    return False


def _before(text: str, place: int) -> str:
    return text[:place].rstrip()[-1:] or "."
