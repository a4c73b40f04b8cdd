"""Settings of every graph, read from what the caller passes and from the environment."""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta, tzinfo
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    PrivateAttr,
    ValidationError,
    model_validator,
)

from questbook.graphs.errors import InputError, SettingsError
from questbook.memory.facts.forms import check_forms
from questbook.memory.recall.query import DEFAULT_WEIGHTS, Weights
from questbook.memory.timeline.namespaces import campaign_namespace
from questbook.notebooks.errors import DeclarationError
from questbook.notebooks.schema import expected
from questbook.types import JSON, check_json, clean_text, storable

if TYPE_CHECKING:  # a command that asks no model must not wait for LangChain
    from langchain_core.language_models import BaseChatModel

OFFLINE = "offline"
"""Name of the built-in models, which need neither provider nor key."""
USER_VARIABLE = "QUESTBOOK_USER"
"""Names the user where the caller names none (`questbook.graphs.turn.scope`)."""
ONLY_USER = "adventurer"
"""The user of a program that one person uses, such as the terminal, unless they give another name."""


class Extra(BaseModel):
    """A section that an application adds to the prompt, before or after the instructions."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    text: str = Field(max_length=20_000)
    place: Literal["before", "after"] = "after"


Team = str | Callable[[Any], str | None]
"""A team's name, or a function of the run that returns it; "" and None: no team."""
Metadata = Mapping[str, Any] | Callable[[Any], Mapping[str, Any]]
"""A JSON object, or a function of the run that returns it."""
_LONGEST_TTL = timedelta(days=36_500)


@dataclass(frozen=True, kw_only=True)
class AppRules:
    """What an app says of the memory of its agent: of noted facts as in `FactNotes`, `team`, `metadata`."""

    schema: Sequence[type[BaseModel]] = ()
    instructions: str = ""
    ttl: timedelta | None = None
    team: Team = ""
    metadata: Metadata = field(default_factory=dict)

    def __post_init__(self) -> None:
        try:
            check_forms(self.schema)
        except (TypeError, ValueError) as error:
            raise DeclarationError(f"schema: {error}.") from error
        if not isinstance(self.instructions, str):
            raise DeclarationError(f"instructions: got {self.instructions!r:.80}; expected a text.")
        if self.ttl is not None and not (isinstance(self.ttl, timedelta) and timedelta() < self.ttl <= _LONGEST_TTL):
            raise DeclarationError(f"ttl: got {self.ttl!r:.80}; expected above 0, to 100 years, as timedelta(days=30).")
        if not isinstance(self.team, str) and not callable(self.team):
            raise DeclarationError(f"team: got {self.team!r:.80}; expected a str, or a function of the run.")
        try:
            check_json("metadata", None if callable(self.metadata) else self.metadata)
        except ValueError as error:
            raise DeclarationError(f"{error} A function of the run returns one, too.") from error


class Settings(BaseModel):
    """Settings that graphs share: the caller's value counts first, then the environment, then the default.

    The environment variable of a field is QUESTBOOK_ and its name in capitals, such as QUESTBOOK_MODEL; a value that is
    not plain is written as JSON there.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", from_attributes=True)

    STAND_IN: ClassVar[Literal["storyteller", "assistant"]] = "storyteller"
    """The built-in model that answers when the model is 'offline'."""
    CHAT_MODEL: ClassVar["BaseChatModel | None"] = None
    """A model object of the application, in place of the one that `model` names."""
    APP: ClassVar[AppRules] = AppRules()
    """What the application says of its agent's memory; no caller changes it."""
    _of_run: tuple[str, JSON] = PrivateAttr(("", {}))

    model: str = Field(
        default=OFFLINE,
        min_length=1,
        description="Chat model as provider:name, such as openai:gpt-4.1-mini; 'offline' is a built-in one.",
    )
    user: str = Field(
        default_factory=lambda: os.environ.get(USER_VARIABLE, ""),
        max_length=200,
        validate_default=True,
        description="Whose memories: they are kept apart by user. Who logged in on the server counts first; without a "
        "log-in it has to be named.",
    )
    campaign: str = Field("default", max_length=200, description="Which campaign: memories are kept apart by it.")
    seed: int | None = Field(default=None, description="Makes dice and the offline storyteller repeatable.")
    temperature: float | None = Field(default=None, ge=0, le=2, description="Passed to the model; empty: its default.")
    embeddings: str = Field(
        default="auto",
        min_length=1,
        description="Embedder of Questbook's own store: hash, minilm, or provider:model. 'auto': the one that it was "
        "made with; for a new one minilm if its weights are here, else hash. No effect in a run's context.",
    )
    buffer: Literal["tokens", "turns", "summary", "unbounded"] = Field(
        default="tokens",
        description="Which turns stay in the prompt word for word: those that fit in buffer_tokens; the last "
        "buffer_turns; those not summarised yet, with all but summary_offset summarised after each reply; or all.",
    )
    buffer_tokens: int = Field(
        default=4000, ge=200, description="Tokens of conversation kept word for word; older turns are summarised."
    )
    buffer_turns: int = Field(
        default=10, ge=0, description="With buffer 'turns': turns before the present one that stay; older ones leave."
    )
    summary_offset: int = Field(
        default=2, ge=0, description="With buffer 'summary': turns that stay word for word; 0 summarises each at once."
    )
    summarizer: Literal["model", "extractive"] = Field(
        default="model", description="How to summarise: by the model, or by sentences taken from the turns."
    )
    summary_tokens: int = Field(default=400, ge=50, description="Tokens that the running summary may have.")
    prompt_order: tuple[str, ...] = Field(
        default=(),
        description="Names of the prompt's sections in the order wanted, 'instructions' among them; the rest follow. "
        "Those named after 'messages' come with the newest message, before its words. Unknown names are passed over.",
    )
    prompt_sections: dict[Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,39}$")], Extra] = Field(
        default={}, description="Sections to add to the prompt: name to text and place, before or after instructions."
    )
    recall_tokens: int = Field(default=800, ge=0, description="Tokens of recalled memories in the prompt; 0: none.")
    max_cosine_distance: float | None = Field(
        default=None, ge=0, le=2, description="Leave out memories farther than this from the message; empty: none."
    )
    weights: Weights = Field(
        default=DEFAULT_WEIGHTS,
        description="How recall scores candidates, as an object or its JSON; see memory/recall/query.py.",
    )
    max_message_chars: int = Field(default=8000, ge=100, description="Longest message that a player may send.")
    max_reply_chars: int = Field(
        default=20_000, ge=100, description="Longest reply; a longer one is cut, and the model is stopped."
    )
    guard_secrets: bool = Field(
        default=True,
        description="Whether a reply that repeats a secret word for word, or a tag of the prompt, is stopped before "
        "these words and asked again, once.",
    )
    model_timeout: float = Field(default=120.0, gt=0, description="Seconds to wait for the model to say something.")
    store_timeout: float = Field(
        default=20.0, gt=0, description="Seconds to wait for the store; then the turn goes on without memories."
    )
    update_timeout: float = Field(60.0, gt=0, description="Seconds for noting and summarising, after the reply.")

    @model_validator(mode="before")
    @classmethod
    def _from_environment(cls, values: Any) -> Any:
        if not isinstance(values, Mapping):
            return values
        names = cls.model_fields.keys() - {"user"}  # whether the caller named the user must stay known
        environment = {name: os.environ.get(f"QUESTBOOK_{name.upper()}", "") for name in names}
        passed = {name: value for name, value in values.items() if value is not None}
        return {name: _read(cls, name, value) for name, value in environment.items() if value} | passed

    @model_validator(mode="wrap")
    @classmethod
    def _with_own_errors(cls, values: Any, validate: ModelWrapValidatorHandler[Self]) -> Self:
        """Name the setting that is wrong, also where LangGraph makes the settings of a caller's mapping."""
        try:
            return validate(values)
        except ValidationError as error:
            raise cls._error(error) from error

    @classmethod
    def of(cls, values: Any = None, **flags: Any) -> Self:
        """Make settings of values (settings, a mapping, an object with such attributes, or None); flags go before them.

        Raises:
            SettingsError: A value is not allowed; the message names the field, the value and what is allowed.
        """
        if isinstance(values, cls) and not flags:
            return values
        if isinstance(values, str | int | float | list | tuple | set):
            raise SettingsError(f"The context: got {values!r:.80}; expected an object or a mapping with settings.")
        fields = values if isinstance(values, Mapping) else {n: getattr(values, n, None) for n in cls.model_fields}
        if isinstance(values, Settings):  # nobody named these: they are the environment's, or the thread's
            fields = {**fields, **dict.fromkeys({"user", "campaign"} - values.model_fields_set)}
        return cls.model_validate({**fields, **{name: value for name, value in flags.items() if value is not None}})

    @property
    def zone(self) -> tzinfo | None:
        """The timezone in which the person's days begin; None: this machine's."""
        return None

    @property
    def team(self) -> str:
        """The team whose facts the run recalls, too; "": none."""
        return self._of_run[0]

    @property
    def metadata(self) -> JSON:
        """What is written with each exchange and fact of the run."""
        return self._of_run[1]

    def for_run(self, runtime: Any) -> Self:
        """Return the settings with what the app says of a run, given as the caller began it."""
        team = self.APP.team(runtime) if callable(self.APP.team) else self.APP.team
        metadata = self.APP.metadata(runtime) if callable(self.APP.metadata) else self.APP.metadata
        if not (team or metadata):
            return self
        settings = self.model_copy()
        settings._of_run = team or "", storable(dict(metadata or {}))
        return settings

    def check_message(self, text: str) -> None:
        """Refuse a person's message that is blank, or longer than `max_message_chars`, with an InputError."""
        if not clean_text(text).strip():
            raise InputError("The message is blank. Say something.")
        if len(text) > (most := self.max_message_chars):
            raise InputError(
                f"The message has {len(text):,} characters; at most {most:,} can be read. Send it in parts."
            )

    def campaign_namespace(self, *rest: str) -> tuple[str, ...]:
        """Return the store's namespace of the campaign, or one below it, such as "facts"."""
        return campaign_namespace(self.user, self.campaign, *rest)

    @classmethod
    def _error(cls, error: ValidationError) -> SettingsError:
        problem = error.errors(include_url=False)[0]
        name = str(problem["loc"][0]) if problem["loc"] else ""
        if not name:
            return SettingsError(f"The context: got {problem['input']!r:.80}; {expected(problem)}.")
        if name not in cls.model_fields:
            return SettingsError(f"There is no setting {name!r}. Settings: {', '.join(cls.model_fields)}.")
        inner = ".".join(map(str, problem["loc"]))
        setting = f"Setting {inner} (QUESTBOOK_{name.upper()}): got {problem['input']!r:.80}; {expected(problem)}."
        return SettingsError(f"{setting} {cls.model_fields[name].description}")


class ReflectContext(Settings):
    """Settings of a reflection; a machine that reflects adds its own to them."""

    reflection_importance: int = Field(
        default=150, ge=1, description="Importance of new facts, each 1 to 10, at whose sum there is a reflection."
    )


class MachineContext(ReflectContext):
    """Settings of a machine that reflects on its facts."""

    reflection: Literal["inline", "background", "off"] = Field(
        default="inline",
        description="When to reflect: at the end of a turn, in the background (of a server), or never.",
    )

    def reflects_at(self, importance: int) -> bool:
        """Whether there is a reflection when facts of so much importance were noted since the last one."""
        return self.reflection != "off" and importance >= self.reflection_importance


class NotingContext(MachineContext):
    """Settings of an assistant whose facts are noted by one question of their own."""

    STAND_IN: ClassVar[Literal["storyteller", "assistant"]] = "assistant"

    noting: Literal["inline", "background"] = Field(
        default="inline", description="When to note facts: at the end of a turn, or in the background (of a server)."
    )


def own_name(name: str, own: str) -> str:
    """Name a campaign of one graph, so that another graph's campaign of that name is a different one."""
    return name if name == own or name.startswith(f"{own}:") else f"{own}:{name}"


def _read(settings: type[BaseModel], name: str, value: str) -> Any:
    """Read an environment variable: values that are not plain are written as JSON."""
    if settings.model_fields[name].annotation in (str, int, float, bool) or not value.lstrip().startswith(("{", "[")):
        return value
    try:
        return json.loads(value)
    except ValueError as error:
        raise SettingsError(f"Setting {name} (QUESTBOOK_{name.upper()}): {value!r:.80} is no JSON: {error}.") from error
