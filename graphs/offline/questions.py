"""Questions about what somebody told, answered from statements: the latest one counts, and nothing is made up."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from questbook.graphs.offline.statements import (
    ALLERGY,
    DOES,
    HAS,
    IS,
    LIKES,
    RELATION,
    USER,
    Statement,
    Truth,
    is_plain,
)

_SYNONYMS = {"mom": "mother", "mum": "mother", "dad": "father", "neighbor": "neighbour", "favorite": "favourite",
             "kid": "child", "kids": "child", "children": "child", "color": "colour"}  # fmt: skip
_PETS = frozenset({"cat", "dog", "horse", "rabbit", "parrot", "hamster"})
_ONLY_ONE = frozenset({"boss", "wife", "husband", "girlfriend", "boyfriend", "partner", "mother", "father"})
_STATUSES = frozenset(f"{IS}{status}" for status in ("single", "married", "divorced", "engaged"))
_A = r"['’]"
_WHO = r"(?P<who>[^?,]+?)"
_BEFORE = re.compile(
    r"\b(?:did|was|were|before|used to|previously|earlier|ever|last (?:week|month|year)|yesterday)\b", re.I
)
_ASKING = re.compile(
    r"^(?:(?:and|so|but|ok(?:ay)?|hey|hi|hello|now|well|please|then)\b[\s,]*)*"
    r"(?:(?:do|can|could) you (?:still |please )?(?:know|remember|tell me|say)(?: again)? |tell me |remind me )?",
    re.I,
)
_DO, _BE, _STILL = "(?:do|does)", "(?:am|is|are)", "(?:still )?"
_DOING = "(?:speak|play|study|teach|collect|drive|eat|drink|smoke)"
_QUESTIONS: list[tuple[re.Pattern[str], str]] = [
    (re.compile(f"^(?:{pattern})$", re.I), attribute)
    for pattern, attribute in (
        (rf"(?:where|(?:in )?(?:what|which) (?:city|town|country|place)) {_DO} {_WHO} live(?: in| now)*", "home"),
        (rf"where {_BE} {_WHO} (?:living|based)(?: now)?", "home"),
        (rf"where {_WHO} lives?", "home"),
        (rf"{_DO} {_WHO} {_STILL}live in (?P<what>.+)", "home"),
        (rf"where {_DO} {_WHO} work(?: now)?", "workplace job"),
        (rf"where {_WHO} works?", "workplace job"),
        (rf"what {_DO} {_WHO} do(?: for (?:a living|work))?", "job workplace is"),
        (rf"what {_WHO} do(?:es)?(?: for (?:a living|work))?", "job workplace is"),
        (rf"what(?: is|{_A}s) (?P<who>my|.+?{_A}s) job", "job workplace is"),
        (rf"{_DO} {_WHO} {_STILL}work (?:as|at|for) (?:an? |the )?(?P<what>.+)", "workplace job"),
        (rf"where {_BE} {_WHO} from", "origin"),
        (rf"where {_DO} {_WHO} come from", "origin"),
        (rf"how old {_BE} {_WHO}", "age"),
        (rf"how old {_WHO} {_BE}", "age"),
        (rf"what {_BE} {_WHO} allergic to", ALLERGY),
        (rf"{_BE} {_WHO} allergic to (?P<what>.+)", ALLERGY),
        (rf"what (?:else )?{_DO} {_WHO} (?:like|love|enjoy)(?: to do)?", LIKES),
        (rf"what {_WHO} likes?", LIKES),
        (rf"what {_DO} {_WHO} (?:dislike|hate|not like)", "dislikes"),
        (rf"what (?:don{_A}t|doesn{_A}t) {_WHO} like", "dislikes"),
        (rf"{_DO} {_WHO} {_STILL}(?:like|love|enjoy|hate|dislike) (?P<what>.+)", LIKES),
        (rf"{_DO} {_WHO} {_STILL}have (?:an? |any )?(?P<what>.+)", HAS),
        (r"have (?P<who>i) got (?:an? |any )?(?P<what>.+)", HAS),
        (rf"{_DO} {_WHO} {_STILL}(?P<what>{_DOING} .+)", DOES),
        (rf"what(?: \w+)? {_DO} {_WHO} (?P<what>{_DOING})", DOES),
        (rf"(?:which|what) (?P<favourite>\w+) {_DO} {_WHO} (?:like (?:best|most)|prefer)(?: now)?", "favourite"),
        (rf"{_BE} {_WHO} {_STILL}(?P<what>(?:an? |married|divorced|single|retired|vegetarian|vegan).*)", IS),
    )
]
"""A question, and the attributes that answer it, in the order in which they are looked for."""
_NAME_OF = re.compile(
    rf"^(?:who am i|what am i called|what(?: is|{_A}s) (?P<own>my) name|what my name is"
    rf"|what(?: is|{_A}s) (?P<who>.+?){_A}s name|what(?: is|{_A}s) the name of (?P<of>.+)"
    rf"|what(?: is| are|{_A}s) (?P<called>.+?) called)$",
    re.I,
)
_WHO_IS = re.compile(
    rf"^(?:who(?: is|{_A}s) (?P<who>.+)|who (?P<mine>my .+) is|what do you (?:know|remember) (?:about|of) (?P<known>.+)"
    r"|about (?P<about>.+))$",
    re.I,
)
_WHO_LIVES = re.compile(r"^who (?P<verb>lives|works) (?:in|at|for) (?P<what>.+)$", re.I)
_OWNER = rf"(?:my|his|her|their|.+?{_A}s)"
_THING = re.compile(
    rf"^(?:what|when|where|which|who|how much|how many)(?: colou?r)?(?: is|{_A}s| are)(?: now)? (?P<who>{_OWNER}) "
    rf"(?P<noun>.+?)(?: (?:now|again|these days))?$"
    rf"|^(?:what|when|where) (?P<who2>{_OWNER}) (?P<noun2>.+?) (?:is|are)$",
    re.I,
)
_UNKNOWN = {
    "home": "where {} {live}", "job": "what {} {do}", "workplace": "where {} {work}", "age": "how old {} {be}",
    "origin": "where {} {be} from", LIKES: "what {} {like}", "dislikes": "what {} {do} not like",
    ALLERGY: "what {} {be} allergic to",
}  # fmt: skip


class KnownAnswer(NamedTuple):
    """The answer to a question about somebody.

    Attributes:
        reply: The answer; "" if nothing is known.
        unknown: What to say if nothing is known.
    """

    reply: str
    unknown: str


class Knowledge:
    """What was told, statement by statement; a later one takes the place of an earlier one."""

    def __init__(self) -> None:
        self._statements: dict[tuple[str, str], Statement] = {}

    def tell(self, statements: Iterable[Statement]) -> None:
        """Take in statements, in the order in which they were made."""
        for one in statements:
            key = (_key(one.subject), _key(one.attribute))
            old = self._statements.get(key)
            other = old is not None and old.truth is Truth.YES and one.value and _key(old.value) != _key(one.value)
            if one.truth is not Truth.YES and is_plain(one.attribute) and other:
                continue  # "I don't live in Paris" ends nothing of "I live in Oslo"
            self._statements.pop(key, None)
            if one.truth is Truth.YES:
                self._end_others(one)
            self._statements[key] = one
            if one.truth is Truth.ENDED and one.attribute.startswith(HAS):
                self._end(one)

    def about(self, subject: str, attribute: str = "") -> list[Statement]:
        """Return what is known of somebody, the oldest first; of an attribute, or of all that begin with it."""
        key = _key(attribute)
        return [
            one
            for (name, own), one in self._statements.items()
            if name == _key(subject)
            and (not attribute or own == key or (attribute.endswith(" ") and own.startswith(key)))
        ]

    def called(self, subject: str) -> list[str]:
        """Return by which names somebody may be meant: "the user's sister" is "Anna" too."""
        owner, _, noun = _key(subject).rpartition("'s ")
        names = []
        for (_, attribute), one in self._statements.items():
            own, _, relation = _key(one.value).rpartition("'s ")
            same = own == owner and noun and f" {relation}".endswith((f" {noun}", f" {noun.removesuffix('s')}"))
            if attribute == _key(RELATION) and one.truth is Truth.YES and same:
                names.append(one.subject)
        return [*names, subject]

    def who(self, words: str, last: str) -> str:
        """Return whom words mean: "i" the user, "my sister" the user's sister, "she" whom one talked of last."""
        words = words.strip().replace("’", "'")
        if re.fullmatch(r"i|me|my|myself", words, re.I):
            return USER
        if re.fullmatch(r"she|he|they|her|him|them|it", words, re.I):
            return last or words
        if mine := re.match(r"my (.+)$", words, re.I):
            noun, _, name = mine[1].rpartition(" ")
            named = noun and any(_key(one.subject) == _key(name) for one in self._statements.values())
            return name if named else f"{USER}'s {mine[1]}"
        return next((one.subject for one in self._statements.values() if _key(one.subject) == _key(words)), words)

    def holders(self, attribute: str, value: str) -> list[Statement]:
        """Return who has a value: who lives in Bergen."""
        return [
            one
            for one in self._statements.values()
            if one.attribute == attribute and one.truth is Truth.YES and _key(one.value) == _key(value)
        ]

    def relatives(self) -> list[Statement]:
        """Return who is somebody of the user's."""
        statements = self._statements.values()
        yes = (one for one in statements if one.attribute == RELATION and one.truth is Truth.YES)
        return [one for one in yes if _key(one.value).startswith(f"{USER}'s ")]

    def _end_others(self, new: Statement) -> None:
        """End what cannot be so beside a new statement: another boss, being single beside being married."""
        noun = _key(new.value).rpartition(" ")[2]
        for key, one in list(self._statements.items()):
            same_place = new.attribute == RELATION == one.attribute and _key(one.value) == _key(new.value)
            other_name = not {*_key(one.subject).split()} & {*_key(new.subject).split()}
            statuses = one.subject == new.subject and {one.attribute, new.attribute} <= _STATUSES
            if one.truth is Truth.YES and (statuses or (noun in _ONLY_ONE and same_place and other_name)):
                self._statements[key] = one._replace(truth=Truth.ENDED)

    def _end(self, ended: Statement) -> None:
        """End what is no more with what somebody no longer has: a job, a girlfriend."""
        noun = ended.attribute.removeprefix(HAS).removeprefix("a ").removeprefix("an ")
        for key, one in list(self._statements.items()):
            of_job = noun == "job" and one.subject == ended.subject and one.attribute in ("job", "workplace")
            if of_job or (one.attribute == RELATION and _key(one.value) == _key(f"{ended.subject}'s {noun}")):
                self._statements[key] = one._replace(truth=Truth.ENDED)


def answer(question: str, known: Knowledge, last: str = "") -> KnownAnswer | None:
    """Answer a question about somebody; None if it is another kind of question.

    Args:
        question: One sentence.
        known: What was told.
        last: Whom one talked of last, for "she" and "he".
    """
    words = _ASKING.sub("", question.strip()).strip(" ?!.").replace("’", "'")
    if _BEFORE.search(words):
        return None
    if name := _NAME_OF.match(words):
        return _name(known, name.groupdict(), last)
    if lives := _WHO_LIVES.match(words):
        holders = known.holders("home" if lives["verb"].lower() == "lives" else "workplace", lives["what"])
        return KnownAnswer(" ".join(one.answer for one in holders), f"I do not know who {lives[0].partition(' ')[2]}.")
    for pattern, attribute in _QUESTIONS:
        if match := pattern.match(words):
            parts = match.groupdict()
            who = known.who(str(parts["who"]).removesuffix("'s"), last)
            if attribute == "favourite":
                return _value(known, who, f"favourite {parts['favourite']}")
            return _answer(known, who, attribute, str(parts.get("what") or ""))
    if match := _WHO_IS.match(words):
        return _describe(known, known.who(next(filter(None, match.groups())), last))
    if thing := _THING.match(words):
        owner = str(thing["who"] or thing["who2"])
        who = USER if owner.lower() == "my" else last if not owner.endswith("'s") else known.who(owner[:-2], last)
        return _value(known, who, str(thing["noun"] or thing["noun2"])) if who else None
    return None


def _answer(known: Knowledge, who: str, attribute: str, what: str) -> KnownAnswer:
    """Answer what is asked of an attribute, or whether it has a value."""
    begins = attribute if attribute.endswith(" ") else ""
    unknown = _unknown(who, attribute, what)
    if attribute == "dislikes":
        negative = [one for name in known.called(who) for one in known.about(name, LIKES) if one.truth is not Truth.YES]
        return KnownAnswer(_join(one for one in negative if one.truth is not Truth.FORGOTTEN), unknown)
    for name in known.called(who) if begins else ():
        statements = [one for one in known.about(name, begins) if one.truth is not Truth.FORGOTTEN]
        if what:
            statements = [one for one in statements if _same(one.attribute.removeprefix(begins), what)]
            if attribute == HAS:
                statements = [*statements, *_own(known, name, what)]
            if statements:
                yes = "" if attribute == DOES and " " not in what else _yes_or_no(statements[-1].truth is Truth.YES)
                return KnownAnswer(
                    f"{yes}{_join(statements if attribute in (HAS, DOES) else statements[-1:])}", unknown
                )
        elif statements := [one for one in statements if one.truth is Truth.YES]:
            return KnownAnswer(_join(statements), unknown)
    replies: list[str] = []
    for name in () if begins else known.called(who):
        for each in attribute.split():
            statements = [
                one
                for one in known.about(name, f"{each} " if each == "is" else each)
                if one.truth is not Truth.FORGOTTEN
            ]
            if not statements:
                continue
            now = statements[-1]
            if what:
                same = _same(now.value, what)
                if same or now.truth is Truth.YES:
                    return KnownAnswer(f"{_yes_or_no(same and now.truth is Truth.YES)}{now.answer}", unknown)
            replies.append(now.answer if now.truth is Truth.YES else f"{now.answer} {unknown}")
            break
    return KnownAnswer(" ".join(dict.fromkeys(replies)), unknown)


def _value(known: Knowledge, who: str, noun: str) -> KnownAnswer:
    """Answer what a thing of somebody is: "my favourite fruit"."""
    person = f"{who}'s {noun}"
    if len(known.called(person)) > 1 or known.about(person):
        return _describe(known, person)
    whose = "your" if who == USER else f"{who}'s"
    unknown = f"I do not know {whose} {noun}."
    statements = [
        one for name in known.called(who) for one in known.about(name, noun) if one.truth is not Truth.FORGOTTEN
    ]
    if statements and statements[-1].truth is not Truth.YES:
        return KnownAnswer(f"{statements[-1].answer} {unknown}", unknown)
    return KnownAnswer(statements[-1].answer if statements else "", unknown)


def _name(known: Knowledge, parts: Mapping[str, str | None], last: str) -> KnownAnswer:
    words = parts.get("who") or parts.get("of") or parts.get("called")
    if not words:
        return _value(known, USER, "name")
    who = known.who(words, last)
    names = known.called(who)[:-1]
    unknown = f"I do not know the name of {_name_for_user(who)}."
    relation = [one for name in names for one in known.about(name, RELATION)]
    return KnownAnswer(" ".join(one.answer for one in relation), unknown)


def _describe(known: Knowledge, who: str) -> KnownAnswer:
    """Tell all that is known of somebody."""
    ended = {Truth.FORGOTTEN, *([Truth.ENDED, Truth.NO] if who != USER else [])}
    statements = [one for name in known.called(who) for one in known.about(name) if one.truth not in ended]
    if who == USER:
        statements += known.relatives()
    return KnownAnswer(
        _join(statements),
        f"I do not know {'anything about you yet' if who == USER else f'who {_name_for_user(who)} is'}.",
    )


def _own(known: Knowledge, owner: str, what: str) -> list[Statement]:
    """Return whom somebody has, by name: a cat that is called Miso, for "do I have a cat?", and for "pets"."""
    nouns = _PETS if re.fullmatch(r"pets?|animals?", what) else {_key(re.sub(r"s$", "", what))}
    return [
        one
        for noun in sorted(nouns)
        for name in known.called(f"{owner}'s {noun}")[:-1]
        for one in known.about(name, RELATION)
    ] + [
        one for noun in sorted(nouns) for one in known.about(owner, HAS) if noun in _PETS and _same(one.attribute, noun)
    ]


def _unknown(who: str, attribute: str, what: str) -> str:
    you = who == USER
    verbs = {"live": "live", "do": "do", "work": "work", "be": "are", "like": "like"} if you else {
        "live": "lives", "do": "does", "work": "works", "be": "is", "like": "likes"}  # fmt: skip
    if what:
        return "I do not know that."
    form = _UNKNOWN.get(attribute) or _UNKNOWN.get(attribute.split()[0]) or "that of {}"
    if attribute == "dislikes" and not you:
        form = "what {} does not like"
    return f"I do not know {form.format(_name_for_user(who), **verbs)}."


def _yes_or_no(yes: bool) -> str:
    return "Yes. " if yes else "No. "


def _name_for_user(who: str) -> str:
    return "you" if who == USER else who.replace(f"{USER}'s", "your")


def _same(value: str, what: str) -> bool:
    """Whether one of two values has all words of the other."""
    mine, asked = (
        {re.sub(r"s$", "", word) for word in _key(text).split()} - {"a", "an", "the", "any"} for text in (value, what)
    )
    return bool(mine and asked) and (mine <= asked or asked <= mine)


def _join(statements: Iterable[Statement]) -> str:
    return " ".join(dict.fromkeys(one.answer for one in statements))


def _key(text: str) -> str:
    words = text.casefold().replace("’", "'")
    return re.sub(r"[a-z]+", lambda match: _SYNONYMS.get(match[0], match[0]), words)
