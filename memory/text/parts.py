"""Texts in data files: parts of SQL and expressions, where {NAME} stands for one above it; descriptions of fields."""

import re
import sys
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from pydantic import BaseModel

_PART = re.compile(r"\{([A-Z_]+)\}")


def read_parts(package: str, name: str, *, wrapped: bool = False, **given: str) -> dict[str, str]:
    """Return the texts of a TOML file by name, each filled with those above it, and with what is given.

    `wrapped`: each is an expression that may be too long for a line.
    """
    parts = dict(given)
    for part, text in tomllib.loads(files(package).joinpath(name).read_text("utf-8")).items():
        parts[part] = fill(in_one_line(text) if wrapped else text, parts)
    return parts


def fill(text: str, parts: Mapping[str, str]) -> str:
    """Replace {NAME} by the part of that name; other braces stay, as those of expressions and of `format` do."""
    return _PART.sub(lambda name: parts[name[1]], text)


def in_one_line(expression: str) -> str:
    """Join the lines of a long expression, without the blanks at their beginnings."""
    return re.sub(r"\n\s*", "", expression)


class Described(BaseModel):
    """A model that has the descriptions of its fields in a TOML file beside its module, below the name of its class."""

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        """Read them."""
        super().__pydantic_init_subclass__(**kwargs)
        file = getattr(sys.modules.get(cls.__module__), "__file__", None)
        is_ours = cls.__module__.startswith("questbook.")  # an app's file of that name is its own
        if file and is_ours and (texts := _texts_beside(file).get(cls.__name__)):
            for field, text in texts.items():
                cls.model_fields[field].description = text
            cls.model_rebuild(force=True)


@cache
def _texts_beside(file: str) -> Mapping[str, Mapping[str, str]]:
    path = Path(file).with_suffix(".toml")
    return tomllib.loads(path.read_text("utf-8")) if path.is_file() else {}
