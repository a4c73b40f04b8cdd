"""What cannot be read is one clear line, is left as it is, and does not stand in the way of what can."""

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from program import sit_down

from questbook.graphs.local.saved_game import thread_id_of

ROOT = Path(__file__).parent.parent
MIRA = "I'm Mira, a halfling thief who grew up on the docks and wants her sister back.\n"


def questbook(home, words, *flags, closed=""):
    command = [sys.executable, "-m", "questbook.graphs.terminal", "play", "--seed", "6", *flags]
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "QUESTBOOK_HOME": str(home)}
    line = " ".join(f"'{part}'" for part in command) + closed
    return subprocess.run(
        line, shell=True, input=words, capture_output=True, text=True, timeout=110, check=False, env=environment
    )


@pytest.mark.slow
def test_a_damaged_checkpoint_is_one_line_and_other_campaigns_play_on(tmp_path):
    sit_down(tmp_path, MIRA, "--campaign", "broken")
    sit_down(tmp_path, MIRA, "--campaign", "sound")
    thread = thread_id_of("adventurer", "broken")
    with sqlite3.connect(tmp_path / "checkpoints.db") as database:
        database.execute("UPDATE checkpoints SET checkpoint = ? WHERE thread_id = ?", (b"\xc1\xc1 rubbish", thread))
    run = questbook(tmp_path, "look around\n", "--campaign", "broken")
    assert run.returncode == 2
    assert "cannot be read" in run.stderr.strip().splitlines()[-1]
    assert "Traceback" not in run.stderr + run.stdout
    run = questbook(tmp_path, "/campaigns\nlook around\n", "--campaign", "sound")
    assert run.returncode == 0, run.stderr
    assert "sound" in run.stdout
    assert "broken" not in run.stdout


def test_a_closed_standard_input_or_output_is_no_traceback(tmp_path):
    for closed in (" <&-", " >&-"):
        run = questbook(tmp_path, "", closed=closed)
        assert run.returncode in (0, 2)
        assert "Traceback" not in run.stderr + run.stdout
