"""What recall is asked, and what it returns."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from datetime import datetime
from typing import Literal, NamedTuple

from questbook.memory.recall.weights import DEFAULT_WEIGHTS, Weights
from questbook.memory.text.passages import Span, excerpt
from questbook.memory.timeline.records import Exchange, Record
from questbook.memory.timeline.timeline import Segment
from questbook.types import JSON

Namespace = tuple[str, ...]
Reranker = Callable[[str, Sequence["Recalled"]], Awaitable[Sequence["Recalled"]]]
"""Given the question and records, best first, returns those to recall in an order of its own."""


class Present(NamedTuple):
    """What time it is, for questions that name one."""

    now: datetime | None = None  # real time with an offset, whose midnight changes the day; None: now, in UTC
    day: int | None = None  # day of the app's own calendar, such as a story's
    session: int | None = None  # number of the session


_NOW = Present()


@dataclass(frozen=True)
class WeightedText:
    """A text to search for beside the question, and how much it counts; the question counts 1."""

    text: str
    weight: float


class Reason(NamedTuple):
    """Why a record was recalled; all parts but the ranks lie between 0 and 1 and are not yet weighed."""

    relevance: float = 0.0  # how well words and meaning fit, against the candidate that they fit best
    recency: float = 0.0  # 0.995 to the hours to the latest candidate (generative_agents: since its last access)
    importance: float = 0.0  # a tenth for each step from 1 to 10; 0 if it has none
    time: float = 0.0  # how well its time fits the time that the query names; 0 if either names none
    named: float = 0.0  # 1 if the query names its speaker or subject, -1 if it names another one, else 0
    by_meaning: int | None = None  # rank among the candidates by cosine, from 1; None if the store gave it none
    by_words: int | None = None  # rank by words, from 1; None if it and its neighbours share no word with the query
    phrase: bool = False  # whether it has a name of several words that the query names, word for word
    because: str = ""  # why it came with others, in words; "" if its own weight brought it

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


class Said(NamedTuple):
    """All that a record says, and where the reply begins in it; None if the record is no exchange.

    An exchange says the person's words, a line break, and the reply.
    """

    text: str
    reply: int | None = None

    @property
    def asked(self) -> str:
        """The person's words, where two speak; "" if nobody is answered here."""
        return self.text[: self.reply - 1] if self.reply else ""


def said_in(value: JSON) -> Said:
    """Return what a record says, as it is stored; passages and excerpts are spans of this text."""
    player, reply = value.get("player"), value.get("reply")
    if isinstance(player, str) and isinstance(reply, str) and (player or reply):
        return Said(f"{player}\n{reply}", len(player) + 1)
    text = value.get("text")
    return Said(text if isinstance(text, str) else "")


class Passage(NamedTuple):
    """A part of what a record says (`said_in`) that fits a question, and the weight that the order goes by."""

    span: Span
    weight: float


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
        passages: Its parts that fit the question, best first; none if it was recalled for another reason.
        shown: What a budget has room for, of what the record says; none: all of it.
        standing: The sentence that says what to do from now on, if there is one.
    """

    key: str
    value: JSON
    score: float | None
    weight: float
    namespace: tuple[str, ...] = ()
    reason: Reason = Reason()
    question: JSON | None = None
    folded: tuple[str, ...] = ()
    passages: tuple[Passage, ...] = ()
    shown: tuple[Span, ...] = ()
    standing: Span | None = None

    @property
    def text(self) -> str:
        """What the record says, the whole of it."""
        return self.record.text

    @property
    def excerpt(self) -> str:
        """What is shown of what it says, with "…" where something is left out."""
        said = said_in(self.value)
        return excerpt(said.text, self.shown) if self.shown else said.text

    @property
    def is_cut(self) -> bool:
        """Whether something of what it says is left out."""
        return bool(self.shown) and self.excerpt != said_in(self.value).text.strip()

    @property
    def words(self) -> tuple[str, str]:
        """What is shown of the person's words, and of the reply; all of it in the first if it is no exchange."""
        said = said_in(self.value)
        end = len(said.text) if said.reply is None else said.reply - 1
        spans = self.shown or (Span(0, len(said.text)),)
        both = []
        for start, stop in ((0, end), (end + 1, len(said.text))):
            inside = [Span(max(a, start) - start, min(b, stop) - start) for a, b in spans if a < stop and b > start]
            both.append(excerpt(said.text[start:stop], inside))
        return both[0], both[1]

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
        budget: Tokens that they may cost. Then records come with the parts that fit (`Recalled.shown`), and what people
            have said is to be done from now on comes whatever the question is, a fifth of the budget at most. None:
            whole records.
        cost: Returns the tokens of a record as far as it is shown, at least one for four characters; None: just that.
        weights: What the order is made of.
        present: What time it is.
        speakers: Names of those who speak in the records, as far as known: in a question they say who, not what.
        fitting: Whether to leave out what has too little to do with the question (`questbook.memory.recall.coverage`).
        max_cosine_distance: Leave out what is farther from all texts (0 to 2), if the store makes vectors.
        visibility: "viewer" leaves out, before anything is ordered, records of kind "secret" and those that name who
            knows them (`known_by`) without the viewer; "all" leaves out neither.
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
    visibility: Literal["viewer", "all"] = "viewer"
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
