"""Recalled: a record that was recalled, and why."""

from __future__ import annotations

from typing import Any, NamedTuple


class Reason(NamedTuple):
    """Why a record was recalled; all parts but the ranks lie between 0 and 1 and are not yet weighed.

    Attributes:
        relevance: How well words and meaning fit, against the candidate that they fit best.
        recency: 0.995 to the hours between it and the latest candidate (generative_agents: since its last access).
        importance: A tenth for each step from 1 to 10; 0 if it has none.
        time: How well its time fits the time that the query names; 0 if either names none.
        named: 1 if the query names its speaker or subject, -1 if it names somebody else's, else 0.
        by_meaning: Its rank among the candidates by cosine, from 1; None if the store gave it none.
        by_words: Its rank by words, from 1; None if it and its neighbours share no word with the query.
        phrase: Whether it has a name of several words that the query names, word for word.
    """

    relevance: float = 0.0
    recency: float = 0.0
    importance: float = 0.0
    time: float = 0.0
    named: float = 0.0
    by_meaning: int | None = None
    by_words: int | None = None
    phrase: bool = False

    def __str__(self) -> str:
        told = [
            f"relevance {self.relevance:.2f}",
            f"words #{self.by_words}" if self.by_words else "",
            f"meaning #{self.by_meaning}" if self.by_meaning else "",
            f"time {self.time:.2f}" if self.time else "",
            f"named {self.named:+.0f}" if self.named else "",
            "name word for word" if self.phrase else "",
            f"importance {self.importance:.1f}" if self.importance else "",
            f"recency {self.recency:.2f}" if self.recency else "",
        ]
        return ", ".join(part for part in told if part)


class Recalled(NamedTuple):
    """One record that was recalled.

    Attributes:
        key: Its key in the store.
        value: The record.
        score: Its cosine to the best fitting query; None if the store made no vectors, or did not propose it.
        weight: What the order goes by: the weighed sum of the parts.
        namespace: Where it is kept.
        reason: What the weight is made of.
        question: The record before it, if that asks what this one answers and was not recalled itself.
        folded: Keys of records that say the same and were left out for it.
    """

    key: str
    value: dict[str, Any]
    score: float | None
    weight: float
    namespace: tuple[str, ...] = ()
    reason: Reason = Reason()
    question: dict[str, Any] | None = None
    folded: tuple[str, ...] = ()
