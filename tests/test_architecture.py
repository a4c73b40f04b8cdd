"""The house rules that a reader relies on, held by a test."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("notebooks", "memory", "graphs")
SOURCES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
FORBIDDEN = {"notebooks": ("memory", "graphs", "langchain", "langgraph"), "memory": ("notebooks", "graphs")}
DOORS = ("questbook.graphs.terminal", "questbook.graphs.server")
NAMES = {"utils", "helpers", "manager", "misc", "common"}


def imports_of(path):
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def under(module, packages):
    return any(module == package or module.startswith((package + ".", package + "_")) for package in packages)


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_packages_import_only_downwards(path):
    package = path.relative_to(ROOT).parts[0]
    assert [module for module in imports_of(path) if under(module, FORBIDDEN.get(package, ()))] == []


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_imports_the_doors(path):
    inside = "questbook." + ".".join(path.relative_to(ROOT).with_suffix("").parts)
    if under(inside, DOORS):
        return
    assert [module for module in imports_of(path) if under(module, DOORS)] == []


def test_every_file_is_one_idea_with_a_name_of_its_own():
    too_long = {str(path): lines for path in SOURCES if (lines := len(path.read_text("utf-8").splitlines())) > 400}
    assert too_long == {}
    assert [path for path in SOURCES if NAMES & set(path.stem.lower().split("_"))] == []
    assert [path for path in SOURCES if path.stem.endswith("_node")] == []


def test_tests_are_flat():
    assert list((ROOT / "tests").rglob("__init__.py")) == []
