"""OfflineAssistant: a chat model without a language model, for a companion without a network.

It notes plain statements (`statements`), answers from what is in its prompt, and says “I do not know” otherwise.
"""

from __future__ import annotations

import re
from itertools import takewhile
from typing import ClassVar

from langchain_core.messages import ToolMessage

from questbook.graphs.offline.model import Answer, Call, OfflineModel, Prompt, unescape
from questbook.graphs.offline.statements import FORGET, Knowledge, Statement, keywords, read_statements, read_told
from questbook.memory.buffer.summary import extend_summary, extract
from questbook.memory.facts.fact import TOOL
from questbook.memory.recall.intents import off_record
from questbook.notebooks import parse_fields
from questbook.types import JSON

_GREETING = re.compile(r"^\W*(?:hello|hi|hey|good (?:morning|evening|afternoon|day)|greetings)\b", re.I)
_QUESTION = re.compile(r"\?\s*$|^\W*(?:what|who|whose|where|when|which|how|why|do|does|did|is|are|can)\b", re.I)
_TALK = re.compile(r"\bhow (?:are you|is it going)\b|^\W*(?:thanks|thank you|bye|goodbye|good night)\b", re.I)
_WHO = re.compile(r"\bwho (?:are you|am i talking)\b|\bwhat are you\b", re.I)
_REMEMBER = re.compile(r"\bremember(?: (?:that|this)\b:?|:)\s+(.{3,1000})", re.I | re.S)
_ARCHIVE = re.compile(r"\b(?:archive|put away)(?: (?:that|this)\b:?|:)\s+(.{3,10000})", re.I | re.S)
_OVER = "I take this as over: "
_CANNOT_END = "I cannot tell what that ends: tell me what to forget, such as “forget my car”."
_ONE_THING = "One thing at a time: I note what you say as it is."
_UNKNOWN = "I do not know."
_PRIVATE = (
    "Of this message I keep nothing: not in my core memory, and not in what I can search later. What you said before "
    "it stays; /forget takes words out."
)
_MODEST = (
    "I am only the built-in offline assistant, made of a few rules: tell me your name, what you like, where you live; "
    "ask me what I know, or start me with a language model."
)


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
            turns = [{"player": "", "reply": ""} | turn for turn in prompt.turns]
            sentences = [sentence for turn in turns for sentence in extract(turn)]
            return Answer(extend_summary(prompt.summary, sentences, 400) or "Nothing was said.")
        if results := [
            *takewhile(lambda message: isinstance(message, ToolMessage), reversed([*prompt.before, *prompt.turn]))
        ]:
            failed = [one.text for one in results if isinstance(one, ToolMessage) and one.status == "error"]
            if failed or any(one.name in prompt.tools for one in results):  # an interview's results do not count
                return Answer(f"That did not work: {failed[-1].partition('. ')[0]}." if failed else "That is done.")
        asked = [part for part in re.split(r"(?<=[.!?;])\s+|\n+", prompt.words) if _QUESTION.search(part)]
        private, known = off_record(prompt.words), _knowledge(prompt)
        if private and not asked:
            return Answer(_PRIVATE)
        noted = Answer("") if private else _note(prompt, known)
        replies = [*(_answer(prompt, question, known) for question in asked), noted.text]
        if _GREETING.search(prompt.words):
            replies.insert(0, _greeting(prompt, known))
        if not any(replies) and not asked:
            modest = any(_MODEST in reply for _, reply in prompt.exchanges())
            replies = [
                "You are welcome." if _TALK.search(prompt.words) else "I see." if modest else f"I see. {_MODEST}"
            ]
        return Answer(" ".join(filter(None, dict.fromkeys(replies))), noted.calls)


def _note(prompt: Prompt, known: Knowledge) -> Answer:
    """Take in what a message tells, ends, or asks to keep: say so, and write it to core memory or the archive."""
    words, human, calls, replies = prompt.words, _block(prompt, "human"), list[Call](), list[str]()
    lines, limit = human.split("\n") if human else [], _block(prompt, "human", "limit")
    if match := _ARCHIVE.search(words):
        insert = Call("archival_memory_insert", {"content": match[1].strip()})
        return Answer("I have put that into archival memory.", [insert])
    over, statements = known.ended_by(words, read_statements(words)), _told_in(words)
    known.end(over or ())
    known.tell(statements)
    for one in (one for one in statements if one.subject == "the user" and one.text not in lines):
        old = next((old for old in lines if one.slot in (told.slot for told in read_told(old))), "")
        if old:
            calls.append(_on_human("replace", old_content=old, new_content=one.text))
        elif len("\n".join([*lines, one.text])) <= int(limit or 0):  # what does not fit is noted as a fact alone
            calls.append(_on_human("append", content=one.text))
        else:
            continue
        lines = [*(line for line in lines if line != old), one.text]
    if statements:
        replies.append(f"I note: {' '.join(one.said for one in statements)}")
    elif match := _REMEMBER.search(words):
        calls.append(_on_human("append", content=match[1].strip()))
        replies.append("I will remember that.")
    if over or (over is not None and not statements):
        meant = keywords(FORGET.split(words, maxsplit=1)[-1]) if FORGET.search(words) else None
        told = {one.text for one in over}
        gone = [
            line for line in lines if line in told or (meant and meant <= keywords(line) and human.count(line) == 1)
        ]
        calls += [_on_human("remove", content=line) for line in gone]
        known_over = f"{_OVER}{' '.join(one.said for one in over)}"
        replies.append(known_over if over else "I have taken that out." if gone else _CANNOT_END)
    return Answer(" ".join(replies), calls if "core_memory_append" in prompt.tools else ())


def _answer(prompt: Prompt, question: str, known: Knowledge) -> str:
    """Answer a question from what is known, else from what was said or kept that has most of its words."""
    if _TALK.search(question):
        return "I am well, thank you."
    if _WHO.search(question):
        return f"{_block(prompt, 'persona')}\n\n{_MODEST}".strip()
    if found := known.answer(question):
        return found
    # The first and last lines are the heading and the instruction of the LTM extension's templates.
    kept = [*_block(prompt, "human").split("\n"), *unescape(prompt.section("character_memories")).split("\n")[1:-1]]
    told = [*(str(memory.get("user") or "") for memory in prompt.memories), *(words for words, _ in prompt.exchanges())]
    kept += [words for words in told if not (FORGET.search(words) or _REMEMBER.search(words) or off_record(words))]
    wanted = keywords(question)
    # A statement is known, or has ended since; one word alone finds what is not meant.
    quotes = [
        " ".join(line.split()).strip('" ')[:200]
        for line in kept
        if (len(wanted) > 1 or line not in told) and 2 * len(wanted & keywords(line)) > len(wanted)
        if not (_QUESTION.search(line) or read_told(line))
    ]
    quoted = "; ".join(f"“{quote}”" for quote in dict.fromkeys(quotes[-3:]))
    return f"I remember this: {quoted}" if quoted else _UNKNOWN


def _knowledge(prompt: Prompt) -> Knowledge:
    """Take together what facts, the conversation and core memory tell, the older first.

    Core memory is the newest: what was told is noted there, and a person may have edited it since; unless a later fact
    has ended what it tells.
    """
    known, core = Knowledge(), read_told(_block(prompt, "human"))
    known.tell(core)
    for memory in sorted(prompt.memories, key=lambda memory: int(memory.get("turn") or 0)):
        if not memory.keys() & {"claimed_by", "rumour", "until"}:
            known.tell(read_told(str(memory.get("fact") or "")))
    for words, reply in prompt.exchanges():
        known.end(_ended_in(reply))
        known.tell(_told_in(words))
    if not prompt.section("outdated"):
        known.tell(core)
    return known


def _told_in(words: str) -> list[Statement]:
    kept = off_record(words) or _ARCHIVE.search(words) or FORGET.search(words)
    return [] if kept else [one for one in read_statements(words) if not one.ends]


def _ended_in(reply: str) -> list[Statement]:
    """Return what the assistant has told the person that it takes as over."""
    return read_told(reply.partition(_OVER)[2])


def _note_facts(turns: list[JSON]) -> Answer:
    """Hand over what turns told, and what they ended, as facts."""
    facts = list[JSON]()
    for turn in turns:
        ended = _ended_in(str(turn.get("assistant") or ""))
        for one in (*ended, *_told_in(str(turn.get("user") or ""))):
            fact: JSON = {"text": one.text, "subject": one.subject, "attribute": one.slot.partition("|")[2]}
            over = {"ends": True, "claimed_by": "the user"} if one in ended else {}  # in the assistant's words alone
            facts.append({**fact, "kind": "trait", "importance": 6, **over})
    return Answer("", [Call(TOOL, {"facts": facts})]) if facts else Answer("no change")


def _on_human(edit: str, **args: str) -> Call:
    return Call(f"core_memory_{edit}", {"label": "human", **args})


def _interview(prompt: Prompt) -> Answer:
    """Take the person's words as the answer to the last question, if there was one; ask for the next field."""
    ask = [f"Please tell me your {field.replace('_', ' ')}." for field in prompt.missing]
    if isinstance(prompt.last, ToolMessage):
        refusal = f"{prompt.last.text.partition('. ')[2]} " if prompt.last.status == "error" else ""
        return Answer(f"{refusal}{ask[0]}")
    if not prompt.asked_last.endswith(ask[0]):
        return Answer(ask[0])
    words, again = prompt.words.strip(), prompt.asked_last.startswith(_ONE_THING)
    many = re.search(r"[.;!]\s+\w|\n", words) and not again
    if _QUESTION.search(words) or _GREETING.search(words) or many:
        return Answer(f"{_ONE_THING} {ask[0]}")
    [tool], field = prompt.tools, prompt.missing[0]
    value = re.sub(rf"^(?:my|the) {re.escape(field.replace('_', ' '))} is\s+", "", words.rstrip("."), flags=re.I)
    return Answer(ask[1] if len(ask) > 1 else "Thank you.", [Call(tool, {field: value})])


def _greeting(prompt: Prompt, known: Knowledge) -> str:
    name = known.answer("What is my name?").removeprefix("Your name is ").rstrip(".")
    about, hello = parse_fields(prompt.section("about")), f"Hello, {name}!" if name else "Hello!"
    if not about.get("earlier_turns") or not about.get("you_last_spoke"):
        return f"{hello} We have not talked before."
    return f"{hello} We last spoke {about['you_last_spoke']}."


def _block(prompt: Prompt, label: str, field: str = "value") -> str:
    """Return the text of a core memory block, or another field of it."""
    block = prompt.page("core_memory").get(label)
    return str(block.get(field) or "") if isinstance(block, dict) else ""
