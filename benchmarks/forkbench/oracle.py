"""The oracle: what each place of a game may know and must know, and what is wrong with a prompt.

Words are looked for, nothing else: each event has a token that occurs nowhere else. A fault is counted in what the
model is shown, wherever it comes from: the memory, a tool's result, a summary or the conversation.

- **leaked**: tokens that this checkpoint was never told: of abandoned futures, discarded replies, parallel runs.
- **missing**: the thing that is asked about has a present value, and it is nowhere in the prompt.
- **twice**: a memory shows the same sentence again.
- **outdated**: a memory shows a note that another has replaced (unless the conversation in the same prompt tells what
  has), or an earlier value of what is asked about stands in the prompt and the present one does not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage, ToolMessage

from benchmarks.forkbench.bench import Bench, own_words
from benchmarks.forkbench.worlds import Event, World


@dataclass(frozen=True)
class Place:
    """The end of a turn.

    Args:
        config: Its checkpoint; None: before the first turn of a thread.
        world: What holds there.
        thread: Its thread.
        told: What the person has said on the way here; a memory must have it.
        heard: Tokens of the replies on the way here; a memory may have them.
        lent: Of `told`, what another thread was told before this one began.
        foreign: Tokens of what other threads were told and heard before this one began.
    """

    config: Any
    world: World
    thread: str
    told: tuple[Event, ...] = ()
    heard: frozenset[str] = frozenset()
    lent: tuple[Event, ...] = ()
    foreign: frozenset[str] = frozenset()

    @property
    def tokens(self) -> frozenset[str]:
        """All that may be known here of this thread."""
        return self.heard | {event.token for event in self.told}


@dataclass
class Oracle:
    """Judges the prompts of one game.

    `heads` are the places where other threads may stand: a new thread may know what each of them knows.
    """

    bench: Bench
    faults: Counter[str] = field(default_factory=Counter)
    heads: dict[str, list[Place]] = field(default_factory=dict)

    def others(self, thread: str) -> list[Place]:
        """Return the places where the other threads may stand."""
        return [place for name, places in self.heads.items() if name != thread for place in places]

    def due(self, place: Place) -> list[Event]:
        """Return what must be known at a place: not what the other thread has taken back since it was lent."""
        heads = [set(head.told) for head in self.others(place.thread)]
        return [event for event in place.told if event not in place.lent or any(event in head for head in heads)]

    def sure(self, place: Place) -> list[Event]:
        """Return the events that made things what they are, of things that other threads tell no other tale about."""
        foreign = {event.slot for head in self.others(place.thread) for event in head.told if event not in place.told}
        due = self.due(place)
        events = {event.slot: event for event in due}
        gone = {event.slot for event in place.told if event not in due}
        return [
            event
            for slot, event in events.items()
            if slot not in foreign | gone and place.world.current(slot) in (event, None)
        ]

    def judge(self, messages: Sequence[BaseMessage], place: Place, asked: str, now: Iterable[Event]) -> frozenset[str]:
        """Count what is wrong with a prompt; return what it shows of its own past.

        Args:
            messages: The prompt.
            place: Where its turn began.
            asked: The slot that the person asks about; "" for none.
            now: What the person tells in this turn.
        """
        text, memory = "\n".join(message.text for message in messages), memory_of(messages)
        talk = "\n".join(own_words(message) for message in messages if isinstance(message, HumanMessage))
        present = {event.token for event in now}
        shown = {token for token in (*self.bench.events, *self.bench.heard) if token in text}
        may = place.tokens.union(present, *(head.tokens for head in self.others(place.thread)))
        sure = {event.slot: event for event in self.sure(place) if event.slot not in {one.slot for one in now}}
        faults: Counter[str] = Counter(prompts=1, leaked=len(shown - may))
        for event in place.told:
            for form in (event.said, event.noted):
                faults["twice"] += max(0, max(part.count(form) for part in memory) - 1)
            holds = sure.get(event.slot)
            if (
                holds is not None
                and holds != event
                and any(event.noted in part for part in memory)
                and holds.said not in talk
            ):
                faults["outdated"] += 1
        if asked in sure:
            holds, earlier = sure[asked], {event.token for event in place.told if event.slot == asked}
            faults["asked"] += 1
            if holds.token not in shown:
                faults["missing"] += not holds.over
                faults["outdated"] += bool(shown & earlier)
        self.faults += faults
        return frozenset(shown & place.tokens)


def memory_of(messages: Sequence[BaseMessage]) -> list[str]:
    """Return what a memory has put into a prompt: the system's words, each tool's result, and what opens a message."""
    newest = max((place for place, one in enumerate(messages) if isinstance(one, HumanMessage)), default=0)
    parts = [message.text for message in messages if isinstance(message, SystemMessage)]
    parts += [message.text for message in messages[newest:] if isinstance(message, ToolMessage)]
    return [*parts, *(message.text.removesuffix(own_words(message)) for message in messages[newest : newest + 1])]
