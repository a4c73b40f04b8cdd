"""The only place where namespaces are built.

LangGraph's labels may not be empty or contain "." or NUL, and the first one may not be "langgraph". So every name is
escaped into one label, reversibly: it can neither leave its place nor become the same label as another name.
"""

import re
import unicodedata

from questbook.types import check_type

_SIGN = "~"  # starts an escape; itself escaped, so that escaping is reversible; alone it is the empty name
_PLAYER = "player"
_CHARACTERS = "characters"
_TEAMS = "~teams"  # no name escapes to it
# Refused by LangGraph as a first label; what is known of the person; what characters remember.
_RESERVED = ("langgraph", _PLAYER, _CHARACTERS)
# Controls, separators of paths and labels, the wildcard of list_namespaces, lone surrogates.
_UNSAFE = re.compile(r"[\x00-\x1f\x7f~./\\*:\ud800-\udfff]")
_ESCAPED = re.compile(r"~(10[0-9a-f]{4}|[0-9a-f]{1,5});")


def escape_label(name: str) -> str:
    """Turn any string into one valid namespace label, never empty, without ".", "/", "*", controls or surrogates.

    Ordinary names, unicode included, stay as they are. Each unsafe character becomes `~<hex code point>;`. "langgraph",
    "player" and "characters" are escaped too, so that no user and no campaign can take their places.
    """
    check_type("name", name, str, "a text, such as str(user_id)")
    if name == "":
        return _SIGN
    if name in _RESERVED:
        return f"{_SIGN}{ord(name[0]):x};{name[1:]}"
    return _UNSAFE.sub(lambda match: f"{_SIGN}{ord(match[0]):x};", name)


def unescape_label(label: str) -> str:
    """Undo `escape_label`: return the name that a label was made from; if no name escapes to it, it is a ValueError."""
    name = "" if label == _SIGN else _ESCAPED.sub(lambda match: chr(int(match[1], 16)), label)
    if escape_label(name) != label:
        raise ValueError(f"{label!r} is not an escaped name; escape_label() would have written {escape_label(name)!r}")
    return name


def read_label(label: str) -> str:
    """Return the name that a label was made from, or if no name escapes to it, the label itself."""
    try:
        return unescape_label(label)
    except ValueError:
        return label


def check_namespace(namespace: tuple[str, ...], named: str = "namespace") -> None:
    """Refuse one text in the place of a namespace, whose letters would be its labels, with a ValueError."""
    if isinstance(namespace, str):
        raise ValueError(f"{named} {namespace!r}: expected a tuple of texts, such as ({namespace!r},).")


def campaign_namespace(user: str, campaign: str, *rest: str) -> tuple[str, ...]:
    """Return where the records of one campaign are kept: `(user, campaign, *rest)`, escaped."""
    return (escape_label(user), escape_label(campaign), *map(escape_label, rest))


def player_namespace(user: str, *rest: str) -> tuple[str, ...]:
    """Return where is kept what is known of a person in all campaigns, and does not rewind: `(user, "player", …)`."""
    return (escape_label(user), _PLAYER, *map(escape_label, rest))


def team_namespace(team: str, *rest: str) -> tuple[str, ...]:
    """Return where is kept what a team's users share on purpose, and does not rewind: `("~teams", team, …)`."""
    return (_TEAMS, escape_label(team), *map(escape_label, rest))


def character_name(name: str) -> str:
    """Return the name by which a character is known, in any spelling: "Ada Lovelace" is ada_lovelace.

    As the LTM extension named its folders; spaces of any kind are one, case is folded, letters are composed (NFC).
    """
    return re.sub(r"[\s_]+", "_", unicodedata.normalize("NFC", name).strip()).casefold()


def character_namespace(character: str, *rest: str, user: str | None) -> tuple[str, ...]:
    """Return where the memories of a user's character are kept, or for None of one that all users share.

    Its name may be spelt in any way (`character_name`).
    """
    return (*characters_namespace(user), escape_label(character_name(character)), *map(escape_label, rest))


def characters_namespace(user: str | None) -> tuple[str, ...]:
    """Return where a user's characters are kept, `(user, "characters")`, or for None those that all users share."""
    return (_CHARACTERS,) if user is None else (escape_label(user), _CHARACTERS)
