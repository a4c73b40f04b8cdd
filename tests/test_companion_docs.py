"""The code in docs/companion.md runs, and says what it says there."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.mark.slow
def test_the_code_of_the_guide_runs():
    text = (ROOT / "docs" / "companion.md").read_text("utf-8")
    first, second, *_ = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    outs = [
        subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, timeout=110, check=True, env=environment
        ).stdout
        for code in (first, second)
    ]
    assert 'guest: {"description": "Who is staying.", "used": 11, "limit": 500, "value": "Ann, room 7"}' in outs[0]
    assert '"Bob" is not in the section' in outs[0]
    assert outs[1].splitlines()[-3:] == ["You like tea.", "Name: Ann", "Likes: tea"]


def test_every_test_that_coverage_names_is_there():
    coverage = (ROOT / "docs" / "coverage.md").read_text("utf-8").split("## MemGPT")[1].split("## MemoryScope")[0]
    tests = set(re.findall(r"def (test_\w+)", "".join(path.read_text() for path in (ROOT / "tests").glob("test_*.py"))))
    named = [name.removesuffix("…") for name in re.findall(r"`(test_[a-z_0-9]+…)`", coverage)]
    assert len(named) > 40
    assert [name for name in named if not any(test.startswith(name) for test in tests)] == []
