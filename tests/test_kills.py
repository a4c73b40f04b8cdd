"""Killed at any point of a turn and run on, a game comes to what the uninterrupted game comes to."""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from kill_game import AIMED

ROOT = Path(__file__).parent.parent


def start(home, turns, kills, seed):
    command = [sys.executable, str(ROOT / "tests" / "kill_game.py"), str(home), str(turns), str(kills), str(seed)]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def played(tmp_path, turns, kills, seed):
    """Play a game twice, the second time with kills; compare them, and return the points of the kills."""
    games = [start(tmp_path / "whole", turns, 0, seed), start(tmp_path / "killed", turns, kills, seed)]
    for game in games:
        _, said = game.communicate()
        assert game.returncode == 0, said
    whole, killed = (json.loads((tmp_path / name / "end.json").read_text()) for name in ("whole", "killed"))
    for part in whole["state"]:
        assert killed["state"][part] == whole["state"][part], part
    assert killed["messages"] == whole["messages"]
    assert killed["stored"] == whole["stored"]
    assert killed["claims"] == whole["claims"]
    assert len(killed["state"]["timeline"]) == 1
    assert sum("/exchanges/" in name for name in whole["stored"]) == turns
    return Counter((tmp_path / "killed" / "kills").read_text().splitlines())


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_a_game_that_is_killed_a_hundred_times_ends_like_one_that_is_not(tmp_path):
    kills = played(tmp_path, turns=30, kills=125, seed=2)
    assert kills.total() >= 100
    assert not {*AIMED, "before the store", "after the store", "from without"} - set(kills)
