"""What a notebook's class must say before an agent can keep such a page."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import get_args

from pydantic import ValidationError

from questbook.notebooks.base import Notebook, Place
from questbook.notebooks.errors import DeclarationError
from questbook.notebooks.update import Update, on_demand, once

_CHANNEL = re.compile(r"[a-z][a-z0-9_]{0,39}")


def check_declarations(pages: Sequence[type[Notebook]]) -> None:
    """Refuse classes of which no agent could be made.

    Raises:
        DeclarationError: What a class says makes no sense, or two of them have one name; the message names the class,
            what it says, and what is allowed.
    """
    for number, page in enumerate(pages):
        _check(page)
        for other in pages[:number]:
            if other is page:
                raise DeclarationError(f"{page.__name__} is given twice; give each notebook once.")
            if other.channel() == page.channel():
                raise DeclarationError(
                    f"Two notebooks cannot have one name: {other.__name__} and {page.__name__} are both "
                    f"{page.channel()!r}. Give one of them another CHANNEL."
                )
            if other.__name__ == page.__name__:
                raise DeclarationError(
                    f"Two notebooks cannot have one name: two classes are called {page.__name__}, and their tools too."
                )


def _check(page: type[Notebook]) -> None:
    if not isinstance(page, type) or not issubclass(page, Notebook):
        raise DeclarationError(f"A notebook is a class derived from Notebook; got {page!r:.80}.")
    name = page.__name__
    if not _CHANNEL.fullmatch(page.channel()):
        raise DeclarationError(
            f"{name}.CHANNEL: got {page.channel()!r}; expected small letters, digits and underscores, at most 40."
        )
    if not isinstance(page.UPDATE, Update) or (page.UPDATE not in (once, on_demand) and page.UPDATE.turns < 1):
        raise DeclarationError(
            f"{name}.UPDATE: got {page.UPDATE!r}; expected once, every_turn, every(n) or on_demand, from notebooks."
        )
    if page.PLACE not in get_args(Place):
        places = ", ".join(map(repr, get_args(Place)))
        raise DeclarationError(f"{name}.PLACE: got {page.PLACE!r}; expected one of {places}.")
    try:
        empty = page()
    except ValidationError as error:
        field = ".".join(map(str, error.errors(include_url=False)[0]["loc"]))
        raise DeclarationError(f"{name}.{field}: a page starts empty, so every field needs a default.") from error
    if len(empty.render()) > page.LIMIT:
        raise DeclarationError(
            f"{name}.LIMIT: got {page.LIMIT}; the empty page already renders to {len(empty.render())} characters."
        )
    try:
        page.tool()
    except RecursionError as error:
        raise DeclarationError(f"{name}: a field's type holds itself, which no tool can describe.") from error
    known = empty.as_json()
    if wrong := [field for field in page.REQUIRED if field not in known]:
        raise DeclarationError(f"{name}.REQUIRED: there is no field {wrong[0]!r}; there are {', '.join(known)}.")
    if once == page.UPDATE and not page.REQUIRED:
        raise DeclarationError(f"{name} is filled once: name in REQUIRED the fields that the interview asks for.")
