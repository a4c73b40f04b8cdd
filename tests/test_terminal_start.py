"""How long a person waits for the first prompt."""

import os
import statistics
import subprocess
import sys
import time

import pytest
from fake_terminal import PROMPT, ROOT, FakeTerminal

RUNS = 5


def seconds_to_import():
    before = time.perf_counter()
    subprocess.run(
        [sys.executable, "-c", "import langgraph.graph"], check=True, env={"PATH": os.environ["PATH"]}, cwd=ROOT
    )
    return time.perf_counter() - before


def seconds_to_prompt(home):
    before = time.perf_counter()
    terminal = FakeTerminal.play(home)
    terminal.expect(PROMPT)
    waited = time.perf_counter() - before
    terminal.send("\x04")
    assert terminal.close() == 0
    return waited


@pytest.mark.slow
def test_the_second_start_takes_less_than_one_and_a_half_times_importing_langgraph(tmp_path):
    terminal = FakeTerminal.play(tmp_path, "--seed", "1")
    terminal.enter("I'm Mira, a halfling rogue who grew up on the docks and wants her sister back")
    terminal.enter("/quit")
    assert terminal.close() == 0
    pairs = [(seconds_to_import(), seconds_to_prompt(tmp_path)) for _ in range(RUNS)]
    imports, prompts = (statistics.median(column) for column in zip(*pairs, strict=True))
    assert prompts <= 1.5 * imports, f"{prompts:.2f} s to the prompt, {imports:.2f} s to import langgraph.graph"
