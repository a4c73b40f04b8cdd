"""DungeonState: everything a campaign remembers between two checkpoints."""

from __future__ import annotations

from typing import Annotated, Any

from langchain_core.messages import AnyMessage, BaseMessage, HumanMessage, convert_to_messages
from langgraph.channels import UntrackedValue
from langgraph.graph.message import add_messages
from pydantic import BaseModel, Field

from notebooks import CharacterNotebook, StateNotebook

JSON = dict[str, Any]

_ROLLS_KEPT = 20
_NOTICES_KEPT = 10


def reduce_messages(current: list[AnyMessage], update: Any) -> list[AnyMessage]:
    """Add messages by id, as `add_messages` does; what players write is cleaned first, so that it can be stored."""
    update = update if isinstance(update, list) else [update]
    return add_messages(current, [clean(message) for message in convert_to_messages(update)])  # type: ignore[arg-type,return-value]


def clean(message: BaseMessage) -> BaseMessage:
    """Drop control characters and lone surrogates, which no database or model takes, from a player's message."""
    if not isinstance(message, HumanMessage) or not isinstance(message.content, str):
        return message
    text = "".join(c for c in message.content if c in "\n\t" or (c.isprintable() or c.isspace() or ord(c) > 0x9F))
    text = text.encode("utf-8", "ignore").decode("utf-8")
    return message if text == message.content else message.model_copy(update={"content": text})


def reduce_character(current: CharacterNotebook | JSON | None, patch: Any) -> JSON:
    """Apply a merge patch to the character's page; raises NotebookError and changes nothing if it does not fit."""
    return CharacterNotebook.load(current).patched(patch).page.as_json()


def reduce_quest(current: StateNotebook | JSON | None, patch: Any) -> JSON:
    """Apply a merge patch to the quest's page; raises NotebookError and changes nothing if it does not fit."""
    return StateNotebook.load(current).patched(patch).page.as_json()


def keep_rolls(current: list[JSON], new: list[JSON]) -> list[JSON]:
    """Append rolls; the last 20 stay."""
    return [*current, *new][-_ROLLS_KEPT:]


def keep_notices(current: list[JSON], new: list[JSON]) -> list[JSON]:
    """Append notices; the last 10 stay."""
    return [*current, *new][-_NOTICES_KEPT:]


class DungeonInput(BaseModel):
    """What a caller sends: the player's message."""

    messages: Annotated[list[AnyMessage], reduce_messages] = Field(default_factory=list)


class DungeonState(BaseModel):
    """State of one thread of a campaign. Channels hold JSON; nodes receive typed notebooks.

    Attributes:
        messages: The last turns, word for word.
        summary: What left `messages`, in short.
        character: Who plays; once complete, it switches the game from interview to quest.
        quest: Where the story stands.
        timeline: Branches that this checkpoint descends from: [branch, last turn seen of it], oldest first.
        recalled: What was recalled for this turn, None before that; never checkpointed.
        rolls: The last 20 dice rolls, as rolled, each with its turn.
        notices: The last 10 things that a person should know of: {"turn", "node", "text"}.
        facts: Facts that were noted and do not stand in the store yet, as `note_facts` keeps them.
        unreflected: Importance of the facts that were written since the last reflection, as far as this thread knows.
        noted: What the last notes changed on the quest's page: {"from", "through", "patch"}, for provenance.
        noted_through: Last turn that `quest` takes account of.
        remembered_through: Last turn that stands in the store.
        turn: Number of the current turn, from 1; 0 before the first.
        opened_by: Id of the player's message that opened the current turn.
        line: Name of the line of play, as a person names it with `/branch`; it goes with the checkpoint.
    """

    messages: Annotated[list[AnyMessage], reduce_messages] = Field(default_factory=list)
    summary: str = ""
    character: Annotated[CharacterNotebook, reduce_character] = Field(default_factory=CharacterNotebook)
    quest: Annotated[StateNotebook, reduce_quest] = Field(default_factory=StateNotebook)
    timeline: list[tuple[str, int]] = Field(default_factory=list)
    recalled: Annotated[list[JSON] | None, UntrackedValue] = None
    rolls: Annotated[list[JSON], keep_rolls] = Field(default_factory=list)
    notices: Annotated[list[JSON], keep_notices] = Field(default_factory=list)
    facts: list[JSON] = Field(default_factory=list)
    unreflected: int = 0
    noted: JSON = Field(default_factory=dict)
    noted_through: int = 0
    remembered_through: int = 0
    turn: int = 0
    opened_by: str = ""
    line: str = "main"
