"""A campaign in which facts are planted among thousands that sound like them; the same for the same seed.

Everything is invented. Each turn between tells of somebody else's passwords, debts, homes and fears, in the same words,
and hands that over as facts, too; and it names the people of the planted facts again and again. Planted values hold an
x, a q or a j, which no other word of the tale has, so that finding one in a prompt is finding the fact.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from forgetting_topics import ASKED, CLAIM, DULL, EVENTS, KIN, PLACES, SECRET, TOPICS, Topic
from langchain_core.messages import BaseMessage
from tables import REPLY_CHARS, Tale, words

_ADJECTIVES = ("Grey", "Quiet", "Lame", "Red", "Old", "Merry", "Pale", "Broken", "Tall", "Wet", "Blind", "Bitter")
_NOUNS = ("Heron", "Badger", "Candle", "Nail", "Otter", "Ladle", "Thorn", "Sparrow", "Kettle", "Owl", "Anvil", "Moth")
_STARTS = ("Al", "Bren", "Cor", "Dag", "El", "Fen", "Gar", "Hal", "Is", "Kel", "Lor", "Mor", "Nes", "Ol", "Per", "Ro")
_ENDS = ("bada", "dric", "wyn", "mund", "rella", "ton", "neth", "golf", "inda", "beric", "dusk", "vane", "loth", "mira")
_APART = 2  # turns between two facts that are planted early
_LATER = 7  # turns from a fact to what takes its place


class Planted(NamedTuple):
    """A planted fact.

    Attributes:
        sort: "plain", "updated", "claimed" by the player, or "secret".
        turn: In which it was planted, the last time.
        value: What a prompt must hold.
        outdated: What it said before; "" if it never changed.
        probes: How it is asked for.
    """

    sort: str
    turn: int
    value: str
    outdated: str
    probes: tuple[str, ...]


class _Scene(NamedTuple):
    """What is planted in a turn: words of the player's, of the reply, and the facts that are noted."""

    player: str
    reply: str
    facts: list[dict[str, Any]]


class Campaign(Tale):
    """A tale with planted facts: half of them in the first turns, the others all over it.

    Attributes:
        facts_planted: All of them.
        turns: How many turns are played: so many as were asked for, and those in which the first facts are planted.
        elsewhere: Scenes that this timeline must never hear of.
        unheard: Their values, each with a question about it.
        astray: One of them, if it takes the place of what the turn would tell.
    """

    def __init__(self, turns: int, seed: int = 1, facts: int = 40) -> None:
        self._seed, self._dice = seed, random.Random(f"campaign {seed}")
        names = [start + end for start in _STARTS for end in _ENDS]
        aliases = [f"the {one} {other}" for one in _ADJECTIVES for other in _NOUNS]
        self._dice.shuffle(names)
        self._dice.shuffle(aliases)
        self._people, self._known = list(zip(names[60:], [*aliases[60:], *aliases[60:]], strict=False)), names[:40]
        self._scenes: dict[int, _Scene] = {}
        self._odd = _odd_words(self._dice)
        self._noted: dict[int, list[str]] = {}
        self._weight: dict[str, int] = {}
        self.astray: _Scene | None = None
        sorts = [one for half in self._halves() for one in half[: facts // 2]]
        early = range(2, 2 + _APART * (facts // 2), _APART)
        self.turns = turns + early[-1] + _LATER
        apart = max(1, (turns - early[-1] - 2 * _LATER) // (facts // 2))
        late = range(early[-1] + _APART, early[-1] + _APART + apart * (facts // 2), apart)
        self.facts_planted = [
            self._plant(sort, topic, name, alias, turn)
            for (sort, topic), name, alias, turn in zip(sorts, names, aliases, [*early, *late], strict=False)
        ]
        other = self._halves()[0][:6]
        self.elsewhere = [  # what is planted where this timeline must not see it
            self._scene(topic, names[40 + n], aliases[40 + n], next(self._odd)) for n, (_, topic) in enumerate(other)
        ]
        self.unheard = [
            (scene.facts[-1]["value"], topic.asked[0].format(n=names[40 + n], a=aliases[40 + n], p="mill"))
            for n, ((_, topic), scene) in enumerate(zip(other, self.elsewhere, strict=True))
        ]

    def _halves(self) -> list[list[tuple[str, Topic]]]:
        """Return twice twenty sorts of facts, mixed in the first half as in the second."""
        half = [("updated" if topic.changed else "plain", topic) for topic in TOPICS] + [
            ("plain", topic) for topic in TOPICS if not topic.changed
        ][:4]
        half += [("claimed", CLAIM)] * 3 + [("secret", SECRET)] * 3
        return [self._dice.sample(half, len(half)) for _ in range(2)]

    def _scene(self, topic: Topic, name: str, alias: str, value: str, sort: str = "plain", changed: str = "") -> _Scene:
        place = self._dice.choice(KIN if topic is CLAIM else PLACES)
        said = {"n": name, "a": alias, "p": place, "x": value}
        fact = {
            "text": topic.noted.format(**said),
            "subject": "Mira" if topic is CLAIM else name,
            "attribute": topic.attribute.format(**said),
            "value": value,
            "kind": topic.kind,
            "importance": self._dice.randint(3, 8),
        }
        if topic is CLAIM:
            careful = self._dice.random() < 0.5  # a careless model notes it as if it were so
            fact |= {"kind": "rumour", "claimed_by": "Mira"} if careful else {}
            return _Scene(topic.told.format(**said), f"{name} hears you out and says nothing to that.", [fact])
        if changed:
            fact["text"] = changed.format(**said).replace("“", "").replace("”", "")
            return _Scene("", changed.format(**said), [fact])
        told = f"{name}, whom people call {alias}, {topic.told.format(**said)}"
        if sort == "secret":
            return _Scene("", told, [fact | {"known_by": [name]}])
        if self._dice.random() < 0.5:
            return _Scene("", told, [fact])
        # A model may also note by itself what somebody is called, and leave it out of the fact.
        fact["text"] = fact["text"].replace(f", called {alias},", "")
        called = {"text": f"People call {name} {alias}.", "subject": name, "attribute": "nickname", "value": alias}
        return _Scene("", told, [called | {"kind": "trait", "importance": 3}, fact])

    def _plant(self, sort: str, topic: Topic, name: str, alias: str, turn: int) -> Planted:
        while turn in self._scenes:
            turn += 1
        value, outdated = next(self._odd), ""
        self._scenes[turn] = scene = self._scene(topic, name, alias, value, sort)
        asked = re.search(r"Mira's (\w+) left", scene.facts[0]["text"]) if topic is CLAIM else None
        place = asked[1] if asked else next((p for p in PLACES if p in scene.reply), "")
        if sort == "updated":
            outdated, value, turn = value, next(self._odd), turn + _LATER
            while turn in self._scenes:
                turn += 1
            self._scenes[turn] = self._scene(topic, name, alias, value, sort, topic.changed)
        probes = tuple(probe.format(n=name, a=alias, p=place) for probe in topic.asked)
        return Planted(sort, turn, value, outdated, probes)

    def _other(self, turn: int) -> tuple[str, str, dict[str, Any], dict[str, Any]]:
        """Return what a turn tells besides: of somebody of long standing, of somebody else, and the facts of both."""
        dice = random.Random(f"{self._seed}/{turn}/other")
        place, known = dice.choice(PLACES), dice.choice(self._known)
        name, alias = dice.choice(self._people)
        topic, value = (
            dice.choice((*TOPICS, SECRET)),
            dice.choice(words(turn, f"{self._seed}value", 60).lower().split()[:-1]),
        )
        said = {"n": name, "a": alias, "p": place, "x": value.strip("."), "w": words(turn, "word", 9).strip(".")}
        dull = dice.choice(DULL).format(**said | {"n": known})
        told = f"{name}, whom people call {alias}, {topic.told.format(**said)}"
        event = {
            "text": dice.choice(EVENTS).format(**said | {"n": known}),
            "subject": known,
            "kind": "event",
            "importance": dice.randint(1, 5),
        }
        fact = {
            "text": topic.noted.format(**said),
            "subject": name,
            "attribute": topic.attribute,
            "value": said["x"],
            "kind": topic.kind,
            "importance": dice.randint(3, 8),
            "known_by": [name] if topic is SECRET else [],
        }
        return dull, told, event, fact

    def player(self, turn: int) -> str:
        """Return what the player says."""
        if turn == 1:
            return super().player(turn)
        if (planted := self._at(turn)) and planted.player:
            return planted.player
        dice = random.Random(f"{self._seed}/{turn}/player")
        asked = dice.choice(ASKED).format(n=dice.choice(self._known), p=dice.choice(PLACES))
        return f"{asked} {words(turn, 'player', 40)}"

    def reply(self, turn: int) -> str:
        """Return what the dungeon master tells."""
        dull, told, _, _ = self._other(turn)
        planted = self._at(turn)
        before = " ".join(filter(None, (dull, planted.reply if planted else "", told)))
        return f"{before} {words(turn, 'reply', REPLY_CHARS - len(before))}"

    def facts(self, turn: int) -> list[dict[str, Any]]:
        """Return the facts that are noted: one of two of the others, and what was planted."""
        _, _, event, fact = self._other(turn)
        planted = self._at(turn)
        noted = (planted.facts if planted else []) + ([event, fact] if turn > 1 else [])
        told = [one for one in noted if one["kind"] != "secret"]
        self._noted[turn] = [one["text"] for one in told]
        self._weight |= {one["text"]: one["importance"] for one in told}
        return noted

    def _at(self, turn: int) -> _Scene | None:
        return self.astray or self._scenes.get(turn)

    def questions(self, turn: int) -> list[str]:
        """Return what a model asks when it looks back."""
        dice = random.Random(f"{self._seed}/{turn}/questions")
        return [f"What does {name} want?" for name in dice.sample(self._known, 2)]

    def insights(self, turn: int) -> list[dict[str, Any]]:
        """Return what a model concludes: something of two memories that says neither."""
        dice = random.Random(f"{self._seed}/{turn}/insights")
        name = dice.choice(self._known)
        text = f"{name} may be of use on the road: {words(turn, 'insight', 60).lower()}"
        return [{"text": text, "subject": name, "importance": 5, "cites": [1, 2]}]

    def summary(self, turn: int, messages: Sequence[BaseMessage]) -> str:  # noqa: ARG002
        """Return the running summary as a good model writes it: what matters most, of like weight the newest."""
        prompt = "\n".join(message.text for message in messages)
        past = re.search(r"<summary>\n(.*?)\n</summary>", prompt, re.DOTALL)
        sentences = [line for line in (past[1] if past else "").split("\n") if line]
        for number in re.findall(r'"turn": ?(\d+)', prompt):
            sentences += self._noted.get(int(number), [])
        most = int(re.search(r"at most (\d+) words", prompt)[1])  # type: ignore[index]
        ranked = sorted(range(len(sentences)), key=lambda n: (-self._weight.get(sentences[n], 0), -n))
        kept = set[int]()
        for n in ranked:
            if (length := len(sentences[n].split())) <= most:
                kept.add(n)
                most -= length
        return "\n".join(sentences[n] for n in sorted(kept))


def _odd_words(dice: random.Random) -> Any:
    """Yield words that occur once in the world."""
    firsts, seconds, thirds = ("zu", "vo", "ki", "ra", "pe", "lu", "to"), ("xi", "qua", "jo", "xe"), (
        "rin", "dak", "mol", "fes", "gor", "lis", "um")  # fmt: skip
    every = [a + b + c for a in firsts for b in seconds for c in thirds]
    dice.shuffle(every)
    yield from (word.capitalize() if len(word) % 2 else word for word in every)
