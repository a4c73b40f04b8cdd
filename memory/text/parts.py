"""Texts in data files that are made of parts: SQL, expressions. {NAME} in one of them stands for one above it."""

import re
import tomllib
from collections.abc import Mapping
from importlib.resources import files

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
