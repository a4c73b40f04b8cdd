"""Games of Microsoft's TextWorld: the person plays one and tells what comes of it; `env.copy()` is forked with it.

TextWorld is asked for facts alone, never for prose, so no interpreter of text games runs. Its group of dependencies is
`textworld`, because it brings Jericho, which is under the GPL.
"""

from __future__ import annotations

import random
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.forkbench.worlds import Event

MOVED = {"at": "in", "in": "in", "on": "on"}
STATES = ("open", "closed", "locked")
GAMES = 6  # that are made; each is played in many ways
VERBS = {"take", "drop", "put", "insert", "open", "close", "lock", "unlock", "go", "eat"}


@cache
def game(seed: int) -> TextWorld:
    """Return the beginning of one of a few games; copy it before you play. Making one takes half a second."""
    return TextWorld(seed % GAMES)


class TextWorld:
    """A game of TextWorld, and which events made its things what they are.

    Args:
        seed: Of the game.
    """

    def __init__(self, seed: int) -> None:
        import textworld
        from textworld.generator import make_game

        options = textworld.GameOptions()
        options.seeds, options.nb_rooms, options.nb_objects, options.quest_length = seed, 4, 10, 3
        with tempfile.TemporaryDirectory(prefix="textworld") as folder:
            path = str(Path(folder) / "game.json")
            make_game(options).save(path)
            self._env: Any = textworld.start(path, textworld.EnvInfos(facts=True, admissible_commands=True))
            self._state: Any = self._env.reset()
            self._lighten()
        self._events: dict[str, tuple[str, Event]] = {}

    def copy(self) -> TextWorld:
        """Return a game that goes on from here by itself."""
        other = object.__new__(TextWorld)
        other._env, other._state, other._events = self._env.copy(), self._state, dict(self._events)
        return other

    def tell(self, dice: random.Random, token: str) -> Event:
        """Enter a command that changes one thing, and tell it."""
        commands = [one for one in self._state.admissible_commands if one.partition(" ")[0] in VERBS]
        for command in dice.sample(sorted(commands), len(commands)):
            before = _things(self._state.facts)
            self._state, _, _ = self._env.step(command)
            self._lighten()
            after = _things(self._state.facts)
            changed = {slot for slot in {*before, *after} if before.get(slot) != after.get(slot)}
            if len(changed) == 1:
                [slot] = changed
                value = after.get(slot, "gone")
                said = f"I {command}, so {slot} is now {value}, see {token}."
                event = Event(slot, token, said, f"{slot}: {value} ({token})", slot not in after)
                self._events[slot] = (value, event)
                return event
            if changed:
                raise RuntimeError(f"{command!r} changed more than one thing: {sorted(changed)}.")
        raise RuntimeError(f"None of {commands} changes anything.")

    def _lighten(self) -> None:
        """Take the game itself out of what TextWorld reports: `env.copy()` copies it, and each report of it again."""
        self._state |= {"game": None, "_game_progression": None}

    def current(self, slot: str) -> Event | None:
        """Return the event that made a thing what it is now, as TextWorld itself has it."""
        value, event = self._events.get(slot, ("", None))
        if event is not None and _things(self._state.facts).get(slot, "gone") != value:
            raise RuntimeError(f"The oracle has {slot} as {value}, TextWorld has not.")
        return event


def _things(facts: Any) -> dict[str, str]:
    """Read the facts of a game: where each thing is, and whether doors and chests are open."""
    things: dict[str, str] = {}
    for fact in facts:
        names = [variable.name for variable in fact.arguments]
        if fact.name in MOVED and len(names) == 2:
            mine = names[1] == "I"
            thing, place = "the player" if names[0] == "P" else names[0], "my bag" if mine else names[1]
            things[f"{thing}'s place"] = f"{MOVED[fact.name]} {place}"
        elif fact.name in STATES and len(names) == 1:
            things[f"{names[0]}'s state"] = fact.name
    return things
