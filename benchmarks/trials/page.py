"""The page with a log-in: two users and a guest play, look, search, share and try each other's addresses."""

from __future__ import annotations

import random
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from web_server import MIRA, Visitor, page_server

OWN = {"ann": ("isle", "moor"), "bob": ("isle",), "cy": ("isle",)}
SHARED = ("ann", "isle")
GUEST = "cy"
VIEWS = [
    "", "story", "panel/sheet", "panel/quest", "panel/memories", "panel/dice", "panel/summary", "panel/tree",
    "fidelity", "chronicle", "chronicle.md", "behind", "settings", "export", "earlier?before=9",
]  # fmt: skip
STEPS = {"say": 6, "view": 12, "search": 4, "undo": 1, "share": 1, "foreign": 4}


class PageTrial:
    """One page server with its home.

    Args:
        path: An empty directory.
        seed: Of the steps.
    """

    def __init__(self, path: Path, seed: int) -> None:
        self.path, self.dice = path, random.Random(seed)
        self.counts: Counter[str] = Counter()
        self.told: dict[tuple[str, str], list[str]] = {(who, name): [] for who in OWN for name in OWN[who]}
        self.is_shared = False

    def play(self, steps: int) -> dict[str, tuple[int, str]]:
        """Play so many steps, and return each count with its unit."""
        with page_server(self.path / "home", log_in=True, developer=True) as server:
            self.url = server.url
            for who, names in OWN.items():
                for name in names:
                    with self._visitor(who, (who, name)) as visitor:
                        visitor.say(MIRA)
            while self.counts["steps"] < steps:
                [kind] = self.dice.choices(list(STEPS), STEPS.values())
                self.counts["steps"] += 1
                self._step(kind)
        names = ("steps", "answers", "foreign_words", "let_in", "shut_out", "errors")
        units = {"steps": "steps", "answers": "answers"}
        return {name: (self.counts[name], units.get(name, "faults")) for name in names}

    def _visitor(self, who: str, campaign: tuple[str, str]) -> Visitor:
        return Visitor(self.url, f"/u/{campaign[0]}/c/{campaign[1]}/", who)

    def _step(self, kind: str) -> None:
        who = self.dice.choice(list(OWN))
        open_to = [campaign for campaign in self.told if self._may(who, campaign)]
        campaign = self.dice.choice(open_to)
        if kind == "share":
            self.is_shared = not self.is_shared
            with self._visitor(SHARED[0], SHARED) as owner:
                self._read(owner.post("share", guests=GUEST if self.is_shared else ""), SHARED[0], "")
            return
        if kind == "foreign":
            closed = [other for other in self.told if not self._may(who, other)]
            self._try_address(who, self.dice.choice(closed))
            return
        with self._visitor(who, campaign) as visitor:
            if kind == "say":
                word = "zq" + "".join(self.dice.choices("abcdefghijklmnopqrstuvwxyz", k=6))
                self.told[campaign].append(word)
                told = visitor.say(f"I write {word} on the wall, and go on.")
                self._look(repr(told), who, "")
            elif kind == "search":
                every = [word for words in self.told.values() for word in words] or ["wall"]
                word = self.dice.choice(every)
                self._read(visitor.get(f"search?words={word}"), who, word)
            elif kind == "undo":
                if self._owner_turns(campaign):
                    self._read(visitor.post("undo"), who, "", {200, 204, 403, 409})
            else:
                self._read(visitor.get(self.dice.choice(VIEWS)), who, "", {200, 403})

    def _owner_turns(self, campaign: tuple[str, str]) -> bool:
        return len(self.told[campaign]) > 1

    def _try_address(self, who: str, campaign: tuple[str, str]) -> None:
        """Ask for what is not one's own, with one's own token."""
        with self._visitor(who, (who, OWN[who][0])) as visitor:
            visitor.path = f"/u/{campaign[0]}/c/{campaign[1]}/"
            answers = [
                visitor.get(self.dice.choice(VIEWS)),
                visitor.post("say", text="I listen.", ticket="t"),
                visitor.post("forget", words="wall", sure="1", whole="1"),
            ]
        for answer in answers:
            self._read(answer, who, "", {403, 404})
            self.counts["let_in"] += answer.status_code < 400

    def _may(self, who: str, campaign: tuple[str, str]) -> bool:
        return campaign[0] == who or (self.is_shared and (who, campaign) == (GUEST, SHARED))

    def _read(self, answer: Any, who: str, typed: str, allowed: set[int] | None = None) -> None:
        """Count an answer that is an error, or says what its reader may not know; `typed` is their own word."""
        self.counts["errors"] += answer.status_code >= 500
        self.counts["shut_out"] += answer.status_code not in (allowed or {200, 204})
        self._look(answer.text if "zip" not in answer.headers.get("content-type", "") else "", who, typed)

    def _look(self, text: str, who: str, typed: str) -> None:
        closed = (words for campaign, words in self.told.items() if not self._may(who, campaign))
        foreign = {word for words in closed for word in words if word in text} - {typed}
        if foreign:
            print(f"step {self.counts['steps']}: {who} was shown {foreign}", file=sys.stderr)
        self.counts["foreign_words"] += len(foreign)
        self.counts["answers"] += 1
