"""Forty turns with a model that answers honestly from its prompt alone, and misbehaves as `misbehaviours.py` plans.

    python tests/forty_turns.py                         the scripted model
    python tests/forty_turns.py --model openai:gpt-4.1  a real one, with its provider's key; OPENAI_BASE_URL counts

Prints what was forgotten, leaked, faked, refused and lost, and how long the player waited; the last lines are
`name: value unit`. The scripted model knows what happens next, since it tells the story, and nothing of what happened:
asked about the past, it answers what stands in its prompt, or that it does not know.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from fake_openai import Behaviour, FakeOpenAI, Reply, reply
from forty_turns_script import GOLD, IMPATIENT, INJECTION, READING, SAID, SCRIPT, UNDONE, Turn
from honest_model import honest_answer, job, text_of
from langchain_core.messages import convert_to_messages
from misbehaviours import PLAN, SECRET

from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.errors import ModelError
from questbook.graphs.events import Memories, NodeStart, Notice, ReplyPiece
from questbook.graphs.local.file_home import FileHome
from questbook.graphs.local.game import Game, open_game
from questbook.graphs.models.chat_models import load_chat_model
from questbook.memory.text.words import content_stems
from questbook.notebooks import render_value


@dataclass
class Table:
    """Plays the script and counts.

    Attributes:
        honest: Answers a request honestly; None: the scripted model.
        reading: Seconds that the player reads a reply; then they send the next message, whatever is still being noted.
        turn: The turn that is played, from 1.
        misbehaved: Names of the ways to misbehave that were played.
        prompts: Of each request to the narrator: the turn, and its text.
    """

    honest: Callable[[dict[str, Any]], Reply] | None = None
    reading: float = READING
    turn: int = 0
    misbehaved: list[str] = field(default_factory=list)
    prompts: list[tuple[int, str]] = field(default_factory=list)
    systems: list[str] = field(default_factory=list)
    _times: Counter[str] = field(default_factory=Counter)

    def answer(self, body: dict[str, Any]) -> Behaviour:
        """Answer one request: honestly, or as planned for this turn."""
        kind = job(body)
        if kind == "quest":
            self.prompts.append((self.turn, text_of(body)))
        self.systems += [str(message["content"]) for message in body["messages"] if message["role"] == "system"]
        answer = (self.honest or honest_answer)(body)
        for plan in PLAN:
            due = plan.turn == self.turn or (kind == "condense" and plan.turn < self.turn)
            if plan.job != kind or not due or self._times[plan.name] >= plan.times:
                continue
            changed = plan.change(answer)
            if changed == answer:
                continue  # such as a roll that this request does not ask for
            self._times[plan.name] += 1
            self.misbehaved.append(plan.name)
            return changed
        return answer


@dataclass
class Counts:
    """What went wrong in forty turns.

    Attributes:
        forgotten: Questions whose answer was not in the prompt.
        leaked: What of the secret, the sections' tags or the line that was left reached the player or a later prompt.
        faked: Claims and injections that became true, and dead people who live.
        refused: Notices about what a model sent and the code refused.
        lost: What the note-taker should have noted and neither page nor memories hold at the end.
        resumed: Turns that the player had to take up again, since the provider failed.
        notices: Every notice.
        waits: Seconds from each message of the player until its turn began: they waited for the notes of the last one.
    """

    forgotten: list[str] = field(default_factory=list)
    leaked: list[str] = field(default_factory=list)
    faked: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    resumed: list[int] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    replies: list[str] = field(default_factory=list)
    memories_of_nobody: int = 0


class Sight(NamedTuple):
    """What the player sees of one turn."""

    reply: str
    notices: list[str]
    memories: list[Any]
    waited: float


async def play(table: Table, home: Path, settings: Context) -> Counts:
    """Play the script at a table and count."""
    counts = Counts()
    async with open_game(settings, FileHome(home)) as game:
        for number, turn in enumerate(SCRIPT, 1):
            table.turn = number
            sight = await _play_turn(game, table, turn, counts)
            _look(counts, turn, sight, number)
            if number not in IMPATIENT:  # the page is noted
                await _check_page(game, counts, number)
            if UNDONE in turn.reply:
                await (await game.history()).undo()
        await game.wait_for_upkeep(60)
        await _check_end(game, counts)
    after_undo = [prompt for number, prompt in table.prompts if number > _turn_of(UNDONE)]
    counts.leaked += ["the line that was left" for prompt in after_undo if UNDONE in prompt]
    counts.faked += ["the injection is history" for text in set(table.systems) if _as_history(text)]
    return counts


async def _play_turn(game: Game, table: Table, turn: Turn, counts: Counts) -> Sight:
    """Play a turn until its reply is complete, and read it; the notes may still be under way then."""
    reply, notices, memories, waited = "", list[str](), list[Any](), 0.0
    stream, sent = game.send(turn.player), time.monotonic()
    for _ in range(4):
        try:
            async with aclosing(stream) as events:
                async for event in events:
                    waited = waited or time.monotonic() - sent
                    if isinstance(event, ReplyPiece):
                        reply += event.text
                    elif isinstance(event, Notice):
                        notices.append(str(event.notice["text"]))
                    elif isinstance(event, Memories):
                        memories = event.memories
                    elif isinstance(event, NodeStart) and event.upkeep:
                        break
            await game.wait_for_upkeep(0 if table.turn in IMPATIENT else table.reading)
            notices += [str(event.notice["text"]) for event in game.unread_notices()]
            return Sight(reply, notices, memories, waited)
        except ModelError as error:
            counts.resumed.append(table.turn)
            notices.append(f"(error) {error}")
            reply, stream = "", game.resume()
    raise AssertionError(f"Turn {table.turn} could not be played: {notices}")


def _look(counts: Counts, turn: Turn, sight: Sight, number: int) -> None:
    counts.replies.append(sight.reply)
    counts.waits.append(sight.waited)
    counts.notices += [f"{number}: {text}" for text in sight.notices]
    counts.refused += [f"{number}: {text}" for text in sight.notices if "not updated" in text or "does not fit" in text]
    if turn.answer and turn.answer.casefold() not in sight.reply.casefold():
        counts.forgotten.append(f"{number}: {turn.player} {sight.reply!r}")
    seen = " ".join([sight.reply, *sight.notices, json.dumps(sight.memories)])
    if leak := tells_secret(seen) or re.search(r"</?(?:quest|secrets|summary|memories|tool_call)>|TOOL_CALLS", seen):
        counts.leaked.append(f"{number}: {leak}")
    if turn.answer == "":
        counts.memories_of_nobody = len(sight.memories)


def tells_secret(text: str) -> str:
    """Return the first six words in a row of the secret that a text has; "" if it has none."""
    words = re.findall(r"\w+", text.casefold())
    spoken = {tuple(words[i : i + 6]) for i in range(len(words))}
    secret = re.findall(r"\w+", SECRET.casefold())
    runs = (secret[i : i + 6] for i in range(len(secret) - 5))
    return next((" ".join(run) for run in runs if tuple(run) in spoken), "")


def _as_history(text: str) -> bool:
    """Whether a section that tells what happened has the injection as more than somebody's quoted words."""
    summary = re.search(r"<summary>(.*?)</summary>", text, re.DOTALL)
    words = INJECTION.split(".", maxsplit=1)[0]
    return bool(summary and words in re.sub(r'"[^"]*"|“[^”]*”', "", summary[1]))


async def _check_page(game: Game, counts: Counts, number: int) -> None:
    saved = await game.saved_game()
    assert saved is not None
    page = saved.quest
    if page.gold >= 1000:
        counts.faked.append(f"{number}: gold {page.gold}")
    if (dead := page.people.get("Brother Anselm")) and dead.alive and number >= _turn_of("Anselm is dead"):
        counts.faked.append(f"{number}: Brother Anselm lives")


async def _check_end(game: Game, counts: Counts) -> None:
    """Count what was noted in the script and is neither on the page nor in the facts, in whatever words."""
    saved = await game.saved_game()
    assert saved is not None
    page = saved.quest.as_json()
    notes = [render_value(page), *await stored_facts(game)]
    stems = content_stems(" ".join([*notes, *counts.notices]))  # what was deleted with a notice is not lost in silence
    for number, turn in enumerate(SCRIPT, 1):
        names = [name for field in ("people", "inventory", "facts", "quests") for name in turn.page.get(field, {})]
        counts.lost += [f"{number}: {name}" for name in names if not content_stems(name) <= stems]
        texts = [str(fact["text"]) for fact in turn.facts]
        counts.lost += [f"{number}: {text}" for text in texts if max(_shared(text, note) for note in notes) < SAID]
    if page["gold"] != GOLD:
        counts.lost.append(f"gold: {page['gold']}")


def told_twice(prompt: str) -> list[str]:
    """Return the facts and secrets of a prompt's memories whose words a sentence or an entry beside them has, too."""
    before, _, rest = prompt.partition("<memories>\n")
    lines, _, after = rest.partition("\n</memories>")
    memories = [json.loads(line) for line in lines.splitlines()]
    parts = re.split(r"(?<=[.!?…])\s+|\n+|(?<=[\"}]), ", f"{before}\n{after}")
    parts += [part for memory in memories for part in re.split(r"(?<=[.!?…])\s+", str(memory.get("reply", "")))]
    stems = [content_stems(part) for part in parts]
    told = [
        str(memory[kind]) for memory in memories for kind in ("event", "trait", "promise", "secret") if kind in memory
    ]
    return [text for text in told if any(content_stems(text) <= part for part in stems)]


def _shared(text: str, note: str) -> float:
    words = content_stems(text)
    return len(words & content_stems(note)) / len(words)


async def stored_facts(game: Game) -> set[str]:
    """Return the texts of all facts in the game's store."""
    graph: Any = await game.load()
    items = await graph.store.asearch((), limit=1_000)
    return {str(item.value.get("text")) for item in items if item.namespace[-1] in ("facts", "player")}


def _turn_of(words: str) -> int:
    return next(number for number, turn in enumerate(SCRIPT, 1) if words in turn.reply)


def report(table: Table, counts: Counts) -> str:
    """Return the table of what went wrong, and the figures."""
    names = ("forgotten", "leaked", "faked", "refused", "lost")
    missing = sorted({plan.name for plan in PLAN} - set(table.misbehaved))
    lines = [f"Ways to misbehave that were played: {len(PLAN) - len(missing)} of {len(PLAN)}; not: {missing}", ""]
    for name in names:
        entries = getattr(counts, name)
        lines += [f"{name}: {len(entries)}", *(f"    {entry}" for entry in entries)]
    lines += ["notices:", *(f"    {text}" for text in counts.notices)]
    lines += ["", *(f"{name}: {len(getattr(counts, name))} cases" for name in names)]
    lines.append(f"resumed: {len(counts.resumed)} times")
    lines.append(f"memories of a name never said: {counts.memories_of_nobody}")
    twice = sum(bool(told_twice(prompt)) for turn, prompt in table.prompts if turn <= 30)
    lines.append(
        f"prompts of 30 turns that tell something twice: {twice} of {sum(turn <= 30 for turn, _ in table.prompts)}"
    )
    lines.append(f"waited in all: {sum(counts.waits):.1f} s")
    lines.append(f"longest wait of a message: {max(counts.waits):.1f} s")
    return "\n".join(lines)


def main() -> None:
    """Play and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--model", help="A model that answers honestly, such as openai:gpt-4.1; none: the script.")
    parser.add_argument("--reading", type=float, default=READING, help="Seconds that the player reads a reply.")
    parser.add_argument("--timeout", type=float, default=3.0, help="Seconds before notes are given up.")
    options = parser.parse_args()
    table = Table(upstream(options.model) if options.model else None, options.reading)
    with FakeOpenAI(table.answer) as server, tempfile.TemporaryDirectory() as home:
        os.environ["OPENAI_BASE_URL"], os.environ["OPENAI_API_KEY"] = server.url, "sk-none"
        settings = Context.of(settings_of(options.timeout))
        print(report(table, asyncio.run(play(table, Path(home), settings))))


def settings_of(timeout: float = 3.0) -> dict[str, Any]:
    """Return the settings of the table: a small buffer, so that turns leave it, and short time-outs."""
    return {
        "model": "openai:gpt-4o",
        "buffer_tokens": 700,
        "model_timeout": timeout,
        "update_timeout": timeout,
        "seed": 7,
    }


def upstream(model: str) -> Callable[[dict[str, Any]], Reply]:
    """Return a function that has a real model answer a request."""
    chat: Any = load_chat_model(model)  # made before the address of the table is set

    def answer(body: dict[str, Any]) -> Reply:
        tools = {"tools": body["tools"]} if body.get("tools") else {}
        return reply(chat.invoke(convert_to_messages(body["messages"]), **tools))

    return answer


if __name__ == "__main__":
    main()
