"""A guest of a campaign: what of its owner they never see, and that nothing comes once it is shared no more."""

import asyncio
import html
import json
import re

import httpx
import pytest
from page_sessions import token_header
from web_server import MIRA, Visitor, Watching, half_answers, logged_in, page_server

from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.errors import ForgettingError
from questbook.graphs.forgetting import forget
from questbook.graphs.local.file_home import FileHome
from questbook.graphs.local.home import HomeError
from questbook.graphs.web import app_state, play
from questbook.graphs.web.app import create_app
from questbook.graphs.web.open_campaign import OpenCampaign
from questbook.memory.errors import StoreError
from questbook.memory.timeline.namespaces import player_namespace

ISLE = "/u/ann/c/isle/"
AWAY = "The games cannot be reached at the moment. Your message is kept; try again."
NEEDLES = "The player cannot stand needles since her chemotherapy."
LIKES = {"kind": "preference", "text": NEEDLES, "importance": 9, "campaign": "another"}
VIEWS = [
    "", "story", "earlier?before=9", "panel/sheet", "panel/quest", "panel/memories", "panel/dice", "panel/summary",
    "panel/tree", "fidelity", "chronicle", "chronicle.md", "search?words=needles+chemotherapy", "behind", "settings",
    "compare?one=main&other=", "field?page=quest&path=people", "field?page=character&path=name", "memory?key=limit",
    "events?after=0", "export",
]  # fmt: skip


@pytest.fixture
def server(tmp_path, monkeypatch):
    monkeypatch.setattr(play, "_LONGEST_STREAM", 2.0)  # so that a test may read a stream to its end
    monkeypatch.setattr(play, "_BEAT_SECONDS", 0.2)
    with page_server(tmp_path / "home", log_in=True, developer=True) as server:
        yield server


@pytest.fixture
def ann(server):
    with Visitor(server.url, ISLE, "ann") as ann:
        yield ann


@pytest.fixture
def bob(server, ann):
    ann.say(MIRA)
    share(ann, "bob")
    with Visitor(server.url, ISLE, "bob") as bob:
        yield bob


def share(owner, guests):
    assert owner.post("share", guests=guests).status_code == 200


async def note(home, *more):
    async with home.open_store() as store:
        await store.aput(player_namespace("ann", "facts"), "limit", LIKES)
        for key, text in enumerate(["The lantern of Gull Quay is green.", *more]):
            lore = {"kind": "lore", "text": text, "source": "gate.md"}
            await store.aput(("ann", "isle", "lore"), f"{key}", lore)


@pytest.mark.slow
def test_guests_see_the_campaign_s_memories_and_nothing_of_the_owner_from_other_campaigns(server, ann, bob):
    asyncio.run(note(server.home))
    bob.say("What about the lantern of Gull Quay?")
    for path in ("panel/memories", "", "search?words=lantern"):
        assert "lantern of Gull Quay is green" in bob.get(path).text
    moments = bob.say("I look around.") + bob.say("I look around again.")
    assert "needles" in ann.get("panel/memories").text, "the owner sees it"
    assert "needles" in ann.get("").text
    assert "stand needles" in ann.get("search?words=chemotherapy").text
    assert "needles" in ann.get("behind").text
    for view in VIEWS:
        words = bob.get(view).text.replace("needles chemotherapy", "").replace("needles+chemotherapy", "")
        assert "needles" not in words, view
        assert "chemotherapy" not in words, view
    assert "needles" not in json.dumps(moments)
    assert bob.get("behind").status_code == 403


@pytest.mark.slow
def test_what_the_page_takes_and_shows_at_most(server, ann):
    ann.say(MIRA)
    guests = [f"guest {n}" for n in range(19)]
    shared = [ann.post("share", guests=",".join([*guests, *more])) for more in (["x" * 200], ["x" * 201], ["x", "y"])]
    assert [answer.status_code for answer in shared] == [200, 409, 409], "20 people, each of 200 characters"
    files = [("files", (f"{n}.exe", b"MZ")) for n in range(21)]
    assert [ann.web.post(f"{ISLE}lore", files=files[:n]).status_code for n in (20, 21)] == [200, 400]
    ann.post("wish", text="wx" * 301, turns="100")
    page = ann.get("").text
    assert [told in page for told in (f">{'wx' * 300}<", "for 99 more turns")] == [True, True]
    asyncio.run(note(server.home, *(f"A lantern hangs on pier {n}." for n in range(20))))
    assert ann.get("search?words=lantern").text.count("<li>") == 20


@pytest.mark.slow
def test_a_guest_s_card_of_a_memory_does_not_say_that_the_owner_said_the_same_elsewhere(server, ann, bob):
    fact = {"kind": "fact", "text": "Mira cannot swim", "turn": 9, "importance": 5}

    async def note():
        async with server.home.open_store() as store:
            await store.aput(("ann", "isle", "lore"), "open", {"kind": "lore", "text": fact["text"], "source": "a.md"})
            await store.aput(player_namespace("ann", "facts"), "known", fact)

    asyncio.run(note())
    assert ["No message of this line" in visitor.get("memory?key=open").text for visitor in (ann, bob)] == [False, True]
    assert [visitor.get("memory?key=known").status_code for visitor in (ann, bob)] == [200, 404]


@pytest.mark.slow
def test_a_campaign_that_is_put_away_and_back_keeps_its_settings_and_guests(server, ann, bob):
    assert ann.post("settings", temperature="0.25").status_code == 200
    for away in ("1", "0"):
        assert ann.post("put-away", away=away).status_code == 204
        assert ("Put away (1)" in ann.web.get("/").text) == (away == "1")
        assert 'value="bob"' in ann.get("settings").text
        assert 'value="0.25"' in ann.get("settings").text
        assert bob.get("story").status_code == 200
        assert "isle" in bob.web.get("/").text


@pytest.fixture
def watching(server, ann, bob, monkeypatch):
    """Bob's open event stream and Ann's, in which nothing comes by the clock alone."""
    monkeypatch.setattr(play, "_LONGEST_STREAM", 60.0)
    monkeypatch.setattr(play, "_BEAT_SECONDS", 60.0)
    bob.open()
    return Watching(bob), Watching(Visitor(server.url, ISLE, "ann").__enter__())


def test_who_is_no_guest_any_more_hears_nothing_of_what_comes(ann, bob, watching):
    his, mine = watching
    ann.say("I whistle.")
    his.wait_for("whistle")
    share(ann, "eve")
    rest = his.rest()  # at once, though nothing is said any more
    ann.say("The password is swordfish.")
    mine.wait_for("swordfish")
    assert "swordfish" not in rest
    assert "event: gone" in rest
    assert bob.get("events").status_code == 404
    assert bob.get("story").status_code == 404
    assert not mine.ended.is_set(), "the owner's goes on"


def test_a_reply_that_is_being_told_stops_for_who_is_no_guest_any_more(ann, watching):
    his, mine = watching
    with half_answers(4) as goes_on:
        ann.post("say", text="I look around.", ticket="1")
        his.wait_for("event: piece")
        mine.wait_for("event: piece")
        share(ann, "")
        goes_on.set()
        mine.wait_for("event: replied")
    rest = his.rest()
    assert "event: replied" not in rest
    assert rest.count("event: piece") < 4


@pytest.mark.slow
def test_a_stream_that_is_quiet_asks_again_at_each_beat_and_ends_after_its_time(server, ann, bob, monkeypatch):
    monkeypatch.setattr(play, "_LONGEST_STREAM", 60.0)
    bob.open()
    watching = Watching(bob)
    watching.wait_for("still here")

    async def end():  # not through the page: by the store's own API, or when the campaign is forgotten
        async with server.home.open_store() as store:
            await store.aput(("ann", "isle", "shelf"), "shelf", {"guests": []}, index=False)

    asyncio.run(end())
    assert "event: gone" in watching.rest()
    monkeypatch.setattr(play, "_LONGEST_STREAM", 1.0)
    ann.open()
    mine = Watching(ann)
    assert "gone" not in mine.rest(), "the browser opens it again, and the log-in names who it is"


@pytest.mark.slow
def test_the_stream_of_a_session_that_ended_ends(tmp_path, monkeypatch):
    monkeypatch.setattr(play, "_BEAT_SECONDS", 0.2)
    monkeypatch.setattr("questbook.graphs.web.sign_in._ASKED_SECONDS", 0)
    people = {"ann": "a" * 20, "bob": "b" * 20}
    with page_server(tmp_path / "home", people=people) as server, Visitor(server.url) as ann:
        ann.web.post("/sign-in", data={"token": "a" * 20})
        ann.open()
        watching = Watching(ann)
        watching.wait_for("still here")
        with Visitor(server.url) as bob:
            assert bob.get("events").status_code == 401
            assert bob.web.post("/sign-in", data={"token": "b" * 20}).status_code == 200
            assert ann.web.post("/sign-out").status_code == 401
            assert "event: gone" in watching.rest()
            assert ann.get("events").status_code == 401
            bob.say(MIRA)
            assert "bob: I&#39;m Mira" in bob.get("story").text, "each message says whose it is"


async def test_a_message_says_whose_it_is_once_there_are_guests(tmp_path, monkeypatch):
    said, home = [], FileHome(tmp_path)
    home.locks.mkdir(parents=True)

    async def say(campaign, text, ticket):
        said.append(text)

    monkeypatch.setattr(OpenCampaign, "say", say)
    app = create_app(Context(user="ann", model="offline"), home, log_in=True)
    transport = httpx.ASGITransport(logged_in(app))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as web:
        for name, path, form in (
            ("ann", "say", {"text": "I wait."}),
            ("ann", "share", {"guests": "bob"}),
            ("bob", "say", {"text": "I look."}),
        ):
            await web.post(ISLE + path, data=form, headers={"x-user": name} | token_header(home, name))
    await app.state.page.pool.close()
    assert said == ["I wait.", "bob: I look."]


@pytest.mark.slow
def test_a_renamed_campaign_stays_shared_and_one_from_a_file_is_shared_with_nobody(ann, bob):
    file = ann.get("export").content
    brought = ann.web.post("/import", files={"file": ("isle.zip", file)}, data={"name": "copy"})
    assert brought.status_code == 204, brought.text
    assert ann.web.get("/u/ann/c/copy/").status_code == 200
    assert bob.web.get("/u/ann/c/copy/").status_code == 404
    assert ann.post("rename", name="reef").status_code == 204
    assert bob.web.get("/u/ann/c/reef/").status_code == 200
    led = bob.get("")
    assert (led.status_code, led.headers["questbook-moved-to"]) == (410, "/u/ann/c/reef")
    with Visitor(str(ann.web.base_url), "/u/ann/c/reef/", "ann") as reef:
        assert reef.post("share", guests="").status_code == 200
    assert bob.get("").status_code == 404, "who is no guest of it learns no name"


def test_who_forgets_learns_and_changes_nothing_of_what_others_keep(server, ann, monkeypatch):
    ann.say(MIRA)
    typed = server.home.path / "history"
    typed.write_text("\n# 2026-11-28\n+the password is hunter22\n", "utf-8")
    said, calls = {}, []
    whole = forget.compact

    async def compact(*given, **named):
        calls.append(given[3])
        if len(calls) == 1:
            raise ForgettingError("Another program reads the checkpoints.")
        await whole(*given, **named)

    monkeypatch.setattr(forget, "compact", compact)
    with Visitor(server.url, "/u/eve/c/cape/", "eve") as eve:
        eve.say("I'm Eve, a human wizard from Wexcombe.")
        for words in ("halfling thief", "hunter22", "nowhere said"):
            answers = [eve.post("forget", words=words, **sure) for sure in ({}, {"sure": "1"})]
            assert [answer.status_code for answer in answers] == [200, 200]
            said[words] = [answer.text.replace(words, "…") for answer in answers]
        assert said["halfling thief"] == said["hunter22"] == said["nowhere said"]
        assert calls == [], "no file is written again while others wait"
        assert eve.post("forget", words="Wexcombe", sure="1").status_code == 409
        for _ in range(2):
            assert eve.post("forget", words="Wexcombe", sure="1").status_code == 200
        assert len(calls) == 2, "what failed is done again, once"
        assert "Wexcombe" not in eve.get("story").text
    assert "hunter22" in typed.read_text("utf-8")


def test_one_person_at_home_forgets_what_was_typed_too(tmp_path):
    with page_server(tmp_path / "home") as server, Visitor(server.url) as ann:
        ann.say(MIRA)
        typed = server.home.path / "history"
        typed.write_text("\n# 2026-11-28\n+the password is hunter22\n", "utf-8")
        assert "Altogether: 1 typed line." in ann.post("forget", words="hunter22").text
        assert "Forgotten: 1 typed line." in ann.post("forget", words="hunter22", sure="1").text
        assert "hunter22" not in typed.read_text("utf-8")


def test_what_another_user_wrote_into_the_store_leaves_the_list_of_campaigns_as_it_is(server, ann, bob):
    async def write():
        async with server.home.open_store() as store:
            for place in (("eve", "~zz", "shelf"), ("~e", "cape", "shelf"), ("bob", "~zz", "shelf")):
                await store.aput(place, "shelf", {"guests": ["bob"], "put_away": True}, index=False)

    asyncio.run(write())
    front = bob.web.get("/")
    assert (front.status_code, "isle" in front.text, "zz" in front.text) == (200, True, False)


def test_where_the_server_keeps_its_data_is_for_its_log_alone(server, ann, bob, monkeypatch, caplog):
    async def show(campaign, event, live):
        if live.kept.is_set():
            raise errors[0]

    monkeypatch.setattr(OpenCampaign, "_show", show)
    for error, told in (
        (HomeError("Cannot use the database questbook at 10.0.0.5."), AWAY),
        (StoreError("Cannot use /srv/questbook/10.0.0.5."), AWAY),
        (RuntimeError("no route to 10.0.0.5"), "The turn failed; the server's log says why. Your message is kept;"),
    ):
        errors = [error]
        caplog.clear()
        ann.open()
        assert ann.post("say", text="I look around.", ticket="").status_code == 200
        with pytest.raises(AssertionError, match=re.escape(told)) as said:
            ann.wait_for()
        for page in (ann.get("").text, bob.get("").text, str(said.value)):
            assert told in html.unescape(page)
            assert "10.0.0.5" not in page
        assert "10.0.0.5" in caplog.text


async def test_a_stream_whose_guests_cannot_be_looked_up_ends_and_is_asked_for_again(tmp_path, monkeypatch):
    home, asked = FileHome(tmp_path), []
    home.locks.mkdir(parents=True)
    monkeypatch.setattr(play, "_BEAT_SECONDS", 0.05)
    app = create_app(Context(user="ann", model="offline"), home, log_in=True)
    find = app_state.guests_of

    async def guests_of(*names):
        asked.append(names)
        if len(asked) > 2:
            raise HomeError("Cannot use the database: it was stopped.")
        return await find(*names)

    async with httpx.AsyncClient(transport=httpx.ASGITransport(logged_in(app)), base_url="http://localhost") as web:
        shared = {"guests": "bob"}
        await web.post(f"{ISLE}share", data=shared, headers={"x-user": "ann"} | token_header(home, "ann"))
        monkeypatch.setattr(app_state, "guests_of", guests_of)
        stream = await web.get(f"{ISLE}events?after=0", headers={"x-user": "bob"})
    await app.state.page.pool.close()
    assert (stream.status_code, ": still here" in stream.text, "gone" in stream.text) == (200, True, False)
    assert len(asked) == 3
