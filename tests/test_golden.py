"""Checkpoints of released versions load, typed, and play on."""

import shutil
from pathlib import Path

import pytest
from program import pages, sit_down

GOLDEN = sorted(path for path in (Path(__file__).parent / "golden").iterdir() if (path / "checkpoints.db").exists())


def test_there_is_something_to_load():
    assert GOLDEN


@pytest.mark.parametrize("recorded", GOLDEN, ids=lambda path: path.name)
def test_a_recorded_campaign_loads_and_plays_on(recorded, tmp_path):
    home = tmp_path / "home"
    shutil.copytree(recorded, home)
    character, quest, before = pages(home)
    assert (character.name, character.class_name) == ("Mira", "thief")
    assert quest.location == "the Drowned Cat"
    assert before["turn"] == 5
    words = "look around\nwhat did I say is the password of the smugglers?\n/quest\n"
    told = sit_down(home, words, "--seed", "6", QUESTBOOK_BUFFER_TOKENS="300")
    assert "swordfish" in told
    assert "Old Tobb" in told
    _, _, after = pages(home)
    assert after["turn"] == after["noted_through"] == after["remembered_through"] == 7
    assert [list(segment) for segment in after["timeline"]] == [[before["timeline"][0][0], 7]]
