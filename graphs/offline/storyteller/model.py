"""OfflineStoryteller: a chat model without a language model, for a table without a network."""

from __future__ import annotations

from typing import Any

from langchain_core.messages import ToolMessage

from questbook.graphs.offline.model import Answer, Call, OfflineModel
from questbook.graphs.offline.prompt import Prompt
from questbook.graphs.offline.storyteller import interview
from questbook.graphs.offline.storyteller.engine import fold, resolve
from questbook.graphs.offline.storyteller.learned import facts_of
from questbook.graphs.offline.storyteller.recollection import remember
from questbook.graphs.offline.storyteller.summary import condense, limit
from questbook.graphs.offline.storyteller.tables import saying

JSON = dict[str, Any]

_MOST_ROLLS = 4
_REFLECTING = frozenset({"Questions", "Reflection"})  # tools of those who ask it to look back


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
        if prompt.tools & _REFLECTING:
            return Answer("nothing")  # it keeps what it was told, and draws no conclusions
        if prompt.turns:
            return Answer(condense(prompt.summary, prompt.turns, limit(prompt.system)))
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
            return Answer(self._remember(prompt, outcome.asks_memory))
        return Answer(outcome.text)

    def _remember(self, prompt: Prompt, subject: str) -> str:
        return remember(
            subject,
            prompt.words,
            page=prompt.page("quest"),
            character=prompt.page("character"),
            summary=prompt.summary,
            memories=prompt.memories,
            exchanges=prompt.exchanges(),
            chance=interview.source(self.seed, prompt.words, prompt.section("quest")),
        )

    def _note(self, prompt: Prompt) -> Answer:
        patch, _ = fold(prompt.page("quest"), prompt.page("character"), prompt.turns, seed=self.seed)
        facts = facts_of(_new(patch, prompt.page("quest"))) if "Facts" in prompt.tools else []
        calls = [Call("StateNotebook", patch)] if patch else []
        calls += [Call("Facts", {"facts": facts})] if facts else []
        return Answer("", calls) if calls else Answer("no change")


def _new(patch: JSON, page: JSON) -> JSON:
    """Leave out of a patch what the page says already: a person who was met again is no news."""
    new = {name: part for name, part in patch.items() if part is not None and part != page.get(name)}
    for name, part in new.items():
        before = page.get(name)
        if isinstance(part, dict) and isinstance(before, dict):
            new[name] = _new(part, before)
    return new
