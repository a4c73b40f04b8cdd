"""Fact: one sentence that a turn taught, with who, what, when, how much it matters and who says so."""

from collections.abc import Mapping
from datetime import date, datetime
from types import MappingProxyType
from typing import Annotated, Any, Literal, NamedTuple, get_args

from pydantic import AfterValidator, AliasChoices, BaseModel, ConfigDict, Field, model_validator

from questbook.memory.facts.attributes import attribute_name, stated_property
from questbook.memory.facts.days import day_fields
from questbook.memory.text.words import content_stems, marks_in, normalize
from questbook.memory.timeline.records import CALENDAR_TIME
from questbook.types import JSON, storable

Kind = Literal["event", "trait", "promise", "secret", "preference", "rumour"]
KINDS: tuple[str, ...] = get_args(Kind)
INSIGHT = "insight"  # the kind of the record of what a reflection concluded
BY_HAND = "hand"  # what a record that a person wrote has in its field `by`
TOOL = "Facts"  # name of the tool by which a model hands over facts
MAX_TEXT, MAX_FIELD, MAX_KNOWERS = 1000, 200, 20
"""Characters of a fact's text, and of each of its other fields; and names."""
DEFAULT_IMPORTANCE = 5

# Word stems that name no attribute: the slot "Mira: promise" would let her second promise supersede her first.
_GENERIC = frozenset(
    {"promis", "vow", "oath", "pledg", "event", "action", "act", "did", "deed", "happen", "fact", "info", "detail"}
    | {"trait", "not", "rumour", "secret", "preferenc", "history", "past"}
)

NOT_ASKED = frozenset({"of_person", "when", "day", "calendar_time", "expires", "metadata", "form", "data"})
"""Fields of a fact that no model is asked for."""
_OPTIONAL = ("when", "day", "ends", "expires", "metadata", "form", "data")  # stored only if they say something


def _iso_time(text: str) -> str:
    if text and datetime.fromisoformat(text).tzinfo is None:
        raise ValueError("expected a time with an offset, such as 2027-01-31T12:00:00+00:00")
    return text


_Short = Annotated[str, Field(max_length=MAX_FIELD)]
_Day = Annotated[str, AfterValidator(lambda text: date.fromisoformat(text).isoformat())]


class Fact(BaseModel):
    """One fact.

    Attributes:
        kind: "secret" is what nobody is shown who asks; "rumour" is hearsay, or what is not certain.
        text: A sentence that can be understood by itself.
        subject: Whom or what it is about.
        attribute: Which property of the subject, if the subject has one value of it at a time: "home", "age".
        value: The value of that property: "the mill".
        importance: From 1, a trifle, to 10, what must never be missed.
        calendar_time: When it happened by the app's own calendar, in the speaker's words; "" if unknown.
        real_time: When it happened in the real world, an ISO 8601 date or date and time; "" if unknown.
        when: The first and the last day that it is about, ISO 8601; empty: `note_facts` reads them from the text.
        day: The day of the app's own calendar that it is about; None if unknown.
        known_by: Names of those who know it; empty: everybody who was there.
        claimed_by: The speaker, if it rests on their word alone; "" if it is so.
        ends: Whether nothing of the kind holds any more: what was known of its slot, and what says the same, has ended.
        of_person: Whether it is about the person themselves, and so kept beyond what is played or talked of.
        expires: When it ends by itself, an ISO 8601 date and time with an offset; "": never.
        metadata: What the app says of it, such as {"project": "x"}, to filter by; JSON.
        form: Name of the app's own class that it was noted as (`FactNotes.schema`); "": none.
        data: The fields of that class.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", validate_by_name=True, serialize_by_alias=True)

    kind: Kind = "event"
    text: Annotated[str, Field(min_length=1, max_length=MAX_TEXT)]
    subject: _Short = ""
    attribute: _Short = ""
    value: _Short = ""
    importance: Annotated[int, Field(ge=1, le=10)] = DEFAULT_IMPORTANCE
    calendar_time: Annotated[_Short, Field(alias=CALENDAR_TIME)] = ""
    real_time: str = ""
    when: Annotated[list[_Day], Field(max_length=2)] = []
    day: Annotated[int, Field(ge=1)] | None = None
    known_by: Annotated[list[str], Field(max_length=MAX_KNOWERS)] = []
    claimed_by: _Short = ""
    ends: bool = False
    of_person: Annotated[bool, Field(validation_alias=AliasChoices("of_person", "of_player"))] = False
    expires: Annotated[str, AfterValidator(_iso_time)] = ""
    metadata: JSON = {}
    form: _Short = ""
    data: JSON = {}

    @model_validator(mode="before")
    @classmethod
    def _drop_unstorable(cls, fields: Any) -> Any:
        return storable(fields)

    @property
    def identity(self) -> tuple[Any, ...]:
        """What it has in common with another one of the same sentence; see `identity_of`."""
        return identity_of(self.record())

    @property
    def slot(self) -> str:
        """The slot that the fact fills; see `slot_of`."""
        return str(self.record()["slot"])

    def record(self) -> JSON:
        """Return the fields of the fact's record in a store, without its stamp and provenance.

        A fact without an attribute has the one that its sentence gives a value, if that can be read.
        """
        unset = {name for name in _OPTIONAL if not getattr(self, name)}
        fields = self.model_dump(mode="json", exclude={"of_person", *unset})
        if not self.attribute and (said := stated_property(self.text, self.subject)) is not None:
            fields |= {"subject": said.subject, "attribute": said.attribute, "value": self.value or said.value}
        slot = slot_of(str(fields["subject"]), str(fields["attribute"]), self.kind, self.claimed_by)
        return fields | {"slot": slot} | day_fields(self.when)


def identity_of(record: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what two records of one sentence of a turn have in common."""
    text = str(record.get("text"))
    return normalize(text), marks_in(text), str(record.get("claimed_by")), str(record.get("kind"))


def slot_of(subject: str, attribute: str, kind: str = "trait", claimed_by: str = "", name: str = "") -> str:
    """Return the slot of a fact: "subject|attribute", normalised; "" without a subject or an attribute that says much.

    A claim has a slot of its own for each speaker, so that a lie never supersedes a fact; so have rumours and secrets.
    `name` is the one name of the attribute; by default `attribute_name`.
    """
    about = " ".join(word for word in normalize(subject).split() if word not in ("the", "a", "an"))
    name = name or attribute_name(attribute)
    if not about or not content_stems(name) - _GENERIC:
        return ""
    if claimed_by:
        return f"{about}|{name}|claimed by {normalize(claimed_by)}"
    return f"{about}|{name}" + (f"|{kind}" if kind in ("rumour", "secret") else "")


def is_secret_record(record: Any) -> bool:
    """Whether a stored record is a secret, which no view of a viewer may hold."""
    return isinstance(record, dict) and record.get("kind") == "secret"


class FactWords(NamedTuple):
    """What an app says in its own words, in the tool by which a model hands over facts."""

    attributes: str = "home, job, favourite colour"  # examples of what has one value at a time
    weighty: str = "what must never be missed"  # of importance 10
    secrets: bool = False  # whether facts can be secret
    fields: Mapping[str, JSON] = MappingProxyType({})  # JSON schemas of further fields of `Fact`


def facts_tool(words: FactWords | None = None) -> JSON:
    """Return the tool by which a model hands over facts, in the OpenAI function format; None: in default words."""
    words = words or FactWords()
    kinds = [kind for kind in KINDS if words.secrets or kind != "secret"]
    texts = ("text", "subject", "attribute", "value", "real_time", "claimed_by")
    fields: JSON = {
        **{name: {"type": "string"} for name in texts},
        "importance": {"type": "integer"},
        "kind": {"type": "string", "enum": kinds},
        "ends": {"type": "boolean"},
        **words.fields,
    }
    entry = {"type": "object", "properties": fields, "required": ["text"]}
    parameters = {"type": "object", "properties": {"facts": {"type": "array", "items": entry}}, "required": ["facts"]}
    description = (  # of all fields, but those that prompts explain: one for each would take a hundred tokens more
        "Hand over what these turns newly taught and will matter later, each once. text: a sentence with names, no "
        f"pronouns. attribute, value: what of the subject has one value at a time ({words.attributes}), and which; a "
        f"newer fact ends the older. importance: 1 to 10, {words.weighty}. real_time: a date that was said, ISO 8601 "
        "or in words. ends: it holds no more, and nothing takes its place."
    )
    return {"type": "function", "function": {"name": TOOL, "description": description, "parameters": parameters}}
