"""Plain statements, such as "My sister Anna lives in Bergen": read, kept while they hold, and found for a question.

It is English, and little of it: what is not read here is not known, and the assistant says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from questbook.memory.facts.attributes import stated_property

_NAME, _NOUN = r"[A-Z][\w-]{1,40}(?: [A-Z][\w-]{1,40}){0,2}", r"[a-z][\w-]{1,40}(?: [a-z][\w-]{1,40}){0,2}"
_VERB = (
    r"(?:am|is|are|was|has|have|does|do|died|(?:live|work|like|love|enjoy|prefer|own|drive|speak|play|need|hate|come)s?"
    r"|study|studies|teach|teaches)\b"
)
_CLAUSE = re.compile(
    rf"(?:(?P<user>I)|[Mm]y (?P<noun>{_NOUN}?)(?: (?P<called>{_NAME}))?|(?P<name>{_NAME})) (?P<rest>{_VERB}.{{0,250}})$"
)
_FORMS = [(re.compile(pattern), form) for pattern, form in (
    (r".{0,300}\[forgotten\].{0,300}", ""), (r"’", "'"),
    (r"\bi\b", "I"), (r"\bI'm\b", "I am"), (r"\bI've\b", "I have"), (r"\bcan(?:no|')t\b", "can not"),
    (r"n't\b", " not"), (r"\bfavorite\b", "favourite"), (r"\b[Cc]all me ", "my name is "), (r"\bname's ", "name is "),
    (r"'s name is ", " is called "),
    (r"\b[Ww]e (?:got|are|were|have) (?=divorced|married)", "I am "),
    (r"\b(?:I|[Ww]e) (?:have )?moved (?:back )?to\b", "I live in"), (r"\b(?:has )?moved (?:back )?to\b", "lives in"),
    (r"\bI (?:really |also )?(?:love|enjoy)\b", "I like"), (r"\bI (?:hate|dislike|can not stand)\b", "I do not like"),
    (r"\b(am|is|are) no longer\b", r"\1 not"), (r"\bI no longer\b", "I do not"),
    (r"\bno longer (\w{1,20})s\b", r"does not \1"), (r"\bI turned\b", "I am"),
    (r"\b(am|is) (\d{1,3})(?=$|[.,;!]| (?:and|now|today|yesterday)\b)", r"\1 \2 years old"),
    (rf"\bI am (?={_NAME}(?:$|[.,;!]| and))", "my name is "),
    (rf" with my ({_NOUN}) ({_NAME})", r" and my \1 is \2"),
    (rf"\bI have an? ({_NOUN}?) (?:called|named) ({_NAME})", r"\2 is my \1"),
    (rf"\b[Mm]y ({_NOUN}?) is (?:called|named) ({_NAME})", r"\2 is my \1"))]  # fmt: skip
"""Other words for what is said in one form."""
_BEFORE = re.compile(
    r"(?:(?:well|oh|hm|hey|hi|hello|yes|no|ok|actually|also|and|but|so|sorry|now|please|remember|note|that"
    r"|don['’]t forget)\b[\s,:!]{0,3}){1,5}", re.I
)  # fmt: skip
_AFTER = re.compile(
    r"(?:,? (?:now|any ?more|these days|currently|again|too|as well|today|yesterday|last \w{1,9}"
    r"|\w{1,9} (?:day|week|month|year)s? ago)){0,9}(?:,? (?:because of|since) .{1,80})?$"
)
_BETWEEN = re.compile(
    rf",? (?:and|but|because|while|so) (?=(?:I|i|[Mm]y|we) |{_NAME} {_VERB}|{_VERB})|, (?=(?:I|i|my|it|he|she|we)\b)"
)
_UNCERTAIN = re.compile(
    r"\b(?:if|maybe|perhaps|might|would|will|wish|want|used to|says?|said|told|thinks?|hope|who|what|where|when)\b"
)
_LISTED = re.compile(r"(I (?:do not )?like|I am (?:not )?allergic to) (.+)")
_NO_NAMES = re.compile(r"(?:It|This|That|There|He|She|They|We|You|Wh\w+|How|The|If|Maybe|Forget)\b")
_BASES = {"is": "are", "was": "were", "has": "have", "does": "do"}
_THIRD = {"am": "is", "have": "has", "do": "does", "study": "studies", "teach": "teaches", "was": "was", "died": "died"}
_NOT = re.compile(r" (?:do|does) not\b| I not\b|(?<=[emsr]) not\b")
_SLOTS = [(re.compile(pattern), attribute) for pattern, attribute in (
    (r"(.{1,80}) is \d+ years old", "age"), (r"(.{1,80}) is (?:single|married|divorced|engaged)\b", "marital status"),
    (r"(The user)'s (?!(?:sister|brother|son|daughter|child|mother|father|friend|cat|dog)\b)(.{1,60}?) (?:is|are) ", "")
)]  # fmt: skip
_STATED = re.compile(rf"^(?:([Aa]m|[Ii]s|[Aa]re)|[Dd]o|[Dd]oes) (I|[Mm]y {_NOUN}?|{_NAME}) (.+)")
_DOES_WHAT = re.compile(r"\bwhat do(?:es)? (.{1,60}) do\b", re.I)
_YES_NO = re.compile(r"\W*(?:do|does|am|is|are|have)\b", re.I)
FORGET = re.compile(r"(?:^|[.!?,;:] |\bplease |\band )forget\b", re.I)
"""Asks to forget something; "don't forget" does not."""
_PARTING = re.compile(
    r"\b(?:I|we)(?:['’](?:m|re|ve))?(?: am| are| were| have| got| just| finally){0,3} (?:divorced|separated|split up"
    r"|broke up|broken up)\b", re.I
)  # fmt: skip
_OVER = re.compile(
    rf"{FORGET.pattern} (?:that |about )?(?P<forget>.{{2,200}})|(?:^|[.!] )(?P<dead>[^.!?]{{1,60}}?) (?:has )?died\b"
    r"|\bI (?:have |just )?(?:sold|quit|gave away|moved (?:away from|out of)|(?:lost|left)(?= my | [A-Z])) "
    r"(?P<gone>[^.!?,]{1,60}?)(?= and | but |[.!?,]|$)", re.I
)  # fmt: skip
_SMALL = re.compile(
    r"(?:a|about|am|an|and|any|are|as|at|be|can|come|comes|could|did|do|does|for|had|has|have|he|her|his|how|i|in|is|it|its|know|me|my"
    r"|not|now|of|on|or|our|please|remember|she|so|still|tell|that|the|their|them|there|they|this|to|us|user|was|we|were"
    r"|what|when|where|which|who|whose|why|will|with|you|your)"
)


class Statement(NamedTuple):
    """What a clause tells.

    Attributes:
        text: A sentence that says it to others: "The user lives in Oslo."
        subject: Whom it is about: "the user", "Anna", "the user's brother".
    """

    text: str
    subject: str

    @property
    def said(self) -> str:
        """The sentence as the user reads it: "You live in Oslo."."""
        text = re.sub(r"\bThe user's\b", "Your", self.text).replace("the user's", "your")
        return re.sub(r"^The user (\w+)", lambda verb: f"You {_base(verb[1])}", text)

    @property
    def slot(self) -> str:
        """What only one statement at a time is about: a home, an age, whether one likes tea."""
        plain = _NOT.sub("", self.text)
        if stated := stated_property(plain, self.subject):
            return f"{stated.subject}|{stated.attribute}"
        for pattern, attribute in _SLOTS:
            if match := pattern.match(plain):
                return f"{match[1].lower()}|{attribute or match[2]}"
        return " ".join(map(_base, plain.casefold().split()))

    @property
    def negative(self) -> bool:
        """Whether it says that something is not so."""
        return bool(_NOT.search(self.text))

    @property
    def ends(self) -> bool:
        """Whether it only says that a value does not hold of which there is one: "I don't live in Oslo"."""
        return self.negative and "|" in self.slot


def keywords(text: str) -> frozenset[str]:
    """Return the words of a text that count, in small letters and without a plural's ending."""
    words = re.findall(r"[^\W_]{2,}", text.casefold())
    return frozenset(word.removesuffix("s") for word in words if not _SMALL.fullmatch(word))


def read_statements(text: str) -> list[Statement]:
    """Read what a text tells; questions, ifs and what others say are left out."""
    sentences = [part for part in re.split(r"(?<=[.!?;)])\s+|\n+", text.strip()) if not part.rstrip().endswith("?")]
    return list(dict.fromkeys(one for sentence in sentences for one in _read_sentence(sentence)))


def read_told(text: str) -> list[Statement]:
    """Read sentences as `Statement` writes them, to the user or to others."""
    mine = re.sub(r"\b(?:the user's|your)\b", "my", text, flags=re.I)
    mine = re.sub(
        r"\b(?:the user|you) (\w+)", lambda verb: f"I {_base(verb[1])}".replace("are", "am"), mine, flags=re.I
    )
    return read_statements(mine)


def _read_sentence(sentence: str) -> Iterator[Statement]:
    sentence, who = sentence[(begin.end() if (begin := _BEFORE.match(sentence)) else 0) :], ""
    for pattern, form in _FORMS:
        sentence = pattern.sub(form, sentence)
    for part in _BETWEEN.split(sentence):
        clause = _AFTER.sub("", part.strip(" .!;,:()"))
        if who and (verb := re.match(_VERB, clause)):
            clause = f"I {_base(verb[0])}{clause[verb.end() :]}" if who == "I" else f"{who} {clause}"
        who = "I" if clause.startswith("I ") else who
        match = _CLAUSE.match(clause)
        if match and not _UNCERTAIN.search(clause) and not _NO_NAMES.match(match["name"] or ""):
            who = clause[: match.start("rest")].strip()
            yield from _read_clause(match, clause)


def _read_clause(match: re.Match[str], clause: str) -> Iterator[Statement]:
    rest = re.sub(r"\b[Mm]y\b", "the user's", match["rest"])
    if listed := _LISTED.fullmatch(clause):
        for one in re.split(r",? and |, ", listed[2]):
            yield Statement(f"The user {_third(listed[1].removeprefix('I '))} {one}.", "the user")
    elif match["user"]:
        yield Statement(f"The user {_third(rest)}.", "the user")
    elif name := match["called"] or match["name"]:
        mine = re.fullmatch(r"is the user's (.+)", rest)
        if noun := match["noun"] or (mine and mine[1]):
            single = f"The user's {noun} is {name}."
            one = stated_property(single) is not None
            yield Statement(single, "the user") if one else Statement(f"{name} is the user's {noun}.", name)
        if not mine:
            yield Statement(f"{name} {rest}.", name)
    else:
        text = f"The user's {match['noun']} {rest}."
        yield Statement(text, "the user" if stated_property(text) else f"the user's {match['noun']}")


def _third(words: str) -> str:
    """Put the verb with which words begin into the third person: "live in Oslo" to "lives in Oslo"."""
    verb, blank, rest = words.partition(" ")
    return f"{_THIRD.get(verb, f'{verb}s')}{blank}{rest}"


def _base(verb: str) -> str:
    plain = f"{verb[:-3]}y" if verb.endswith("ies") else re.sub(r"(?<=ch)es$|(?<!s)s$", "", verb)
    return _BASES.get(verb, plain if len(plain) > 1 else verb)


class Knowledge:
    """What was told; a later statement takes the place of an earlier one about the same."""

    def __init__(self) -> None:
        self._known: dict[str, Statement] = {}

    def tell(self, statements: Iterable[Statement]) -> None:
        """Take in statements, in the order in which they were made."""
        for one in statements:
            self._known.pop(one.slot, None)
            self._known[one.slot] = one

    def end(self, statements: Iterable[Statement]) -> None:
        """Take statements out."""
        for one in statements:
            self._known.pop(one.slot, None)

    def ended_by(self, words: str, statements: Iterable[Statement]) -> list[Statement] | None:
        """Return what a message says is over or to be forgotten, of what is known; None if it says no such thing.

        Args:
            words: The message.
            statements: What was read from it. "I don't live in Paris" ends nothing of "I live in Oslo".
        """
        known, olds = list(self._known.values()), [(self._known.get(one.slot), one) for one in statements if one.ends]
        over = [old for old, one in olds if old and keywords(one.text) <= keywords(old.text)]
        ends, parting = list(_OVER.finditer(words)), _PARTING.search(words)
        if parting:
            over += [one for one in known if one.slot.endswith("|partner") or " married" in one.text]
        for end in ends:
            meant = keywords(end["forget"] or end["dead"] or end["gone"])
            own = [one for one in known if not end["gone"] or re.match("You|Your", one.said)]
            over += [one for one in own if meant and meant <= keywords(f"{one.text} {one.slot}")]
            over += [one for one in own if meant == {"job"} and one.slot.endswith(("|occupation", "|employer"))]
        return list(dict.fromkeys(over)) if parting or ends or over else None

    def answer(self, question: str) -> str:
        """Answer a question by the statements that have all its words; "" if there is none."""
        question = _DOES_WHAT.sub(r"\1 work", question)
        wanted, of_me = keywords(question), bool(re.search(r"\bI\b|\bme\b", question, re.I))
        wanted = wanted - {"name", "called"} or wanted
        known = list(self._known.values())
        found = [one for one in known if wanted <= keywords(one.text) and self._is_meant(one, question, of_me=of_me)]
        for one in known if wanted and not found else ():  # "my sister" is Anna
            name, is_mine, relative = one.said.partition(" is your ")
            if not is_mine and name.startswith("Your "):
                relative, is_mine, name = name.removeprefix("Your ").partition(" is ")
            if is_mine and keywords(relative) <= wanted:
                others = wanted - keywords(relative) | keywords(name)
                found += [other for other in known if others <= keywords(other.text)]
        if not _YES_NO.match(question):
            found = [one for one in found if one.negative == bool(_NOT.search(f" {question}"))]
        elif not found and (other := self._instead_of(question)):
            return f"No. {other.said}"
        begin = "" if not found or not _YES_NO.match(question) else "No. " if found[-1].negative else "Yes. "
        return f"{begin}{' '.join(dict.fromkeys(one.said for one in found))}"

    def _instead_of(self, question: str) -> Statement | None:
        """Return what is known in the place of what a question asks for: one lives in Oslo, and not in Rome."""
        stated = _STATED.sub(lambda parts: f"{parts[2]} {(parts[1] or '').lower()} {parts[3]}", question)
        asked = read_statements(" ".join(stated.rstrip(" ?").split()))
        return self._known.get(asked[0].slot) if asked and "|" in asked[0].slot else None

    def _is_meant(self, one: Statement, question: str, *, of_me: bool) -> bool:
        """Whether a question about me, or about others, can mean a statement."""
        if of_me:
            return one.said.startswith("You ") or " is your " in one.said or not keywords(question)
        return bool(keywords(question)) and (bool(re.search(r"\bmy\b", question, re.I)) or "You " not in one.said)
