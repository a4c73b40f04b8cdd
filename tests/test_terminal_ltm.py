"""`questbook chat --ltm-config`: from an extension's directory to a talk that recalls it."""

import pytest
from ltm_fixture import write_database
from program import questbook

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
