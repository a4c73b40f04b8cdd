"""Rolls that are told and nobody rolled: they are marked, in a reply while it comes, and never count as dice."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from questbook.graphs.models.answer import Verdict
from questbook.memory.text.parts import read_parts

MARK = " (not rolled)"  # behind such a roll, for the player, in the thread and in memory
NOTICE = "The reply told a roll that was not made; it is marked. /retry, or “Other words” on the page, tells it again."

_PARTS = read_parts("questbook.graphs.dungeon_master", "told_rolls.toml", wrapped=True)
_CLAIMS = [part for name, part in _PARTS.items() if name.islower()]
_CLAIM = re.compile("|".join(part.replace("<sum>", f"<sum{n}>") for n, part in enumerate(_CLAIMS)), re.IGNORECASE)
_MAY_BE = re.compile(r"(?:🎲|d(?:\d|%)|roll|check|save|saving|initiative|nat)", re.IGNORECASE)
_DIGITS = re.compile(r"\d+")
_LONGEST = 200  # characters of a line in which a roll is told
_WAIT = 12  # characters behind a number that say whether it is the result of a roll


class ToldRolls:
    """Marks made-up rolls in one reply or in notes, if any was `found`; holds back what may still belong to one."""

    def __init__(self, rolls: Iterable[Mapping[str, Any]]) -> None:
        """Take what was rolled in the turns (`DungeonState.rolls`): what repeats a total or a face of it is true."""
        self.found, self._rolled = False, set[int]()
        for roll in rolls:
            faces = (face for group in roll.get("dice", ()) for face, _ in group["values"])
            self._rolled |= {roll.get("total", 0), *faces}

    def mark(self, text: str, left: int, *, ended: bool) -> str:
        """Return a text that grows, of which `left` characters have left, with marks behind rolls that are complete."""
        start = max(0, left - _LONGEST)
        claims = _CLAIM.finditer(text, start) if _DIGITS.search(text, start) else ()  # few sentences have a number
        for claim in reversed([each for each in claims if each.lastgroup]):
            end = claim.end(told := str(claim.lastgroup))
            is_complete = ended or len(text) > end + _WAIT or "\n" in text[end:]
            if end >= left and is_complete and self._is_made_up(claim[told]) and not text.startswith(MARK, end):
                self.found, text = True, f"{text[:end]}{MARK}{text[end:]}"
        return text

    def marked(self, value: Any, levels: int = 9) -> Any:
        """Return a JSON value with the marks in its texts, as deep as notes go."""
        if isinstance(value, Mapping) and levels:
            return {name: self.marked(part, levels - 1) for name, part in value.items()}
        if isinstance(value, list) and levels:
            return [self.marked(part, levels - 1) for part in value]
        return self.mark(value, 0, ended=True) if isinstance(value, str) else value

    def __call__(self, text: str, start: int, *, ended: bool) -> Verdict:
        """Hold back what follows a number that may be the result of a roll."""
        near = len(text) - 2 * _WAIT
        if ended or not _DIGITS.search(text, max(0, near)):
            return Verdict(len(text))
        line = _MAY_BE.search(text, max(0, text.rfind("\n") + 1, start - _LONGEST))
        numbers = _DIGITS.finditer(text, max(line.start(), near)) if line else ()
        ends = (number.end() for number in numbers)
        return Verdict(next((end for end in ends if end + _WAIT >= len(text)), len(text)))

    def _is_made_up(self, told: str) -> bool:
        numbers = [int(number) for number in _DIGITS.findall(re.split("[=→]", told)[-1])]
        return self._rolled.isdisjoint({numbers[0], numbers[-1], sum(numbers)})
