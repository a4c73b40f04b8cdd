"""`questbook forget`, as a program: shown, asked for, done, and done again after it was killed."""

import io
import re
import shutil
from argparse import Namespace
from types import SimpleNamespace

import pytest
from filelock import FileLock
from held import hold_campaign
from program import one_line_of, start
from stored_bytes import files_saying

from questbook import FaissStore, campaign_namespace, player_namespace
from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.dungeon_master.retract import Retraction
from questbook.graphs.errors import HistoryError, SettingsError
from questbook.graphs.interface.forgetting import (
    find_words,
    forget_words,
    name_of,
    remove_typed,
    retract_turn,
    turn_to_retract,
)
from questbook.graphs.local.file_home import FileHome
from questbook.graphs.local.game import open_game
from questbook.graphs.local.home import CampaignBusyError, HomeError
from questbook.graphs.local.saved_game import thread_id_of
from questbook.graphs.terminal.forget import forget as forget_command
from questbook.graphs.terminal.forget import forget_campaign, forget_player
from questbook.graphs.terminal.pages import why_rows
from questbook.graphs.terminal.screen import is_yes

WORDS = (
    "I'm Mira, a halfling thief who grew up on the docks and wants her sister back.\n"
    "look around\n"
    "I tell Maren Holt that the password is swordfish\n"
    "talk to Maren\n"
    "go to the Drowned Cat\n"
    "look around\n"
)


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    home = tmp_path_factory.mktemp("played")
    for campaign in ("default", "isle"):
        run = start(home, "play", "--seed", "6", "--campaign", campaign, words=WORDS, QUESTBOOK_BUFFER_TOKENS="300")
        assert run.returncode == 0, run.stderr
    (home / "history").write_text(
        "\n# 2026-01-01\n+I tell Maren Holt that the password is swordfish\n\n# 2026-01-01\n+talk to Maren\n", "utf-8"
    )
    return home


@pytest.fixture
def home(played, tmp_path):
    return shutil.copytree(played, tmp_path / "copy")


def forget(home, *arguments, words=""):
    return start(home, "forget", *arguments, words=words)


@pytest.mark.slow
def test_it_is_shown_and_asked_for(home):
    run = forget(home, "swordfish", words="no\n")
    out = run.stdout.decode()
    assert run.returncode == 2
    for expected in ("turn 3 (main)", "password is swordfish", "1 typed line", "Type yes", "Nothing was forgotten."):
        assert expected in out
    assert forget(home, "swordfish").returncode == 2, "nobody there to say yes"
    assert len(files_saying(home, "swordfish")) == 3
    run = forget(home, "swordfish", words="Yes\n")
    assert run.returncode == 0
    assert "another campaign has them" in run.stdout.decode()
    assert forget(home, "Swordfish", "--campaign", "isle", "--yes").returncode == 0
    assert files_saying(home, "swordfish") == []
    run = start(home, "play", "--seed", "6", words="look around\nWhat is the password?\n/quest\n")
    assert run.returncode == 0
    assert "swordfish" not in run.stdout.decode()


@pytest.mark.slow
def test_a_campaign_and_a_player(home):
    run = forget(home, "--campaign", "isle", words="yes\n")
    assert run.returncode == 0, run.stderr
    assert "Everything of campaign 'isle' will be removed" in run.stdout.decode()
    assert files_saying(home, "isle") == []
    assert files_saying(home, "swordfish")
    assert forget(home, "--campaign", "isle", "--yes").stdout.decode() == "Nothing was kept of campaign 'isle'.\n"
    assert forget(home, "--player", "--yes").returncode == 0
    for words in ("swordfish", "Mira", "adventurer", "talk to Maren"):
        assert files_saying(home, words) == [], words
    assert start(home, "play", "--seed", "6", words="hello\n").returncode == 0


@pytest.mark.parametrize(
    "arguments", [(), ("word", "--player"), ("--campaign", "x", "--player"), ("b",), ("human",), ("",)]
)
def test_what_makes_no_sense_is_one_line_and_changes_nothing(home, arguments):
    run = forget(home, *arguments, "--yes")
    assert run.returncode == 2
    assert one_line_of(run).startswith("questbook: ")
    assert files_saying(home, "swordfish")


@pytest.mark.parametrize("arguments", [("swordfish",), ("--campaign", "default"), ("--player",)])
def test_a_campaign_that_is_being_played_is_left_alone(home, arguments):
    with FileLock(home / "campaigns" / f"{thread_id_of('adventurer', 'default')}.lock"):
        run = forget(home, *arguments, "--yes")
    assert run.returncode == 2
    assert "open in another terminal" in one_line_of(run)
    assert files_saying(home, "swordfish")


def test_another_campaign_of_the_player_that_is_being_played_stops_it_all(home):
    with FileLock(home / "campaigns" / f"{thread_id_of('adventurer', 'isle')}.lock"):
        assert forget(home, "--player", "--yes").returncode == 2
    assert len(files_saying(home, "Mira")) == 2


@pytest.mark.slow
async def test_the_same_in_a_game(home):
    async with open_game(Context(seed=6), FileHome(home)) as game:
        rows = await why_rows(game, "location")
        assert rows[0][0] == "5"
        assert "Drowned Cat" in rows[0][2]
        told = await retract_turn(game, "5")
        assert "Turn 5 is retracted" in told[0]
        assert "location" in told[1]
        assert (await game.saved_game()).quest.location == "Gull Quay"
        with pytest.raises(HistoryError, match="Which turn"):
            await retract_turn(game, "x")
        assert "turn 3" in "\n".join((await find_words(game, "swordfish")).lines)
        assert (await forget_words(game, "swordfish")).startswith("Forgotten: 1 memory")
        assert "Nothing that you can see holds the words" in str((await find_words(game, "swordfish")).lines)
        told = await forget_words(game, "swordfish")
        assert told.startswith("Nothing that you can see in campaign 'default' says “swordfish”")
        async for _ in game.send("look around"):
            pass
        assert (await game.saved_game()).turn == 7


@pytest.mark.slow
async def test_neither_preview_nor_result_says_whether_a_secret_holds_the_words(home):
    async with open_game(Context(seed=6), FileHome(home)) as game:
        history, space = await game.history(), campaign_namespace("adventurer", "default", "facts")
        before = (await game.saved_game()).quest
        page = before.apply({"secrets": {"the marzipan key": "opens the crypt", "note": "marzipan is poison"}}).page
        await history.write({"quest": page.patch_from(before)})
        store, stamp = (await game.load()).store, {"branch": "main", "turn": 3, "importance": 9}
        secret = {"text": "Maren fears marzipan.", "kind": "secret", "subject": "marzipan", "slot": "marzipan|taste"}
        insight = {"text": "Maren hides a fear.", "kind": "insight", "cites": ["a"]}
        visible = {"text": "Maren likes anchovies.", "kind": "trait"}
        drawn = {"text": "Maren will betray them.", "kind": "secret", "cites": ["c"]}
        for key, value in (("a", secret), ("b", insight), ("c", visible), ("d", drawn)):
            await store.aput(space, key, value | stamp)
        await store.aput((*space[:-1], "sources"), "e", {"same_as": "d", "cites": ["c"]} | stamp)
        lines = str((await find_words(game, "anchovies")).lines)
        assert "Altogether: 1 memory." in lines
        assert "betray" not in lines
        shown = [await find_words(game, words) for words in ("marzipan", "zqxwvkjt")]
        assert str(shown[0]).replace("marzipan", "zqxwvkjt") == str(shown[1])
        told = [await forget_words(game, words) for words in ("marzipan", "zqxwvkjt")]
        assert told[0].replace("marzipan", "zqxwvkjt") == told[1]
        assert "marzipan" not in str((await game.saved_game()).quest)
    assert files_saying(home, "marzipan") == []


async def test_secrets_of_which_some_were_put_back_and_some_not_are_not_said_to_be_both(home):
    async with open_game(Context(seed=6), FileHome(home)) as game:
        told = [line.split(": ") for line in await retract_turn(game, "4")]
    fields = dict(line for line in told if len(line) == 2)
    assert "some secrets" in fields["Put back"]
    assert "some secrets" in fields["Changed since, so left"]


@pytest.mark.slow
@pytest.mark.parametrize(("answers", "left"), [("y\ny\n", False), ("y\nno\n", True), ("YES\n", True)])
def test_what_says_nothing_without_the_words_is_asked_about(home, answers, left):
    questbook = lambda *arguments, words="": start(home, *arguments, words=words).stdout.decode()  # noqa: E731
    with FaissStore.open(home / "memory.db") as store:
        limit = {"text": "Never describe spiders.", "kind": "preference", "turn": 2}
        store.put(player_namespace("adventurer", "facts"), "limit", limit)
    out = questbook("forget", "spiders", words=answers)
    assert "Without these words, little or nothing is left of:" in out
    assert "  about you: Never describe spiders." in out.splitlines()
    assert ("Kept without the words:" in out) == left
    assert ("Removed as a whole:" in out) != left
    assert files_saying(home, "spiders") == []
    assert bool(files_saying(home, "Never describe")) == left


async def test_each_find_names_the_line_on_which_it_was_said(home):
    async with open_game(Context(seed=6), FileHome(home)) as game:
        history = await game.history()
        await history.undo(2)
        await history.name_line("the quay road")
        async for _ in game.send("I tell Maren Holt that the password is marmalade"):
            pass
        shown = (await find_words(game, "marmalade")).lines
        finds = [line for line in shown if "marmalade" in line and "turn " in line]
        assert finds
        assert all("(the quay road)" in line for line in finds), finds
        for number in range(20):
            lore = {"kind": "lore", "text": f"Marmalade {number}.", "source": "jam.md"}
            await (await game.load()).store.aput(("adventurer", "default", "lore"), str(number), lore)
        assert "  … and 1 more memories" in (await find_words(game, "marmalade")).lines, "20 are shown"


async def test_bytes_of_a_vector_and_compressed_ones_are_no_words(home, monkeypatch):
    """Letters occur in them by chance; what is warned of is text."""
    import sqlite3

    with sqlite3.connect(home / "memory.db") as database:
        database.execute("CREATE TABLE noise (bytes BLOB)")
        database.execute("INSERT INTO noise VALUES (?)", (b"\x00\x01Zqxwvk\x02\xff\x00" * 50,))
        database.execute("INSERT INTO noise VALUES (?)", (b"x\x9c" + b"among letters zqxwvk " * 9,))
    run = forget(home, "zqxwvk", "--yes")
    assert (run.returncode, run.stdout.decode()) == (
        0,
        "Nothing that you can see in campaign 'default' says “zqxwvk”; nothing else does now.\n",
    )


@pytest.mark.parametrize("answer", ["", " ", "ye", "yeah", "yep", "ja", "sure", "ok", "1", "true", "y n", "yes?", "no"])
def test_only_y_and_yes_agree(answer):
    assert not is_yes(answer)
    assert is_yes(" Y ")
    assert is_yes("YES\n")


ANN = Context(model="offline", user="ann", campaign="isle", seed=6)
RECORDS = {
    "exchanges": [
        {"player": "I buy marmalade.", "reply": "Sweet.", "text": "I buy marmalade.\nSweet.", "turn": 1, "line": "main"}
    ],
    "facts": [
        {"text": "Oda **likes** marmalade and sings at the bar of the inn.", "kind": "trait", "turn": 2},
        {"text": "Marmalade.", "kind": "event", "turn": 3},
        {"text": "Oda is glad.", "kind": "insight", "cites": ["facts0"], "turn": 4},
    ],
    "lore": [
        {"kind": "lore", "text": "Marmalade is made of oranges, far in the south.", "source": "jam.md", "page": 3}
    ],
}


@pytest.fixture
async def jam(tmp_path):
    """A game of which memory has some records that say "marmalade", and in which it was typed."""
    async with open_game(ANN, FileHome(tmp_path)) as game:
        store = (await game.load()).store
        for place, values in RECORDS.items():
            for number, value in enumerate(values):
                record = value if place == "lore" else value | {"branch": "b"}
                await store.aput(campaign_namespace("ann", "isle", place), f"{place}{number}", record)
        likes = {"text": "Ann is fond of marmalade on toast, she says.", "kind": "preference"}
        await store.aput(player_namespace("ann", "facts"), "like", likes)
        game.home.prompt_history.write_bytes(TYPED)
        yield game


TYPED = b"\n# 2026-01-01\n+I buy\n+marmalade\n\n# 2026-01-02\n+I wait\n\n# 2026-01-03\n+MARMALADE \xff!\n"


async def test_what_holds_words_is_shown_record_by_record_with_where_and_how_many(jam):
    found = await find_words(jam, "marmalade")
    assert found.lines == [
        "“marmalade” in campaign 'isle', on every branch:",
        "  jam.md, page 3: Marmalade is made of oranges, far in the south.",
        "  about you: Ann is fond of marmalade on toast, she says.",
        "  turn 1 (main): I buy marmalade. Sweet.",
        "  turn 2: Oda likes marmalade and sings at the bar of the inn.",
        "  turn 3: Marmalade.",
        "These conclusions from the memories are removed with them:",
        "  turn 4: Oda is glad.",
        "The words are cut out; what else a memory says stays. "
        "Altogether: 5 memories, 1 insight drawn from them, 2 typed lines.",
    ]
    assert found.emptied[0] == "Without these words, little or nothing is left of:"
    assert "  turn 3: Marmalade." in found.emptied
    assert "  about you: Ann is fond of marmalade on toast, she says." in found.emptied
    assert found.emptied[-1] == (
        "Yes removes them as a whole; else they stay, with “[forgotten]” in place of the words."
    )
    assert not any("sings" in line for line in found.emptied)
    nothing = await find_words(jam, "zqxwvkjt")
    assert nothing.lines == [
        "“zqxwvkjt” in campaign 'isle', on every branch:",
        "Nothing that you can see holds the words. They also go from what is hidden, and from earlier states.",
        "The words are cut out; what else a memory says stays. Altogether: nothing to be seen.",
    ]
    assert nothing.emptied == []


@pytest.mark.parametrize("whole", [False, True])
async def test_what_was_forgotten_is_counted_and_so_is_what_says_little_without_it(jam, whole):
    told = await forget_words(jam, "Marmalade", remove_emptied=whole)
    done = "Removed as a whole" if whole else "Kept without the words"
    assert told == f"Forgotten: 5 memories, 1 insight drawn from them, 2 typed lines. {done}: 2 memories."
    store = (await jam.load()).store
    kept = await store.aget(campaign_namespace("ann", "isle", "facts"), "facts1")
    assert (kept and kept.value["text"]) == (None if whole else "[forgotten].")
    assert jam.home.prompt_history.read_bytes() == b"\n# 2026-01-02\n+I wait\n"
    assert jam.home.prompt_history.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in jam.home.path.glob("history*")] == ["history"]


async def test_words_that_stand_in_another_campaign_are_said_to_be_there(jam):
    store = (await jam.load()).store
    await store.aput(campaign_namespace("ann", "reef", "facts"), "k", {"text": "Pell eats marmalade."})
    told = await forget_words(jam, "marmalade")
    said = "These words can still be read in memory.db: another campaign has them, or they are part of the file's own"
    assert told.endswith(f" {said} structure."), told


def test_typed_lines_are_removed_whole_and_a_history_that_cannot_be_read_is_named(tmp_path):
    path = tmp_path / "history"
    assert remove_typed(path, lambda _: True) == 0, "there is none"
    path.write_bytes(TYPED)
    (tmp_path / "history.part").write_bytes(b"of a run that was stopped")
    assert remove_typed(path, lambda text: text == "I buy\nmarmalade") == 1
    assert path.read_bytes() == TYPED[len(b"\n# 2026-01-01\n+I buy\n+marmalade\n") :]
    (tmp_path / "history.part").write_bytes(b"of a run that was stopped")
    assert remove_typed(path, lambda _: False) == 0
    assert [each.name for each in tmp_path.iterdir()] == ["history"]
    assert remove_typed(path, lambda text: text == "MARMALADE !") == 1, "bytes that are no text are passed over"
    assert remove_typed(path, bool) == 1
    assert path.read_bytes() == b""
    path.unlink()
    path.mkdir()
    with pytest.raises(HomeError, match=r"Cannot use .*history: .*Correct its permissions, or remove it\."):
        remove_typed(path, bool)


UNDONE = Retraction(2, 'I "go" home', [], [], [], 0, 0, False)


@pytest.mark.parametrize(
    ("done", "lines"),
    [
        (UNDONE, ["Put back: no field of the page."]),
        (UNDONE._replace(fields=["gold", "people.Oda"], facts=2), [
            "Put back: gold, people.Oda.", "Facts that are no longer known: 2.",
        ]),
        (UNDONE._replace(kept=["gold"], noted_with=[3, 4], summarised=True), [
            "Put back: no field of the page.", "Changed since, so left: gold.",
            "Its notes were made together with those of turn 3, 4, which are gone too.",
            "The summary was written again without it.",
        ]),
        (UNDONE._replace(fields=["secrets.a", "gold"], kept=["secrets.b", "scene"]), [
            "Put back: some secrets, gold.", "Changed since, so left: some secrets, scene.",
        ]),
        (UNDONE._replace(fields=["secrets.a", "secrets.b"]), ["Put back: secrets."]),
    ],
)  # fmt: skip
async def test_what_a_retraction_undid_is_told_line_by_line_without_names_of_secrets(monkeypatch, done, lines):
    async def retract(*_):
        return done

    async def load():
        return None

    monkeypatch.setattr("questbook.graphs.interface.forgetting.retract", retract)
    game = SimpleNamespace(load=load, config=None, context=None)
    assert await retract_turn(game, " 2 ") == ["Turn 2 is retracted: “I 'go' home”", *lines]
    for number in ("", "0x2", "-1", "1" * 16):
        with pytest.raises(HistoryError, match="/retract 7 undoes what was noted, remembered and summarised of turn 7"):
            await retract_turn(game, number)


async def test_a_turn_is_named_by_its_words_before_it_is_retracted(home):
    async with open_game(Context(seed=6), FileHome(home)) as game:
        assert await turn_to_retract(game, " 4 ") == (
            "Turn 4, “talk to Maren”: what it noted on the pages is put back, unless something later changed it; "
            "nothing of it is recalled or summarised any more."
        )
        assert await turn_to_retract(game, "44") == ""
    async with open_game(ANN, FileHome(home)) as game:
        assert await turn_to_retract(game, "1") == "", "nothing was played"


@pytest.mark.parametrize(
    ("campaign", "name"),
    [("isle", "campaign 'isle'"), ("companion:Ada", "assistant 'Ada'"), ("x" * 61, f"campaign '{'x' * 59}…'")],
)
def test_a_campaign_and_an_assistant_are_called_what_they_are(campaign, name):
    assert name_of(campaign) == name


@pytest.mark.parametrize(
    ("emptied", "yes", "typed", "asked", "removed"),
    [
        ([], False, "no\n", ["found"], None), ([], False, "yes\n", ["found"], False), ([], True, "", [], False),
        (["little"], False, "yes\nyes\n", ["found", "little"], True), (["little"], False, "no\nyes\n", ["found"], None),
        (["little"], False, "yes\nno\n", ["found", "little"], False), (["little"], True, "yes\nyes\n", [], False),
    ],
)  # fmt: skip
async def test_who_forgets_words_agrees_to_it_and_to_what_says_little_without_them(
    monkeypatch, capsys, emptied, yes, typed, asked, removed
):
    done = []

    async def find_words(game, words):
        return SimpleNamespace(lines=["found"], emptied=emptied)

    async def forget_words(game, words, *, remove_emptied):
        done.append((game.context.campaign, words, remove_emptied))
        return "Forgotten: all of it."

    monkeypatch.setattr("questbook.graphs.terminal.forget.find_words", find_words)
    monkeypatch.setattr("questbook.graphs.terminal.forget.forget_words", forget_words)
    monkeypatch.setattr("sys.stdin", io.StringIO(typed))
    flags = Namespace(what="x", campaign=None, player=False, yes=yes)
    assert await forget_command(ANN, flags) is (removed is not None)
    assert done == ([] if removed is None else [("isle", "x", removed)])
    *lines, last = capsys.readouterr().out.replace("Forget it for ever? Type yes: ", "").splitlines()
    assert (lines, last) == (asked, "Nothing was forgotten." if removed is None else "Forgotten: all of it.")


async def test_a_campaign_goes_with_what_was_typed_in_it_and_its_lock_and_a_no_keeps_it(tmp_path, monkeypatch, capsys):
    (tmp_path / "campaigns").mkdir()
    home = FileHome(tmp_path)
    typed = b"\n# 1\n+I'm Mira.\n\n# 2\n+I'm Bor.\n"
    async with open_game(ANN.model_copy(update={"campaign": "reef"}), home) as other:
        async for _ in other.send("I'm Bor."):
            pass
    async with open_game(ANN, home) as game:
        async for _ in game.send("I'm Mira."):
            pass
        home.prompt_history.write_bytes(typed)
        with hold_campaign(home, "ann", "isle"):
            for what, asked in (
                (forget_campaign, "Everything of campaign 'isle' will be removed: every branch, page and memory."),
                (forget_player, "Everything of player 'ann' will be removed. Campaigns: isle, reef."),
            ):
                monkeypatch.setattr("sys.stdin", io.StringIO("no\n"))
                assert await what(game) == "Nothing was forgotten."
                assert asked in capsys.readouterr().out
            assert home.prompt_history.read_bytes() == typed
            done = await forget_campaign(game, yes=True)
            assert re.fullmatch(
                r"Forgotten: campaign 'isle'\. Threads, with all their checkpoints: 1; memories and other items: \d+; "
                r"typed lines: 1\.", done,
            )  # fmt: skip
            assert home.prompt_history.read_bytes() == b"\n# 2\n+I'm Bor.\n"
            assert not home.lock_of(game.thread_id).exists()
            with hold_campaign(home, "ann", "reef"), pytest.raises(CampaignBusyError):
                await forget_player(game, yes=True)
        assert await forget_campaign(game, yes=True) == "Nothing was kept of campaign 'isle'."
        await (await game.load()).store.aput(("ann", "isle", "lore"), "gate", {"text": "It opens at low tide."})
        alone = await forget_campaign(game, yes=True)
        assert "Threads, with all their checkpoints: 0; memories and other items: 1;" in alone, "lore without a game"
        home.prompt_history.write_bytes(typed + b"\n# 3\n+/sheet\n")
        done = await forget_player(game, yes=True)
        assert done.startswith("Forgotten: player 'ann'. Threads, with all their checkpoints: 1;")
        assert done.endswith("typed lines: 3."), "nobody else has a game here, so all that was typed goes"
        assert home.prompt_history.read_bytes() == b""
        assert not home.lock_of(thread_id_of("ann", "reef")).exists()


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ({}, "Forget what? Give words, --campaign NAME for a whole campaign, or --player."),
        ({"what": "x", "player": True}, "Forget either words, or a campaign, or with --player everything of a user"),
        ({"campaign": "isle", "player": True}, "Forget either words, or a campaign"),
    ],
)
async def test_what_is_to_be_forgotten_has_to_be_clear(named, said):
    flags = Namespace(**{"what": None, "campaign": None, "player": False, "yes": True, **named})
    with pytest.raises(SettingsError, match=re.escape(said)):
        await forget_command(ANN, flags)
