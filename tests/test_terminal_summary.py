"""The running summary in the terminal: what left the conversation, as it changes from question to question."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_the_summary_is_shown_as_it_changes_and_the_fidelity_with_it(tmp_path):
    words = "My boat is the Heron.\nMy dog is called Bo.\n/prompt summary\nMy cat is Miso.\n/prompt summary\n/prompt\n"
    run = subprocess.run(
        [sys.executable, "-m", "graphs.terminal", "chat"],
        input=words,
        text=True,
        capture_output=True,
        timeout=100,
        check=False,
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT),
            "QUESTBOOK_HOME": str(tmp_path),
            "QUESTBOOK_BUFFER": "summary",
            "QUESTBOOK_SUMMARY_OFFSET": "0",
        },
    )
    assert run.returncode == 0, run.stderr
    first, second = run.stdout.split("summary (")[1:3]
    assert "Heron" in first
    assert "Bo" not in first.split("\n\n")[0]
    assert "Bo" in second.split("\n\n")[0]
    assert "Word for word: 0 of 2 earlier turns." in run.stdout
