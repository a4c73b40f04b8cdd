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
from questbook.memory.buffer.summary import extend_summary, extract
from questbook.memory.timeline.privacy import off_record
from questbook.notebooks import parse_fields

_GREETING = re.compile(r"^\W*(?:hello|hi|hey|good (?:morning|evening|afternoon|day)|greetings)\b", re.I)
_WHO = re.compile(r"\bwho (?:are|am i talking)\b|\bwhat are you\b", re.I)
_DAY = re.compile(r"\b(\d{4}-\d{2}-\d{2}|today|yesterday)\b", re.I)
_TALKED = re.compile(r"\b(?:talk|talked|said|say|discuss|discussed|spoke|speak)\b", re.I)
_QUESTION = re.compile(r"\?\s*$|^\W*(?:what|who|whose|where|when|which|how|why|do|does|did|is|are|can)\b", re.I)
_FIELD_ANSWERS: list[tuple[re.Pattern[str], str, str]] = [
    (re.compile(r"\bmy name\b|\bwho am i[\s?.!]*$", re.I), "Name", "Your name is {}."),
    (re.compile(r"\bwhere do i live\b", re.I), "Lives in", "You live in {}."),
    (re.compile(r"\bwhat do i (?:like|love|enjoy)\b", re.I), "Likes", "You like {}."),
    (re.compile(r"\bwhat do i (?:dislike|hate|not like)\b", re.I), "Dislikes", "You dislike {}."),
    (re.compile(r"\b(?:what do i do|where do i work)\b", re.I), "Works as/at", "You work as or at {}."),
    (re.compile(r"\ballergic\b", re.I), "Allergic to", "You are allergic to {}."),
]
"""A question, the field of core memory that answers it, and the sentence that says it."""
_END = r"(?=[.,;!?\n]|\s+(?:and|but)\s+(?:i|my)\b|$)"
_STATEMENTS: list[tuple[re.Pattern[str], str]] = [
    (re.compile(rf"\bmy name is\s+(\S.{{0,59}}?){_END}", re.I), "Name"),
    (re.compile(rf"\b(?:please )?call me\s+(\S.{{0,59}}?){_END}", re.I), "Name"),
    (re.compile(rf"\bi (?:live in|moved to)\s+(\S.{{0,79}}?){_END}", re.I), "Lives in"),
    (re.compile(rf"\bi work (?:as|at|for)\s+(\S.{{0,79}}?){_END}", re.I), "Works as/at"),
    (re.compile(rf"\bi(?: really)? (?:like|love|enjoy)\s+(\S.{{0,119}}?){_END}", re.I), "Likes"),
    (re.compile(rf"\bi (?:hate|dislike|do not like|don['’]t like)\s+(\S.{{0,119}}?){_END}", re.I), "Dislikes"),
    (re.compile(rf"\bi(?: am|['’]m) allergic to\s+(\S.{{0,79}}?){_END}", re.I), "Allergic to"),
]
"""What a person says of themselves, and the field of core memory that it goes to."""
_SINGLE = frozenset({"Name", "Lives in", "Works as/at"})
"""Fields that hold one value: a new one replaces the old one."""
_REMEMBER = re.compile(r"\bremember(?: (?:that|this)\b:?|:)\s+(.{3,1000})", re.I | re.S)
_ARCHIVE = re.compile(r"\b(?:archive|keep for later|put away)(?: (?:that|this)\b:?|:)\s+(.{3,10000})", re.I | re.S)
_FORGET = re.compile(r"\bforget (?:that )?(.{2,200}?)[.!]*$", re.I)
_SMALL_WORDS = (
    "a about all am an and are as at be can could did do does for from had has have he her his i in is it its like "
    "likes me my of on or our please s she so that the their them they this to us was we were what when where which "
    "who whom whose why will with would you your know tell remember said say talk talked"
)
_STOP_WORDS = frozenset(_SMALL_WORDS.split())

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
        if not private and "core_memory_append" in prompt.tools and (edits := read_edits(words, human)):
            hello = [_greeting(prompt)] if _GREETING.search(words) else []
            return Answer(" ".join([*hello, *(edit.sentence for edit in edits)]), [edit.call for edit in edits])
        if _GREETING.search(words) and not _QUESTION.search(_GREETING.sub("", words)):
            return Answer(_greeting(prompt))
        if _WHO.search(words):
            return Answer(f"{_block(prompt, 'persona')}\n\n{_MODEST}".strip())
        return _answer_question(prompt, words, human) if _QUESTION.search(words) else Answer(f"I see. {_MODEST}")


def read_edits(words: str, human: str) -> list[Edit]:
    """Read what a message asks to note, to keep or to take out.

    Args:
        words: The person's message.
        human: The text of the core memory block "human", one fact a line.
    """
    if words.rstrip().endswith("?"):
        return []
    if match := _ARCHIVE.search(words):
        call = Call("archival_memory_insert", {"content": match[1].strip()})
        return [Edit(call, "I have put that into archival memory.")]
    if match := _FORGET.search(words):
        return _removals(match[1], human)
    if match := _REMEMBER.search(words):
        return [Edit(_on_human("append", content=match[1].strip()), "I will remember that.")]
    edits: list[Edit] = []
    lines = human.split("\n")
    for pattern, field in _STATEMENTS:
        for match in pattern.finditer(words):
            line = f"{field}: {match[1].strip()}"
            old = next((known for known in lines if known.startswith(f"{field}: ")), "")
            if line in lines:
                continue
            lines.append(line)
            if field in _SINGLE and old and human.count(old) == 1:
                call = _on_human("replace", old_content=old, new_content=line)
                edits.append(Edit(call, f"I have noted “{line}” in place of “{old}”."))
            else:
                edits.append(Edit(_on_human("append", content=line), f"I have noted “{line}”."))
    return edits


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


def _answer_question(prompt: Prompt, words: str, human: str) -> Answer:
    if _TALKED.search(words) and (day := _DAY.search(words)):
        if about := _keywords(_DAY.sub("", words)):
            within = {"query": " ".join(sorted(about)), "start": day[1], "end": day[1]}
            return Answer("", [Call("conversation_search", within)])
        return Answer("", [Call("conversation_search_date", {"start_date": day[1], "end_date": day[1]})])
    lines = human.split("\n")
    for pattern, field, sentence in _FIELD_ANSWERS:
        values = [line.partition(": ")[2] for line in lines if line.startswith(f"{field}: ")]
        if pattern.search(words) and values:
            return Answer(sentence.format(" and ".join(values)))
    wanted = _keywords(words)
    if matches := [line for line in lines if wanted & _keywords(line)]:
        return Answer(f"I have this in my core memory: {'; '.join(matches)}.")
    # The first and last lines are the heading and the instruction of the LTM extension's templates.
    remembered = unescape(prompt.section("character_memories")).split("\n")[1:-1]
    best = max(remembered, key=lambda line: len(wanted & _keywords(line)), default="")
    if wanted & _keywords(best):
        quote = best.strip('" ')
        return Answer(f"I remember this: “{quote}”.")
    if "archival_memory_search" in prompt.tools and wanted:
        query = {"query": " ".join(sorted(wanted))}
        return Answer("", [Call("archival_memory_search", query), Call("conversation_search", query)])
    return Answer(_UNKNOWN)


def _greeting(prompt: Prompt) -> str:
    name = next((line[6:] for line in _human(prompt).split("\n") if line.startswith("Name: ")), "")
    about = parse_fields(prompt.section("about"))
    away, turns = about.get("you_last_spoke"), about.get("earlier_turns")
    hello = f"Hello, {name}!" if name else "Hello!"
    if not turns or not away:
        return f"{hello} We have not talked before. What is on your mind?"
    return f"{hello} We last spoke {away}."


def _report(results: list[ToolMessage], prompt: Prompt) -> str:
    """Say what came of the tools."""
    failures = [text_of(result) for result in results if result.status == "error"]
    if failures:
        return f"That did not work, and nothing was changed: {failures[0].partition('. ')[0]}."
    wanted = _keywords(prompt.words)
    by_day = any(result.name == "conversation_search_date" for result in results)
    quotes = []
    for line in (line for result in results for line in text_of(result).split("\n")):
        record = read_object(line)
        text = str(record.get("text") or record.get("user") or "")
        fits = wanted & _keywords(f"{text} {record.get('assistant', '')}") and text != prompt.words
        if text and (by_day or fits):
            source = "in the archive" if "text" in record else "you said"
            quotes.append(f"{record.get('age', '')} {source}: “{' '.join(text.split())[:200]}”".strip())
    return f"I found this: {'; '.join(dict.fromkeys(quotes[:5]))}." if quotes else _UNKNOWN


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
