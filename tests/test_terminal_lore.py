"""`questbook lore`, as a program: what goes in, what is refused and why, what is forgotten."""

from argparse import Namespace
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta

import pytest
from filelock import FileLock
from paper import files, pdf
from program import one_line_of, start
from stored_bytes import files_saying

from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.errors import QuestbookError
from questbook.graphs.local.databases import open_store
from questbook.graphs.local.file_home import FileHome
from questbook.graphs.local.homes import find_home
from questbook.graphs.local.saved_game import thread_id_of
from questbook.graphs.terminal.lore import lore
from questbook.memory.lore.collection import list_lore


@pytest.fixture
def books(tmp_path):
    place = tmp_path / "books"
    place.mkdir()
    files(
        place,
        bestiary_pdf=pdf("The owlbear fears silver bells."),
        gods_md="# Ash\nThe Ash Mother sleeps.\n# Tide\nThe Tide King wakes.",
        broken_pdf="none",
        cover_png="x",
    )
    return place


@pytest.fixture
def home(tmp_path):
    return tmp_path / "home"


def out(run):
    return run.stdout.decode().splitlines()


def test_files_go_in_and_those_that_cannot_are_named_with_the_reason(home, books):
    run = start(home, "lore", "add", str(books), str(books / "none.txt"))
    assert run.returncode == 2
    assert out(run) == [
        "bestiary.pdf: added, 1 piece",
        "gods.md: added, 2 pieces",
        "Passed over, of other kinds: 1 (cover.png)",
    ]
    assert run.stderr.decode().splitlines() == [
        f"questbook: {books}/broken.pdf: not added: it is not a PDF file, although its name says so.",
        f"questbook: {books}/none.txt: not added: there is no such file.",
    ]
    listed = out(start(home, "lore", "list"))
    assert [line.partition(", read ")[0] for line in listed] == ["bestiary.pdf: 1 piece", "gods.md: 2 pieces"]
    assert listed[1].endswith(f" from {books}/gods.md")


def test_added_again_removed_and_listed(home, books):
    add = ("lore", "add", str(books / "gods.md"))
    assert start(home, *add).returncode == 0
    assert out(start(home, *add)) == ["gods.md: unchanged, 2 pieces"]
    (books / "gods.md").write_text("# Ash\nThe Ash Mother is awake.")
    assert out(start(home, *add)) == ["gods.md: replaced, 1 piece"]
    run = start(home, "lore", "remove", "gods.md", "gods.md")
    assert run.returncode == 2
    assert out(run) == ["gods.md: removed, 1 piece"]
    assert one_line_of(run) == "questbook: There is no lore named 'gods.md' in campaign 'default'. There is: none."
    assert out(start(home, "lore", "list")) == ["No lore in campaign 'default'. Add files: questbook lore add FILE…"]


def test_campaigns_and_users_have_their_own(home, books):
    assert start(home, "lore", "add", str(books / "gods.md"), "--campaign", "isle", "--user", "ann").returncode == 0
    assert "gods.md: 2 pieces" in out(start(home, "lore", "list", "--campaign", "isle", "--user", "ann"))[0]
    assert "No lore" in out(start(home, "lore", "list", "--campaign", "isle"))[0]
    assert "No lore" in out(start(home, "lore", "list", QUESTBOOK_USER="ann"))[0]


async def test_two_terminals_do_not_change_it_at_once(home, books, monkeypatch):
    monkeypatch.setenv("QUESTBOOK_HOME", str(home))
    monkeypatch.setattr("questbook.graphs.terminal.lore.WAIT", 0.2)
    place, context = find_home(), Context()
    with (
        FileLock(place.locks / f"{thread_id_of(context.user, context.campaign)}.lore.lock"),
        pytest.raises(QuestbookError, match="Another terminal is changing the lore of campaign 'default'"),
    ):
        await lore(context, Namespace(action="add", what=[str(books / "gods.md")], vectors=False))
    assert await lore(context, Namespace(action="list", what=[], vectors=False))


async def test_another_terminal_is_waited_for_a_minute(books, monkeypatch):
    held = []

    def hold(_, lock, busy, wait):
        held.append((lock, wait))
        return nullcontext()

    monkeypatch.setattr(FileHome, "hold", hold)
    assert await lore(Context(), Namespace(action="add", what=[str(books / "gods.md")], vectors=False))
    assert held == [(f"{thread_id_of('adventurer', 'default')}.lore", 60.0)]


def test_it_goes_with_its_campaign_and_words_of_it_are_forgotten(home, books):
    for campaign in ("isle", "moor"):
        start(home, "lore", "add", str(books / "gods.md"), str(books / "bestiary.pdf"), "--campaign", campaign)
    run = start(home, "forget", "Tide King", "--campaign", "isle", words="yes\n")
    assert "  gods.md, Tide: Tide The Tide King wakes." in out(run)
    assert "Tide King" not in run.stdout.decode().partition("Forgotten:")[2]
    run = start(home, "forget", "--campaign", "isle", "--yes")
    assert out(run)[0].startswith("Forgotten: campaign 'isle'.")
    assert "memories and other items: 5;" in out(run)[0], "three pieces and two notes on files"
    assert "No lore" in out(start(home, "lore", "list", "--campaign", "isle"))[0]
    assert files_saying(home, "owlbear") == ["memory.db"], "the other campaign's"
    assert start(home, "forget", "--campaign", "moor", "--yes").returncode == 0
    assert files_saying(home, "owlbear") == files_saying(home, "Ash Mother") == []


async def test_forgotten_words_do_not_come_back_while_the_file_is_the_same(home, books, monkeypatch):
    start(home, "lore", "add", str(books / "gods.md"))
    start(home, "forget", "Tide King", "--yes")
    assert out(start(home, "lore", "add", str(books / "gods.md"))) == ["gods.md: unchanged, 2 pieces"]
    monkeypatch.setenv("QUESTBOOK_HOME", str(home))
    async with open_store(find_home().memory) as store:
        assert len(await list_lore(store, "adventurer", "default")) == 1
        found = await store.asearch(("adventurer", "default", "lore"))
        texts = {item.value["text"] for item in found}
        assert texts == {"Ash\nThe Ash Mother sleeps.", "Tide\nThe [forgotten] wakes."}


def test_of_many_files_of_other_kinds_five_are_named(home, books):
    for number in range(5):
        (books / f"{number}.png").write_text("x")
    said = out(start(home, "lore", "add", str(books)))[-1]
    assert said == "Passed over, of other kinds: 6 (0.png, 1.png, 2.png, 3.png, 4.png, …)"


def test_a_list_says_when_and_from_where_a_file_was_read(home, books):
    start(home, "lore", "add", str(books / "gods.md"))
    [line] = out(start(home, "lore", "list"))
    today = datetime.now(UTC).date()
    assert line in {f"gods.md: 2 pieces, read {day} from {books}/gods.md" for day in (today, today - timedelta(1))}
