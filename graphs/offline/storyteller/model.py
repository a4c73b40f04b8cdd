"""OfflineStoryteller: a dungeon master without a language model, for a table without a network."""

from __future__ import annotations

import re

from langchain_core.messages import ToolMessage

from questbook.graphs.offline.model import Answer, Call, OfflineModel
from questbook.graphs.offline.prompt import Prompt
from questbook.graphs.offline.storyteller import interview, pages
from questbook.graphs.offline.storyteller.digest import facts_of, summarize
from questbook.graphs.offline.storyteller.engine import fold, resolve
from questbook.graphs.offline.storyteller.language import saying, seeded
from questbook.graphs.offline.storyteller.past import Past, cite, remember
from questbook.memory.recall.intents import off_record

_MOST_ROLLS = 4
_SUMMARY_WORDS = 240
_REFLECTION_TOOLS = frozenset({"Questions", "Reflection"})


class OfflineStoryteller(OfflineModel):
    """A dungeon master made of tales, tables and dice."""

    @property
    def _llm_type(self) -> str:
        return "offline-storyteller"

    def _reply(self, prompt: Prompt) -> Answer:
        if "StateNotebook" in prompt.tools:
            return self._note(prompt)
        if "roll_dice" in prompt.tools and not prompt.missing:
            return self._tell(prompt)
        if "CharacterNotebook" in prompt.tools or prompt.missing:
            return self._interview(prompt)
        if prompt.tools & _REFLECTION_TOOLS:
            return Answer("nothing")  # it draws no conclusions
        if prompt.turns:
            limit = re.search(r"at most (\d+) words", prompt.system)
            return Answer(summarize(prompt.summary, prompt.turns, int(limit[1]) if limit else _SUMMARY_WORDS))
        if prompt.page("quest") or prompt.page("character"):
            return self._tell(prompt)
        return Answer(saying("honest"))

    def _interview(self, prompt: Prompt) -> Answer:
        answered = isinstance(prompt.last, ToolMessage)
        reply, patch = interview.answer(
            page=prompt.page("character"),
            missing=prompt.missing,
            words="" if answered else prompt.words,
            asked=prompt.asked_last,
            result=str(prompt.last.content) if answered and prompt.last else "",
            seed=self.seed,
        )
        if patch and "CharacterNotebook" in prompt.tools:
            return Answer(reply, [Call("CharacterNotebook", patch)])
        return Answer(reply)

    def _tell(self, prompt: Prompt) -> Answer:
        page, character, rolls = prompt.page("quest"), prompt.page("character"), prompt.rolls
        dice = "roll_dice" in prompt.tools and not prompt.failed_roll and len(rolls) < _MOST_ROLLS
        outcome = resolve(page, character, prompt.words, rolls, seed=self.seed, dice=dice)
        if outcome.wants_roll is not None:
            return Answer("", [Call("roll_dice", outcome.wants_roll)])
        if outcome.asks_memory is not None:
            exchanges = [exchange for exchange in prompt.exchanges() if not off_record(exchange[0])]
            past = Past(page, character, prompt.summary, prompt.memories, exchanges)
            chance = seeded((self.seed, prompt.words, prompt.section("quest")))
            told = pages.tell(about, past) if (about := pages.asked(prompt.words)) else ""
            return Answer(told or remember(outcome.asks_memory, prompt.words, past, chance))
        lore = cite(outcome.unanswered, prompt.memories) if outcome.unanswered else ""
        return Answer(f"{outcome.text}\n\n{lore}".strip())

    def _note(self, prompt: Prompt) -> Answer:
        page = prompt.page("quest")
        patch = fold(page, prompt.page("character"), prompt.turns, seed=self.seed)
        facts = facts_of(patch, page) if "Facts" in prompt.tools else []
        calls = [Call("StateNotebook", patch)] if patch else []
        calls += [Call("Facts", {"facts": facts})] if facts else []
        return Answer("", calls) if calls else Answer("no change")
