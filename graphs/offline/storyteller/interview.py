"""Interview: getting to know the character. One message may say everything; what is missing is asked one by one."""

from __future__ import annotations

import random
import re

from questbook.graphs.offline.storyteller import portrait
from questbook.graphs.offline.storyteller.language import article, fill, load, pattern, saying, seeded, upper
from questbook.types import JSON

REQUIRED = ("name", "ancestry", "class", "background", "goal")


def answer(
    *, page: JSON, missing: list[str], words: str, asked: str, result: str, seed: int | None
) -> tuple[str, JSON | None]:
    """Return the reply to a message in the interview, and the patch to note, if anything was learnt.

    Args:
        page: The character's page so far.
        missing: Required fields that are still open.
        words: The newest message; "" after a tool call.
        asked: The storyteller's last message.
        result: What the tool answered, if it was called just now.
        seed: Chooses among replies.
    """
    chance = seeded((seed, words, asked, repr(sorted(page.items(), key=lambda field: field[0])), result))
    open_fields = missing or [field for field in REQUIRED if not page.get(field)]
    if result:
        return _after_noting(result, page, open_fields, chance), None
    if pattern("questions", "honest").search(words):
        return f"{saying('honest')} And now you: {_question(open_fields, chance)}", None
    field = asked_field(asked)
    insist = bool(field) and load("interview")["ideas"][field] in asked
    patch = portrait.read(words, field if field in open_fields else "", page, insist=insist)
    drawn: list[str] = []
    if pattern("questions", "surprise").search(words):
        patch, drawn = _draw(words, patch, open_fields, chance)
    if not patch:
        return _ask_again(words, field if field in open_fields else "", asked, open_fields, chance), None
    left = [field for field in open_fields if not patch.get(field)]
    if left:
        return f"{_take_up(patch, page, drawn, chance)} {_question(left, chance)}", patch
    complete = _pick("complete", chance).replace("{name}", str(patch.get("name") or page.get("name")))
    return f"{_drawn(drawn, patch)} {complete}".strip() if drawn else complete, patch


def asked_field(message: str) -> str:
    """Say which field the last question of a message is about; "" if about none."""
    question = (re.findall(r"[^.!?]*\?", message) or [""])[-1]
    own = (f for f in REQUIRED if any(text in message for text in load("interview")["questions"][f]))
    return next(own, next(iter(_named_fields(question)), ""))


def _draw(words: str, patch: JSON, open_fields: list[str], chance: random.Random) -> tuple[JSON, list[str]]:
    """Fill from the tables what the player leaves to chance: the fields that they name, or all."""
    patch = {field: value for field, value in patch.items() if not pattern("questions", "surprise").search(str(value))}
    named = _named_fields(words)
    drawn = [field for field in open_fields if field not in patch and (not named or field in named)]
    return patch | {field: chance.choice(load("interview")["chance"][field]) for field in drawn}, drawn


def _drawn(drawn: list[str], patch: JSON) -> str:
    fields = "; ".join(f"{field}: {patch[field]}" for field in drawn)
    return f"You leave it to me, so I have drawn from the hat – {fields}."


def _take_up(patch: JSON, page: JSON, drawn: list[str], chance: random.Random) -> str:
    """Say what has been noted."""
    if drawn:
        return _drawn(drawn, patch)
    fields = [field for field in REQUIRED if field in patch]
    if changed := ", ".join(f"{field} {patch[field]}" for field in fields if page.get(field)):
        return _pick("changed", chance).replace("{what}", changed)
    parts = {field: str(value) for field, value in patch.items()}
    parts |= {f"{field}_a": upper(article(parts[field])) for field in ("ancestry", "class") if field in patch}
    texts = [fill(chance.choice(load("interview")["taken_up"][field]), parts) for field in fields[:2]]
    return " ".join(texts) or _pick("noted", chance)


def _question(open_fields: list[str], chance: random.Random, asked: str = "") -> str:
    """Ask for the first open field, in other words than last time."""
    if not open_fields:
        return "Is there anything else I should know about you?"
    questions = load("interview")["questions"][open_fields[0]]
    return str(chance.choice([question for question in questions if question not in asked] or questions))


def _ask_again(words: str, field: str, asked: str, open_fields: list[str], chance: random.Random) -> str:
    """Ask once more, with examples: nothing was understood."""
    if not asked or not open_fields:
        return f"{_pick('welcome', chance)} {_question(open_fields, chance)}"
    field = field or open_fields[0]
    wanted = _named_fields(words)
    if not pattern("questions", "ideas").search(words) and not (words.strip().endswith("?") and wanted):
        opening = "Well met!" if pattern("questions", "greeting").match(words) else _pick("again", chance)
        wanted = [field]
    else:
        opening = ""
        wanted = wanted or [name for name in ("ancestry", "class") if name in open_fields] or [field]
    ideas = " ".join(load("interview")["ideas"][name] for name in wanted)
    return f"{opening} {ideas} {_question([field], chance, asked)}".strip()


def _after_noting(result: str, page: JSON, open_fields: list[str], chance: random.Random) -> str:
    if pattern("questions", "refused").search(result):
        reason = " ".join(result.split())[:200]
        return (
            f"That would not go on the page ({reason}) Say it to me once more, in other words? "
            f"{_question(open_fields, chance)}"
        )
    if not open_fields:
        return _pick("complete", chance).replace("{name}", str(page.get("name") or "traveller"))
    return _question(open_fields, chance)


def _named_fields(words: str) -> list[str]:
    return [field for field in REQUIRED if pattern("questions", "fields", field).search(words)]


def _pick(occasion: str, chance: random.Random) -> str:
    return str(chance.choice(load("interview")[occasion]))
