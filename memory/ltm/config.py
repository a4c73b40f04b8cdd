"""`ltm_config.json`: the settings of the LTM extension for text-generation-webui, under its names, with its defaults.

The extension's file is read as it is, and all that is wrong with it is said at once when it is read.
"""

import json
import os
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from string import Formatter
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, ConfigDict, Field, ValidationError

from questbook.memory.errors import LtmConfigError
from questbook.memory.text.parts import Described

Location = Literal["BEFORE_NORMAL_CONTEXT", "AFTER_NORMAL_CONTEXT_BUT_BEFORE_MESSAGES"]

SPELLING_DISTANCE = 0.80
"""A `max_cosine_distance` for `HashEmbeddings`, whose cosine knows spelling only; measured, see docs/figures.md."""


class _Settings(Described):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


def _template(*fields: str) -> AfterValidator:
    def check(template: str) -> str:
        allowed = "its fields are " + ", ".join(f"{{{field}}}" for field in fields)
        try:
            named = [(name, form or how) for _, name, form, how in Formatter().parse(template) if name is not None]
        except ValueError as error:
            raise ValueError(f"{error}; a brace that is no field is written twice; {allowed}") from error
        for name, form in named:
            if name not in fields:
                raise ValueError(f"there is no field {{{name}}}; {allowed}")
            if form:  # {name1:9999999999} would fill the memory of the machine
                raise ValueError(f"the field {name} has the format {form!r}; {allowed}, without a format")
        return template

    return AfterValidator(check)


_OF_MEMORY = ("time_difference", "memory_name", "memory_message", "memory_date", "memory_times")


class LtmContext(_Settings):
    """Where memories go in the prompt, and how they read."""

    injection_location: Location = "BEFORE_NORMAL_CONTEXT"
    memory_context_template: Annotated[str, _template("name1", "name2", "all_memories")] = Field(
        default="{name2}'s memory log:\n{all_memories}\n"
        "While {name2} talks with {name1}, {name2} calls these memories to mind and lets them show where they fit."
    )
    memory_template: Annotated[str, _template(*_OF_MEMORY)] = (
        '{time_difference}, {memory_name} said:\n"{memory_message}"'
    )


class LtmWrites(_Settings):
    """What is remembered."""

    min_message_length: int = Field(default=100, ge=0)
    condense_longer_than: int = Field(default=0, ge=0)


class LtmReads(_Settings):
    """What is recalled."""

    max_cosine_distance: float = Field(default=0.60, ge=0, le=2)
    num_memories_to_fetch: int = Field(default=2, ge=0)
    memory_length_cutoff_in_chars: int = Field(default=1000, ge=1)
    visible: Literal["now", "next_session"] = "now"


class LtmConfig(_Settings):
    """The settings of a character's memory; what is left out is as the extension's example has it.

    `LtmConfig()` is that example, `LtmConfig.of({"ltm_reads": {"num_memories_to_fetch": 4}})` a change to it.
    """

    ltm_context: LtmContext = LtmContext()
    ltm_writes: LtmWrites = LtmWrites()
    ltm_reads: LtmReads = LtmReads()

    @classmethod
    def of(cls, given: Mapping[str, Any], source: str = "The LTM settings") -> Self:
        """Read sections and their settings, as in the file; the LtmConfigError of wrong values calls it `source`."""
        try:
            return cls.model_validate(given)
        except ValidationError as error:
            problems = "; ".join(_problem(problem) for problem in error.errors(include_url=False))
            raise LtmConfigError(f"{source}: {problems}.") from error

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Self:
        """Read an `ltm_config.json`, the extension's own or one of ours; what is wrong with it is an LtmConfigError."""
        file = Path(path)
        try:
            given = json.loads(file.read_text("utf-8-sig"), object_pairs_hook=_once)
        except OSError as error:
            raise LtmConfigError(f"{file} cannot be read: {error.strerror or error}.") from error
        except LtmConfigError as error:
            raise LtmConfigError(f"{file}: {error}") from error
        except (ValueError, RecursionError) as error:
            raise LtmConfigError(f"{file} is no JSON in UTF-8: {error}.") from error
        return cls.of(given, str(file))

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the settings to a file, to start from."""
        Path(path).write_text(json.dumps(self.model_dump(), indent=4, ensure_ascii=False) + "\n", "utf-8")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    settings, counts = dict(pairs), Counter(name for name, _ in pairs)
    if len(settings) < len(pairs):
        twice = counts.most_common(1)[0][0]
        raise LtmConfigError(f"{twice!r} stands there twice; which of the two is meant cannot be known.")
    return settings


def _problem(problem: Any) -> str:
    place = [str(part) for part in problem["loc"]]
    if problem["type"] == "extra_forbidden":
        home: Any = LtmConfig.model_fields[place[0]].annotation if len(place) > 1 else LtmConfig
        return f"there is no {'.'.join(place)}; there are {', '.join(home.model_fields)}"
    if not place:
        return f"got {problem['input']!r:.60}; expected an object with {', '.join(LtmConfig.model_fields)}"
    text = problem["msg"].removeprefix("Value error, ")
    return f"{'.'.join(place)} is {problem['input']!r:.80}: {text[0].lower()}{text[1:]}"
