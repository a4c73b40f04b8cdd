"""Written texts and how they are put together: the TOML files, placeholders, lists, articles, wishes."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from questbook.types import JSON


@cache
def load(name: str) -> JSON:
    """Read a TOML file of this folder, once."""
    file = files("questbook.graphs.offline.storyteller").joinpath(f"{name}.toml")
    return tomllib.loads(file.read_text(encoding="utf-8"))


@cache
def pattern(name: str, *path: str) -> re.Pattern[str]:
    """Compile a regular expression of a TOML file, or a list of alternatives; it ignores case.

    Line breaks are left out, and <name> stands for the piece of that name in the file's table `parts`.
    """
    value: Any = load(name)
    for key in path:
        value = value[key]
    return expression(name, value if isinstance(value, str) else "|".join(value))


def expression(name: str, text: str) -> re.Pattern[str]:
    """Compile a regular expression with the pieces of a TOML file, as `pattern` does."""
    parts = load(name)["parts"]
    while match := re.search(rf"(?<!\?P)<({'|'.join(parts)})>", text):
        text = text.replace(match[0], f"(?:{parts[match[1]]})")
    return re.compile(re.sub(r"\n\s*", "", text), re.IGNORECASE | re.DOTALL)


def table(occasion: str) -> list[str]:
    """Return the texts for an occasion, to choose one from."""
    return list(load("tables")[occasion])


def saying(occasion: str) -> str:
    """Return the one text that there is for an occasion."""
    return str(load("tables")[occasion])


def fill(value: Any, parts: Mapping[str, str]) -> Any:
    """Put parts for {placeholders} in every text of a JSON value; unknown placeholders stay."""
    if isinstance(value, str):
        return re.sub(r"\{(\w+)\}", lambda match: parts.get(match[1], match[0]), value)
    if isinstance(value, Mapping):
        return {fill(name, parts): fill(part, parts) for name, part in value.items()}
    if isinstance(value, list):
        return [fill(part, parts) for part in value]
    return value


def series(parts: list[str], word: str = "and") -> str:
    """List parts as one says them: "a, b and c"."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} {word} {parts[-1]}" if parts else ""


def article(noun: str) -> str:
    """Put an article before a noun that has none."""
    if not noun or noun.split()[0].casefold() in ("a", "an", "the", "some", "your", "his", "her"):
        return noun
    if noun.endswith("s") and not noun.endswith("ss"):
        return f"some {noun}"
    return f"{'an' if noun[0].casefold() in 'aeiou' else 'a'} {noun}"


def upper(text: str) -> str:
    """Begin with a capital, as a sentence does."""
    return text[:1].upper() + text[1:]


def lower(text: str) -> str:
    """Begin small and end without a full stop, as in the middle of a sentence."""
    return text[:1].lower() + text[1:].rstrip(".")


def neat(text: str) -> str:
    """Take a piece out of a sentence: single spaces, no punctuation at its ends."""
    return " ".join(text.split()).strip(' .,;:!"“”')


def spoken(goal: str) -> str:
    """Turn a goal as the player wrote it into what somebody else would call it: "wants my ring" to "your ring"."""
    wish = r"(?:i\s+)?(?:wants?|wishes|wish|would like|needs?|hopes?|seeks?)\s+"
    plain = re.sub(rf"^(?:{wish}|i(?:['’]m|\s+am)\s+(?=\w+ing\b))", "", goal.strip(), flags=re.I)
    return addressed(plain).rstrip(".! ")[:160]


def addressed(text: str) -> str:
    """Turn the player's own words to the player: "my" to "your", "I am" to "you are"."""
    yours = {"my": "your", "me": "you", "i": "you", "mine": "yours", "myself": "yourself"}
    yours |= {"i am": "you are", "i'm": "you're", "i’m": "you’re", "i was": "you were"}
    return re.sub(
        r"\b(i(?: am|['’]m| was)?|my|me|mine|myself)\b", lambda match: yours[match[0].casefold()], text, flags=re.I
    )


def as_said(bare: str, sentence: str) -> str:
    """Put before a noun the article that it was said with: "the hammer", and "your hammer" for "my hammer"."""
    match = re.search(rf"\b(the|an?|my|our|his|her|their)\s+{re.escape(bare)}(?!\w)", sentence, re.I) if bare else None
    return f"{'your' if (word := match[1].casefold()) in ('my', 'our') else word} {bare}" if match else bare
