"""What a person says of themselves in plain sentences, and the edits of core memory that note it."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

JSON = dict[str, Any]

_END = r"(?=[.,;!?\n]|\s+(?:and|but)\s+(?:i|my)\b|$)"
_FACTS: list[tuple[re.Pattern[str], str]] = [
    (re.compile(rf"\bmy name is\s+(.{{1,60}}?){_END}", re.I), "Name"),
    (re.compile(rf"\b(?:please )?call me\s+(.{{1,60}}?){_END}", re.I), "Name"),
    (re.compile(rf"\bi live in\s+(.{{1,80}}?){_END}", re.I), "Lives in"),
    (re.compile(rf"\bi moved to\s+(.{{1,80}}?){_END}", re.I), "Lives in"),
    (re.compile(rf"\bi work (?:as|at|for)\s+(.{{1,80}}?){_END}", re.I), "Works as/at"),
    (re.compile(rf"\bi(?: really)? (?:like|love|enjoy)\s+(.{{1,120}}?){_END}", re.I), "Likes"),
    (re.compile(rf"\bi (?:hate|dislike|do not like|don['’]t like)\s+(.{{1,120}}?){_END}", re.I), "Dislikes"),
    (re.compile(rf"\bi am allergic to\s+(.{{1,80}}?){_END}", re.I), "Allergic to"),
    (re.compile(rf"\bi['’]m allergic to\s+(.{{1,80}}?){_END}", re.I), "Allergic to"),
]
_ONE_OF_EACH = frozenset({"Name", "Lives in", "Works as/at"})
_REMEMBER = re.compile(r"\bremember(?: (?:that|this)\b:?|:)\s+(.{3,1000})", re.I | re.S)
_KEEP = re.compile(r"\b(?:archive|keep for later|put away)(?: (?:that|this)\b:?|:)\s+(.{3,10000})", re.I | re.S)
_FORGET = re.compile(r"\bforget (?:that )?(.{2,200}?)[.!]*$", re.I)


class Noted(NamedTuple):
    """A call that notes something, and how it is put to the person."""

    tool: str
    args: JSON
    told: str


def noted(words: str, human: str) -> list[Noted]:
    """Read what is to be noted out of a message.

    Args:
        words: What the person said.
        human: What the section "human" says now, one fact a line.
    """
    if words.rstrip().endswith("?"):
        return []
    if kept := _KEEP.search(words):
        return [Noted("archival_memory_insert", {"content": kept[1].strip()}, "I have put that into archival memory.")]
    if asked := _FORGET.search(words):
        return _forgotten(asked[1], human)
    if kept := _REMEMBER.search(words):
        return [Noted("core_memory_append", {"label": "human", "content": kept[1].strip()}, "I will remember that.")]
    found: list[Noted] = []
    lines = human.split("\n")
    for pattern, field in _FACTS:
        for match in pattern.finditer(words):
            line = f"{field}: {match[1].strip()}"
            old = next((known for known in lines if known.startswith(f"{field}: ")), "")
            if line in lines:
                continue
            lines.append(line)
            if field in _ONE_OF_EACH and old and human.count(old) == 1:
                args = {"label": "human", "old_content": old, "new_content": line}
                found.append(Noted("core_memory_replace", args, f"I have noted “{line}” in place of “{old}”."))
            else:
                args = {"label": "human", "content": line}
                found.append(Noted("core_memory_append", args, f"I have noted “{line}”."))
    return found


def _forgotten(what: str, human: str) -> list[Noted]:
    wanted = words_of(what)
    lines = [line for line in human.split("\n") if line.strip() and wanted & words_of(line)]
    once = [line for line in lines if human.count(line) == 1]
    return [
        Noted("core_memory_remove", {"label": "human", "content": line}, f"I have taken out “{line}”.") for line in once
    ]


_STOP = frozenset(
    re.findall(
        r"\w+",
        """
        a about all am an and are as at be can could did do does for from had has have he her his i in is it
        its like likes me my of on or our please s she so that the their them they this to us was we were
        what when where which who whom whose why will with would you your know tell remember said say talk
        talked
        """,
    )
)


def words_of(text: str) -> frozenset[str]:
    """Return the words of a text that say something, without endings of the plural."""
    return frozenset(
        word.removesuffix("s")
        for word in re.findall(r"[^\W_]+", text.casefold())
        if word not in _STOP and len(word) > 1
    )
