"""The example and the short benchmark run as their documentation says."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def run(*arguments):
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    ).stdout


@pytest.mark.slow
def test_a_plain_agent_remembers_between_two_runs(tmp_path):
    script, path = ROOT / "examples" / "store_only.py", tmp_path / "example.db"
    assert run(script, "My cat is called Biscuit", path) == "That is new to me.\n"
    assert run(script, "What is my cat called?", path) == "You once told me: My cat is called Biscuit\n"
    assert path.exists()


@pytest.mark.slow
def test_the_benchmark_runs():
    said = run(
        ROOT / "benchmarks" / "store.py", "--sizes", "300", "--spaces", "3x100", "--peers", "ours,ours-dense,raw-faiss"
    )
    assert said.splitlines()[-1].endswith(" x"), "ratios come last"
