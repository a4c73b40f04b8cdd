"""OfflineStoryteller: the chat model, a dungeon master without a language model; and what it keeps of the turns."""

import re
from collections.abc import Iterator, Sequence

from langchain_core.messages import ToolMessage

from questbook.graphs.offline.model import Answer, Call, OfflineModel, Prompt
from questbook.graphs.offline.storyteller import answers, interview
from questbook.graphs.offline.storyteller.engine import fold, resolve
from questbook.graphs.offline.storyteller.language import article, entries, saying, seeded
from questbook.memory.recall.intents import off_record
from questbook.notebooks import diff_patch, merge_patch
from questbook.types import JSON

_MOST_ROLLS = 4
_INNER_QUOTES = str.maketrans('“”"', "‘’'")
_STATUS = {"open": "is open", "done": "is done", "failed": "has failed"}
_TOLD = re.compile(r"^(?!Turn )|\b(?:remember|tell|told|promise|swear|swore|carve|my|name|secret|password)\b", re.I)


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
        if prompt.tools & {"Questions", "Reflection"}:
            return Answer("nothing")  # it draws no conclusions
        if prompt.turns:
            limit = re.search(r"at most (\d+) words", prompt.system)
            return Answer(summarize(prompt.summary, prompt.turns, int(limit[1]) if limit else 240))
        return self._tell(prompt) if prompt.page("quest") or prompt.page("character") else Answer(saying("honest"))

    def _interview(self, prompt: Prompt) -> Answer:
        result = str(prompt.last.content) if isinstance(prompt.last, ToolMessage) else ""
        words, asked = "" if isinstance(prompt.last, ToolMessage) else prompt.words, prompt.asked_last
        reply, patch = interview.answer(prompt.page("character"), prompt.missing, words, asked, result, seed=self.seed)
        noted = "CharacterNotebook" in prompt.tools
        return Answer(reply, [Call("CharacterNotebook", patch)] if patch and noted else ())

    def _tell(self, prompt: Prompt) -> Answer:
        page, character, rolls = prompt.page("quest"), prompt.page("character"), prompt.rolls
        dice = "roll_dice" in prompt.tools and not prompt.failed_roll and len(rolls) < _MOST_ROLLS
        outcome = resolve(page, character, prompt.words, rolls, seed=self.seed, dice=dice)
        if outcome.wants_roll is not None:
            return Answer("", [Call("roll_dice", outcome.wants_roll)])
        exchanges = [exchange for exchange in prompt.exchanges() if not off_record(exchange[0])]
        past = answers.Past(page, character, prompt.summary, prompt.records("memories"), exchanges)
        chance = seeded((self.seed, prompt.words, prompt.section("quest")))
        asked = answers.asked(prompt.words)
        rest = asked.pop("", prompt.words)
        told = [answers.tell(part, past) or answers.remember("", words, past, chance) for part, words in asked.items()]
        own = answers.own_words(outcome.asks_own, past, chance)
        if outcome.asks_memory is not None:
            told.append(answers.remember(outcome.asks_memory, rest, past, chance))
        lore = answers.cite(outcome.unanswered, prompt.records("memories")) if outcome.unanswered else ""
        return Answer("\n\n".join(filter(None, [*told, own or outcome.text, lore])))

    def _note(self, prompt: Prompt) -> Answer:
        page = prompt.page("quest")
        patch = fold(page, prompt.page("character"), prompt.turns, seed=self.seed)
        facts = list(facts_of(patch, page)) if "Facts" in prompt.tools else []
        calls = [Call("StateNotebook", patch)] if patch else []
        calls += [Call("Facts", {"facts": facts})] if facts else []
        return Answer("", calls) if calls else Answer("no change")


def facts_of(patch: JSON, page: JSON) -> Iterator[JSON]:
    """Yield the facts in a patch that the quest's page does not say yet; where people were seen last is none."""
    news = diff_patch(page, merge_patch(page, patch))
    for subject, known in entries(news.get("facts")):
        if isinstance(known, str):
            yield {"kind": "trait", "text": f"{subject}: {known}", "subject": subject, "importance": 6}
    for name, entry in entries(news.get("people")):
        person = entry if isinstance(entry, dict) else {}
        role, attitude = str(person.get("role") or ""), str(person.get("attitude") or "")
        if person.get("alive") is False:
            fate = str(person.get("fate") or "")
            yield _trait(name, "fate", fate or "died", f"{name} is dead{': ' if fate else ''}{fate}.", importance=8)
        elif role and role.casefold() not in name.casefold():  # "Widow Garrow" says it
            yield _trait(name, "role", role, f"{name} is {article(role)}.", importance=4)
        if attitude:
            yield _trait(name, "attitude", attitude, f"{name}'s attitude is {attitude}.", importance=4)
    for title, quest in entries(news.get("quests")):
        status = quest.get("status") if isinstance(quest, dict) else None
        if status in _STATUS:
            yield _trait(title, "quest", str(status), f"The quest “{title}” {_STATUS[str(status)]}.", importance=7)
    truth = dict(entries(news.get("secrets"))).get("truth")
    if isinstance(truth, str):
        yield {"kind": "secret", "text": truth, "importance": 9}


def _trait(subject: str, attribute: str, value: str, text: str, *, importance: int) -> JSON:
    slot = {"subject": subject, "attribute": attribute, "value": value}
    return {"kind": "trait", "text": text, **slot, "importance": importance}


def summarize(summary: str, turns: Sequence[JSON], words: int) -> str:
    """Fold turns into a summary of at most `words` words: the oldest goes first, promises and what was told go last."""
    lines = [line for line in summary.split("\n") if line.strip()]
    lines += map(_line, turns)
    while len(lines) > 1 and sum(len(line.split()) for line in lines) > words:
        lines.pop(min(range(len(lines)), key=lambda at: (bool(_TOLD.search(lines[at])), at)))
    return " ".join("\n".join(lines).split(" ")[:words])


def _line(turn: JSON) -> str:
    number = f"Turn {turn['turn']}: " if isinstance(turn.get("turn"), int) else ""
    said, told = (str(turn.get(part) or "").split() for part in ("player", "reply"))
    player, reply = (" ".join(words[:24]) + (" …" if len(words) > 24 else "") for words in (said, told))
    return f"{number}{f'You: “{player.translate(_INNER_QUOTES)}” ' if player else ''}{reply}"
