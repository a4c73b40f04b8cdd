"""`/core` in `questbook chat`: core memory shown and edited, by a pipe and at a keyboard."""

import sqlite3
from contextlib import closing

import pytest
from fake_terminal import FakeTerminal
from program import questbook

from questbook.graphs.companion.context import CompanionContext, own_campaign
from questbook.graphs.local.file_home import FileHome
from questbook.graphs.local.game import open_game
from questbook.graphs.local.saved_game import SavedGame
from questbook.graphs.terminal.chat import COMPANION, ltm_hint
from questbook.graphs.terminal.slash_commands import Terminal, run_command
from questbook.memory.ltm.config import SPELLING_DISTANCE

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


class Answers:
    """A screen that keeps what it is told to show."""

    def __init__(self, *, live=False):
        self.live, self.said, self.rows = live, [], []
        self.answer = self.say = self.complain = self.heading = self.tell = lambda text, style="": self.said.append(
            text
        )
        self.blank = lambda: None

    def table(self, title, columns, rows, *, right=""):
        self.rows = [tuple(row) for row in rows]

    def told(self):
        said, self.said = self.said, []
        return said


SECTIONS = {
    "persona": {"value": "I am X.", "read_only": True}, "human": {"limit": 60}, "to do": {"value": ["pack", "swim"]},
    "house": {"shared": "house"}, "to do later": {},
}  # fmt: skip
EDITS = [
    ("human set Likes tea.", "Likes tea."),
    ("HUMAN  ADD  Has a dog.", "Likes tea.\nHas a dog."),
    ("human replace tea => a => b", "Likes a => b.\nHas a dog."),
    ("human remove a => b", "Likes .\nHas a dog."),
    ("human clear", "–"),
]
REFUSED = {
    "human clear now": "or clear; got clear now.",
    "human replace tea coffee": "/core human add TEXT, set TEXT, replace OLD => NEW, remove TEXT or clear; got replace",
    "human set": "or clear; got set.",
    "HUMANITY set y": "Did you mean human?",
    "humanity set x": "there are persona, human, to do, house, to do later. Did you mean human?",
    "xyzzy": "There is no section xyzzy; there are persona, human, to do, house, to do later.",
    "persona set I am Y.": "Section 'persona' is read-only",
    "human set " + "x" * 61: "61 of 60 characters",
}


@pytest.fixture
async def talk(tmp_path):
    """A talk at the terminal of which nothing has been said yet."""
    (tmp_path / "campaigns").mkdir()
    named = {"user": "ann", "campaign": own_campaign("Ada"), "seed": 1, "core": SECTIONS}
    async with open_game(CompanionContext.of(model="offline", **named), FileHome(tmp_path), "companion") as game:
        yield Terminal(game, Answers(), COMPANION)


async def hear(talk, *lines):
    for line in lines:
        async for _ in talk.game.send(line):
            pass
        await talk.game.wait_for_upkeep(20)


async def test_each_edit_does_what_it_says_and_what_is_none_is_refused_with_those_that_are(talk):
    await run_command(talk, "/core human set x")
    assert talk.screen.told() == [
        "Core memory begins with your first message; the setting core says how. Say something."
    ]
    await hear(talk, "Hello")
    await run_command(talk, "/core")
    assert talk.screen.rows == [
        ("persona", "7/2,000, read-only", "I am X."), ("human", "0/60", "–"), ("to do", "14/2,000", "pack\nswim"),
        ("house", "0/2,000, shared as house", "–"), ("to do later", "0/2,000", "–"),
    ]  # fmt: skip
    talk.screen.told()
    for line, says in EDITS:
        await run_command(talk, f"/core {line}")
        assert "of 60 characters" in talk.screen.told()[0]
        await run_command(talk, "/core human")
        assert [row[2] for row in talk.screen.rows] == [says], line
    for line, refusal in REFUSED.items():
        await run_command(talk, f"/core {line}")
        [said] = talk.screen.told()
        assert refusal in said, line
    await run_command(talk, "/core To Do")
    assert [row[0] for row in talk.screen.rows] == ["to do"]
    await run_command(talk, "/core to do later set sail")
    await run_command(talk, "/core to do later")
    assert [row[2] for row in talk.screen.rows] == ["sail"], "the longest label counts"


async def test_a_person_changes_a_section_in_the_line_where_a_line_end_is_written_as_one(talk):
    await hear(talk, "Hello")
    await run_command(talk, r"/core human set C:\new")
    talk.screen = Answers(live=True)
    for answer, said in (("", "The section was not changed."), (r"C:\\new", "The section was not changed.")):
        asked = await run_command(talk, "/core human edit")
        assert asked.words == r"C:\\new"
        assert await asked.answered(answer) is None
        assert talk.screen.told() == [said]
    await asked.answered(r"C:\\new\nD:")
    await run_command(talk, "/core human")
    assert talk.screen.rows[0][2] == "C:\\new\nD:"
    talk.screen.told()
    await run_command(talk, "/core human edit x")
    assert talk.screen.told()[0].endswith("remove TEXT or clear, or edit; got edit x.")


async def test_why_shows_what_it_learnt_and_of_words_also_what_has_ended(talk):
    await run_command(talk, "/why")
    assert talk.screen.told() == ["Nothing is noted yet; /why shows what was learnt, and what you said that taught it."]
    await hear(talk, "Hello")
    await run_command(talk, "/why")
    await run_command(talk, "/why herons")
    assert talk.screen.told() == ["Nothing is noted yet.", "Nothing is noted of herons."]
    await hear(talk, "I live in Oslo", "My sister Anna lives in Bergen", "I don't live in Oslo any more")
    await run_command(talk, "/why")
    assert [row[0] for row in talk.screen.rows] == sorted(row[0] for row in talk.screen.rows)
    assert ("3", "Anna lives in Bergen.", "My sister Anna lives in Bergen") in talk.screen.rows
    assert not any(row[1] == "The user lives in Oslo." for row in talk.screen.rows), "it has ended"
    await run_command(talk, "/why Oslo")
    assert ("2", "The user lives in Oslo. (no longer)", "I live in Oslo") in talk.screen.rows
    assert not any("Bergen" in row[1] for row in talk.screen.rows)


async def test_the_greeting_of_a_companion_says_when_you_last_talked_and_what_it_said(talk):
    COMPANION.greet(None, talk.game.context, talk.screen)
    assert talk.screen.told() == [
        "Welcome. A new companion begins: Ada.",
        "Tell it who you are and what is on your mind. /help lists the commands.",
    ]
    long = CompanionContext(user="ann", campaign=own_campaign("x" * 70))
    COMPANION.greet(SavedGame("ann", "", "t", "", {}), long, talk.screen)
    assert talk.screen.told()[0] == f"Welcome. A new companion begins: {'x' * 59}…."
    await hear(talk, "Hello")
    saved = await talk.game.saved_game()
    COMPANION.greet(saved, talk.game.context, talk.screen)
    assert talk.screen.told() == ["Ada, turn 1. You last talked just now.", saved.last_reply]


@pytest.mark.parametrize(
    ("config", "embeddings", "hint"),
    [
        ("", "hash", ""),
        ({}, "hash", ""),
        (
            {"ltm_reads": {"max_cosine_distance": 0.6}},
            "hash",
            "ltm_reads.max_cosine_distance is 0.6, which the embedder",
        ),
        ({"ltm_reads": {"max_cosine_distance": 0.6}}, "minilm", ""),
        ({"ltm_reads": {"max_cosine_distance": SPELLING_DISTANCE}}, "hash", ""),
    ],
)
async def test_a_distance_that_spelling_seldom_reaches_is_said_at_the_start(config, embeddings, hint):
    context = CompanionContext.of(user="ann", ltm_config=config, embeddings=embeddings)
    said = await ltm_hint(context)
    assert said.startswith(hint)
    assert bool(said) == bool(hint)
    assert not said or said.endswith(
        f"which is {SPELLING_DISTANCE:g} there, or get minilm: questbook embeddings get minilm."
    )
