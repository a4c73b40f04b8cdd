"""What a memory costs, and how long a reply may be: CPU of a recall, bytes in the store, ten facts that were told."""

from __future__ import annotations

import random
import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from evidence_agent import Life, opened
from tables import words

from questbook import HashEmbeddings

EXCHANGES = 1_000
REPLIES = (600, 2_500)  # characters
WARMING, ROUNDS = 5, 3
QUESTIONS = WARMING + 60 * ROUNDS
LENGTHS = (2_500, 4_000, 5_000, 25_000)  # of replies between facts, in characters
TOKENS = 800
FACTS = (
    ("My dentist is Doctor Okafor, in Mill Lane.", "Who is my dentist?", "Okafor"),
    ("We called our new puppy Biscuit.", "What is the name of our puppy?", "Biscuit"),
    ("I was born in Tromso, in the north of Norway.", "Where was I born?", "Tromso"),
    ("I am allergic to cashews, so I always read labels.", "What am I allergic to?", "cashews"),
    ("My sister Helena works as a glassblower.", "What does my sister do for a living?", "glassblower"),
    ("The code of our garage door is 7719.", "What is the code of the garage door?", "7719"),
    ("On Thursdays I play the bassoon in an orchestra.", "Which instrument do I play?", "bassoon"),
    ("My flight to Lisbon leaves on 14 December.", "When does my flight leave?", "14 December"),
    ("I drive an old green Saab.", "Which car do I drive?", "Saab"),
    ("My favourite novel is Middlemarch.", "Which novel is my favourite?", "Middlemarch"),
)


async def cost_of_recall(reply_chars: int) -> dict[str, float]:
    """Return the CPU of a recall in ms and the bytes of the store for each exchange.

    The CPU is that of a turn up to its model call, less that of the same turn without recall: the median over
    new questions, in the best of three rounds.

    Args:
        reply_chars: Length of the replies; what the person says has 80 characters.
    """
    turns = [(words(n, "player", 80), words(n, "reply", reply_chars)) for n in range(EXCHANGES)]
    dice, asked = random.Random(reply_chars), list[str]()
    for n in range(QUESTIONS):
        told = turns[dice.randrange(EXCHANGES)][n % 2].split()
        begin = dice.randrange(max(1, len(told) - 5))
        asked.append(f"What did I say of {' '.join(told[begin : begin + 5])}?")
    with tempfile.TemporaryDirectory(prefix="evidence") as home:
        async with opened(Path(home), HashEmbeddings()) as store:
            life = Life(store, [TOKENS])
            await life.live("long", turns)
            await _cpu(life, asked[:WARMING])
            best = min([await _cpu(life, asked[WARMING + part :: ROUNDS]) for part in range(ROUNDS)])
        size = _bytes(home)
    return {"CPU of a recall, ms": best, "bytes in the store per exchange": size / EXCHANGES}


async def _cpu(life: Life, asked: Sequence[str]) -> float:
    """Return the median CPU of a recall, in ms."""
    spent: dict[int, list[float]] = {0: [], TOKENS: []}
    for question in asked:
        for tokens, times in spent.items():
            started = time.process_time()
            await life.ask("long", question, tokens)
            times.append(1000 * (time.process_time() - started))
    return statistics.median(more - less for more, less in zip(spent[TOKENS], spent[0], strict=True))


async def facts_found(reply_chars: int) -> Mapping[str, bool]:
    """Return of each fact that was told whether the prompt of a new thread has it when it is asked about."""
    told = [fact for fact, _, _ in FACTS] + ["Thanks.", "That will be all for today."]
    turns = [(said, words(number, "reply", reply_chars)) for number, said in enumerate(told)]
    found = {}
    with tempfile.TemporaryDirectory(prefix="evidence") as home:
        async with opened(Path(home), HashEmbeddings()) as store:
            life = Life(store, [TOKENS])
            await life.live("told", turns)
            for number, (_, question, answer) in enumerate(FACTS):
                prompt = await life.ask(f"new {number}", question, TOKENS)
                found[question] = any(answer in text for text in prompt.texts)
    return found


def _bytes(home: str) -> int:
    return sum(file.stat().st_size for file in Path(home).rglob("*") if file.is_file())
