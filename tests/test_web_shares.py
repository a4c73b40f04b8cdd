"""Several people on one server: nobody can take all places, and a name that nobody has played takes none."""

import asyncio
import re
import time
from contextlib import suppress

import httpx
import pytest
from conftest import MIRA as CHARACTER
from held import hold_campaign
from postgres import execute
from scripted import call, say
from web_server import MIRA, Visitor, Watching, page_server

from questbook.graphs.companion.context import CompanionContext
from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.errors import ModelError, SettingsError
from questbook.graphs.events import ReplyPiece
from questbook.graphs.local.databases import open_store
from questbook.graphs.local.file_home import FileHome
from questbook.graphs.local.game import open_game
from questbook.graphs.local.home import CampaignBusyError, HomeError
from questbook.graphs.web import campaign_pool, play
from questbook.graphs.web.app import create_app
from questbook.graphs.web.campaign_pool import COMPANION, GAME
from questbook.graphs.web.open_campaign import BusyError, OpenCampaign
from questbook.graphs.web.sign_in import PERSON
from questbook.memory.timeline.namespaces import campaign_namespace


@pytest.fixture
def server(tmp_path):
    with page_server(tmp_path / "home", log_in=True) as server:
        yield server


def at(server, name, campaign):
    return Visitor(server.url, f"/u/{name}/c/{campaign}/", name).__enter__()


def locks_of(server):
    """What is held, and the files that it leaves."""
    if isinstance(server.home, FileHome):
        return sorted(path.name for path in server.home.locks.iterdir())
    held = "SELECT objid FROM pg_locks JOIN pg_database d ON d.oid = database AND datname = current_database()"
    return sorted(execute(server.home.url, f"{held} WHERE locktype = 'advisory'"))


@pytest.mark.slow
def test_a_name_that_nobody_has_played_takes_no_place_and_leaves_nothing(server, monkeypatch):
    monkeypatch.setattr(campaign_pool, "_MOST_OPEN", 1)
    isle = at(server, "ann", "isle")
    isle.say(MIRA)
    before, watching = locks_of(server), Watching(isle)
    for number in range(2):
        other = at(server, "ann", f"other-{number}")
        for view in ("", "story", "panel/tree", "panel/memories", "settings", "chronicle"):
            assert other.get(view).status_code == 200
        Watching(other)
        assert other.post("stop").status_code == 409, "what may change something needs a place"
    assert locks_of(server) == before
    assert not watching.ended.is_set()
    monkeypatch.setattr(campaign_pool, "_MOST_OPEN", 9)
    assert [other.post(change).status_code for change in ("stop", "undo", "retry")] == [204, 409, 409]
    assert other.post("say", text="x" * 900_000).status_code == 409
    deadline = time.monotonic() + 10
    while locks_of(server) != before:  # it is removed after the answer
        assert time.monotonic() < deadline
        time.sleep(0.02)


async def test_a_new_campaign_is_not_closed_while_a_second_request_begins_it(tmp_path, monkeypatch):
    (tmp_path / "locks").mkdir()
    context = Context.of({"user": "ann", "model": "offline"})
    pool = create_app(context, FileHome(tmp_path)).state.page.pool
    first, second, third = ({"method": "POST", PERSON: "ann", "questbook_campaigns": []} for _ in range(3))
    taken = []

    async def saved_game():
        taken.append(taken or await pool.get(second, "isle", campaign_pool.GAME, "ann"))

    async def use(scope, *_):
        campaign = await pool.get(scope, "isle", campaign_pool.GAME, "ann")
        monkeypatch.setattr(campaign.game, "saved_game", saved_game)

    await pool.keep_open(use)(first, None, None)
    assert await pool.get(third, "isle", campaign_pool.GAME, "ann") is taken[0]
    await pool.close()


async def test_a_campaign_that_cannot_be_closed_leaves_the_others_of_its_request_idle(tmp_path, monkeypatch):
    (tmp_path / "locks").mkdir()
    pool = create_app(Context.of({"user": "ann", "model": "offline"}), FileHome(tmp_path)).state.page.pool
    scope, used = {"method": "POST", PERSON: "ann", "questbook_campaigns": []}, []

    async def close():
        raise HomeError("The disk is gone.")

    async def use(scope, *_):
        used.extend([await pool.get(scope, name, campaign_pool.GAME, "ann") for name in ("isle", "coast")])
        monkeypatch.setattr(used[0], "close", close)

    with pytest.raises(HomeError, match="gone"):
        await pool.keep_open(use)(scope, None, None)
    assert [campaign.is_idle for campaign in used] == [True, True]
    monkeypatch.undo()
    await pool.close()


async def test_a_database_that_goes_away_after_an_answer_closes_no_campaign_and_fails_no_request(
    tmp_path, monkeypatch, caplog
):
    (tmp_path / "locks").mkdir()
    pool = create_app(Context.of({"user": "ann", "model": "offline"}), FileHome(tmp_path)).state.page.pool
    scope, later = ({"method": "POST", PERSON: "ann", "questbook_campaigns": []} for _ in range(2))
    opened = []

    async def saved_game():
        raise HomeError("The database was stopped.")

    async def use(scope, *_):
        opened.append(await pool.get(scope, "isle", campaign_pool.GAME, "ann"))
        monkeypatch.setattr(opened[0].game, "saved_game", saved_game)

    await pool.keep_open(use)(scope, None, None)
    assert "Whether campaign 'isle' has begun cannot be read: The database was stopped." in caplog.text
    assert await pool.get(later, "isle", campaign_pool.GAME, "ann") is opened[0]
    await pool.close()
    async with open_game(opened[0].game.context, FileHome(tmp_path)):
        pass  # it holds the lock no more


@pytest.mark.slow
def test_a_page_of_a_new_campaign_hears_its_first_turn_from_the_beginning(server):
    ann, other = at(server, "ann", "isle"), at(server, "ann", "isle")
    assert ann.number == "0"
    waiting = Watching(other)
    ann.post("say", text=MIRA, ticket="1")
    assert "retry: 100\n" in waiting.rest() + "\n", "the browser asks again at once"
    kinds = [kind for kind, _ in other.wait_for()]
    assert kinds[0] == "turn"
    assert {"piece", "replied"} <= {*kinds}


@pytest.mark.slow
def test_who_holds_most_campaigns_gives_one_up_for_who_has_less(server, monkeypatch):
    monkeypatch.setattr(campaign_pool, "_MOST_OPEN", 4)
    hers = [at(server, "ann", f"isle-{number}") for number in range(4)]
    for visitor in hers:
        visitor.say(MIRA)
    streams = [Watching(visitor) for visitor in hers]
    more = at(server, "ann", "more")
    assert "4 campaigns are open" in more.post("say", text=MIRA, ticket="1").text
    his = [at(server, "bob", f"isle-{number}") for number in range(2)]
    for visitor, stream in zip(his, streams, strict=False):
        assert visitor.say(MIRA)
        stream.rest()  # of the campaign that she used least
        Watching(visitor)
    assert [stream.ended.is_set() for stream in streams] == [True, True, False, False]
    third = at(server, "bob", "isle-2")
    assert third.post("say", text=MIRA, ticket="1").status_code == 409, "they have as many as each other"
    assert hers[3].say("I look around.")


@pytest.mark.slow
def test_who_holds_most_streams_gives_one_up_for_who_has_less(server, monkeypatch):
    monkeypatch.setattr(play, "_MOST_STREAMS", 3)
    ann, bob = at(server, "ann", "isle"), at(server, "bob", "isle")
    ann.say(MIRA)
    bob.say(MIRA)
    hers = [Watching(ann) for _ in range(3)]
    assert ann.get("events").status_code == 503
    his = Watching(bob)
    assert "gone" not in hers[0].rest()
    assert bob.get("events").status_code == 503
    bob.post("say", text="I whistle.", ticket="1")
    his.wait_for("whistle")
    assert [stream.ended.is_set() for stream in (*hers, his)] == [True, False, False, False]


def asking(method="GET", person="ann"):
    """The scope of a request that uses campaigns."""
    return {"method": method, PERSON: person, "questbook_campaigns": []}


@pytest.fixture
async def pool(tmp_path):
    """The campaigns of a directory, with its settings."""
    (tmp_path / "campaigns").mkdir()
    page = create_app(Context.of({"user": "ann", "model": "offline", "seed": 6}), FileHome(tmp_path)).state.page
    yield page.pool
    await page.pool.close()


async def play_to(home, *words, campaign="isle", answer=None):
    """Play turns as the terminal does; with an answer of the model, in its words."""
    named = {"model": "offline" if answer is None else "scripted", "user": "ann", "campaign": campaign}
    async with open_game(Context.of(None, seed=6, **named), home) as game:
        for said in words:
            with suppress(ModelError):
                async for _ in game.send(said):
                    pass


async def test_who_only_looks_at_a_new_name_gets_a_preview_and_who_says_something_the_campaign(pool, tmp_path):
    looks = [await pool.get(asking(method), "isle", GAME, "ann") for method in ("GET", "HEAD")]
    assert [(campaign.is_preview, campaign.is_new, campaign.number) for campaign in looks] == [(True, True, 0)] * 2
    assert looks[0] is not looks[1], "each is for its request alone"
    other = await pool.get(asking(), "reef", GAME, "ann")
    opened = await pool.get(asking("POST"), "isle", GAME, "ann")
    assert (opened.is_preview, opened.is_new, opened.person, opened.requests) == (False, True, "ann", 1)
    assert await pool.get(asking(), "isle", GAME, "ann") is opened
    others = [(COMPANION, "ann"), (GAME, "bob")]
    assert opened not in [await pool.get(asking("POST"), "isle", machine, owner) for machine, owner in others]
    for look in looks:
        assert [update async for update in look.updates(0)] == [], "the browser asks again"
    with pytest.raises(TimeoutError):  # who looks at another name still waits
        async with asyncio.timeout(0.02):
            await anext(other.updates(0))


async def test_streams_end_with_the_server_also_those_of_campaigns_that_have_not_begun(pool):
    look, opened = await pool.get(asking(), "isle", GAME, "ann"), await pool.get(asking("POST"), "reef", GAME, "ann")
    await pool.end_streams()
    assert [[update async for update in campaign.updates(campaign.number)] for campaign in (look, opened)] == [[], []]


async def test_a_campaign_that_nobody_uses_any_more_is_closed_and_a_terminal_may_open_it(pool, tmp_path, monkeypatch):
    home = FileHome(tmp_path)
    await play_to(home, MIRA)
    monkeypatch.setattr(campaign_pool, "_IDLE_SECONDS", 0.02)
    scopes = [asking(), asking()]
    used = []

    async def use(scope, *_):
        used.append(await pool.get(scope, "isle", GAME, "ann"))
        if scope is scopes[1]:
            with pytest.raises(CampaignBusyError), hold_campaign(home, "ann", "isle"):
                raise AssertionError("a request uses it")

    for scope in scopes:
        await pool.keep_open(use)(scope, None, None)
    assert used[0] is used[1]
    async with asyncio.timeout(10):
        while True:
            with suppress(CampaignBusyError), hold_campaign(home, "ann", "isle"):
                break
            await asyncio.sleep(0.01)
    assert await pool.get(asking(), "isle", GAME, "ann") is not used[0]


async def test_a_campaign_stays_open_a_while_after_its_last_request_if_there_is_room(pool, tmp_path):
    await play_to(FileHome(tmp_path), MIRA)
    used = []

    async def use(scope, *_):
        used.append(await pool.get(scope, "isle", GAME, "ann"))
        used[0].used = 0.0  # a request that lasts: at its end it counts as used

    await pool.keep_open(use)(asking(), None, None)
    await pool.get(asking("POST"), "reef", GAME, "ann")
    assert await pool.get(asking(), "isle", GAME, "ann") is used[0]


async def test_of_who_has_most_a_campaign_that_is_replying_goes_last(pool, monkeypatch):
    monkeypatch.setattr(campaign_pool, "_MOST_OPEN", 2)
    replying, later = [await pool.get(asking("POST"), name, GAME, "ann") for name in ("isle", "reef")]

    async def reply():
        yield ReplyPiece("The dragon", "a")
        await asyncio.Event().wait()

    await replying.play(reply(), "I knock.")
    await pool.get(asking("POST", "bob"), "bay", GAME, "bob")
    assert await pool.get(asking("POST"), "isle", GAME, "ann") is replying
    assert [update async for update in later.updates(later.number)] == [], "it was closed"


async def test_a_page_that_is_made_while_its_turn_ends_shows_the_turn_and_hears_its_end(tmp_path, monkeypatch):
    app = create_app(Context.of({"user": "ann", "model": "offline"}), FileHome(tmp_path))
    await play_to(FileHome(tmp_path), MIRA)
    campaign, ends = await app.state.page.pool.get(asking("POST"), "isle", GAME, "ann"), asyncio.Event()
    read = campaign.game.saved_game

    async def reply():
        yield ReplyPiece("The dragon", "a")
        await ends.wait()

    async def saved_game():
        saved = await read()
        ends.set()
        while campaign.live is not None:
            await asyncio.sleep(0.01)
        return saved

    await campaign.play(reply(), "I knock.")
    monkeypatch.setattr(campaign.game, "saved_game", saved_game)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as web:
        page = (await web.get("/c/isle/")).text
        assert '<blockquote class="player">I knock.' in page.partition('id="live"')[2]
        after = re.search(r'data-number="([0-9]+)"', page)[1]
        heard = await web.get(f"/c/isle/events?after={after}&brief=1")
    assert "event: pages" in heard.text
    await app.state.page.pool.close()


async def test_a_companion_that_is_opened_again_has_its_own_settings(pool):
    companion = await pool.get(asking("POST"), "pal", COMPANION, "ann")
    await campaign_pool.change_record(companion, {"settings": {"seed": 9}})
    await pool.leave(companion)
    again = await pool.get(asking("POST"), "pal", COMPANION, "ann")
    assert again is not companion
    assert again.game.context.seed == 9


async def test_when_all_places_are_taken_what_nobody_uses_gives_way_at_once(pool, tmp_path, monkeypatch):
    monkeypatch.setattr(campaign_pool, "_MOST_OPEN", 1)
    await play_to(FileHome(tmp_path), MIRA)

    async def use(scope, *_):
        await pool.get(scope, "isle", GAME, "ann")

    await pool.keep_open(use)(asking(), None, None)
    held = await pool.get(asking("POST"), "reef", GAME, "ann")
    said = r"1 campaigns are open here\. Wait until one is no longer played\."
    with pytest.raises(BusyError, match=said):
        await pool.get(asking("POST"), "isle", GAME, "ann")
    assert await pool.get(asking(), "reef", GAME, "ann") is held


async def test_when_all_places_are_taken_only_the_campaign_gives_way_that_was_unused_for_longest(
    pool, tmp_path, monkeypatch
):
    monkeypatch.setattr(campaign_pool, "_MOST_OPEN", 3)
    names, used = ("isle", "reef", "bay"), {}
    for name in names:
        await play_to(FileHome(tmp_path), MIRA, campaign=name)

    async def use(scope, *_):
        used[scope["name"]] = await pool.get(scope, scope["name"], GAME, "ann")

    for name in (*names, "isle"):
        await pool.keep_open(use)(asking() | {"name": name}, None, None)
    await pool.get(asking("POST"), "cave", GAME, "ann")
    assert [await pool.get(asking(), name, GAME, "ann") is used[name] for name in ("isle", "bay")] == [True, True]
    assert len(pool) == 3


async def test_who_waits_too_long_until_a_campaign_is_opened_is_refused_and_others_do_not_wait(pool, monkeypatch):
    monkeypatch.setattr(campaign_pool, "_PATIENCE_SECONDS", 0.05)
    read, is_there = campaign_pool.settings_of, asyncio.Event()

    async def slow(home, owner, name):
        if name == "isle":
            await is_there.wait()
        return await read(home, owner, name)

    monkeypatch.setattr(campaign_pool, "settings_of", slow)
    first = asyncio.create_task(pool.get(asking("POST"), "isle", GAME, "ann"))
    await asyncio.sleep(0)
    async with asyncio.timeout(5):
        with pytest.raises(BusyError, match="being opened"):
            await pool.get(asking("POST"), "isle", GAME, "ann")
        assert (await pool.get(asking("POST"), "reef", GAME, "ann")).game.context.campaign == "reef"
    is_there.set()
    campaign = await first
    assert await pool.get(asking("POST"), "isle", GAME, "ann") is campaign


async def test_no_more_are_open_than_there_are_places_when_many_are_opened_at_once(pool, monkeypatch):
    monkeypatch.setattr(campaign_pool, "_MOST_OPEN", 3)
    names = [f"isle{number}" for number in range(12)]
    done = await asyncio.gather(
        *(pool.get(asking("POST"), name, GAME, "ann") for name in names), return_exceptions=True
    )
    assert len(pool) == 3
    assert {type(each) for each in done} <= {OpenCampaign, BusyError}
    assert len({each.game.context.campaign for each in done if isinstance(each, OpenCampaign)}) >= 3


async def test_a_message_that_was_left_without_a_reply_is_answered_when_its_campaign_is_opened(pool, tmp_path, model):
    model.queue("interview", ModelError("The model is busy."))
    await play_to(FileHome(tmp_path), "I'm Mira.", answer=True)
    campaign = await pool.get(asking(), "isle", GAME, "ann")
    assert campaign.live.player == "I'm Mira."
    await campaign.wait_for_reply(10)
    assert (await campaign.game.saved_game()).unanswered is None
    assert not campaign.is_new


async def test_a_campaign_that_studio_began_is_gone_on_with(pool, tmp_path, model):
    async with open_game(Context.of(None, model="scripted", user="ann", campaign="isle"), FileHome(tmp_path)) as game:
        graph, said = await game.load(), {"messages": [("user", "I'm Mira.")]}
        model.queue("interview", say("", call("CharacterNotebook", **CHARACTER)))
        await graph.ainvoke(said, {"configurable": {"thread_id": "in Studio"}}, context=game.context)
        assert await game.saved_game() is None
    campaign = await pool.get(asking(), "isle", GAME, "ann")
    assert (await campaign.game.saved_game()).character.name == "Mira"


async def test_a_campaign_that_cannot_be_opened_is_held_by_nobody(pool, tmp_path, monkeypatch):
    def fail(self):
        raise RuntimeError("no thread can be started")

    await play_to(FileHome(tmp_path), MIRA)
    monkeypatch.setattr(OpenCampaign, "load_ahead", fail)
    with pytest.raises(RuntimeError, match="no thread") as failed:
        await pool.get(asking(), "isle", GAME, "ann")
    with hold_campaign(FileHome(tmp_path), "ann", "isle"):
        assert failed.tb, "not because nobody refers to it any more"


@pytest.mark.parametrize(
    ("holders", "person", "gives_way"),
    [
        ("aaab", "b", "a"),
        ("aab", "b", None),
        ("aaa", "b", "a"),
        ("aa", "b", "a"),
        ("ab", "c", None),
        ("aaa", "a", None),
    ],
)
def test_who_has_most_gives_way_to_who_has_two_less_or_more(holders, person, gives_way):
    assert campaign_pool.who_gives_way(holders, person) == gives_way


def test_a_campaign_s_own_settings_come_before_those_of_all_and_its_weights_one_by_one():
    base = Context.of({"user": "ann", "model": "offline", "recall_tokens": 700, "weights": {"named": 0.9}})
    own = {"temperature": "0.5", "weights": {"words": "0.25"}}
    game = campaign_pool.context_of(base, GAME, "isle", own)
    assert (game.campaign, game.user, game.recall_tokens, game.temperature) == ("isle", "ann", 700, 0.5)
    assert (game.weights.words, game.weights.named, game.weights.phrase) == (0.25, 0.9, base.weights.phrase)
    talk = campaign_pool.context_of(base, COMPANION, "Ada", own)
    assert (type(talk), talk.campaign, talk.user) == (CompanionContext, "companion:Ada", "ann")
    assert (talk.recall_tokens, talk.temperature, talk.weights) == (700, 0.5, game.weights)
    with pytest.raises(SettingsError, match="Setting temperature"):
        campaign_pool.context_of(base, GAME, "isle", {"temperature": "9"})


async def test_what_is_kept_beside_a_campaign_is_read_by_name_and_what_is_odd_counts_as_nothing(pool, tmp_path):
    home, records = FileHome(tmp_path), {
        "isle": {"put_away": True, "settings": {"seed": 3}, "guests": ["bob", "eve"]},
        "a/b": {"put_away": True, "guests": "bob", "settings": [1]},
        "reef": {"put_away": False, "guests": ["bob"]}, "bay": {"put_away": "no"},
    }  # fmt: skip
    async with open_store(home.memory) as store:
        for name, record in records.items():
            await store.aput(campaign_namespace("ann", name, "shelf"), "shelf", record, index=False)
        await store.aput((*campaign_namespace("ann", "deep", "shelf"), "x"), "shelf", {"guests": ["bob"]}, index=False)
    assert await campaign_pool.put_away(home, "ann") == {"isle", "a/b"}
    assert await campaign_pool.put_away(home, "bob") == set()
    assert [await campaign_pool.settings_of(home, "ann", name) for name in ("isle", "a/b", "none")] == [
        {"seed": 3},
        {},
        {},
    ]
    assert [await campaign_pool.guests_of(home, "ann", name) for name in ("isle", "a/b", "none")] == [
        ["bob", "eve"],
        [],
        [],
    ]
    assert sorted(await campaign_pool.shared_with(home, "bob")) == [("ann", "isle"), ("ann", "reef")]
    campaign = await pool.get(asking("POST"), "isle", GAME, "ann")
    await campaign_pool.change_record(campaign, {"guests": []})
    assert await campaign_pool.settings_of(home, "ann", "isle") == {"seed": 3}, "what is not changed stays"
    assert await campaign_pool.shared_with(home, "eve") == []
