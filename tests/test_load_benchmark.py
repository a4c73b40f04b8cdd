"""The instruments of `benchmarks/load.py` and `faults.py`: what is lost, doubled or another's is counted."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from benchmarks import page_players
from benchmarks.page_players import foreign_words, sentence, word_of

ROOT = Path(__file__).parent.parent


def test_each_turn_of_each_player_has_a_word_of_its_own():
    words = {word_of(player, turn) for player in range(300) for turn in range(40)}
    assert len(words) == 300 * 40


def test_the_words_of_other_players_are_found_in_any_spelling_and_ones_own_are_not():
    text = f"<p>{sentence(3, 2)} {word_of(4, 1).upper()} and {word_of(4, 2)}, {word_of(250, 7)}.</p>"
    assert foreign_words(text, 3) == 2
    assert foreign_words(text, 4) == 2
    assert foreign_words(sentence(3, 1), 3) == 0


def test_the_model_counts_prompts_that_have_words_of_two_players(monkeypatch):
    for folder in ("benchmarks", "tests"):
        monkeypatch.syspath_prepend(str(ROOT / folder))
    from benchmarks.loopback_model import Loopback

    model = Loopback(0.0)
    for words in (sentence(1, 2), f"{sentence(1, 3)} {word_of(2, 3)}"):
        model({"messages": [{"role": "user", "content": words}]})
    assert model.counts == {"calls": 2, "foreign": 1}


class Pages(page_players.Player):
    """A player whose pages are given."""

    def __init__(self, turn, chronicle, panel=""):
        super().__init__(1, ["http://127.0.0.1:9"], Counter())
        self.told = [word_of(1, 1), word_of(1, 2)]
        self.turn, self.chronicle, self.panel = turn, chronicle, panel

    async def open(self):
        return f'data-turn="{self.turn}"'

    async def get(self, place=""):
        text = self.chronicle if place == "chronicle.md" else self.panel
        self.look(text)
        return page_players.httpx.Response(200, text=text)


@pytest.mark.parametrize(
    ("turn", "turns", "panel", "counted"),
    [
        (2, (1, 2), "", {}),
        (2, (1,), "", {"lost": 1}),
        (1, (1, 2), "", {"lost": 1}),
        (3, (1, 2, 2), "", {"doubled": 1}),
        (3, (1, 2), "", {"doubled": 1}),
        (2, (1, 2), word_of(2, 2), {"foreign": 4}),
    ],
)
async def test_a_story_is_compared_with_what_its_player_said(turn, turns, panel, counted):
    player = Pages(turn, "\n\n".join(f"> {sentence(1, number)}" for number in turns), panel)
    await player.check()
    await player.close()
    assert {name: number for name, number in player.counts.items() if number} == counted


@pytest.mark.slow
@pytest.mark.parametrize("home", ["sqlite", "postgres"])
def test_a_small_load_is_played_without_a_fault(home):
    command = [sys.executable, str(ROOT / "benchmarks" / "load.py"), "--players", "3", "--turns", "2"]
    done = subprocess.run([*command, "--homes", home, "--processes", "2"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert f"load_ours_{home}_2_300ms_turns: 6 turns" in done.stdout
