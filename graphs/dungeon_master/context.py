"""Context: every setting of the dungeon master, in one place."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from graphs.errors import SettingsError
from graphs.providers import OFFLINE
from memory.weights import DEFAULT_WEIGHTS, Weights


class Context(BaseModel):
    """The dungeon master's settings: what the caller passes wins, then the environment, then the default.

    The environment variable of a field is QUESTBOOK_ and its name in capitals, as QUESTBOOK_MODEL.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", from_attributes=True)

    model: str = Field(
        default=OFFLINE,
        min_length=1,
        description="Chat model as provider:name, such as openai:gpt-4.1-mini; 'offline' is the built-in storyteller.",
    )
    user: str = Field(default="adventurer", max_length=200, description="Who plays: memories are kept apart by user.")
    campaign: str = Field(
        default="default", max_length=200, description="Which campaign: memories are kept apart by it."
    )
    seed: int | None = Field(default=None, description="Makes dice and the offline storyteller repeatable.")
    temperature: float | None = Field(default=None, ge=0, le=2, description="Passed to the model; empty: its default.")
    embeddings: str = Field(
        default="hash",
        min_length=1,
        description="Embedder of the embedded store: hash, minilm, or provider:model. Read when the store is opened.",
    )
    buffer_tokens: int = Field(
        default=4000, ge=200, description="Tokens of conversation kept word for word; older turns are summarised."
    )
    summary_tokens: int = Field(default=400, ge=50, description="Tokens that the running summary may have.")
    recall_tokens: int = Field(default=800, ge=0, description="Tokens of recalled memories in the prompt; 0: none.")
    max_cosine_distance: float | None = Field(
        default=None, ge=0, le=2, description="Leave out memories farther than this from the message; empty: none."
    )
    weights: Weights = Field(
        default=DEFAULT_WEIGHTS, description="What recall goes by, as an object or its JSON; see memory/weights.py."
    )
    max_message_chars: int = Field(default=8000, ge=100, description="Longest message that a player may send.")
    max_roll_rounds: int = Field(default=4, ge=1, le=20, description="Times the model may ask for dice in one turn.")
    reflection: Literal["inline", "background", "off"] = Field(
        default="inline",
        description="When to reflect: at the end of a turn, in the background (LangGraph Server alone), or never.",
    )
    reflection_importance: int = Field(
        default=150, ge=1, description="Importance of new facts, each 1 to 10, at whose sum there is a reflection."
    )
    model_timeout: float = Field(default=120.0, gt=0, description="Seconds to wait for the model to say something.")
    update_timeout: float = Field(
        default=60.0, gt=0, description="Seconds for noting and summarising, after the reply."
    )

    @model_validator(mode="before")
    @classmethod
    def _from_environment(cls, given: Any) -> Any:
        if not isinstance(given, Mapping):
            return given
        found = {name: os.environ.get(f"QUESTBOOK_{name.upper()}", "") for name in cls.model_fields}
        said = {name: value for name, value in given.items() if value is not None}
        return {name: value for name, value in found.items() if value} | said

    @classmethod
    def of(cls, given: Any = None, **flags: Any) -> Self:
        """Make a context of what a caller gave: a context, a mapping, an object with such attributes, or nothing.

        Raises:
            SettingsError: A value is not allowed; the message names the field, the value and what is allowed.
        """
        if isinstance(given, cls) and not flags:
            return given
        if isinstance(given, str | int | float | list | tuple | set):
            raise SettingsError(f"The context: got {given!r:.80}; expected an object or a mapping with settings.")
        fields = given if isinstance(given, Mapping) else {n: getattr(given, n, None) for n in cls.model_fields}
        try:
            return cls.model_validate({**fields, **{name: value for name, value in flags.items() if value is not None}})
        except ValidationError as error:
            problem = error.errors(include_url=False)[0]
            name = str(problem["loc"][0])
            if name not in cls.model_fields:
                known = ", ".join(cls.model_fields)
                raise SettingsError(f"There is no setting {name!r}. Settings: {known}.") from error
            inner = ".".join(map(str, problem["loc"]))
            raise SettingsError(
                f"Setting {inner} (QUESTBOOK_{name.upper()}): got {problem['input']!r}; {problem['msg']}. "
                f"{cls.model_fields[name].description}"
            ) from error
