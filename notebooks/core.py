"""CoreNotebook: what an assistant always has before its eyes, in sections that it edits itself.

The idea is MemGPT's core memory (Packer et al. 2023): named sections, each with a limit that the model sees.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Self

from pydantic import AfterValidator, ConfigDict, Field

from questbook.notebooks.base import Change, Entry, Notebook
from questbook.notebooks.errors import PatchError, SectionFullError
from questbook.notebooks.patch import JSON
from questbook.notebooks.render import render_value
from questbook.notebooks.update import Update, on_demand

DEFAULT_LIMIT = 2000
"""Characters of a section's value as rendered; that of MemGPT 0.3."""
MOST_CHARS = 100_000
"""The highest limit that a section may have."""
MOST_SECTIONS = 24

_LABEL = re.compile(r"\w[\w ./-]{0,49}")
# What no database or model takes: controls other than tab and line feed, and lone surrogates.
_UNWRITABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def writable(text: str) -> str:
    """Drop what cannot be stored, and write every line end as one line feed."""
    return _UNWRITABLE.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


def _labelled(sections: dict[str, Any]) -> dict[str, Any]:
    if len(sections) > MOST_SECTIONS:
        raise ValueError(f"a page has at most {MOST_SECTIONS} sections, got {len(sections)}")
    known: dict[str, str] = {}
    for label in sections:
        if not _LABEL.fullmatch(label) or label != label.strip():
            raise ValueError(
                f"{label!r} is no label: it begins with a letter or digit, has at most 50 characters, and may hold "
                "blanks, dots, slashes and hyphens"
            )
        if (other := known.setdefault(label.casefold(), label)) != label:
            raise ValueError(f"two sections cannot share a label: {other!r} and {label!r}")
    return sections


class Section(Entry):
    """One section of core memory; its label is its key on the page.

    Attributes:
        description: What belongs in it, for the model.
        value: What it says, exactly; blanks at its ends count.
        limit: Characters that the value may have as rendered.
        read_only: Whether only people and code may change it.
        shared: Name under which assistants of one user share its value through the store; "" keeps it to this one.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=False)

    description: str = Field(default="", max_length=500)
    value: Annotated[str, AfterValidator(writable)] = ""
    limit: int = Field(default=DEFAULT_LIMIT, ge=1, le=MOST_CHARS)
    read_only: bool = False
    shared: str = Field(default="", max_length=80)

    @property
    def used(self) -> int:
        """Characters of the value as it stands in the prompt, quotes not counted."""
        return len(render_value(self.value)) - 2

    def shown(self) -> JSON:
        """Return what the prompt shows of the section."""
        flag: JSON = {"read_only": True} if self.read_only else {}
        about: JSON = {"description": self.description} if self.description else {}
        return {**about, **flag, "used": self.used, "limit": self.limit, "value": self.value}


DEFAULT_SECTIONS: dict[str, Section] = {
    "persona": Section(
        description="Who you are: your manner, and what you have learnt about how to be of use here.",
        value="I am a personal assistant. I am friendly and plain, and I say so when I do not know something.",
    ),
    "human": Section(description="What you know of the person you talk with: name, circumstances, likes and dislikes."),
    "scratchpad": Section(description="What you are in the middle of: plans, open questions, things to come back to."),
}
"""The sections of a page that nobody has configured."""


class CoreNotebook(Notebook):
    """What an assistant always has before its eyes. The assistant edits the values by tools; people edit everything.

    Attributes:
        sections: By label.
        order: Labels in the order in which the prompt shows them; others follow in the order they were added.
    """

    UPDATE: ClassVar[Update] = on_demand
    LIMIT: ClassVar[int] = 2_500_000  # the sections' own limits hold; this only bounds what they may add up to
    RESERVED: ClassVar[int] = 0
    TOOL: ClassVar[str] = "Rewrite sections of core memory: {sections: {label: {value: …}}}."

    sections: Annotated[dict[str, Section], AfterValidator(_labelled)] = Field(default=DEFAULT_SECTIONS)
    order: list[str] = Field(default=[], max_length=MOST_SECTIONS)

    @classmethod
    def of(cls, sections: Mapping[str, Any]) -> Self:
        """Make a page of these sections in this order, in place of the default ones.

        Args:
            sections: By label: a `Section`, its fields, or just the value.

        Raises:
            PatchError: A label or a field is not allowed.
        """
        fields = {label: {"value": s} if isinstance(s, str) else s for label, s in sections.items()}
        return cls.load({"sections": fields, "order": list(fields)})

    @property
    def labels(self) -> list[str]:
        """Labels in the order in which the prompt shows the sections."""
        placed = [label for label in self.order if label in self.sections]
        return [*placed, *(label for label in self.sections if label not in placed)]

    def patched(self, patch: Any, *, by_model: bool = False, bounded: bool = True) -> Change[Self]:
        """Apply a merge patch, as `Notebook.patched` does; a model may only change values, and none that is read-only.

        Raises:
            PatchError: The patch does not fit; it names the section and what there is.
            SectionFullError: A value would pass its section's limit.
        """
        if by_model and (problems := self._not_the_models(patch)):
            raise PatchError(type(self).__name__, problems)
        return super().patched(patch, by_model=by_model, bounded=bounded)

    def settle(self, before: Self) -> Change[Self]:
        """Hold each changed value to its section's limit; one that is over it already may still be shortened.

        What several assistants write at once may pass the limit of a shared section: each held it when it wrote.
        """
        for label, section in self.sections.items():
            old = before.sections.get(label)
            written = old is None or old.value != section.value
            shortened = old is not None and section.used < old.used
            if written and not shortened and not section.shared and section.used > section.limit:
                raise SectionFullError(label, section.used, section.limit)
        kept = list(dict.fromkeys(label for label in self.order if label in self.sections))
        return Change(self if kept == self.order else self.model_copy(update={"order": kept}), [])

    def render(self) -> str:
        """Render the sections, one line each: `label: {description, used, limit, value}`.

        The value is JSON, so that nothing in it can end the line or the section of the prompt, and what a model copies
        from it into the JSON of a tool call is the same text again.
        """
        return "\n".join(f"{label}: {render_value(self.sections[label].shown())}" for label in self.labels)

    def player_view(self) -> JSON:
        """Return the values by label, in order; empty ones stay, since a person may want to fill them."""
        return {label: self.sections[label].value for label in self.labels}

    def with_value(self, label: str, value: str) -> Self:
        """Return the page with another value in a section.

        Raises:
            SectionFullError: It would pass the section's limit.
        """
        return self.patched({"sections": {label: {"value": value}}}).page

    def _not_the_models(self, patch: Any) -> list[str]:
        sections = patch.get("sections", {}) if isinstance(patch, Mapping) else {}
        if not isinstance(sections, Mapping) or set(patch) - {"sections"}:
            return ["A model may change the values of sections and nothing else."]
        problems = []
        for label, fields in sections.items():
            known = self.sections.get(label)
            if known is None:
                problems.append(f"{label}: there is no such section; there are {', '.join(self.labels)}.")
            elif known.read_only:
                problems.append(f"{label}: this section is read-only.")
            elif not isinstance(fields, Mapping) or set(fields) - {"value"}:
                problems.append(f"{label}: only its value may be changed, not its limit, description or existence.")
        return problems


def sections_of(configured: Mapping[str, Any] | Sequence[str] | None) -> CoreNotebook:
    """Return the page with which a thread begins: the configured sections, or the default ones.

    Args:
        configured: Sections by label as `CoreNotebook.of` takes them, or only labels; None or empty: the default.

    Raises:
        PatchError: A label or a field is not allowed.
    """
    if not configured:
        return CoreNotebook()
    if isinstance(configured, Mapping):
        return CoreNotebook.of(configured)
    return CoreNotebook.of({label: DEFAULT_SECTIONS.get(label, Section()) for label in configured})
