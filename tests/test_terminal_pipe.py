"""The game as a program has it: lines in, replies out, an exit status; also in an odd place, such as a full disk."""

import os
import signal
import subprocess
import sys
import time
from importlib import import_module
from types import SimpleNamespace
from unittest.mock import AsyncMock

import pytest
from fake_openai import KEY, status
from filelock import FileLock
from program import ROOT, one_line_of, play, start, start_process

from questbook.graphs.errors import InputError
from questbook.graphs.local.saved_game import thread_id_of
from questbook.graphs.terminal.cli import main
from questbook.graphs.terminal.play import DUNGEON_MASTER
from questbook.memory.errors import StoreError
from questbook.notebooks.errors import NotebookError

FLAGS = ("--campaign", "--model", "--user", "--seed", "--version", "--help")


@pytest.fixture(scope="module")
def game(tmp_path_factory):
    home = tmp_path_factory.mktemp("games")
    words = (
        "I'm Mira, a halfling rogue who grew up on the docks and wants her sister back\n"
        "\n   \n"
        "look around\n/sheet\n/quest\n/memories\n/prompt\n/prompt quest\n"
        "/campaigns\n/help\n/retry\n/sheat\n/quit\nlook\n"
    )
    return home, play(home, words)


def test_a_scripted_game_prints_replies_and_what_commands_answer(game):
    _, run = game
    out = run.stdout.decode()
    assert run.returncode == 0
    for expected in ("Mira", "halfling", "Gold", "Nothing was recalled", "Section", "total", "Turn 2 again"):
        assert expected in out
    assert all(name in out for name in DUNGEON_MASTER.commands)
    told = run.stderr.decode()
    assert "sheet is complete. /sheet shows all of it." in told
    assert "Noted: location" in told
    assert "/quest shows all of it." in told
    assert "\x1b" not in out
    assert "> " not in out
    assert not any(line.endswith(" ") for line in out.splitlines())


def test_what_is_no_part_of_the_game_goes_to_standard_error(game):
    _, run = game
    said = run.stderr.decode().splitlines()
    assert said[0].startswith("The built-in offline storyteller leads the game. ")
    assert "questbook play --model" in said[0]
    assert "There is no command /sheat. Did you mean /sheet?" in said


def test_the_next_process_goes_on_and_an_empty_one_does_nothing(game):
    home, _ = game
    assert play(home, "").stdout == b""
    out = play(home, "/campaigns\n/sheet\n").stdout.decode()
    assert "Mira, rogue" in out.replace("Rogue", "rogue")
    assert "default" in out
    assert "Mira" not in play(home, "/campaigns\n/sheet\n", "--user", "somebody").stdout.decode()
    assert "No character yet" in play(home, "/sheet\n", "--campaign", "other").stdout.decode()


def test_the_same_seed_and_lines_are_the_same_game(tmp_path):
    words = "I'm Bor, a dwarf fighter from the mines who wants his axe back\nlook around\n"
    assert play(tmp_path / "a", words).stdout == play(tmp_path / "b", words).stdout != b""


def test_bytes_that_are_no_text_and_control_characters_are_dropped(tmp_path):
    run = play(tmp_path, b"\xef\xbb\xbfhello \xff\xfe\xed\xa0\x80\x1b[31m\x00\x07there\r\n/prompt messages\n\x00\x1b\n")
    assert run.returncode == 0, run.stderr
    assert b"human: hello there" in run.stdout
    assert b"\x1b" not in run.stdout + run.stderr


def test_a_hundred_thousand_characters_are_refused_and_the_game_goes_on(tmp_path):
    run = play(tmp_path, "x" * 100_000 + "\nhello\n/campaigns\n/" + "x" * 100_000 + "\n")
    assert run.returncode == 0
    assert max(map(len, run.stderr.decode().splitlines())) < 300
    assert "100,000 characters" in run.stderr.decode()
    assert "Nothing was sent" in run.stderr.decode()
    assert "xxx" not in run.stdout.decode()
    assert " 1 " in run.stdout.decode()  # one turn was played


@pytest.mark.parametrize("name", ["checkpoints.db", "memory.db"])
@pytest.mark.files("it damages them")
def test_a_corrupt_database_is_named_and_left_as_it_is(tmp_path, name):
    (tmp_path / name).write_bytes(b"no database" * 100)
    run = play(tmp_path, "hello\n")
    assert run.returncode == 2
    assert str(tmp_path / name) in one_line_of(run)
    assert (tmp_path / name).read_bytes() == b"no database" * 100


@pytest.mark.slow
def test_a_model_that_fails_ends_a_script_with_2_and_the_message_is_kept(tmp_path, server):
    server.responder = lambda _: status(500, headers={"Retry-After": "0"})
    keys = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": KEY, "NO_PROXY": "127.0.0.1"}
    run = play(tmp_path, "hello\nxylophone\n", "--model", "openai:gpt-4o-mini", **keys)
    assert run.returncode == 2
    assert "Your message is kept: the next start answers it." in one_line_of(run)
    assert not any("xylophone" in str(request) for request in server.requests)
    again = play(tmp_path, "")
    assert (again.returncode, "“hello”" in again.stderr.decode()) == (0, True)


@pytest.mark.parametrize(
    ("flags", "environment", "said"),
    [
        (["--model", "nobody:knows"], {}, "nobody:knows"),
        (["--model", "ollama:x"], {}, "pip install langchain-ollama"),
        (["--model", "openai:gpt-4.1-mini"], {}, "OPENAI_API_KEY"),
        (["--user", "x" * 300], {}, "QUESTBOOK_USER"),
        ([], {"QUESTBOOK_SEED": "many", "QUESTBOOK_BUFFER_TOKENS": "few"}, "QUESTBOOK_BUFFER_TOKENS"),
    ],
)
def test_wrong_settings_are_one_line(tmp_path, flags, environment, said):
    run = play(tmp_path, "hello\n", *flags, **environment)
    assert run.returncode == 2
    assert said in one_line_of(run)


@pytest.mark.parametrize(("source", "said"), [("here", "SHA-256"), ("nowhere", "nowhere")])
def test_weights_that_are_not_the_published_ones_are_refused_in_one_line(tmp_path, source, said):
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "model.safetensors").write_bytes(b"not the weights")
    (tmp_path / "here" / "vocab.txt").write_text("[PAD]\n")
    run = start(tmp_path / "home", "embeddings", "get", "minilm", "--from", str(tmp_path / source))
    assert (run.returncode, run.stdout, said in one_line_of(run)) == (2, b"", True)


@pytest.mark.files("it holds a lock file")
def test_a_campaign_that_another_terminal_plays_is_left_alone(tmp_path):
    play(tmp_path, "hello\n")
    with FileLock(tmp_path / "campaigns" / f"{thread_id_of('adventurer', 'default')}.lock"):
        assert "'default' is open in another terminal" in one_line_of(play(tmp_path, "hello\n"))
        assert play(tmp_path, "hello\n", "--campaign", "other").returncode == 0


def test_flags_win_over_the_environment(tmp_path):
    play(tmp_path, "hello\n", "--campaign", "flagged", QUESTBOOK_CAMPAIGN="named", QUESTBOOK_USER="ada")
    out = play(tmp_path, "/campaigns\n", QUESTBOOK_USER="ada").stdout.decode()
    assert "flagged" in out
    assert "named" not in out


@pytest.mark.slow
def test_names_that_are_no_names_for_files_are_fine(tmp_path):
    home = tmp_path / "games" / "here"
    for name in ("../../x", "", "[red]ü" + "a" * 190):
        run = play(home, "hello\n/campaigns\n", "--campaign", name)
        assert run.returncode == 0, run.stderr
        listed = [line.strip(" *").startswith(name[:20]) for line in run.stdout.decode().splitlines() if "  " in line]
        assert any(listed) or not name
        assert "A new game." not in run.stdout.decode()
    assert [path.name for path in tmp_path.iterdir()] == ["games"]
    assert [path.name for path in home.parent.iterdir()] == ["here"]


def run_beside(home, *command, **options):
    """Run a command in a process of its own, with a home of its own."""
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "QUESTBOOK_HOME": str(home)}
    return subprocess.run(command, env=environment, timeout=110, check=False, **options)


@pytest.mark.slow
def test_whoever_reads_us_may_go(tmp_path):
    command = f"set -o pipefail; {sys.executable} -m questbook.graphs.terminal play --seed 1 | head -c 20"
    words = "hello\nI am Mira\nlook\n/help\nlook\n" * 5
    run = run_beside(tmp_path, "bash", "-c", command, input=words, text=True, capture_output=True)
    assert run.returncode == 0
    assert "Traceback" not in run.stderr
    assert "Broken" not in run.stderr


def test_help_tells_every_flag_and_every_command(tmp_path, capsys):
    assert main(["--help"]) == 0
    top = capsys.readouterr().out
    assert main(["play", "--help"]) == 0
    told = top + capsys.readouterr().out
    assert [flag for flag in FLAGS if flag not in told] == []
    assert [name for name in DUNGEON_MASTER.commands if name not in told] == []
    assert [name for name in ("QUESTBOOK_MODEL", "QUESTBOOK_HOME", "OPENAI_BASE_URL") if name not in told] == []
    assert main([]) == main(["--version"]) == 0
    assert "questbook 0." in capsys.readouterr().out


WRONG = (
    "play --seed x", "play --nope", "dance", "rewind", "rewind --to x", "lore", "lore add", "lore burn x",
    "embeddings get word2vec", "embeddings", "embeddings put minilm", "memories", "memories get", "memories edit k",
    "memories search", "memories export", "lore remove", "import", "export", "prune --keep-turns x", "web --port x",
)  # fmt: skip


@pytest.mark.parametrize("line", WRONG)
def test_a_wrong_command_line_is_status_2(line, capsys):
    assert main(line.split()) == 2
    assert "usage" in capsys.readouterr().err


COMMANDS = {
    "play": "terminal.play", "serve": "web.serve", "rewind": "terminal.travel", "chat": "terminal.chat",
    "forget": "terminal.forget", "doctor": "terminal.homes", "prune": "terminal.homes", "lore": "terminal.lore",
    "bring": "terminal.import_export", "send": "terminal.import_export", "memories": "terminal.memories",
}  # fmt: skip
LISTED = {"kind": None, "thread": None, "since": None, "until": None, "character": None, "player": False, "team": None}


@pytest.fixture
def taken(monkeypatch):
    """What the commands are given, which do nothing else but end as `end` says."""
    taken = SimpleNamespace(end=None, signals=[])

    def command(name):
        async def take(context, flags):
            taken.name, taken.context, taken.flags = name, context, flags
            if isinstance(taken.end, BaseException):
                raise taken.end
            return taken.end

        return take

    for name, module in COMMANDS.items():
        monkeypatch.setattr(import_module(f"questbook.graphs.{module}"), name, command(name))
    monkeypatch.setattr("questbook.graphs.terminal.cli.signal.signal", lambda *given: taken.signals.append(given))
    return taken


@pytest.mark.parametrize(
    ("line", "name", "flags", "settings"),
    [
        ("play", "play", {"live": False},
         {"model": "offline", "user": "adventurer", "campaign": "default", "seed": None}),
        ("play --campaign isle --model a:b --seed 7 --user ann", "play", {},
         {"model": "a:b", "user": "ann", "campaign": "isle", "seed": 7}),
        ("web", "serve", {"host": "127.0.0.1", "port": 8000, "developer": False, "no_browser": False}, {}),
        ("web --host x --port 0 --developer --no-browser --model a:b --user ann", "serve",
         {"host": "x", "port": 0, "developer": True, "no_browser": True}, {"model": "a:b", "user": "ann"}),
        ("rewind --to 3 --campaign isle", "rewind", {"to": 3}, {"campaign": "isle"}),
        ("chat", "chat", {}, {"campaign": "companion", "ltm_config": "", "model": "offline"}),
        ("chat --assistant Ada --ltm-config x.json --model a:b --user ann", "chat", {},
         {"campaign": "companion:Ada", "ltm_config": "x.json", "model": "a:b", "user": "ann"}),
        ("forget", "forget", {"what": None, "campaign": None, "player": False, "yes": False}, {}),
        ("forget x --campaign isle --player --yes --user ann", "forget", {"what": "x", "player": True, "yes": True},
         {"campaign": "isle", "user": "ann"}),
        ("doctor", "doctor", {"mend": False}, {}), ("doctor --mend", "doctor", {"mend": True}, {}),
        ("doctor --user ann", "doctor", {}, {"user": "ann"}),
        ("prune", "prune", {"keep_turns": 50, "older_than": None, "campaign": None}, {}),
        ("prune", "prune", {"dry_run": False, "yes": False}, {}),
        ("prune --keep-turns 3 --older-than 0.5 --campaign isle --dry-run --yes --user ann", "prune",
         {"keep_turns": 3, "older_than": 0.5, "dry_run": True, "yes": True}, {"campaign": "isle", "user": "ann"}),
        ("lore list --campaign isle --user ann", "lore", {"action": "list", "what": [], "vectors": False},
         {"campaign": "isle", "user": "ann"}),
        ("lore add a b --vectors", "lore", {"action": "add", "what": ["a", "b"], "vectors": True}, {}),
        ("lore add a", "lore", {"what": ["a"], "vectors": False}, {}),
        ("lore remove a b", "lore", {"action": "remove", "what": ["a", "b"]}, {}),
        ("import ltm x --character Rin --shared --user ann", "bring",
         {"kind": "ltm", "directory": "x", "character": "Rin", "shared": True}, {"user": "ann"}),
        ("import a.zip --campaign isle", "bring", {"kind": "a.zip", "directory": None, "shared": False},
         {"campaign": "isle"}),
        ("export csv", "send", {"kind": "csv", "directory": None, "character": None, "shared": False}, {}),
        ("export a.zip --campaign isle --user ann", "send", {"kind": "a.zip"}, {"campaign": "isle", "user": "ann"}),
        ("memories list", "memories", LISTED | {"assistant": None, "campaign": None, "agent": None}, {}),
        ("memories list --kind k --thread t --since d --until e --team z", "memories",
         LISTED | {"kind": "k", "thread": "t", "since": "d", "until": "e", "team": "z"}, {}),
        ("memories export f --since d --player", "memories", LISTED | {"file": "f", "since": "d", "player": True}, {}),
        ("memories import f --agent a", "memories", {"file": "f", "agent": "a"}, {}),
        ("memories search w --shared --user ann", "memories", {"words": "w", "shared": True}, {"user": "ann"}),
        ("memories get k --campaign isle", "memories", {"key": "k"}, {"campaign": "isle"}),
        ("memories add x --speaker s --subject o --attribute a --secret --tag 1 --tag 2 --assistant w", "memories",
         {"text": "x", "speaker": "s", "subject": "o", "attribute": "a", "secret": True, "tag": ["1", "2"],
          "assistant": "w"}, {}),
        ("memories add x", "memories", {"speaker": None, "subject": None, "attribute": None, "secret": False},
         {}),
        ("memories add x", "memories", {"tag": None, "assistant": None, "agent": None}, {}),
        ("memories edit k x", "memories", {"key": "k", "text": "x"}, {}),
        ("memories delete", "memories", {"keys": [], "all": False, "yes": False}, {}),
        ("memories delete k l --all --yes", "memories", {"keys": ["k", "l"], "all": True, "yes": True}, {}),
    ],
)  # fmt: skip
def test_a_command_is_given_what_its_line_says_and_defaults_for_the_rest(taken, line, name, flags, settings):
    assert main(line.split()) == 0
    assert taken.name == name
    assert {flag: getattr(taken.flags, flag) for flag in flags} == flags
    assert {setting: getattr(taken.context, setting) for setting in settings} == settings


@pytest.mark.parametrize(
    ("end", "status", "said"),
    [
        (None, 0, ""), (True, 0, ""), (False, 2, ""), (KeyboardInterrupt(), 0, ""),
        (InputError("No\nsuch turn."), 2, "questbook: No such turn.\n"),
        (StoreError("Full."), 2, "questbook: Full.\n"), (NotebookError("Full."), 2, "questbook: Full.\n"),
        (OSError(28, "No space left"), 2, "questbook: No space left. What was played is kept.\n"),
        (OSError("Odd."), 2, "questbook: Odd.. What was played is kept.\n"), (BrokenPipeError(32, "Broken"), 0, ""),
    ],
)  # fmt: skip
def test_the_status_says_how_it_ended_and_one_line_what_was_wrong(taken, capsys, monkeypatch, end, status, said):
    taken.end, put = end, []
    monkeypatch.setattr(sys.stdout, "fileno", lambda: 1)
    monkeypatch.setattr(os, "dup2", lambda _, number: put.append(number))
    assert main(["play"]) == status
    assert capsys.readouterr() == ("", said)
    assert put == ([1] if isinstance(end, OSError) else []), "nothing is written any more where it cannot be"


@pytest.mark.parametrize(("reads", "shows"), [(True, True), (True, False), (False, True)])
def test_a_person_is_who_types_and_looks_and_ctrl_c_ends_a_program_that_is_none(
    taken, monkeypatch, capsys, reads, shows
):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(isatty=lambda: reads))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: shows)
    assert main(["play"]) == 0
    is_live = reads and shows
    assert taken.flags.live is is_live
    ours, *_ = taken.signals  # asyncio may set its own after it, where nobody has set another before
    assert ours == (signal.SIGINT, signal.default_int_handler if is_live else signal.SIG_DFL)
    assert (sys.stdout.errors, sys.stderr.errors) == ("replace", "replace"), "what a screen cannot show costs no turn"


def test_what_cannot_be_written_in_the_end_is_said(taken, capsys, monkeypatch):
    def flush():
        if hasattr(taken, "name"):
            raise OSError(28, "No space left")

    with monkeypatch.context() as full:
        full.setattr(sys.stdout, "flush", flush)
        full.setattr(sys.stdout, "fileno", lambda: 1)
        full.setattr(os, "dup2", lambda *_: None)
        assert main(["play"]) == 2
    assert capsys.readouterr().err == "questbook: No space left. What was played is kept.\n"


@pytest.mark.parametrize("name", ["stdin", "stdout", "stderr"])
def test_a_program_without_its_streams_does_nothing(taken, monkeypatch, name):
    monkeypatch.setattr(sys, name, None)
    assert (main(["play"]), hasattr(taken, "name")) == (2, False)


def test_who_is_named_nowhere_is_the_only_user(taken, monkeypatch):
    monkeypatch.setenv("QUESTBOOK_USER", "ann")
    assert (main(["play"]), taken.context.user) == (0, "ann")
    monkeypatch.delenv("QUESTBOOK_USER")
    assert (main(["play"]), taken.context.user) == (0, "adventurer")


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("auto", "First this."), ("minilm", "First this."),
        ("hash", "The setting is QUESTBOOK_EMBEDDINGS=hash: say minilm there to use them."),
    ],
)  # fmt: skip
def test_weights_that_were_fetched_are_named_with_what_makes_them_used(monkeypatch, capsys, taken, setting, said):
    monkeypatch.setenv("QUESTBOOK_EMBEDDINGS", setting)
    monkeypatch.setattr("questbook.memory.embeddings.minilm.fetch_minilm", lambda source: f"place of {source}")
    hint = "questbook.graphs.local.databases.minilm_hint"
    for told, end in (("First this.", said), ("", said.replace("First this.", "Memories that begin now are found by"))):
        monkeypatch.setattr(hint, AsyncMock(return_value=told))
        assert main(["embeddings", "get", "minilm", "--from", "here"]) == 0
        weights = "The weights of all-MiniLM-L6-v2 are in place of here. "
        assert capsys.readouterr().out.startswith(weights + end)


@pytest.mark.slow
def test_help_and_start_load_nothing_heavy(tmp_path):
    code = (
        "import sys; from questbook.graphs.terminal.cli import main; main({arguments});"
        "heavy = {{'langgraph.graph', 'faiss', 'numpy', 'langchain', 'openai', 'rich', 'prompt_toolkit', 'pydantic'}};"
        "print('LOADED', sorted(heavy & set(sys.modules)))"
    )
    for arguments, loaded in ((["--help"], []), (["play"], ["pydantic"])):
        program = (sys.executable, "-c", code.format(arguments=arguments))
        run = run_beside(tmp_path, *program, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        assert run.returncode == 0, run.stderr
        assert run.stdout.splitlines()[-1] == f"LOADED {loaded}"


HERO = "I'm Mira, a halfling rogue who grew up on the docks and wants her sister back\n"


@pytest.mark.parametrize("width", ["0", "", "-3", "wide"])
@pytest.mark.slow
def test_a_width_that_is_none_hides_nothing(tmp_path, width):
    out = play(tmp_path, f"{HERO}/sheet\n", COLUMNS=width).stdout.decode()
    assert "grew up on the docks" in out.split("Character\n")[1]


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [["--version"], ["play"]])
def test_where_nothing_can_be_written_one_line_says_so_and_the_game_is_kept(tmp_path, arguments):
    command = (sys.executable, "-m", "questbook.graphs.terminal", *arguments)
    with open("/dev/full", "wb") as full:
        run = run_beside(tmp_path, *command, input=f"{HERO}/sheet\n".encode(), stdout=full, stderr=subprocess.PIPE)
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
