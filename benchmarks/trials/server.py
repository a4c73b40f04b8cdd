"""LangGraph's own server with the dungeon master: random turns, forks, edits and kills, through its API alone."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import httpx
from dev_server import DevServer
from langgraph_sdk.errors import APIStatusError

MIRA = "I'm Mira, a halfling thief who grew up on the docks and wants her sister back."
WRONG_EDITS: list[dict[str, Any]] = [
    {"quest": {"gold": "much"}},
    {"quest": {"treasure": 1}},
    {"turn": -5},
    {"turn": "x"},
    {"timeline": [["x", -1]]},
    {"messages": 5},
    {"remembered_through": 99},
    {"notices": "x"},
]
STEPS = {"tell": 10, "ask": 5, "fork": 4, "edit": 2, "wrong edit": 2, "thread": 1, "kill": 1}


class Spot(NamedTuple):
    """A place of a story: a checkpoint after a turn, and what was told on the way to it."""

    checkpoint: str
    told: tuple[str, ...]  # the words of its turns; "" for a turn that told none
    gold: int | None = None  # what a person has written on the page


@dataclass
class Story:
    """A thread with the places that were reached on it."""

    thread: str
    campaign: str
    spots: list[Spot] = field(default_factory=list)

    @property
    def now(self) -> Spot:
        """Where the thread is."""
        return self.spots[-1]


class ServerTrial:
    """One server with its home.

    Args:
        path: An empty directory.
        seed: Of the steps.
    """

    def __init__(self, path: Path, seed: int) -> None:
        self.server, self.dice = DevServer(path / "home", path / "server"), random.Random(seed)
        self.counts: Counter[str] = Counter()
        self.stories: list[Story] = []
        self.heads: dict[str, tuple[str, ...]] = {}  # by campaign: what was told on the way to its head
        self.words: list[str] = []

    async def play(self, steps: int) -> dict[str, tuple[int, str]]:
        """Play so many steps, and return each count with its unit."""
        self.client = self.server.start()
        try:
            await self._begin("story0")
            while self.counts["steps"] < steps:
                [kind] = self.dice.choices(list(STEPS), STEPS.values())
                self.counts["steps"] += 1
                await self._step(kind)
        finally:
            self.server.stop()
        units = {"steps": "steps", "turns": "turns", "kills": "kills"}
        names = (*units, "leaked", "missing", "doubled", "lost", "refusals_not_given", "errors")
        return {name: (self.counts[name], units.get(name, "faults")) for name in names}

    async def _step(self, kind: str) -> None:
        story = self.dice.choice(self.stories)
        match kind:
            case "tell" | "ask":
                await self._turn(story, story.now, asks=kind == "ask")
            case "fork":
                await self._turn(story, self.dice.choice(story.spots), asks=self.dice.random() < 0.5)
            case "edit":
                gold = self.dice.randrange(1000)
                where = await self._update(story, {"quest": {"gold": gold}})
                story.spots.append(Spot(where["checkpoint"]["checkpoint_id"], story.now.told, gold))
            case "wrong edit":
                try:
                    await self._update(story, self.dice.choice(WRONG_EDITS))
                    self.counts["refusals_not_given"] += 1
                except APIStatusError as error:
                    self.counts["errors"] += error.status_code != 400
            case "thread":
                campaign = self.dice.choice([story.campaign, f"story{len(self.stories)}"])
                await self._begin(campaign)
            case "kill":
                await self._kill(story)

    async def _update(self, story: Story, values: dict[str, Any]) -> Any:
        return await self.client.threads.update_state(story.thread, values, as_node="remember")

    async def _begin(self, campaign: str) -> None:
        thread = await self.client.threads.create(graph_id="dungeon_master")
        story = Story(thread["thread_id"], campaign)
        told = self.heads.get(campaign, ())
        self.stories.append(story)
        await self._turn(story, Spot("", told), words="" if told else MIRA)

    async def _turn(self, story: Story, spot: Spot, *, asks: bool = False, words: str = "") -> None:
        """Play a turn from a place, and compare the prompts with what was told there."""
        told = [word for word in spot.told if word]
        asked = self.dice.choice(told) if asks and told else ""
        word = "" if words or asked else self._word()
        words = words or (f"What do I know of {asked}?" if asked else f"I write {word} on the wall, and go on.")
        texts = await self._run(story, spot, words)
        self._compare(texts, {*told, word}, asked)
        await self._arrive(story, spot, words, word)

    async def _run(self, story: Story, spot: Spot, words: str) -> str:
        """Run a turn; return all that the model and the person saw."""
        shown = []
        stream = self.client.runs.stream(
            story.thread,
            "dungeon_master",
            input={"messages": [{"role": "user", "content": words}]},
            context=self._context(story),
            checkpoint_id=spot.checkpoint or None,
            stream_mode=["custom", "updates"],
            durability="sync",
        )
        async for part in stream:
            if part.event == "error":
                self.counts["errors"] += 1
            shown.append(json.dumps(part.data))
        return "\n".join(shown)

    def _context(self, story: Story) -> dict[str, Any]:
        return {"campaign": story.campaign, "seed": 3, "buffer_tokens": 300, "recall_tokens": 1500}

    def _compare(self, texts: str, told: set[str], asked: str) -> None:
        leaked = {word for word in self.words if word in texts} - told  # an id may look like a word
        if leaked:
            print(f"step {self.counts['steps']}: {leaked} leaked", file=sys.stderr)
        self.counts["leaked"] += len(leaked)
        without = texts.replace(f"What do I know of {asked}?", "")
        self.counts["missing"] += bool(asked) and asked not in without
        self.counts["turns"] += 1

    async def _arrive(self, story: Story, spot: Spot, words: str, word: str) -> None:
        """Check the thread's state after a turn, and keep the place."""
        state = await self.client.threads.get_state(story.thread)
        values, told = state["values"], (*spot.told, word)
        self.counts["lost"] += values["turn"] < len(told)
        self.counts["doubled"] += values["turn"] > len(told)
        said = [message["content"] for message in values["messages"] if message["type"] == "human"]
        self.counts["doubled"] += bool(word) and said.count(words) > 1
        if spot.gold is not None and values["quest"].get("gold") != spot.gold:
            self.counts["lost"] += 1
        story.spots.append(Spot(state["checkpoint"]["checkpoint_id"], told))
        self.heads[story.campaign] = told

    async def _kill(self, story: Story) -> None:
        """Kill the server in the middle of a turn, start it again, and run the turn to its end."""
        word, spot = self._word(), story.now
        words = f"I write {word} on the wall, and go on."
        message = {"messages": [{"role": "user", "content": words}]}
        await self.client.runs.create(
            story.thread, "dungeon_master", input=message, context=self._context(story), durability="sync"
        )
        await asyncio.sleep(self.dice.random() * 0.3)
        os.kill(self.server.process.pid, signal.SIGKILL)
        self.server.process.wait()
        self.server.log.close()
        self.counts["kills"] += 1
        self.client = self.server.start()
        for each in self.stories:  # the server writes its own list of threads now and then
            await self.client.threads.create(thread_id=each.thread, graph_id="dungeon_master", if_exists="do_nothing")
        while any([await self._runs(story, status) for status in ("pending", "running")]):  # noqa: ASYNC110 (another process works)
            await asyncio.sleep(0.2)
        values = (await self.client.threads.get_state(story.thread))["values"]
        if values["turn"] <= len(spot.told):  # nothing of the turn is kept, or its message alone
            said = [one["content"] for one in values["messages"] if one["type"] == "human"]
            if said[-1:] == [words]:
                await self.client.runs.wait(story.thread, "dungeon_master", context=self._context(story))
            else:
                await self._run(story, Spot("", spot.told), words)
        elif (await self.client.threads.get_state(story.thread))["next"]:
            await self.client.runs.wait(story.thread, "dungeon_master", context=self._context(story))
        self.counts["turns"] += 1
        await self._arrive(story, spot, words, word)

    async def _runs(self, story: Story, status: Any) -> list[Any]:
        try:
            return list(await self.client.runs.list(story.thread, status=status))
        except httpx.HTTPStatusError:
            return []

    def _word(self) -> str:
        self.words.append("zq" + "".join(self.dice.choices("abcdefghijklmnopqrstuvwxyz", k=6)))
        return self.words[-1]
