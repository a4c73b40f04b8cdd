"""CoreNotebook: sections that are always in an assistant's prompt, and that it edits itself.

The idea is MemGPT's core memory (Packer et al. 2023): named sections, each with a limit that the model sees.
"""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Self

from pydantic import AfterValidator, ConfigDict, Field

from questbook.notebooks.base import Change, Entry, Notebook, Scope, Update, on_demand, render_value
from questbook.notebooks.errors import PatchError, SectionFullError
from questbook.types import JSON, words_in

DEFAULT_LIMIT = 2000  # characters of a section's value as rendered; the limit of MemGPT 0.3
MAX_LIMIT = 100_000  # the highest limit that a section may have
MAX_SECTIONS = 24
_LONGEST_LABEL = 50

# What no database or model accepts: controls other than tab and line feed, and lone surrogates.
_UNWRITABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def writable(text: str) -> str:
    """Return the text without what cannot be stored, each line end as one line feed."""
    return _UNWRITABLE.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


def _writable_value(value: str | list[str]) -> str | list[str]:
    """Return a value without what cannot be stored; an item of a list is one line."""
    if isinstance(value, str):
        return writable(value)
    return [" ".join(writable(item).split("\n")).strip() for item in value if item.strip()]


def _check_labels(sections: dict[str, Any]) -> dict[str, Any]:
    if len(sections) > MAX_SECTIONS:
        raise ValueError(f"a page has at most {MAX_SECTIONS} sections, got {len(sections)}")
    spellings: dict[str, str] = {}
    for label in sections:
        strange = {*label} - {*"".join(words_in(label)), *"_ ./-"}
        if not re.match(r"\w", label) or strange or len(label) > _LONGEST_LABEL or label != label.strip():
            may_hold = f"has at most {_LONGEST_LABEL} characters, and may hold blanks, dots, slashes and hyphens"
            raise ValueError(f"{label!r} is no label: it begins with a letter or digit, {may_hold}")
        if (other := spellings.setdefault(unicodedata.normalize("NFKC", label).casefold(), label)) != label:
            raise ValueError(f"two sections cannot share a label: {other!r} and {label!r}")
    return sections


class Section(Entry):
    """One section of core memory; its label is its key on the page."""

    model_config = ConfigDict(extra="forbid", frozen=True, str_strip_whitespace=False)

    description: str = Field(default="", max_length=500, description="What belongs in it.")
    value: Annotated[str | list[str], AfterValidator(_writable_value)] = Field(
        default="", description="Its text, exactly, blanks at its ends too; or a list: each line of an edit is an item."
    )
    limit: int = Field(default=DEFAULT_LIMIT, ge=1, le=MAX_LIMIT, description="Characters of the value as rendered.")
    read_only: bool = Field(default=False, description="Only people and code may change it.")
    shared: str = Field(default="", max_length=80, description="Name by which a user's assistants share its value.")

    @property
    def used(self) -> int:
        """Characters of the value as the prompt shows it, without the quotes or brackets around it."""
        return len(render_value(self.value)) - 2

    @property
    def text(self) -> str:
        """The value as text; of a list, an item a line."""
        return self.value if isinstance(self.value, str) else "\n".join(self.value)

    def as_shown(self) -> JSON:
        """Return what the prompt shows of the section."""
        read_only: JSON = {"read_only": True} if self.read_only else {}
        description: JSON = {"description": self.description} if self.description else {}
        return {**description, **read_only, "used": self.used, "limit": self.limit, "value": self.value}


DEFAULT_SECTIONS: dict[str, Section] = {
    "persona": Section(
        description="Who you are: your manner, and what you have learnt about how to be of use here.",
        value="I am a personal assistant. I am friendly and plain, and I say so when I do not know something.",
    ),
    "human": Section(description="What you know of the person you talk with: name, circumstances, likes and dislikes."),
    "scratchpad": Section(description="What you are in the middle of: plans, open questions, things to come back to."),
}
"""The sections of a page for which nothing is configured."""


class CoreNotebook(Notebook):
    """What is always in an assistant's prompt. The assistant edits the values by tools; people edit everything."""

    UPDATE: ClassVar[Update] = on_demand
    SCOPE: ClassVar[Scope] = "campaign"
    LIMIT: ClassVar[int] = 2_500_000  # the sections' own limits hold; this only bounds what they may add up to
    KEEPS_ENTRIES: ClassVar[bool] = True
    TOOL: ClassVar[str] = "Rewrite sections of core memory: {sections: {label: {value: …}}}."

    sections: Annotated[dict[str, Section], AfterValidator(_check_labels)] = Field(
        default=DEFAULT_SECTIONS, description="By label."
    )
    order: list[str] = Field(
        default=[], max_length=MAX_SECTIONS, description="Labels in the order of the prompt; others follow."
    )

    @classmethod
    def of(cls, sections: Mapping[str, Any]) -> Self:
        """Make a page of sections in this order, by label: each a `Section`, its fields, or its value, a text or texts.

        A PatchError refuses a label or a field.
        """
        fields = {label: {"value": s} if isinstance(s, str | list) else s for label, s in sections.items()}
        return cls.load({"sections": fields, "order": list(fields)})

    @property
    def labels(self) -> list[str]:
        """Labels in the order in which the prompt shows the sections."""
        ordered = [label for label in self.order if label in self.sections]
        return [*ordered, *(label for label in self.sections if label not in ordered)]

    def apply(self, patch: Any, *, by_model: bool = False, bounded: bool = True) -> Change[Self]:
        """Apply a merge patch, as `Notebook.apply` does. A model may only change values, and none that is read-only."""
        if by_model and (problems := self._refused_to_models(patch)):
            raise PatchError(type(self).__name__, problems)
        return super().apply(patch, by_model=by_model, bounded=bounded)

    def enforce(self, before: Self) -> Change[Self]:
        """Check each changed value against its section's limit; a value that is over it already may be shortened.

        Several assistants, each within the limit, may together pass the limit of a shared section. In another, a value
        that would pass it is a SectionFullError.
        """
        for label, section in self.sections.items():
            old = before.sections.get(label)
            is_longer = old is None or (old.value != section.value and section.used >= old.used)
            if is_longer and not section.shared and section.used > section.limit:
                raise SectionFullError(label, section.used, section.limit)
        kept = list(dict.fromkeys(label for label in self.order if label in self.sections))
        return Change(self if kept == self.order else self.model_copy(update={"order": kept}), [])

    def render(self) -> str:
        """Render the sections, one line each: `label: {description, used, limit, value}`, the value as JSON."""
        return "\n".join(f"{label}: {render_value(self.sections[label].as_shown())}" for label in self.labels)

    def player_view(self) -> JSON:
        """Return the values by label, in order, with the empty ones, since a person may want to fill them."""
        return {label: self.sections[label].value for label in self.labels}

    def with_value(self, label: str, value: str | list[str]) -> Self:
        """Return the page with another value in a section; one over the section's limit is a SectionFullError."""
        return self.apply({"sections": {label: {"value": value}}}).page

    def _refused_to_models(self, patch: Any) -> list[str]:
        sections = patch.get("sections", {}) if isinstance(patch, Mapping) else {}
        if not isinstance(sections, Mapping) or set(patch) - {"sections"}:
            return ["A model may change the values of sections and nothing else."]
        problems = []
        for label, fields in sections.items():
            section = self.sections.get(label)
            if section is None:
                problems.append(f"{label}: there is no such section; there are {', '.join(self.labels)}.")
            elif section.read_only:
                problems.append(f"{label}: this section is read-only.")
            elif not isinstance(fields, Mapping) or set(fields) - {"value"}:
                problems.append(f"{label}: only its value may be changed, not its limit, description or existence.")
        return problems


def sections_of(configured: Mapping[str, Any] | Sequence[str] | None) -> CoreNotebook:
    """Return the page with which a thread begins: of sections, as for `CoreNotebook.of`, of labels, or by default."""
    if not configured:
        return CoreNotebook()
    if isinstance(configured, Mapping):
        return CoreNotebook.of(configured)
    return CoreNotebook.of({label: DEFAULT_SECTIONS.get(label, Section()) for label in configured})
