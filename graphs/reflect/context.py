"""The settings of a reflection, and where a campaign keeps what it reads and writes."""

from __future__ import annotations

from typing import ClassVar, Literal, NamedTuple

from pydantic import Field

from questbook.graphs.settings import Settings


class ReflectContext(Settings):
    """Settings of a reflection; a machine that reflects adds its own to them."""

    reflection_importance: int = Field(
        default=150, ge=1, description="Importance of new facts, each 1 to 10, at whose sum there is a reflection."
    )


class MachineContext(ReflectContext):
    """Settings of a machine that reflects on its facts."""

    reflection: Literal["inline", "background", "off"] = Field(
        default="inline",
        description="When to reflect: at the end of a turn, in the background (LangGraph Server alone), or never.",
    )


class NotingContext(MachineContext):
    """Settings of an assistant whose facts are noted by one question of their own."""

    STAND_IN: ClassVar[Literal["storyteller", "assistant"]] = "assistant"

    noting: Literal["inline", "background"] = Field(
        default="inline",
        description="When to note facts: at the end of a turn, or in the background (LangGraph Server alone).",
    )


class Namespaces(NamedTuple):
    """Namespaces of one campaign."""

    facts: tuple[str, ...]
    exchanges: tuple[str, ...]
    reflections: tuple[str, ...]
    noted: tuple[str, ...]
    head: tuple[str, ...]


def namespaces_of(context: Settings) -> Namespaces:
    """Return the namespaces of the campaign that the settings name."""
    return Namespaces(*(context.campaign_namespace(name) for name in Namespaces._fields))
