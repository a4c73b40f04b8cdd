"""What happens in a turn, told to a person as it happens: the one reading of the graph's stream that doors share."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from typing import Any, Literal, NamedTuple

from questbook.graphs.turn.speaking import KEY

JSON = dict[str, Any]

STREAM_MODES: list[Literal["messages", "updates", "custom"]] = ["messages", "updates", "custom"]


class Spoken(NamedTuple):
    """A piece of the reply, as it comes. A new `message` of the model's starts a new paragraph."""

    text: str
    message: str


class Rolled(NamedTuple):
    """Dice, as rolled; they come before the words that tell of them."""

    roll: JSON


class Noticed(NamedTuple):
    """Something that a person should know of: {"turn", "node", "text"}."""

    notice: JSON


class Recalled(NamedTuple):
    """The memories that this turn is played with, as far as the player may see them."""

    memories: list[JSON]


class Prompted(NamedTuple):
    """What the model saw.

    Attributes:
        node: Who asked it.
        sections: [{"section", "tokens", "text"}, …].
        fidelity: How many earlier turns stood in it word for word, of how many: {"turns", "of"}.
    """

    node: str
    sections: list[JSON]
    fidelity: JSON | None = None


class Passed(NamedTuple):
    """A node has finished, and what it wrote stands in the checkpoint or is about to.

    Attributes:
        node: Its name.
        spoke: Whether it has words for the person (`questbook.graphs.turn.speaking`).
    """

    node: str
    spoke: bool = False


Event = Spoken | Rolled | Noticed | Recalled | Prompted | Passed


async def read_stream(stream: AsyncIterator[Any]) -> AsyncGenerator[Event]:
    """Read the stream of a run with `STREAM_MODES` into events.

    Args:
        stream: What `graph.astream(…, stream_mode=STREAM_MODES)` gives: pairs of mode and payload.
    """
    streamed: set[str] = set()
    speaking: set[str] = set()
    async for mode, payload in stream:
        if mode == "messages":
            for spoken in _spoken(payload, streamed, speaking):
                yield spoken
        elif mode == "updates":
            for node, update in payload.items():
                for event in _written(node, update, spoke=node in speaking):
                    yield event
        elif isinstance(payload, dict) and isinstance(payload.get("prompt"), list):
            yield Prompted(str(payload.get("node", "")), payload["prompt"], payload.get("fidelity"))


def _spoken(payload: Any, streamed: set[str], speaking: set[str]) -> Iterator[Spoken]:
    message, metadata = payload
    # What other nodes make the model say is not for the person.
    if KEY not in metadata or message.type not in ("AIMessageChunk", "ai"):
        return
    speaking.add(metadata["langgraph_node"])
    name = message.id or ""
    if message.type == "ai" and name in streamed:  # the sum of what has been streamed
        return
    streamed.add(name)
    if message.text:
        yield Spoken(message.text, name)


def _written(node: str, update: Any, *, spoke: bool) -> Iterator[Event]:
    for part in update if isinstance(update, list) else [update]:
        if not isinstance(part, dict):
            continue
        if "recalled" in part:
            from questbook.graphs.turn.player_view import (
                shown_memories,
            )  # pydantic, which the first prompt does not need

            yield Recalled(shown_memories(part["recalled"]))
        yield from (Rolled(roll) for roll in part.get("rolls") or ())
        yield from (Noticed(notice) for notice in part.get("notices") or ())
    yield Passed(node, spoke)
