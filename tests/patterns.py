"""All regular expressions of the package, and texts that are the worst for them."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from functools import cache
from itertools import islice, product
from re import _constants as codes  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from types import ModuleType
from typing import Any, NamedTuple

import questbook

_METHODS = ("search", "match", "fullmatch", "findall", "finditer", "sub", "subn", "split")
_ONCE = ("match", "fullmatch")  # tried at one place, not at each
_ALWAYS = " \n.a("  # in texts for any expression
_TOP = 24  # texts for one expression


class Use(NamedTuple):
    """An expression as one place of the source uses it."""

    module: str
    line: int
    pattern: str
    flags: int
    at_each_place: bool

    def __str__(self) -> str:
        return f"{self.module}:{self.line} {self.pattern[:60]}"


@cache
def uses() -> list[Use]:
    """Find the expressions: compiled ones in modules, and literals given to functions of `re`."""
    found: dict[tuple[str, str, int], Use] = {}
    for module in _modules():
        source = inspect.getsource(module)
        tree = ast.parse(source)
        compiled = list(_compiled(module, source, tree))
        own = {use.pattern for use in compiled}
        for use in (*compiled, *(use for use in _literals(module, tree) if use.pattern not in own)):
            key = (use.module, use.pattern, use.flags)
            if key not in found or use.at_each_place:
                found[key] = use
    return list(found.values())


def _modules() -> Iterator[ModuleType]:
    for info in pkgutil.walk_packages(questbook.__path__, "questbook."):
        if not info.name.endswith("__main__"):
            yield importlib.import_module(info.name)


def _compiled(module: ModuleType, source: str, tree: ast.Module) -> Iterator[Use]:
    lines = {
        target.id: node.lineno
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    }
    for name, value in vars(module).items():
        if name not in lines:
            continue  # imported: its own module has it
        methods = set(re.findall(rf"\b{re.escape(name)}\.(\w+)\(", source))
        once = isinstance(value, re.Pattern) and bool(methods) and methods <= set(_ONCE)
        if once and len(re.findall(rf"\b{re.escape(name)}\b(?!\.(?:match|fullmatch)\()", source)) > 1:
            once = False  # it is handed on, too
        for pattern in _patterns_in(value):
            yield Use(module.__name__, lines[name], pattern.pattern, pattern.flags, not once)


def _patterns_in(value: object) -> Iterator[re.Pattern[str]]:
    if isinstance(value, re.Pattern):
        if isinstance(value.pattern, str):
            yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from (*_patterns_in(key), *_patterns_in(inner))
    elif isinstance(value, list | tuple | set | frozenset):
        for inner in value:
            yield from _patterns_in(inner)
    elif hasattr(value, "__dataclass_fields__") and not isinstance(value, type):
        for name in value.__dataclass_fields__:
            yield from _patterns_in(getattr(value, name, None))


def _literals(module: ModuleType, tree: ast.Module) -> Iterator[Use]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        called = node.func
        if not (isinstance(called.value, ast.Name) and called.value.id == "re"):
            continue
        if called.attr not in (*_METHODS, "compile") or not node.args:
            continue
        pattern = _text(node.args[0], module)
        if pattern is None:
            continue
        flags = 0
        for given in [*node.args[1:], *(keyword.value for keyword in node.keywords)]:
            for part in ast.walk(given):
                if isinstance(part, ast.Attribute) and isinstance(flag := getattr(re, part.attr, None), re.RegexFlag):
                    flags |= flag
        yield Use(module.__name__, node.lineno, pattern, int(flags), called.attr not in _ONCE)


def _text(node: ast.expr, module: ModuleType) -> str | None:
    """Return the text of a literal; in an f-string what is no constant of the module counts as the word "some"."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        parts = []
        for part in node.values:
            if isinstance(part, ast.Constant):
                parts.append(str(part.value))
            else:
                inner = part.value if isinstance(part, ast.FormattedValue) else None
                value = vars(module).get(inner.id) if isinstance(inner, ast.Name) else None
                parts.append(value if isinstance(value, str) else "some")
        return "".join(parts)
    return None


def worst_texts(pattern: str, flags: int, size: int) -> list[str]:
    """Make texts of a size on which an expression may take long.

    They are made of its own parts: what it begins with, again and again; a beginning and then one character of a class
    again and again; two characters in turn. None of them ends as the expression would like it.
    """
    parsed = parser.parse(pattern, flags)
    pieces = list(dict.fromkeys(text for text in _beginnings(parsed) if text))
    letters = list(dict.fromkeys((*_ALWAYS, *_letters(parsed))))[:16]
    seeds: dict[tuple[str, str], None] = {}
    for letter in letters:
        seeds["", letter] = None
    for piece in pieces[:24]:
        seeds["", piece] = None
        seeds["", piece + " "] = None
    for piece, letter in islice(product(reversed(pieces), letters), 60):
        seeds[piece, letter] = None
    for one, two in islice(product(letters, letters), 30):
        if one != two:
            seeds["", one + two] = None
    chosen = list(seeds)
    step = max(1, len(chosen) // _TOP)
    texts = [f"{head}{unit * (size // len(unit))}" for head, unit in chosen[: _TOP // 2] + chosen[_TOP // 2 :: step]]
    return [f"{text}\x01" for text in texts]


def _beginnings(parsed: Any) -> Iterator[str]:
    """Make a text for each beginning of an expression."""
    done = ""
    for item in parsed:
        for part in _inner(item):
            for text in islice(_beginnings(part), 40):
                yield done + text
        done += _example([item])
        yield done


def _inner(item: tuple[Any, Any]) -> list[Any]:
    code, value = item
    if code is codes.SUBPATTERN:
        return [value[3]]
    if code is codes.BRANCH:
        return list(value[1])
    if code in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT):
        return [value[2]]
    if code is codes.ATOMIC_GROUP:
        return [value]
    if code in (codes.ASSERT, codes.ASSERT_NOT):
        return [value[1]]
    return []


def _example(parsed: Any) -> str:
    """Make a short text that an expression matches, about."""
    text = ""
    for code, value in parsed:
        if code in (codes.LITERAL, codes.NOT_LITERAL, codes.IN, codes.ANY):
            text += next(_members(code, value), "")
        elif code in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT):
            low, _, inner = value
            text += _example(inner) * max(1, min(low, 60))
        elif code is codes.SUBPATTERN:
            text += _example(value[3])
        elif code is codes.BRANCH:
            text += _example(value[1][0])
        elif code is codes.ATOMIC_GROUP:
            text += _example(value)
    return text


def _letters(parsed: Any) -> Iterator[str]:
    """Return characters of the classes and literals of an expression, those under a repetition first."""
    later = []
    for item in parsed:
        code, value = item
        if code in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT):
            yield from _letters(value[2])
        elif code in (codes.IN, codes.ANY, codes.NOT_LITERAL):
            yield from _members(code, value)
        elif code is codes.LITERAL:
            later.append(chr(value))
        else:
            later += [letter for inner in _inner(item) for letter in _letters(inner)]
    yield from later


_SAMPLES = " a1.\n-\"'(A,?<:\t_é"
_CATEGORIES = {
    codes.CATEGORY_DIGIT: r"\d",
    codes.CATEGORY_NOT_DIGIT: r"\D",
    codes.CATEGORY_SPACE: r"\s",
    codes.CATEGORY_NOT_SPACE: r"\S",
    codes.CATEGORY_WORD: r"\w",
    codes.CATEGORY_NOT_WORD: r"\W",
}


def _members(code: Any, value: Any) -> Iterator[str]:
    """Return some characters of a class."""
    if code is codes.LITERAL:
        yield chr(value)
    elif code is codes.NOT_LITERAL:
        yield from (letter for letter in _SAMPLES if ord(letter) != value)
    elif code is codes.ANY:
        yield from (letter for letter in _SAMPLES if letter != "\n")
    else:
        negated = value[0][0] is codes.NEGATE
        chosen = [letter for letter in _SAMPLES if _is_in(ord(letter), value) != negated]
        named = [] if negated else [chr(part[1]) for part in value if part[0] is codes.LITERAL]
        ranges = [] if negated else [chr(part[1][0]) for part in value if part[0] is codes.RANGE]
        yield from (*chosen[:4], *named[:4], *ranges[:2])


def _is_in(letter: int, parts: Any) -> bool:
    for code, value in parts:
        if code is codes.LITERAL and letter == value:
            return True
        if code is codes.RANGE and value[0] <= letter <= value[1]:
            return True
        if code is codes.CATEGORY and re.match(_CATEGORIES.get(value, "(?!)"), chr(letter)):
            return True
    return False
