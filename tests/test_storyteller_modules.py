"""How the storyteller is built: no module leans on one that leans on it, and no text lies about unused."""

from __future__ import annotations

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import questbook.graphs.offline.storyteller
from questbook.graphs.offline.storyteller import tables

PACKAGE = Path(questbook.graphs.offline.storyteller.__file__).parent
SOURCES = {path.stem: ast.parse(path.read_text("utf-8")) for path in sorted(PACKAGE.glob("*.py"))}


def modules_imported_by(tree):
    """Name the package's modules that a module imports anywhere, in a function too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = f"{'questbook.graphs.offline.storyteller.' if node.level else ''}{node.module or ''}".strip(".")
            names = [base, *(f"{base}.{alias.name}" for alias in node.names)]
        else:
            continue
        for name in names:
            module = name.removeprefix("questbook.graphs.offline.storyteller.")
            if module != name and module in SOURCES:
                yield module


def texts_wanted():
    for tree in SOURCES.values():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("table", "saying"):
                yield from (n.value for n in ast.walk(node.args[0]) if isinstance(n, ast.Constant))


def test_no_two_modules_import_each_other_by_whatever_way_round():
    imports = {module: set(modules_imported_by(tree)) for module, tree in SOURCES.items()}
    assert "scene" in imports["search"]
    assert list(TopologicalSorter(imports).static_order())[-1] == "__init__"


def test_modules_are_short():
    lengths = {path.name: len(path.read_text("utf-8").splitlines()) for path in PACKAGE.glob("*.py")}
    assert {name: lines for name, lines in lengths.items() if lines > 300} == {}


def test_every_text_that_is_told_is_written_and_every_text_that_is_written_is_told():
    written = set(tables._written()) - {"flavour"}
    assert set(texts_wanted()) == written


@pytest.mark.parametrize("occasion", sorted(set(texts_wanted()) - {"honest", "again", "died", "dead"}))
def test_every_table_has_texts_to_choose_from(occasion):
    texts = tables.table(occasion)
    assert len(texts) > 1
    assert len(set(texts)) == len(texts)


def test_every_small_gesture_comes_to_something():
    assert all(texts for texts in tables.flavours().values())
    assert "nod" in tables.flavours()
