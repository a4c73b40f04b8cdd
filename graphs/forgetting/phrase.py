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
from typing import Any, NamedTuple, get_args, get_origin

from langchain_core.messages import BaseMessage
from langgraph.store.base import Item
from langgraph.types import Send
from pydantic import BaseModel

from questbook.graphs.errors import ForgettingError
from questbook.graphs.turn.turn import FORGOTTEN
from questbook.memory.text.comparison import content_stems
from questbook.notebooks import CharacterNotebook, CoreNotebook, Entry, Notebook

_SHORT_MARK = "…"  # the same, where there is no room
_ROOM = 70  # characters that fit in every field of the character's page
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
    """Words to forget.

    Args:
        words: The words; case and white space do not count.

    Attributes:
        words: The words, on one line.

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
        self._collections = _all_collections()
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

    def cut_text(self, text: str, *, tight: bool = False) -> str:
        """Return the text with a mark in place of the phrase.

        Args:
            text: Any text.
            tight: Use a shorter mark if the text would grow too long for its field.
        """
        cut = self._pattern.sub(self._mark, text)
        return self._pattern.sub(_SHORT_MARK, text) if tight and len(cut) > max(len(text), _ROOM) else cut

    def empties(self, record: Mapping[str, Any]) -> bool:
        """Whether a record says nothing without it, or is a like or limit of the person, so that one has to ask."""
        rest = self.cut_text(str(record["text"])).replace(FORGOTTEN, " ")
        words = content_stems(f"{_A_WORD} {rest}")  # of a text without any that counts, it would return all
        return record.get("kind") == "preference" or len(words - {_A_WORD}) < _LEAST

    def cut(self, value: Any, key: str = "") -> Any:
        """Return the value without the phrase; the very same value if it does not hold it.

        Texts get a mark in place of the phrase. An entry of a page whose name says nothing else is removed.
        Structure, ids and types stay.

        Args:
            value: What a checkpoint or a store holds: JSON, messages, models, and LangGraph's types around them.
            key: The key that holds the value, such as the name of its channel.

        Raises:
            ForgettingError: The phrase is part of a technical name too, or in a type that cannot be cut.
        """
        return self._cut(value, key, tight=key == "character")

    def cut_item(self, item: Item) -> tuple[str, Any] | None:
        """Return key and value of an item of a store without the phrase; None if it does not hold it."""
        value, key = self.cut(item.value), item.key
        if item.namespace[-1] == _LINES:
            key = self.cut_text(key)
        else:
            self.check_own(key)
        return None if value is item.value and key == item.key else (key, value)

    def check_own(self, value: Any) -> None:
        """Check that the phrase is not part of a technical name: of a field, a node, a type.

        Raises:
            ForgettingError: It is.
        """
        if isinstance(value, str):
            # An id may hold a short word by chance, and says nothing.
            if self.is_in(value) and not _ID.fullmatch(value):
                raise ForgettingError(
                    f"“{self.words}” cannot be forgotten: it is part of {value!r}, which the game itself is built on "
                    "and keeps. Nothing was changed; give more of the words around it. (If it is an entry on a page of "
                    "your own, import that notebook's class first.)"
                )
        elif isinstance(value, Mapping):
            for name, part in value.items():
                self.check_own(name)
                self.check_own(part)
        elif isinstance(value, list | tuple):
            for part in value:
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

    def _cut(self, value: Any, key: str, *, tight: bool) -> Any:
        if isinstance(value, str):
            return self.cut_text(value, tight=tight) if self.is_in(value) else value
        if value is None or isinstance(value, bool | int | float):
            return value
        if isinstance(value, dict):
            return self._cut_dict(value, key, tight=tight)
        if isinstance(value, list | tuple | set | frozenset):
            parts = [self._cut(part, "", tight=tight) for part in value]
            if all(new is old for new, old in zip(parts, value, strict=True)):
                return value
            return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
        if isinstance(value, BaseModel):
            self.check_own(f"{type(value).__module__}.{type(value).__name__}")
            own = _OWN | {"name"} if isinstance(value, BaseMessage) else frozenset[str]()
            fields = {**vars(value), **(value.model_extra or {})}
            changed = self._change_fields(fields, own, named=False, tight=tight or isinstance(value, CharacterNotebook))
            return value.model_copy(update=changed) if changed else value
        if isinstance(value, Send):
            self.check_own(value.node)
            argument = self._cut(value.arg, "", tight=tight)
            return value if argument is value.arg else Send(value.node, argument)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
            changed = self._change_fields(fields, frozenset({"id"}), named=False, tight=tight)
            return dataclasses.replace(value, **changed) if changed else value
        if self.may_be_in(value) if isinstance(value, bytes) else self.is_in(repr(value)):
            raise ForgettingError(
                f"“{self.words}” is in a {type(value).__name__}, which cannot be read. Nothing was changed there."
            )
        return value

    def _cut_dict(self, value: dict[Any, Any], key: str, *, tight: bool) -> dict[Any, Any]:
        named = key in self._collections
        own = frozenset[str]() if named else _OWN.union(*(keys for mark, keys in _OWN_WITH.items() if mark in value))
        if not (changed := self._change_fields(value, own, named=named, tight=tight)):
            return value
        result: dict[Any, Any] = {}
        for k, part in value.items():
            new = changed.get(k, part)
            if isinstance(new, _Renamed):
                name = new.name
                while name in value or name in result:  # two names that differ in the phrase alone
                    name += _SHORT_MARK
                result[name] = new.entry
            elif new is not _GONE:
                result[k] = new
        return result

    def _rename(self, name: str, entry: Any, *, tight: bool) -> Any:
        """Return an entry under its name without the phrase; `_GONE` if the name says nothing without it."""
        rest = " ".join(self._pattern.sub(" ", name).split())
        if not content_stems(f"{_A_WORD} {rest}") - {_A_WORD}:
            return _GONE
        return _Renamed(self.cut_text(name, tight=tight), self._cut(entry, "", tight=tight))

    def _change_fields(
        self, fields: Mapping[Any, Any], own: frozenset[str], *, named: bool, tight: bool
    ) -> dict[Any, Any]:
        changed: dict[Any, Any] = {}
        for key, part in fields.items():
            if named and self.is_in(str(key)):
                changed[key] = self._rename(str(key), part, tight=tight)
                continue
            self.check_own(key)
            if key in own:
                self.check_own(part)
                continue
            new = self._cut(part, str(key), tight=tight or key == "character")
            if new is not part:
                changed[key] = new
        return changed


class _Renamed(NamedTuple):
    name: str
    entry: Any


_GONE = object()
_A_WORD = "zebra"  # so that a text without words that count has one; else all its words would count


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


def _collections(model: type[BaseModel], within: frozenset[type[BaseModel]] = frozenset()) -> set[str]:
    """Return the fields of a page whose keys people choose.

    Args:
        model: The page's class, or that of an entry.
        within: Classes that this one is an entry of, since an entry may hold others of its own kind.
    """
    names, within = set[str](), within | {model}
    for name, field in model.model_fields.items():
        kinds = [field.annotation, *get_args(field.annotation)]
        if any(get_origin(kind) is dict for kind in kinds):
            names.add(field.alias or name)
        for kind in kinds:
            if isinstance(kind, type) and issubclass(kind, Entry) and kind not in within:
                names |= _collections(kind, within)
    return names


def _all_collections(page: type[Notebook] = Notebook) -> frozenset[str]:
    """Return them of every page that this program has; core memory is built on the names of its sections."""
    own = set[str]() if page is CoreNotebook else _collections(page)
    return frozenset(own).union(*map(_all_collections, page.__subclasses__()))
