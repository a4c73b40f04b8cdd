"""`questbook chat`: the companion in the terminal, by a pipe and at a keyboard; with `--ltm-config` as LTM recalls."""

import pytest
from fake_terminal import FakeTerminal
from ltm_fixture import write_database
from program import questbook

from questbook.graphs.terminal.chat import COMPANION


def chat(home, words, *flags, door="chat", **environment):
    return questbook(home, door, *flags, words=words, **environment)


@pytest.fixture(scope="module")
def talk(tmp_path_factory):
    home = tmp_path_factory.mktemp("talks")
    words = (
        "Hello\nMy name is Ann and I like tea\n/core\n/core human\n/core nothing\n\n/prompt\n/memories\n"
        "What is my name?\n/branches\n/undo\n/diff 1\n/help\n/sheet\n/retry\n/quit\nnot said\n"
    )
    return home, chat(home, words)


def test_a_scripted_talk_prints_replies_and_what_commands_answer(talk):
    _, run = talk
    assert run.returncode == 0, run.stderr
    for expected in (
        "We have not talked before", "I note: Your name is Ann.", "Core memory", "44/2,000", "core_memory",
        "Word for word: 1 of 1 earlier turns.", "Nothing was recalled", "Your name is Ann.", "turns 1–3",
        "Back at the end of turn 2", "Turn 2 again, in other words.",
    ):  # fmt: skip
        assert expected in run.stdout
    assert all(name in run.stdout for name in COMPANION.commands)
    assert "not said" not in run.stdout
    assert "There is no section nothing; there are persona, human, scratchpad." in run.stderr
    assert "There is no command /sheet" in run.stderr
    assert run.stderr.startswith("The built-in offline assistant answers")


def test_the_next_process_goes_on_and_assistants_are_kept_apart(talk):
    home, _ = talk
    assert "Hello, Ann! We last spoke" in chat(home, "Hi\n").stdout
    assert "We have not talked before" in chat(home, "Hi\n", "--assistant", "work").stdout
    assert "We have not talked before" in chat(home, "Hi\n", "--user", "bob").stdout


def test_an_assistant_is_called_by_its_name_alone(tmp_path):
    words = "I like tea\n/branches\n/forget no such thing\nyes\n/forget like tea\nno\n"
    run = chat(tmp_path, words, "--assistant", "Ada")
    for expected in (
        "Ada: 1 turn", "Nothing that you can see in assistant 'Ada' says",
        "“like tea” in assistant 'Ada', on every branch",
    ):  # fmt: skip
        assert expected in run.stdout + run.stderr
    assert "companion:" not in run.stdout + run.stderr


def test_a_companion_is_no_campaign_of_the_game(talk):
    home, _ = talk
    run = chat(home, "look\n", "--campaign", "companion", door="play")
    assert run.returncode == 2
    assert "questbook chat" in run.stderr.splitlines()[-1]
    assert "companion" not in chat(home, "hello\n/campaigns\n", "--campaign", "isle", door="play").stdout


def test_wrong_settings_are_one_line(tmp_path):
    run = chat(tmp_path, "hi\n", QUESTBOOK_TIMEZONE="Mars/Base")
    assert run.returncode == 2
    assert "QUESTBOOK_TIMEZONE" in run.stderr
    assert "Traceback" not in run.stderr
    assert "QUESTBOOK_CORE" in chat(tmp_path, "hi\n", QUESTBOOK_CORE='{"a: b": {}}').stderr


@pytest.mark.slow
def test_at_a_keyboard_it_greets_and_answers(tmp_path):
    terminal = FakeTerminal.play(tmp_path, door="chat")
    terminal.expect("A new companion begins")
    terminal.enter("My name is Ann")
    terminal.expect("I note")
    terminal.leave()
    assert "Everything is kept" in terminal.text
    again = FakeTerminal.play(tmp_path, door="chat")
    again.expect("turn 1. You last talked")
    again.leave()


def test_the_summary_is_shown_as_it_changes_and_the_fidelity_with_it(tmp_path):
    words = "My boat is the Heron.\nMy dog is called Bo.\n/prompt summary\nMiso ate mice.\n/prompt summary\n/prompt\n"
    settings = {"QUESTBOOK_BUFFER": "summary", "QUESTBOOK_SUMMARY_OFFSET": "0"}
    run = chat(tmp_path, words, **settings)
    assert run.returncode == 0, run.stderr
    first, second = run.stdout.split("summary (")[1:3]
    first, second = (told.split("\n\n")[0] for told in (first, second))
    assert "Heron" in first
    assert "Bo" in first, "as it is now, not as the last prompt had it"
    assert "Miso" not in first
    assert "Miso" in second
    assert "Word for word: 0 of 2 earlier turns." in run.stdout


CARD = {"QUESTBOOK_PROMPT_SECTIONS": '{"card": {"text": "Chiharu is a hacker.\\n<START>\\nhello"}}'}


@pytest.mark.slow
def test_what_was_imported_is_recalled_and_what_is_said_is_remembered(tmp_path):
    write_database(tmp_path / "user_data" / "bot_memories" / "chiharu_yamada")
    home, config = tmp_path / "home", tmp_path / "ltm_config.json"
    config.write_text('{"ltm_writes": {"min_message_length": 30}}')
    assert questbook(home, "import", "ltm", str(tmp_path / "user_data")).returncode == 0
    flags = ("chat", "--assistant", "Chiharu Yamada", "--ltm-config", str(config))
    words = "What does my cat Miso do on my keyboard when I want to work?\n/memories\n/prompt character_memories\n"
    run = questbook(home, *flags, words=f"{words}I would like to learn to play the cello this winter.\n")
    assert run.returncode == 0, run.stderr
    assert "and she sleeps on my keyboard when I want to work.”" in run.stdout
    assert "distance 0." in run.stdout
    assert "Chiharu Yamada's memory log:" in run.stdout
    assert "Anon said:" in run.stdout
    listed = questbook(home, "memories", "list", "--character", "chiharu_yamada").stdout
    assert "cello this winter" in listed
    assert listed.count("adventurer:") == 2
    assert len(listed.splitlines()) > 5, "three that were brought over, two messages, and replies"

    config.write_text('{"ltm_context": {"injection_location": "AFTER_NORMAL_CONTEXT_BUT_BEFORE_MESSAGES"}}')
    run = questbook(
        home, *flags[:3], words="What does my cat Miso do on my keyboard when I want to work?\n/prompt card\n",
        QUESTBOOK_LTM_CONFIG=str(config), **CARD,
    )  # fmt: skip
    card = run.stdout[run.stdout.index("Chiharu is a hacker.") :]
    assert card.index("memory log") < card.index("<START>")


def test_a_wrong_file_is_told_at_once_in_one_line(tmp_path):
    config = tmp_path / "ltm_config.json"
    config.write_text('{"ltm_context": {"injection_location": "BEFORE", "memory_template": "{what}"}}')
    for run in (
        questbook(tmp_path / "home", "chat", "--ltm-config", str(config), words="hi\n"),
        questbook(tmp_path / "home", "chat", words="hi\n", QUESTBOOK_LTM_CONFIG=str(config)),
    ):
        assert run.returncode == 2
        (line,) = run.stderr.splitlines()
        assert line.startswith(f"questbook: {config}: ltm_context.injection_location is 'BEFORE'")
        assert "there is no field {what}; its fields are {time_difference}" in line
        assert run.stdout == ""
    missing = questbook(tmp_path / "home", "chat", "--ltm-config", str(tmp_path / "no.json"), words="hi\n")
    assert (missing.returncode, "cannot be read" in missing.stderr) == (2, True)


def test_a_distance_that_the_embedder_seldom_reaches_is_pointed_out(tmp_path):
    config = tmp_path / "ltm_config.json"
    config.write_text('{"ltm_reads": {"max_cosine_distance": 0.60}}')
    flags = ("chat", "--ltm-config", str(config))
    assert "max_cosine_distance is 0.6, which the embedder hash seldom" in questbook(tmp_path / "home", *flags).stderr
    config.write_text("{}")
    assert "seldom" not in questbook(tmp_path / "home", *flags).stderr
