"""OfflineStoryteller: a chat model without a language model, for a table without a network."""

from __future__ import annotations

from langchain_core.messages import ToolMessage

from graphs.offline_model import Asked, OfflineModel
from graphs.offline_prompt import Prompt
from graphs.storyteller import interview
from graphs.storyteller.engine import fold, resolve
from graphs.storyteller.recollection import remember
from graphs.storyteller.summary import condense, limit
from graphs.storyteller.tables import saying

_MOST_ROLLS = 3


class OfflineStoryteller(OfflineModel):
    """A dungeon master made of tales, tables and dice."""

    @property
    def _llm_type(self) -> str:
        return "offline-storyteller"

    def _reply(self, prompt: Prompt) -> tuple[str, list[Asked]]:
        text, call = self._said(prompt)
        return text, [call] if call else []

    def _said(self, prompt: Prompt) -> tuple[str, Asked | None]:
        if "StateNotebook" in prompt.tools:
            return self._note(prompt)
        if "roll_dice" in prompt.tools and not prompt.missing:
            return self._tell(prompt)
        if "CharacterNotebook" in prompt.tools or prompt.missing:
            return self._interview(prompt)
        if prompt.turns:
            return condense(prompt.summary, prompt.turns, limit(prompt.system)), None
        if prompt.page("quest") or prompt.page("character"):
            return self._tell(prompt)
        return saying("honest"), None

    def _interview(self, prompt: Prompt) -> tuple[str, Asked | None]:
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
            return reply, ("CharacterNotebook", patch)
        return reply, None

    def _tell(self, prompt: Prompt) -> tuple[str, Asked | None]:
        page, character, rolls = prompt.page("quest"), prompt.page("character"), prompt.rolls
        dice = "roll_dice" in prompt.tools and not prompt.failed_roll and len(rolls) < _MOST_ROLLS
        outcome = resolve(page, character, prompt.words, rolls, seed=self.seed, dice=dice)
        if outcome.wants_roll is not None:
            return "", ("roll_dice", outcome.wants_roll)
        if outcome.asks_memory is not None:
            return self._remember(prompt, outcome.asks_memory), None
        return outcome.text, None

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

    def _note(self, prompt: Prompt) -> tuple[str, Asked | None]:
        patch, _ = fold(prompt.page("quest"), prompt.page("character"), prompt.turns, seed=self.seed)
        return ("", ("StateNotebook", patch)) if patch else ("no change", None)
