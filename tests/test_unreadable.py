"""What cannot be read is one clear line, is left as it is, and does not stand in the way of what can."""

import os
import sqlite3
import subprocess
import sys

import pytest
from program import ROOT, questbook, sit_down

from questbook.graphs.local.saved_game import thread_id_of

MIRA = "I'm Mira, a halfling thief who grew up on the docks and wants her sister back.\n"


@pytest.mark.slow
def test_a_damaged_checkpoint_is_one_line_and_other_campaigns_play_on(tmp_path):
    for campaign in ("broken", "sound"):
        sit_down(tmp_path, MIRA, "--campaign", campaign)
    thread = thread_id_of("adventurer", "broken")
    with sqlite3.connect(tmp_path / "checkpoints.db") as database:
        database.execute("UPDATE checkpoints SET checkpoint = ? WHERE thread_id = ?", (b"\xc1\xc1 rubbish", thread))
    run = questbook(tmp_path, "play", "--campaign", "broken", words="look around\n")
    assert run.returncode == 2
    assert "cannot be read" in run.stderr.strip().splitlines()[-1]
    assert "Traceback" not in run.stderr + run.stdout
    told = sit_down(tmp_path, "/campaigns\nlook around\n", "--campaign", "sound")
    assert ("sound" in told, "broken" in told) == (True, False)


@pytest.mark.parametrize("closed", ["<&-", ">&-"])
def test_a_closed_standard_input_or_output_is_no_traceback(tmp_path, closed):
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "QUESTBOOK_HOME": str(tmp_path)}
    line = f"'{sys.executable}' -m questbook.graphs.terminal play {closed}"
    run = subprocess.run(line, shell=True, input="", capture_output=True, text=True, timeout=110, env=environment)
    assert run.returncode in (0, 2)
    assert "Traceback" not in run.stderr + run.stdout
