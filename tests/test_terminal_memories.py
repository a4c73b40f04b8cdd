"""`questbook import ltm`, `export csv` and `memories`."""

import asyncio
import io
import os
import re
from pathlib import Path

import pytest
from ltm_fixture import write_database
from program import questbook
from stored_bytes import files_saying

from questbook import UserTimeline, note_facts, remember
from questbook.graphs.companion.context import own_campaign
from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.local.databases import open_store
from questbook.graphs.local.game import open_game
from questbook.graphs.terminal.cli import main
from questbook.memory.embeddings.embedders import HashEmbeddings
from questbook.memory.timeline.namespaces import campaign_namespace, player_namespace


@pytest.fixture
def home():
    return Path(os.environ["QUESTBOOK_HOME"])


@pytest.fixture
def run(capsys, monkeypatch):
    """The command line in this process: its status, output and errors."""
    monkeypatch.setattr("questbook.graphs.terminal.cli.signal.signal", lambda *_: None)

    def runs(*arguments, words=""):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(words.encode())))
        status = main(arguments)
        out, error = capsys.readouterr()
        return status, out, error

    return runs


@pytest.fixture
def told(run):
    def tells(*arguments, words=""):
        status, out, error = run(*arguments, words=words)
        assert (status, error) == (0, "")
        return out

    return tells


@pytest.mark.slow
def test_coming_over_looking_changing_and_going_back(told, home, tmp_path):
    source = tmp_path / "user_data" / "bot_memories"
    write_database(source / "chiharu_yamada", vectors=4)
    write_database(source)
    first = told("import", "ltm", str(tmp_path))
    assert "character 'chiharu_yamada': 3 imported, 0 there already" in first
    assert "all characters: 3 imported" in first
    assert "  skipped: 1 of 4 vectors have no message" in first
    assert first.endswith("Imported: 6 memories; there already: 0; skipped (see above): 1.\n")
    assert "Imported: 0 memories; there already: 6" in told("import", "ltm", str(tmp_path))

    assert told("memories", "list") == "'*': 3 memories\n'chiharu_yamada': 3 memories\n"
    place = ("--character", "Chiharu Yamada")
    listing = told("memories", "list", *place).splitlines()
    assert [line.split(", ")[1].split(":")[0] for line in listing] == ["Anon", "Chiharu", "Anon"]
    assert re.search(r"years ago, Anon: My cat is called \"Miso\"", listing[0])
    best = told("memories", "search", "the cat on the keyboard", *place).splitlines()[0]
    assert re.search(r"Anon \(distance 0\.\d\d\): My cat", best)

    added = told("memories", "add", "I moved to Oslo.", "--speaker", "Ada", *place)
    key = added.removeprefix("Added: ").strip()
    assert told("memories", "edit", key[:8], "I moved to Bergen.", *place) == f"Changed: {key}\n"
    assert "Ada: I moved to Bergen." in told("memories", "list", *place)
    assert files_saying(home, "Oslo") == []

    out = tmp_path / "out"
    assert "chiharu_yamada.csv: 4 memories" in told("export", "csv", str(out), *place)
    (path,) = out.rglob("*.csv")
    assert path.read_bytes().count(b"\r\n") == 4
    assert "Imported: 0 memories; there already: 3" in told(
        "import", "ltm", str(tmp_path / "user_data" / "bot_memories" / "chiharu_yamada")
    )
    assert "1 imported, 3 there already" in told("import", "ltm", str(path)), "what was edited has another key"

    deleted = told("memories", "delete", key[:8], *place)
    assert deleted.startswith(f"deleted: {key}")


def test_what_is_deleted_leaves_no_byte(told, home):
    key = told("memories", "add", "The password is swordfish.", "--character", "Miku").split()[1]
    told("memories", "edit", key, "The password is halibut.", "--character", "Miku")
    assert files_saying(home, "swordfish") == []
    assert files_saying(home, "halibut") != []
    told("memories", "delete", key, "--character", "Miku")
    assert files_saying(home, "halibut") == []


def test_deleting_everything_of_a_character_asks(run, told, home):
    told("memories", "add", "Misty is a cat.", "--character", "Miku", "--user", "bob")
    place = ("--character", "miku", "--user", "bob")
    status, out, _ = run("memories", "delete", "--all", *place, words="no\n")
    assert status == 2
    assert "1 memories" in out
    assert "Nothing was deleted." in out
    assert "Misty" in told("memories", "list", *place)
    assert "Deleted: 1" in told("memories", "delete", "--all", *place, words="yes\n")
    assert files_saying(home, "Misty") == []
    assert told("memories", "list", *place) == "Nothing is remembered there.\n"


@pytest.mark.slow
def test_users_and_what_they_share_are_apart_and_forgetting_a_player_takes_characters_along(told, home):
    for text, flags in (("Ada's own", ["--user", "ada"]), ("Bob's own", ["--user", "bob"]), ("Ours", ["--shared"])):
        told("memories", "add", text, "--character", "Miku", *flags)
    assert "Bob's" not in told("memories", "list", "--character", "Miku", "--user", "ada")
    assert "Ours" in told("memories", "list", "--character", "Miku", "--shared", "--user", "ada")
    told("forget", "--player", "--user", "ada", "--yes")
    assert files_saying(home, "Ada's own") == []
    assert files_saying(home, "Bob's own") != []
    told("forget", "bob's own", "--user", "bob", "--yes")
    assert files_saying(home, "Bob's own") == []
    assert files_saying(home, "Ours") != []


def test_facts_of_a_campaign_and_of_the_player_can_be_looked_through_and_deleted(run, told, home):
    isle, player = campaign_namespace("ada", "isle", "facts"), player_namespace("ada", "facts")
    fact = {"kind": "event", "subject": "Goran", "real_time": "2026-01-02T10:00:00+00:00"}

    async def write():
        home.mkdir()
        async with open_store(home / "memory.db") as store:
            await store.aput(isle, "b-2-fact-0", {**fact, "text": "Goran fears the river."})
            await store.aput(isle, "b-3-fact-0", {**fact, "text": "Goran sold the lamp oil."})
            await store.aput(player, "p-1-fact-0", {"kind": "preference", "text": "Ada plays on Sundays."})

    asyncio.run(write())
    flags = ("--campaign", "isle", "--user", "ada")
    assert "b-3-fact-0" in told("memories", "search", "lamp oil", *flags).splitlines()[0], "the nearest first"
    assert "Goran: Goran sold the lamp oil." in told("memories", "list", *flags)
    assert "Ada plays on Sundays." in told("memories", "list", "--player", "--user", "ada")
    told("memories", "delete", "b-3-fact-0", *flags)
    assert files_saying(home, "lamp oil") == []
    assert told("memories", "add", "Ada wants no spiders.", "--player", "--user", "ada").startswith("Added: ")
    assert "Ada wants no spiders." in told("memories", "list", "--player", "--user", "ada")
    assert "--all is for characters" in run("memories", "delete", "--all", "--yes", *flags)[2]


def test_a_secret_is_counted_in_lists_and_told_nowhere(told, home, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    isle = campaign_namespace("ada", "isle", "facts")

    async def write():
        home.mkdir()
        async with open_store(home / "memory.db") as store:
            await store.aput(isle, "b-3-fact-0", {"kind": "secret", "subject": "Oda", "text": "Oda stole the crown."})

    asyncio.run(write())
    flags = ("--campaign", "isle", "--user", "ada")
    listed = told("memories", "list", *flags)
    assert "b-3-fact-0" in listed
    assert "something that only the dungeon master knows" in listed
    nothing = told("memories", "search", "crown", *flags)
    assert nothing == told("memories", "search", "crown", "--campaign", "nowhere", "--user", "ada"), "not even counted"
    told("memories", "export", "all.jsonl", *flags)
    assert Path("all.jsonl").read_text() == ""
    for shown in (
        listed,
        nothing,
        told("memories", "get", "b-3-fact-0", *flags),
        told("memories", "delete", "b-3-fact-0", *flags),
    ):
        assert "Oda" not in shown
    assert files_saying(home, "stole the crown") == []


@pytest.mark.slow
def test_what_an_agent_of_an_app_remembers_is_listed_shown_corrected_and_moved(run, told, home, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    place = campaign_namespace("ada", "agent:desk", "exchanges")
    facts, flags = (*place[:-1], "facts"), ("--agent", "desk", "--user", "ada")

    async def write():
        home.mkdir()
        async with open_store(home / "memory.db") as store:
            heads = (*place[:-1], "heads")
            view = UserTimeline(thread="t1", heads=heads)
            said = {"player": "I live in Oslo.", "reply": "Fine."}
            view = view.with_segments(await remember(store, place, said, timeline=view))
            fact = {"text": "The user lives in Oslo.", "subject": "the user", "attribute": "home", "value": "Oslo"}
            origin = {"said_at": "2027-03-01T10:00:00+00:00", "thread": "t1", "messages": ["h1"]}
            await note_facts(store, facts, [fact], timeline=view, provenance=origin)

    asyncio.run(write())
    listed = told("memories", "list", *flags)
    assert re.search(r"Said: 1\n.*I live in Oslo.*\nFacts: 1\n.*The user lives in Oslo\.", listed, re.DOTALL)
    key = listed.splitlines()[-1].split()[0]
    shown = told("memories", "get", key, *flags)
    for part in ("status: holds", "since: 2027-03-01T10:00:00+00:00", "said: I live in Oslo.", "thread: t1", "h1"):
        assert part in shown
    for kind, day, found in (("fact", "2027-03-01", 1), ("fact", "2027-03-03", 0), ("insight", "2027-01-01", 0)):
        listed = told("memories", "list", "--kind", kind, "--since", day, "--thread", "t1", *flags)
        assert ("lives in Oslo" in listed) is bool(found)
    assert "lives in Oslo" not in told("memories", "list", "--kind", "fact", "--until", "2027-02-01", *flags)
    assert told("memories", "list", "--thread", "t2", *flags) == "Nothing is remembered there.\n"
    assert f"takes the place of {key}." in told("memories", "edit", key, "The user lives in Voss.", *flags)
    assert "No longer true: 1" in told("memories", "list", *flags)
    assert told("memories", "export", "a.jsonl", "--kind", "fact", *flags).startswith("a.jsonl: ")
    assert (tmp_path / "a.jsonl").stat().st_mode & 0o777 == 0o600
    assert told("memories", "import", "a.jsonl", "--agent", "desk", "--user", "bob") == "Imported: 2 memories\n"
    assert "Facts: 1\n" in told("memories", "list", "--agent", "desk", "--user", "bob")
    assert "lives in Voss" in told("memories", "search", "Where does the user live?", *flags)
    team = ("--team", "acme")
    assert told("memories", "add", "The key is under the mat.", *team).startswith("Added: ")
    assert "The key is under the mat." in told("memories", "list", *team)
    for wrong, said in ((("--since", "soon"), "--since: got 'soon'"), (("--team", "x"), "not allowed with")):
        status, _, error = run("memories", "list", *wrong, *flags)
        assert status == 2
        assert said in error
    Path("b.jsonl").write_text("{}\n")
    assert "Line 1 is no memory" in run("memories", "import", "b.jsonl", *flags)[2]
    Path("c.jsonl").write_bytes(b"\xff")
    for name in ("nowhere.jsonl", "c.jsonl"):
        assert f"'{name}' cannot be read" in run("memories", "import", name, *flags)[2]


CHARACTER = "I'm Mira, a halfling thief who grew up on the docks and wants her sister back."


@pytest.mark.slow
def test_a_fact_added_to_a_campaign_is_told_at_once_and_goes_back_with_its_turn(run, told):
    flags = ("--campaign", "isle", "--user", "ada")
    run("play", *flags, words=f"{CHARACTER}\nI wait.\n")
    home = ("--subject", "Goran", "--attribute", "home")
    added = told("memories", "add", "Goran lives at the mill.", *flags, *home)
    key = re.fullmatch(r"Added: (2-hand\.\w+-0\.[a-z2-7]{4})\.\n", added)[1]
    assert "known already" in told("memories", "add", "Goran lives at the mill.", *flags, *home)
    changed = told("memories", "add", "Goran lives in the tower.", *flags, *home)
    assert "It takes the place of " in changed
    told("memories", "add", "The dragon sleeps below Wendal.", *flags, "--secret")
    listed = told("memories", "list", *flags)
    assert re.search(r"Facts: \d+\n.*Goran lives in the tower\..*No longer true: 1\n.*at the mill", listed, re.DOTALL)
    assert "dragon" not in listed
    _, asked, _ = run("play", *flags, words="Where does Goran live?\n/memories\n/prompt\n")
    assert "Goran lives in the tower." in asked
    assert "at the mill" not in asked
    _, gone, _ = run("play", *flags, words="/undo 2\nWhere does Goran live?\n/memories\n")
    assert "tower" not in gone
    assert told("memories", "delete", key, *flags).startswith(f"deleted: {key} ")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("import", "ltm", "/nowhere"), "user_data/bot_memories"),
        (("memories", "search", "x"), "Whose memories"),
        (("memories", "add", "x"), "Whose memories"),
        (("memories", "add", "  ", "--character", "m"), "text is empty"),
        (("memories", "add", "x", "--campaign", "isle"), "No turn of 'isle' is finished yet"),
        (("memories", "add", "x", "--assistant", "work"), "No turn of 'work' is finished yet"),
        (("memories", "add", "x", "--character", "m", "--secret"), "--secret does not go with it"),
        (("memories", "add", "x", "--player", "--tag", "y"), "--tag does not go with it"),
        (("memories", "add", "  ", "--player"), "The text of a fact: got ''. Write 1 to 1,000 characters."),
        (("memories", "edit", "0123", "x", "--character", "m"), "No memory has the key"),
        (("memories", "delete", "--character", "m"), "Delete which"),
        (("memories", "delete", "x", "--all", "--character", "m"), "Delete which"),
        (("export", "csv", "out", "--character", "m"), "remembers nothing"),
    ],
)
def test_what_makes_no_sense_is_one_line(run, arguments, said):
    status, out, error = run(*arguments)
    assert (status, out) == (2, "")
    assert said in error
    assert error.count("\n") == 1


def test_an_import_of_which_nothing_can_be_read_fails_and_says_why(run, tmp_path):
    folder = tmp_path / "bot_memories" / "x"
    folder.mkdir(parents=True)
    (folder / "long_term_memory.db").write_text("no database")
    status, out, _ = run("import", "ltm", str(tmp_path))
    assert status == 2
    assert "cannot be read" in out


def test_with_the_extensions_embedder_its_vectors_are_taken_over(told, tmp_path, monkeypatch):
    class Mpnet(HashEmbeddings):
        asked = []

        def embed_documents(self, texts):
            Mpnet.asked += texts
            return super().embed_documents(texts)

    monkeypatch.setenv("QUESTBOOK_EMBEDDINGS", "huggingface:sentence-transformers/all-mpnet-base-v2")
    monkeypatch.setattr("questbook.memory.embeddings.loading.load_embeddings", lambda _: Mpnet(768))
    write_database(tmp_path / "bot_memories" / "chiharu", vectors=2)
    broken = write_database(tmp_path / "bot_memories" / "rin", [(0, "Anon", "Rin's own message", "")]).parent
    (broken / "long_term_memory_embeddings.zarr" / "0.0").write_bytes(b"cut off")
    out = told("import", "ltm", str(tmp_path))
    assert "2 vectors of all-mpnet-base-v2 were taken over." in out
    assert "Vectors were computed again: " in out
    assert sorted(text[:8] for text in Mpnet.asked) == ["My cat i", "Rin's ow"]
    assert "3 memories" in told("memories", "list")


@pytest.mark.slow
def test_the_archive_of_an_assistant_is_listed_searched_edited_and_deleted(tmp_path):
    archived = "Archive that: the cabin key hangs under the stairs.\nArchive this: Kari takes the early ferry.\n"
    questbook(tmp_path, "chat", "--assistant", "work", words=archived)
    place = ("--assistant", "work")
    add = ("memories", "add", "The dog fears umbrellas.", "--tag", "dog", *place)
    added = questbook(tmp_path, *add).stdout
    assert questbook(tmp_path, *add).stdout == added, "twice is once"
    questbook(tmp_path, "memories", "delete", added.removeprefix("Added: ").strip(), *place)
    listed = questbook(tmp_path, "memories", "list", *place).stdout.splitlines()
    assert [line.partition("archive: ")[2] for line in listed] == [
        "Kari takes the early ferry.",
        "the cabin key hangs under the stairs.",
    ]
    best = questbook(tmp_path, "memories", "search", "the key of the cabin", *place).stdout.splitlines()[0]
    assert re.search(r"archive \(distance 0\.\d\d\): the cabin key", best)
    key = best.split()[0]
    assert questbook(tmp_path, "memories", "edit", key, "the cabin key is lost", *place).returncode == 0
    assert "is lost" in questbook(tmp_path, "memories", "search", "the key of the cabin", *place).stdout
    assert "deleted: " in questbook(tmp_path, "memories", "delete", key, *place).stdout
    assert len(questbook(tmp_path, "memories", "list", *place).stdout.splitlines()) == 1
    assert "Nothing is remembered" in questbook(tmp_path, "memories", "list", "--assistant", "companion").stdout
    everything = questbook(tmp_path, "memories", "delete", "--all", *place)
    assert (everything.returncode, "questbook forget" in everything.stderr) == (2, True)


@pytest.mark.slow
def test_words_are_forgotten_from_a_talk_on_all_lines_after_asking(tmp_path):
    words = "My name is Ann\nI like absinthe\nArchive that: absinthe is green\n/undo\nI like tea\n"
    questbook(tmp_path, "chat", words=words)
    assert files_saying(tmp_path, "absinthe")
    kept = questbook(tmp_path, "chat", words="/forget absinthe\nno\n/core human\n")
    assert "core.sections.human.value" in kept.stdout
    assert "absinthe" in kept.stdout.rpartition("Core memory")[2]
    run = questbook(tmp_path, "chat", words="/forget absinthe\ny\ny\n/core human\nWhat do I like?\n")
    assert "Forgotten: 4 memories" in run.stderr, "two exchanges, the entry and the fact"
    assert "absinthe" not in run.stdout.rpartition("Core memory")[2]
    assert files_saying(tmp_path, "absinthe") == []


@pytest.mark.slow
def test_facts_go_back_with_the_turn_and_are_shown_listed_deleted_and_forgotten(tmp_path):
    words = "My sister Anna lives in Bergen\nI live in Oslo\nI don't live in Oslo any more\nWhere do I live?\n"
    back = "/undo\n/undo\nWhere do I live?\n/why\n/why Oslo\n"
    told = questbook(tmp_path, "chat", words=f"{words}/why Oslo\n{back}").stdout
    before, _, after = told.partition("Back at the end of turn")
    assert "I do not know." in before
    assert "The user lives in Oslo. (no longer)" in before
    assert "You live in Oslo." in after
    assert "(no longer)" not in after
    assert "My sister Anna lives in Bergen" in after.partition("What it learnt")[2], "what was said that taught it"
    listed = questbook(tmp_path, "memories", "list", "--assistant", "companion").stdout
    assert "Facts: 3" in listed
    assert "On other branches: 1" in listed
    assert "Anna lives" in questbook(tmp_path, "memories", "search", "Bergen", "--assistant", "companion").stdout
    key = next(line.split()[0] for line in listed.splitlines() if line.endswith("The user lives in Oslo."))
    assert "deleted: " in questbook(tmp_path, "memories", "delete", key, "--assistant", "companion").stdout
    run = questbook(tmp_path, "chat", words="/forget Bergen\ny\ny\nWhere does Anna live?\n")
    assert "Forgotten" in run.stderr
    assert "Anna lives in [forgotten]." not in run.stdout, "what was forgotten is no answer"
    assert files_saying(tmp_path, "Bergen") == []


def write_items(home, *items):
    """Put records into the store: each a namespace, a key and a value."""

    async def write():
        home.mkdir(exist_ok=True)
        async with open_store(home / "memory.db") as store:
            for namespace, key, value in items:
                await store.aput(namespace, key, value)

    asyncio.run(write())


HEAD = ((*campaign_namespace("ada", "isle"), "head"), "head", {"timeline": [["b", 1]], "turn": 1})
ISLE, ISLE_FLAGS = campaign_namespace("ada", "isle", "facts"), ("--campaign", "isle", "--user", "ada")


def test_get_shows_what_is_known_of_a_memory_and_nothing_that_is_not(told, home):
    about = {
        "subject": "Goran",
        "attribute": "home",
        "metadata": {"form": "A7"},
        "expires": "2099-01-01T00:00:00+00:00",
    }
    origin = {"thread": "t9", "turn": 3, "said_at": "2027-03-01T10:00:00+00:00", "messages": ["h1", "h2"]}
    fact = {"kind": "trait", "text": "Goran lives at the mill."}
    write_items(home, (ISLE, "long", fact | about | origin), (ISLE, "short", fact | {"kind": "event"}))
    first, *rows = told("memories", "get", "long", *ISLE_FLAGS).splitlines()
    assert first.endswith(", Goran: Goran lives at the mill.")
    assert rows == [
        "  status: holds", "  since: 2027-03-01T10:00:00+00:00", "  thread: t9", "  turn: 3", "  messages: h1, h2",
        "  subject: Goran", "  attribute: home", "  metadata: {'form': 'A7'}", "  expires: 2099-01-01T00:00:00+00:00",
    ]  # fmt: skip
    first, *rows = told("memories", "get", "short", *ISLE_FLAGS).splitlines()
    assert (first.endswith(", event: Goran lives at the mill."), rows) == (True, ["  status: holds"])


def test_memories_are_listed_in_groups_each_with_its_number(told, home):
    fact, old = {"kind": "trait", "subject": "Oda"}, "2020-01-01T00:00:00+00:00"
    write_items(
        home,
        HEAD,
        (ISLE, "gone", fact | {"text": "Oda fell.", "branch": "z", "turn": 1}),
        (ISLE, "fact", fact | {"text": "Oda sings."}),
        (ISLE, "insight", fact | {"text": "Oda is glad.", "cites": ["fact"]}),
        (ISLE, "expired", fact | {"text": "Oda is ill.", "expires": old}),
        ((*ISLE[:-1], "exchanges"), "said", {"player": "Oda?", "text": "Oda?", "branch": "b", "turn": 1}),
        ((*ISLE[:-1], "exchanges"), "left", {"player": "Pell?", "text": "Pell?", "branch": "z", "turn": 1}),
        ((*ISLE[:-1], "archive"), "kept", {"kind": "archive", "text": "The cabin key."}),
    )
    said = [re.sub(r"^\S+ .*, ", "", line) for line in told("memories", "list", *ISLE_FLAGS).splitlines()]
    assert said == [
        "archive: The cabin key.", "Facts: 1", "Oda: Oda sings.", "Insights: 1", "Oda: Oda is glad.",
        "No longer true: 1", "Oda: Oda is ill.", "On other branches: 1", "Oda: Oda fell.",
    ]  # fmt: skip
    alone = told("memories", "list", "--kind", "exchange", *ISLE_FLAGS).splitlines()
    assert [line.split()[0] for line in alone] == ["Said:", "said", "On", "left"]
    assert told("memories", "list", "--kind", "promise", *ISLE_FLAGS) == "Nothing is remembered there.\n"


def test_a_search_shows_the_ten_nearest_facts_and_no_words_of_the_talk(told, home):
    facts = [(ISLE, f"k{n}", {"kind": "event", "text": f"The lamp hangs on pier {n}."}) for n in range(12)]
    said = ((*ISLE[:-1], "exchanges"), "said", {"player": "The lamp?", "text": "The lamp hangs on pier 3."})
    said[2].update(branch="b", turn=1)
    write_items(home, HEAD, *facts, said)
    found = told("memories", "search", "The lamp hangs on pier 3.", *ISLE_FLAGS).splitlines()
    assert len(found) == 10
    assert re.fullmatch(r"k3 .*event \(distance -?0\.00\): The lamp hangs on pier 3\.", found[0])
    distances = [float(re.search(r"distance (-?[\d.]+)", line)[1]) for line in found]
    assert distances == sorted(distances)
    assert "said" not in {line.split()[0] for line in found}


def test_a_search_counts_no_secret_among_the_facts_that_it_finds(told, home):
    secret = {"kind": "secret", "subject": "Oda", "text": "The lamp is stolen."}
    write_items(home, (ISLE, "k", {"kind": "event", "text": "The lamp hangs."}), (ISLE, "s", secret))
    assert [line.split()[0] for line in told("memories", "search", "The lamp", *ISLE_FLAGS).splitlines()] == ["k"]


def test_a_long_name_and_marks_of_markdown_are_shortened_in_a_list(told, home):
    write_items(home, (ISLE, "k", {"kind": "trait", "subject": "x" * 50, "text": "**Oda** sings " + "x" * 300}))
    [_, line] = told("memories", "list", *ISLE_FLAGS).splitlines()
    assert f", {'x' * 39}…: Oda sings xxx" in line
    assert (len(line), line[-1]) == (200, "…")


def test_the_memories_of_a_character_are_got_one_by_one_and_move_as_csv(run, told, home, tmp_path):
    place = ("--character", "Miku")
    key = told("memories", "add", "I like rain.", "--user", "bob", *place).split()[1]
    line = told("memories", "get", key[:8], "--user", "bob", *place)
    assert re.fullmatch(rf"{key} just now, bob: I like rain\.\n", line), "who adds it has said it"
    for action in ("export", "import"):
        status, _, error = run("memories", action, str(tmp_path / "x.jsonl"), "--user", "bob", *place)
        assert (status, "go as CSV: questbook export csv, questbook import ltm" in error) == (2, True)
    assert told("memories", "list") == (
        "No character remembers anything yet. questbook import ltm DIR, or memories add TEXT --character NAME.\n"
    )
    assert told("memories", "delete", "--all", "--yes", "--user", "bob", *place) == ("Deleted: 1 memories of 'Miku'.\n")


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--attribute", "home", "--character", "m"), "--attribute does not go with it: here you may add --speaker."),
        (("--subject", "Oda", "--assistant", "work"), "--subject does not go with it: here you may add --tag."),
        (("--speaker", "Oda", "--assistant", "work"), "--speaker does not go with it: here you may add --tag."),
        (("--tag", "x", "--team", "t"), "here you may add --speaker, --subject, --attribute, --secret."),
    ],
)
def test_a_flag_that_says_nothing_of_such_a_memory_is_refused_with_those_that_do(run, flags, said):
    status, _, error = run("memories", "add", "Oda sings.", *flags)
    assert (status, said in error) == (2, True), error


def test_a_fact_by_hand_has_what_the_flags_say_of_it(told, tmp_path):
    flags = ("--subject", "Oda", "--attribute", "voice", "--speaker", "Pell")
    key = told("memories", "add", " Oda sings. ", "--team", "acme", *flags).removeprefix("Added: ").strip(".\n")
    shown = told("memories", "get", key, "--team", "acme").splitlines()
    assert shown[0].endswith(", Oda: Oda sings.")
    assert shown[-2:] == ["  subject: Oda", "  attribute: voice"]
    told("memories", "export", str(tmp_path / "a.jsonl"), "--team", "acme")
    assert '"claimed_by": "Pell"' in (tmp_path / "a.jsonl").read_text()
    assert "Oda sings" in told("memories", "list", "--kind", "trait", "--team", "acme")
    told("memories", "add", "It rains.", "--team", "acme")
    assert "It rains" in told("memories", "list", "--kind", "event", "--team", "acme")


def test_an_entry_of_an_archive_has_its_tags_and_its_own_words_are_changed_without_a_byte_left(told, home, tmp_path):
    place = campaign_namespace("ada", own_campaign("work"))
    write_items(home, ((*place, "head"), *HEAD[1:]))
    flags, file = ("--assistant", "work", "--user", "ada"), tmp_path / "a.jsonl"
    key = told("memories", "add", "The swordfish.", "--tag", "key", "--tag", "cabin", *flags).split()[1]
    told("memories", "export", str(file), *flags)
    assert '"tags": ["cabin", "key"]' in file.read_text().replace('["key", "cabin"]', '["cabin", "key"]')
    assert told("memories", "edit", key, "The boat.", *flags).startswith("Changed: ")
    assert "The boat." in told("memories", "list", *flags)
    assert files_saying(home, "swordfish") == []


def test_what_users_share_is_exported_and_imported_apart_from_what_is_their_own(told, tmp_path):
    for text, flags in (("Mine alone", ["--user", "ada"]), ("Ours", ["--shared", "--user", "ada"])):
        told("memories", "add", text, "--character", "Miku", *flags)
    for flags, says in (((), "Mine alone"), (("--shared",), "Ours")):
        out = tmp_path / says
        told("export", "csv", str(out), "--user", "ada", *flags)
        (path,) = out.rglob("*.csv")
        assert says in path.read_text()
        assert path.read_text().count("\n") == 1
    assert "1 imported" in told("import", "ltm", str(path), "--user", "bob", "--shared", "--character", "Rin")
    assert told("memories", "list", "--user", "bob") == (
        "No character remembers anything yet. questbook import ltm DIR, or memories add TEXT --character NAME.\n"
    )
    assert told("memories", "list", "--user", "bob", "--shared") == "'miku': 1 memory\n'rin': 1 memory\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("export", "json"), "export: got 'json'; expected csv and a directory, or a file FILE.zip."),
        (("import", "csv", "x"), "import: got 'csv'; expected ltm and a directory"),
        (("import", "ltm"), "import: got 'ltm'; expected ltm and a directory"),
        (("export", "none.ZIP"), "There is nothing to export of campaign 'default': it has not begun."),
        (("import", "none.zip"), "Cannot read none.zip: No such file or directory."),
        (("import", "none.ZIP"), "Cannot read none.ZIP: No such file or directory."),
        (("export", "csv", "out", "--character", "m"), "remembers nothing. There are memories of: nobody."),
    ],
)  # fmt: skip
def test_what_cannot_be_moved_is_refused_with_what_can(run, arguments, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    status, out, error = run(*arguments)
    assert (status, out, said in error) == (2, "", True), error
    assert list(tmp_path.glob("*.[zZ]*")) == []


def test_an_export_of_nothing_says_so_and_fails(run, tmp_path):
    status, out, _ = run("export", "csv", str(tmp_path / "out"))
    assert (status, out) == (2, "No character remembers anything: nothing was written.\n")
    run("memories", "add", "Ours", "--character", "Miku")
    (tmp_path / "file").write_text("")
    status, _, error = run("export", "csv", str(tmp_path / "file"))
    assert (status, f"Cannot write to {tmp_path / 'file'}: " in error) == (2, True)


def test_of_many_reasons_ten_are_shown(told, tmp_path):
    (tmp_path / "miku.csv").write_text("0,Ada,I like rain.,2026-01-01 10:00:00\n" + "0,Ada\n" * 13)
    lines = told("import", "ltm", str(tmp_path / "miku.csv")).splitlines()
    assert [line.startswith("  skipped: ") for line in lines] == [False, *[True] * 11, False]
    assert lines[11] == "  skipped: … and 3 more"
    assert lines[-1] == "Imported: 1 memories; there already: 0; skipped (see above): 13."


def test_a_campaign_moves_as_one_file_under_its_name_or_another(told, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    asyncio.run(play_one_turn("ada", "isle"))
    sent = told("export", "isle.zip", *ISLE_FLAGS)
    assert re.fullmatch(r"isle\.zip: campaign 'isle' to turn 1, \d+ memories and other records\.\n", sent)
    for flags, how in (((), "isle --user bob"), (("--campaign", "old reef"), "'old reef' --user bob")):
        assert told("import", "isle.zip", "--user", "bob", *flags).endswith(
            f" is here, to turn 1: questbook play --campaign {how}\n"
        )


def test_a_campaigns_file_names_no_directory_of_who_made_it(told, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    asyncio.run(play_one_turn("ada", "isle"))
    (tmp_path / "book.md").write_text("The gate opens at low tide.")
    told("lore", "add", str(tmp_path / "book.md"), *ISLE_FLAGS)
    assert f"from {tmp_path / 'book.md'}" in told("lore", "list", *ISLE_FLAGS)
    told("export", "isle.zip", *ISLE_FLAGS)
    told("import", "isle.zip", "--user", "bob")
    assert told("lore", "list", "--campaign", "isle", "--user", "bob").endswith(" from book.md\n")
    told("lore", "add", str(tmp_path / "book.md"), "--campaign", "isle", "--user", "bob")


def test_what_an_assistant_remembers_moves_to_one_without_a_turn_which_knows_it(run, told, tmp_path):
    file, work = str(tmp_path / "w.jsonl"), ("--assistant", "work")
    told_of_ann = "My name is Ann.\nArchive that: the safe code is 4711\nI live in Oslo.\nI like tea.\n/undo\n"
    run("chat", *work, words=told_of_ann)
    told("memories", "export", file, *work)
    for flags in ((*work, "--user", "bob"), ("--assistant", "home")):
        assert told("memories", "import", file, *flags) == "Imported: 6 memories\n", "not what was taken back"
        assert told("memories", "import", file, *flags) == "Imported: 0 memories\n", "twice is once"
        kept = told("memories", "list", *flags)
        key = next(line.split()[0] for line in kept.splitlines() if "lives in Oslo" in line)
        told("memories", "delete", key, "--yes", *flags)
        assert told("memories", "import", file, *flags) == "Imported: 1 memory\n", "what was removed here comes back"
        assert told("memories", "list", *flags) == kept
        asked = run("chat", *flags, words="Where do I live?\nWhat do I like?\nI live in Bergen.\nWhere do I live?\n")[1]
        assert [line for line in asked.splitlines() if line.startswith("You live")] == [
            "You live in Oslo.", "You live in Bergen.",
        ]  # fmt: skip
        assert "tea" not in asked
        listed = told("memories", "list", *flags)
        assert "the safe code is 4711" in listed.partition("Facts: 2\n")[0]
        assert "Oslo" in listed.partition("No longer true: 1\n")[2]
        assert run("doctor", *flags[2:])[0] == 0
    run("chat", "--assistant", "play", words="I like chess.\n")
    status, out, error = run("memories", "import", file, "--assistant", "play")
    assert (status, out, error.count("\n")) == (2, "", 1)
    assert "'play' is one conversation: it takes over what another remembers, before its first turn only." in error
    assert told("memories", "list", "--assistant", "play").count("\n") == 2
    told("memories", "add", "Likes riddles.", "--player")
    told("memories", "export", file, "--player")
    assert "Memories of the player" in run("memories", "import", file, "--assistant", "new")[2]


def test_a_correction_without_words_is_refused_and_what_was_taken_back_is_marked(run, told):
    flags = ("--assistant", "companion")
    words = "My name is Ann.\nArchive that: the safe code is 4711\nI live in Oslo.\n/undo 2\nHello.\n"
    run("chat", words=words)
    listed = told("memories", "list", *flags)
    assert listed.startswith("Facts: 1\n")
    assert re.search(r"On other branches: 2\n(.*\n)*.*the safe code is 4711\n", listed)
    found = told("memories", "search", "the safe code", *flags)
    assert re.search(r"archive \(.*elsewhere\): the safe code is 4711", found)
    key = next(line.split()[0] for line in listed.splitlines() if "name is Ann" in line)
    for text in ("", "   "):
        status, _, error = run("memories", "edit", key, text, *flags)
        assert (status, error) == (2, "questbook: The text of a fact: got ''. Write 1 to 1,000 characters.\n")
    told("memories", "edit", key, "The user's name is Anna.", *flags)
    found = told("memories", "search", "The user's name", *flags)
    assert re.search(r"\(.*ended\): The user's name is Ann\.", found)


async def play_one_turn(user, campaign):
    async with open_game(Context(model="offline", user=user, campaign=campaign, seed=6)) as game:
        async for _ in game.send(CHARACTER):
            pass
