"""OfflineAssistant: a companion made of a few rules, which notes statements; how it reads them is in assistant.toml."""

import re
from collections.abc import Collection, Iterable, Iterator
from functools import reduce
from itertools import takewhile
from typing import ClassVar, NamedTuple

from langchain_core.messages import ToolMessage

from questbook.graphs.offline.model import Answer, Call, OfflineModel, Prompt, compile_text, load_texts, unescape
from questbook.memory.buffer.summary import extend_summary, extract
from questbook.memory.facts.attributes import stated_property
from questbook.memory.facts.fact import TOOL
from questbook.memory.recall.intents import off_record
from questbook.memory.text.words import STOP_WORDS, plain_words, strip_ending
from questbook.notebooks import parse_fields
from questbook.types import JSON

_IDLE = STOP_WORDS | {"come", "comes", "know", "please", "remember", "still", "tell", "user"}
_PIECE = re.compile(r"\S(?:.{0,600}?[.!?][\"”’')]*(?!\S)|.{0,599}(?!\S)|\S{0,600})")  # a sentence, or 600 characters
_SHORT = 200  # characters of a message that is quoted whole

_TEXTS = load_texts("assistant")
_SAYS: dict[str, str] = _TEXTS["says"]
_MESSAGE = {name: compile_text(text, _TEXTS["parts"], re.I | re.S) for name, text in _TEXTS["message"].items()}
_CLAUSE = {name: compile_text(text, _TEXTS["parts"]) for name, text in _TEXTS["clause"].items()}
_ENDING = {name: compile_text(text, _TEXTS["parts"]) for name, text in _TEXTS["ending"].items()}
_FORMS = [(compile_text(text, _TEXTS["parts"]), form) for text, form in _TEXTS["forms"]]
_SLOTS = [(compile_text(text, _TEXTS["parts"]), slot) for text, slot in _TEXTS["slots"]]


class Statement(NamedTuple):
    """What a clause tells: a sentence for others, "The user lives in Oslo."; and whom it is about, "the user"."""

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
        plain = _CLAUSE["not"].sub("", self.text)
        if stated := stated_property(plain, self.subject):
            return f"{stated.subject}|{stated.attribute}"
        slots = (match.expand(slot).lower() for pattern, slot in _SLOTS if (match := pattern.match(plain)))
        return next(slots, " ".join(map(_base, plain.casefold().split())))

    @property
    def negative(self) -> bool:
        """Whether it says that something is not so; of a value of which there is one, it then tells nothing else."""
        return bool(_CLAUSE["not"].search(self.text))


class OfflineAssistant(OfflineModel):
    """A personal assistant made of a few rules."""

    longest: ClassVar[int] = 12_000  # a passage for the archive may have 10,000

    @property
    def _llm_type(self) -> str:
        return "offline-assistant"

    def _reply(self, prompt: Prompt) -> Answer:
        if prompt.turns and prompt.tools:
            return _note_facts(prompt.turns) if TOOL in prompt.tools else Answer("no change")
        if prompt.missing:
            return _interview(prompt)
        if prompt.turns:
            sentences = [text for turn in prompt.turns for text in extract({"player": "", "reply": ""} | turn)]
            return Answer(extend_summary(prompt.summary, sentences, 400) or "Nothing was said.")
        results = [*takewhile(lambda message: isinstance(message, ToolMessage), reversed(prompt.turn))]
        failed = [m.text for m in results if isinstance(m, ToolMessage) and m.status == "error"]
        if failed or any(m.name in prompt.tools for m in results):  # an interview's results do not count
            return Answer(f"That did not work: {failed[-1].partition('. ')[0]}." if failed else "That is done.")
        parts = re.split(r"(?<=[.!?;])\s+|\n+", prompt.words)
        asked = [part for part in parts if _MESSAGE["question"].search(part)]
        words, known = "\n".join(part for part in parts if part not in asked), _knowledge(prompt)
        private = Answer("" if asked else _SAYS["private"]) if off_record(prompt.words) else None
        noted = private or _note(prompt, words, known)
        replies = [_greeting(prompt, known)] if _MESSAGE["greeting"].search(prompt.words) else []
        replies += [*(_answer(prompt, _reword(question), known) for question in asked), noted.text]
        if not any(replies):
            introduced = any(_SAYS["modest"] in reply for _, reply in prompt.exchanges())
            replies = ["I see." if introduced else f"I see. {_SAYS['modest']}"]
        return Answer(" ".join(filter(None, dict.fromkeys(replies))), noted.calls)


def _note(prompt: Prompt, words: str, known: dict[str, Statement]) -> Answer:
    """Take in what a message tells, ends, or asks to keep: say so, and write it to core memory or the archive."""
    if match := _MESSAGE["archive"].search(prompt.words):
        insert = Call("archival_memory_insert", {"content": match[1].strip()})
        return Answer("I have put that into archival memory.", [insert])
    over, (human, limit) = _ended_by(words, known), _human(prompt)
    told = [one for one in _told_in(words) if one not in (over or ())]  # "my dog Rex died"
    lines, replies = human.split("\n") if human else [], list[str]()
    _update(known, told, over or ())
    new = [one.text for one in told if one.subject == "the user" and one.text not in lines]
    gone = [line for line in lines if new and {one.slot for one in _read_told(line)} & {one.slot for one in told}]
    if told:
        replies.append(f"I note: {' '.join(one.said for one in told)}")
    elif match := _MESSAGE["remember"].search(words):
        new.append(match[1].strip().rstrip("?"))
        replies.append("I will remember that.")
    if over or (over is not None and not told):
        meant = keywords(forget["what"]) if (forget := _MESSAGE["forget"].search(words)) else frozenset()
        gone += [line for line in lines if line in {one.text for one in over} or (meant and meant <= keywords(line))]
        said = f"{_SAYS['over']}{' '.join(one.said for one in over)}"
        replies.append(said if over else "I have taken that out." if gone else _SAYS["cannot_end"])
    new = new if len("\n".join([*lines, *new])) <= limit else []  # what does not fit is noted as a fact alone
    edits = [*(("remove", line) for line in dict.fromkeys(gone)), *(("append", text) for text in new)]
    calls = [Call(f"core_memory_{edit}", {"label": "human", "content": text}) for edit, text in edits]
    return Answer(" ".join(replies), calls if "core_memory_append" in prompt.tools else ())


def _answer(prompt: Prompt, question: str, known: dict[str, Statement]) -> str:
    """Answer a question by the statements that have all its words, else by what was said that has most of them."""
    if _MESSAGE["self"].search(question):
        return _SAYS["modest"]
    wanted = keywords(question) - {"nam", "call"} or keywords(question)
    mine = re.search(r"\b(?:(?P<me>I|me)|my)\b", question, re.I)
    yes_no, no = _MESSAGE["yes_no"].match(question), _CLAUSE["not"].search(f" {question}")
    words = {one: keywords(f"{one.slot} {_CLAUSE['trade'].sub('occupation ', one.text)}") for one in known.values()}
    names = {one.subject: words[one] for one in words if " is the user's " in one.text}  # "my sister"
    found = [one for one in words if wanted <= words[one]]
    found = found or [one for one in words if wanted <= words[one] | names.get(one.subject, set())]
    if mine and mine["me"] and wanted:
        found = [one for one in found if _CLAUSE["owned" if "have" in question.split() else "own"].search(one.said)]
    elif not mine:
        found = [one for one in found if wanted and "You " not in one.said]
    if found := [one for one in found if yes_no or one.negative == bool(no)]:
        begin = "" if not yes_no else "Yes. " if found[-1].negative == bool(no) else "No. "
        return f"{begin}{' '.join(one.said for one in found)}"
    # The first and last lines are the heading and the instruction of the LTM extension's templates.
    kept = [*_human(prompt)[0].split("\n"), *unescape(prompt.section("character_memories")).split("\n")[1:-1]]
    told = [str(memory.get("user") or "") for memory in prompt.records("memories")]
    told += [words for words, _ in prompt.exchanges()]
    asks = _MESSAGE["forget"].search, _MESSAGE["remember"].search, off_record
    kept += [words for words in told if not any(ask(words) for ask in asks)]
    # One word alone finds what is not meant.
    quotes = [_quote(line, wanted) for line in kept if len(wanted) > 1 or line not in told]
    quoted = "; ".join(f"“{quote}”" for quote in [*filter(None, dict.fromkeys(quotes))][-3:])
    return f"I remember this: {quoted}" if quoted else "I do not know."


def _quote(line: str, wanted: frozenset[str]) -> str:
    """Quote the sentences that have most of the words that are asked for, "…" for others; "" if there are none."""
    pieces, log = _PIECE.findall(" ".join(line.split()).strip('" ')), line.startswith('"')
    # A statement is known, or has ended since, but in a log ("…"); a question answers nothing.
    told = [at for at, one in enumerate(pieces) if log or not (_MESSAGE["question"].search(one) or _read_told(one))]
    words = {at: wanted & keywords(pieces[at]) for at in told}
    found = frozenset[str]().union(*words.values())
    chosen = {max((len(has), at) for at, has in words.items() if word in has)[1] for word in found}
    whole = len(told) == len(pieces) and len(line) < _SHORT
    text = " ".join(piece if whole or at in chosen else "…" for at, piece in enumerate(pieces))
    return re.sub(r"…(?: …)+", "…", text) if 2 * len(found) > len(wanted) else ""


def _ended_by(words: str, known: dict[str, Statement]) -> list[Statement] | None:
    """Return what a message says is over or to be forgotten, of what is known; None if it says no such thing."""
    words = f"{words}\n{_reword(words)}"
    ends = [(kind, match.groupdict()) for kind in _ENDING for match in _MESSAGE[kind].finditer(words)]
    said = [one for one in read_statements(words) if one.negative and "|" in one.slot and one.slot in known]
    # "I don't live in Paris" ends nothing of "I live in Oslo".
    over = [known[one.slot] for one in said if keywords(one.text) <= keywords(known[one.slot].text)]
    for kind, groups in ends:
        own = [one for one in known.values() if _ENDING[kind].match(f"{one.slot}: {one.text}")]
        meant = keywords(groups.get("what", ""))
        over += [one for one in own if "what" not in groups or (meant and meant <= keywords(f"{one.text} {one.slot}"))]
    return list(dict.fromkeys(over)) if over or ends else None


def _knowledge(prompt: Prompt) -> dict[str, Statement]:
    """Take together what facts, the conversation and core memory tell, by slot; later ones replace earlier ones."""
    known, core = dict[str, Statement](), _read_told(_human(prompt)[0])
    _update(known, core)
    for memory in sorted(prompt.records("memories"), key=lambda memory: int(memory.get("turn") or 0)):
        if not memory.keys() & {"claimed_by", "rumour", "until"}:
            _update(known, _read_told(str(memory.get("fact") or "")))
    for words, reply in prompt.exchanges():
        _update(known, _told_in(words), _read_told(reply.partition(_SAYS["over"])[2]))
    # A person may have edited core memory since; a later fact may have ended what it tells.
    _update(known, [] if prompt.section("outdated") else core)
    return known


def _update(known: dict[str, Statement], told: Iterable[Statement], ended: Collection[Statement] = ()) -> None:
    for one in (*ended, *told):
        known.pop(one.slot, None)
    known.update({one.slot: one for one in told if one not in ended})


def _note_facts(turns: list[JSON]) -> Answer:
    facts = list[JSON]()
    for turn in turns:
        ended = _read_told(str(turn.get("assistant") or "").partition(_SAYS["over"])[2])
        for one in dict.fromkeys((*ended, *_told_in(str(turn.get("user") or "")))):
            fact: JSON = {"text": one.text, "subject": one.subject, "attribute": one.slot.partition("|")[2]}
            over = {"ends": True} if one in ended else {}
            facts.append({**fact, "claimed_by": "the user", "kind": "trait", "importance": 6, **over})  # in other words
    return Answer("", [Call(TOOL, {"facts": facts})]) if facts else Answer("no change")


def _interview(prompt: Prompt) -> Answer:
    """Take the person's words as the answer to the last question, if there was one; ask for the next field."""
    ask = [f"Please tell me your {field.replace('_', ' ')}." for field in prompt.missing]
    if isinstance(prompt.last, ToolMessage):
        return Answer(f"{prompt.last.text.partition('. ')[2]} {ask[0]}" if prompt.last.status == "error" else ask[0])
    if not prompt.asked_last.endswith(ask[0]):
        return Answer(ask[0])
    words, again = prompt.words.strip(), prompt.asked_last.startswith(_SAYS["one_thing"])
    several = re.search(r"[.;!]\s+\w|\n", words) and not again
    if several or _MESSAGE["question"].search(words) or _MESSAGE["greeting"].search(words):
        return Answer(f"{_SAYS['one_thing']} {ask[0]}")
    [tool], field = prompt.tools, prompt.missing[0]
    value = re.sub(rf"^(?:my|the) {re.escape(field.replace('_', ' '))} is\s+", "", words.rstrip("."), flags=re.I)
    return Answer(ask[1] if len(ask) > 1 else "Thank you.", [Call(tool, {field: value})])


def _greeting(prompt: Prompt, known: dict[str, Statement]) -> str:
    about, name = parse_fields(prompt.section("about")), known.get("the user|name")
    hello = f"Hello, {name.said.removeprefix('Your name is ').rstrip('.')}!" if name else "Hello!"
    last = about.get("you_last_spoke") if about.get("earlier_turns") else ""
    return f"{hello} We last spoke {last}." if last else f"{hello} We have not talked before."


def _human(prompt: Prompt) -> tuple[str, int]:
    block = prompt.page("core_memory").get("human")
    block = block if isinstance(block, dict) else {}
    return str(block.get("value") or ""), int(block.get("limit") or 0)


def _told_in(words: str) -> list[Statement]:
    kept = off_record(words) or _MESSAGE["archive"].search(words) or _MESSAGE["forget"].search(words)
    return [] if kept else [one for one in read_statements(words) if not (one.negative and "|" in one.slot)]


def keywords(text: str) -> frozenset[str]:
    """Return the stems of the words that count."""
    return frozenset(strip_ending(word) for word in plain_words(text) if word not in _IDLE and len(word) > 1)


def read_statements(text: str) -> list[Statement]:
    """Read what a text tells; questions, ifs and what others say are left out."""
    sentences = [part for part in re.split(r"(?<=[.!?;)])\s+|\n+", text.strip()) if not part.rstrip().endswith("?")]
    return list(dict.fromkeys(one for sentence in sentences for one in _read_sentence(sentence)))


def _read_told(text: str) -> list[Statement]:
    """Read sentences as `Statement` writes them, to the user or to others."""
    mine = re.sub(r"\b(?:the user's|your)\b", "my", text, flags=re.I)
    verb = re.compile(r"\b(?:the user|you) (\w+)", re.I)
    return read_statements(verb.sub(lambda verb: f"I {_base(verb[1], 'first')}", mine))


def _reword(text: str) -> str:
    return reduce(lambda said, form: form[0].sub(form[1], said), _FORMS, text)


def _read_sentence(sentence: str) -> Iterator[Statement]:
    who = ""
    for part in _CLAUSE["between"].split(_reword(_MESSAGE["before"].sub("", sentence))):
        clause = _CLAUSE["after"].sub("", part.strip(" .!;,:()"))
        if who and (verb := _CLAUSE["verb"].match(clause)):
            clause = f"I {_base(verb[0], 'first')}{clause[verb.end() :]}" if who == "I" else f"{who} {clause}"
        who = "I" if clause.startswith("I ") else who
        match = _CLAUSE["parts"].match(clause)
        if match and not _CLAUSE["uncertain"].search(clause):
            who = clause[: match.start("rest")].strip()
            yield from _read_clause(match)


def _read_clause(match: re.Match[str]) -> Iterator[Statement]:
    rest = re.sub(r"\b(?:[Mm]y|our)\b", "the user's", match["rest"])
    listed = _CLAUSE["listed"].fullmatch(rest)
    if match["user"]:
        for part in re.split(r",? and |, ", listed[2]) if listed else [""]:
            verb, blank, more = (f"{listed[1]} {part}" if listed else rest).partition(" ")
            yield Statement(f"The user {_base(verb, 'third', 's')}{blank}{more}.", "the user")
    elif name := match["called"] or match["who"]:
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


def _base(verb: str, person: str = "second", ending: str = "") -> str:
    """Return a verb as it stands after "you", or in another person."""
    plain = f"{verb[:-3]}y" if verb.endswith("ies") else re.sub(r"(?<=ch)es$|(?<!s)s$", "", verb)
    base = _TEXTS["verbs"]["second"].get(verb, plain if len(plain) > 1 else verb)
    return str(_TEXTS["verbs"][person].get(base, f"{base}{ending}"))
