"""How much one person may do where several sign in: rates, turns, campaigns, bytes, what is open, and who has none."""

import asyncio
import html
import sqlite3
import time

import pytest
from web_server import MIRA, Visitor, Watching, half_answers, page_server

from questbook.graphs.errors import SettingsError
from questbook.graphs.local.file_home import FileHome
from questbook.graphs.web import limits
from questbook.graphs.web.limits import Limits, Quotas, Rate, Usage, network_of, usage_of


class Clock:
    now = 50.0

    def __call__(self):
        return self.now


def at(server, name="ann", campaign="isle"):
    return Visitor(server.url, f"/u/{name}/c/{campaign}/", name).__enter__()


@pytest.fixture
def served(tmp_path, monkeypatch):
    """A server with a log-in and with some limits."""
    servers = []

    def serve(**most):
        for field, value in most.items():
            monkeypatch.setenv(f"QUESTBOOK_MOST_{field.upper()}", str(value))
        servers.append(page_server(tmp_path / "home", log_in=True))
        return servers[0].__enter__()

    yield serve
    servers[0].__exit__(None, None, None)


def refused(answer, said, wait=0):
    assert answer.status_code == 429, answer.text
    assert said in html.unescape(answer.text)
    seconds = int(answer.headers.get("retry-after", "0"))
    assert 0 < seconds <= wait if wait else not seconds


def test_a_rate_lets_so_many_come_at_once_and_then_one_by_one():
    clock = Clock()
    rate = Rate(3, clock)
    assert [rate.wait("ann") for _ in range(5)] == pytest.approx([0, 0, 0, 20, 20])
    assert rate.wait("bob") == 0
    clock.now += 20
    assert [rate.wait("ann") for _ in range(2)] == pytest.approx([0, 20])
    clock.now += 1000
    assert [rate.wait("ann") for _ in range(4)] == pytest.approx([0, 0, 0, 20]), "what was not used is not saved up"


def test_a_rate_forgets_those_who_did_not_come_again(monkeypatch):
    monkeypatch.setattr(limits, "_MOST_KEYS", 100)
    clock = Clock()
    rate = Rate(1, clock)
    for number in range(150):
        rate.wait(f"{number}")
    assert rate.wait("149") > 0, "those of this minute are known"
    clock.now += 61
    for number in range(60):
        rate.wait(f"new {number}")
    assert len(rate._whole) <= 110


def test_limits_are_settings():
    assert Limits.from_environment({}) == Limits()
    given = Limits.from_environment({"QUESTBOOK_MOST_TURNS": " 7 ", "QUESTBOOK_MOST_SESSION_HOURS": "1"})
    assert given == Limits()._replace(turns=7, session_hours=1)
    for wrong in ("0", "-1", "1.5", "x", "9" * 20, "²"):
        with pytest.raises(SettingsError, match=r"QUESTBOOK_MOST_STREAMS: got .*; expected a whole number from 1 on"):
            Limits.from_environment({"QUESTBOOK_MOST_STREAMS": wrong})


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8::1", "2001:db8::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("testclient", "testclient"),
    ],
)
def test_a_house_has_one_network_of_ipv6(address, network):
    assert network_of(address) == network


@pytest.mark.slow
def test_a_person_plays_so_many_turns_a_minute_and_others_as_many(served):
    server = served(turns=1)
    ann, bob = at(server), at(server, "bob")
    ann.say(MIRA)
    for name in ("say", "retry", "edit", "rewrite"):
        form = {} if name == "retry" else {"text": "I wait."}
        refused(ann.post(name, **form), "You may play 1 turns a minute.", 60)
    refused(ann.post("forget", words="halfling", sure="1"), "You may play 1 turns a minute.", 60)
    assert "halfling" in ann.get("story").text
    assert ann.post("forget", words="halfling").status_code == 200, "it is only looked for"
    assert "I wait." not in ann.get("story").text
    assert ann.post("say", text=" ").status_code == 200, "no words are no turn"
    bob.say(MIRA)


def test_to_open_a_campaign_whose_message_has_no_reply_is_a_turn_or_leaves_the_message(served, monkeypatch):
    server = served()
    ann = at(server)
    ann.say(MIRA)
    with half_answers():
        ann.post("say", text="I look around.", ticket="1")
        server.stop()
    monkeypatch.setenv("QUESTBOOK_MOST_TURNS", "1")
    server.start()
    at(server, campaign="reef").say(MIRA)  # the one turn of this minute
    for _ in range(2):
        story = ann.open()
        assert (story.status_code, "Try again" in story.text, "I look around." in story.text) == (200, True, True)
    server.stop()
    server.start()
    ann.open()
    deadline = time.monotonic() + 10
    while "Try again" in (story := ann.get("story").text) or 'data-turn="2"' not in story:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    refused(ann.post("say", text="I wait."), "You may play 1 turns a minute.", 60)


def test_nobody_lifts_what_a_turn_may_cost_above_what_the_server_says(served, monkeypatch):
    monkeypatch.setenv("QUESTBOOK_MAX_TOOL_ROUNDS", "10")
    server = served()
    ann = at(server)
    ann.say(MIRA)
    for form, most in (
        ({"max_message_chars": "9000"}, "8000"), ({"max_reply_chars": "20001"}, "20000"),
        ({"max_roll_rounds": "5"}, "4"), ({"buffer_tokens": "4001"}, "4000"), ({"buffer": "unbounded"}, "tokens"),
        ({"buffer": "turns", "buffer_turns": "11"}, "10"), ({"model_timeout": "121"}, "120"),
    ):  # fmt: skip
        answer = ann.post("settings", **form)
        assert (answer.status_code, answer.headers["hx-retarget"]) == (409, f"#p-{[*form][-1]}"), form
        assert f"and on this server no campaign has more than {most}" in html.unescape(answer.text)
    with Visitor(server.url, "/u/ann/a/companion/", "ann") as companion:
        companion.say("Hello.")
        assert companion.post("settings", max_tool_rounds="10").status_code == 200, "it is the server's own"
        assert "no campaign has more than 10" in companion.post("settings", max_tool_rounds="11").text
    assert ann.post("settings", max_message_chars="500", buffer="turns", buffer_turns="3").status_code == 200
    refusal = ann.post("say", text="x" * 501, ticket="1")
    assert "The message has 501 characters; at most 500 can be read." in refusal.text

    async def write():  # over an API
        async with server.home.open_store() as store:
            settings = {"max_message_chars": "20000", "buffer": "unbounded"}
            await store.aput(("ann", "cape", "shelf"), "shelf", {"settings": settings}, index=False)

    asyncio.run(write())
    refusal = at(server, campaign="cape").post("say", text="x" * 8001, ticket="1")
    assert "The message has 8,001 characters; at most 8,000 can be read." in refusal.text


@pytest.mark.slow
def test_a_person_has_so_many_campaigns_and_plays_on_in_those(served):
    server = served(campaigns=1)
    ann, more = at(server), at(server, campaign="reef")
    ann.say(MIRA)
    assert more.get("").status_code == 200, "to look is free"
    refused(more.post("say", text=MIRA, ticket="1"), "'ann' has 1 campaigns, and may have no more. Ask the owner")
    refused(more.post("settings", seed="7"), "may have no more")
    files = {"file": ("isle.zip", ann.get("export").content)}
    refused(ann.web.post("/import", files=files, data={"name": "copy"}), "may have no more")
    assert "reef" not in ann.web.get("/").text
    ann.say("I look around.")
    at(server, "bob").say(MIRA)


@pytest.mark.slow
def test_whose_campaigns_take_too_much_keeps_no_more_and_their_guests_neither(served, monkeypatch):
    server, measured = served(megabytes=1), []

    async def usage(home, user, now):
        measured.append(user)
        return Usage(1, 2_000_000 if user == "ann" else 0, now)

    at(server).say(MIRA)
    monkeypatch.setattr(limits, "usage_of", usage)
    ann, reef = at(server), at(server, campaign="reef")
    assert ann.post("share", guests="bob").status_code == 200
    refused(reef.post("say", text=MIRA, ticket="1"), "The campaigns of 'ann' take 2 MB of 1.")
    refused(ann.post("say", text="I wait.", ticket="2"), "to forget one: questbook forget --user USER")
    refused(ann.post("wish", text="A dragon."), "take 2 MB of 1.")
    assert ann.post("put-away", away="1").status_code < 300, "what makes it no more is not refused"
    files = {"files": ("world.md", b"# Isle")}
    refused(ann.web.post(f"{ann.path}lore", files=files), "take 2 MB of 1.")
    with Visitor(server.url, "/u/ann/c/isle/", "bob") as bob:
        refused(bob.post("say", text="I wait.", ticket="3"), "The campaigns of 'ann' take")
    assert measured == ["ann"], "for the new one; else it is believed for ten minutes"
    at(server, "bob").say(MIRA)


async def test_it_is_measured_again_after_ten_minutes_and_when_a_campaign_begins(tmp_path, monkeypatch):
    clock, measured = Clock(), []

    async def usage(home, user, now):
        measured.append(now)
        return Usage(0, 0, now)

    monkeypatch.setattr(limits, "usage_of", usage)
    quotas = Quotas(FileHome(tmp_path), Limits(), clock)
    for seconds, is_new in ((0, False), (599, False), (0, True), (599, False), (1, False)):
        clock.now += seconds
        await quotas.check_kept("ann", is_new=is_new)
    assert measured == [50, 649, 1249]


@pytest.mark.slow
async def test_what_somebody_keeps_is_counted_as_it_is_in_the_files(tmp_path):
    with page_server(tmp_path / "home", log_in=True) as server:
        for name, campaigns in (("ann", ["isle", "a*b"]), ("an", ["isle"])):
            for campaign in campaigns:
                with Visitor(server.url, f"/u/{name}/c/{campaign}/", name) as visitor:
                    visitor.say(MIRA)
        with Visitor(server.url, "/u/ann/a/companion/", "ann") as companion:
            companion.say("Hello.")
    ann, an, eve = [await usage_of(server.home, name, 0) for name in ("ann", "an", "eve")]
    assert [each.campaigns for each in (ann, an, eve)] == [3, 1, 0]
    assert eve.bytes == 0
    assert ann.bytes > 2 * an.bytes > 20_000

    def total(path, *statements):
        return sum(sqlite3.connect(path).execute(statement).fetchone()[0] for statement in statements)

    kept = total(
        server.home.checkpoints, "SELECT TOTAL(LENGTH(value)) FROM checkpoint_blobs",
        "SELECT TOTAL(LENGTH(checkpoint) + LENGTH(metadata)) FROM checkpoints",
    )  # fmt: skip
    kept += total(
        server.home.memory, "SELECT TOTAL(LENGTH(value)) FROM items", "SELECT TOTAL(LENGTH(vector)) FROM vectors"
    )
    assert ann.bytes + an.bytes == kept


@pytest.mark.slow
def test_a_person_has_so_many_campaigns_open_and_what_nobody_watches_gives_way(served):
    server = served(open_campaigns=1)
    ann, more, bob = at(server), at(server, campaign="reef"), at(server, "bob")
    ann.say(MIRA)
    with half_answers() as goes_on:
        assert ann.post("say", text="I look around.", ticket="1").status_code == 200
        refused(more.post("say", text=MIRA, ticket="2"), "You may have 1 campaigns open", 60)
        assert bob.post("say", text=MIRA, ticket="3").status_code == 200
        goes_on.set()
        ann.wait_for()
    more.say(MIRA)


@pytest.mark.slow
def test_a_person_has_so_many_streams(served):
    server = served(streams=1)
    ann, bob = at(server), at(server, "bob")
    ann.say(MIRA)
    deadline = time.monotonic() + 10
    while server.streams:  # the one that has told of the turn
        assert time.monotonic() < deadline
        time.sleep(0.02)
    first = Watching(ann)
    refused(ann.get("events?after=0&brief"), "You may have 1 pages open", 60)
    bob.say(MIRA)
    assert not first.ended.is_set()


@pytest.mark.slow
def test_one_person_at_home_has_no_limits(tmp_path, monkeypatch):
    for field in Limits._fields:
        monkeypatch.setenv(f"QUESTBOOK_MOST_{field.upper()}", "1")
    with page_server(tmp_path / "home") as server:
        for campaign in ("isle", "reef"):
            with Visitor(server.url, f"/c/{campaign}/") as visitor:
                visitor.say(MIRA)
                visitor.say("I look around.")
                assert visitor.post("settings", max_message_chars="20000").status_code == 200
                assert 'data-turn="2"' in visitor.get("story").text
