"""`Phrase`: words to forget, found and cut out of any value, however they are spelled or encoded.

A phrase is its words, in upper and lower case, in every form that Unicode calls compatible (NFKC: full-width letters,
ligatures, decomposed accents), with invisible characters in them, and with any white space, punctuation and Markdown
between them. Escapes of JSON and of markup are seen through, because a message holds the arguments of a tool call as
JSON text. Words are found whole, also with an s behind ("Lea", "Lea's", "Leas", not "leather"); in scripts that do not
put spaces between words, anywhere. Not found are other spellings, other forms of a word, and numbers that are no text.
"""

import dataclasses
import re
import unicodedata
from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from itertools import chain, count, groupby
from typing import Any, get_args, get_origin

from langchain_core.messages import BaseMessage
from langgraph.store.base import Item
from langgraph.types import Send
from pydantic import BaseModel

from questbook.graphs.errors import ForgettingError
from questbook.graphs.turn.turn import FORGOTTEN
from questbook.memory.facts.validity import hide_slot
from questbook.memory.text.words import content_stems, normalize
from questbook.notebooks import Entry, Notebook

_SHORT_MARK = "…"  # the same, where there is no room
_PARTS = ("Mn", "Mc", "Cf")  # of words besides letters and digits: what is written over or in one, or invisible
_SHORTEST = 2  # letters and digits; one is enough in scripts in which it is a word
_FIELD = re.compile(r"[a-z]\w*(?:\.\w+)*")
_MARKUP = {"'": "&#39;|&#x27;", "<": "&lt;", ">": "&gt;", "&": "&amp;"}
_LABEL_MARKS = "forgotten", "removed"  # in a label, which may hold letters alone
_LONGEST_LABEL = 50
_OF_SLOT = {"subject", "attribute", "claimed_by"}  # fields of a fact that its slot is made of
_LINES = "lines"  # the last label of the namespace whose keys are names that people gave
_LEAST = 2  # words that count, without which the rest of a record says nothing
_LONGEST = 60  # characters that are looked for as whole words
_MOST, _MOST_SIGNS = 500, 16  # characters of a phrase, and signs at its ends: more take seconds to look for
_ASSIGNED = (range(0x80, 0x20000), range(0x2F800, 0x2FA20), range(0xE0000, 0xE1000))  # else without compatible forms
_INVISIBLE = "".join(chr(code) for codes in _ASSIGNED for code in codes if unicodedata.category(chr(code)) == "Cf")
_NOTHING = rf"[{re.escape(_INVISIBLE)}\ufe00-\ufe0f]"
# What JSON escapes and is no letter: punctuation, symbols, invisible characters, the halves of an emoji.
_SIGN = (
    r"u(?:00[89][0-9a-f]|00a[0-9b-f]|00b[0-46-9b-f]|2[0-9ab][0-9a-f]{2}|30[0-3][0-9a-f]|d83[c-e]|d[c-f][0-9a-f]{2}"
    r"|f[ef]0[0-9a-f]|feff)"
)
_ESCAPE = r"\\{1,8}"  # JSON in JSON, four times; more would take long in a text of backslashes alone
_WITHIN = rf"(?:{_NOTHING}|{_ESCAPE}u(?:00ad|20[0-6][0-9a-f]|feff))*"  # between two letters of a word
# Between two words. A quote at which a JSON string ends or begins is none of it, or the cut would join two strings.
_BETWEEN = (
    r'(?![\u0300-\u036f])(?:[^\w"\\:,{\[&]|_|[:,{\[](?!\s*\\*")|"(?!\s*[:,\]}])|&(?:#?\w+;)?'
    rf"|\\(?:{_SIGN}|[bfnrt])?)+"
)
_WORD_BEGINS = rf"(?:(?<![^\W_])(?<!{_NOTHING})|(?<=\\[bfnrt])|(?<=\\{_SIGN})){_NOTHING}*"
_WORD_ENDS = rf"s?(?!{_WITHIN}(?:[^\W_]|[\u0300-\u036f]|{_ESCAPE}(?!{_SIGN})u[0-9a-f]))"
_ID = re.compile(r"[\W_\d]*|(?=.*\d)[\w.:-]{8,}")

# Values under these keys are technical: names of nodes and branches, ids, types. They are never cut.
_OWN = frozenset(
    {"id", "ts", "v", "version", "type", "status", "kind", "node", "tool_call_id", "machine", "campaign"}
    | {"branch", "after", "thread", "checkpoint", "said_at", "opened_by", "opened_in", "owner", "timeline"}
    | {"channel_versions", "versions_seen", "updated_channels"}
)
_OWN_WITH = {
    "content": frozenset({"role", "name"}),  # a message as a dict
    "args": frozenset({"name"}),  # a tool call
    "branch": frozenset({"messages"}),  # a record: the ids of its messages
    "step": frozenset({"source", "parents", "user", "campaign", "thread_id", "run_id"}),  # a checkpoint's metadata
}


class Phrase:
    """Words to forget, on one line as `words`; case, white space and punctuation do not count.

    Fewer than two letters and digits, or more than 500 characters, are a ForgettingError.
    """

    def __init__(self, words: str) -> None:
        self.words = " ".join(unicodedata.normalize("NFC", words).split())
        letters = [c for c in self.words if c.isalnum()]
        if len(letters) < _SHORTEST and not (letters and not _has_case(letters[0])):
            hint = "it is in half of all texts. Nothing was changed; give at least two letters."
            raise ForgettingError(f"{words!r} is too short to be forgotten: {hint}")
        if len(self.words) > _MOST:
            hint = f"{len(self.words)} characters. Nothing was changed; give at most {_MOST}, and then the rest."
            raise ForgettingError(f"“{self.words[:40]}…” is too long to be forgotten at once: {hint}")
        before, *folded, behind = _split(self.words)
        self._folded, spellings = folded, _BETWEEN.join(map(_word, folded))
        short = len(self.words) <= _LONGEST  # nobody means a part of a word by a whole sentence
        begins = _WORD_BEGINS if short and _has_case(folded[0][0]) else ""
        ends = _WORD_ENDS if short and _has_case(folded[-1][-1]) else ""
        # Signs at the ends go with the words, if they are there.
        self._anywhere = re.compile(spellings, re.IGNORECASE)
        self._ending = re.compile(spellings + ends, re.IGNORECASE)
        whole = _signs(before, r"%s\s*") + begins + spellings + ends + _signs(behind, r"\s*%s")
        self._pattern = re.compile(whole, re.IGNORECASE)
        pages = _pages()
        self._collections = frozenset[str]().union(*map(_collections, pages))
        self._labels = frozenset[str]().union(*(_collections(page) for page in pages if page.KEEPS_ENTRIES))
        self._rooms = {page.channel(): room for page in pages if (room := _room(page))}
        self._texts = defaultdict[str, set[str]](set)  # the fields of pages that take any text
        for page in pages:
            fields = page.model_fields.items()
            self._texts[page.channel()] |= {field.alias or name for name, field in fields if field.annotation is str}
        self._is_given = False  # whether what is looked at lies in what a caller named
        self._mark = _SHORT_MARK if self._pattern.search(FORGOTTEN) else FORGOTTEN
        self._label_mark = next(mark for mark in _LABEL_MARKS if not self._pattern.search(mark))

    def is_in(self, text: str) -> bool:
        """Whether a text holds the phrase."""
        return self._anywhere.search(text) is not None and self._pattern.search(text) is not None

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
        nothing else is removed. Structure, ids and types stay: a phrase that is part of a technical name too, or in a
        type that cannot be cut, is a ForgettingError.
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

    def check_own(self, value: Any, *, field: bool = False) -> None:
        """Refuse a phrase that is part of a technical name, or all of the name of a `field` or class."""
        if isinstance(value, str):
            of_code = field and _FIELD.fullmatch(value)  # "max_hp" says nothing of a Max, nor "marks" of a Mark
            # An id may hold a short word by chance, and says nothing.
            if value.split("_") == self._folded if of_code else self.is_in(value) and not _ID.fullmatch(value):
                problem = f"it is part of {value!r}, which the application is built on and keeps"
                hint = "(If it is an entry on a page of your own, import that notebook's class first.)"
                change = f"Nothing was changed; give more of the words around it. {hint}"
                raise ForgettingError(f"“{self.words}” cannot be forgotten: {problem}. {change}")
        elif isinstance(value, Mapping | list | tuple):
            for part in (*value, *value.values()) if isinstance(value, Mapping) else value:
                self.check_own(part, field=field)

    def paths(self, value: Any, path: str) -> list[str]:
        """Return the dotted paths of the texts and names in a JSON value that hold the phrase."""
        if isinstance(value, str):
            return [path] if self.is_in(value) else []
        if isinstance(value, Mapping):
            named = [f"{path}.{key}" for key in value if self.is_in(str(key))]
            others = {inner: part for key, part in value.items() if (inner := f"{path}.{key}") not in named}
            return named + [inner for name, part in others.items() for inner in self.paths(part, name)]
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
            self.check_own(f"{type(value).__module__}.{type(value).__name__}", field=True)
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
            kind = type(value).__name__
            raise ForgettingError(f"“{self.words}” is in a {kind}, which cannot be read. Nothing was changed there.")
        return value

    def _cut_dict(self, value: dict[Any, Any], key: str, room: int) -> dict[Any, Any]:
        if key in self._collections or self._is_given:
            return self._cut_entries(value, room, keeps=key in self._labels)
        own = _OWN.union(*(keys for mark, keys in _OWN_WITH.items() if mark in value)) - self._texts.get(key, set())
        self._is_given = key == "args" or (key == "metadata" and "step" not in value)  # of a record, not a checkpoint
        try:
            changed = self._change_fields(value, frozenset() if self._is_given else own, room)
        finally:
            self._is_given = False
        if (slot := value.get("slot")) and "subject" in value and (changed.keys() & _OF_SLOT or self._is_in_slot(slot)):
            changed["slot"] = hide_slot(slot)
        return {name: changed.get(name, part) for name, part in value.items()} if changed else value

    def _is_in_slot(self, slot: str) -> bool:
        """Whether a fact's slot, in which words are respelled, holds the phrase."""
        words, within = (
            " ".join(word for word in normalize(text).split() if word not in ("the", "a", "an"))
            for text in (self.words, slot)
        )
        return f" {words} " in f" {within} "

    def _cut_label(self, label: Any) -> Any:
        if not isinstance(label, str) or not self.is_in(label):
            return label
        return self._pattern.sub(self._label_mark, label)[:_LONGEST_LABEL].strip()

    def _cut_entries(self, entries: dict[str, Any], room: int, *, keeps: bool) -> dict[str, Any]:
        """Return entries by name. One whose name says nothing without the phrase is removed, or `keeps` its value."""
        result: dict[str, Any] = {}
        for name, entry in entries.items():
            new_name = name
            if keeps and (new_name := self._cut_label(name)) != name:
                taken = {other.casefold() for other in (*entries, *result)}
                numbered = (f"{new_name[: _LONGEST_LABEL - 3]} {number}" for number in count(2))
                new_name = next(each for each in chain([new_name], numbered) if each.casefold() not in taken)
            elif isinstance(name, str) and self.is_in(name):
                if not _words_that_count(" ".join(self._pattern.sub(" ", name).split())):
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
            self.check_own(key, field=True)
            if key in own:
                self.check_own(part)
                continue
            if key == "order" and isinstance(part, list) and self._labels:
                new = list(dict.fromkeys(map(self._cut_label, part)))
                changed |= {key: new} if new != part else {}
            elif (new := self._cut(part, str(key), self._rooms.get(key, room))) is not part:
                changed[key] = new
        return changed


def fold(text: str) -> str:
    """Return the words of a text as two spellings of one phrase have them alike: folded, a blank between them."""
    return " ".join(_split(text)[1:-1]) if text else ""


def is_start(folded: str, at: int) -> bool:
    """Whether a phrase may begin at a place in a folded text: at a word; in scripts without spaces, anywhere."""
    return folded[at] != " " and (not at or folded[at - 1] == " " or not _has_case(folded[at]))


def _words_that_count(text: str) -> set[str]:
    one = "zebra"  # so that a text without words that count has one; else all its words would count
    return set(content_stems(f"{one} {text}")) - {one}


def _has_case(character: str) -> bool:
    """Whether a character is a digit or of a script with spaces between its words, as those with capitals have."""
    return character.isdigit() or character.lower() != character.upper()


def _split(words: str) -> list[str]:
    """Return what is before the first word, the words, folded, and what is behind the last one."""
    runs = [
        (is_word, "".join(run))
        for is_word, run in groupby(words, lambda c: _fold(c).isalnum() or unicodedata.category(c) in _PARTS)
    ]
    parts = [folded for is_word, run in runs if is_word and (folded := _fold(run)) and any(map(str.isalnum, folded))]
    before, behind = ("" if is_word else run for is_word, run in (runs[0], runs[-1]))
    return [before, *parts, behind]


def _fold(text: str) -> str:
    """Return a text in small letters, without compatible forms (NFKC) and invisible characters."""
    plain = "".join(c for c in text if unicodedata.category(c) != "Cf")
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", plain).casefold())


@cache
def _forms() -> Mapping[str, str]:
    """Return for each letter, or for several, the single characters that are folded to them: "ﬁ" for "fi"."""
    forms = defaultdict[str, str](str)
    for code in (code for codes in _ASSIGNED for code in codes):
        if (folded := _fold(chr(code))) != chr(code) and folded.isalnum():
            forms[folded] += chr(code)
    return forms


def _word(word: str) -> str:
    """Return the pattern of a folded word in every spelling and encoding."""
    parts, at = list[str](), 0
    while at < len(word):
        size = next((size for size in (4, 3, 2) if word[at : at + size] in _forms()), 1)
        letters, at = word[at : at + size], at + size
        spelled = {letters, unicodedata.normalize("NFD", letters)}
        sequences = [_WITHIN.join(map(_escapable, form)) for form in sorted(spelled, key=len, reverse=True)]
        others = _forms().get(letters, "")
        sequences += [f"[{re.escape(others)}]", f"{_ESCAPE}(?:{'|'.join(map(_escape, others))})"] if others else []
        parts.append(f"(?:{'|'.join(sequences)})" if len(sequences) > 1 else sequences[0])
    return _WITHIN.join(parts)


def _signs(characters: str, each: str) -> str:
    """Return the pattern of signs at an end of the phrase, `each` around one; JSON's own are left out."""
    signs = [c for c in characters if not (c.isspace() or c in '"\\[]{}:,')]
    one = "|".join(sorted({f"{_escapable(c)}{'|' * (c in _MARKUP)}{_MARKUP.get(c, '')}" for c in signs}))
    return f"(?:{each % f'(?:{one})'}){{0,{_MOST_SIGNS}}}" if signs else ""


def _escapable(character: str) -> str:
    """Return the pattern of a code point, as it is or as JSON escapes it; JSON never escapes letters and digits."""
    if character.isascii() and character.isalnum():
        return character
    return rf"(?:{re.escape(character)}|{_ESCAPE}{_escape(character)})"


def _escape(character: str) -> str:
    """Return the pattern of a code point as JSON escapes it, without the backslash at its beginning."""
    units = character.encode("utf-16-be", "surrogatepass")
    return _ESCAPE.join(f"u{units[n]:02x}{units[n + 1]:02x}" for n in range(0, len(units), 2))


def _pages(page: type[Notebook] = Notebook) -> list[type[Notebook]]:
    return [page, *(below for subclass in page.__subclasses__() for below in _pages(subclass))]


def _room(page: type[BaseModel]) -> int:
    """Return the characters that fit in every text of a page; 0: any number."""
    rules = [rule for field in page.model_fields.values() if field.annotation is str for rule in field.metadata]
    return min((rule.max_length for rule in rules if hasattr(rule, "max_length")), default=0)


def _collections(model: type[BaseModel], within: frozenset[type[BaseModel]] = frozenset()) -> set[str]:
    """Return the fields of a page, and of entries within, whose keys people choose and may lose."""
    names, within = set[str](), within | {model}
    for name, field in model.model_fields.items():
        kinds = [field.annotation, *get_args(field.annotation)]
        if any(get_origin(kind) is dict for kind in kinds):
            names.add(field.alias or name)
        for kind in kinds:
            if isinstance(kind, type) and issubclass(kind, Entry) and kind not in within:
                names |= _collections(kind, within)
    return names
