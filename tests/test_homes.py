"""Both homes keep the same contract: files on this machine, and a PostgreSQL that several processes use."""

import asyncio
import re
import time
from contextlib import suppress

import psycopg
import pytest
from beside import start_beside
from postgres import OF_LOCKS, end_sessions, execute, migrated_database
from program import questbook
from psycopg_pool import PoolTimeout
from web_server import Visitor, page_server

from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.errors import QuestbookError
from questbook.graphs.events import ReplyPiece
from questbook.graphs.interface.forgetting import forget_words
from questbook.graphs.local import postgres_home
from questbook.graphs.local.costs import Cost, UsageMeter, costs_of
from questbook.graphs.local.game import open_game
from questbook.graphs.local.home import CampaignBusyError, HomeError, hold_campaign
from questbook.graphs.local.homes import find_home, home_at
from questbook.graphs.local.saved_game import list_campaigns, thread_id_of
from questbook.graphs.terminal.forget import forget_campaign
from questbook.graphs.turn.run_guard import SessionLocks

MIRA = "I'm Mira, a halfling thief who grew up on the docks and wants her sister back."
HOMES = ["files", "postgres"]
slow = pytest.mark.slow


def new_place(kind, path):
    """Return path or URL of a new home; `path` is the directory of files."""
    return str(path) if kind == "files" else migrated_database()


@pytest.fixture(params=HOMES)
def any_home(request, tmp_path):
    return home_at(new_place(request.param, tmp_path / "any"), tmp_path / "here")


@pytest.fixture
def postgres(tmp_path):
    return home_at(migrated_database(), tmp_path / "here")


def opened(home, campaign="isle", **settings):
    return open_game(Context(model="offline", user="ann", campaign=campaign, seed=6, **settings), home)


async def say(game, *words):
    for text in words:
        async for _ in game.send(text):
            pass
    await game.wait_for_upkeep(30)


async def told(home, campaign="isle"):
    """The player's messages in a campaign as it is kept."""
    async with opened(home, campaign) as game:
        saved = await game.saved_game()
        return [message.text for message in saved.values["messages"] if message.type == "human"] if saved else []


# The same sitting at a terminal, and then the same look at what is kept.

SHORT = [MIRA, "look around", "/undo", "I sneak past Maren Holt", "/sheet", "/memories"]
LONG = [
    *SHORT, "/retry", "/retry dice", "/edit I look at the boats.", "talk to Maren", "/branch dark", "/branches",
    "/go 2", "I sing a song about herons", "/branches", "/go dark", "/diff main", "/recap", "go to Gull Quay",
    "I tell Maren Holt that the password of the smugglers is swordfish", "who was Pell?", "/why location",
    "/retract 3", "/forget swordfish", "yes", "What did I say is the password?", "/memories", "/quest", "/campaigns",
]  # fmt: skip


def sitting(place, path, words):
    """What the terminal, asked for a campaign's files and memories afterwards, says; each run with its name."""
    more = {"QUESTBOOK_DATABASE": place if "://" in place else "", "QUESTBOOK_USER": "ann"}
    lore, file = path.parent / "gate.md", path / "isle.zip"
    lore.write_text("# The gate\n\nThe gate of Gull Quay opens at low tide.\n")
    said = {}
    for name, arguments, lines in (
        ("lore", ["lore", "add", str(lore), "--campaign", "isle"], []),
        ("play", ["play", "--campaign", "isle", "--seed", "6"], words),
        ("listed", ["lore", "list", "--campaign", "isle"], []),
        ("facts", ["memories", "list", "--campaign", "isle"], []),
        ("search", ["memories", "search", "Gull Quay", "--campaign", "isle"], []),
        ("export", ["export", str(file), "--campaign", "isle"], []),
        ("import", ["import", str(file), "--campaign", "reef"], []),
        ("goes on", ["play", "--campaign", "reef", "--seed", "6"], ["/undo", "look around", "/branches", "/memories"]),
        ("doctor", ["doctor"], []),
        ("prune", ["prune", "--keep-turns", "2", "--yes"], []),
        ("back", ["play", "--campaign", "isle", "--seed", "6"], ["/undo", "look around", "/branches"]),
        ("forget", ["forget", "--campaign", "isle", "--yes"], []),
        ("rest", ["play", "--campaign", "reef"], ["/campaigns"]),
    ):
        run = questbook(path / "here", *arguments, words="\n".join(lines), **more)
        assert run.returncode == 0, (name, run.stderr)
        said[name] = (run.stdout + run.stderr).replace(str(path), "PATH")
    return said


_BY_NATURE = [
    (r"\s+The\s+database's\s+write-ahead\s+log,[^.]*\.", ""),  # what forgetting does not reach there
    (r"start once with QUESTBOOK_EMB.* here again|`questbook migrate` a new .*`questbook copy` to it", "EMBED AGAIN"),
    (r"and \d+ values \(", "and VALUES ("),  # a database has one for each message
    (r"\d[\d.,]* (?:kB|MB|bytes)", "SIZE"),  # of files and tables
    (r"\(\d+\.\d s\)", "SECONDS"),
    (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?\S*", "TIME"),
    (r"(?:The )?database test\w+ at \S+|/\S+/here(?:/[^\s:]*)?|checkpoints\.db|memory\.db", "PLACE"),
]


def alike(text):
    for pattern, name in _BY_NATURE:
        text = re.sub(pattern, name, text)
    return text.splitlines()


@pytest.mark.parametrize("words", [pytest.param(SHORT, id="short"), pytest.param(LONG, id="long")])
@slow
def test_a_sitting_at_a_terminal_says_the_same_in_both_homes(tmp_path, words):
    told = []
    for kind in HOMES:
        path = tmp_path / kind
        path.mkdir()
        told.append(sitting(new_place(kind, path / "here"), path, words))
    for name in told[0]:
        assert alike(told[1][name]) == alike(told[0][name]), name


async def test_a_game_is_played_undone_and_found_again(any_home):
    async with opened(any_home) as game:
        assert await game.saved_game() is None
        async with hold_campaign(any_home, "ann", "isle") as game.held:
            await say(game, MIRA, "look around")
            await (await game.history()).undo()
            await say(game, "I look at the boats.")
        before = await game.saved_game()
        graph = await game.load()
        records = await graph.store.asearch(("ann", "isle"), limit=100)
    async with opened(any_home) as game:
        assert (await game.saved_game()).values == before.values
        assert [saved.campaign for saved in await list_campaigns(game.checkpointer, "ann")] == ["isle"]
        again = await (await game.load()).store.asearch(("ann", "isle"), limit=100)
        assert [(one.namespace, one.key, one.value) for one in again] == [
            (one.namespace, one.key, one.value) for one in records
        ]
    assert await told(any_home) == [MIRA, "I look at the boats."]


async def test_who_forgets_is_told_what_is_out_of_reach(any_home):
    async with opened(any_home) as game:
        await say(game, MIRA)
        done = [await forget_words(game, "halfling"), await forget_campaign(game, yes=True)]
    said = "The database's write-ahead log, replicas and backups have it for as long as they are kept"
    assert [said in one for one in done] == [any_home.name.startswith("database")] * 2, done
    assert all(one.startswith("Forgotten: ") for one in done)


async def test_what_is_kept_is_read_without_opening_a_game(any_home):
    assert await any_home.read_embedder() in ("", "hash-1:512 with 512 dimensions")
    places = [("ann", "100%", "facts"), ("ann", "100_", "facts"), ("ann", "1002", "facts"), ("bob", "x", "notes")]
    places += [("ann", r"a\b", "facts"), ("annie", "isle", "facts")]
    async with any_home.open_store("hash") as store:
        for number, place in enumerate(places):
            await store.aput(place, f"k{number}", {"text": "a heron", "n": number})
        await store.aput(("ann", "100%", "facts", "deep"), "k", {"n": 9})
    for number, place in enumerate(places):
        assert await any_home.read_item(place, f"k{number}") == {"text": "a heron", "n": number}
    assert await any_home.read_item(places[0], "k1") is None
    assert await any_home.read_item(("nobody",), "k1") is None
    of_ann = [place for place in places if place[0] == "ann"]
    assert await any_home.records("ann", "facts", "k4") == {places[4]: {"text": "a heron", "n": 4}}
    assert await any_home.records("ann", "facts", "k3") == await any_home.records(None, "facts", "k3") == {}
    assert await any_home.records("nobody", "facts", "k0") == await any_home.records("a%", "f_cts", "k0") == {}
    async with any_home.open_store("hash") as store:
        for number, place in enumerate(places):
            await store.aput(place, "same", {"n": number})
    same = {place: {"n": number} for number, place in enumerate(places) if place[-1] == "facts"}
    assert await any_home.records(None, "facts", "same") == same
    assert [*await any_home.records(None, "facts", "same")] == sorted(same), "in order"
    assert await any_home.records("ann", "facts", "same") == {place: same[place] for place in of_ann}
    async with any_home.open_store("hash") as store:
        for place in places:
            await store.adelete(place, "same")
    assert sorted(await any_home.list_keys(("ann", "100%"))) == [(places[0], "k0"), ((*places[0], "deep"), "k")]
    assert await any_home.list_keys(("ann", "100_")) == [(places[1], "k1")]
    assert await any_home.list_keys(("ann", r"a\b")) == [(places[4], "k4")]
    assert (await any_home.read_embedder()).startswith("hash-1:512")
    assert await any_home.find_damage() in ([], [f"{any_home.path.parent / 'any' / 'checkpoints.db'} is missing."])


@slow
async def test_its_size_grows_with_what_is_played(any_home):
    async with opened(any_home) as game:
        await say(game, MIRA)
        first = await any_home.size()
        for number in range(8):
            await say(game, f"I shout {'herons ' * 400}{number}")
        assert await any_home.size() > first > 0
    assert await any_home.find_damage() == []


async def test_a_secret_is_made_once_for_all(any_home):
    same = await asyncio.gather(*(asyncio.to_thread(any_home.secret, "guest key") for _ in range(4)))
    assert len({*same}) == 1
    assert len(same[0]) >= 32
    assert any_home.secret("another") != same[0]


async def test_costs_are_kept_beside_the_game(any_home):
    meter = UsageMeter()
    meter._cost = Cost(1, 7, 3)
    async with any_home.open_store("hash") as store:
        await meter.keep(store, "ann", "isle")
    assert (await costs_of(any_home, "ann", "isle")).total[:3] == (1, 7, 3)


@slow
def test_a_campaign_is_renamed_on_the_page(any_home):
    with page_server(any_home) as server, Visitor(server.url) as ann:
        ann.say(MIRA)
        ann.say("look around")
        moved = ann.post("rename", name="reef")
        assert (moved.status_code, moved.headers["hx-redirect"]) == (204, "/c/reef/")
        assert "Mira" in ann.web.get("/c/reef/").text
        old = ann.get()
        assert (old.status_code, "This campaign is called “reef” now." in old.text) == (410, True)
        ann.path = "/c/reef/"
        ann.say("I look at the boats.")
        assert "look at the boats" in ann.get().text


@pytest.mark.parametrize(
    "words", ["\0", "a\0b", "%s %(x)s", "'; DROP TABLE store; --", "\ud800", "{}", "日本 🐉"], ids=ascii
)
@slow
async def test_odd_words_are_played_and_kept(any_home, words):
    async with opened(any_home) as game:
        await say(game, MIRA)
        with suppress(QuestbookError):  # such as half a character; the same in both
            await say(game, f"I say {words} to the heron")
        assert (await game.saved_game()).turn in (1, 2)
        await say(game, "look around")
        assert (await game.saved_game()).last_reply


# Who holds a campaign.

HOLD = """
import asyncio, sys
from pathlib import Path
from questbook.graphs.local.home import hold_campaign
from questbook.graphs.local.homes import find_home, home_at
async def main():
    home = home_at(sys.argv[1], Path(sys.argv[2]))
    async with hold_campaign(home, "ann", "isle"):
        print("held", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
asyncio.run(main())
"""


def place_of(home):
    return getattr(home, "url", str(home.path))


@pytest.fixture
def holder(any_home):
    """Another process that holds the campaign "isle"."""
    process = start_beside("-c", HOLD, place_of(any_home), any_home.path, file="-u")
    assert process.stdout.readline() == "held\n", process.stderr.read()
    yield process
    process.kill()
    process.communicate()


async def test_an_assistant_that_is_open_is_called_so_with_the_flag_of_its_command(any_home):
    for campaign, name in (("companion", "companion"), ("companion:work", "work")):
        said = (
            f"Assistant '{name}' is open in another terminal or page. Close it, or talk to another: --assistant NAME."
        )
        async with hold_campaign(any_home, "ann", campaign):
            with pytest.raises(CampaignBusyError, match=said):
                await hold_campaign(any_home, "ann", campaign).__aenter__()


@slow
async def test_a_campaign_is_another_process_s_until_that_is_killed(any_home, holder):
    with pytest.raises(CampaignBusyError, match="Campaign 'isle' is open in another terminal") as refused:
        await hold_campaign(any_home, "ann", "isle").__aenter__()
    has_names = hasattr(any_home, "url")
    assert refused.value.holder.endswith(f":{holder.pid}") if has_names else refused.value.holder == ""
    assert (f"It is held by {refused.value.holder}." in str(refused.value)) is has_names
    async with hold_campaign(any_home, "ann", "reef"):
        pass
    holding = any_home.hold(thread_id_of("ann", "isle"), "busy", 30)  # kept: it frees the lock when it is gone
    waiting = asyncio.create_task(holding.__aenter__())
    await asyncio.sleep(0.3)
    assert not waiting.done()
    holder.kill()
    await (await asyncio.wait_for(waiting, 30)).check()
    await holding.__aexit__(None, None, None)


async def test_one_process_holds_a_campaign_once_and_waits_for_itself(any_home):
    async with hold_campaign(any_home, "ann", "isle"):
        with pytest.raises(CampaignBusyError, match="open in another terminal"):
            async with any_home.hold(thread_id_of("ann", "isle"), "It is open in another terminal.", 0.3):
                pass
        async with hold_campaign(any_home, "ann", "reef"):
            pass
    async with hold_campaign(any_home, "ann", "isle") as held:
        await held.check()


async def test_who_waits_and_is_cancelled_holds_nothing(any_home):
    async with any_home.keep_open():
        async with hold_campaign(any_home, "ann", "isle"):
            waiting = asyncio.create_task(any_home.hold(thread_id_of("ann", "isle"), "busy", 30).__aenter__())
            await asyncio.sleep(0.2)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
        async with hold_campaign(any_home, "ann", "isle"):
            pass


async def test_a_lock_whose_session_ended_is_taken_again(postgres):
    async with hold_campaign(postgres, "ann", "isle") as held, hold_campaign(postgres, "ann", "reef") as other:
        assert end_sessions(postgres.url, OF_LOCKS) == 1
        await held.check()
        await other.check()
        async with home_at(postgres.url, postgres.path).keep_open():
            with pytest.raises(CampaignBusyError):
                await hold_campaign(home_at(postgres.url, postgres.path), "ann", "reef").__aenter__()


async def test_a_lock_that_another_took_meanwhile_is_lost_and_no_turn_is_played(postgres):
    async with opened(postgres) as game, hold_campaign(postgres, "ann", "isle") as game.held:
        await say(game, MIRA)
        end_sessions(postgres.url, OF_LOCKS)
        theirs = SessionLocks(postgres.url)  # as another process has it
        assert await asyncio.to_thread(theirs.take, game.thread_id)
        for _ in range(2):
            with pytest.raises(CampaignBusyError, match=r"is open in another terminal.*It is held by \S+:\d+\.$"):
                await say(game, "look around")
        assert await asyncio.to_thread(theirs.holds, game.thread_id)
        await asyncio.to_thread(theirs.free, game.thread_id)
        await asyncio.to_thread(theirs.close_if_idle)
        with pytest.raises(CampaignBusyError):  # what the other played is not known here
            await say(game, "look around")
    assert await told(postgres) == [MIRA]
    async with hold_campaign(postgres, "ann", "isle"):
        pass


@slow
async def test_connections_that_were_ended_between_two_turns_cost_no_turn(postgres):
    async with opened(postgres) as game, hold_campaign(postgres, "ann", "isle") as game.held:
        await say(game, MIRA)
        assert end_sessions(postgres.url) > 1
        await say(game, "look around")
        assert end_sessions(postgres.url) > 1
        await asyncio.sleep(1.1)
        await say(game, "I look at the boats.")
    assert await told(postgres) == [MIRA, "look around", "I look at the boats."]


async def test_of_many_connections_that_were_ended_at_once_none_is_waited_for(postgres):
    async with postgres.keep_open():
        await asyncio.gather(*(postgres._rows("SELECT pg_sleep(0.1)") for _ in range(30)))
        assert end_sessions(postgres.url) >= 5
        async with asyncio.timeout(5):  # with the pool's own check: half a minute, and then an error
            for _ in range(12):
                await postgres._rows("SELECT 1")


async def test_homes_of_one_database_have_ten_connections_together_and_probes_none_of_their_own(postgres, monkeypatch):
    monkeypatch.setenv("QUESTBOOK_DATABASE", postgres.url)
    count = "SELECT count(*) AS n FROM pg_stat_activity WHERE datname = current_database()"
    async with postgres.keep_open(), postgres._pool() as pool:
        await asyncio.gather(*(find_home()._rows("SELECT pg_sleep(0.1)") for _ in range(30)))
        assert await asyncio.gather(*(find_home().problem() for _ in range(150))) == [""] * 150
        assert pool.get_stats()["connections_num"] <= 10
        assert (await postgres._rows(count))[0]["n"] <= 10
        busy = [asyncio.create_task(postgres._rows("SELECT pg_sleep(3)")) for _ in range(10)]
        await asyncio.sleep(0.5)
        assert await find_home().problem() == "", "who plays does not keep a probe from its answer"
        await asyncio.gather(*busy)
    assert await find_home().problem() == "", "also where nothing else is open"


async def test_a_machine_that_has_vanished_in_the_middle_of_a_question_is_noticed_in_half_a_minute(postgres):
    async with postgres._pool() as pool, pool.connection() as connection:
        assert connection.info.get_parameters()["tcp_user_timeout"] == "30000"


async def test_what_lets_us_connect_but_has_no_database_behind_it_is_not_asked_without_a_pause(postgres, monkeypatch):
    checked = []

    async def fail(connection):
        checked.append(connection)
        raise psycopg.OperationalError("the server closed the connection")

    async with postgres.keep_open(), postgres._pool() as pool:
        monkeypatch.setattr(postgres_home, "_check", fail)
        with pytest.raises(PoolTimeout, match="no connection that works within 3 seconds"):
            await pool.getconn(3.0)
        assert pool.max_size < len(checked) <= pool.max_size + 4, "as many at once as may be broken, then one a second"


END = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = %s"


@slow
async def test_after_a_long_outage_the_database_is_used_again_as_soon_as_it_is_back(postgres):
    name = postgres.url.partition("?")[0].rpartition("/")[2]
    server = postgres.url.replace(f"/{name}?", "/postgres?")
    async with postgres.keep_open(), postgres._pool() as pool:
        pool.reconnect_timeout /= 10
        assert await postgres.problem() == ""
        execute(server, f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
        execute(server, END, name)
        back = time.monotonic() + 4  # psycopg's pool tries after 1, 3 and 7 seconds
        while time.monotonic() < back:
            assert await postgres.problem() == "home"
        execute(server, f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
        assert await postgres.problem() == "", "within two seconds"


@slow
async def test_a_database_that_goes_in_the_middle_of_a_turn_keeps_the_message_and_it_goes_on(postgres, monkeypatch):
    monkeypatch.setattr(postgres_home, "_PATIENCE", 3.0)
    name = postgres.url.partition("?")[0].rpartition("/")[2]
    server = postgres.url.replace(f"/{name}?", "/postgres?")
    async with opened(postgres) as game, hold_campaign(postgres, "ann", "isle") as game.held:
        await say(game, MIRA)

        async def play():
            async for event in game.send("look around"):
                if isinstance(event, ReplyPiece):
                    execute(server, f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
                    execute(server, END, name)

        with pytest.raises(QuestbookError) as failed:
            await play()
        assert "Traceback" not in str(failed.value)
        assert "postgres:" not in str(failed.value)
        with pytest.raises(HomeError, match=r"^Cannot use the database"):
            await say(game, "And now?")
        execute(server, f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
        assert (await game.saved_game()).unanswered == "look around"
        async for _ in game.resume():
            pass
        await game.wait_for_upkeep(30)
        await say(game, "I look at the boats.")
    assert await told(postgres) == [MIRA, "look around", "I look at the boats."]


PLAY = """
import asyncio, sys
from pathlib import Path
from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.local.game import open_game
from questbook.graphs.local.home import CampaignBusyError, hold_campaign
from questbook.graphs.local.homes import find_home, home_at
from questbook.graphs.local.saved_game import thread_id_of
async def main():
    place, files, name, campaigns = sys.argv[1:5]
    home = home_at(place, Path(files))
    for turn in range(4):
        for campaign in campaigns.split(","):
            context = Context(model="offline", user="ann", seed=6, campaign=campaign)
            async with home.hold(thread_id_of("ann", campaign), "busy", 60), open_game(context, home) as game:
                async for _ in game.send(f"I look at {name} {turn}."):
                    pass
                await game.wait_for_upkeep(30)
asyncio.run(main())
"""


@slow
async def test_two_processes_play_campaigns_of_their_own_and_one_together(any_home):
    async with opened(any_home, "both") as game:
        await say(game, MIRA)
    programs = [
        start_beside("-c", PLAY, place_of(any_home), any_home.path, name, f"{name},both", file="-u")
        for name in ("boats", "herons")
    ]
    for program in programs:
        _, errors = await asyncio.to_thread(program.communicate, timeout=200)
        assert program.returncode == 0, errors
    both = await told(any_home, "both")
    assert both[0] == MIRA
    for name in ("boats", "herons"):
        mine = [f"I look at {name} {turn}." for turn in range(4)]
        assert await told(any_home, name) == mine
        assert [words for words in both if name in words] == mine
    assert len(both) == 9
