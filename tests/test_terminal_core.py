"""`/core` in `questbook chat`: core memory shown and edited, by a pipe and at a keyboard."""

import sqlite3
from contextlib import closing

import pytest
from fake_terminal import FakeTerminal
from program import questbook

CORE = (
    '{"persona": {"value": "I am X.", "read_only": true}, "human": {"limit": 47}, "to do": {}, '
    '"house": {"value": "Rules:", "shared": "house"}}'
)


def chat(home, *lines, assistant="one"):
    words = "\n".join([*lines, ""])
    return questbook(home, "chat", "--assistant", assistant, words=words, QUESTBOOK_CORE=CORE)


def says(run, label):
    """What the last table of core memory in an output says of a section."""
    table = run.stdout.rpartition("Core memory")[2]
    return next(line for line in table.splitlines() if line.strip().startswith(label))


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("core")


def test_edits_by_command_stay_and_what_does_not_fit_is_refused(home):
    edits = (
        "HUMAN replace tea => coffee|human add Has a dog, and a cat|persona set I am Y.|human remove milk|humen set x"
    )
    edits += "|human frobnicate x|human edit|human add|to do set pack"
    after = [f"/core {edit}" for edit in edits.split("|")]
    run = chat(home, "/core", "/core human add too early", "My name is Ann and I like tea", *after, "/core")
    assert run.returncode == 0, run.stderr
    assert "47/47" in says(run, "human")
    assert "pack" in says(run, "to do")
    assert "I am X." in says(run, "persona")
    for refusal in (
        "Core memory begins with your first message", "would use 69 of 47 characters: shorten it by at least 22",
        "Section 'persona' is read-only: tools and commands leave it alone.", '"milk" is not in the section.',
        "There is no section humen set x; there are persona, human, to do, house. Did you mean human?",
        "or clear; got frobnicate x.", "or clear; got edit.", "or clear; got add.",
    ):  # fmt: skip
        assert refusal in run.stderr
    later = chat(home, "/core human", "What do I like?", "/core human clear", "/core")
    assert "The user likes coffee." in later.stdout
    assert "You like coffee." in later.stdout
    assert "0/47" in says(later, "human")


def threads(home):
    """Return the threads that the database of the checkpoints has."""
    with closing(sqlite3.connect(home / "checkpoints.db")) as database:
        return set(database.execute("SELECT thread_id FROM checkpoints").fetchall())


def test_undo_takes_an_edit_back_and_the_database_of_the_checkpoints_has_it(home):
    run = chat(home, "hello", "/core to do set swim", "hello again", "/undo 2", "/core", assistant="two")
    assert "cannot be taken back" in run.stderr
    assert "swim" in says(run, "to do")
    played = threads(home)
    run = chat(home, "and again", "/core to do set fly", "/core", "/undo", "/core", assistant="two")
    assert "swim" in says(run, "to do")
    assert threads(home) == played, "an edit is a checkpoint of its thread, which Studio reads from the same file"


def test_a_shared_section_is_edited_for_both_assistants(home):
    chat(home, "hello", "/core house add Quiet after ten.", assistant="three")
    run = chat(home, "/core house", "hello", "/core house add No dogs.", assistant="four")
    assert "Quiet after ten." in run.stdout
    assert "shared as house" in run.stdout
    assert "No dogs." in chat(home, "/core house", assistant="three").stdout


def test_a_backslash_in_a_command_is_one(home):
    lines = (r"/core to do set Tidy C:\notes\new", r"/core to do replace C:\notes => D:\notes", "/core to do")
    run = chat(home, "hello", *lines, assistant="five")
    assert r"Tidy D:\notes\new" in says(run, "to do"), run.stderr


@pytest.mark.slow
def test_at_a_keyboard_a_section_is_put_into_the_line_to_be_changed(tmp_path):
    terminal = FakeTerminal.play(tmp_path, door="chat")
    terminal.expect("A new companion begins")
    terminal.enter("My name is Ann and I like tea")
    terminal.expect("I note")
    terminal.enter("/core human edit")
    terminal.expect(r"The user's name is Ann.\nThe user likes tea.")
    terminal.send(" with milk\r")
    terminal.expect("now uses 54 of 2,000 characters")
    terminal.leave()
