"""The program in an odd place: no width, a full disk behind standard output, Ctrl-C before it has begun."""

import signal
import subprocess
import sys
import time

import pytest
from program import ROOT, one_line_of, play, start_process

HERO = "I'm Mira, a halfling rogue who grew up on the docks and wants her sister back\n"


@pytest.mark.parametrize("width", ["0", "", "-3", "wide"])
def test_a_width_that_is_none_hides_nothing(tmp_path, width):
    out = play(tmp_path, f"{HERO}/sheet\n", COLUMNS=width).stdout.decode()
    assert "grew up on the docks" in out.split("Character\n")[1]


def run_with_full_disk(home, *arguments, words=b""):
    with open("/dev/full", "wb") as full:
        return subprocess.run(
            [sys.executable, "-m", "questbook.graphs.terminal", *arguments],
            input=words,
            stdout=full,
            stderr=subprocess.PIPE,
            timeout=110,
            check=False,
            env={"PYTHONPATH": str(ROOT), "QUESTBOOK_HOME": str(home)},
        )


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [["--version"], ["play"]])
def test_where_nothing_can_be_written_one_line_says_so_and_the_game_is_kept(tmp_path, arguments):
    run = run_with_full_disk(tmp_path, *arguments, words=f"{HERO}/sheet\n".encode())
    lines = run.stderr.decode().splitlines()
    assert (run.returncode, lines[-1]) == (2, "questbook: No space left on device. What was played is kept.")
    assert "Traceback" not in run.stderr.decode()
    if arguments == ["play"]:
        assert b"Mira" in start_process(tmp_path, "play", words="/sheet\n").stdout


@pytest.mark.slow
@pytest.mark.parametrize("command", [["play"], ["memories", "list"], ["--help"]])
def test_ctrl_c_while_it_loads_ends_it_without_a_word(tmp_path, command):
    """It comes when the program's own code begins; what Python does before that is Python's."""
    code = "import questbook.graphs.terminal.__main__ as m; print('!', flush=True); m.run()"
    for wait in (0.0, 0.02, 0.05, 0.1, 0.15, 0.25):
        process = subprocess.Popen(
            [sys.executable, "-c", code, *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={"PYTHONPATH": str(ROOT), "QUESTBOOK_HOME": str(tmp_path)},
        )
        process.stdout.readline()
        time.sleep(wait)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        assert b"Traceback" not in errors, wait


def test_a_provider_without_its_package_names_the_package(tmp_path):
    line = one_line_of(play(tmp_path, "hello\n", "--model", "ollama:x"))
    assert "pip install langchain-ollama" in line
