"""What happens in a turn, as it happens: the doors share this one reading of a graph's stream."""

from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from typing import Any, Literal, NamedTuple

from questbook.types import JSON

STREAM_MODES: list[Literal["messages", "updates", "custom"]] = ["messages", "updates", "custom"]


class ReplyPiece(NamedTuple):
    """A piece of the reply, as it comes. A new `message` of the model's starts a new paragraph."""

    text: str
    message: str


class DiceRoll(NamedTuple):
    """Dice, as rolled; they come before the words that tell of them."""

    roll: JSON


class Notice(NamedTuple):
    """Something that a person should know of: {"turn", "node", "text"}; "page", where it was noted, if on one."""

    notice: JSON


class Memories(NamedTuple):
    """The memories of this turn, as far as the player may see them."""

    memories: list[JSON]


class PromptReport(NamedTuple):
    """What the model saw when a node asked it: [{"section", "tokens", "text"}, …]; its fidelity: {"turns", "of"}."""

    node: str
    sections: list[JSON]
    fidelity: JSON | None = None


class NodeStart(NamedTuple):
    """A node begins; if it is upkeep, the reply is complete: the person can go on, and need not wait for its end."""

    node: str
    upkeep: bool = False


class NodeEnd(NamedTuple):
    """A node has finished, and says whether it spoke to the person; its writes are or will be in the checkpoint."""

    node: str
    spoke: bool = False


Event = ReplyPiece | DiceRoll | Notice | Memories | PromptReport | NodeStart | NodeEnd


async def read_stream(stream: AsyncIterator[Any]) -> AsyncGenerator[Event]:
    """Read the pairs of mode and payload of `graph.astream(…, stream_mode=STREAM_MODES)` into events."""
    streamed, speaking = set[str](), set[str]()
    async for mode, payload in stream:
        if mode == "messages":
            for piece in _reply_pieces(payload, streamed, speaking):
                yield piece
        elif mode == "updates":
            for node, update in payload.items():
                for event in _update_events(node, update, spoke=node in speaking):
                    yield event
        elif isinstance(payload, dict) and isinstance(payload.get("prompt"), list):
            yield _prompt_report(payload)
        elif isinstance(payload, dict) and isinstance(payload.get("begins"), str):
            yield NodeStart(payload["begins"], payload.get("upkeep") is True)


def events_of_prompt(recalled: list[JSON] | None, report: JSON) -> list[Event]:
    """Return what a turn told of its memories (None: none were looked for) and its prompt (`Prompt.report`)."""
    from questbook.graphs.turn.player_view import shown_memories

    return [*([] if recalled is None else [Memories(shown_memories(recalled))]), _prompt_report(report)]


def _prompt_report(payload: JSON) -> PromptReport:
    return PromptReport(str(payload.get("node", "")), payload["prompt"], payload.get("fidelity"))


def _reply_pieces(payload: Any, streamed: set[str], speaking: set[str]) -> Iterator[ReplyPiece]:
    from questbook.graphs.turn.node import SPEAKS  # LangChain, which the first prompt does not need

    message, metadata = payload
    if SPEAKS not in metadata or message.type not in ("AIMessageChunk", "ai"):  # of other nodes: not for the person
        return
    speaking.add(metadata["langgraph_node"])
    name = message.id or ""
    if message.type == "ai" and name in streamed:  # the sum of the pieces that have been streamed
        return
    streamed.add(name)
    if message.text:
        yield ReplyPiece(message.text, name)


def _update_events(node: str, update: Any, *, spoke: bool) -> Iterator[Event]:
    from questbook.graphs.turn.player_view import noted_on, shown_memories  # pydantic, likewise

    for part in update if isinstance(update, list) else [update]:
        if not isinstance(part, dict):
            continue
        if "recalled" in part:
            yield Memories(shown_memories(part["recalled"]))
        yield from (DiceRoll(roll) for roll in part.get("rolls") or ())
        yield from (Notice(notice) for notice in part.get("notices") or ())
        if noted := noted_on(node, part):
            yield Notice({"turn": 0, "node": node, **noted})
    yield NodeEnd(node, spoke)
