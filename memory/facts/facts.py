"""Facts: what a turn taught, one sentence each, with who, what, when, how much it matters and who says so.

A fact is noted once. Said again, the old record is strengthened (`questbook.memory.facts.noting`); said otherwise of
the same subject and attribute, the newer one holds and the older one is history (`questbook.memory.facts.validity`).
What a model sends is read leniently (`questbook.memory.facts.reading`), and what is no fact of the world is kept as
what it is (`questbook.memory.facts.fiction`).
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field

from questbook.memory.text.wording import content_stems, normalize

JSON = dict[str, Any]
Kind = Literal["event", "trait", "promise", "secret", "preference", "rumour"]
KINDS: tuple[str, ...] = get_args(Kind)
TOOL = "Facts"
"""Name of the tool by which a model hands over facts."""

TEXT, SHORT = 1000, 200  # characters of a fact's text, and of its other fields
MOST_KNOWERS = 20
USUAL = 5  # importance, where none was said

# Other words for an attribute, so that "home" and "lives in" are one slot.
_SYNONYMS = {
    "location": "place|whereabouts|position|where|hiding place|hidden|hideout|current location",
    "home": "residence|lives in|lives at|lives|dwelling|address",
    "fate": "death|cause of death|how he died|how she died|manner of death|died",
    "debt": "owes|debts|owed",
    "occupation": "job|role|profession|trade|work|works as",
    "attitude": "feelings|disposition|attitude to the player|opinion",
    "goal": "aim|wants|objective|ambition|desire",
    "fear": "afraid of|fears|phobia",
    "state": "status|condition",
    "name": "called|full name",
}
_ATTRIBUTES = {normalize(other): one for one, others in _SYNONYMS.items() for other in others.split("|")}
# Attributes that say nothing: "Mira: promise" must not let her second promise end her first.
_GENERIC = frozenset(
    {"promis", "vow", "oath", "pledg", "event", "action", "act", "did", "deed", "happen", "fact", "info", "detail"}
    | {"trait", "not", "rumour", "secret", "preferenc", "history", "past"}
)


class Fact(BaseModel):
    """One fact.

    Attributes:
        kind: "secret" is what only the dungeon master knows; "rumour" what somebody says, or what is not certain.
        text: A sentence that can be understood by itself.
        subject: Whom or what it is about.
        attribute: What of the subject, if the subject has only one such at a time: "home", "age".
        value: What that is: "the mill".
        importance: 1, a trifle, to 10, what the story turns on.
        story_time: When it happened in the story, as told; "" if that was not said.
        real_time: When it happened in the world, ISO 8601 date or date and time; "" if that was not said.
        known_by: Names of who knows it; none: whoever was there, the player too.
        claimed_by: Who says so, if it rests on their word alone; "" if it is so.
        of_player: Whether it is about the person who plays, not about the story.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Kind = "event"
    text: Annotated[str, Field(min_length=1, max_length=TEXT)]
    subject: Annotated[str, Field(max_length=SHORT)] = ""
    attribute: Annotated[str, Field(max_length=SHORT)] = ""
    value: Annotated[str, Field(max_length=SHORT)] = ""
    importance: Annotated[int, Field(ge=1, le=10)] = USUAL
    story_time: Annotated[str, Field(max_length=SHORT)] = ""
    real_time: str = ""
    known_by: Annotated[list[str], Field(max_length=MOST_KNOWERS)] = []
    claimed_by: Annotated[str, Field(max_length=SHORT)] = ""
    of_player: bool = False

    def record(self) -> JSON:
        """Return the fields of the fact's record in a store, without where it comes from."""
        value = self.model_dump(mode="json", exclude={"of_player"})
        return value | {"slot": slot_of(self.subject, self.attribute, self.kind, self.claimed_by)}


def slot_of(subject: str, attribute: str, kind: str = "trait", claimed_by: str = "") -> str:
    """Return the slot of which one fact holds at a time: "subject|attribute", normalised.

    What somebody claims has a slot of its own, so that a lie never takes the place of a fact, and neither does a rumour
    or what is secret. "" if there is no subject, or an attribute that says nothing.
    """
    known = " ".join(words for words in normalize(subject).split() if words not in ("the", "a", "an"))
    named = normalize(attribute)
    named = _ATTRIBUTES.get(named, named)
    if not known or not content_stems(named) - _GENERIC:
        return ""
    voice = f"|claimed by {normalize(claimed_by)}" if claimed_by else ""
    return f"{known}|{named}{voice}" + (f"|{kind}" if kind in ("rumour", "secret") and not voice else "")


def hidden(record: Any) -> bool:
    """Whether a record is for the dungeon master alone, so that no view for the player may hold it."""
    return isinstance(record, dict) and record.get("kind") == "secret"


def facts_tool() -> JSON:
    """Return the tool by which a model hands over facts, in the OpenAI function format."""
    said = {"type": "string"}
    fields: JSON = {
        "text": said | {"description": "One sentence that can be understood by itself, with names, not pronouns."},
        "subject": said | {"description": "Whom or what it is about: one name."},
        "attribute": said
        | {
            "description": "What of the subject, in a word or two, where only one value holds at a time: home, "
            "attitude, whereabouts. A newer fact of the same subject and attribute ends the older one, so leave it "
            "empty where several can hold side by side."
        },
        "value": said | {"description": "The attribute's value, in a few words."},
        "importance": {"type": "integer", "description": "1, a trifle, to 10, what the story turns on."},
        "kind": {
            "type": "string",
            "enum": list(KINDS),
            "description": "event: happened. trait: is so. promise: somebody owes it. secret: the player's character "
            "does not know it. preference: somebody likes or wants it so. rumour: hearsay, a claim, a lie, a dream, "
            "an if.",
        },
        "story_time": said | {"description": "When in the story, if it was said: day 3, dusk."},
        "real_time": said
        | {
            "description": "ISO 8601 date, or as it was said (yesterday, three days ago), only if a real date was said."
        },
        "known_by": {"type": "array", "items": said, "description": "Who knows it; empty: everybody who was there."},
        "claimed_by": said | {"description": "Who says so, if nothing but their word stands for it."},
        "about": {
            "type": "string",
            "enum": ["story", "player"],
            "description": "player: about the real person who plays (their name, likes, limits), not their character.",
        },
    }
    entry = {"type": "object", "properties": fields, "required": ["text"], "additionalProperties": False}
    parameters = {"type": "object", "properties": {"facts": {"type": "array", "items": entry}}, "required": ["facts"]}
    return {
        "type": "function",
        "function": {
            "name": TOOL,
            "description": "Hand over what these turns newly taught and what will matter later: a few facts, each "
            "once. Do not call it when there is nothing new.",
            "parameters": parameters,
        },
    }
