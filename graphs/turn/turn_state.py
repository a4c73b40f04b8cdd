"""TurnState: the channels that every conversation has, whatever pages its application adds."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from langchain_core.messages import AnyMessage, BaseMessage, HumanMessage, convert_to_messages
from langgraph.channels import UntrackedValue
from langgraph.graph.message import add_messages
from pydantic import BaseModel, Field

from questbook.notebooks import Notebook

JSON = dict[str, Any]

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


def keep_notices(current: list[JSON], new: list[JSON]) -> list[JSON]:
    """Append notices; the last 10 stay."""
    return [*current, *new][-_NOTICES_KEPT:]


class Said(BaseModel):
    """What a caller sends: the player's message."""

    messages: Annotated[list[AnyMessage], reduce_messages] = Field(default_factory=list)


class TurnState(BaseModel):
    """State of one thread of a conversation in turns. Channels hold JSON; nodes receive typed notebooks.

    Attributes:
        messages: The last turns, word for word.
        summary: What left `messages`, in short.
        timeline: Branches that this checkpoint descends from: [branch, last turn seen of it], oldest first.
        recalled: What was recalled for this turn, None before that; never checkpointed.
        notices: The last 10 things that a person should know of: {"turn", "node", "text"}.
        summarised_through: Last turn that `summary` covers, as far as this thread knows.
        remembered_through: Last turn that stands in the store.
        turn: Number of the current turn, from 1; 0 before the first.
        opened_by: Id of the player's message that opened the current turn.
        campaign: User and campaign that the thread belongs to; empty before its first turn.
        line: Name of the line of play, as a person names it with `/branch`; it goes with the checkpoint.
    """

    PAGES: ClassVar[dict[str, type[Notebook]]] = {}
    """Channels that hold pages."""
    CARRIED: ClassVar[tuple[str, ...]] = ("line", "summary")
    """Other channels that a new thread takes over from the campaign's head, beside turn and timeline."""

    messages: Annotated[list[AnyMessage], reduce_messages] = Field(default_factory=list)
    summary: str = ""
    timeline: list[tuple[str, int]] = Field(default_factory=list)
    recalled: Annotated[list[JSON] | None, UntrackedValue] = None
    notices: Annotated[list[JSON], keep_notices] = Field(default_factory=list)
    summarised_through: int = 0
    remembered_through: int = 0
    turn: int = 0
    opened_by: str = ""
    campaign: list[str] = Field(default_factory=list)
    line: str = "main"

    @property
    def begun(self) -> bool:
        """Whether there is a past that a new thread can take over."""
        return self.turn > 0

    def carried(self) -> JSON:
        """Return what a new thread takes over, as JSON: pages and the channels of `CARRIED`."""
        pages = {name: getattr(self, name).as_json() for name in self.PAGES}
        return pages | {name: getattr(self, name) for name in self.CARRIED}
