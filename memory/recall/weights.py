"""The weights of recall's order. Loads nothing of the store, so that settings are read quickly."""

from __future__ import annotations

import json
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator


class Weights(BaseModel):
    """Weights of the parts of a record's score; each part lies between 0 and 1 before it is weighed.

    The defaults are reasoned and measured in docs/figures.md ("Recall"). Given as JSON text, they are read from it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    scoring: Literal["sum", "generative_agents"] = Field(
        default="sum",
        description="sum: all parts, as weighed here. generative_agents: relevance, recency since the last access and "
        "importance alone, each with weight 1, as published by Park et al. 2023.",
    )
    words: float = Field(default=1.0, ge=0, description="BM25 over the record and its neighbours.")
    neighbours: tuple[float, float, float, float] = Field(
        default=(0.6, 0.5, 0.3, 0.3),
        description="What a word is worth in the record before, the one after, the second before, the second after; "
        "in the record itself it is worth 1.",
    )
    meaning: float | None = Field(
        default=None,
        ge=0,
        description="Cosine; empty: 1.5 times what the embedder says its cosine is worth (`fusion_weight`, else 1).",
    )
    spread: tuple[float, float] = Field(
        default=(0.2, 0.1), description="Share of the cosines of the neighbours, at distance one and two."
    )
    named: float = Field(default=0.3, ge=0, description="The query names the record's speaker or subject.")
    phrase: float = Field(
        default=0.3, ge=0, description="The record has a name of several words that the query names, word for word."
    )
    time: float = Field(default=1.0, ge=0, description="The record's time fits the time that the query names.")
    answers: float = Field(
        default=0.1,
        ge=0,
        description="Taken from what is itself a question; given, when the query asks when, to what names a time.",
    )
    importance: float = Field(default=0.1, ge=0, description="Importance, a tenth of it for each step from 1 to 10.")
    recency: float = Field(default=0.02, ge=0, description="0.995 to the hours between it and the latest candidate.")

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, weights: Any) -> Any:
        return json.loads(weights) if isinstance(weights, str) else weights

    def of_meaning(self, worth: float) -> float:
        """Return the weight of the cosine, for an embedder that says what its cosine is worth beside words."""
        return 1.5 * worth if self.meaning is None else self.meaning

    def without(self, *parts: str) -> Self:
        """Return the same weights with some parts turned off; for ablations."""
        off: dict[str, Any] = {"neighbours": (0.0, 0.0, 0.0, 0.0), "spread": (0.0, 0.0)}
        return self.model_copy(update={part: off.get(part, 0.0) for part in parts})


DEFAULT_WEIGHTS = Weights()
