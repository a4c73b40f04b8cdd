"""Text of people and models, made harmless for a screen; numbers with their nouns; what a turn is doing."""

import re
import unicodedata

# Whole control sequences first (CSI, OSC, DCS and the like), so that no "[31m" stays behind.
_SEQUENCES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x90\x98\x9c-\x9f]*(?:\x07|\x1b\\|\x9c)"
    r"|\x1b[ -/]*[0-Zc-~]"
)
_LINE_ENDS = re.compile(r"\r\n?|[\x85\u2028\u2029]")
# Characters that change the reading direction can make a line look different from what it holds.
_OVERRIDES = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff")
# Marks of Markdown: of a line's beginning, rules, escapes, and emphasis, also where a text was cut within it.
_MARKS = re.compile(
    r"(?m)^[ \t]*(?:([-*_])[ \t]*(?:\1[ \t]*){2,}$|(?:(?:>|[-*+](?=[ \t])|#{1,6}(?=[ \t]))[ \t]*)+)"
    r"|\\([*_`#>~])|`+|(?<![\w*])\*{1,3}(?=[^\s*])|(?<=[^\s*])\*{1,3}(?![\w*])|(?<!\w)_{1,3}(?=\S)|(?<=\S)_{1,3}(?!\w)"
)
_WITHIN = str.maketrans('“”"', "‘’'")
_WORK = {
    "recall": "{name} remembers…",
    **dict.fromkeys(("build_character", "run_quest", "respond"), "{name} thinks…"),
    "roll_dice": "The dice are rolling…",
    "use_tools": "{name} looks it up…",
    "update_state": "Taking notes…",
    "remember": "Writing the turn to memory…",
    "learn": "Noting what it learnt…",
    "reflect": "Looking back on what happened…",
    "condense": "Summing up older turns…",
}


def clean(text: str) -> str:
    """Drop terminal control sequences, control characters and lone surrogates; line ends become line feeds."""
    if text.isascii() and text.isprintable():
        return text
    text = _LINE_ENDS.sub("\n", _SEQUENCES.sub("", text))
    return "".join(c for c in text if c in "\n\t" or not (unicodedata.category(c) in ("Cc", "Cs") or c in _OVERRIDES))


def one_line(text: str, width: int = 0) -> str:
    """Return the text on one line, cleaned, and cut with "…" where it passes `width` characters (0: not cut)."""
    line = " ".join(clean(text).split())
    return line if not width or len(line) <= width else line[: width - 1].rstrip() + "…"


def plain(text: str) -> str:
    """Return Markdown as plain text without its marks, for excerpts."""
    return " ".join(_MARKS.sub(r"\2", clean(text)).split())


def quote(text: str, width: int = 0) -> str:
    """Return the text as `one_line` does, between quotation marks; those within it become single ones."""
    return f"“{one_line(text, width).translate(_WITHIN)}”"


def number_of(number: int, one: str, many: str = "") -> str:
    """Return a number with its noun: "1 turn", "2,000 turns"."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def work_text(node: str, name: str) -> str:
    """Return what a person waits for while a node runs ("The dungeon master thinks…", by `name`); "": nothing."""
    return _WORK.get(node, "").format(name=f"{name[:1].upper()}{name[1:]}")
