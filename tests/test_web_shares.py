"""Several people on one server: nobody can take all places, and a name that nobody has played takes none."""

import time

import pytest
from web_server import MIRA, Visitor, Watching, page_server

from questbook.graphs.dungeon_master.context import Context
from questbook.graphs.local.home import Home
from questbook.graphs.web import campaign_pool, play
from questbook.graphs.web.app import create_app
from questbook.graphs.web.guard import PERSON


@pytest.fixture
def server(tmp_path):
    with page_server(tmp_path / "home", log_in=True) as server:
        yield server


def at(server, name, campaign):
    return Visitor(server.url, f"/u/{name}/c/{campaign}/", name).__enter__()


def files_of(server):
    return sorted(path.name for path in server.home.locks.iterdir())


def test_a_name_that_nobody_has_played_takes_no_place_and_leaves_nothing(server, monkeypatch):
    monkeypatch.setattr(campaign_pool, "_MOST_OPEN", 1)
    isle = at(server, "ann", "isle")
    isle.say(MIRA)
    before, watching = files_of(server), Watching(isle)
    for number in range(2):
        other = at(server, "ann", f"other-{number}")
        for view in ("", "story", "panel/tree", "panel/memories", "settings", "chronicle"):
            assert other.get(view).status_code == 200
        Watching(other)
        assert other.post("stop").status_code == 409, "what may change something needs a place"
    assert files_of(server) == before
    assert not watching.ended.is_set()
    monkeypatch.setattr(campaign_pool, "_MOST_OPEN", 9)
    assert [other.post(change).status_code for change in ("stop", "undo", "retry")] == [204, 409, 409]
    assert other.post("say", text="x" * 900_000).status_code == 409
    deadline = time.monotonic() + 10
    while files_of(server) != before:  # it is removed after the answer
        assert time.monotonic() < deadline
        time.sleep(0.02)


async def test_a_new_campaign_is_not_closed_while_a_second_request_begins_it(tmp_path, monkeypatch):
    (tmp_path / "locks").mkdir()
    context = Context.of({"user": "ann", "model": "offline"})
    pool = create_app(context, Home(tmp_path)).state.page.pool
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


def test_a_page_of_a_new_campaign_hears_its_first_turn_from_the_beginning(server):
    ann, other = at(server, "ann", "isle"), at(server, "ann", "isle")
    assert ann.number == "0"
    waiting = Watching(other)
    ann.post("say", text=MIRA, ticket="1")
    assert "retry: 100\n" in waiting.rest() + "\n", "the browser asks again at once"
    kinds = [kind for kind, _ in other.wait_for()]
    assert kinds[0] == "turn"
    assert {"piece", "replied"} <= {*kinds}


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
