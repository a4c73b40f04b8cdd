"""OfflineAssistant: a chat model without a language model, for a companion without a network.

It notes a few kinds of plain statements, greets, and answers questions by the words they share with core memory, the
conversation and the archive. Where it knows nothing, it says so.
"""

from __future__ import annotations

import re
from typing import ClassVar, NamedTuple

from langchain_core.messages import AIMessage, ToolMessage

from questbook.graphs.offline.model import Answer, Call, OfflineModel
from questbook.graphs.offline.prompt import Prompt, read_object, text_of, unescape
from questbook.graphs.offline.questions import Knowledge, answer
from questbook.graphs.offline.statements import (
    RELATION,
    USER,
    Statement,
    Truth,
    is_plain,
    last_subject,
    read_statements,
)
from questbook.memory.buffer.summary import extend_summary, extract
from questbook.memory.facts.fact import TOOL
from questbook.memory.timeline.off_record import off_record
from questbook.notebooks import parse_fields
from questbook.types import JSON

_GREETING = re.compile(r"^\W*(?:hello|hi|hey|good (?:morning|evening|afternoon|day)|greetings)\b", re.I)
_WHO = re.compile(r"\bwho (?:are|am i talking)\b|\bwhat are you\b", re.I)
_DAY = re.compile(r"\b(\d{4}-\d{2}-\d{2}|today|yesterday)\b", re.I)
_TALKED = re.compile(r"\b(?:talk|talked|said|say|discuss|discussed|spoke|speak)\b", re.I)
_QUESTION = re.compile(r"\?\s*$|^\W*(?:what|who|whose|where|when|which|how|why|do|does|did|is|are|can)\b", re.I)
_FIELDS = {"name": "Name", "home": "Lives in", "job": "Works as/at", "workplace": "Works as/at"}
"""Attributes that have one value, and the field of core memory that they go to; a new value replaces the old one."""
_LISTS = {("likes ", True): "Likes", ("likes ", False): "Dislikes", ("allergy to ", True): "Allergic to"}
"""Beginnings of attributes that hold side by side, and whether they are so; each goes to a line of its own."""
_IMPORTANCE = {"name": 8, "home": 7, "job": 7, "workplace": 7, RELATION: 7}
_SMALL_TALK: list[tuple[re.Pattern[str], str]] = [
    (re.compile(r"\bhow (?:are you|do you do|is it going)\b|\bhow['’]s it going\b", re.I), "I am well, thank you."),
    (re.compile(r"^\W*(?:many )?(?:thanks|thank you|thx)\b", re.I), "You are welcome."),
    (re.compile(r"\bremind me (?:to|of|about|that)\b", re.I), "I cannot call you by myself; ask me, and I will know."),
    (re.compile(r"^\W*(?:bye|goodbye|good night|see you|cheers)\b", re.I), "Goodbye! I keep what you told me."),
]
_REMEMBER = re.compile(r"\bremember(?: (?:that|this)\b:?|:)\s+(.{3,1000})", re.I | re.S)
_ARCHIVE = re.compile(r"\b(?:archive|keep for later|put away)(?: (?:that|this)\b:?|:)\s+(.{3,10000})", re.I | re.S)
_FORGET = re.compile(r"\bforget (?:that )?(.{2,200}?)[.!]*$", re.I)
_OWNED = re.compile(r"(?:about )?(?:my|our) ([a-z][\w-]*(?: [a-z][\w-]*)?)", re.I)
_PARTED = re.compile(r"\b(?:divorced|died|passed away|split up|broke up)\b", re.I)
_CANNOT_END = "I am sorry. I cannot tell what that changes: tell me what to forget, such as “forget my car”."
_SMALL_WORDS = (
    "a about all am an and are as at be can could did do does for from had has have he her his i in is it its like "
    "likes me my of on or our please s she so that the their them they this to us was we were what when where which "
    "who whom whose why will with would you your know tell remember said say talk talked"
)
_STOP_WORDS = frozenset(_SMALL_WORDS.split())
_ENOUGH = 0.5  # share of a question's words that a text needs to be quoted

_PARTS = re.compile(r"(?<=[.!?;])\s+|\n+")
_SENTENCES = re.compile(r"[.;!]\s+\w|\n")
_ONE_THING = "One thing at a time: I note what you say as it is."
_ASK_FOR = "Please tell me your {}."
_UNKNOWN = "I do not know: neither my core memory nor the archive nor our conversation tells."
_PRIVATE = (
    "Of this message I keep nothing: not in my core memory, and not in what I can search later. What you said before "
    "it stays; /forget takes words out."
)
_MODEST = (
    "I am only the built-in offline assistant, made of a few rules: tell me your name, what you like, where you live; "
    "ask me what I know, or start me with a language model."
)


class Edit(NamedTuple):
    """A call that edits memory, and the sentence that tells the person of it."""

    call: Call
    sentence: str


class OfflineAssistant(OfflineModel):
    """A personal assistant made of a few rules."""

    longest: ClassVar[int] = 12_000  # a passage for the archive may have 10,000

    @property
    def _llm_type(self) -> str:
        return "offline-assistant"

    def _reply(self, prompt: Prompt) -> Answer:
        if prompt.turns and TOOL in prompt.tools:
            return _note_facts(prompt.turns)
        if prompt.turns and prompt.tools:
            return Answer("no change")  # to keep pages takes a language model
        if prompt.missing:
            return _interview(prompt)
        if prompt.turns:
            turns = [{"player": "", "reply": ""} | turn for turn in prompt.turns]
            sentences = [sentence for turn in turns for sentence in extract(turn)]
            return Answer(extend_summary(prompt.summary, sentences, 400) or "Nothing was said.")
        if results := _results(prompt):
            return Answer(_report(results, prompt))
        words, human = prompt.words, _human(prompt)
        private = off_record(words)
        if private and not _QUESTION.search(words):
            return Answer(_PRIVATE)
        known, last = _knowledge(prompt)
        edits = read_edits(words, human) if not private and "core_memory_append" in prompt.tools else []
        statements = [] if private or _command(words) else read_statements(words, last)
        known.tell(statements)
        hello = [_greeting(prompt, statements)] if _GREETING.search(words) else []
        calls = [edit.call for edit in edits]
        replies = [*dict.fromkeys(edit.sentence for edit in edits), *_acknowledge(statements, edits)]
        asked = [part for part in _PARTS.split(words) if part.rstrip().endswith("?") or _QUESTION.search(part)]
        if not asked or _command(words):
            replies += [talk for pattern, talk in _SMALL_TALK if pattern.search(words)]
            if not replies and _FORGET.search(words):
                replies.append("I will not go by that any more.")
            elif not statements and _PARTED.search(words):
                replies.append(_CANNOT_END)
            return Answer(" ".join([*hello, *replies]) or _answer_unread(prompt), calls)
        for question in asked:
            reply = _answer_question(prompt, question, human, known, last_subject(statements, last))
            if reply.calls and (calls or replies or len(asked) > 1):
                reply = Answer(_UNKNOWN)
            calls += reply.calls
            replies += [reply.text] if reply.text else []
        return Answer(" ".join([*hello, *dict.fromkeys(replies)]), calls)


def read_edits(words: str, human: str) -> list[Edit]:
    """Read what a message asks to note, to keep or to take out.

    Args:
        words: The person's message.
        human: The text of the core memory block "human", one fact a line.
    """
    if match := _ARCHIVE.search(words):
        call = Call("archival_memory_insert", {"content": match[1].strip()})
        return [Edit(call, "I have put that into archival memory.")]
    if match := _FORGET.search(words):
        return _removals(match[1], human)
    statements = read_statements(words)
    if (match := _REMEMBER.search(words)) and not any(_field(one) for one in statements):
        return [Edit(_on_human("append", content=match[1].strip()), "I will remember that.")]
    edits: list[Edit] = []
    lines = human.split("\n")
    for one in statements:
        field = _field(one)
        if not field:
            continue
        value = one.value if one.attribute in _FIELDS else one.attribute.partition(" ")[2].removeprefix("to ")
        line = f"{field}: {value}"
        opposite = {"Likes": f"Dislikes: {value}", "Dislikes": f"Likes: {value}"}.get(field, "")
        ended = one.truth is not Truth.YES and (one.attribute in _FIELDS or field == "Allergic to")
        if gone := [old for old in lines if old in (opposite, line if ended else "") and old and human.count(old) == 1]:
            lines.remove(gone[0])
            edits.append(Edit(_on_human("remove", content=gone[0]), f"I have taken out “{gone[0]}”."))
        if line in lines or ended or one.truth is Truth.ENDED:
            continue
        old = next((known for known in lines if known.startswith(f"{field}: ")), "")
        lines.append(line)
        if one.attribute in _FIELDS and old and human.count(old) == 1:
            lines.remove(old)
            call = _on_human("replace", old_content=old, new_content=line)
            edits.append(Edit(call, f"I have noted “{line}” in place of “{old}”."))
        else:
            edits.append(Edit(_on_human("append", content=line), f"I have noted “{line}”."))
    return edits


def _field(one: Statement) -> str:
    """Return the field of core memory that a statement of the user goes to; "" if none."""
    if one.subject != USER:
        return ""
    begin = f"{one.attribute.partition(' ')[0]} "
    begin = "allergy to " if begin == "allergy " else begin
    return (
        _FIELDS.get(one.attribute)
        or _LISTS.get((begin, one.truth is Truth.YES), "")
        or ("Likes" if begin == "likes " else "Allergic to" if begin == "allergy to " else "")
    )


def _command(words: str) -> bool:
    """Whether a message asks to keep or to take out its words, rather than tells something."""
    return bool(_ARCHIVE.search(words) or _FORGET.search(words))


def _knowledge(prompt: Prompt) -> tuple[Knowledge, str]:
    """Take together what memories, the conversation and core memory tell; whom one talked of last comes beside it."""
    known, last = Knowledge(), ""
    memories = sorted(prompt.memories, key=lambda memory: int(memory.get("turn") or 0))
    for memory in memories:
        if not memory.get("claimed_by") and "rumour" not in memory:
            known.tell(read_statements(str(memory.get("fact") or "")))
            known.tell(_statements_in(str(memory.get("user") or ""), ""))
    for words, _ in prompt.exchanges():
        statements = _statements_in(words, last)
        known.tell(statements)
        last = last_subject(statements, last)
    fields = {"Name": "name", "Lives in": "home"}
    for line in _human(prompt).split("\n"):
        field, _, value = line.partition(": ")
        if field in fields:
            known.tell([Statement(USER, fields[field], value)])
        elif begin := next((begin for (begin, _), own in _LISTS.items() if own == field), ""):
            truth = Truth.NO if field == "Dislikes" else Truth.YES
            known.tell([Statement(USER, begin + value, "no" if field == "Dislikes" else "yes", truth)])
        else:
            known.tell(read_statements(line))
    return known, last


def _statements_in(words: str, last: str) -> list[Statement]:
    """Read what a message told; what it asks to forget is not known any more."""
    if off_record(words):
        return []
    if match := _FORGET.search(words):
        if owned := _OWNED.fullmatch(match[1]):
            return [Statement(USER, owned[1].lower(), "", Truth.FORGOTTEN)]
        return [one._replace(truth=Truth.FORGOTTEN) for one in read_statements(match[1], last)]
    return read_statements(words, last) if not _ARCHIVE.search(words) else []


def _note_facts(turns: list[JSON]) -> Answer:
    """Hand over what turns told as facts."""
    facts: list[JSON] = []
    last = ""
    for turn in turns:
        statements = _statements_in(str(turn.get("user") or ""), last)
        last = last_subject(statements, last)
        for one in statements:
            ends = one.truth is not Truth.YES and is_plain(one.attribute)
            value = f"{Truth.ENDED.value} {one.value}" if ends else one.value
            fact: JSON = {"text": one.text, "subject": one.subject, "attribute": one.attribute, "value": value}
            if one.truth is Truth.FORGOTTEN and not one.value:
                fact |= {"text": f"{one.subject}: {one.attribute}.", "value": "", "ends": True}
            facts.append(fact | {"kind": "trait", "importance": _IMPORTANCE.get(one.attribute, 5)})
    return Answer("", [Call(TOOL, {"facts": facts})]) if facts else Answer("no change")


def _acknowledge(statements: list[Statement], edits: list[Edit]) -> list[str]:
    """Repeat what was told and is not in a line of core memory that was just edited."""
    noted = " ".join(edit.sentence for edit in edits).casefold()
    new = [one for one in statements if not (edits and _field(one) and one.attribute.split()[-1].casefold() in noted)]
    new = [one for one in new if not (_field(one) and one.value.casefold() in noted)]
    return [f"I see: {' '.join(_lower_first(one.answer) for one in new)}"] if new else []


def _lower_first(sentence: str) -> str:
    return f"{sentence[0].lower()}{sentence[1:]}" if sentence.startswith(("You", "Your")) else sentence


def _answer_unread(prompt: Prompt) -> str:
    """Say that nothing was made of a message; what the assistant is, it says once."""
    modest = any(_MODEST in reply for _, reply in prompt.exchanges())
    return "I see." if modest else f"I see. {_MODEST}"


def _removals(what: str, human: str) -> list[Edit]:
    wanted = _keywords(what)
    lines = [line for line in human.split("\n") if line.strip() and wanted & _keywords(line)]
    return [
        Edit(_on_human("remove", content=line), f"I have taken out “{line}”.")
        for line in lines
        if human.count(line) == 1
    ]


def _on_human(edit: str, **args: str) -> Call:
    return Call(f"core_memory_{edit}", {"label": "human", **args})


def _interview(prompt: Prompt) -> Answer:
    """Take the person's words as the answer to the last question, if there was one; ask for the next field."""
    first, *others = prompt.missing
    if isinstance(prompt.last, ToolMessage):
        refusal = f"{text_of(prompt.last).partition('. ')[2]} " if prompt.last.status == "error" else ""
        return Answer(f"{refusal}{_ask_for(first)}")
    if not prompt.asked_last.endswith(_ask_for(first)):
        return Answer(_ask_for(first))
    words, again = prompt.words.strip(), prompt.asked_last.startswith(_ONE_THING)
    if _QUESTION.search(words) or _GREETING.search(words) or (_SENTENCES.search(words) and not again):
        return Answer(f"{_ONE_THING} {_ask_for(first)}")
    [tool] = prompt.tools
    value = re.sub(rf"^(?:my|the) {re.escape(first.replace('_', ' '))} is\s+", "", words.rstrip("."), flags=re.I)
    return Answer(_ask_for(others[0]) if others else "Thank you.", [Call(tool, {first: value})])


def _ask_for(field: str) -> str:
    return _ASK_FOR.format(field.replace("_", " "))


def _answer_question(prompt: Prompt, words: str, human: str, known: Knowledge, last: str) -> Answer:
    for pattern, talk in _SMALL_TALK:
        if pattern.search(words):
            return Answer(talk)
    if _WHO.search(words):
        return Answer(f"{_block(prompt, 'persona')}\n\n{_MODEST}".strip())
    if _TALKED.search(words) and (day := _DAY.search(words)):
        if about := _keywords(_DAY.sub("", words)):
            within = {"query": " ".join(sorted(about)), "start": day[1], "end": day[1]}
            return Answer("", [Call("conversation_search", within)])
        return Answer("", [Call("conversation_search_date", {"start_date": day[1], "end_date": day[1]})])
    asked = answer(words, known, last)
    if asked and asked.reply:
        return Answer(asked.reply)
    wanted, lines = _keywords(words), [line for line in human.split("\n") if not _is_field(line)]
    if matches := [line for line in lines if _covers(line, wanted)]:
        return Answer(f"I have this in my core memory: {'; '.join(matches)}.")
    # The first and last lines are the heading and the instruction of the LTM extension's templates.
    remembered = unescape(prompt.section("character_memories")).split("\n")[1:-1]
    best = max(remembered, key=lambda line: len(wanted & _keywords(line)), default="")
    if _covers(best, wanted):
        quote = best.strip('" ')
        return Answer(f"I remember this: “{quote}”.")
    if asked and len(wanted) == 1:
        return Answer(asked.unknown)  # "Where do I live?": what else was said of living is no answer
    if "archival_memory_search" in prompt.tools and wanted:
        query = {"query": " ".join(sorted(wanted))}
        return Answer("", [Call("archival_memory_search", query), Call("conversation_search", query)])
    return Answer(asked.unknown if asked else _UNKNOWN)


def _is_field(line: str) -> bool:
    return line.partition(": ")[0] in {*_FIELDS.values(), *_LISTS.values()}


def _covers(text: str, wanted: frozenset[str]) -> bool:
    """Whether a text has enough of a question's words to be an answer."""
    return bool(wanted) and len(wanted & _keywords(text)) > _ENOUGH * len(wanted)


def _greeting(prompt: Prompt, statements: list[Statement]) -> str:
    name = next((line[6:] for line in _human(prompt).split("\n") if line.startswith("Name: ")), "")
    name = next((one.value for one in statements if (one.subject, one.attribute) == (USER, "name")), name)
    about = parse_fields(prompt.section("about"))
    away, turns = about.get("you_last_spoke"), about.get("earlier_turns")
    hello = f"Hello, {name}!" if name else "Hello!"
    if statements:
        return hello
    if not turns or not away:
        return f"{hello} We have not talked before. What is on your mind?"
    return f"{hello} We last spoke {away}."


def _report(results: list[ToolMessage], prompt: Prompt) -> str:
    """Say what came of the tools."""
    failures = [text_of(result) for result in results if result.status == "error"]
    if failures:
        return f"That did not work, and nothing was changed: {failures[0].partition('. ')[0]}."
    wanted = _keywords(_DAY.sub("", prompt.words))
    known, last = _knowledge(prompt)
    asked = answer(prompt.words, known, last)
    by_day = any(result.name == "conversation_search_date" for result in results)
    quotes = []
    for line in (line for result in results for line in text_of(result).split("\n")):
        record = read_object(line)
        text = str(record.get("text") or record.get("user") or "")
        fits = _covers(f"{text} {record.get('assistant', '')}", wanted) and not text.rstrip().endswith("?")
        if text and (by_day or (fits and not (asked and read_statements(text)))):  # what was read does not answer
            source = "in the archive" if "text" in record else "you said"
            quotes.append(f"{record.get('age', '')} {source}: “{' '.join(text.split())[:200]}”".strip())
    if quotes:
        return f"I found this: {'; '.join(dict.fromkeys(quotes[:5]))}"
    return asked.unknown if asked else _UNKNOWN


def _results(prompt: Prompt) -> list[ToolMessage]:
    """Return the results of the last calls if the conversation ends with them; an interview's results do not count."""
    results: list[ToolMessage] = []
    for message in reversed(prompt.conversation):
        if not isinstance(message, ToolMessage):
            own = [result for result in results if result.name in prompt.tools]
            return own if isinstance(message, AIMessage) else []
        results.insert(0, message)
    return results


def _block(prompt: Prompt, label: str) -> str:
    """Return the text of a core memory block."""
    block = prompt.page("core_memory").get(label)
    return str(block.get("value") or "") if isinstance(block, dict) else ""


def _human(prompt: Prompt) -> str:
    return _block(prompt, "human")


def _keywords(text: str) -> frozenset[str]:
    """Return the words of a text that count, in small letters and without a plural's ending."""
    words = re.findall(r"[^\W_]+", text.casefold())
    return frozenset(word.removesuffix("s") for word in words if word not in _STOP_WORDS and len(word) > 1)
