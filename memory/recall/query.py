"""What recall is asked (`Query`), how much each part of its order counts (`Weights`), and what it returns."""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence, Set
from dataclasses import KW_ONLY, dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from questbook.memory.text.passages import Span, excerpt
from questbook.memory.timeline.namespaces import check_namespace
from questbook.memory.timeline.records import Exchange, Record, check_segments
from questbook.types import JSON, check_choice, check_json, check_number, check_type

if TYPE_CHECKING:  # settings, which have weights, are read without loading a store
    from questbook.memory.timeline.timeline import Timeline

Namespace = tuple[str, ...]
Reranker = Callable[[str, Sequence["Recalled"]], Awaitable[Sequence["Recalled"]]]
"""Given the question and records, best first, returns those to recall in an order of its own."""


class Present(NamedTuple):
    """What time it is, for questions that name one."""

    now: datetime | None = None  # real time with an offset, whose midnight changes the day; None: now, in UTC
    day: int | None = None  # day of the app's own calendar, such as a game's
    session: int | None = None  # number of the session


_NOW = Present()
_RETIRED = frozenset({"neighbours", "spread"})  # weights of version 0.2, which campaigns may have in their settings
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class WeightedText:
    """A text to search for beside the question, and how much it counts; the question counts 1."""

    text: str
    weight: float

    def __post_init__(self) -> None:
        check_number("WeightedText.weight", self.weight, whole=False)


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
        parts = {
            f"relevance {self.relevance:.2f}": self.relevance,
            f"words #{self.by_words}": self.by_words,
            f"meaning #{self.by_meaning}": self.by_meaning,
            f"time {self.time:.2f}": self.time,
            f"named {self.named:+.0f}": self.named,
            "name word for word": self.phrase,
            f"importance {self.importance:.1f}": self.importance,
            f"recency {self.recency:.2f}": self.recency,
        }
        return ", ".join(part for part, counts in parts.items() if counts)


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
        folded: Keys of records that say the same and were left out for it.
        passages: Its parts that fit the question, best first; none if it was recalled for another reason.
        shown: What a budget has room for, of what the record says; none: all of it.
        standing: The sentence that says what to do from now on, if there is one.
    """

    key: str
    value: JSON
    score: float | None = None
    weight: float = 0.0
    namespace: tuple[str, ...] = ()
    reason: Reason = Reason()
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
        text, reply = said_in(self.value)
        end = len(text) if reply is None else reply - 1

        def part(start: int, stop: int) -> str:
            spans = self.shown or (Span(0, len(text)),)
            inside = [Span(max(a, start) - start, min(b, stop) - start) for a, b in spans if a < stop and b > start]
            return excerpt(text[start:stop], inside)

        return part(0, end), part(end + 1, len(text))

    @property
    def record(self) -> Record:
        """The record as a type: an `Exchange` if it is one."""
        return (Exchange if self.value.get("kind") == "exchange" else Record).from_json(self.value)


def _weight(default: float | None, description: str, **limits: Any) -> Any:
    return Field(default=default, ge=0, description=description, **limits)


class Weights(BaseModel):
    """Weights of the parts of a record's score; each part lies between 0 and 1 before it is weighed.

    The defaults are reasoned and measured in docs/figures.md ("Recall"). Given as JSON text, they are read from it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    scoring: Literal["sum", "generative_agents"] = Field(
        default="sum",
        description="sum: all parts, as weighed here. generative_agents: relevance, recency since the last access and "
        "importance alone, each with weight 1, as published by Park et al. 2023.",
    )
    words: float = _weight(1.0, "BM25 over a passage and the words nearby.")
    nearby: float = _weight(
        0.7, "What a word is worth 20 words before a passage; more nearer, less farther (to 80) and after it.", le=1
    )
    meaning: float | None = _weight(
        None, "Cosine; empty: what the embedder says its cosine is worth (`fusion_weight`, else 1)."
    )
    chances: float = _weight(0.8, "Taken from a passage of a message of n, times 1 - 1/n: of many, one fits by chance.")
    prefers: float = _weight(0.5, "A passage states what the person prefers, and the query asks for advice.")
    named: float = _weight(0.3, "The query names the record's speaker or subject, or who claims it.")
    phrase: float = _weight(0.3, "The record has a name of several words that the query names, word for word.")
    time: float = _weight(1.0, "The record's time fits the time that the query names.")
    answers: float = _weight(
        0.1, "Taken from what is itself a question; given, when the query asks when, to what names a time."
    )
    importance: float = _weight(0.1, "Importance, a tenth of it for each step from 1 to 10.")
    recency: float = _weight(0.02, "0.995 to the hours between it and the latest candidate.")

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, weights: Any) -> Any:
        given = json.loads(weights) if isinstance(weights, str) else weights
        if isinstance(given, Mapping) and (retired := sorted(_RETIRED & given.keys())):
            _log.warning("weights: %s are no longer weighed, and were passed over; see `nearby`.", ", ".join(retired))
            return {name: value for name, value in given.items() if name not in _RETIRED}
        return given

    def of_meaning(self, worth: float) -> float:
        """Return the weight of the cosine, for an embedder that says what its cosine is worth beside words."""
        return worth if self.meaning is None else self.meaning

    def without(self, *parts: str) -> Self:
        """Return the same weights with some parts turned off; for ablations."""
        return self.model_copy(update=dict.fromkeys(parts, 0.0))


DEFAULT_WEIGHTS = Weights()


def check_order(owner: str, farthest: object, weights: object, rerank: object, metadata: object) -> None:
    """Refuse options of a search that make no sense: a ValueError says which, and what is allowed."""
    check_number(f"{owner}.max_cosine_distance", farthest, most=2, whole=False, none=True)
    check_type(f"{owner}.weights", weights, Weights, "Weights(…), such as Weights(recency=0.1)")
    if isinstance(rerank, type) or not callable(rerank or len):
        raise ValueError(f"{owner}.rerank: got {rerank!r:.80}; expected an async function of question and records.")
    check_json(f"{owner}.metadata", metadata)


@dataclass(frozen=True)
class Query:
    """What to recall. Only the text is needed: `Query("Where is the sword?")`.

    Attributes:
        text: The question. Names and times in it count: who is meant, and when it was.
        hints: Further texts that help to find what is meant, such as the scene. If the question is blank, the heaviest
            of them is the question.
        lasting: Namespaces whose records belong to no timeline, such as lore and what is known of the person.
        timeline: Recall only what it may see; None: everything. With a `UserTimeline`, what the user's other threads
            know as well.
        before: Recall only what was written before this turn; what was known as of turn n is recalled with n + 1. With
            a `UserTimeline` this counts the turns of its own thread.
        limit: Records to return at most.
        budget: Tokens that they may cost. Then records come with the parts that fit (`Recalled.shown`), and what people
            have said is to be done from now on comes whatever the question is, a fifth of the budget at most. None:
            whole records.
        replies: Whether, with a budget, what a person said comes with words of the reply, where a part of that fits.
        cost: Returns the tokens of a record as far as it is shown, at least one for four characters; None: just that.
        weights: What the order is made of.
        present: What time it is.
        speakers: Names of those who speak in the records, as far as known: in a question they say who, not what.
        fitting: Whether to leave out what has too little to do with the question (`questbook.memory.recall.order`).
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
        metadata: Only records that were written with all of this metadata; None: any.

    Raises:
        ValueError: An argument makes no sense; the message says which, and what is allowed.
    """

    text: str
    _: KW_ONLY
    hints: Sequence[WeightedText] = ()
    lasting: Sequence[Namespace] = ()
    timeline: Timeline | None = None
    before: int | None = None
    limit: int = 12
    budget: int | None = None
    replies: bool = False
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
    metadata: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        check_type("Query.text", self.text, str, "the question as a text")
        if wrong := [hint for hint in self.hints if not isinstance(hint, WeightedText)]:
            raise ValueError(f"Query.hints: got {wrong[0]!r:.80}; expected WeightedText(text, weight).")
        for namespace in self.lasting:
            check_namespace(namespace, "Query.lasting: namespace")
        check_segments("Query.timeline", self.timeline)
        check_type("Query.present", self.present, Present, "Present(now, day, session)")
        for flag in ("replies", "fitting", "aliases"):
            check_type(f"Query.{flag}", getattr(self, flag), bool, "True or False")
        for names in ("speakers", "viewer"):
            check_type(f"Query.{names}", getattr(self, names), list | tuple | Set, "several names, such as ['Mira']")
        for function in ("refine", "cost"):
            check_type(f"Query.{function}", getattr(self, function) or len, Callable, "a function, or None")
        check_type("Query.before", self.before, int | None, "the number of a turn, or None")
        check_number("Query.limit", self.limit)
        check_number("Query.budget", self.budget, none=True)
        check_number("Query.reranked", self.reranked)
        check_choice("Query.visibility", self.visibility, "viewer", "all")
        check_order("Query", self.max_cosine_distance, self.weights, self.rerank, self.metadata)

    @property
    def texts(self) -> list[WeightedText]:
        """What is searched for, the question and its hints, without blank ones."""
        return [one for one in (WeightedText(self.text, 1.0), *self.hints) if one.text.strip() and one.weight > 0]
