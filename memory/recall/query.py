"""What recall is asked, and what it returns."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from datetime import datetime
from typing import NamedTuple

from questbook.memory.recall.weights import DEFAULT_WEIGHTS, Weights
from questbook.memory.timeline.records import Exchange, Record
from questbook.memory.timeline.timeline import Segment
from questbook.types import JSON

Namespace = tuple[str, ...]
Reranker = Callable[[str, Sequence["Recalled"]], Awaitable[Sequence["Recalled"]]]
"""Given the question and records, best first, returns those to recall in an order of its own."""


class Present(NamedTuple):
    """What time it is, for questions that name one.

    Attributes:
        now: Real time with an offset, whose midnight changes the day; None: now, in UTC.
        day: Day of the story.
        session: Number of the session.
    """

    now: datetime | None = None
    day: int | None = None
    session: int | None = None


_NOW = Present()


@dataclass(frozen=True)
class WeightedText:
    """A text to search for beside the question, and how much it counts; the question counts 1."""

    text: str
    weight: float


class Reason(NamedTuple):
    """Why a record was recalled; all parts but the ranks lie between 0 and 1 and are not yet weighed.

    Attributes:
        relevance: How well words and meaning fit, against the candidate that they fit best.
        recency: 0.995 to the hours between it and the latest candidate (generative_agents: since its last access).
        importance: A tenth for each step from 1 to 10; 0 if it has none.
        time: How well its time fits the time that the query names; 0 if either names none.
        named: 1 if the query names its speaker or subject, -1 if it names another one, else 0.
        by_meaning: Its rank among the candidates by cosine, from 1; None if the store gave it none.
        by_words: Its rank by words, from 1; None if it and its neighbours share no word with the query.
        phrase: Whether it has a name of several words that the query names, word for word.
        because: Why it came with others, in words; "" if its own weight brought it.
    """

    relevance: float = 0.0
    recency: float = 0.0
    importance: float = 0.0
    time: float = 0.0
    named: float = 0.0
    by_meaning: int | None = None
    by_words: int | None = None
    phrase: bool = False
    because: str = ""

    def __str__(self) -> str:
        if self.because:
            return self.because
        parts = [
            f"relevance {self.relevance:.2f}",
            f"words #{self.by_words}" if self.by_words else "",
            f"meaning #{self.by_meaning}" if self.by_meaning else "",
            f"time {self.time:.2f}" if self.time else "",
            f"named {self.named:+.0f}" if self.named else "",
            "name word for word" if self.phrase else "",
            f"importance {self.importance:.1f}" if self.importance else "",
            f"recency {self.recency:.2f}" if self.recency else "",
        ]
        return ", ".join(part for part in parts if part)


class Recalled(NamedTuple):
    """One record that was recalled.

    Attributes:
        key: Its key in the store.
        value: The record as it is stored.
        score: Its cosine to the best fitting query; None if the store made no vectors, or did not propose it.
        weight: What the order goes by: the weighed sum of the parts.
        namespace: Where it is kept.
        reason: What the weight is made of.
        question: The record before it, if that asks what this one answers and was not recalled itself.
        folded: Keys of records that say the same and were left out for it.
    """

    key: str
    value: JSON
    score: float | None
    weight: float
    namespace: tuple[str, ...] = ()
    reason: Reason = Reason()
    question: JSON | None = None
    folded: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """What the record says."""
        return self.record.text

    @property
    def record(self) -> Record:
        """The record as a type: an `Exchange` if it is one."""
        kind = Exchange if self.value.get("kind") == "exchange" else Record
        return kind.from_json(self.value)


@dataclass(frozen=True)
class Query:
    """What to recall. Only the text is needed: `Query("Where is the sword?")`.

    Attributes:
        text: The question. Names and times in it count: who is meant, and when it was.
        hints: Further texts that help to find what is meant, such as the scene. If the question is blank, the heaviest
            of them is the question.
        lasting: Namespaces whose records belong to no timeline, such as lore and what is known of the player.
        timeline: Recall only what it may see; None: everything. With a `UserTimeline`, what the user's other threads
            know as well.
        before: Recall only what was written before this turn; what was known as of turn n is recalled with n + 1. With
            a `UserTimeline` this counts the turns of its own thread.
        limit: Records to return at most.
        budget: Tokens that they may cost; what does not fit is passed over, and smaller records that fit follow.
        cost: Returns the tokens of a record; None: those of its text, four characters each.
        weights: What the order is made of.
        present: What time it is.
        speakers: Names of those who speak in the records, as far as known: in a question they say who, not what.
        fitting: Whether to leave out what has too little to do with the question (`questbook.memory.recall.coverage`).
        max_cosine_distance: Leave out what is farther from all texts (0 to 2), if the store makes vectors.
        secrets: Whether to recall what only the dungeon master knows. False is a player's view: records of kind
            "secret", and those that name who knows them without the viewer, are left out before anything is ordered.
        viewer: Names of the viewer; "player" and "you" always are.
        aliases: Whether to search again with the other names of those whom the question names, if some are recalled.
        refine: Is given the records in their order and returns those that may be chosen: it leaves out what no longer
            holds, or puts the successor in its place.
        rerank: Puts the best records in an order of its own, such as that of a cross-encoder, after `refine`.
        reranked: Records that it is given; the others follow in their order.
        accesses: Where the campaign keeps last accesses; for the scoring "generative_agents".

    Raises:
        ValueError: `max_cosine_distance` is not between 0 and 2.
    """

    text: str
    _: KW_ONLY
    hints: Sequence[WeightedText] = ()
    lasting: Sequence[Namespace] = ()
    timeline: Sequence[Segment] | None = None
    before: int | None = None
    limit: int = 12
    budget: int | None = None
    cost: Callable[[Recalled], int] | None = None
    weights: Weights = DEFAULT_WEIGHTS
    present: Present = _NOW
    speakers: Sequence[str] = ()
    fitting: bool = True
    max_cosine_distance: float | None = None
    secrets: bool = False
    viewer: Sequence[str] = ()
    aliases: bool = False
    refine: Callable[[list[Recalled]], Awaitable[list[Recalled]]] | None = None
    rerank: Reranker | None = None
    reranked: int = 50
    accesses: Namespace | None = None

    def __post_init__(self) -> None:
        farthest = self.max_cosine_distance
        if farthest is not None and not 0 <= farthest <= 2:
            raise ValueError(f"max_cosine_distance is {farthest!r}; a cosine distance lies between 0 and 2.")

    @property
    def texts(self) -> list[WeightedText]:
        """What is searched for, the question and its hints, without blank ones."""
        return [one for one in (WeightedText(self.text, 1.0), *self.hints) if one.text.strip() and one.weight > 0]
