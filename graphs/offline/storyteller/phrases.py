"""Phrases: how names, lists and wishes are said."""

from __future__ import annotations

import re


def filled(text: str, **parts: str) -> str:
    """Put parts for {placeholders}; braces that a player wrote stay what they are."""
    return re.sub(r"\{(\w+)\}", lambda found: parts.get(found[1], found[0]), text)


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


def spoken(goal: str) -> str:
    """Turn a goal as the player wrote it into what somebody else would call it: "wants my ring" to "your ring"."""
    wish = r"(?:i\s+)?(?:wants?|wishes|wish|would like|needs?|hopes?|seeks?)\s+"
    plain = re.sub(rf"^(?:{wish}|i(?:['’]m|\s+am)\s+(?=\w+ing\b))", "", goal.strip(), flags=re.I)
    mine = {"my": "your", "me": "you", "i": "you", "mine": "yours", "myself": "yourself"}
    mine |= {"i am": "you are", "i'm": "you're", "i’m": "you’re", "i was": "you were"}
    return re.sub(
        r"\b(i(?: am|['’]m| was)?|my|me|mine|myself)\b", lambda w: mine[w[0].casefold()], plain, flags=re.I
    ).rstrip(".! ")[:160]


def neat(text: str) -> str:
    """Take a piece out of a sentence: single spaces, no punctuation at its ends."""
    return " ".join(text.split()).strip(' .,;:!"“”')


def as_said(bare: str, said: str) -> str:
    """Put before a noun the article that it was said with: "the hammer", and "your hammer" for "my hammer"."""
    found = re.search(rf"\b(the|an?|my|our|his|her|their)\s+{re.escape(bare)}(?!\w)", said, re.I) if bare else None
    return f"{'your' if (word := found[1].casefold()) in ('my', 'our') else word} {bare}" if found else bare
