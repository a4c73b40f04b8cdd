"""Language: the texts in the TOML files, phrases put together, and words compared."""

import hashlib
import random
import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from questbook.graphs.offline.model import compile_text, load_texts
from questbook.types import JSON


@cache
def load(name: str) -> JSON:
    """Read a TOML file of this folder, once."""
    return load_texts(f"storyteller/{name}")


@cache
def pattern(name: str, *path: str) -> re.Pattern[str]:
    """Compile a regular expression of a TOML file, or a list of alternatives, as `expression` does."""
    value: Any = load(name)
    for key in path:
        value = value[key]
    return expression(name, value if isinstance(value, str) else "|".join(value))


def expression(name: str, text: str) -> re.Pattern[str]:
    """Compile a regular expression with the pieces in a TOML file's table `parts`; it ignores case."""
    return compile_text(text, load(name).get("parts", {}), re.IGNORECASE | re.DOTALL)


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
    return [fill(part, parts) for part in value] if isinstance(value, list) else value


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
    plain = addressed(pattern("portrait", "wished").sub("", goal.strip()))
    said = re.split(r"(?<=\w{3}[.!?])\s(?=[A-Z])", plain, maxsplit=1)[0]  # one sentence, whole words
    return (said if len(said) <= 160 else said[:160].rpartition(" ")[0] or said[:160]).rstrip(".,;:! ")


def addressed(text: str) -> str:
    """Turn the player's own words to the player: "my" to "your", "I am" to "you are"."""
    yours = {"my": "your", "me": "you", "i": "you", "mine": "yours", "myself": "yourself", "am i": "are you"}
    yours |= {"i am": "you are", "i'm": "you're", "i’m": "you’re", "i was": "you were", "was i": "were you"}
    own = r"\b((?:am|was) i|i(?: am|['’]m| was)?|my|me|(?:(?<=['’][ms] |of |is |be |it )|(?<=are |was ))mine|myself)\b"
    return re.sub(own, lambda match: yours[match[0].casefold()], text, flags=re.I)


def as_said(bare: str, sentence: str) -> str:
    """Put before a noun the article that it was said with: "the hammer", and "your hammer" for "my hammer"."""
    match = re.search(rf"\b(the|an?|my|our|his|her|their)\s+{re.escape(bare)}(?!\w)", sentence, re.I) if bare else None
    return f"{'your' if (word := match[1].casefold()) in ('my', 'our') else word} {bare}" if match else bare


def entries(value: Any) -> list[tuple[str, Any]]:
    """List what a part of a page holds by name; [] if it is no such part."""
    return [(str(name), entry) for name, entry in value.items()] if isinstance(value, Mapping) else []


def seeded(key: object) -> random.Random:
    """Return a source of chance that depends on nothing but a key."""
    return random.Random(int.from_bytes(hashlib.sha256(repr(key).encode("utf-8", "replace")).digest()[:8], "big"))


@cache
def vocabulary(name: str) -> frozenset[str]:
    """Return one of the lists in words.toml."""
    return frozenset(load("words")[name].split())


def stems(text: str) -> set[str]:
    """Break text into lower-case words without plain endings and small words."""
    return {stem(word) for word in _split(text)} - vocabulary("small")


def stem(word: str) -> str:
    """Strip plural endings: "barrels" and "barrel" are one word."""
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def match(text: str, names: Iterable[str], described: Mapping[str, str] | None = None) -> str | None:
    """Find the name, or the id that is `described`, that shares most words with a text; None if none shares any."""
    wanted = stems(text)
    best, most = None, 0.0
    for name in names if wanted else ():
        shared = len(wanted & stems((described or {}).get(name, name))) + (0.5 if stems(name) <= wanted else 0)
        if shared > most:
            best, most = name, shared
    return best


def short(name: str) -> str:
    """Say a name as people say it: "Maren" for "Maren Holt", but "Old Tobb" whole."""
    first = name.split()[0] if name.split() else name
    return name if first.casefold() in vocabulary("titles") else first


def calls(text: str, name: str) -> bool:
    """Whether a text calls somebody by name: "Tobb" will do for "Old Tobb", but "old" will not."""
    return bool((stems(short(name)) - vocabulary("titles")) & stems(text))


def roots(text: str) -> list[str]:
    """Return the words that count in a search of memory, in order, each once, in one form."""
    words = (word for word in _split(text) if word not in vocabulary("plain"))
    return list(dict.fromkeys(_alike().get(word) or _alike().get(stem(word)) or stem(word) for word in words))


def bases(words: list[str]) -> set[str]:
    """Add to words what past forms may come from: "kicked" answers to "kick", "hoped" to "hope", "robbed" to "rob"."""
    past = [word for word in words if len(word) > 4 and word.endswith("ed")]
    return {*words, *(word[:-cut] for word in past for cut in (1, 2, 3))}


def _split(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", text.casefold().replace("'s", "").replace("’s", ""))


@cache
def _alike() -> dict[str, str]:
    return {form: word for word, forms in load("words")["alike"].items() for form in forms.split()}
