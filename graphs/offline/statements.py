"""Statements: what a plain English sentence tells of somebody, such as "My sister Anna lives in Bergen".

A sentence is split into clauses; a clause has somebody it is about, and one of a few predicates. What is read can be
written as a sentence, and read again from it, so that facts in the store mean the same as the words that taught them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from enum import Enum
from typing import NamedTuple

USER = "the user"
RELATION = "relation to the user"
_PEOPLE = (
    "sister brother mother mum mom father dad wife husband partner girlfriend boyfriend fiance fiancee son daughter "
    "child kid baby friend boss colleague coworker neighbour neighbor aunt uncle cousin niece nephew grandmother "
    "grandfather grandma grandpa twin cat dog pet horse rabbit parrot hamster teacher doctor dentist flatmate roommate "
    "landlord therapist ex assistant manager"
)
PEOPLE = frozenset(_PEOPLE.split())
"""Whom somebody may call theirs; anything else that they have is a thing."""
HAS, IS, LIKES, ALLERGY, DOES = "has ", "is ", "likes ", "allergy to ", "does "
"""Beginnings of attributes that may hold side by side, each with "yes" or "no"."""

_A = r"['’]"
_NAME = r"(?:O['’])?[A-Z][\w-]*(?: [A-Z][\w-]*){0,2}"
_NOUN = r"[a-z][\w-]*(?: [a-z][\w-]*){0,2}"
_VERBS = (
    "am is are was does do has have can cannot now no never still just also really recently currently lives? works? "
    f"moved turned left comes? grew goes likes? loves? enjoys? hates? dislikes? adores? owns? speaks? plays? studies "
    f"started study teach(?:es)? collects? drives? eats? drinks? smokes? doesn{_A}t don{_A}t can{_A}t"
)
_VERB = rf"(?:(?:{'|'.join(_VERBS.split())})\b|{_A}(?:m|s|ve)\b)"
_CAPITALISED = (
    "I It This That There He She They We You What Where When Who Why How The A An My Your Our Yes No Ok Okay Hello Hi "
    "Hey Please Thanks Thank Today Tomorrow Yesterday Remember Note Forget Never Actually Now Also And But So If Then "
    "Sometimes Maybe Nothing Everything Something Nobody Everybody Somebody Someone Everyone People Life Dinner Lunch "
    "Breakfast Work School Football Music"
)
_NOT_NAMES = frozenset(_CAPITALISED.split())
_WHO = re.compile(
    rf"^(?:(?:[Mm]y|[Tt]he user{_A}s|(?P<of>{_NAME}){_A}s) (?P<noun>{_NOUN}?)(?: (?P<named>{_NAME}))?"
    rf"|(?P<user>[Ii]|[Tt]he user)|(?P<pronoun>[Ss]he|[Hh]e|[Tt]hey)|(?P<name>{_NAME}))"
    rf"(?=\s*{_VERB})(?P<rest>.*)$"
)
_CALLED = re.compile(rf"^((?:my|the user{_A}s|{_NAME}{_A}s) {_NOUN}){_A}s name is ", re.I)
_USED_TO_BE = re.compile(r"(\bmy \w+(?: \w+){0,4}) used to be .{1,80}? but now it(?:['’]s| is) ", re.I)
_SMALL_NAME = re.compile(rf"^(my (?:{'|'.join(sorted(PEOPLE))})) ([a-z]\w+)(?= {_VERB})", re.I)
_LEADING = re.compile(
    r"^(?:(?:well|oh|ah|u[hm]+|h+m+|nope|actually|also|and|but|so|hey|hi|hello|yes|no|ok|okay|by the way|btw|please"
    r"|thanks|thank you|listen|good (?:morning|evening|afternoon|day)|(?:please )?(?:remember|note)(?: that| this)?"
    r"|for your information|fyi|now|you know|guess what|today|as of today|since \w+|recently|meanwhile)\b[\s,:!–-]*)+",
    re.I,
)
_TRAILING = re.compile(
    r"(?<![\s,])[\s,]+(?:now|nowadays|these days|at the moment|right now|currently|actually|by the way|btw|instead|too"
    r"|as well|though|after all|you know|since \w+(?: \w+)?|for \w+ (?:years?|months?|weeks?)|last (?:week|month|year)"
    r"|(?:\w+ )?(?:days?|weeks?|months?|years?) ago|yesterday|today|this (?:week|month|year)"
    r"|in (?:January|February|March|April|May|June|July|August|September|October|November|December|\d{4}))$",
    re.I,
)
_SENTENCE = re.compile(r"(?<=[.!?;])\s+|\n+")
_GOES_ON = r"(?:lives?|works?|likes?|loves?|hates?|am|is|has)\b"  # "Anna lives in Bergen and works as a nurse"
_GAP = r"\s{1,3}"  # more blanks in a row divide nothing; without a bound they would be tried again and again
_CLAUSE = re.compile(
    rf"(?:\s?[,;])?{_GAP}(?:and|but|because|while|so){_GAP}(?=(?:i|my|she|he|they|we)\b)"
    rf"|,{_GAP}(?=(?:I|my|she|he)\b)|{_GAP}and{_GAP}(?=(?:an?|two|three) )"
    rf"|{_GAP}(?:and|but){_GAP}(?=(?:{_NAME} )?{_GOES_ON})"
)
_UNCERTAIN = re.compile(
    r"\b(?:if|maybe|perhaps|might|may|could|would|wish|imagine|suppose|pretend|dream(?:t|ed)?|think|guess|used to"
    r"|wanted|says?|said|told|claims?|heard|hope|what|who|where|when|how)\b"
)
_FORGOTTEN = "[forgotten]"  # stands for words that were taken out of a memory
_UNKNOWN = "It is not known any more: "
_NOT = rf"(?:do(?:es)? not|do(?:es)?n{_A}t|no longer|never)"
_BE = rf"(?:am|is|are|{_A}m|{_A}s|was)"
_MORE = r"(?: any ?more| any longer)?"
_TEMPORARY = re.compile(
    r"\b(?:headache|cold|question|look|idea|problem|meeting|minute|moment|time|lot|bit|point|feeling|plan|break|nap"
    r"|call|chat|walk|drink|good|great|bad|nice|long|hard|busy)\b"
)


_OWNS = re.compile(
    rf"^(?:have|has|{_A}ve got|have got|owns?) (?P<article>an? )?(?P<noun>{_NOUN}?)"
    rf"(?: (?:called|named) (?P<name>{_NAME}))?$"
)
_IS_NAMED = re.compile(rf"^{_BE} (?P<called>called |named )?(?P<name>{_NAME})$")
_IS_SOMEBODYS = re.compile(
    rf"^(?:is|are|{_A}s) (?P<no>not )?(?P<whose>(?:my|the user{_A}s|{_NAME}{_A}s) {_NOUN}?)(?P<more>{_MORE})$"
)
_SEVERAL = re.compile(
    rf"^(?:[Ii]|[Ww]e)(?: have|{_A}ve got) (?:two|three|four|five|six|\d) (?P<noun>[a-z]+)(?:,| called| named|:) "
    rf"(?P<names>{_NAME}(?:(?:,| and) {_NAME})+)$"
)
_ONE_OF = {"kids": "child", "children": "child", "wives": "wife"}
_LONGEST = 300  # characters of a clause that is read


class Truth(Enum):
    """Whether something is so."""

    YES = "yes"
    NO = "no"
    ENDED = "no longer"
    FORGOTTEN = "forgotten"


class Statement(NamedTuple):
    """What a clause tells.

    Attributes:
        subject: Whom it is about: "the user", "Anna", "the user's sister".
        attribute: What of them; of one attribute one value holds.
        value: The value; "yes" or "no" where many hold side by side ("likes tea").
        truth: Whether it is so, no longer, or to be forgotten.
    """

    subject: str
    attribute: str
    value: str
    truth: Truth = Truth.YES

    @property
    def text(self) -> str:
        """The statement as a sentence, which `read_statements` reads again."""
        if self.truth is Truth.FORGOTTEN:
            return f"{_UNKNOWN}{self._replace(truth=Truth.YES).text}"
        return _sentence(self, self.subject, you=False)

    @property
    def answer(self) -> str:
        """The statement as it is said to the user."""
        return _sentence(self, "you" if self.subject == USER else self.subject, you=self.subject == USER).replace(
            f"{USER}'s", "your"
        )


def _sentence(statement: Statement, who: str, *, you: bool) -> str:
    attribute, value, truth = statement.attribute, statement.value, statement.truth
    negated, more = truth is not Truth.YES, " any more" if truth is Truth.ENDED else ""
    begin, _, what = attribute.partition(" ")
    verb = {"home": "live in", "job": "work as", "workplace": "work at", HAS: "have", LIKES: "like", DOES: ""}.get(
        attribute if is_plain(attribute) else f"{begin} "
    )
    if verb is not None:
        job = f"{'an' if value[:1].lower() in 'aeiou' else 'a'} {value}" if attribute == "job" else value
        words = f"{verb} {job if is_plain(attribute) else what}".strip()
        if negated:
            said = f"{who} {'do' if you else 'does'} not {words}{more}"
        else:
            first, _, rest = words.partition(" ")
            said = f"{who} {first if you else _third(first)} {rest}"
        return f"{said[0].upper()}{said[1:]}."
    rest = value if attribute == RELATION else f"from {value}" if attribute == "origin" else ""
    rest = rest or {"allergy": f"allergic {what}", "is": what, "age": f"{value} years old"}.get(begin, "")
    if rest:
        said = f"{who} {'are' if you else 'is'} {'not ' if negated else ''}{rest}{more}"
    else:
        be = "are" if attribute.endswith("s") and not attribute.endswith(("ss", "us", "is")) else "is"
        said = f"{'your' if you else f'{who}{chr(39)}s'} {attribute} {be} {'not ' if negated else ''}{value}{more}"
    return f"{said[0].upper()}{said[1:]}."


def read_statements(text: str, last: str = "") -> list[Statement]:
    """Read what a text tells of somebody; questions, ifs and what others say are left out.

    Args:
        text: Some sentences.
        last: Whom the sentences before were about, for "she" and "he"; "" if unknown.
    """
    statements: list[Statement] = []
    for sentence in _SENTENCE.split(text.strip()):
        if sentence.rstrip().endswith("?") or _FORGOTTEN in sentence:
            continue
        forgotten = sentence.startswith(_UNKNOWN)
        for clause in _clauses(sentence.removeprefix(_UNKNOWN)):
            for statement in _read_clause(clause, last):
                if statement.subject != USER:
                    last = statement.subject
                statements.append(statement._replace(truth=Truth.FORGOTTEN) if forgotten else statement)
    return list(dict.fromkeys(statements))


def last_subject(statements: Iterable[Statement], last: str = "") -> str:
    """Return whom statements were about last, besides the user."""
    return next((one.subject for one in reversed([*statements]) if one.subject != USER), last)


def is_plain(attribute: str) -> bool:
    """Whether an attribute holds one value; else "yes" or "no" to each of many."""
    return not attribute.startswith((HAS, IS, LIKES, ALLERGY, DOES))


def _clauses(sentence: str) -> Iterator[str]:
    who = ""
    sentence = _USED_TO_BE.sub(r"\1 is ", sentence)
    sentence = _CALLED.sub(r"\1 is called ", _LEADING.sub("", sentence))
    sentence = _SMALL_NAME.sub(lambda match: f"{match[1]} {match[2].title()}", sentence)
    for part in _CLAUSE.split(sentence):
        clause = _LEADING.sub("", part.strip()).rstrip(" .!;,…")
        while (shorter := _TRAILING.sub("", clause)) != clause:
            clause = shorter
        if who and re.match(_GOES_ON, clause):
            clause = f"{who} {clause}"
        elif who and re.match(r"(?:an?|two|three) ", clause):
            clause = f"{who} has {clause}"
        if match := _WHO.match(clause):
            who = clause[: match.start("rest")].strip()
        yield clause


def _read_clause(clause: str, last: str) -> Iterator[Statement]:
    if special := list(_read_special(clause)):
        yield from special
        return
    match = _WHO.match(clause)
    if match is None or len(clause) > _LONGEST:
        return
    subject, rest = _subject_of(match, last), match["rest"].strip()
    if subject is None or _UNCERTAIN.search(rest):
        return
    noun = str(match["noun"] or "")
    if match["named"]:
        yield Statement(subject, RELATION, f"{match['of'] or USER}'s {noun}")
    elif noun and noun.split()[-1] not in PEOPLE:
        yield from _read_thing(match["of"] or USER, noun, rest)
        return
    yield from _read_predicate(subject, rest)


def _read_special(clause: str) -> Iterator[Statement]:
    """Read what is said of the user in other forms: a name to be called by, children by name, an end."""
    if name := re.match(rf"^(?:[Yy]ou (?:can|may) )?[Cc]all me (?P<name>{_NAME})$", clause):
        yield Statement(USER, "name", name["name"])
    elif brief := re.match(
        r"^[Ii](?:['’]m| am) (?P<name>[^\W\d_]+), (?P<age>\d{1,3})(?:,? (?:and )?from (?P<from>.+))?$", clause
    ):
        yield Statement(USER, "name", brief["name"].title())
        yield Statement(USER, "age", brief["age"])
        yield from [Statement(USER, "origin", brief["from"])] if brief["from"] else []
    elif several := _SEVERAL.match(clause):
        for one in re.split(r",\s{0,3}|\s{1,3}and\s{1,3}", several["names"]):
            noun = _ONE_OF.get(several["noun"], several["noun"].removesuffix("s"))
            yield Statement(one, RELATION, f"{USER}'s {noun}")
    elif re.match(r"^[Ii](?:['’]ve| have)? (?:quit|lost|left) my job$", clause):
        yield Statement(USER, f"{HAS}a job", "no", Truth.ENDED)
    elif partner := re.match(rf"^[Ii](?: have|{_A}ve)? (?:broke|broken|split) up with my (?P<noun>{_NOUN})", clause):
        yield Statement(USER, f"{HAS}a {partner['noun']}", "no", Truth.ENDED)


def _subject_of(match: re.Match[str], last: str) -> str | None:
    if match["user"]:
        return USER
    if match["pronoun"]:
        return last or None
    if match["named"]:
        return str(match["named"])
    if match["noun"]:
        return f"{match['of'] or USER}'s {match['noun']}"
    name = str(match["name"])
    return None if name.split()[0] in _NOT_NAMES else name


def _read_thing(owner: str, noun: str, rest: str) -> Iterator[Statement]:
    """Read "my favourite fruit is mango", of something that is nobody: an attribute of its owner."""
    attribute = "name" if noun in ("name", "full name") else noun.replace("favorite", "favourite")
    if match := re.match(rf"^{_BE} (?P<no>not |no longer )?(?P<value>.{{1,120}}?)(?P<more>{_MORE})$", rest):
        ended = Truth.ENDED if match["more"] or match["no"] == "no longer " else Truth.NO
        yield Statement(owner, attribute, match["value"], ended if match["no"] or match["more"] else Truth.YES)


_MANY = "many"
_DO = "speak|play|study|teach|collect|drive|eat|drink|smoke"
_PREDICATES: list[tuple[re.Pattern[str], str]] = [
    (re.compile(pattern), attribute)
    for pattern, attribute in (
        (r"^moved from .+ to (?P<v>.+)$", "home"),
        (rf"^(?P<no>{_NOT}) lives? (?:in|at) (?P<v>.+?)(?P<more>{_MORE})$", "home"),
        (r"^(?:have |has )?(?P<no>moved (?:away from|out of)|left) (?P<v>[A-Z].+)$", "home"),
        (r"^(?:(?:now |currently |still )?lives? in|(?:['’]ve |['’]s |have |has )?(?:just |recently )?moved (?:back )?"
         rf"to|{_BE} (?:now |currently )?(?:living|based) in) (?P<v>.+)$", "home"),
        (rf"^(?P<no>{_NOT}) works? as (?:an? |the )?(?P<v>.+?)(?P<more>{_MORE})$", "job"),
        (r"^(?:now )?works? as (?:an? |the )?(?P<v>.+?)(?: (?:at|for) (?P<at>.+))?$", "job"),
        (rf"^(?P<no>{_NOT}) works? (?:at|for|in) (?P<v>.+?)(?P<more>{_MORE})$", "workplace"),
        (r"^(?:now )?works? (?:at|for|in) (?P<v>.+)$", "workplace"),
        (r"^(?:has |have |['’]ve |['’]s )?(?:just )?started (?:a (?:new )?job|work(?:ing)?) (?:at|for|in) (?P<v>.+)$",
         "workplace"),
        (rf"^(?:{_BE}|(?:just )?turned) (?P<v>\d{{1,3}})(?: years? old)?$", "age"),
        (rf"^(?:{_BE} (?P<no>not )?from|comes? from|was born in|grew up in) (?P<v>.+)$", "origin"),
        (rf"^{_BE} (?P<no>not )?allergic to (?P<many>.+?)(?P<more>{_MORE})$", ALLERGY),
        (rf"^(?P<no>{_NOT}) (?:like|love|enjoy)s? (?P<many>.+?)(?P<more>{_MORE})$", LIKES),
        (r"^(?P<no>hates?|dislikes?|can(?:not|['’]t) stand) (?P<many>.+)$", LIKES),
        (r"^(?:really |also |still |do |does )?(?:likes?|loves?|enjoys?|adores?) (?P<many>.+)$", LIKES),
        (rf"^(?P<no>{_NOT}) (?:have|has|own) (?P<v>.+?)(?P<more>{_MORE})$", HAS),
        (rf"^(?P<no>{_NOT}) (?P<v>(?:{_DO}) .+?)(?P<more>{_MORE})$", DOES),
        (rf"^(?P<v>(?:{_DO}|studie|teache)s? .+)$", DOES),
        (rf"^{_BE} (?P<no>not |no longer )(?P<v>\w.{{0,60}}?)(?P<more>{_MORE})$", IS),
        (rf"^{_BE} (?P<v>(?:an?|married|divorced|single|retired|vegetarian|vegan|pregnant|engaged)\b.{{0,60}})$", IS),
    )
]  # fmt: skip


def _read_predicate(subject: str, rest: str) -> Iterator[Statement]:
    if own := _OWNS.match(rest):
        if own["name"]:
            yield Statement(own["name"], RELATION, f"{subject}'s {own['noun']}")
        elif not _TEMPORARY.search(own["noun"]):
            yield Statement(subject, f"{HAS}{own['article'] or ''}{own['noun']}", "yes")
        return
    named = _IS_NAMED.match(rest)
    if named and (named["called"] or "'s " in subject or subject == USER) and named["name"] not in _NOT_NAMES:
        is_user = subject == USER
        yield Statement(USER, "name", named["name"]) if is_user else Statement(named["name"], RELATION, subject)
        return
    if whose := _IS_SOMEBODYS.match(rest):
        truth = Truth.ENDED if whose["more"] else Truth.NO if whose["no"] else Truth.YES
        of = re.sub(rf"^my\b|^the user{_A}s", f"{USER}'s", whose["whose"]).replace("’", "'")
        yield Statement(subject, RELATION, of, truth)
        return
    for pattern, attribute in _PREDICATES:
        if match := pattern.match(rest):
            yield from _statements(subject, attribute, match)
            return


def _statements(subject: str, attribute: str, match: re.Match[str]) -> Iterator[Statement]:
    parts = match.groupdict()
    no = str(parts.get("no") or "")
    ended = parts.get("more") or no.startswith(("no longer", "moved", "left"))
    truth = Truth.YES if not no else Truth.ENDED if ended else Truth.NO
    yes = "yes" if truth is Truth.YES else "no"
    for one in re.split(r",\s{0,3}(?:and\s{1,3})?|\s{1,3}and\s{1,3}", parts.get(_MANY) or ""):
        if one.strip():
            yield Statement(subject, attribute + one.strip(), yes, truth)
    value = str(parts.get("v") or "").strip()
    if value and is_plain(attribute):
        yield Statement(subject, attribute, value, truth)
        if parts.get("at"):
            yield Statement(subject, "workplace", str(parts["at"]), truth)
    elif value and not (attribute == IS and _TEMPORARY.search(value)):
        first, _, rest = value.partition(" ")
        infinitive = {"studies": "study", "teaches": "teach"}.get(first, first.removesuffix("s"))
        yield Statement(subject, attribute + (f"{infinitive} {rest}" if attribute == DOES else value), yes, truth)


def _third(verb: str) -> str:
    if verb == "have":
        return "has"
    if verb.endswith("y") and verb[-2] not in "aeiou":
        return f"{verb[:-1]}ies"
    return f"{verb}es" if verb.endswith("ch") else f"{verb}s"
