"""Calls of tools that a model wrote as text, as local models do; they are read where they fit a tool that was offered.

Marked text holds nothing but calls, so a person never sees it:

    <tool_call>{"name": …, "arguments": {…}}</tool_call>      Hermes, Qwen; Gemma: "args"
    <function=NAME>{…}</function>                             Llama 3.1
    <|python_tag|>{"name": …, "parameters": {…}}              Llama 3
    [TOOL_CALLS] [{"name": …, "arguments": {…}}]              Mistral; newer: [TOOL_CALLS]NAME[ARGS]{…}

JSON in a fence or at the beginning of a line counts if it is nothing but a call of an offered tool, in a shape that
was recorded of a real model (behind prose: p-lemonish/ollama-x-opencode#1; in a fence: ollama/ollama#13519):

    {"name": …, "arguments": {…}}                             Qwen 2.5 Coder and 3: ollama/ollama#12174, #11185
    {"name": …, "parameters": {…}}                            Llama 4: jundot/omlx#1153
    {"type": "function", "name": …, "parameters": {…}}        Llama 4: vllm-project/vllm#46863
    {"type": "function", "function": {"name": …, …}}          Llama 3.2: vllm-project/vllm#11786

Other JSON is text; but what names a tool that is hidden from the person, or has its fields, is never shown.
"""

import json
import math
import re
import uuid
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from langchain_core.messages import InvalidToolCall, ToolCall
from langchain_core.messages.tool import invalid_tool_call, tool_call

from questbook.notebooks.patch import is_deeper
from questbook.types import JSON

_DEEPEST = 20  # levels of a call's arguments; ours have four
_LONGEST = 100_000  # characters of a block of calls; what is longer is text
_LONGEST_OPENING = 120  # characters from a marker to the JSON behind it
_FENCE = "```"
_OPENERS = ("<tool_call>", "<|tool_call|>", "<function=", "<|python_tag|>", "[TOOL_CALLS]", _FENCE)
_CLOSERS = ("</tool_call>", "<|/tool_call|>", "</function>", "<|eom_id|>", "<|eot_id|>", _FENCE)
_OPENING = re.compile(
    r"<tool_call>|<\|tool_call\|>|<\|python_tag\|>|<function=(?P<llama>[\w.-]+)>"
    r"|\[TOOL_CALLS\](?:\s*(?P<mistral>[\w.-]+)\s*(?:\[CALL_ID\]\s*[\w-]+\s*)?(?:\[ARGS\])?)?|```[\w-]*"
)
_MISTRAL_PARTS = ("[CALL_ID]", "[ARGS]")
_CANDIDATE = re.compile(r"[<`\[{]")
_FIRST_KEY = re.compile(r'(?:\[\s*)?\{\s*"([^"\\]*)"')
_BEFORE_KEY = re.compile(r'(?:\[\s*)?(?:\{\s*(?:"[^"\\]*)?)?$')
_FIRST_KEYS = ("name", "type")
_TOOL_NAME = re.compile(r'"name"\s*:\s*"([\w.-]+)"')
_ARGUMENTS = ("arguments", "parameters", "args")
_UNMARKED = ({"name", "arguments"}, {"name", "parameters"})  # keys of a call


class _Block(NamedTuple):
    """The text at the beginning of what is held: its length, and the calls in it; None if it is only text."""

    length: int
    calls: list[tuple[str, Any]] | None = None


class TextCallReader:
    """Reads an answer's text as it comes; text is held back only while it may still become a call.

    `calls` has name and arguments (text, if they are no JSON) of each call; marked ones need not have been offered.
    """

    def __init__(self, tools: Sequence[JSON], hidden: Collection[str] = ()) -> None:
        # Without offered tools all text is text. Of hidden ones nobody reads the arguments, even if none is named.
        self.calls: list[tuple[str, Any]] = []
        functions = [tool["function"] for tool in tools]
        fields = {one["name"]: frozenset(one.get("parameters", {}).get("required", ())) for one in functions}
        self._offered = frozenset(fields)
        self._hidden = {name: required for name, required in fields.items() if name in hidden}
        self._held = ""
        self._values: _Values | None = None  # those of the block with which `_held` begins
        self._at_line_start = True

    def feed(self, text: str) -> str:
        """Take the next piece; return the text that is certainly no part of a call."""
        self._held += text
        return "".join(self._released(last=False))

    def end(self) -> str:
        """Take note that nothing more comes; return the text that is left."""
        return "".join(self._released(last=True))

    def tool_calls(self) -> tuple[list[ToolCall], list[InvalidToolCall]]:
        """Return the calls as LangChain has them, and those whose arguments are no JSON object."""
        return check_calls((name, arguments, f"call_{uuid.uuid4().hex[:24]}") for name, arguments in self.calls)

    def _released(self, *, last: bool) -> Iterator[str]:
        while self._held:
            if self._values is None:
                yield self._take(self._next_start())
            if not self._held:
                return
            block = self._read_block(last=last)
            if block is None and len(self._held) <= _LONGEST:
                return
            length, calls = block or _Block(len(self._held))
            text = self._take(length)
            self._values = None
            if calls is None:
                yield text
            else:
                self.calls += calls

    def _take(self, length: int) -> str:
        text, self._held = self._held[:length], self._held[length:]
        self._at_line_start = self._begins_line(text, len(text))
        return text

    def _begins_line(self, text: str, at: int) -> bool:
        """Whether only blanks come before a place in its line."""
        while at and text[at - 1] in " \t":
            at -= 1
        return text[at - 1] == "\n" if at else self._at_line_start

    def _next_start(self) -> int:
        """Return where the first text begins that is, or may become, a block of calls."""
        if not self._offered:
            return len(self._held)
        for match in _CANDIDATE.finditer(self._held):
            start = match.start()
            begins = match[0] == "{" and (self._hidden or self._begins_line(self._held, start))
            if begins or _is_or_becomes(self._held[start : start + _LONGEST_OPENING], _OPENERS):
                return start
        return len(self._held)

    def _read_block(self, *, last: bool) -> _Block | None:
        """Read the block with which the held text begins; None while its end has not come."""
        held = self._held
        opening = _OPENING.match(held[:_LONGEST_OPENING])
        if not opening and not last and _is_or_becomes(held, _OPENERS) and len(held) < _LONGEST_OPENING:
            return None
        marked = bool(opening) and not held.startswith(_FENCE)
        name = (opening["llama"] or opening["mistral"] or "") if opening else ""
        body = opening.end() if opening else 0
        rest = held[body : body + _LONGEST_OPENING].lstrip()
        if not rest.startswith(("{", "[")) or (name and _is_or_becomes(rest, _MISTRAL_PARTS)):
            waits = bool(opening) and len(held) < _LONGEST_OPENING and rest[:1] in ("", "[")
            return None if waits and not last else _Block(max(body, 1))
        if not marked and self._values is None:
            key = _FIRST_KEY.match(rest)
            if not (key and (self._hidden or key[1] in _FIRST_KEYS)) and (key or last or not _BEFORE_KEY.match(rest)):
                return _Block(max(body, 1))
            if not key:
                return None
        values = self._values = self._values or _Values(body)
        values.read(held)
        behind = held[values.at :]
        closer = next((closer for closer in _CLOSERS if behind.startswith(closer)), "")
        if not last and not closer and (values.unfinished or _is_or_becomes(behind, _CLOSERS)):
            return None
        end = values.at + len(closer) if closer else len(held) if values.unfinished else values.end
        unread = [held[values.begin :]] if values.unfinished and values.begin >= 0 else []
        begins = bool(opening) or self._at_line_start
        read = [self._read_text(text, name, marked=marked, begins=begins) for text in [*values.texts, *unread]]
        calls = [call for made in read for call in made]
        kept = any(tool in self._hidden for tool, _ in calls)
        return _Block(end, calls if kept or (calls and all(read)) else None)

    def _read_text(self, text: str, name: str, *, marked: bool, begins: bool) -> list[tuple[str, Any]]:
        """Return the calls in a JSON text, which may be broken; `name` is the tool that its mark names. [] if none."""
        try:
            value: Any = json.loads(text, strict=False)
        except (ValueError, RecursionError):
            value = None
            named = name or next((match[1] for match in _TOOL_NAME.finditer(text)), "")
            calls = [(named, text)] if marked or (begins and named in self._offered) else []
        else:
            calls = [(name, value)] if name else self._calls_of(value, marked=marked) if marked or begins else []
        return calls or self._kept(text, value)

    def _calls_of(self, value: Any, *, marked: bool) -> list[tuple[str, Any]]:
        """Return the calls in a value; without a mark, only if it is nothing but calls of offered tools."""
        calls = list[tuple[str, Any]]()
        for part in value if value and isinstance(value, list) else [value]:
            made = part["function"] if isinstance(part, dict) and part.keys() == {"type", "function"} else part
            given = made if isinstance(made, dict) else {"arguments": json.dumps(made)}
            name = given["name"] if isinstance(given.get("name"), str) else ""
            if not marked and not (name in self._offered and given.keys() - {"type"} in _UNMARKED):
                return []
            calls.append((name, next((given[key] for key in _ARGUMENTS if key in given), {})))
        return calls

    def _kept(self, text: str, value: Any) -> list[tuple[str, Any]]:
        """Return a call of the hidden tool that a text names, or whose fields it has; of broken JSON, one of them."""
        has = any if value is None else all
        parts = [part for part in (value if isinstance(value, list) else [value]) if isinstance(part, dict)]
        for name, required in self._hidden.items():
            if required and (calls := [(name, part) for part in parts if required <= part.keys()]):
                return calls
            if name in text or (required and has(f'"{field}"' in text for field in required)):
                return [(name, text)]
        return []


class _Values:
    """JSON values one behind the other, found as their text comes; each character is looked at once."""

    def __init__(self, at: int) -> None:
        self.at = self.end = at  # where the text was read up to, and where the last complete value ends
        self.begin = -1  # where the open value begins; -1 if none is open
        self.texts: list[str] = []  # the complete values
        self.unfinished = True  # whether a value is open, or another one may follow
        self._depth, self._quoted, self._escaped = 0, False, False

    def read(self, text: str) -> None:
        """Read on in a text that has grown."""
        while self.at < len(text):
            character = text[self.at]
            if self._depth == 0 and not (character in "{[" or character.isspace() or character in ",;"):
                self.unfinished = False
                return
            if self._depth == 0 and character in "{[":
                self.begin = self.at
            self.at += 1
            if self._quoted:
                self._quoted = self._escaped or character != '"'
                self._escaped = character == "\\" and not self._escaped
            elif character == '"':
                self._quoted = self._depth > 0
            else:
                self._depth += (character in "{[") - (character in "}]" and self._depth > 0)
                if self._depth == 0 and character in "}]":
                    self.end = self.at
                    self.texts.append(text[self.begin : self.end])
                    self.begin = -1


def check_calls(made: Iterable[tuple[str | None, Any, str | None]]) -> tuple[list[ToolCall], list[InvalidToolCall]]:
    """Return the calls whose arguments are a JSON object, and the others with what is wrong; nothing is completed.

    `made` has name, arguments (a value, or its JSON) and id of each call.
    """
    calls, broken = list[ToolCall](), list[InvalidToolCall]()
    for name, arguments, identity in made:
        value, problem = arguments, ""
        if arguments is None or isinstance(arguments, str):
            try:
                # strict=False: models put bare line breaks into strings; what they mean is clear.
                value = json.loads(arguments or "{}", strict=False)
            except (ValueError, RecursionError) as error:
                problem = str(error)
        if not problem and not isinstance(value, dict):
            problem = f"expected a JSON object, got {type(value).__name__}"
        if not problem and is_deeper(value, _DEEPEST):
            problem = f"nested more than {_DEEPEST} levels deep"
        if not problem and (number := _number_too_large(value)) is not None:
            problem = f"{number!r:.40} is no number that a database takes"
        if problem:
            broken.append(invalid_tool_call(name=name, args=str(arguments), id=identity, error=problem))
        else:
            calls.append(tool_call(name=name or "", args=value, id=identity))
    return calls, broken


def _number_too_large(value: Any) -> float | None:
    """Return a number in a JSON value that is none in JSON or has more than 64 bits; None if there is none."""
    if isinstance(value, int | float):
        fits = -(2**63) <= value < 2**63 if isinstance(value, int) else math.isfinite(value)
        return None if fits else value
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return next((number for part in parts if (number := _number_too_large(part)) is not None), None)


def _is_or_becomes(text: str, wanted: Sequence[str]) -> bool:
    """Whether a text begins with one of the words, or is the beginning of one."""
    return any(text.startswith(word) or word.startswith(text) for word in wanted)
