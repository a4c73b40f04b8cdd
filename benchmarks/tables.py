"""A chat model of tables, for benchmarks of whole games: it answers by the tools that are bound, without network."""

from __future__ import annotations

import itertools
import json
import random
from collections import deque
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any, NamedTuple

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.messages.utils import count_tokens_approximately
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from pydantic import Field

REPLY_CHARS = 600
DICE_EVERY = 4
SYLLABLES = [a + b for a in "bcdfghklmnprstvwz" for b in ("a", "e", "i", "o", "u", "an", "or", "is", "el", "um")]
WORDS = ["".join(SYLLABLES[(rank * 7919 + 13) // 170**power % 170] for power in range(2)) for rank in range(5000)]
_SUMMARY = "You keep the running summary"  # so the dungeon master's prompt for it begins
RARITY = list(itertools.accumulate(1 / (rank + 2.7) for rank in range(len(WORDS))))


def words(turn: int, salt: str, chars: int) -> str:
    """Return prose of made-up words, as frequent as words are, the same for the same turn."""
    dice, told = random.Random(f"{turn}/{salt}"), ""
    while len(told) < chars:
        sentence = " ".join(dice.choices(WORDS, cum_weights=RARITY, k=dice.randint(6, 14)))
        told += sentence.capitalize() + ". "
    return told[: chars - 1].rstrip() + "."


class Tale:
    """What is said in a game, and what a model makes of it: the same for the same turn."""

    def player(self, turn: int) -> str:
        """Return what the player says."""
        if turn == 1:
            return "I'm Mira, a halfling rogue who grew up on the docks and wants her sister back."
        return "I go on and " + words(turn, "player", 68).lower()

    def notes(self, turn: int) -> dict[str, Any]:
        """Return a patch as a model makes it: the scene, and now and then somebody new in the place of somebody old."""

        def entry(kind: str, number: int) -> str:
            return words(number, kind, 14).rstrip(".").title()

        patch: dict[str, Any] = {
            "scene": words(turn, "scene", 160),
            "gold": 10 + turn * 7 % 60,
            "facts": {entry("fact", turn): words(turn, "learnt", 70), entry("fact", turn - 18): None},
        }
        if turn % 3 == 0:
            patch |= {"location": entry("place", turn // 9), "clock": {"day": 1 + turn // 12, "time": "dusk"}}
        if turn % 5 == 0:
            new, old = entry("person", turn), entry("person", turn - 50)
            somebody = {"role": words(turn, "role", 20), "attitude": "wary", "last_seen": words(turn, "seen", 30)}
            patch |= {
                "people": {new: somebody, old: None},
                "inventory": {entry("item", turn): 1, entry("item", turn - 50): 0},
            }
        if turn % 20 == 0:
            quest = {"status": "open", "notes": words(turn, "quest", 80)}
            patch |= {"quests": {entry("quest", turn): quest, entry("quest", turn - 100): None}}
            patch |= {"secrets": {entry("secret", turn): words(turn, "hidden", 80), entry("secret", turn - 100): None}}
        return patch

    def facts(self, turn: int) -> list[dict[str, Any]]:
        """Return what a model hands over as facts: two a turn, of which every seventh turn one ends an older one."""
        somebody = words(turn // 50, "person", 14).rstrip(".").title()
        event = {"text": words(turn, "event", 90), "subject": somebody, "kind": "event", "importance": 3 + turn % 5}
        place = words(turn // 7, "whereabouts", 14).rstrip(".")
        slot = {"attribute": "whereabouts", "value": place, "kind": "trait", "importance": 4}
        return [event, {"text": f"{somebody} is at {place}.", "subject": somebody, **slot}]

    def questions(self, turn: int) -> list[str]:
        """Return what a model asks when it looks back: about somebody of late, somebody of long ago, and a place."""
        late, past = (words(n // 50, "person", 14).rstrip(".").title() for n in (turn, turn // 2))
        place = words(turn // 7, "whereabouts", 14).rstrip(".")
        return [f"What does {late} want?", f"Where has {past} been of late?", f"What happened at {place}?"]

    def insights(self, turn: int) -> list[dict[str, Any]]:
        """Return two conclusions, each of two of the memories that the model was shown."""
        somebody = words(turn // 50, "person", 14).rstrip(".").title()
        texts = [f"{somebody} {words(turn, salt, 70).lower()}" for salt in ("insight", "conclusion")]
        return [
            {"text": text, "subject": somebody, "importance": 6, "cites": [2 * n + 1, 2 * n + 2]}
            for n, text in enumerate(texts)
        ]

    def reply(self, turn: int) -> str:
        """Return what the dungeon master tells."""
        return words(turn, "reply", REPLY_CHARS)

    def summary(self, turn: int, messages: Sequence[BaseMessage]) -> str:  # noqa: ARG002
        """Return the running summary that is asked for."""
        return words(turn, "summary", REPLY_CHARS)


class Asked(NamedTuple):
    """A call: what it was for, by its first tool, the tools, and the messages."""

    job: str
    tools: list[Any]
    messages: list[BaseMessage]


class Tables(BaseChatModel):
    """Answers by the tools that are bound: rolls now and then, notes always; without tools it tells on."""

    tools: tuple[str, ...] = ()
    # Out of its repr, which LangChain makes at each call: else a call would cost more the longer the game is.
    tale: Any = Field(default_factory=Tale, repr=False)
    spent: list[int] = Field(default_factory=list, repr=False)
    asked: deque[Asked] = Field(default_factory=lambda: deque(maxlen=300), repr=False)
    schemas: list[Any] = Field(default_factory=list, repr=False)
    jobs: list[str] = Field(default_factory=list, repr=False)
    turn: list[int] = Field(default_factory=lambda: [0])

    @property
    def _llm_type(self) -> str:
        return "tables"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Any:  # noqa: ARG002
        """Bind tools: by them it knows its job."""
        names = tuple(tool["function"]["name"] for tool in tools)
        bound = self.model_copy(update={"tools": names, "schemas": list(tools)})
        bound.spent, bound.jobs, bound.turn, bound.asked = self.spent, self.jobs, self.turn, self.asked
        return bound

    def _answer(self, messages: list[BaseMessage]) -> AIMessage:
        turn = self.turn[0]
        self.spent.append(count_tokens_approximately(messages))
        self.jobs.append(self.tools[0] if self.tools else "")
        self.asked.append(Asked(self.jobs[-1], self.schemas, messages))
        made: list[tuple[str, dict[str, Any]]] = []
        if "CharacterNotebook" in self.tools:
            page = {"name": "Mira", "ancestry": "halfling", "class": "rogue", "background": "grew up on the docks"}
            made = [("CharacterNotebook", {**page, "goal": "wants her sister back"})]
        elif "StateNotebook" in self.tools:
            made = [("StateNotebook", self.tale.notes(turn))]
            if "Facts" in self.tools:
                made.append(("Facts", {"facts": self.tale.facts(turn)}))
        elif "Questions" in self.tools:
            made = [("Questions", {"questions": self.tale.questions(turn)})]
        elif "Reflection" in self.tools:
            made = [("Reflection", {"insights": self.tale.insights(turn), "contradictions": []})]
        elif "roll_dice" in self.tools and turn % DICE_EVERY == 0 and isinstance(messages[-1], HumanMessage):
            made = [("roll_dice", {"expression": "1d20+4", "reason": "to climb on", "dc": 12})]
        calls = [
            {"name": name, "args": args, "id": f"call_{turn}_{len(self.spent)}", "type": "tool_call"}
            for name, args in made
        ]
        return AIMessage("" if calls else self._told(turn, messages), tool_calls=calls)

    def _told(self, turn: int, messages: list[BaseMessage]) -> str:
        return self.tale.summary(turn, messages) if _SUMMARY in messages[0].text else self.tale.reply(turn)

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:  # noqa: ARG002
        return ChatResult(generations=[ChatGeneration(message=self._answer(messages))])

    def _stream(self, messages: Any, *args: Any, **kwargs: Any) -> Iterator[ChatGenerationChunk]:  # noqa: ARG002
        yield from self._chunks(messages)

    async def _astream(self, messages: Any, *args: Any, **kwargs: Any) -> AsyncIterator[ChatGenerationChunk]:  # noqa: ARG002
        # In the event loop, as a provider's client streams: a thread for each piece would be measured as the turn's.
        for chunk in self._chunks(messages):
            yield chunk

    def _chunks(self, messages: list[BaseMessage]) -> Iterator[ChatGenerationChunk]:
        answer = self._answer(messages)
        texts = [answer.text[start : start + 40] for start in range(0, len(answer.text), 40)]
        chunks = [AIMessageChunk(text) for text in texts]
        for index, made in enumerate(answer.tool_calls):
            piece = tool_call_chunk(name=made["name"], args=json.dumps(made["args"]), id=made["id"], index=index)
            chunks.append(AIMessageChunk("", tool_call_chunks=[piece]))
        for message in chunks:
            yield ChatGenerationChunk(message=message)
