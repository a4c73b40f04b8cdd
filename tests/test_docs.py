"""What the documents say is so; docs/coverage.md names tests that there are."""

import inspect
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from questbook import FaissStore
from questbook.graphs.agent.spec import FactContext
from questbook.graphs.companion.context import CompanionContext
from questbook.graphs.dungeon_master.context import Context

ROOT = Path(__file__).parent.parent
DOCUMENTS = [
    ROOT / "README.md",
    ROOT / "CHANGELOG.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "SECURITY.md",
    *sorted((ROOT / "docs").glob("*.md")),
]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["CONTRIBUTING.md", "docs/play.md"])
def test_pictures_and_games_are_what_the_program_makes(name):
    text = (ROOT / name).read_text("utf-8")
    refreshed = runpy.run_path(str(ROOT / "docs" / "refresh.py"))["refreshed"]
    assert refreshed(text) == text, "run `make docs`"


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(path):
    links = [link.partition("#") for link in re.findall(r"\]\(([^)\s]+)", path.read_text("utf-8"))]
    local = [(path.parent / file if file else path, anchor) for file, _, anchor in links if "://" not in file]
    assert [target for target, _ in local if not target.exists()] == []
    assert [(target.name, anchor) for target, anchor in local if anchor and anchor not in anchors(target)] == []


def test_contributing_names_tests_that_there_are():
    named = re.findall(r"test_[a-z_*]+\.py", (ROOT / "CONTRIBUTING.md").read_text("utf-8"))
    assert len(named) > 10
    assert [pattern for pattern in named if not list((ROOT / "tests").glob(pattern))] == []


# Requirements of OWASP ASVS 5.0.0 of levels 1 and 2 in each section of each chapter; they have the first numbers of it.
ASVS = """1 2 9 11 3 2; 2 3 3 4 1; 3 0 2 4 6 5 0 2; 4 3 1 2 4; 5 1 3 2 3; 6 3 12 4 4 5 3 0 4; 7 3 4 2 5 2 2; 8 2 3 1 1;
9 3 4; 10 2 2 4 11 5 2 3; 11 2 3 3 4 1 1; 12 3 2 4; 13 1 5 2 5; 14 2 4 3; 15 3 3 7; 16 1 5 4 3 3; 17 1 4 2"""


def test_the_page_of_security_has_every_requirement_once_with_tests_that_there_are_and_counts_them():
    def numbers(text):
        for part in text.split(", "):
            first, _, last = part.partition("–")
            section, number = first.rsplit(".", 1)
            yield from (f"{section}.{n}" for n in range(int(number), int(last.rsplit(".", 1)[-1] or number) + 1))

    text = (ROOT / "docs" / "security.md").read_text("utf-8")
    rows = re.findall(r"^\| ([\d., –]+) \| (yes|in part|no|around|none) \| (.*?) \| ?(.*?) ?\|$", text, re.M)
    verdicts = [(number, verdict) for named, verdict, _, _ in rows for number in numbers(named)]
    chapters = [[int(n) for n in chapter.split()] for chapter in ASVS.split(";")]
    wanted = [
        f"{chapter}.{section}.{n + 1}"
        for chapter, *sections in chapters
        for section, most in enumerate(sections, 1)
        for n in range(most)
    ]
    assert len(wanted) == 253
    assert sorted(number for number, _ in verdicts) == sorted(wanted)
    counts = [sum(verdict == each for _, verdict in verdicts) for each in ("yes", "in part", "no", "around", "none")]
    met = "{} are met, {} in part, {} not. {} are for the proxy, the issuer or who runs the server, and {} are about"
    assert met.format(*counts) in " ".join(text.split())
    named = {name for *_, tests in rows for name in re.findall(r"`(test_\w+)`", tests)}
    assert [name for name in named if not (ROOT / "tests" / f"{name}.py").exists()] == []


def test_the_page_of_the_store_names_the_defaults_that_it_has():
    page, defaults = (ROOT / "docs" / "store.md").read_text("utf-8"), inspect.signature(FaissStore.open).parameters
    assert f"| `exact_limit` | {defaults['exact_limit'].default:,} |" in page
    assert f"| `cache_bytes` | {defaults['cache_bytes'].default / 2**30:g} GiB |" in page


def anchors(path):
    """Return the anchors that a Markdown file's headings make."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```", "", path.read_text("utf-8"), flags=re.S | re.M), re.M)
    return {re.sub(r"[^\w -]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def test_every_setting_is_in_the_table_with_its_default_and_where_it_holds():
    machines = {"game": Context, "companion": CompanionContext, "agents": FactContext}
    expected = {}
    for field in dict.fromkeys(name for settings in machines.values() for name in settings.model_fields):
        own = [machine for machine, settings in machines.items() if field in settings.model_fields]
        default = machines[own[0]].model_fields[field].get_default(call_default_factory=True)
        shown = "none" if default in (None, "") else "empty" if default in ((), {}) else f"`{default}`"
        expected[field] = (shown, ", ".join(own), machines[own[0]].model_fields[field].description)
    table = re.findall(
        r"^\| `(\w+)` \| (.*?) \| (.*?) \| (.*) \|$", (ROOT / "docs/settings.md").read_text("utf-8"), re.M
    )
    told = {field: tuple(row) for field, *row in table}
    expected["user"] = ("none", *expected["user"][1:])  # the tests' own is in the environment
    expected["weights"] = ("see [memory](memory.md#asking)", *expected["weights"][1:])
    assert told == expected


def test_the_readme_is_read_in_three_minutes():
    prose = re.sub(
        r"^```.*?^```", "", (ROOT / "README.md").read_text("utf-8").partition("## Licences")[0], flags=re.S | re.M
    )
    assert len(re.sub(r"\]\([^)]*\)", "", prose).split()) <= 750


def test_the_readme_draws_every_node_of_the_machine():
    from questbook.graphs.dungeon_master.graph import graph

    drawing = re.findall(r"^```text\n(.*?)^```", (ROOT / "README.md").read_text("utf-8"), re.S | re.M)[0]
    assert set(re.findall(r"[a-z]+(?:_[a-z]+)+|recall|remember|reflect|condense", drawing)) == set(graph.nodes) - {
        "__start__"
    }


def test_the_readme_names_the_figures_of_forkbench():
    table = (ROOT / "README.md").read_text("utf-8").partition("| memory | leaked |")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| (.*?) (\|(?: [\d,]+ \|){4})$", table.replace("*", ""), re.M)
    bench = (ROOT / "docs" / "forkbench.md").read_text("utf-8").replace("*", "")
    assert [name for name, numbers in rows if numbers not in bench] == []
    assert len(rows) == 5


def test_the_readme_names_every_make_target_that_a_person_needs():
    makefile = (ROOT / "Makefile").read_text("utf-8")
    targets = set(re.findall(r"^([a-z]+):", makefile, re.MULTILINE))
    text = "".join(path.read_text("utf-8") for path in DOCUMENTS)
    assert {"play", "install", "test", "check", "studio", "docs"} <= targets
    named = set(re.findall(r"(?:`|\$ )make ([a-z]+)", text))
    assert {"play", "test", "check", "studio", "docs"} <= named
    assert named <= targets


def test_the_srd_is_credited_with_its_exact_sentence():
    sentence = (
        'This work includes material taken from the System Reference Document 5.1 ("SRD 5.1") by Wizards of the Coast '
        "LLC and available at https://dnd.wizards.com/resources/systems-reference-document. The SRD 5.1 is licensed "
        "under the Creative Commons Attribution 4.0 International License available at "
        "https://creativecommons.org/licenses/by/4.0/legalcode."
    )
    readme = " ".join((ROOT / "README.md").read_text("utf-8").split())
    assert sentence in readme
    assert sentence in " ".join((ROOT / "graphs" / "dungeon_master" / "sheet.py").read_text("utf-8").split())


LOADED = r"""<(?!a\b)[^>]*?\s(?:src|srcset|href|xlink:href|data)=["']([^"']+)|(?:url\(|@import)\s*['"]?([^'")\s]+)"""
"""What a page or a style sheet loads by itself: all addresses but those of plain links."""


@pytest.mark.slow
def test_the_site_is_built_strictly_and_loads_nothing_from_another_host(tmp_path):
    pytest.importorskip("mkdocs", reason="the group `site` is not installed")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )
    assert built.returncode == 0, built.stderr
    files = [path for path in (tmp_path / "site").rglob("*") if path.suffix in {".html", ".css", ".svg"}]
    assert {"index.html", "turn.html", "reference.html"} <= {path.name for path in files}
    loads = [(path.name, "".join(found)) for path in files for found in re.findall(LOADED, path.read_text("utf-8"))]
    assert len(loads) > 50
    assert [load for load in loads if re.match(r"(?:https?:)?//", load[1])] == []


@pytest.mark.parametrize("name", ["README.md", "docs/timelines.md", "docs/facts.md"])
def test_what_does_not_rewind_is_said_where_people_read_that_everything_rewinds(name):
    text = (ROOT / name).read_text("utf-8").replace("*", "")
    assert any("player" in part and "outlives forks" in part for part in re.split(r"\n\n|\n- ", text))


COVERAGE = (ROOT / "docs" / "coverage.md").read_text("utf-8")
TESTS = {path: path.read_text("utf-8") for path in (ROOT / "tests").glob("test_*.py")}


def test_every_row_names_a_test_or_says_why_it_is_left():
    rows = [line for line in COVERAGE.splitlines() if re.match(r"\| (?:(?:MS|[LGMADEN])?\d+|26–28) \|", line)]
    assert len(rows) > 100
    assert [row for row in rows if "test_" not in row and " left" not in row] == []


def test_every_test_that_is_named_exists():
    names = set(re.findall(r"def (test_\w+)", "".join(TESTS.values())))
    files = {path.name for path in TESTS}
    missing = []
    for named in re.findall(r"`([^`]+)`", COVERAGE):
        if named.startswith("tests/"):
            file, _, test = named.removeprefix("tests/").partition("::")
            missing += [] if file in files and (not test or f"def {test}" in TESTS[ROOT / "tests" / file]) else [named]
        elif named.startswith("test_"):
            begin = named.rstrip("…")
            missing += [] if named in names or (named != begin and any(n.startswith(begin) for n in names)) else [named]
    assert missing == []
