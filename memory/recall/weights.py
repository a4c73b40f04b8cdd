"""The weights of recall's order. Loads nothing of the store, so that settings are read quickly."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

_RETIRED = frozenset({"neighbours", "spread"})  # of version 0.2, which campaigns may have in their settings
_log = logging.getLogger(__name__)


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
    words: float = Field(default=1.0, ge=0, description="BM25 over a passage and the words nearby.")
    nearby: float = Field(
        default=0.7,
        ge=0,
        le=1,
        description="What a word is worth 20 words before a passage; more nearer, less farther (to 80) and after it.",
    )
    meaning: float | None = Field(
        default=None,
        ge=0,
        description="Cosine; empty: what the embedder says its cosine is worth (`fusion_weight`, else 1).",
    )
    chances: float = Field(
        default=0.8,
        ge=0,
        description="Taken from a passage of a message of n, times 1 - 1/n: of many, one fits by accident.",
    )
    prefers: float = Field(
        default=0.5, ge=0, description="A passage states what the person prefers, and the query asks for advice."
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
