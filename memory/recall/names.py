"""Names in a question: who speaks or is spoken of, names of several words, and by which other names they are known.

- "What did Mel say?" means the speaker Melanie: her name says who, not what.
- A name of several words, such as "the Quiet Anvil", is also searched for by itself, and weighs more word for word.
- Of those whom a question calls otherwise ("People call Goran the Heron") the names are searched for, too.
"""

import re
import tomllib
import unicodedata
from collections.abc import Collection, Iterable
from functools import lru_cache
from importlib.resources import files

from questbook.memory.recall.times import names_time
from questbook.memory.store.any_store import AnyItem
from questbook.memory.text.words import STOP_WORDS, fold_case, normalize, query_words, split_words, word_set
from questbook.memory.timeline.records import Record

_MIN_NICKNAME = 3  # letters: "Mel" for Melanie
_MOST_NAMES = 3  # of one question
_LONGEST_NAME = 5  # words; what is longer is a headline
_MOST_ALIASES = 3  # names that are added to one question
_WORD = re.compile(r"[^\W_]+")

_WORDS = tomllib.loads(files("questbook.memory.recall").joinpath("names.toml").read_text("utf-8"))
_OF_TALK, _TITLES, _ADJECTIVES = (word_set(_WORDS[name]) for name in ("of_talk", "titles", "adjectives"))
_LETTERS = re.compile(r"[^\W\d_]+")
_BETWEEN = re.compile(r"[^\S\n]+|[-‐'’]")  # what may stand between two words of a name
_OPENINGS = frozenset('.!?:;…"“”„«»')  # the word after one of these is capitalised whatever it is
# Attributes under which a model notes another name of someone.
_NAMING = frozenset(
    {"name", "full name", "true name", "real name", "nickname", "alias", "aliases", "called", "known as"}
    | {"also known as", "title", "epithet", "byname", "other name", "goes by"}
)
_NO_NAMES = STOP_WORDS | _TITLES | _ADJECTIVES | {"may", "march"}
_LIKE_ADJECTIVES = re.compile(r"(?:less|ful|ous|ish|able|eyed|haired|handed|legged|footed|toothed)$")


# Speakers and subjects


def named_in(question: str, names: Iterable[str]) -> dict[str, frozenset[str]]:
    """Return those of some names that a question names, each with the question's words that do, in small letters.

    A name is named by any of its words, or by a capitalised word that it begins with ("Mel" for Melanie).
    """
    words = _LETTERS.findall(question)
    small = {word.lower() for word in words}
    nicknames = {word.lower() for word in words if word[0].isupper() and len(word.lower()) >= _MIN_NICKNAME}
    named: dict[str, frozenset[str]] = {}
    for name in names:
        parts = set(split_words(name)) - STOP_WORDS
        naming = small & parts | {word for word in nicknames if any(part.startswith(word) for part in parts)}
        if naming:
            named[name] = frozenset(naming)
    return named


def names_of(record: Record) -> set[str]:
    """Return whom or what a record is about, and whose word it is alone."""
    return {record.subject, record.claimed_by} - {""}


def score_named(record: Record, speakers: Collection[str], subjects: Collection[str]) -> float:
    """Return 1 if a record's speaker, its subject or who claims it is named, -1 if only another speaker is, else 0.

    A question that names several speakers says nothing about who answers.
    """
    if not names_of(record).isdisjoint(subjects):
        return 1.0
    answers = 1.0 if record.speaker in speakers else -1.0
    return answers if record.speaker and len(speakers) == 1 else 0.0


def remove_words(question: str, words: Iterable[str]) -> str:
    """Return a question without some words (in small letters); the question itself if nothing else is left."""
    removed = set(words)

    def keep(match: re.Match[str]) -> str:
        return "" if re.split(r"['’]", match[0])[0].lower() in removed else match[0]

    rest = re.sub(r"[^\W\d_]+(?:['’]s\b)?", keep, question)
    return " ".join(rest.split()) if split_words(rest) else question


def content_words(question: str, names: Collection[str]) -> list[str]:
    """Return the words of a question that are looked up, without names of speakers; with them if it has no others."""
    words = query_words(question)
    words = [word for word in words if word not in names] or words
    return [word for word in words if word not in _OF_TALK] or words


# Names of several words


def find_names(question: str, ignored: Iterable[str] = ()) -> list[str]:
    """Return the names of several words that a question has, in small letters, without articles; at most three.

    Such a name is two or more capitalised words in a row. The first word of a sentence is capitalised anyway: it counts
    only if one other word follows. A question without capitals, or all in capitals, has none. The words of `ignored`,
    in small letters, are no part of a name.
    """
    question, skipped = _with_capitals(question), STOP_WORDS.union(ignored)
    names: dict[str, None] = {}
    for run in _capitalised_runs(question):
        words = [fold_case(word[0]) for word in run]
        kept = [number for number, word in enumerate(words) if word not in skipped]
        if len(kept) > 2 and _begins_sentence(question, run[kept[0]].start()):
            del kept[0]
        name = words[kept[0] : kept[-1] + 1] if len(kept) > 1 else []
        if 0 < len(name) <= _LONGEST_NAME:
            names[" ".join(name)] = None
    return list(names)[:_MOST_NAMES]


def has_name(text: str, names: Iterable[str]) -> bool:
    """Return whether a text has one of some names word for word, as `find_names` returns them."""
    folded = fold_case(text)
    return any(all(word in folded for word in name.split()) and _name_pattern(name).search(folded) for name in names)


@lru_cache(maxsize=64)
def _name_pattern(name: str) -> re.Pattern[str]:
    words = r"[\W_]+".join(map(re.escape, name.split()))
    return re.compile(rf"(?<![^\W_]){words}(?![^\W_])")


def _with_capitals(question: str) -> str:
    """Return a question whose capitals tell something, with composed letters; "" if it has no others."""
    return "" if question.isupper() else unicodedata.normalize("NFC", question)


def _begins_sentence(question: str, start: int) -> bool:
    before = question[:start].rstrip(" \t")
    return not before or before[-1] in _OPENINGS or before[-1] == "\n"


def _capitalised_runs(question: str) -> list[list[re.Match[str]]]:
    """Return the capitalised words of a question, grouped by runs of them."""
    runs: list[list[re.Match[str]]] = []
    for word in _WORD.finditer(question):
        if word[0][0].isupper():
            if runs and _BETWEEN.fullmatch(question, runs[-1][-1].end(), word.start()):
                runs[-1].append(word)
            else:
                runs.append([word])
    return runs


def name_words(question: str) -> list[str]:
    """Return the words, in small letters, by which a question names a person or a thing, each once.

    They are capitalised, and not only because a sentence begins with them; titles, adjectives, months and weekdays are
    none. A question without capitals, or all in capitals, has none.
    """
    question = _with_capitals(question)
    capitalised = [word for word in _WORD.finditer(question) if word[0][0].isupper()]
    words = [fold_case(word[0]) for word in capitalised if not _begins_sentence(question, word.start())]
    return [word for word in dict.fromkeys(words) if len(word) > 1 and word not in _NO_NAMES and not names_time(word)]


# Other names


def find_aliases(recalled: Iterable[AnyItem], question: str) -> list[str]:
    """Return names, not in the question, of those whom it calls by another name, best first; at most three.

    They are read from the recalled records of facts. The other name counts if the question has all of it in a row and
    as a name: capitalised, or with a word that is neither a title nor an adjective ("the red door" means no Goran the
    Red). A title that is a record's subject is that person's: "the king" whose name is noted.
    """
    asked = f" {normalize(question)} "
    names: dict[str, str] = {}
    for item in recalled:
        if normalize(str(item.value.get("attribute", ""))) not in _NAMING:
            continue
        subject, value = (str(item.value.get(field, "")) for field in ("subject", "value"))
        for alias, name in ((value, subject), (subject, value)):
            if not _contains(asked, alias) or not normalize(name) or _contains(asked, name):
                continue
            if _is_distinctive(alias, titles=alias == subject) or _is_capitalised(alias, question):
                names.setdefault(normalize(name), name)
    return list(names.values())[:_MOST_ALIASES]


def _contains(asked: str, name: str) -> bool:
    words = normalize(name).removeprefix("the ")
    return bool(words) and f" {words} " in asked


def _is_distinctive(name: str, *, titles: bool) -> bool:
    """Return whether a name has a word that is a name in small letters too; `titles`: titles count."""
    common = STOP_WORDS | _ADJECTIVES | (frozenset() if titles else _TITLES)
    words = normalize(name).split()
    return any(not (word in common or word.isdecimal() or _LIKE_ADJECTIVES.search(word)) for word in words)


def _is_capitalised(name: str, question: str) -> bool:
    """Return whether a question has a name in capitals, and not only because a sentence begins with it."""
    question, words = _with_capitals(question), normalize(name).removeprefix("the ").split()
    matches, count = list(_WORD.finditer(question)), len(words)
    asked = [normalize(match[0]) for match in matches]
    for start in range(len(asked) - count + 1):
        if asked[start : start + count] == words:
            told = [one for one in matches[start:][:count] if count == 1 or normalize(one[0]) not in STOP_WORDS]
            before = [question[: one.start()].rstrip()[-1:] or "." for one in told if one[0] != "I"]
            if all(one[0][0].isupper() for one in told) and not _OPENINGS.issuperset(before):
                return True
    return False
