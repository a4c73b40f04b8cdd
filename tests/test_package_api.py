"""The public API: every name exists, is what it says, is documented, and costs nothing until it is used."""

import ast
import inspect
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import questbook

ROOT = Path(__file__).parent.parent
STUB = ast.parse((ROOT / "questbook" / "__init__.pyi").read_text("utf-8"))
HOMES = {alias.name: node.module for node in STUB.body if isinstance(node, ast.ImportFrom) for alias in node.names}
# Values and type aliases have no docstring of their own: the documentation is the string after them in their module.
VALUES = {"Count", "Segment", "every_turn", "on_demand", "once"}


def test_the_list_of_names_is_that_of_the_stub_also_for_type_checkers():
    assert all(one.name == one.asname for node in STUB.body if isinstance(node, ast.ImportFrom) for one in node.names)
    assert questbook.__all__ == sorted(HOMES)
    assert set(questbook.__all__) <= set(dir(questbook))
    assert len(questbook.__all__) <= 65, "the public API is what an app uses: the rest is imported from its module"


@pytest.mark.parametrize("name", questbook.__all__)
def test_each_name_is_what_it_says_and_documented(name):
    value, home = getattr(questbook, name), HOMES[name]
    assert getattr(sys.modules[home], name) is value, "loaded from where type checkers look"
    if name in VALUES:
        body = ast.parse(inspect.getsource(sys.modules[home])).body
        assigned = [
            isinstance(node, ast.Assign | ast.AnnAssign) and ast.unparse(node).split()[0].rstrip(":") == name
            for node in body
        ]
        text = body[assigned.index(True) + 1]
        assert isinstance(text, ast.Expr)
        assert isinstance(text.value, ast.Constant)
        return
    assert value.__name__ == name
    assert value.__module__ == home, "defined there, not passed on"
    documentation = vars(value).get("__doc__") if inspect.isclass(value) else value.__doc__
    assert documentation
    assert not documentation.startswith(f"{name}("), "a docstring of its own, not the one that dataclasses make"


def test_the_reference_describes_every_public_name_once():
    named = re.findall(r"^::: questbook\.(\w+)$", (ROOT / "docs" / "reference.md").read_text("utf-8"), re.MULTILINE)
    assert sorted(named) == questbook.__all__


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="'questbook' has no attribute 'nothing'"):
        questbook.nothing  # noqa: B018


def test_importing_costs_nothing_until_a_name_is_used():
    heavy = {"faiss", "langchain", "langchain_core", "langgraph", "numpy", "pydantic"}
    code = (
        f"import sys; import questbook, questbook.memory, questbook.graphs; heavy = {heavy}; "
        "assert not heavy & set(sys.modules), heavy & set(sys.modules); "
        "questbook.Notebook; assert 'pydantic' in sys.modules and not {'langgraph', 'numpy'} & set(sys.modules); "
        "questbook.FaissStore; assert not {'numpy', 'faiss'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


def test_the_version_has_one_source():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    assert "version" in project["project"]["dynamic"]
    assert project["tool"]["hatch"]["version"]["path"] == "questbook/__init__.py"
    assert f"\nversion: {questbook.__version__}\n" in (ROOT / "CITATION.cff").read_text("utf-8")
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert f"\n## {questbook.__version__} - 20" in changelog, "the version that the sources have is described and dated"
