"""CharacterNotebook: who plays. The interview fills it once; afterwards only a person changes it."""

from collections.abc import Mapping
from typing import Annotated, ClassVar

from pydantic import BeforeValidator, Field

from questbook.notebooks.base import Entry, Notebook, Scope, Update, once
from questbook.notebooks.patch import Whole

_PLACEHOLDERS = {"?", "n/a", "na", "none", "null", "tbd", "undecided", "unknown", "unspecified", "not specified"}


def _drop_placeholder(value: object) -> object:
    """Read a model's "unknown" as an empty text."""
    return "" if isinstance(value, str) and value.strip().casefold().rstrip(".!") in _PLACEHOLDERS else value


Text = Annotated[str, BeforeValidator(_drop_placeholder)]
Score = Annotated[int, Field(ge=1, le=30)]  # an ability score; SRD 5.1: 1 to 30


class Abilities(Entry):
    """The six ability scores; None until the player chooses them or the rules fill them."""

    strength: Score | None = Field(default=None, description="Physical power.")
    dexterity: Score | None = Field(default=None, description="Agility.")
    constitution: Score | None = Field(default=None, description="Endurance.")
    intelligence: Score | None = Field(default=None, description="Reasoning and memory.")
    wisdom: Score | None = Field(default=None, description="Perception and insight.")
    charisma: Score | None = Field(default=None, description="Force of personality.")


class CharacterNotebook(Notebook):
    """Who plays. The interview writes it; once it is complete, only a person changes it."""

    TOOL: ClassVar[str] = (
        "Note what the player has said about their character. Call it as soon as something is known, and again when "
        "there is more: calls add up. Write only what the player said or agreed to and leave out what you do not "
        "know. The adventure begins once name, ancestry, class, background and goal are noted."
    )
    LIMIT: ClassVar[int] = 2500
    RESERVED: ClassVar[int] = 400  # abilities, hit points and a kit, as the rules fill them
    UPDATE: ClassVar[Update] = once
    SCOPE: ClassVar[Scope] = "campaign"
    WORDS: ClassVar[Mapping[str, str]] = {
        "ancestry": "race species lineage heritage people folk kin", "background": "backstory history origin past",
        "class": "job occupation profession role calling vocation character_class class_name archetype",
        "appearance": "looks look description", "personality": "traits personality_traits temperament",
        "alignment": "morals moral_alignment ethics morality", "abilities": "ability_scores scores stats attributes",
        "goal": "motivation motive objective aim quest desire", "kit": "equipment inventory items gear possessions",
    }  # fmt: skip
    REQUIRED: ClassVar[tuple[str, ...]] = ("name", "ancestry", "class", "background", "goal")

    name: Text = Field(default="", max_length=80, description="What the character is called.")
    ancestry: Text = Field(default="", max_length=80, description="Halfling, elf, human, …")
    class_name: Text = Field(default="", max_length=80, alias="class", description="Rogue, wizard, fighter, …")
    background: Text = Field(default="", max_length=400, description="Where they come from, what they did before.")
    appearance: Text = Field(default="", max_length=400, description="How they look.")
    personality: Text = Field(default="", max_length=400, description="How they behave, what they care about.")
    alignment: Text = Field(
        default="", max_length=80, description="Lawful good, chaotic neutral, …, or in the player's own words."
    )
    goal: Text = Field(default="", max_length=400, description="What they want, in a sentence.")
    level: int = Field(default=1, ge=1, le=20, description="1 to 20.")
    abilities: Abilities = Field(default=Abilities(), description="Only scores that the player chose.")
    hit_points: int | None = Field(
        default=None, ge=1, le=999, description="Maximum hit points.", json_schema_extra={"engine": True}
    )
    kit: dict[str, Annotated[Whole, Field(ge=1, le=9999)]] = Field(
        default={}, description="What they carry at the start: item to quantity."
    )
