"""OfflineAssistant: a chat model without a language model, for a companion without a network.

It notes a few kinds of plain statements, greets, and answers questions by the words they share with what is in core
memory, in the conversation and in the archive. It says so where it knows nothing.
"""

from __future__ import annotations

import html
import re
from typing import Any

from langchain_core.messages import AIMessage, ToolMessage

from questbook.graphs.offline.assistant.interview import interviewed
from questbook.graphs.offline.assistant.noting import noted, words_of
from questbook.graphs.offline.offline_model import Asked, OfflineModel
from questbook.graphs.offline.offline_prompt import Prompt, object_of, text_of
from questbook.memory.buffer.summary import extend_summary
from questbook.memory.timeline.off_the_record import off_record
from questbook.notebooks import parse_fields

JSON = dict[str, Any]

_GREETING = re.compile(r"^\W*(?:hello|hi|hey|good (?:morning|evening|afternoon|day)|greetings)\b", re.I)
_WHO = re.compile(r"\bwho (?:are|am i talking)\b|\bwhat are you\b", re.I)
_DAY = re.compile(r"\b(\d{4}-\d{2}-\d{2}|today|yesterday)\b", re.I)
_TALKED = re.compile(r"\b(?:talk|talked|said|say|discuss|discussed|spoke|speak)\b", re.I)
_QUESTION = re.compile(r"\?\s*$|^\W*(?:what|who|whose|where|when|which|how|why|do|does|did|is|are|can)\b", re.I)
_FIELDS: list[tuple[re.Pattern[str], str, str]] = [
    (re.compile(r"\bmy name\b|\bwho am i\s*[?.!]*\s*$", re.I), "Name", "Your name is {}."),
    (re.compile(r"\bwhere do i live\b", re.I), "Lives in", "You live in {}."),
    (re.compile(r"\bwhat do i (?:like|love|enjoy)\b", re.I), "Likes", "You like {}."),
    (re.compile(r"\bwhat do i (?:dislike|hate|not like)\b", re.I), "Dislikes", "You dislike {}."),
    (re.compile(r"\b(?:what do i do|where do i work)\b", re.I), "Works as/at", "You work as or at {}."),
    (re.compile(r"\ballergic\b", re.I), "Allergic to", "You are allergic to {}."),
]
_UNKNOWN = "I do not know: neither my core memory nor the archive nor our conversation tells."
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

    @property
    def _llm_type(self) -> str:
        return "offline-assistant"

    def _reply(self, prompt: Prompt) -> tuple[str, list[Asked]]:
        if prompt.turns and prompt.tools:
            return "no change", []  # to keep pages takes a language model
        if prompt.missing:
            return interviewed(prompt)
        if prompt.turns:
            passages = [f"{turn.get('player', '')}. {turn.get('reply', '')}" for turn in prompt.turns]
            return extend_summary(prompt.summary, passages, 400) or "Nothing was said.", []
        results = _results(prompt)
        if results:
            return _after(results, prompt), []
        words, human = prompt.words, _human(prompt)
        if (private := off_record(words)) and not _QUESTION.search(words):
            return _PRIVATE, []
        if not private and "core_memory_append" in prompt.tools and (notes := noted(words, human)):
            hello = f"{_greeting(prompt)} " if _GREETING.search(words) else ""
            told = " ".join(note.told for note in notes)
            return f"{hello}{told}", [(note.tool, note.args) for note in notes]
        if _GREETING.search(words) and not _QUESTION.search(_GREETING.sub("", words)):
            return _greeting(prompt), []
        if _WHO.search(words):
            return f"{_section(prompt, 'persona')}\n\n{_MODEST}".strip(), []
        return self._answer_question(prompt, words, human) if _QUESTION.search(words) else (f"I see. {_MODEST}", [])

    def _answer_question(self, prompt: Prompt, words: str, human: str) -> tuple[str, list[Asked]]:
        if _TALKED.search(words) and (day := _DAY.search(words)):
            if about := words_of(_DAY.sub("", words)):
                within = {"query": " ".join(sorted(about)), "start": day[1], "end": day[1]}
                return "", [("conversation_search", within)]
            return "", [("conversation_search_date", {"start_date": day[1], "end_date": day[1]})]
        for pattern, field, told in _FIELDS:
            values = [line.partition(": ")[2] for line in human.split("\n") if line.startswith(f"{field}: ")]
            if pattern.search(words) and values:
                return told.format(" and ".join(values)), []
        wanted = words_of(words)
        if lines := [line for line in human.split("\n") if wanted & words_of(line)]:
            return f"I have this in my core memory: {'; '.join(lines)}.", []
        # Without the heading and the instruction around them, as the templates of the LTM extension have them.
        remembered = html.unescape(prompt.section("character_memories")).split("\n")[1:-1]
        best = max(remembered, key=lambda line: len(wanted & words_of(line)), default="")
        if wanted & words_of(best):
            said = best.strip('" ')
            return f"I remember this: “{said}”.", []
        if "archival_memory_search" in prompt.tools and wanted:
            asked = " ".join(sorted(wanted))
            return "", [("archival_memory_search", {"query": asked}), ("conversation_search", {"query": asked})]
        return _UNKNOWN, []


def _greeting(prompt: Prompt) -> str:
    name = next((line[6:] for line in _human(prompt).split("\n") if line.startswith("Name: ")), "")
    about = parse_fields(prompt.section("about"))
    away, turns = about.get("you_last_spoke"), about.get("earlier_turns")
    hello = f"Hello, {name}!" if name else "Hello!"
    if not turns or not away:
        return f"{hello} We have not talked before. What is on your mind?"
    return f"{hello} We last spoke {away}."


def _after(results: list[ToolMessage], prompt: Prompt) -> str:
    """Say what came of the tools."""
    failed = [text_of(result) for result in results if result.status == "error"]
    if failed:
        return f"That did not work, and nothing was changed: {failed[0].partition('. ')[0]}."
    wanted = words_of(prompt.words)
    by_day = any(result.name == "conversation_search_date" for result in results)
    lines = []
    for result in results:
        for line in text_of(result).split("\n"):
            found = object_of(line)
            said = str(found.get("text") or found.get("user") or "")
            if said and (
                by_day or (wanted & words_of(f"{said} {found.get('assistant', '')}") and said != prompt.words)
            ):
                source = "in the archive" if "text" in found else "you said"
                lines.append(f"{found.get('age', '')} {source}: “{' '.join(said.split())[:200]}”".strip())
    if not lines:
        return _UNKNOWN
    return "I found this: " + "; ".join(dict.fromkeys(lines[:5])) + "."


def _results(prompt: Prompt) -> list[ToolMessage]:
    """Return the results behind the last calls, if that is where the conversation stands."""
    results: list[ToolMessage] = []
    for message in reversed(prompt.conversation):
        if isinstance(message, ToolMessage):
            results.insert(0, message)
        else:
            # What an interview noted is no answer to anything.
            known = [result for result in results if result.name in prompt.tools]
            return known if isinstance(message, AIMessage) else []
    return results


def _section(prompt: Prompt, label: str) -> str:
    found = prompt.page("core_memory").get(label)
    return str(found.get("value") or "") if isinstance(found, dict) else ""


def _human(prompt: Prompt) -> str:
    return _section(prompt, "human")
