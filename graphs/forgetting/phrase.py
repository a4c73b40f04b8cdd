"""`Phrase`: words to forget, found and cut out of any value, however they are spelled or encoded.

A phrase is found in upper and lower case, in composed and decomposed Unicode (NFC and NFD), with any white space
between its words, with straight or curly quotes, and escaped as JSON or as markup, because a message holds the
arguments of a tool call as JSON text. It is found as whole words, also with an s behind ("Lea", "Lea's", "Leas", not
"leather"); in scripts that do not put spaces between words, anywhere. Not found are other spellings, other forms of a
word, and numbers that are no text.
"""

from __future__ import annotations

import dataclasses
import re
import unicodedata
from collections.abc import Mapping
from typing import Any, get_args, get_origin

from langchain_core.messages import BaseMessage
from langgraph.store.base import Item
from langgraph.types import Send
from pydantic import BaseModel

from questbook.graphs.errors import ForgettingError
from questbook.graphs.turn.turn import FORGOTTEN
from questbook.memory.text.words import content_stems
from questbook.notebooks import Entry, Notebook

_SHORT_MARK = "…"  # the same, where there is no room
_SHORTEST = 3  # bytes of letters and digits: with fewer, half of all words would go
_ALIKE = {"'": "'’‘", '"': '"“”', "-": "-‐‑–"}
_MARKUP = {"'": "&#39;|&#x27;", '"': "&quot;", "<": "&lt;", ">": "&gt;", "&": "&amp;"}
_LINES = "lines"  # the last label of the namespace whose keys are names that people gave
_LEAST = 2  # words that count, without which the rest of a record says nothing
_LONGEST = 60  # characters that are looked for as whole words
_WORD_BEGINS = r"(?:(?<![^\W_])|(?<=\\[bfnrt])|(?<=\\u[0-9a-f]{4}))"  # an escape of JSON is no part of a word
_WORD_ENDS = r"s?(?![^\W_])"
_ID = re.compile(r"[\W_\d]*|(?=.*\d)[\w.:-]{8,}")

# Values under these keys are technical: names of nodes and branches, ids, types. They are never cut.
_OWN = frozenset(
    {"id", "ts", "v", "version", "type", "status", "kind", "node", "tool_call_id", "machine", "campaign"}
    | {"branch", "after", "thread", "checkpoint", "said_at", "opened_by", "owner", "timeline"}
    | {"channel_versions", "versions_seen", "updated_channels"}
)
_OWN_WITH = {
    "content": frozenset({"role", "name"}),  # a message as a dict
    "args": frozenset({"name"}),  # a tool call
    "branch": frozenset({"messages"}),  # a record: the ids of its messages
    "step": frozenset({"source", "parents", "user", "campaign", "thread_id", "run_id"}),  # a checkpoint's metadata
}


class Phrase:
    """Words to forget, on one line as `words`; case and white space do not count.

    Raises:
        ForgettingError: They have fewer than three letters and digits.
    """

    def __init__(self, words: str) -> None:
        self.words = " ".join(unicodedata.normalize("NFC", words).split())
        if len("".join(c for c in self.words if c.isalnum()).encode("utf-8", "replace")) < _SHORTEST:
            raise ForgettingError(
                f"{words!r} is too short to be forgotten: half of all words would go with it. Nothing was changed; "
                "give at least three letters."
            )
        spellings = "".join(map(_spellings, self.words))
        short = len(self.words) <= _LONGEST  # nobody means a part of a word by a whole sentence
        behind = _WORD_ENDS if short and _has_case(self.words[-1]) else ""
        self._anywhere = re.compile(spellings, re.IGNORECASE)
        self._ending = re.compile(spellings + behind, re.IGNORECASE)
        before = _WORD_BEGINS if short and _has_case(self.words[0]) else ""
        self._pattern = re.compile(before + spellings + behind, re.IGNORECASE)
        pages = _pages()
        self._collections = frozenset[str]().union(*map(_collections, pages))
        self._rooms = {page.channel(): room for page in pages if (room := _room(page))}
        self._mark = _SHORT_MARK if self._pattern.search(FORGOTTEN) else FORGOTTEN

    def is_in(self, text: str) -> bool:
        """Whether a text holds the phrase."""
        return self._pattern.search(text) is not None

    def may_be_in(self, encoded: bytes) -> bool:
        """Whether an encoded value may hold the phrase: a quick look. False is certain if strings are in UTF-8."""
        return self._anywhere.search(encoded.decode("utf-8", "ignore")) is not None

    def seems_in(self, encoded: bytes) -> bool:
        """Whether bytes seem to hold the phrase: it ends where a word ends; a length may stand right before a text."""
        return self._ending.search(encoded.decode("utf-8", "ignore")) is not None

    def cut_text(self, text: str, room: int = 0) -> str:
        """Return the text with a mark in place of the phrase: a short one if it would outgrow its `room` (0: any)."""
        cut = self._pattern.sub(self._mark, text)
        return self._pattern.sub(_SHORT_MARK, text) if room and len(cut) > max(len(text), room) else cut

    def empties(self, record: Mapping[str, Any]) -> bool:
        """Whether a record says nothing without it, or is a like or limit of the person, so that one has to ask."""
        rest = self.cut_text(str(record["text"])).replace(FORGOTTEN, " ")
        return record.get("kind") == "preference" or len(_words_that_count(rest)) < _LEAST

    def cut(self, value: Any, key: str = "") -> Any:
        """Return the value without the phrase; the very same value if it does not hold it.

        It is what a checkpoint or a store holds under a key, such as a channel's name: JSON, messages, models, and
        LangGraph's types around them. Texts get a mark in place of the phrase. An entry of a page whose name says
        nothing else is removed. Structure, ids and types stay.

        Raises:
            ForgettingError: The phrase is part of a technical name too, or in a type that cannot be cut.
        """
        return self._cut(value, key, self._rooms.get(key, 0))

    def cut_item(self, item: Item) -> tuple[str, Any] | None:
        """Return key and value of an item of a store without the phrase; None if it does not hold it."""
        value, key = self.cut(item.value), item.key
        if item.namespace[-1] == _LINES:
            key = self.cut_text(key)
        else:
            self.check_own(key)
        return None if value is item.value and key == item.key else (key, value)

    def check_own(self, value: Any) -> None:
        """Refuse a phrase that is part of a technical name: of a field, a node, a type."""
        if isinstance(value, str):
            # An id may hold a short word by chance, and says nothing.
            if self.is_in(value) and not _ID.fullmatch(value):
                raise ForgettingError(
                    f"“{self.words}” cannot be forgotten: it is part of {value!r}, which the application is built on "
                    "and keeps. Nothing was changed; give more of the words around it. (If it is an entry on a page of "
                    "your own, import that notebook's class first.)"
                )
        elif isinstance(value, Mapping | list | tuple):
            for part in (*value, *value.values()) if isinstance(value, Mapping) else value:
                self.check_own(part)

    def paths(self, value: Any, path: str) -> list[str]:
        """Return the dotted paths of the texts and names in a JSON value that hold the phrase."""
        if isinstance(value, str):
            return [path] if self.is_in(value) else []
        if isinstance(value, Mapping):
            named = [f"{path}.{key}" for key in value if self.is_in(str(key))]
            return named + [
                inner for key, part in value.items() if f"{path}.{key}" not in named
                for inner in self.paths(part, f"{path}.{key}")
            ]  # fmt: skip
        if isinstance(value, list):
            return list(dict.fromkeys(inner for part in value for inner in self.paths(part, path)))
        return []

    def _cut(self, value: Any, key: str, room: int) -> Any:
        if isinstance(value, str):
            return self.cut_text(value, room) if self.is_in(value) else value
        if value is None or isinstance(value, bool | int | float):
            return value
        if isinstance(value, dict):
            return self._cut_dict(value, key, room)
        if isinstance(value, list | tuple | set | frozenset):
            parts = [self._cut(part, "", room) for part in value]
            if all(new is old for new, old in zip(parts, value, strict=True)):
                return value
            return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
        if isinstance(value, BaseModel):
            self.check_own(f"{type(value).__module__}.{type(value).__name__}")
            own = _OWN | {"name"} if isinstance(value, BaseMessage) else frozenset[str]()
            fields = {**vars(value), **(value.model_extra or {})}
            room = _room(type(value)) if isinstance(value, Notebook) else room
            changed = self._change_fields(fields, own, room)
            return value.model_copy(update=changed) if changed else value
        if isinstance(value, Send):
            self.check_own(value.node)
            argument = self._cut(value.arg, "", room)
            return value if argument is value.arg else Send(value.node, argument)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
            changed = self._change_fields(fields, frozenset({"id"}), room)
            return dataclasses.replace(value, **changed) if changed else value
        if self.may_be_in(value) if isinstance(value, bytes) else self.is_in(repr(value)):
            raise ForgettingError(
                f"“{self.words}” is in a {type(value).__name__}, which cannot be read. Nothing was changed there."
            )
        return value

    def _cut_dict(self, value: dict[Any, Any], key: str, room: int) -> dict[Any, Any]:
        if key in self._collections:
            return self._cut_entries(value, room)
        own = _OWN.union(*(keys for mark, keys in _OWN_WITH.items() if mark in value))
        changed = self._change_fields(value, own, room)
        return {name: changed.get(name, part) for name, part in value.items()} if changed else value

    def _cut_entries(self, entries: dict[str, Any], room: int) -> dict[str, Any]:
        """Return entries by name; one whose name says nothing without the phrase is removed."""
        result: dict[str, Any] = {}
        for name, entry in entries.items():
            new_name = name
            if isinstance(name, str) and self.is_in(name):
                rest = " ".join(self._pattern.sub(" ", name).split())
                if not _words_that_count(rest):
                    continue
                new_name = self.cut_text(name, room)
                while new_name in entries or new_name in result:  # two names that differ in the phrase alone
                    new_name += _SHORT_MARK
            else:
                self.check_own(name)
            result[new_name] = self._cut(entry, name if name == new_name else "", self._rooms.get(name, room))
        same = len(result) == len(entries) and all(result.get(name) is entry for name, entry in entries.items())
        return entries if same else result

    def _change_fields(self, fields: Mapping[Any, Any], own: frozenset[str], room: int) -> dict[Any, Any]:
        changed: dict[Any, Any] = {}
        for key, part in fields.items():
            self.check_own(key)
            if key in own:
                self.check_own(part)
                continue
            new = self._cut(part, str(key), self._rooms.get(key, room))
            if new is not part:
                changed[key] = new
        return changed


def _words_that_count(text: str) -> set[str]:
    one = "zebra"  # so that a text without words that count has one; else all its words would count
    return set(content_stems(f"{one} {text}")) - {one}


def _has_case(character: str) -> bool:
    """Whether a character is a digit or of a script with spaces between its words, as those with capitals have."""
    return character.isdigit() or character.lower() != character.upper()


def _spellings(character: str) -> str:
    """Return the pattern of one character in every spelling and encoding."""
    if character == " ":
        return r"(?:\s|\\+[nrt]|\\+u00a0)+"
    forms = set[str]()
    for letter in _ALIKE.get(character, character):
        cases = {letter, letter.lower(), letter.upper(), letter.casefold()}
        normal = {unicodedata.normalize(form, case) for form in ("NFC", "NFD") for case in cases}
        forms |= {"".join(map(_escapable, form)) for form in normal}
    if character in '"\\/':
        forms.add(r"\\+" + re.escape(character))
    if character in _MARKUP:
        forms.add(_MARKUP[character])
    return f"(?:{'|'.join(sorted(forms, key=lambda form: (-len(form), form)))})"


def _escapable(character: str) -> str:
    """Return the pattern of a code point, as it is or as JSON escapes it; JSON never escapes letters and digits."""
    if character.isascii() and character.isalnum():
        return character
    units = character.encode("utf-16-be", "surrogatepass")
    escaped = "".join(rf"\\+u{units[n]:02x}{units[n + 1]:02x}" for n in range(0, len(units), 2))
    return f"(?:{re.escape(character)}|{escaped})"


def _pages(page: type[Notebook] = Notebook) -> list[type[Notebook]]:
    """Return every class of pages that this program has."""
    return [page, *(below for subclass in page.__subclasses__() for below in _pages(subclass))]


def _room(page: type[BaseModel]) -> int:
    """Return the characters that fit in every text of a page; 0: any number."""
    limits = [
        rule.max_length
        for field in page.model_fields.values() if field.annotation is str
        for rule in field.metadata if hasattr(rule, "max_length")
    ]  # fmt: skip
    return min(limits, default=0)


def _collections(model: type[BaseModel], within: frozenset[type[BaseModel]] = frozenset()) -> set[str]:
    """Return the fields of a page, and of entries within, whose keys people choose and may lose."""
    if issubclass(model, Notebook) and model.KEEPS_NAMES:
        return set()
    names, within = set[str](), within | {model}
    for name, field in model.model_fields.items():
        kinds = [field.annotation, *get_args(field.annotation)]
        if any(get_origin(kind) is dict for kind in kinds):
            names.add(field.alias or name)
        for kind in kinds:
            if isinstance(kind, type) and issubclass(kind, Entry) and kind not in within:
                names |= _collections(kind, within)
    return names
