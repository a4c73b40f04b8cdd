"""A campaign in which facts are planted, and questions about them; made from word lists, the same for the same seed."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any

from questbook.memory.recall.query import Present

_STARTS, _ENDS = ("Al", "Bren", "Cor", "Dag", "El", "Fen", "Gar", "Hal", "Is", "Jor", "Kel", "Lor", "Mor", "Nes"), (
    "a", "dric", "wyn", "mund", "is", "ton", "eth", "olf", "inda", "ric", "usk", "ane")  # fmt: skip
_PLACES = (
    "mill",
    "ferry",
    "chapel",
    "quarry",
    "orchard",
    "bridge",
    "tavern",
    "smithy",
    "market",
    "well",
    "barn",
    "gate",
)
_DULL = (
    "{a} shrugs and looks at the {p}. The rain does not stop.",
    "You walk on past the {p}; {a} nods to you from a doorway.",
    "{a} asks about the road. Somebody sings behind the {p}.",
    "The {p} lies quiet. A dog barks, and {a} laughs at it.",
    "You share bread with {a} near the {p} and talk of the weather.",
)
_ASK = (
    "I look around near the {p}.",
    "I go on to the {p}.",
    "I greet {a}.",
    "I wait and listen.",
    "I ask {a} how things are.",
)

# What is planted, and the question; {a} and {b} are names, {p} a place, {x} what is sought.
_FACTS = (
    ("{a} tells you that the password of the {p} is {x}.", "What is {a}'s password for the {p}?"),
    ("{a} owes {b} {x} silver marks since the harvest.", "How much money does {a} owe to {b}?"),
    ("{a} keeps the savings under the third stair of the {p}, in a {x} box.", "Where has {a} hidden the savings?"),
    ("{b} swears to bring {a} a {x} before the first snow.", "What did {b} promise {a}?"),
    ("The scar on the hand of {a} comes from a {x}, says {b}.", "How did {a} get that scar?"),
)
_CAMPS = "You make camp by the {x} {p} and {a} keeps the first watch."
_EVENT = "At last you reach the {x} tower; its door stands open."
_MEETING = "{a} the pedlar stops you on the road and sells you a {x} charm."


def campaign(
    seed: int, turns: int
) -> tuple[str, list[dict[str, Any]], list[tuple[str, str, frozenset[int]]], Present, tuple[str, ...], Any]:
    """Make a campaign of so many turns: thirty turns a session, five a day of the story, a session every third day.

    Returns:
        Name, exchanges, questions with category and the turns that answer them, the present, speakers, timeline.
    """
    said = random.Random(seed)
    names = said.sample([start + end for start in _STARTS for end in _ENDS], 60)
    firsts, seconds = ("zu", "vo", "ki", "ra", "pe", "lu", "to"), ("rin", "dak", "mol", "fes")
    odd = said.sample([a + b + c for a in firsts for b in seconds for c in ("", "ta", "gor", "lis", "um")], 130)
    began, told, questions = datetime(2026, 1, 5, 19, tzinfo=UTC), list[dict[str, Any]](), list[Any]()
    for turn in range(1, turns + 1):
        session = (turn - 1) // 30
        at = began + timedelta(days=3 * session, minutes=4 * ((turn - 1) % 30))
        words = {"a": said.choice(names), "p": said.choice(_PLACES)}
        told.append(
            {"player": said.choice(_ASK).format(**words), "reply": said.choice(_DULL).format(**words), "id": turn,
             "said_at": at.isoformat(), "session": session + 1, "day": 1 + (turn - 1) // 5}
        )  # fmt: skip
    last = told[-1]
    free = [turn for turn in range(3, turns - 40) if turn % 5 not in (0, 1)]
    said.shuffle(free)

    def plant(reply: str, asked: str, category: str) -> int:
        turn = free.pop()
        told[turn - 1]["reply"] = f"{told[turn - 1]['reply']} {reply}"
        questions.append((asked, category, frozenset({turn})))
        return turn

    for number in range(40):
        a, b = said.sample(names, 2)
        words = {"a": a, "b": b, "p": said.choice(_PLACES), "x": odd.pop()}
        reply, asked = _FACTS[number % len(_FACTS)]
        plant(reply.format(**words), asked.format(**words), "fact")
    for _ in range(20):  # asked in one turn, answered in the next, which shares no word with the question
        a, p, x = said.choice(names), said.choice(_PLACES), odd.pop()
        turn = free.pop()
        told[turn - 1] |= {"player": f"I ask {a}: who stole the {x} bell of the {p}?", "reply": f"{a} hesitates."}
        told[turn] |= {"player": "I insist.", "reply": f"“It was {said.choice(names)},” comes the whisper at last."}
        questions.append((f"Who took the {x} bell from the {p}?", "answer", frozenset({turn + 1})))
    for first in range(0, turns - 30, 30):  # one camp a session: only the time tells them apart
        turn = first + 25
        words = {"a": said.choice(names), "p": said.choice(_PLACES), "x": said.choice(_PLACES)}
        told[turn - 1]["reply"] = _CAMPS.format(**words)
        mine, now = told[turn - 1], datetime.fromisoformat(last["said_at"])
        at = datetime.fromisoformat(mine["said_at"])
        days, sessions = (now.date() - at.date()).days, last["session"] - mine["session"]
        ways = [f"on day {mine['day']}", f"in session {mine['session']}", f"on {at.day} {at:%B}", f"{days} days ago",
                f"{sessions} sessions ago"]  # fmt: skip
        questions.append((f"Where did we make camp {said.choice(ways)}?", "time", frozenset({turn})))
    for _ in range(10):  # a tower, and a pedlar on either side of it
        x = odd.pop()
        tower = said.choice([turn for turn in range(40, turns - 40) if turn % 5 == 0 and turn % 30 != 25])
        told[tower - 1]["reply"] = _EVENT.format(x=x)
        for side, turn in (("before", tower - 4), ("after", tower + 6)):
            a = said.choice(names)
            told[turn - 1]["reply"] = _MEETING.format(a=a, x=odd.pop())
            questions.append((f"Which pedlar did we meet {side} we reached the {x} tower?", "event", frozenset({turn})))
    held = [one for one in questions if all(_unchanged(told[turn - 1], one) for turn in one[2])]
    present = Present(datetime.fromisoformat(last["said_at"]), last["day"], last["session"])
    return f"planted{seed}", told, held, present, (), [("main", turns)]


def _unchanged(turn: dict[str, Any], question: tuple[str, str, frozenset[int]]) -> bool:
    """Whether what was planted was not written over by what was planted later."""
    sign = {"fact": "", "answer": "whisper", "time": "make camp", "event": "pedlar"}[question[1]]
    return sign in turn["reply"]
