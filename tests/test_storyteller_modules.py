"""How the storyteller is built: each text that is told is written, and no text lies about unused."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import pytest

import questbook.graphs.offline.storyteller
from questbook.graphs.offline.storyteller.language import load, pattern

PACKAGE = Path(questbook.graphs.offline.storyteller.__file__).parent
SOURCES = {path.stem: ast.parse(path.read_text("utf-8")) for path in sorted(PACKAGE.glob("*.py"))}


def strings():
    nodes = (node for tree in SOURCES.values() for node in ast.walk(tree))
    return {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}


def occasions():
    """Name the tables that the sources tell from: the first arguments of table(), saying() and tell()."""
    for tree in SOURCES.values():
        for node in ast.walk(tree):
            named = isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", ""))
            if named in ("table", "saying", "tell") and node.args:
                yield from (n.value for n in ast.walk(node.args[0]) if isinstance(n, ast.Constant))


def test_every_text_that_is_told_is_written_and_every_text_that_is_written_is_told():
    written = set(load("tables"))
    assert set(occasions()) - written == set()
    assert written - strings() == set()


def test_every_table_has_different_texts_to_choose_from():
    tables = {name: texts for name, texts in load("tables").items() if isinstance(texts, list)}
    assert {name for name, texts in tables.items() if not 1 < len(texts) == len(set(texts))} == set()
    gestures = load("tables")["gestures"]
    assert set(load("tables")["gestures_alike"]) | {"nod"} <= {name for name, text in gestures.items() if text}


@pytest.mark.parametrize("path", sorted(PACKAGE.glob("*.toml")), ids=lambda path: path.stem)
def test_every_pattern_names_only_parts_that_there_are(path):
    name = path.stem
    parts = tomllib.loads(path.read_text("utf-8")).get("parts", {})
    named = set(re.findall(r"(?<!\?P)<(\w+)>", path.read_text("utf-8"))) - {"name"}
    assert named == set(parts) or not parts
    for part in parts:
        assert pattern(name, "parts", part)
