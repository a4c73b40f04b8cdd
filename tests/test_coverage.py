"""docs/coverage.md names tests that there are."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "docs" / "coverage.md").read_text("utf-8")
TESTS = {path: path.read_text("utf-8") for path in (ROOT / "tests").glob("test_*.py")}


def test_every_row_names_a_test_or_says_why_it_is_left():
    rows = [line for line in TEXT.splitlines() if re.match(r"\| (?:(?:MS|[LGMADEN])?\d+|26–28) \|", line)]
    assert len(rows) > 100
    assert [row for row in rows if "test_" not in row and " left" not in row] == []


def test_every_test_that_is_named_exists():
    names = set(re.findall(r"def (test_\w+)", "".join(TESTS.values())))
    files = {path.name for path in TESTS}
    missing = []
    for named in re.findall(r"`([^`]+)`", TEXT):
        if named.startswith("tests/"):
            file, _, test = named.removeprefix("tests/").partition("::")
            missing += [] if file in files and (not test or f"def {test}" in TESTS[ROOT / "tests" / file]) else [named]
        elif named.startswith("test_"):
            begin = named.rstrip("…")
            missing += [] if named in names or (named != begin and any(n.startswith(begin) for n in names)) else [named]
    assert missing == []
